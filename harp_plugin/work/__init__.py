"""What is finished, and how work is run: stages, shards, tables, locks, SQL engines."""

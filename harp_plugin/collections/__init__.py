"""Judged queries and runs: collections of ir_datasets, and TREC runs on disk."""

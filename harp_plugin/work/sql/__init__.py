"""Run Ibis expressions on DuckDB or on Spark."""

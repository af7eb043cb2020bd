"""Tables on disk: stages that can be killed and go on, Parquet shards, memory-mapped look-ups."""

from .manifest import read_content, read_manifest, table_files
from .mapped import MappedTable, open_table, verify_tables
from .parquet import (
    ShardFile,
    parquet_files,
    read_batches,
    read_schema,
    read_table,
    table_bytes,
    write_table,
)
from .shards import shard_map
from .stage import EmptyStageError, Stage

__all__ = [
    "EmptyStageError",
    "MappedTable",
    "ShardFile",
    "Stage",
    "open_table",
    "parquet_files",
    "read_batches",
    "read_content",
    "read_manifest",
    "read_schema",
    "read_table",
    "shard_map",
    "table_bytes",
    "table_files",
    "verify_tables",
    "write_table",
]

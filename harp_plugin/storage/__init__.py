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
from .sharing import ALONE, Share, rank_option, world_option
from .stage import EmptyStageError, Stage

__all__ = [
    "ALONE",
    "EmptyStageError",
    "MappedTable",
    "ShardFile",
    "Share",
    "Stage",
    "open_table",
    "parquet_files",
    "rank_option",
    "read_batches",
    "read_content",
    "read_manifest",
    "read_schema",
    "read_table",
    "shard_map",
    "table_bytes",
    "table_files",
    "verify_tables",
    "world_option",
    "write_table",
]

"""Tables on disk: stages that can be killed and go on, Parquet shards, memory-mapped look-ups."""

from .mapped import MappedTable, open_table
from .parquet import parquet_files, read_table, table_bytes, write_table
from .shards import shard_map
from .stage import Stage, read_manifest

__all__ = [
    "MappedTable",
    "Stage",
    "open_table",
    "parquet_files",
    "read_manifest",
    "read_table",
    "shard_map",
    "table_bytes",
    "write_table",
]

"""Options of reading."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CorpusOptions:
    """What to read, and how."""

    reader: str = field(
        default="auto",
        metadata={"help": "Source format; auto tells it by the source's first bytes."},
    )
    pages_per_shard: int = field(
        default=2000, metadata={"help": "Source records per Parquet shard."}
    )

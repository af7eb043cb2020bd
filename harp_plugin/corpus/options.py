"""Options of the corpus stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import HarpError
from .site_roots import site_roots

__all__ = ["CorpusOptions"]


@dataclass
class CorpusOptions:
    """How sources are read.

    Raises:
        HarpError: a number is out of its range, or a site root is no pair.
    """

    reader: str = field(
        default="auto",
        metadata={"help": "Format of the sources; auto tells it by their first bytes."},
    )
    site_root: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Places of folders on the published site, for Markdown whose links start at "
            "the root of the site: /cpp/=docs/ reads /cpp/x as docs/x, and /cpp/= as x.",
            "action": "extend",
        },
    )
    pages_per_shard: int = field(
        default=2000, metadata={"help": "How many records of a source one Parquet shard holds."}
    )

    def __post_init__(self) -> None:
        if self.pages_per_shard < 1:
            raise HarpError(f"--pages-per-shard {self.pages_per_shard}: give 1 or more")
        site_roots(self.site_root)

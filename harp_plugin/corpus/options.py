"""Options of the corpus stage."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import Count, Options, option
from .site_roots import site_roots

__all__ = ["CorpusOptions"]


@dataclass(kw_only=True)
class CorpusOptions(Options):
    """How sources are read.

    Raises:
        HarpError: a value makes no sense, or a site root is not a pair.
    """

    reader: str = option("auto", "Format of the sources; auto tells it by their first bytes.")
    site_root: list[str] = option(
        [],
        "Paths of folders on the published site, for Markdown whose links start at the root of the "
        "site: /cpp/=docs/ reads /cpp/x as docs/x, and /cpp/= as x.",
        action="extend",
    )
    pages_per_shard: Count = option(2000, "How many records of a source one Parquet shard holds.")

    def __post_init__(self) -> None:
        super().__post_init__()
        site_roots(self.site_root)

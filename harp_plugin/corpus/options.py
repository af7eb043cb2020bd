"""Options of the corpus stage, and where folders of sources stand on a published site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from ..errors import HarpError
from ..options import Count, Options, option

__all__ = ["CorpusOptions", "DialectName", "site_roots"]

DialectName = Literal[
    "auto",
    "hugo",
    "docusaurus",
    "vitepress",
    "mdbook",
    "mkdocs",
    "docfx",
    "myst",
    "jekyll",
    "obsidian",
    "commonmark",
]
"""Dialects of Markdown; ``auto`` looks for them in this order."""
_NOT_ESCAPED = ";/?:@&=+$,-_.!~*'()#%"
"""Characters that a parser of Markdown leaves as they are in addresses."""


@dataclass(kw_only=True)
class CorpusOptions(Options):
    """How sources are read.

    Attributes:
        reader: Format of the sources; auto tells it by their first bytes.
        site_root: Paths of folders on the published site, for Markdown whose links start at the
            root of the site: /cpp/=docs/ reads /cpp/x as docs/x, and /cpp/= as x.
        dialect: How Markdown is read; auto tells it by the files that configure the generator of
            the site, such as mkdocs.yml.
        pages_per_shard: How many records of a source one Parquet shard holds.

    Raises:
        HarpError: a value makes no sense, or a site root is not a pair.
    """

    reader: str = "auto"
    site_root: list[str] = option([], action="extend")
    dialect: DialectName = "auto"
    pages_per_shard: Count = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        site_roots(self.site_root)


def site_roots(options: Sequence[str]) -> dict[str, str]:
    """Read options of the form ``/cpp/=docs/``: what each start of addresses on a site stands for.

    Returns:
        Paths below the folder of the sources, such as ``/docs/``, by starts of addresses, such as
        ``/cpp/``, as they are written and with escapes; the longest start comes first.

    Raises:
        HarpError: an option has another form.
    """
    roots: list[tuple[str, str]] = []
    for text in options:
        prefix, equals, folder = text.partition("=")
        if not equals or not prefix.endswith("/"):
            raise HarpError(
                f"--site-root {text}: give the start of addresses and its folder, such as "
                "/cpp/=docs/, or /cpp/= for the folder of the source itself"
            )
        folder = folder.strip("/")
        path = f"/{folder}/" if folder not in ("", ".") else "/"
        roots += [(start, path) for start in {prefix, quote(prefix, safe=_NOT_ESCAPED)}]
    return dict(sorted(roots, key=lambda root: (-len(root[0]), root)))

"""Where the folders of the sources stand on the site that is published from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import HarpError

__all__ = ["SiteRoot", "site_roots"]


class SiteRoot(NamedTuple):
    """The place of a published site in the folder of its sources.

    Attributes:
        prefix: the start of addresses on the site, such as ``/cpp/``.
        folder: what stands for it, as a path below the folder of the sources, such as ``docs/``.
    """

    prefix: str
    folder: str


def site_roots(options: Sequence[str]) -> tuple[SiteRoot, ...]:
    """Read options of the form ``/cpp/=docs/``; the longest prefix comes first.

    Raises:
        HarpError: an option has another form.
    """
    roots = []
    for option in options:
        prefix, equals, folder = option.partition("=")
        if not equals or not prefix.endswith("/"):
            raise HarpError(
                f"--site-root {option}: give the start of addresses and its folder, such as "
                "/cpp/=docs/, or /cpp/= for the folder of the source itself"
            )
        folder = folder.strip("/")
        roots.append(SiteRoot(prefix, f"/{folder}/" if folder not in ("", ".") else "/"))
    return tuple(sorted(roots, key=lambda root: (-len(root.prefix), root)))

"""Which files `harp inspect` may replace: those that it wrote."""

from __future__ import annotations

from pathlib import Path

from .. import __version__
from ..errors import HarpError
from ..files.noted import refuse_special

GENERATOR = f"harp_plugin {__version__}"
"""What the page and `audit.json` name as their origin."""
PAGE_MARK = '<meta name="generator" content="harp_plugin '
AUDIT_MARK = '"generator": "harp_plugin '
_HEAD = 4096


def refuse_others(path: Path, mark: str) -> None:
    """Refuse to replace what `harp inspect` did not write.

    Args:
        path: a file to be written.
        mark: stands near the beginning of each such file of ours.

    Raises:
        HarpError: there is another file, or a folder or a link.
    """
    refuse_special(path, "--output")
    if path.exists():
        with path.open("rb") as file:
            if mark.encode() not in file.read(_HEAD):
                raise HarpError(
                    f"{path} was not written by `harp inspect`, which leaves it as it is: name "
                    "another --output, or move it away"
                )

"""The mark of the files that `harp inspect` writes: it replaces no others."""

from __future__ import annotations

from pathlib import Path

from .._version import __version__
from ..errors import HarpError
from ..work.output_paths import refuse_special

__all__ = ["AUDIT_MARK", "GENERATOR", "PAGE_MARK", "refuse_other_files"]

GENERATOR = f"harp_plugin {__version__}"
"""What the page and `audit.json` name as the program that wrote them."""
PAGE_MARK = '<meta name="generator" content="harp_plugin '
AUDIT_MARK = '"generator": "harp_plugin '
_HEAD_BYTES = 4096


def refuse_other_files(path: Path, mark: str) -> None:
    """Refuse to replace a file that `harp inspect` did not write.

    Args:
        path: a file to be written.
        mark: a text near the beginning of each such file that `harp inspect` writes.

    Raises:
        HarpError: another file stands there, or a folder or a link.
    """
    refuse_special(path, "--output")
    if path.exists():
        with path.open("rb") as file:
            if mark.encode() not in file.read(_HEAD_BYTES):
                raise HarpError(
                    f"{path} was not written by `harp inspect`, which leaves it as it is: name "
                    "another --output, or move it away"
                )

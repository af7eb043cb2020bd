"""Files in a stage's folder that harp did not write: they are neither deleted nor replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import HarpError
from .lock import LOCK
from .manifest import MANIFEST, STARTED
from .shard_records import SHARDS
from .writing import TEMPORARY

__all__ = ["clear_folder", "refuse_strange_files"]

_UNFINISHED = rf"(.*/)?[^/]*{re.escape(TEMPORARY)}(/.*)?|{re.escape(LOCK)}.*"
_BEFORE_START = re.compile(_UNFINISHED)
_WRITTEN_BY_STAGES = re.compile(
    rf"{_UNFINISHED}|{re.escape(MANIFEST)}|{re.escape(STARTED)}|{SHARDS}/[^/]*\.json"
    r"|[^/]+/(part|train|from)-[^/]*\.(parquet|jsonl)"
)
"""Paths that a stage writes in its folder, beside those that its manifest lists."""


def refuse_strange_files(folder: Path, listed: Iterable[str], *, has_started: bool) -> None:
    """Refuse to work in a folder that holds files of others.

    Args:
        folder: of the stage.
        listed: paths in the folder that are known to be the stage's.
        has_started: whether a stage has started in the folder; else nothing but what a killed
            process leaves may be there.

    Raises:
        HarpError: there are such files; the message names the first.
    """
    own = _WRITTEN_BY_STAGES if has_started else _BEFORE_START
    names = (path.relative_to(folder).as_posix() for path in _files_below(folder))
    listed = set(listed)
    strange = [name for name in names if not own.fullmatch(name) and name not in listed]
    if strange:
        raise HarpError(
            f"{folder} holds {len(strange):,} files that harp did not write, such as "
            f"{strange[0]}: name another --output-dir, or move them away"
        )


def clear_folder(folder: Path) -> None:
    """Remove all files in a folder but its lock, then the folders that are empty."""
    for path in _files_below(folder):
        if path.name != LOCK:
            path.unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _files_below(folder: Path) -> list[Path]:
    """List all files and links in a folder and in its folders; links are not followed."""
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]

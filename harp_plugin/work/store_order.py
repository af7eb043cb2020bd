"""The order in which files are copied into a store and removed there, and which stay here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .writing import TEMPORARY

__all__ = [
    "CHECKPOINT",
    "MANIFEST",
    "NO_OTHERS",
    "UNFINISHED",
    "UNPUBLISHED",
    "in_order",
    "marks_of",
    "removals",
    "stays_here",
]

UNFINISHED = ".harp_unfinished"
"""Name of a file in a checkpoint while it is written; it lists files that were there before.

Beside a manifest it says nothing.
"""
NO_OTHERS = b"[]"
"""The content of a mark that `StoreCopy` writes."""
_IN_CHECKPOINT = re.compile(r"(?:.*/)?checkpoint-\d+/")
CHECKPOINT = re.compile(rf"({_IN_CHECKPOINT.pattern})harp_manifest\.json")
"""The manifest of a checkpoint, which comes last and goes last."""
UNPUBLISHED = ".final"
"""Name of the folder in which training writes the final model before it publishes it."""
_OPENERS = (UNFINISHED, "harp_files.json", "harp_run.json", "started.json")
"""Records that say whose a folder is: they stand in the store before what they speak of."""
MANIFEST = "manifest.json"
_MAPPED = "mapped"
"""Name of the folder in a build with the copies that readers make for themselves."""
_VECTORS = f"{_MAPPED}/cosine-"
"""What the names of vectors begin with, which hosts that mine negatives share."""


def in_order(names: list[str]) -> list[list[str]]:
    """Put names in groups: what opens a folder, files, records, manifests."""
    groups: list[list[str]] = [[], [], [], []]
    files = set(names)
    for name in sorted(names):
        file = name.rpartition("/")[2]
        is_record = file.endswith(".json")
        opens = file in _OPENERS or (is_record and name.removesuffix(".json") in files)
        group = 0 if opens else 1 + is_record + file.endswith(MANIFEST)
        groups[group].append(name)
    return groups


def marks_of(names: Iterable[str]) -> set[str]:
    """Name the marks that checkpoints have while they are written, for those with a manifest."""
    found = filter(None, map(CHECKPOINT.fullmatch, names))
    return {f"{match[1]}{UNFINISHED}" for match in found}


def removals(names: set[str], left: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Put names in order of removal: first, before the manifests of stages, and last.

    Records go first, for they speak of files that may be copied next. A checkpoint stays until a
    newer one is there, and its manifest goes after its other files, for it says whose the
    checkpoint is. A folder that is removed altogether, or vectors that hosts share, go last.

    Args:
        names: to be removed.
        left: names that stay.
    """
    folders = {name.partition("/")[0] for name in left}
    of_checkpoints = {name for name in names if _IN_CHECKPOINT.match(name)}
    inside = {name for name in names - of_checkpoints if "/" in name}
    last = {n for n in inside if n.startswith(_VECTORS) or n.partition("/")[0] not in folders}
    first = {name for name in names - of_checkpoints - last if name.endswith(".json")}
    return (
        sorted(first),
        sorted(names - first - last, key=lambda name: (bool(CHECKPOINT.fullmatch(name)), name)),
        sorted(last, key=lambda name: (not name.endswith(".json"), name)),
    )


def stays_here(name: str) -> bool:
    """Tell whether a file is of use here only: unfinished, a lock, or a reader's copy."""
    is_unfinished = TEMPORARY in name or UNPUBLISHED in name.split("/")
    is_lock = name.endswith((".lock", ".lock.by"))
    is_copy = name.startswith(f"{_MAPPED}/") and not name.startswith(_VECTORS)
    return is_unfinished or is_lock or is_copy

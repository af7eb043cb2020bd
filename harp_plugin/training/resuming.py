"""Choose the checkpoint that a training run continues from."""

from __future__ import annotations

import logging
from pathlib import Path

from ..errors import HarpError
from ..models.folder import MANIFEST
from ..work.provenance import MadeFrom, OverwriteRules
from ..work.records import read_record
from . import checkpoint_files
from .manifest import read_made_from

__all__ = ["check_named_checkpoint", "last_whole_checkpoint"]

logger = logging.getLogger(__name__)


def check_named_checkpoint(
    checkpoint: Path, made_from: MadeFrom, processes: int, rules: OverwriteRules
) -> None:
    """Check that a run can continue from a checkpoint that the user names.

    If the checkpoint is of another recipe, a warning says so.

    Args:
        checkpoint: the folder.
        made_from: what the run is made from.
        processes: number of training processes.
        rules: whether a checkpoint of other package versions may be used.

    Raises:
        HarpError: it is not whole, or other package versions wrote it.
    """
    if damage := checkpoint_files.fault(checkpoint, processes):
        raise HarpError(f"{checkpoint} is not a whole checkpoint ({damage}): name another")
    stored = read_made_from(read_record(checkpoint / MANIFEST))
    if not rules.accept_other_versions and (difference := made_from.version_difference(stored)):
        raise HarpError(
            f"{checkpoint} was made by other package versions ({difference}): give --keep to use "
            "it as it is, or name another checkpoint"
        )
    if difference := made_from.difference(stored):
        logger.warning(
            "going on from %s, which was made from other settings: %s", checkpoint, difference
        )


def last_whole_checkpoint(
    folder: Path, made_from: MadeFrom, processes: int, *, overwrite: bool
) -> Path | None:
    """Find the last whole checkpoint of a run.

    Half-written checkpoints are removed and damaged ones are renamed; the log says so.

    Args:
        folder: the folder of the run.
        made_from: what the run is made from.
        processes: number of training processes.
        overwrite: whether training begins anew where all checkpoints are damaged.

    Returns:
        The checkpoint, None if there is none.

    Raises:
        HarpError: a checkpoint in the folder is of another run, or all are damaged and
            ``overwrite`` is off.
    """
    whole, damaged = _whole_and_damaged(folder, made_from, processes)
    if whole is None and damaged and not overwrite:
        raise HarpError(
            f"{next(iter(damaged.values()))}, and no whole checkpoint is left: restore it, or give "
            "--overwrite to train anew"
        )
    for path, damage in damaged.items():
        place = checkpoint_files.set_aside(path)
        logger.warning("%s: the checkpoint is passed over and renamed to %s", damage, place)
    if whole is not None:
        logger.info("going on from %s", whole)
    return whole


def _whole_and_damaged(
    folder: Path, made_from: MadeFrom, processes: int
) -> tuple[Path | None, dict[Path, str]]:
    """Find the last whole checkpoint, and what is wrong with those after it."""
    damaged: dict[Path, str] = {}
    for path in filter(checkpoint_files.is_from_training, checkpoint_files.checkpoints(folder)):
        damage = checkpoint_files.fault(path, processes)
        if damage is None:
            _check_owner(path, made_from)
            return path, damaged
        if checkpoint_files.is_half_written(path):
            logger.warning("%s: it is removed, and training goes on without it", damage)
            checkpoint_files.remove(path)
        else:
            damaged[path] = damage
    return None, damaged


def _check_owner(checkpoint: Path, made_from: MadeFrom) -> None:
    stored = read_made_from(read_record(checkpoint / MANIFEST))
    if difference := made_from.difference(stored):
        raise HarpError(f"{checkpoint} is of another run ({difference}): move it away")

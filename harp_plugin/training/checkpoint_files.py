"""The files of a checkpoint: which they are, whether they are whole, and how they are removed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import HarpError
from ..files.writing import TEMPORARY, changed_file, describe_files, sync, write_text
from ..models.folder import MANIFEST, listed_files
from .card import CARD

UNFINISHED = ".harp_unfinished"
"""Stands in a checkpoint while it is written, with the names of files that others wrote there."""
_NOT_LISTED = (MANIFEST, CARD, UNFINISHED, "training_args.bin")
_STATE = "trainer_state.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_WRITTEN = (
    *_NOT_LISTED,
    *("added_tokens.json", "chat_template.jinja", "config.json", "generation_config.json"),
    *("merges.txt", "model.safetensors", "special_tokens_map.json", "tokenizer*.json"),
    *("vocab.json", "vocab.txt", "*.model", _STATE, "optimizer.*", "scaler.pt", "scheduler.pt"),
    *("rng_state*.pth", "pytorch_model_fsdp*", "optimizer_*", "global_step*", "latest"),
    *("model-*-of-*.safetensors", "model.safetensors.index.json", "bpe.codes"),
    *("zero_to_fp32.py", f".{MANIFEST}.*", f"*{TEMPORARY}"),
)


def checkpoints(folder: Path) -> list[Path]:
    """What is named as checkpoints of a run are, the last step first."""
    found = [path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """The optimiser step that a checkpoint is named after."""
    return int(checkpoint.name.partition("-")[2])


def begin(checkpoint: Path) -> None:
    """Mark a checkpoint as being written."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    if not (checkpoint / UNFINISHED).is_file():
        of_others = {path.relative_to(checkpoint).as_posix() for path in _files(checkpoint)}
        of_others -= {path.relative_to(checkpoint).as_posix() for path in _written(checkpoint)}
        write_text(checkpoint / UNFINISHED, json.dumps(sorted(of_others)))
    (checkpoint / MANIFEST).unlink(missing_ok=True)


def synced_hashes(checkpoint: Path) -> dict[str, Any]:
    """Size and hash of each file that training goes on from, which then is on the disk."""
    paths = _files(checkpoint)
    for path in paths:
        sync(path)
    names = {path.relative_to(checkpoint).as_posix() for path in paths}
    return describe_files(checkpoint, names - {*_NOT_LISTED, *_of_others(checkpoint)})


def is_ours(checkpoint: Path) -> bool:
    """Whether a run has written a folder, or begun to."""
    if checkpoint.is_symlink() or not checkpoint.is_dir():
        return False
    return any((checkpoint / name).is_file() for name in (MANIFEST, UNFINISHED))


def is_half_written(checkpoint: Path) -> bool:
    """Whether a run was stopped while it wrote a checkpoint."""
    return (checkpoint / UNFINISHED).is_file() and not (checkpoint / MANIFEST).is_file()


def set_aside(checkpoint: Path) -> Path:
    """Rename a damaged checkpoint, so that its step can be written again.

    Returns:
        Where it is now.
    """
    place = checkpoint.with_name(f"{checkpoint.name}.damaged")
    number = 1
    while place.exists() or place.is_symlink():
        number += 1
        place = checkpoint.with_name(f"{checkpoint.name}.damaged-{number}")
    checkpoint.rename(place)
    sync(place.parent)
    return place


def fault(checkpoint: Path, processes: int) -> str | None:
    """What keeps a run from going on from a checkpoint, None if nothing does.

    Args:
        checkpoint: the folder.
        processes: number of training processes.

    Raises:
        HarpError: a file cannot be read.
    """
    if not (checkpoint / MANIFEST).is_file():
        return f"{checkpoint} was left half-written"
    try:
        files = listed_files(checkpoint)
        if changed := changed_file(checkpoint, files):
            return changed
        step = json.loads((checkpoint / _STATE).read_bytes())["global_step"]
    except OSError as error:
        raise HarpError(
            f"a file of {checkpoint} cannot be read ({error.strerror}): make it readable"
        ) from error
    except HarpError as error:
        if isinstance(error.__cause__, OSError):
            raise
        return str(error)
    except (ValueError, RecursionError, TypeError, LookupError):
        return f"{checkpoint / _STATE} is damaged"
    random_states = [name for name in files if name.startswith("rng_state")]
    is_sharded = any("/" in name for name in files)
    has_optimizer = is_sharded or any(name.startswith("optimizer.") for name in files)
    if checkpoint.name != f"checkpoint-{step}":
        return f"{checkpoint} holds the state of step {step}"
    if len(random_states) != processes or not has_optimizer:
        return f"{checkpoint} lacks the state of the optimizer or of a process"
    return None


def remove(checkpoint: Path) -> None:
    """Remove what training wrote into a checkpoint, and the folder if nothing else is in it.

    The manifest is removed last. Where other files are left in a half-written checkpoint, its mark
    stays: they may be the run's own.
    """
    marks = [checkpoint / UNFINISHED, checkpoint / MANIFEST]
    was_half_written = is_half_written(checkpoint)
    for path in _written(checkpoint) - {*marks}:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    _remove_empty_folders(checkpoint)
    if was_half_written and {*checkpoint.iterdir()} - {*marks}:
        return
    for mark in marks:
        mark.unlink(missing_ok=True)
    if not any(checkpoint.iterdir()):
        checkpoint.rmdir()


def _files(checkpoint: Path) -> list[Path]:
    return [path for path in checkpoint.rglob("*") if path.is_file()]


def _written(checkpoint: Path) -> set[Path]:
    """What stands in a checkpoint by a name that training writes, or that its manifest lists."""
    found = {path for pattern in _WRITTEN for path in checkpoint.glob(pattern)}
    try:
        listed = listed_files(checkpoint)
    except HarpError:
        return found
    inside = [name for name in listed if _is_inside(PurePosixPath(name))]
    return found | {checkpoint / name for name in inside if (checkpoint / name).is_file()}


def _is_inside(name: PurePosixPath) -> bool:
    return not name.is_absolute() and ".." not in name.parts


def _of_others(checkpoint: Path) -> list[str]:
    """What stood in the folder before the checkpoint was begun, and is not the run's."""
    try:
        return json.loads((checkpoint / UNFINISHED).read_bytes())
    except (OSError, ValueError):
        return []


def _remove_empty_folders(checkpoint: Path) -> None:
    folders = [path for path in checkpoint.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted(folders, reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()

"""List, check and remove the files of checkpoints."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import HarpError
from ..models.folder import MANIFEST, POOLING, listed_files
from ..work.hashes import changed_file, describe_files
from ..work.writing import TEMPORARY, sync, write_text
from .card import CARD

__all__ = [
    "UNFINISHED",
    "UNPUBLISHED",
    "begin",
    "checkpoints",
    "fault",
    "file_names",
    "is_from_training",
    "is_half_written",
    "keep_newest",
    "remove",
    "remove_weights",
    "set_aside",
    "step_of",
    "synced_hashes",
]

UNFINISHED = ".harp_unfinished"
"""Name of a file in a checkpoint while it is written; it lists files that were there before."""
UNPUBLISHED = ".final"
"""Name of the folder in which training writes the final model before it publishes it."""
_STATE = "trainer_state.json"
_NOT_LISTED = (MANIFEST, CARD, UNFINISHED, "training_args.bin")
_NAME = re.compile(r"checkpoint-(\d+)")
_OPTIMIZERS = ("optimizer.", "optimizer_", "global_step")
"""How the names of the files and folders begin that hold the state of an optimizer."""
_OF_A_MODEL = (
    *("added_tokens.json", "chat_template.jinja", "config.json", "generation_config.json"),
    *("merges.txt", "model.safetensors", "special_tokens_map.json", "tokenizer*.json"),
    *("vocab.json", "vocab.txt", "*.model", "bpe.codes", f"*{TEMPORARY}"),
    *("model-*-of-*.safetensors", "model.safetensors.index.json"),
    *("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"),
    *(f"{POOLING}/config.json", f"{POOLING}/*{TEMPORARY}"),
)
_WRITTEN = (
    *_NOT_LISTED,
    *_OF_A_MODEL,
    *(f"{beginning}*" for beginning in _OPTIMIZERS),
    *(_STATE, "scaler.pt", "scheduler.pt", f".{MANIFEST}.*"),
    *("rng_state*.pth", "pytorch_model_fsdp*", "latest", "zero_to_fp32.py"),
)


def checkpoints(folder: Path) -> list[Path]:
    """List the paths that have the name of a checkpoint, the last step first."""
    paths = [path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)]
    return sorted(paths, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Read the optimizer step from a checkpoint's name."""
    return int(checkpoint.name.partition("-")[2])


def begin(checkpoint: Path) -> None:
    """Mark a checkpoint as being written."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    if not (checkpoint / UNFINISHED).is_file():
        strange = {*file_names(checkpoint)}
        strange -= {path.relative_to(checkpoint).as_posix() for path in _written(checkpoint)}
        write_text(checkpoint / UNFINISHED, json.dumps(sorted(strange)))
    (checkpoint / MANIFEST).unlink(missing_ok=True)


def synced_hashes(checkpoint: Path) -> dict[str, Any]:
    """Measure each file that training goes on from, once it is on the disk.

    Returns:
        The size and the hash of each file, by its name.
    """
    names = file_names(checkpoint)
    for name in names:
        sync(checkpoint / name)
    strange = {*_NOT_LISTED, *_strange_files(checkpoint)}
    return describe_files(checkpoint, (name for name in names if name not in strange))


def is_from_training(checkpoint: Path) -> bool:
    """Tell whether a training run has written a folder, or begun to."""
    if checkpoint.is_symlink() or not checkpoint.is_dir():
        return False
    return (checkpoint / MANIFEST).is_file() or is_half_written(checkpoint)


def is_half_written(checkpoint: Path) -> bool:
    """Tell whether a run was stopped while it wrote or removed a checkpoint."""
    if (checkpoint / MANIFEST).is_file():
        return False
    return (checkpoint / UNFINISHED).is_file() or _holds_nothing(checkpoint)


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
    """Find what keeps a run from going on from a checkpoint.

    Args:
        checkpoint: the folder.
        processes: number of training processes.

    Returns:
        What is wrong, in words; None if nothing is.

    Raises:
        HarpError: a file cannot be read.
    """
    if not (checkpoint / MANIFEST).is_file():
        return f"{checkpoint} was left half-written"
    try:
        files = listed_files(checkpoint)
        if damage := changed_file(checkpoint, files):
            return damage
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
    has_optimizer = any(name.startswith(_OPTIMIZERS) for name in files)
    if checkpoint.name != f"checkpoint-{step}":
        return f"{checkpoint} holds the state of step {step}"
    if len(random_states) != processes or not has_optimizer:
        return f"{checkpoint} lacks the state of the optimizer or of a process"
    return None


def keep_newest(folder: Path, limit: int | None, best: str | None) -> None:
    """Remove old checkpoints of a run, but neither the last nor the best.

    Args:
        folder: the folder of the run.
        limit: how many are kept; None, 0 or less keeps all.
        best: the best checkpoint.
    """
    if not limit or limit <= 0:
        return
    paths = checkpoints(folder)
    kept = {path.name for path in paths[:1]} | ({Path(best).name} if paths and best else set())
    others = [path for path in paths if path.name not in kept]
    for path in others[max(limit - len(kept), 0) :]:
        if is_from_training(path):
            remove(path)


def remove(checkpoint: Path) -> None:
    """Remove what training wrote into a checkpoint, and the folder if nothing else is in it.

    The manifest is removed last. If other files are left in a half-written checkpoint, its mark
    stays, because this run may have written them.
    """
    marks = [checkpoint / UNFINISHED, checkpoint / MANIFEST]
    was_half_written = is_half_written(checkpoint)
    for path in _written(checkpoint) - {*marks}:
        _remove_path(path)
    _remove_empty_folders(checkpoint)
    if was_half_written and {*checkpoint.iterdir()} - {*marks}:
        return
    for mark in marks:
        mark.unlink(missing_ok=True)
    if not any(checkpoint.iterdir()):
        checkpoint.rmdir()


def remove_weights(folder: Path) -> None:
    """Remove the model and the checkpoints of a finished run; its log, manifest and card stay.

    ``config.json`` is removed first, because without it no program takes the folder for a model.

    Args:
        folder: the folder of the run.
    """
    paths = _written(folder) - {folder / MANIFEST, folder / CARD}
    for path in sorted(paths, key=lambda path: (path != folder / "config.json", path)):
        _remove_path(path)
    for checkpoint in filter(is_from_training, checkpoints(folder)):
        remove(checkpoint)


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _holds_nothing(checkpoint: Path) -> bool:
    """Tell whether a run was killed before it wrote the first file, or removed the last one."""
    return all(path.name.endswith(TEMPORARY) for path in checkpoint.iterdir())


def file_names(folder: Path) -> list[str]:
    """List the files in a folder and in its folders, by their paths in it, in order."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def _written(checkpoint: Path) -> set[Path]:
    """List what has a name that training writes, or that the checkpoint's manifest lists."""
    paths = {path for pattern in _WRITTEN for path in checkpoint.glob(pattern)}
    try:
        listed = listed_files(checkpoint)
    except HarpError:
        return paths
    inside = [name for name in listed if _is_inside(PurePosixPath(name))]
    return paths | {checkpoint / name for name in inside if (checkpoint / name).is_file()}


def _is_inside(name: PurePosixPath) -> bool:
    return not name.is_absolute() and ".." not in name.parts


def _strange_files(checkpoint: Path) -> list[str]:
    """List the files that were in the folder before the checkpoint was begun."""
    try:
        return json.loads((checkpoint / UNFINISHED).read_bytes())
    except (OSError, ValueError):
        return []


def _remove_empty_folders(checkpoint: Path) -> None:
    folders = [path for path in checkpoint.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted(folders, reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()

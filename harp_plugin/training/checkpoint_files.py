"""The files of a checkpoint: which they are, whether they are whole, and how they are removed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..files import changed_file, describe_files, sync
from ..model_folder import MANIFEST, listed_files
from .card import CARD

UNFINISHED = ".harp_unfinished"
"""Stands in a checkpoint while it is written."""
_NOT_LISTED = (MANIFEST, CARD, UNFINISHED, "training_args.bin")
_STATE = "trainer_state.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_WRITTEN = (
    *_NOT_LISTED,
    *("added_tokens.json", "chat_template.jinja", "config.json", "generation_config.json"),
    *("merges.txt", "model.safetensors", "special_tokens_map.json", "tokenizer*.json"),
    *("vocab.json", "vocab.txt", "*.model", _STATE, "optimizer.*", "scaler.pt", "scheduler.pt"),
    *("rng_state*.pth", "pytorch_model_fsdp*", "optimizer_*", "global_step*", "latest"),
    *("zero_to_fp32.py", f".{MANIFEST}.*", f"{MANIFEST}.*.tmp"),
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
    (checkpoint / UNFINISHED).touch()
    (checkpoint / MANIFEST).unlink(missing_ok=True)


def synced_hashes(checkpoint: Path) -> dict[str, Any]:
    """Size and hash of each file that training goes on from, which then is on the disk."""
    paths = [path for path in checkpoint.rglob("*") if path.is_file()]
    for path in paths:
        sync(path)
    names = [path.relative_to(checkpoint).as_posix() for path in paths]
    return describe_files(checkpoint, [name for name in names if name not in _NOT_LISTED])


def is_ours(checkpoint: Path) -> bool:
    """Whether a run has written a folder, or begun to."""
    if checkpoint.is_symlink() or not checkpoint.is_dir():
        return False
    return any((checkpoint / name).is_file() for name in (MANIFEST, UNFINISHED))


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
    """Remove what training wrote into a checkpoint, and the folder if nothing else is in it."""
    for path in {path for pattern in _WRITTEN for path in checkpoint.glob(pattern)}:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if not any(checkpoint.iterdir()):
        checkpoint.rmdir()

"""The output folder of a training run: whose it is, where to go on, and when it is whole."""

from __future__ import annotations

import json
import logging
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from safetensors import SafetensorError, safe_open

from .. import __version__
from ..errors import HarpError
from .arguments import HarpDataArguments, HarpModelArguments, HarpTrainingArguments
from .card import CARD, cited, model_card
from .judged_arguments import FinetuneDataArguments
from .model import WEIGHTS
from .speed import SPEEDS

logger = logging.getLogger(__name__)

RECORD = "harp_run.json"
MANIFEST = "harp_manifest.json"
LOG = "training_log.json"
# Options that say where and how a run is written, watched and fed, not what it computes.
OF_THE_START = (
    "accelerator_config",
    "dataloader_multiprocessing_context",
    "dataloader_num_workers",
    "dataloader_persistent_workers",
    "dataloader_pin_memory",
    "dataloader_prefetch_factor",
    "ddp_timeout",
    "disable_tqdm",
    "enable_jit_checkpoint",
    "hub_",
    "local_rank",
    "log_",
    "logging_",
    "output_dir",
    "overwrite_output_dir",
    "project",
    "push_to_hub",
    "report_to",
    "resume_from_checkpoint",
    "run_name",
    "save_",
    "skip_memory_metrics",
    "trackio_",
)
OF_THE_CLOCK = frozenset(
    {
        *("train_runtime", "train_samples_per_second", "train_steps_per_second", "train_loss"),
        *SPEEDS,
    }
)


def recipe(
    model_args: HarpModelArguments,
    data_args: HarpDataArguments | FinetuneDataArguments,
    training_args: HarpTrainingArguments,
) -> dict[str, Any]:
    """What a run computes: all options of model and data, and the training options given.

    It is itself a recipe but for ``output_dir``.
    """
    given = {}
    for option in fields(training_args):
        value = getattr(training_args, option.name)
        value = value.value if isinstance(value, Enum) else value
        default = option.default if option.default_factory is MISSING else option.default_factory()
        if not option.init or option.name.startswith(OF_THE_START):
            continue
        if value != default and (value or default):
            given[option.name] = value
    options = {**asdict(model_args), **asdict(data_args), **given}
    return json.loads(json.dumps(options, default=str))


class RunFolder:
    """A folder that one recipe owns.

    While a run lasts it holds ``harp_run.json`` and checkpoints; ``harp_manifest.json`` comes last
    and says that the model beside it is whole. Each checkpoint has its own, and a model card.

    Args:
        path: the folder.
        recipe: what the run computes.
        processes: number of training processes.
        groups_per_epoch: number of pair groups in an epoch.
        data: fingerprint of what the groups are drawn from.
        counts: how much that is, by name.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        recipe: Mapping[str, Any],
        processes: int,
        groups_per_epoch: int,
        data: str = "",
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.path = Path(path)
        self.processes = processes
        self.counts = dict(counts or {})
        self.record: dict[str, Any] = {
            "recipe": dict(recipe),
            "processes": processes,
            "groups_per_epoch": groups_per_epoch,
            "data": data,
        }

    @property
    def partial(self) -> Path:
        """Where the final model is written before it is published."""
        return self.path / ".final"

    def is_finished(self) -> bool:
        """Whether the same run has been finished here."""
        return (self.path / MANIFEST).is_file() and self._stored() == self.record

    def check(self, *, overwrite: bool) -> None:
        """Find that this run may write here.

        Raises:
            HarpError: the folder holds something else, or what another recipe has trained and
                ``overwrite`` is off.
        """
        stored = self._stored()
        trained = (self.path / MANIFEST).is_file() or any(self.path.glob("checkpoint-*"))
        if stored is not None and stored != self.record and trained and not overwrite:
            raise HarpError(
                f"{self.path} was trained by another recipe ({_difference(stored, self.record)}): "
                "choose another output_dir, or give overwrite_output_dir"
            )
        if stored is None and self.path.is_dir() and any(self.path.iterdir()):
            raise HarpError(
                f"{self.path} is not empty and no training run of ours: choose another output_dir"
            )

    def claim(self) -> None:
        """Make the folder this run's: remove what another recipe has left in it."""
        shutil.rmtree(self.partial, ignore_errors=True)
        if self._stored() == self.record:
            return
        for name in (MANIFEST, "config.json", CARD, RECORD):
            (self.path / name).unlink(missing_ok=True)
        for checkpoint in self.path.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
        self.path.mkdir(parents=True, exist_ok=True)
        _write(self.path / RECORD, self.record)

    def last_checkpoint(self, given: str | None = None) -> str | None:
        """The last whole checkpoint, None if there is none. Half-written ones are removed.

        Args:
            given: a checkpoint to go on from instead.

        Raises:
            HarpError: ``given`` is not a whole checkpoint.
        """
        if given is not None:
            if not is_whole(Path(given), self.processes):
                raise HarpError(f"{given} is not a whole checkpoint: name another, or none")
            return given
        found = [path for path in self.path.glob("checkpoint-*") if path.name[11:].isdigit()]
        for path in sorted(found, key=lambda path: int(path.name[11:]), reverse=True):
            if is_whole(path, self.processes):
                logger.info("going on from %s", path)
                return str(path)
            logger.warning("%s was left half-written: removed", path)
            shutil.rmtree(path, ignore_errors=True)
        return None

    def describe(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Write the manifest and the model card of a checkpoint.

        Args:
            folder: the checkpoint.
            state: as in `manifest`.
        """
        manifest = self.manifest(**state)
        model_card(manifest).save(folder / CARD)
        _write(folder / MANIFEST, manifest)

    def manifest(
        self,
        *,
        log: Sequence[Mapping[str, Any]],
        steps: int,
        fresh_weights: Sequence[str],
        untrained_weights: Sequence[str],
        best_step: int | None = None,
    ) -> dict[str, Any]:
        """What there is to say of a checkpoint.

        Args:
            log: the trainer's log.
            steps: optimiser steps taken.
            fresh_weights: weights that were drawn anew when the run began.
            untrained_weights: those of them that no loss trained; the model lacks them.
            best_step: whose weights these are, where they are not the last step's.
        """
        lines = _lines(log)
        return {
            "stage": "train",
            **self.record,
            "steps": steps,
            "best_step": best_step,
            "seed": self.record["recipe"].get("seed", HarpTrainingArguments.seed),
            "counts": self.counts,
            "fresh_weights": list(fresh_weights),
            "untrained_weights": list(untrained_weights),
            "metrics": _at(best_step, lines),
            "citations": cited(self.record["recipe"]),
            "versions": versions(),
        }

    def publish(self, state: Mapping[str, Any]) -> None:
        """Move the final model from `partial` into place, and commit it with the manifest.

        Args:
            state: as in `manifest`.
        """
        _write(self.partial / LOG, _lines(state["log"]))
        self.describe(self.partial, state)
        # Without config.json nothing loads the folder; the manifest says that all else is there.
        last = ["config.json", MANIFEST]
        for file in sorted(self.partial.iterdir(), key=lambda file: (file.name in last, file.name)):
            file.replace(self.path / file.name)
        self.partial.rmdir()

    def _stored(self) -> dict[str, Any] | None:
        try:
            return json.loads((self.path / RECORD).read_text())
        except (OSError, json.JSONDecodeError):
            return None


def is_whole(checkpoint: Path, processes: int = 1) -> bool:
    """Whether a checkpoint can be gone on from.

    The trainer writes ``trainer_state.json`` last, so all else is there when it is readable; what
    remains are files that were cut off.
    """
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_text())
        with safe_open(checkpoint / WEIGHTS, "pt"):
            pass
    except (OSError, json.JSONDecodeError, SafetensorError):
        return False
    torch_files = [
        file for ending in ("pt", "pth", "bin") for file in checkpoint.glob(f"*.{ending}")
    ]
    random_states = list(checkpoint.glob("rng_state*.pth"))
    sharded = any(path.is_dir() for path in checkpoint.iterdir())
    return (
        checkpoint.name == f"checkpoint-{state.get('global_step')}"
        and all(is_zipfile(file) for file in torch_files)
        and len(random_states) == processes
        and (sharded or any(checkpoint.glob("optimizer.*")))
    )


def versions() -> dict[str, str]:
    """Versions of everything that decides what a run computes."""
    packages = ("accelerate", "numpy", "tevatron", "tokenizers", "torch", "transformers")
    return {
        "harp_plugin": __version__,
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def _lines(log: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The log's lines of training and evaluation, without what the clock decides."""
    kept = [{key: value for key, value in line.items() if key not in OF_THE_CLOCK} for line in log]
    return [line for line in kept if line.keys() - {"epoch", "step", "total_flos"}]


def _at(step: int | None, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All that was measured at a step, at the last one that was logged if None."""
    step = lines[-1].get("step") if step is None and lines else step
    found: dict[str, Any] = {}
    for line in lines:
        found |= line if line.get("step") == step else {}
    return found


def _difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    old = {**stored.get("recipe", {}), **{k: v for k, v in stored.items() if k != "recipe"}}
    new = {**wanted["recipe"], **{k: v for k, v in wanted.items() if k != "recipe"}}
    keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return ", ".join(f"{key}: {old.get(key)} then, {new.get(key)} now" for key in keys[:3])


def _write(path: Path, value: object) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    temporary.replace(path)

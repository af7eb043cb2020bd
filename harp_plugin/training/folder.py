"""The output folder of a training run: whose it is, where to go on, and when it is whole."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..files.locks import LOCK
from ..files.made_from import difference, refuse_other_versions
from ..files.versions import package_versions
from ..files.writing import (
    changed_file,
    read_record,
    remove_temporary,
    sync,
    write_record,
    write_text,
)
from ..models.folder import MANIFEST, is_model_file, listed_files
from ..option_names import OptionNames
from . import checkpoint_files
from .arguments import HarpDataArguments, HarpModelArguments, HarpTrainingArguments
from .card import CARD, cited, model_card
from .judged_arguments import FinetuneDataArguments
from .speed import SPEEDS

logger = logging.getLogger(__name__)

RECORD = "harp_run.json"
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
    "keep",
    "local_rank",
    "log_",
    "logging_",
    "output_dir",
    "overwrite",
    "project",
    "push_to_hub",
    "quiet",
    "report_to",
    "resume_from_checkpoint",
    "run_name",
    "save_",
    "skip_memory_metrics",
    "trackio_",
)
_NAMES = OptionNames(
    (HarpModelArguments, HarpDataArguments, FinetuneDataArguments, HarpTrainingArguments)
)
_OF_THE_RECORD = ("published", "versions")
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
        inputs: fingerprints of the start model and of other files that are read.
        counts: how much that is, by name.
        keep: whether work of other package versions is gone on from.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        recipe: Mapping[str, Any],
        processes: int,
        groups_per_epoch: int,
        data: str = "",
        inputs: Mapping[str, str] | None = None,
        counts: Mapping[str, int] | None = None,
        keep: bool = False,
    ) -> None:
        self.path = Path(path)
        self.processes = processes
        self.keep = keep
        self.counts = dict(counts or {})
        self.record: dict[str, Any] = {
            "recipe": dict(recipe),
            "processes": processes,
            "groups_per_epoch": groups_per_epoch,
            "data": data,
            "inputs": dict(inputs or {}),
        }

    @property
    def partial(self) -> Path:
        """Where the final model is written before it is published."""
        return self.path / ".final"

    def is_finished(self, *, overwrite: bool = False) -> bool:
        """Whether the same run has been finished here, and its model is as it was written.

        Raises:
            HarpError: it is damaged, or other package versions made it, and neither ``overwrite``
                nor `keep` is set.
        """
        stored = self._stored()
        if stored is None or not (self.path / MANIFEST).is_file():
            return False
        if self._difference(stored):
            return False
        reason = self._damage()
        if reason is None and (self.keep or not overwrite):
            self._check_versions(stored)
        elif not overwrite:
            raise HarpError(
                f"{reason}: restore it, or delete {self.path / MANIFEST} to make the model again "
                "from the last checkpoint"
            )
        return reason is None and (self.keep or stored.get("versions") == run_versions())

    def check(self, *, overwrite: bool) -> None:
        """Find that this run may write here.

        Raises:
            HarpError: the folder holds something else, what another recipe has trained, or what
                other package versions have, and ``overwrite`` is off; or a checkpoint in it is
                nobody's.
        """
        stored = self._stored()
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        if stored is None:
            if names - {LOCK, f"{LOCK}.by"}:
                raise HarpError(
                    f"{self.path} is not empty and no training run of ours: choose another "
                    "output_dir"
                )
            return
        checkpoints = checkpoint_files.checkpoints(self.path)
        for path in checkpoints:
            if not checkpoint_files.is_ours(path):
                raise HarpError(
                    f"{path} has no {MANIFEST}: it is no checkpoint of this run, or has lost it; "
                    "move it away"
                )
        trained = bool(checkpoints) or (self.path / MANIFEST).is_file()
        if not trained or overwrite:
            return
        if changes := self._difference(stored):
            raise HarpError(
                f"{self.path} was trained by another recipe ({changes}): choose another "
                "output_dir, or give --overwrite"
            )
        self._check_versions(stored)

    def claim(self) -> None:
        """Make the folder this run's: remove what another recipe has left in it."""
        shutil.rmtree(self.partial, ignore_errors=True)
        remove_temporary(self.path)
        stored = self._stored()
        if stored is not None and self._goes_on(stored):
            return
        for name in (MANIFEST, *(stored or {}).get("published", ()), RECORD):
            (self.path / name).unlink(missing_ok=True)
        for checkpoint in checkpoint_files.checkpoints(self.path):
            checkpoint_files.remove(checkpoint)
        self.path.mkdir(parents=True, exist_ok=True)
        write_record(self.path / RECORD, self.record | {"versions": run_versions()})

    def last_checkpoint(self, given: str | None = None, *, overwrite: bool = False) -> str | None:
        """The last whole checkpoint, None if there is none.

        Half-written ones are removed and damaged ones are renamed, which is told.

        Args:
            given: a checkpoint to go on from instead.
            overwrite: whether training begins anew where all checkpoints are damaged.

        Raises:
            HarpError: ``given`` is not a whole checkpoint, one in the folder is of another run, or
                all are damaged and ``overwrite`` is off.
        """
        if given is not None:
            if reason := checkpoint_files.fault(Path(given), self.processes):
                raise HarpError(f"{given} is not a whole checkpoint ({reason}): name another")
            self._check_given(Path(given))
            return given
        whole, damaged = self._whole_and_damaged()
        if whole is None and damaged and not overwrite:
            reason = next(iter(damaged.values()))
            raise HarpError(
                f"{reason}, and no whole checkpoint is left: restore it, or give --overwrite to "
                "train anew"
            )
        for path, reason in damaged.items():
            place = checkpoint_files.set_aside(path)
            logger.warning("%s: the checkpoint is passed over and renamed to %s", reason, place)
        if whole is None:
            return None
        logger.info("going on from %s", whole)
        return str(whole)

    def _whole_and_damaged(self) -> tuple[Path | None, dict[Path, str]]:
        """The last whole checkpoint, and what is wrong with those after it."""
        damaged: dict[Path, str] = {}
        found = checkpoint_files.checkpoints(self.path)
        for path in filter(checkpoint_files.is_ours, found):
            reason = checkpoint_files.fault(path, self.processes)
            if reason is None:
                self._check_owner(path)
                return path, damaged
            if checkpoint_files.is_half_written(path):
                logger.warning("%s: it is removed, and training goes on without it", reason)
                checkpoint_files.remove(path)
            else:
                damaged[path] = reason
        return None, damaged

    def keep_newest(self, limit: int | None, best: str | None) -> None:
        """Remove old checkpoints, but neither the last nor the best.

        Args:
            limit: how many are kept; None, 0 or less keeps all.
            best: the best checkpoint.
        """
        found = checkpoint_files.checkpoints(self.path)
        kept = {found[0].name, Path(best).name} if found and best else {p.name for p in found[:1]}
        others = [path for path in found if path.name not in kept]
        for path in others[max(limit - len(kept), 0) :] if limit and limit > 0 else ():
            if checkpoint_files.is_ours(path):
                checkpoint_files.remove(path)

    def describe(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Write the manifest and the model card of a checkpoint.

        Args:
            folder: the checkpoint.
            state: as in `manifest`.
        """
        manifest = self.manifest(**state)
        write_text(folder / CARD, str(model_card(manifest)))
        files = checkpoint_files.synced_hashes(folder)
        if folder == self.partial:
            files = {name: entry for name, entry in files.items() if is_model_file(name)}
        write_record(folder / MANIFEST, manifest | {"files": files})
        (folder / checkpoint_files.UNFINISHED).unlink(missing_ok=True)

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

        Raises:
            HarpError: a file that this run did not write has the name of one of the model's.
        """
        log = json.dumps(_lines(state["log"]), indent=2, sort_keys=True, ensure_ascii=False)
        write_text(self.partial / LOG, log + "\n")
        self.describe(self.partial, state)
        # Without config.json nothing loads the folder; the manifest says that all else is there.
        last = ["config.json", MANIFEST]
        names = sorted(path.name for path in self.partial.iterdir())
        stored = read_record(self.path / RECORD)
        published = stored.get("published", [])
        if strange := [n for n in names if n not in published and (self.path / n).exists()]:
            raise HarpError(
                f"{self.path / strange[0]} was not written by this run, which needs its name: "
                "move it away and run again"
            )
        write_record(self.path / RECORD, stored | {"published": sorted({*published, *names})})
        for name in sorted(names, key=lambda name: (name in last, name)):
            (self.partial / name).replace(self.path / name)
            if name in last:
                sync(self.path)
        self.partial.rmdir()

    def _stored(self) -> dict[str, Any] | None:
        path = self.path / RECORD
        if not path.exists() and not path.is_symlink():
            return None
        try:
            return read_record(path)
        except HarpError as error:
            raise HarpError(
                f"{error}, so that nobody knows whose folder it is: restore it, or choose another "
                "output_dir"
            ) from error

    def _difference(self, stored: Mapping[str, Any]) -> str:
        return difference(_flat(stored), _flat(self.record))

    def _goes_on(self, stored: Mapping[str, Any]) -> bool:
        same = stored.get("versions") == run_versions()
        return not self._difference(stored) and (same or self.keep)

    def _check_versions(self, stored: Mapping[str, Any]) -> None:
        if not self.keep:
            refuse_other_versions(self.path, stored.get("versions", {}), run_versions())

    def _check_owner(self, checkpoint: Path) -> None:
        manifest = read_record(checkpoint / MANIFEST)
        if changes := self._difference({key: manifest.get(key) for key in self.record}):
            raise HarpError(f"{checkpoint} is of another run ({changes}): move it away")

    def _check_given(self, checkpoint: Path) -> None:
        manifest = read_record(checkpoint / MANIFEST)
        if not self.keep:
            then = {**manifest.get("versions", {})}
            then.pop("python", None)
            refuse_other_versions(checkpoint, then, run_versions())
        if changes := self._difference({key: manifest.get(key) for key in self.record}):
            logger.warning("going on from %s, which is of another recipe: %s", checkpoint, changes)

    def _damage(self) -> str | None:
        try:
            return changed_file(self.path, listed_files(self.path))
        except HarpError as error:
            return str(error)
        except OSError as error:
            return f"a file of {self.path} cannot be read ({error.strerror})"


def versions() -> dict[str, str]:
    """Versions of everything that decides what a run computes."""
    return package_versions(
        *("harp_plugin", "python", "accelerate", "numpy", "tevatron"),
        *("tokenizers", "torch", "transformers"),
    )


def run_versions() -> dict[str, str]:
    """The versions that a run goes on with: all but Python's."""
    return {name: release for name, release in versions().items() if name != "python"}


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


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record's entries and those of its recipe and inputs, but for what the run itself notes.

    The names of options are the present ones, so that a run of an earlier release can go on.
    """
    recipe = _NAMES.recorded(record.get("recipe") or {})
    rest = {k: v for k, v in record.items() if k not in ("recipe", "inputs", *_OF_THE_RECORD)}
    inputs = {f"content of {k}": v for k, v in _NAMES.recorded(record.get("inputs") or {}).items()}
    return {**recipe, **rest, **inputs}

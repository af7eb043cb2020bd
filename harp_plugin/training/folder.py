"""The output folder of a training run: which run owns it, and when the model in it is whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..models.folder import MANIFEST, POOLING, is_model_file, listed_files
from ..models.trainable import ModelDescription
from ..work.hashes import changed_file
from ..work.lock import LOCK
from ..work.provenance import MadeFrom, OverwriteRules
from ..work.records import read_record, write_record
from ..work.writing import remove_temporary, sync, write_text
from . import checkpoint_files
from .card import CARD, model_card
from .checkpoint_files import UNFINISHED, UNPUBLISHED
from .manifest import checkpoint_manifest, log_lines, read_made_from, run_versions
from .resuming import check_named_checkpoint, last_whole_checkpoint

__all__ = ["LOG", "RECORD", "RunFolder"]

RECORD = "harp_run.json"
"""File name of the record of what a run is made from."""
LOG = "training_log.json"
"""File name of the log beside a finished model."""


class RunFolder:
    """A folder that one training run owns.

    While a run lasts, the folder holds ``harp_run.json`` and checkpoints; ``harp_manifest.json``
    comes last and says that the model beside it is whole. Each checkpoint has a manifest of its
    own, and a model card.

    Args:
        path: the folder.
        recipe: what the run computes.
        description: what the model card says about the kind of model.
        processes: number of training processes.
        groups_per_epoch: number of pair groups in an epoch.
        data: fingerprint of what the groups are drawn from.
        inputs: fingerprints of the start model and of other files that are read.
        counts: how much the run learns from, by name.
        rules: what may be done with other work in the folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        recipe: Mapping[str, Any],
        description: ModelDescription,
        processes: int,
        groups_per_epoch: int,
        data: str = "",
        inputs: Mapping[str, str] | None = None,
        counts: Mapping[str, int] | None = None,
        rules: OverwriteRules | None = None,
    ) -> None:
        self.path = Path(path)
        self.description = description
        self.rules = rules or OverwriteRules()
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
        return self.path / UNPUBLISHED

    @property
    def made_from(self) -> MadeFrom:
        """What the run is made from."""
        return read_made_from(self.record | {"versions": run_versions()})

    def is_finished(self) -> bool:
        """Tell whether the same run has been finished here, and its model is as it was written.

        Raises:
            HarpError: the model is damaged, or other package versions made it, and the rules do
                not allow to replace it.
        """
        stored = self._read_record()
        if stored is None or not (self.path / MANIFEST).is_file():
            return False
        made_from = read_made_from(stored)
        if self.made_from.difference(made_from):
            return False
        if damage := self._damage():
            if self.rules.overwrite:
                return False
            raise HarpError(
                f"{damage}: restore it, or delete {self.path / MANIFEST} to make the model again "
                "from the last checkpoint"
            )
        return self.made_from.can_use(self.path, made_from, self.rules)

    def check(self) -> None:
        """Check that this run may write here.

        Raises:
            HarpError: the folder holds something else, or a model or checkpoints that were made
                from other settings or by other package versions and may not be replaced; or harp
                did not write a checkpoint in it.
        """
        stored = self._read_record()
        if stored is None:
            self._refuse_strangers()
            return
        checkpoints = checkpoint_files.checkpoints(self.path)
        for path in checkpoints:
            if not checkpoint_files.is_from_training(path):
                raise HarpError(
                    f"{path} has no {MANIFEST}: it is no checkpoint of this run, or has lost it; "
                    "move it away"
                )
        if checkpoints or (self.path / MANIFEST).is_file():
            self.made_from.can_use(self.path, read_made_from(stored), self.rules)

    def claim(self) -> None:
        """Make the folder this run's: remove what another run has left in it."""
        shutil.rmtree(self.partial, ignore_errors=True)
        remove_temporary(self.path)
        stored = self._read_record()
        if stored is not None and self.made_from.agrees_with(read_made_from(stored), self.rules):
            return
        # The record stays until the end: without it, nothing tells who wrote what a kill leaves.
        for name in (MANIFEST, *_published(stored or {})):
            (self.path / name).unlink(missing_ok=True)
            folder = (self.path / name).parent
            if folder != self.path and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        for checkpoint in checkpoint_files.checkpoints(self.path):
            checkpoint_files.remove(checkpoint)
        self.path.mkdir(parents=True, exist_ok=True)
        write_record(self.path / RECORD, self.record | {"versions": run_versions()})

    def last_checkpoint(self, named: str | None = None) -> str | None:
        """Find the checkpoint that the run goes on from, None if there is none.

        Args:
            named: a checkpoint that the user names instead of the last one.

        Raises:
            HarpError: ``named`` is not a whole checkpoint, one in the folder is of another run, or
                all are damaged and may not be replaced.
        """
        processes = self.record["processes"]
        if named is not None:
            check_named_checkpoint(Path(named), self.made_from, processes, self.rules)
            return named
        overwrite = self.rules.overwrite
        last = last_whole_checkpoint(self.path, self.made_from, processes, overwrite=overwrite)
        return None if last is None else str(last)

    def describe(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Write the manifest and the model card of a checkpoint, or of the final model.

        Args:
            folder: the checkpoint, or `partial`.
            state: what `checkpoint_manifest` takes by name.
        """
        manifest = checkpoint_manifest(self.record, self.counts, **state)
        write_text(folder / CARD, str(model_card(manifest, self.description)))
        files = checkpoint_files.synced_hashes(folder)
        if folder == self.partial:
            files = {name: entry for name, entry in files.items() if is_model_file(name)}
        write_record(folder / MANIFEST, manifest | {"files": files})
        (folder / UNFINISHED).unlink(missing_ok=True)

    def publish(self, state: Mapping[str, Any]) -> None:
        """Move the final model from `partial` into place, and commit it with the manifest.

        Args:
            state: what `checkpoint_manifest` takes by name.

        Raises:
            HarpError: a file that this run did not write has the name of one of the model's.
        """
        log = json.dumps(log_lines(state["log"]), indent=2, sort_keys=True, ensure_ascii=False)
        write_text(self.partial / LOG, log + "\n")
        self.describe(self.partial, state)
        names = checkpoint_files.file_names(self.partial)
        self._record_published(names)
        # Without config.json nothing loads the folder; the manifest says that all else is there.
        last = ["config.json", MANIFEST]
        for name in sorted(names, key=lambda name: (name in last, name)):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.partial / name).replace(target)
            if name in last or target.parent != self.path:
                sync(target.parent)
        shutil.rmtree(self.partial)

    def _record_published(self, names: list[str]) -> None:
        """Write into the run's record which files it is about to publish."""
        stored = read_record(self.path / RECORD)
        published = _published(stored)
        for name in names:
            if name not in published and (self.path / name).exists():
                raise HarpError(
                    f"{self.path / name} was not written by this run, which needs its name: move "
                    "it away and run again"
                )
        write_record(self.path / RECORD, stored | {"published": sorted({*published, *names})})

    def _read_record(self) -> dict[str, Any] | None:
        path = self.path / RECORD
        if not path.exists() and not path.is_symlink():
            return None
        try:
            return read_record(path)
        except HarpError as error:
            raise HarpError(
                f"{error}, so that nothing tells which run wrote the folder: restore the file, or "
                f"name another {self.rules.output}"
            ) from error

    def _refuse_strangers(self) -> None:
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        if names - {LOCK, f"{LOCK}.by"}:
            raise HarpError(
                f"{self.path} is not empty, and no training run has written it: name another "
                f"{self.rules.output}"
            )

    def _damage(self) -> str | None:
        try:
            return changed_file(self.path, listed_files(self.path))
        except HarpError as error:
            return str(error)
        except OSError as error:
            return f"a file of {self.path} cannot be read ({error.strerror})"


def _published(record: Mapping[str, Any]) -> list[str]:
    """Read which files a run has published, or was about to; it once named folders with files."""
    names = record.get("published", [])
    return [f"{POOLING}/config.json" if name == POOLING else name for name in names]

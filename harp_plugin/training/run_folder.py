"""The output folder of a training run: its checkpoints, and the model that it publishes."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from ..errors import HarpError, folded
from ..models.loading import POOLING
from ..models.trainable import ModelDescription
from ..work.artifact import MANIFEST, Artifact, OverwriteRules, Provenance, remove_empty
from ..work.records import changed_file, read_record, write_record
from ..work.writing import TEMPORARY, remove_temporary, sync, write_text
from .arguments import HarpTrainingArguments
from .card import CARD, cited, model_card

__all__ = ["LOG", "RunFolder", "cannot_resume", "log_lines", "remove_checkpoints", "remove_weights"]

logger = logging.getLogger(__name__)

LOG = "training_log.json"
"""File name of the log next to a finished model."""
Log = Sequence[Mapping[str, Any]]
_NAME = re.compile(r"checkpoint-(\d+)")
_OF_A_MODEL = (
    rf"({POOLING}/)?config\.json|model\.safetensors|chat_template\.jinja|{re.escape(CARD)}|"
    r"(config_sentence_transformers|modules|sentence_bert_config|tokenizer|tokenizer_config)\.json"
)
_OF_A_STATE = (
    r"(optimizer|scheduler|scaler|rng_state|trainer_state|training_args)[^/]*|manifest\.json|"
    r"(optimizer_|pytorch_model_fsdp_|global_step)\d+/.*"
)
_OWN = rf"(checkpoint-\d+/)?({_OF_A_MODEL})|checkpoint-\d+/({_OF_A_STATE})|{LOG}|runs/.*"
"""What a run writes into its folder."""
_DECIDED_BY_THE_CLOCK = re.compile(r"train_(loss|runtime|\w+_per_second)")


@dataclass
class RunFolder:
    """A folder that one training run owns.

    While a run lasts, the folder holds ``started.json`` and checkpoints, which are those of
    transformers' trainer with a model card and a ``manifest.json`` of their own. A checkpoint is
    written under a temporary name and renamed when it is whole. At the end the model is moved into
    the folder, and ``manifest.json`` comes last.

    Attributes:
        path: the folder.
        provenance: what the run depends on.
        description: what the model card says about the kind of model.
        counts: how much the run learns from, by name.
        rules: what may be done with other work in the folder.
    """

    path: Path
    provenance: Provenance
    description: ModelDescription
    counts: Mapping[str, int]
    rules: OverwriteRules

    def __post_init__(self) -> None:
        self.artifact = Artifact(self.path, "model", self.provenance, self.rules, own=_OWN)

    @property
    def partial(self) -> Path:
        """Where the final model is written before it is published."""
        return self.path / f".final{TEMPORARY}"

    @property
    def staging(self) -> Path:
        """Where a checkpoint is written before it has its name."""
        return self.path / f".staging{TEMPORARY}"

    def start(self) -> None:
        """Begin the run, or resume it: what another run has left is removed.

        Raises:
            HarpError: the folder holds something else, or work that may not be replaced.
        """
        _checkpoints(self.path)
        self.artifact.start()
        remove_temporary(self.path)

    def last_checkpoint(self, named: str | None = None) -> str | None:
        """Return the checkpoint that the run resumes from, None if there is none.

        Args:
            named: a checkpoint that the user names instead of the last one.

        Raises:
            HarpError: the checkpoint is damaged, or the last one is of another run.
        """
        checkpoint = next(iter(_checkpoints(self.path)), None) if named is None else Path(named)
        if checkpoint is None:
            return None
        stored = Provenance.from_record(_whole_record(checkpoint))
        if difference := self.provenance.difference(stored):
            if named is None:
                raise HarpError(f"{checkpoint} is of another run ({difference}): move it away")
            logger.warning("%s was made from other settings: %s", checkpoint, difference)
        logger.info("resuming from %s", checkpoint)
        return str(checkpoint)

    def commit_checkpoint(self, name: str, log: Log, facts: Mapping[str, Any]) -> None:
        """Describe a checkpoint in `staging`, and move it to its path.

        Args:
            name: of the checkpoint.
            log: the trainer's log.
            facts: what the manifest says of the model (see `HarpTrainer.facts`).
        """
        checkpoint, written = self.path / name, self.staging / name
        facts = self._describe(written, log, facts)
        Artifact(written, "checkpoint", self.provenance).commit(_synced_names(written), **facts)
        Artifact(checkpoint, "checkpoint", self.provenance).clear()
        written.rename(checkpoint)
        self.staging.rmdir()
        sync(self.path)

    def remove_old(self, limit: int | None, best: str | None) -> None:
        """Remove old checkpoints, but neither the last nor the best, nor one with other files.

        Args:
            limit: how many are kept; None, 0 or less keeps all.
            best: the best checkpoint.
        """
        if not limit or limit <= 0:
            return
        paths = _checkpoints(self.path)
        kept = {path.name for path in paths[:1]} | ({Path(best).name} if best else set())
        others = [path for path in paths if path.name not in kept]
        for path in others[max(limit - (len(paths) - len(others)), 0) :]:
            with suppress(HarpError):
                Artifact(path, "checkpoint", self.provenance).clear()

    def publish(self, log: Log, facts: Mapping[str, Any]) -> None:
        """Move the final model from `partial` into the folder, and commit it with the manifest.

        Args:
            log: the trainer's log.
            facts: what the manifest says of the model, with ``best_step``, the step whose weights
                it has; None for the last step.
        """
        text = json.dumps(log_lines(log), indent=2, sort_keys=True, ensure_ascii=False)
        write_text(self.partial / LOG, text + "\n")
        facts = self._describe(self.partial, log, facts)
        names = _synced_names(self.partial)
        # Without config.json nothing loads the folder.
        for name in sorted(names, key=lambda name: (name == "config.json", name)):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.partial / name).replace(target)
        sync(self.path)
        self.artifact.commit(names, **facts)
        shutil.rmtree(self.partial)

    def _describe(self, folder: Path, log: Log, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write the model card, and return what the manifest says besides the provenance."""
        settings, best_step = self.provenance.settings, facts.get("best_step")
        described = {
            **facts,
            "best_step": best_step,
            "seed": settings.get("seed", HarpTrainingArguments.seed),
            "counts": dict(self.counts),
            "metrics": _metrics_at(best_step, log_lines(log)),
            "citations": cited(settings),
        }
        card = model_card(self.provenance, described, self.description)
        write_text(folder / CARD, str(card))
        return described


def cannot_resume(checkpoint: Path, reason: object) -> HarpError:
    """Return the error for a damaged checkpoint, which names the one before it."""
    step = _step_of(checkpoint)
    earlier = [path for path in _checkpoints(checkpoint.parent) if _step_of(path) < step]
    rest = f"resume from {earlier[0]}" if earlier else "train from the start"
    return HarpError(
        f"cannot resume from {checkpoint}: {folded(reason)}; restore it, or remove it to {rest}"
    )


def log_lines(log: Log) -> list[dict[str, Any]]:
    """Select the log's lines of training and evaluation, without what the clock decides."""
    lines = [
        {name: line[name] for name in sorted(line) if not _DECIDED_BY_THE_CLOCK.fullmatch(name)}
        for line in log
    ]
    return [line for line in lines if line.keys() - {"epoch", "step", "total_flos"}]


def remove_weights(folder: Path) -> None:
    """Remove the model and the checkpoints of a finished run; its log, manifest and card stay.

    Args:
        folder: the folder of the run.
    """
    if not (folder / MANIFEST).is_file():
        return
    remove_checkpoints(folder)
    record = read_record(folder / MANIFEST)
    kept = {name: entry for name, entry in record["files"].items() if name in (LOG, CARD)}
    for name in sorted(record["files"].keys() - kept):
        (folder / name).unlink(missing_ok=True)
    write_record(folder / MANIFEST, record | {"files": kept})


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a run, whose model is published, from its folder."""
    for checkpoint in _checkpoints(folder):
        stored = Provenance.from_record(read_record(checkpoint / MANIFEST))
        Artifact(checkpoint, "checkpoint", stored).clear()


def _checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints of a run, the last step first.

    Raises:
        HarpError: a folder has the name of one, and harp did not write it.
    """
    paths = [path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)]
    for path in paths:
        remove_empty(path)  # by a kill while it was removed
    paths = [path for path in paths if path.exists()]
    for path in paths:
        if not (path / MANIFEST).is_file():
            raise HarpError(
                f"{path} has no {MANIFEST}: it is not a checkpoint of this run, or has lost it; "
                "move it away"
            )
    return sorted(paths, key=_step_of, reverse=True)


def _step_of(checkpoint: Path) -> int:
    name = _NAME.fullmatch(checkpoint.name)
    return int(name[1]) if name else -1


def _whole_record(checkpoint: Path) -> dict[str, Any]:
    """Read the record of a checkpoint.

    Raises:
        HarpError: it is damaged, or a file is missing or has another size.
    """
    try:
        record = read_record(checkpoint / MANIFEST)
        if damage := changed_file(checkpoint, record["files"], whole=False):
            raise HarpError(damage)
        TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    except (HarpError, OSError, ValueError, TypeError) as error:
        raise cannot_resume(checkpoint, error) from error
    return record


def _synced_names(folder: Path) -> list[str]:
    """List the files of a folder by their paths in it, once they are on the disk."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in (*files, folder):
        sync(path)
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _metrics_at(step: int | None, lines: Log) -> dict[str, Any]:
    """Collect all that was measured at a step; None means the last step in the log."""
    step = lines[-1].get("step") if step is None and lines else step
    metrics: dict[str, Any] = {}
    for line in lines:
        metrics |= line if line.get("step") == step else {}
    return metrics

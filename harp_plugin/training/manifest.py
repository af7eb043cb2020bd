"""Write the manifest of a checkpoint, and read what a run was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..work.provenance import MadeFrom
from ..work.versions import package_versions
from .arguments import HarpTrainingArguments
from .card import cited

__all__ = [
    "checkpoint_manifest",
    "log_lines",
    "read_made_from",
    "run_versions",
    "training_versions",
]

_PACKAGES = ("accelerate", "numpy", "tevatron", "tokenizers", "torch", "transformers")
_DECIDED_BY_THE_CLOCK = frozenset(
    {
        *("train_runtime", "train_samples_per_second", "train_steps_per_second", "train_loss"),
        "train_tokens_per_second",
    }
)


def training_versions() -> dict[str, str]:
    """Look up the versions of everything that decides what a run computes."""
    return package_versions("harp_plugin", "python", *_PACKAGES)


def run_versions() -> dict[str, str]:
    """Look up the versions that an unfinished run must agree with: all but Python's."""
    return package_versions("harp_plugin", *_PACKAGES)


def read_made_from(record: Mapping[str, Any]) -> MadeFrom:
    """Read from the record of a run, or from the manifest of a checkpoint, what it was made from.

    An option that is None counts as absent.
    """
    recipe = record.get("recipe") or {}
    settings = {name: value for name, value in recipe.items() if value is not None}
    others = ("processes", "groups_per_epoch", "data")
    settings |= {name: record[name] for name in others if name in record}
    versions = dict(record.get("versions") or {})
    versions.pop("python", None)
    return MadeFrom(settings, versions, record.get("inputs") or {})


def checkpoint_manifest(
    record: Mapping[str, Any],
    counts: Mapping[str, int],
    *,
    log: Sequence[Mapping[str, Any]],
    steps: int,
    fresh_weights: Sequence[str],
    untrained_weights: Sequence[str],
    best_step: int | None = None,
) -> dict[str, Any]:
    """Return the manifest of a checkpoint, without the list of its files.

    Args:
        record: the record of the run, without versions.
        counts: how much the run learns from, by name.
        log: the trainer's log.
        steps: optimizer steps taken.
        fresh_weights: names of the weights that were drawn at random when the run began.
        untrained_weights: those of them that no loss trained; the model lacks them.
        best_step: the step whose weights the model has; None for the last step.
    """
    return {
        "stage": "train",
        **record,
        "steps": steps,
        "best_step": best_step,
        "seed": record["recipe"].get("seed", HarpTrainingArguments.seed),
        "counts": dict(counts),
        "fresh_weights": list(fresh_weights),
        "untrained_weights": list(untrained_weights),
        "metrics": _metrics_at(best_step, log_lines(log)),
        "citations": cited(record["recipe"]),
        "versions": training_versions(),
    }


def log_lines(log: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Select the log's lines of training and evaluation, without what the clock decides."""
    lines = [
        {name: line[name] for name in sorted(line.keys() - _DECIDED_BY_THE_CLOCK)} for line in log
    ]
    return [line for line in lines if line.keys() - {"epoch", "step", "total_flos"}]


def _metrics_at(step: int | None, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Collect all that was measured at a step; None means the last step in the log."""
    step = lines[-1].get("step") if step is None and lines else step
    metrics: dict[str, Any] = {}
    for line in lines:
        metrics |= line if line.get("step") == step else {}
    return metrics

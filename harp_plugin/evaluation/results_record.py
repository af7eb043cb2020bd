"""The record ``results.json``: its settings, options and versions, and what may replace it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..collections.dataset import JudgedDataset
from ..errors import HarpError
from ..work.output_paths import refuse_special
from ..work.provenance import MadeFrom
from ..work.records import NOT_WRITTEN_BY_HARP, read_own_record
from ..work.versions import package_versions
from .first_stage import FirstStage
from .options import ExperimentOptions

__all__ = ["check_results", "results_settings", "versions", "written_options"]

_PACKAGES = [
    *("harp-plugin", "ir-datasets", "ir-measures", "numpy", "pyterrier", "pyterrier-pisa", "scipy"),
    *("tokenizers", "torch", "transformers"),
]


def results_settings(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: Mapping[str, Any],
) -> dict[str, Any]:
    """Collect what the results of an experiment are made from, apart from versions."""
    first, *others = (stage.settings for stage in stages.values())
    made_from = {**options.settings, "first_stage_content": first, "models": dict(models)}
    if others:
        made_from["first_stages_content"] = others
    return {**collection.identity, **made_from}


def check_results(path: Path, made_from: dict[str, Any], options: ExperimentOptions) -> None:
    """Check, before anything is computed, that the results may be written.

    Raises:
        HarpError: the file was made from other settings, or was not written by harp.
    """
    rules = options.rules
    refuse_special(path, rules.output)
    if path.exists():
        record = read_own_record(path, rules.output)
        settings, packages = record.get("made_from"), record.get("versions")
        if not isinstance(settings, dict) or not isinstance(packages, dict):
            raise HarpError(f"{path} {NOT_WRITTEN_BY_HARP}: name another {rules.output}")
        MadeFrom(made_from, versions()).can_use(path, MadeFrom(settings, packages), rules)


def written_options(options: ExperimentOptions) -> dict[str, Any]:
    """The options that a record shows: all but those that only say what may be replaced."""
    values = asdict(options)
    return {name: values[name] for name in values.keys() - {"overwrite", "keep"}}


def versions() -> dict[str, str]:
    """Look up the versions of everything that decides what an experiment computes."""
    return package_versions("python", *_PACKAGES)

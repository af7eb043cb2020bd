"""The recipe of a training run: all options that decide what the run computes."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields
from enum import Enum
from typing import Any

from .arguments import HarpModelArguments, HarpTrainingArguments, PairOptions

__all__ = ["OPTIONS_WITHOUT_EFFECT", "recipe"]

OPTIONS_WITHOUT_EFFECT = (
    "accelerator_config",
    "accept_other_versions",
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
"""How the names begin of options that say where and how a run is written, watched and fed."""


def recipe(
    model_args: HarpModelArguments,
    data_args: PairOptions,
    training_args: HarpTrainingArguments,
) -> dict[str, Any]:
    """Collect the options that decide what a run computes.

    These are all options of model and data, and the training options that differ from their
    defaults. With an ``output_dir`` they can be read as a recipe.
    """
    changed = {}
    for option in fields(training_args):
        value = getattr(training_args, option.name)
        value = value.value if isinstance(value, Enum) else value
        default = option.default if option.default_factory is MISSING else option.default_factory()
        if not option.init or option.name.startswith(OPTIONS_WITHOUT_EFFECT):
            continue
        if value != default and (value or default):
            changed[option.name] = value
    options = {**asdict(model_args), **asdict(data_args), **changed}
    return json.loads(json.dumps(options, default=str))

"""The recipe of a training run: all options that decide what the run computes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..models.loading import COSINE, model_fingerprint, resolve_model
from ..work.provenance import Provenance, package_versions
from ..work.records import file_hash
from .arguments import HarpModelArguments, HarpTrainingArguments, PairOptions
from .data import PairGroups

__all__ = ["OPTIONS_WITHOUT_EFFECT", "check_output_dir", "fingerprints", "provenance", "recipe"]

OPTIONS_WITHOUT_EFFECT = (
    *("output_dir", "overwrite", "accept_other_versions", "resume_from_checkpoint", "save_"),
    *("quiet", "disable_tqdm", "log_", "logging_", "report_to", "run_name", "project", "trackio_"),
    *("hub_", "push_to_hub", "skip_memory_metrics", "local_rank", "ddp_timeout"),
    *("accelerator_config", "enable_jit_checkpoint"),
    *("dataloader_multiprocessing_context", "dataloader_num_workers", "dataloader_pin_memory"),
    *("dataloader_persistent_workers", "dataloader_prefetch_factor"),
)
"""How the names begin of options that say where and how a run is written, watched and fed."""

_PACKAGES = ("accelerate", "numpy", "tevatron", "tokenizers", "torch", "transformers")


def provenance(
    model_args: HarpModelArguments,
    data_args: PairOptions,
    training_args: HarpTrainingArguments,
    groups: PairGroups,
    held_out: PairGroups | None,
) -> Provenance:
    """Collect all that a run depends on: recipe, processes, pair groups, files and versions.

    Args:
        model_args: options of the model.
        data_args: options of the data and the losses.
        training_args: options of the training.
        groups: pair groups to train on.
        held_out: pair groups to evaluate on.

    Raises:
        HarpError: a model or a file is missing.
    """
    settings = recipe(model_args, data_args, training_args) | {
        "processes": training_args.world_size,
        "groups_per_epoch": len(groups),
        "data": getattr(groups, "fingerprint", ""),
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    inputs = fingerprints(model_args, data_args, training_args)
    if held_out is not None:
        inputs["held_out"] = getattr(held_out, "fingerprint", "")
    return Provenance(settings, package_versions("harp_plugin", *_PACKAGES), inputs)


def recipe(
    model_args: HarpModelArguments, data_args: PairOptions, training_args: HarpTrainingArguments
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


_MODELS = ("model", "tokenizer_name", "teacher")
_FOLDERS = ("build_dir", "validation_build_dir")
_FILES = ("negatives_run", "teacher_run", "train_file", "query_ids", "stop_words")
_FILES_OF_VALIDATION = ("validation_run", "validation_query_ids")


def check_output_dir(output_dir: str, *options: Any) -> None:
    """Check that a run does not write where it reads.

    Args:
        output_dir: the folder that it writes.
        options: the dataclasses of its options.

    Raises:
        HarpError: an input is ``output_dir``, is in it, or is a folder that contains it.
    """
    output = Path(output_dir).resolve()
    for name, path in _inputs(options):
        source = Path(path).expanduser().resolve()
        if not source.exists():
            continue
        if output == source or output in source.parents or source in output.parents:
            raise HarpError(
                f"output_dir {output_dir} and {name} {path} overlap: choose an output_dir apart "
                "from what is read"
            )


def fingerprints(*options: Any) -> dict[str, str]:
    """Return fingerprints of the model that training starts from and of the named files.

    The data that the model trains on have a fingerprint of their own.

    Args:
        options: the dataclasses of the options.

    Returns:
        Texts that change with the content, by the names of the options.

    Raises:
        HarpError: a model or a file is missing.
    """
    values = {}
    for name, value in _values(options, (*_MODELS, *_FILES_OF_VALIDATION, "query_ids")):
        try:
            is_model = name in _MODELS
            values[name] = model_fingerprint(value) if is_model else file_hash(Path(value))
        except OSError as error:
            raise HarpError(f"cannot read {name} {value}: {error.strerror}") from error
    return values


def _inputs(options: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Yield the names of options and the paths of what they name."""
    yield from _values(options, (*_FOLDERS, *_FILES, *_FILES_OF_VALIDATION))
    for name, value in _values(options, _MODELS):
        yield name, resolve_model(value)


def _values(options: tuple[Any, ...], names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the values of the options with these names, one by one if there are several."""
    for arguments in options:
        for name in names:
            value = getattr(arguments, name, None) or []
            for text in [value] if isinstance(value, str) else value:
                yield name, text.removeprefix(COSINE)

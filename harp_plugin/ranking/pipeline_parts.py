"""The parts that a saved pipeline may have: how each is written as JSON and made again."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import pyterrier as pt

from ..errors import HarpError
from ..registry import Registry

__all__ = ["PIPELINE_PARTS", "PipelinePart", "decoded", "encoded"]

_KIND, _PATH, _DATASET, _STEPS = "$kind", "$path", "$dataset", "$steps"
_MAPPING = "$mapping"
"""Key of the pairs of a mapping, whose order counts: JSON files of harp sort their keys."""
_COLLECTION = "harp:"
_OF_MACHINES = ("device", "batch_tokens", "verbose", "quiet")
"""Arguments that change no result, but for rounding; they are not saved."""


@dataclass(frozen=True)
class PipelinePart:
    """A kind of transformer that can be saved: its arguments are written, each an attribute.

    Another package adds a kind by an entry point of the group ``harp_plugin.pipeline_parts``.

    Attributes:
        target: the class, as ``module:Class``. Each argument of its constructor must be an
            attribute that is a text, a number, true or false, None, a dataset with an id, a saved
            kind, or a list or a mapping of these.
        models: names of arguments that name models; their files are compared when they are loaded.
        paths: names of other arguments that are paths.
        datasets: names of arguments that are datasets.
    """

    target: str
    models: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    @property
    def type(self) -> type:
        """The class itself."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


PIPELINE_PARTS: Registry[PipelinePart] = Registry(
    "harp_plugin.pipeline_parts",
    "part of a pipeline",
    {
        "reranker": PipelinePart(
            "harp_plugin.ranking.transformer:HarpReranker", ("model",), datasets=("dataset",)
        ),
        "ensemble": PipelinePart("harp_plugin.ranking.combined:HarpEnsemble"),
        "fusion": PipelinePart("harp_plugin.ranking.fusion:HarpFusion"),
        "stage-before": PipelinePart("harp_plugin.ranking.fusion:StageBefore"),
        "cutoff": PipelinePart("pyterrier._ops:RankCutoff"),
        "bm25": PipelinePart(
            "harp_plugin.ranking.bm25:Bm25", paths=("folder",), datasets=("collection",)
        ),
        "fielded-bm25": PipelinePart("harp_plugin.ranking.fielded:FieldedBm25"),
        "fielded-index": PipelinePart(
            "harp_plugin.ranking.fielded:FieldedIndex", paths=("folder",), datasets=("dataset",)
        ),
        "dense": PipelinePart(
            "harp_plugin.ranking.dense:HarpRetriever", ("model",), paths=("index",)
        ),
        "cosine": PipelinePart(
            "harp_plugin.ranking.dense:DenseCosine", ("model",), ("index_dir",), ("dataset",)
        ),
    },
)
"""The kinds of parts by the names that they have in a saved pipeline."""


def encoded(value: Any, folder: Path, models: dict[str, str]) -> Any:
    """Write a transformer, or an argument of one, as JSON types.

    Args:
        value: the transformer or argument.
        folder: what paths are relative to.
        models: is filled with the names of models as they are written.

    Raises:
        HarpError: the value cannot be saved; the message names it.
    """
    if isinstance(value, pt.Compose):
        return {_STEPS: [encoded(stage, folder, models) for stage in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encoded(entry, folder, models) for entry in value]
    if isinstance(value, Mapping):
        if bad := [name for name in value if not isinstance(name, str)]:
            raise HarpError(f"{bad[0]!r:.60} cannot be saved as a name: name it by a text")
        return {_MAPPING: [[name, encoded(v, folder, models)] for name, v in value.items()]}
    for kind, part in PIPELINE_PARTS.items():
        if _is_of(value, part):
            arguments = _arguments(value, part, folder, models)
            return {_KIND: kind, **arguments}
    raise HarpError(
        f"{value!r:.60} cannot be saved in a pipeline: known parts are "
        f"{', '.join(sorted(PIPELINE_PARTS))}; a package adds its own by an entry point"
    )


def decoded(value: Any, folder: Path, made: dict[str, Any]) -> Any:
    """Make what `encoded` has written; equal parts become one object.

    Args:
        value: of JSON types.
        folder: what paths are relative to.
        made: is filled with the parts.

    Raises:
        HarpError: a part is unknown or cannot be made, or there is nothing at a path.
    """
    if isinstance(value, list):
        return [decoded(entry, folder, made) for entry in value]
    if not isinstance(value, dict):
        return value
    if _PATH in value:
        return str(_existing(folder, value[_PATH]))
    if _MAPPING in value:
        return {name: decoded(entry, folder, made) for name, entry in value[_MAPPING]}
    if _DATASET in value:
        return _decoded_dataset(value[_DATASET], folder)
    key = json.dumps(value)
    if key not in made:
        made[key] = _made(value, folder, made)
    return made[key]


def _is_of(value: Any, part: PipelinePart) -> bool:
    """Tell whether a value is of a class, without importing the class."""
    module, _, name = part.target.partition(":")
    own = type(value)
    return own.__name__ == name and f"{own.__module__}.".startswith(f"{module}.")


def _arguments(
    value: Any, part: PipelinePart, folder: Path, models: dict[str, str]
) -> dict[str, Any]:
    """The arguments that make an equal object, but for defaults and those of the machine."""
    written: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(value)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        argument = getattr(value, name)
        if name in _OF_MACHINES or argument is None or argument is parameter.default:
            continue
        if name in part.datasets:
            written[name] = {_DATASET: _encoded_dataset(argument, folder)}
        elif name in part.paths:
            if not Path(argument).exists():
                raise HarpError(f"there is no {argument} yet: search once before you save")
            written[name] = {_PATH: _relative(argument, folder)}
        elif name in part.models:
            is_path = Path(argument).is_dir()
            written[name] = {_PATH: _relative(argument, folder)} if is_path else str(argument)
            models[_relative(argument, folder) if is_path else str(argument)] = os.fspath(argument)
        else:
            written[name] = encoded(argument, folder, models)
    return written


def _made(value: dict[str, Any], folder: Path, made: dict[str, Any]) -> Any:
    if _STEPS in value:
        return pt.Compose(*(decoded(step, folder, made) for step in value[_STEPS]))
    arguments = {name: decoded(v, folder, made) for name, v in value.items() if name != _KIND}
    try:
        return PIPELINE_PARTS[value.get(_KIND, "")].type(**arguments)
    except TypeError as error:
        raise HarpError(
            f"part {value.get(_KIND)!r} of the pipeline cannot be made ({error}): save it anew"
        ) from error


def _relative(path: str | PathLike[str], folder: Path) -> str:
    return Path(os.path.relpath(Path(path).resolve(), folder.resolve())).as_posix()


def _existing(folder: Path, relative: str) -> Path:
    path = Path(os.path.normpath(folder / relative))
    if not path.exists():
        raise HarpError(
            f"the pipeline in {folder} needs {path}, which is not there: put it where it was, "
            "or save the pipeline anew"
        )
    return path


def _encoded_dataset(dataset: Any, folder: Path) -> str:
    if hasattr(dataset, "irds_ref"):
        dataset = dataset.irds_ref()
    name = dataset.dataset_id() if hasattr(dataset, "dataset_id") else dataset
    name = getattr(name, "name", name)
    if not isinstance(name, str):
        raise HarpError(f"dataset {dataset!r:.60} has no id: name one of ir_datasets to save it")
    name = name.removeprefix("irds:")
    if not name.startswith(_COLLECTION):
        return name
    return _COLLECTION + _relative(name.removeprefix(_COLLECTION), folder)


def _decoded_dataset(name: str, folder: Path) -> str:
    if not name.startswith(_COLLECTION):
        return name
    return _COLLECTION + os.path.normpath(folder.resolve() / name.removeprefix(_COLLECTION))

"""Whole search pipelines that are saved as JSON and loaded again."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import pyterrier as pt
from pyterrier._ops import FeatureUnion

from ..collections.dataset import Dataset
from ..collections.datasets import DOCUMENTS, PREFIX, SPLITS
from ..errors import HarpError, folded
from ..models.loading import PIPELINE, model_fingerprint
from ..registry import Registry
from ..work.artifact import MANIFEST, Artifact
from ..work.provenance import Provenance, package_versions, scoring_versions
from ..work.records import read_own_record, read_record, write_record
from ..work.urls import is_url, local_path
from .base import ComparedTransformer
from .learned import LearnedRanker

__all__ = ["PIPELINE_PARTS", "HarpPipeline"]

_FORMAT = 1
_ARTIFACT = "pipeline", "harp"
"""Type and format, as PyTerrier names its artifacts."""
_KIND, _PATH, _DATASET, _FIELDS = "$kind", "$path", "$dataset", "$fields"
_OPERATORS = {"$steps": pt.Compose, "$features": FeatureUnion}
"""Keys of transformers that are joined by ``>>`` and by ``**``."""
_MAPPING = "$mapping"
"""Key of the pairs of a mapping, whose order counts: JSON files of harp sort their keys."""
_OF_MACHINES = ("device", "batch_tokens", "batch_size", "verbose", "quiet")
"""Arguments that change no result, but for rounding; they are not saved."""
_DATASETS = ("dataset", "collection")
_INDEX_PATHS = ("folder", "index_dir")
_PATHS = ("index", *_INDEX_PATHS)

logger = logging.getLogger(__name__)

PIPELINE_PARTS: Registry[type | str] = Registry(
    "harp_plugin.pipeline_parts",
    "part of a pipeline",
    {
        "reranker": "harp_plugin.ranking.transformer:HarpReranker",
        "ensemble": "harp_plugin.ranking.combined:HarpEnsemble",
        "features": "harp_plugin.ranking.combined:HarpFeatures",
        "fusion": "harp_plugin.ranking.fusion:HarpFusion",
        "stage-before": "harp_plugin.ranking.fusion:StageBefore",
        "cutoff": "pyterrier._ops:RankCutoff",
        "bm25": "harp_plugin.ranking.bm25:Bm25",
        "fielded-bm25": "harp_plugin.ranking.fielded.bm25:FieldedBm25",
        "fielded-index": "harp_plugin.ranking.fielded.index:FieldedIndex",
        "lexical-features": "harp_plugin.ranking.fielded.features:LexicalFeatures",
        "learned-ranker": "harp_plugin.ranking.learned:LearnedRanker",
        "dense": "harp_plugin.ranking.dense.retriever:HarpRetriever",
        "cosine": "harp_plugin.ranking.dense.transformer:DenseCosine",
        "word-similarity": "harp_plugin.ranking.dense.word_similarity:WordSimilarity",
    },
)
"""The classes of parts, or the ``module:Class`` where they are defined, by the names that they have
in a saved pipeline.

Each argument of a constructor must be an attribute that is a text, a number, true or false, None, a
saved kind, or a list or a mapping of these. ``model`` names a model, whose files are compared when
it is loaded; ``dataset`` and ``collection`` name a dataset with an id; ``folder``, ``index`` and
``index_dir`` are paths. Another package adds a class by an entry point of the group
``harp_plugin.pipeline_parts``.
"""


class HarpPipeline(ComparedTransformer, pt.Artifact):
    """A pipeline that can be saved: first stages, rerankers, encoders and a fusion of them.

    ``HarpPipeline(bm25 >> HarpFusion.of_scores({"model": harp})).save("folder")`` writes one JSON
    file; ``HarpPipeline.load("folder").search("a query")`` runs the same pipeline. Models and
    indexes stay where they are: the file names them by paths relative to the folder, so that all
    can be moved together.

    It is an artifact of PyTerrier: where models, indexes and collections lie in the folder,
    ``pipeline.to_hf("user/name")`` shares all that the pipeline needs, and
    ``pt.Artifact.from_hf("user/name")`` loads it.

    Args:
        pipeline: a transformer, or several joined by ``>>``, ``**`` and ``%``.

    Attributes:
        path: the folder where it was saved or loaded; ``pt.Artifact.NO_PATH`` before.

    Raises:
        HarpError: this is not a transformer.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT = _ARTIFACT

    def __init__(self, pipeline: pt.Transformer) -> None:
        if not isinstance(pipeline, pt.Transformer):
            raise HarpError(f"{pipeline!r:.60} is not a pipeline: name a transformer of PyTerrier")
        super().__init__(pt.Artifact.NO_PATH)
        self.pipeline = pipeline

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Run the pipeline."""
        return self.pipeline.transform(inp)

    def fit(self, *judged: pd.DataFrame) -> HarpPipeline:
        """Teach the pipeline's last step, as PyTerrier's pipelines do: by topics and qrels."""
        self.pipeline.fit(*judged)  # type: ignore[attr-defined]
        return self

    @property
    def importances(self) -> pd.Series | None:
        """Those of the `LearnedRanker` that the pipeline ends with; None where there is none."""
        last = self.pipeline[-1] if isinstance(self.pipeline, pt.Compose) else self.pipeline
        return last.importances if isinstance(last, LearnedRanker) else None

    def transform_inputs(self) -> list[list[str]]:
        """The columns that the pipeline needs, as PyTerrier's inspection takes them."""
        return pt.inspect.transformer_inputs(self.pipeline) or []

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the pipeline into a folder, such as that of its checkpoint.

        Args:
            folder: is made if it is missing; a pipeline in it that harp wrote is replaced.

        Returns:
            The file.

        Raises:
            HarpError: a part cannot be saved, or the folder holds another's file of that name.
        """
        path = Path(folder) / PIPELINE
        if path.exists():
            read_own_record(path, "folder")
        models: dict[str, str] = {}
        record = {
            "format": _FORMAT,
            "pipeline": _encoded(self.pipeline, path.parent, models),
            "models": {written: model_fingerprint(name) for written, name in models.items()},
            "versions": _versions(),
        }
        write_record(path, record)
        self.path = path.parent
        return path

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> HarpPipeline:  # type: ignore[override]
        """Load a pipeline that `save` wrote. Other versions of packages are named in the log.

        Args:
            folder: where the file lies; a path or a URL.

        Raises:
            HarpError: there is none, it is damaged or of a later release, a model or an index is
                missing, or the files of a model are not those that the pipeline was saved with.
        """
        path = Path(local_path(str(folder))) / PIPELINE
        if not path.is_file():
            raise HarpError(
                f"no pipeline in {folder}: name a folder that `harp adapt` wrote, or "
                "HarpPipeline.save"
            )
        record = read_record(path)
        if record.get("format") != _FORMAT:
            raise HarpError(
                f"{path} has format {record.get('format')!r:.20}, and this release reads "
                f"{_FORMAT}: install the release that wrote it, or save the pipeline again"
            )
        try:
            pipeline = _decoded(record["pipeline"], path.parent, {})
            _check_models(path, record["models"])
            versions = Provenance({}, record["versions"])
            changed = Provenance({}, _versions()).version_difference(versions)
        except HarpError:
            raise
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise HarpError(
                f"{path} is damaged ({type(error).__name__}): save the pipeline again"
            ) from error
        if changed:
            logger.warning("%s was saved with other packages (%s)", path, changed)
        loaded = cls(pipeline)
        loaded.path = path.parent
        return loaded

    def build_package(self, *arguments: Any, **options: Any) -> str:
        """Write all that the pipeline needs into one file, as PyTerrier's artifacts do.

        Args:
            arguments: of ``pt.Artifact.build_package``; the file's path is the first.
            options: of the same.

        Returns:
            The path of the file.

        Raises:
            HarpError: the pipeline was not saved yet, lacks an index, or needs a file outside its
                folder.
        """
        if self.path is pt.Artifact.NO_PATH:
            raise HarpError("this pipeline is in no folder yet: save it before you share it")
        return super().build_package(*arguments, **options)

    def _package_files(self) -> Iterator[tuple[str, Any]]:
        folder = Path(str(self.path)).resolve()
        yield PIPELINE, str(folder / PIPELINE)
        record = read_record(folder / PIPELINE)["pipeline"]
        parts: dict[str, Any] = {}
        _decoded(record, folder, parts)
        needed = {_existing(folder, path) for path in _paths_in(record, folder, parts)}
        files = {file for path in needed for file in (path, *path.rglob("*")) if file.is_file()}
        for file in sorted(files):
            of_others = file.parent not in needed and (file.parent / MANIFEST).is_file()
            if of_others or file.suffix == ".lock" or file.name == PIPELINE:
                continue
            if not file.is_relative_to(folder):
                raise HarpError(
                    f"the pipeline needs {file}, which is not in {folder}: make it there, and save "
                    "the pipeline again"
                )
            yield file.relative_to(folder).as_posix(), str(file)
        yield "pt_meta.json", io.BytesIO(json.dumps(self._build_metadata()).encode())

    def _comparison_key(self) -> pt.Transformer:
        return self.pipeline


def artifact_metadata(folder: str, names: Sequence[str]) -> dict[str, str] | None:
    """Tell PyTerrier that a folder has a saved pipeline.

    Args:
        folder: the folder.
        names: of its files.

    Returns:
        Type and format of the artifact; None where there is no pipeline.
    """
    return dict(zip(("type", "format"), _ARTIFACT, strict=True)) if PIPELINE in names else None


def _versions() -> dict[str, str]:
    return scoring_versions() | package_versions("pyterrier", "numpy")


def _check_models(path: Path, models: dict[str, Any]) -> None:
    for name, fingerprint in models.items():
        folder = path.parent / name
        model = str(folder) if folder.is_dir() else name
        if model_fingerprint(model) != fingerprint:
            raise HarpError(
                f"model {name} is not the one that {path} was saved with: put its files back, or "
                "save the pipeline again"
            )


def _encoded(value: Any, folder: Path, models: dict[str, str]) -> Any:
    """Write a transformer, or an argument of one, as JSON types.

    Args:
        value: the transformer or argument.
        folder: what paths are relative to.
        models: is filled with the names of models as they are written.

    Raises:
        HarpError: the value cannot be saved; the message names it.
    """
    for key, operator in _OPERATORS.items():
        if isinstance(value, operator):
            return {key: [_encoded(part, folder, models) for part in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encoded(entry, folder, models) for entry in value]
    if isinstance(value, Mapping):
        return {_MAPPING: [_encoded(pair, folder, models) for pair in value.items()]}
    own = type(value), f"{type(value).__module__}:{type(value).__name__}"
    for kind, part in PIPELINE_PARTS.items():
        if part in own:
            return {_KIND: kind, **_arguments(value, folder, models)}
    raise HarpError(
        f"{type(value).__name__} cannot be saved in a pipeline: known parts are "
        f"{', '.join(sorted(PIPELINE_PARTS))}, joined by >>, ** and %; write a sum as HarpFusion; "
        "a package adds its own by an entry point"
    )


def _decoded(value: Any, folder: Path, made: dict[str, Any]) -> Any:
    """Make what `_encoded` has written; equal parts become one object.

    Args:
        value: of JSON types.
        folder: what paths are relative to.
        made: is filled with the parts.

    Raises:
        HarpError: a part is unknown or cannot be made, or there is nothing at a path.
    """
    if isinstance(value, list):
        return [_decoded(entry, folder, made) for entry in value]
    if not isinstance(value, dict):
        return value
    if _PATH in value:
        return str(_existing(folder, value[_PATH]))
    if _MAPPING in value:
        return {name: _decoded(entry, folder, made) for name, entry in value[_MAPPING]}
    if _DATASET in value:
        name, fields = _decoded_dataset(value[_DATASET], folder), value.get(_FIELDS)
        return Dataset(name, fields) if fields else name
    key = json.dumps(value)
    if key not in made:
        made[key] = _made(value, folder, made)
    return made[key]


def _arguments(value: Any, folder: Path, models: dict[str, str]) -> dict[str, Any]:
    """Return the arguments that make an equal object, but for defaults and those of the machine."""
    written: dict[str, Any] = {}
    for attribute in pt.inspect.transformer_attributes(value, strict=False):
        name, argument = attribute.name, attribute.value
        unsaid = None, attribute.init_default_value, attribute.MISSING
        if name in _OF_MACHINES or any(argument is each for each in unsaid):
            continue
        is_path = isinstance(argument, str | PathLike) and Path(argument).exists()
        if name in _DATASETS:
            written[name] = {_DATASET: _encoded_dataset(argument, folder)}
            if fields := getattr(argument, "fields", None):
                written[name][_FIELDS] = list(fields)
        elif name == "model" and not isinstance(argument, str | PathLike):
            raise HarpError(
                f"the model {type(argument).__name__} is in memory: save it, and name its folder"
            )
        elif name == "model":
            text = _relative(argument, folder) if is_path else str(argument)
            written[name] = {_PATH: text} if is_path else text
            models[text] = os.fspath(argument)
        elif name in _PATHS and isinstance(argument, str | PathLike):
            if not is_path:
                raise HarpError(f"there is no {argument} yet: search once before you save")
            written[name] = {_PATH: _relative(argument, folder)}
        else:
            written[name] = _encoded(argument, folder, models)
    return written


def _made(value: dict[str, Any], folder: Path, made: dict[str, Any]) -> Any:
    make: Callable[..., Any]
    kind = next((key for key in _OPERATORS if key in value), None)
    if kind is not None:
        make, arguments = _OPERATORS[kind], {}
        parts = [_decoded(part, folder, made) for part in value[kind]]
    else:
        kind = value.get(_KIND, "")
        named, parts = PIPELINE_PARTS[kind], []
        arguments = {name: _decoded(v, folder, made) for name, v in value.items() if name != _KIND}
        make = resolve_name(named) if isinstance(named, str) else named
    try:
        return make(*parts, **arguments)
    except HarpError:
        raise
    except Exception as error:  # whatever a value of the file leads to
        raise HarpError(
            f"part {kind!r} of the pipeline cannot be made ({folded(error)}): save it again"
        ) from error


def _relative(path: str | PathLike[str], folder: Path) -> str:
    return Path(os.path.relpath(Path(path).resolve(), folder.resolve())).as_posix()


def _existing(folder: Path, relative: str) -> Path:
    path = Path(os.path.normpath(folder / relative))
    if not path.exists():
        raise HarpError(
            f"the pipeline in {folder} needs {path}, which is not there: put it where it was, "
            "or save the pipeline again"
        )
    return path


def _paths_in(value: Any, folder: Path, parts: Mapping[str, Any]) -> Iterator[str]:
    """Find the paths, relative to the folder, that a saved pipeline needs.

    In the folder of an index, those of other pipelines may lie as well.

    Args:
        value: of JSON types.
        folder: of the pipeline.
        parts: the parts that `_decoded` has made.

    Raises:
        HarpError: there is no index yet, or it is damaged.
    """
    if isinstance(value, list):
        for entry in value:
            yield from _paths_in(entry, folder, parts)
    elif isinstance(value, dict):
        if _PATH in value:
            yield value[_PATH]
        elif str(dataset := value.get(_DATASET, "")).startswith(PREFIX):
            if is_url(name := dataset.removeprefix(PREFIX)):
                return
            path = PurePosixPath(name)
            is_split = path.name in SPLITS and not (folder / path / DOCUMENTS).is_file()
            yield str(path.parent if is_split else path)
        else:
            index = getattr(parts.get(json.dumps(value)), "artifact", None)
            if not isinstance(index, Artifact):
                yield from _paths_in(list(value.values()), folder, parts)
                return
            if not index.is_whole():
                raise HarpError(f"{index.path} is no whole index: search once before you share it")
            yield _relative(index.path, folder)
            others = [value[name] for name in value if name not in _INDEX_PATHS]
            yield from _paths_in(others, folder, parts)


def _encoded_dataset(dataset: Any, folder: Path) -> str:
    name = dataset.name if hasattr(dataset, "documents") else Dataset(dataset).name
    if not isinstance(name, str):
        raise HarpError(f"dataset {dataset!r:.60} has no id: name one of ir_datasets to save it")
    name = name.removeprefix("irds:")
    path = name.removeprefix(PREFIX)
    if path == name or is_url(path):
        return name
    return PREFIX + _relative(Path(path).expanduser(), folder)


def _decoded_dataset(name: str, folder: Path) -> str:
    path = name.removeprefix(PREFIX)
    if path == name or is_url(path):
        return name
    return PREFIX + os.path.normpath(folder.resolve() / path)

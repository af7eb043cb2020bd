"""Whole search pipelines that are saved as JSON and loaded again."""

from __future__ import annotations

import logging
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from ..models.loading import PIPELINE, model_fingerprint
from ..work.records import read_own_record, read_record, write_record
from ..work.urls import local_path
from ..work.versions import package_versions
from .compared_transformer import ComparedTransformer
from .pipeline_parts import decoded, encoded
from .versions import scoring_versions

__all__ = ["HarpPipeline"]

_FORMAT = 1

logger = logging.getLogger(__name__)


class HarpPipeline(ComparedTransformer):
    """A pipeline that can be saved: first stages, rerankers, encoders and a fusion of them.

    ``HarpPipeline(bm25 >> HarpFusion.of_scores({"model": harp})).save("folder")`` writes one JSON
    file; ``HarpPipeline.load("folder").search("a query")`` runs the same pipeline. Models and
    indexes stay where they are: the file names them by paths relative to the folder, so that all
    can be moved together.

    Args:
        pipeline: a transformer, or several joined by ``>>`` and ``%``.

    Raises:
        HarpError: this is no transformer.
    """

    schematic = {"label": "HarpPipeline", "help_url": None, "inner_pipelines_mode": "unlinked"}  # noqa: RUF012

    def __init__(self, pipeline: pt.Transformer) -> None:
        if not isinstance(pipeline, pt.Transformer):
            raise HarpError(f"{pipeline!r:.60} is no pipeline: name a transformer of PyTerrier")
        self.pipeline = pipeline

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Run the pipeline."""
        return self.pipeline.transform(inp)

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
            "pipeline": encoded(self.pipeline, path.parent, models),
            "models": {written: model_fingerprint(name) for written, name in models.items()},
            "versions": _versions(),
        }
        write_record(path, record)
        return path

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> HarpPipeline:
        """Load a pipeline that `save` wrote. Other versions of packages are told in the log.

        Args:
            folder: where the file lies; a path, or a URL in an object store.

        Raises:
            HarpError: there is none, it is damaged or of a later release, a model or an index is
                missing, or the files of a model are not those that the pipeline was saved with.
        """
        path = Path(local_path(str(folder))) / PIPELINE
        if not path.is_file():
            raise HarpError(f"no pipeline in {folder}: name a folder that HarpPipeline.save wrote")
        record = read_record(path)
        if record.get("format") != _FORMAT:
            raise HarpError(
                f"{path} has format {record.get('format')!r:.20}, and this release reads "
                f"{_FORMAT}: install the release that wrote it, or save the pipeline anew"
            )
        pipeline = decoded(record["pipeline"], path.parent, {})
        _check_models(path, record["models"])
        _tell_versions(path, record["versions"])
        return cls(pipeline)

    def _comparison_key(self) -> pt.Transformer:
        return self.pipeline

    def __repr__(self) -> str:
        return f"HarpPipeline({self.pipeline!r})"


def _versions() -> dict[str, str]:
    return scoring_versions() | package_versions("pyterrier", "numpy")


def _check_models(path: Path, models: dict[str, Any]) -> None:
    for name, fingerprint in models.items():
        folder = path.parent / name
        if model_fingerprint(str(folder) if folder.is_dir() else name) != fingerprint:
            raise HarpError(
                f"model {name} is not the one that {path} was saved with: put its files back, or "
                "save the pipeline anew"
            )


def _tell_versions(path: Path, versions: dict[str, str]) -> None:
    now = _versions()
    changed = [
        f"{name} {v} then, {now.get(name)} now"
        for name, v in versions.items()
        if now.get(name) != v
    ]
    if changed:
        logger.warning("%s was saved with other packages (%s)", path, ", ".join(changed))

"""The stage ``words``: the words of all documents, counted; PROP draws from them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..work.build_stage import BuildRequest, BuildStage, StageOptions, finish_shards
from ..work.manifest import read_manifest, table_files
from ..work.mapped import open_table
from ..work.sql.steps import PACKAGES
from ..work.stage import Stage
from .collection import COLLECTION, COUNTED, Collection, add_up_counts, count_words

__all__ = ["DOCUMENTS_PER_SHARD", "build_words", "open_words"]

DOCUMENTS_PER_SHARD = 20_000
"""The most documents of a shard."""
_BATCH = 512
_COLUMNS = ["id", "title", "lead"]


def _options(request: BuildRequest) -> StageOptions:
    return StageOptions({"documents_per_shard": DOCUMENTS_PER_SHARD}, packages=PACKAGES)


def _count_words(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Count the words of all documents, lower-cased, shard by shard.

    It writes the table ``collection`` as `harp_plugin.weights.collection.WordCounts.write` does.
    PROP's collection is all documents, each once. The weights stage counts words too, but only
    those of documents that links lead to, for it weighs no others; so its counts differ. The
    manifest's ``texts`` is the number of documents.
    """
    directory, size = request.directory, DOCUMENTS_PER_SHARD
    open_table(directory, "corpus", "pages", _COLUMNS)  # verifies it once for all workers
    documents = open_table(directory, "graph", "documents")
    parts = (documents.ids[first : first + size] for first in range(0, len(documents), size))
    finish_shards(
        stage,
        request,
        partial(_count_shard, directory=directory, stage=stage),
        {_name(part): part for part in parts},
        workers=request.workers,
        engine=request.engine,
    )
    return {"needed": COLLECTION, "texts": add_up_counts(stage, request.engine, request.workers)}


def open_words(directory: Path) -> Collection:
    """Open the words of all documents of a build.

    Args:
        directory: the folder of the build.

    Raises:
        HarpError: the stage is unfinished or damaged.
    """
    folder = directory / "words"
    texts = read_manifest(folder)["texts"]
    files = table_files(folder, COLLECTION)
    return Collection.open(files, texts, directory / "mapped" / "words-collection")


def _name(documents: np.ndarray) -> str:
    return f"from-{documents[0]:019d}"


def _count_shard(documents: np.ndarray, *, directory: Path, stage: Stage) -> None:
    pages = open_table(directory, "corpus", "pages", _COLUMNS)
    parts = (documents[first : first + _BATCH] for first in range(0, len(documents), _BATCH))
    leads = (pages.take(pages.rows(part), "lead").to_pylist() for part in parts)
    file = count_words(leads, stage.folder / COUNTED / f"{_name(documents)}.parquet")
    stage.finish_shard(_name(documents), {}, {}, [file])


build_words = BuildStage("words", ("corpus", "graph"), _options, _count_words, temporary=(COUNTED,))

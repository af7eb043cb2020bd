"""The stage ``words``: the words of all documents, counted; PROP draws from them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..work.manifest import read_content, read_manifest, table_files
from ..work.map_shards import map_shards
from ..work.mapped import open_table
from ..work.provenance import OverwriteRules
from ..work.sql.options import EngineOptions
from ..work.sql.steps import PACKAGES
from ..work.stage import Stage
from .collection import COLLECTION, COUNTED, Collection, add_up_counts, count_words

__all__ = ["build_words", "open_words", "words_stage"]

_BATCH = 512
_COLUMNS = ["id", "title", "lead"]


def build_words(
    directory: Path,
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
    documents_per_shard: int = 20_000,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Count the words of all documents, lower-cased, shard by shard.

    It writes the table ``collection`` as `harp_plugin.weights.collection.WordCounts.write` does.
    PROP's collection is all documents, each once. The weights stage counts words too, but only
    those of documents that links lead to, for it weighs no others; so its counts differ.

    Returns:
        The stage's manifest; its ``texts`` is the number of documents.

    Raises:
        HarpError: an earlier stage is unfinished or damaged, the engine fails, or the folder holds
            other work or other files.
    """
    read_content(directory, "corpus", "graph")
    stage = words_stage(directory, rules, documents_per_shard)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    open_table(directory, "corpus", "pages", _COLUMNS)  # verifies it once for all workers
    documents = open_table(directory, "graph", "documents")
    starts = range(0, len(documents), documents_per_shard)
    shards = [documents.ids[start : start + documents_per_shard] for start in starts]
    unfinished = [shard for shard in shards if not stage.shard_done(_name(shard))]
    with tqdm(total=len(shards), unit="shard", desc="words", disable=quiet) as bar:
        bar.update(len(shards) - len(unfinished))
        count = partial(_count_shard, directory=directory, stage=stage)
        for _ in map_shards(count, unfinished, engine, workers):
            bar.update()
    texts = add_up_counts(stage, engine, workers)
    return stage.finish(needed=COLLECTION, texts=texts)


def words_stage(
    directory: Path, rules: OverwriteRules | None = None, documents_per_shard: int = 20_000
) -> Stage:
    """The stage, not started. Its inputs are None while they are unfinished."""
    return Stage(
        directory / "words",
        {"documents_per_shard": documents_per_shard},
        read_content(directory, "corpus", "graph", needed=False),
        PACKAGES,
        rules=rules,
        temporary=(COUNTED,),
    )


def open_words(directory: Path, *, verify: bool = True) -> Collection:
    """Open the words of all documents of a build.

    Args:
        directory: the folder of the build.
        verify: as in `harp_plugin.storage.open_table`.

    Raises:
        HarpError: the stage is unfinished or damaged.
    """
    folder = directory / "words"
    texts = read_manifest(folder)["texts"]
    files = table_files(folder, COLLECTION)
    return Collection.open(files, texts, directory / "mapped" / "words-collection", verify=verify)


def _name(documents: np.ndarray) -> str:
    return f"from-{documents[0]:019d}"


def _count_shard(documents: np.ndarray, *, directory: Path, stage: Stage) -> None:
    pages = open_table(directory, "corpus", "pages", _COLUMNS, verify=False)
    parts = (documents[first : first + _BATCH] for first in range(0, len(documents), _BATCH))
    leads = (pages.take(pages.rows(part), "lead").to_pylist() for part in parts)
    file = count_words(leads, stage.folder / COUNTED / f"{_name(documents)}.parquet")
    stage.finish_shard(_name(documents), {}, {}, [file])

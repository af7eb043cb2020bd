"""The collection's words, counted: what PROP's language model is smoothed with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..engine import PACKAGES, EngineOptions, Step, run_steps
from ..files.made_from import OverwriteRules
from ..storage import Stage, open_table, read_content, read_manifest, shard_map
from .collection import WordCounts, summed_counts
from .language_model import find_words

_COUNTED = "counted"
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

    Writes the table ``collection``: id (`stable_id` of the word), word, occurrences, documents.

    Returns:
        The stage's manifest; its ``texts`` is the number of documents.

    Raises:
        HarpError: an earlier stage is unfinished or damaged, the engine fails, or the folder holds
            other work or other files.
    """
    read_content(directory, "corpus", "graph")
    stage = words_stage(directory, rules, documents_per_shard)
    if stage.is_finished():
        stage.remove_temporary_tables()
        return read_manifest(stage.folder)
    stage.start()
    open_table(directory, "corpus", "pages", _COLUMNS)  # verifies it once for all workers
    documents = open_table(directory, "graph", "documents")
    starts = range(0, len(documents), documents_per_shard)
    shards = [documents.ids[start : start + documents_per_shard] for start in starts]
    todo = [shard for shard in shards if not stage.shard_done(_name(shard))]
    with tqdm(total=len(shards), unit="shard", desc="words", disable=quiet) as bar:
        bar.update(len(shards) - len(todo))
        for _ in shard_map(partial(_count, directory=directory, stage=stage), todo, workers):
            bar.update()
    step = Step("collection", summed_counts, order=("id", "word"))
    run_steps(stage, {_COUNTED: stage.folder / _COUNTED}, [step], engine, workers=workers)
    return stage.finish(needed="collection", texts=len(documents))


def words_stage(
    directory: Path, rules: OverwriteRules | None = None, documents_per_shard: int = 20_000
) -> Stage:
    """The stage, not started; its inputs are None while they are unfinished."""
    return Stage(
        directory / "words",
        {"documents_per_shard": documents_per_shard},
        read_content(directory, "corpus", "graph", needed=False),
        PACKAGES,
        rules=rules,
        temporary=(_COUNTED,),
    )


def _name(documents: np.ndarray) -> str:
    return f"from-{documents[0]:019d}"


def _count(documents: np.ndarray, *, directory: Path, stage: Stage) -> None:
    pages = open_table(directory, "corpus", "pages", _COLUMNS, verify=False)
    counts = WordCounts()
    for first in range(0, len(documents), _BATCH):
        rows = pages.rows(documents[first : first + _BATCH])
        texts = pages.take(rows, "lead").to_pylist()
        counts.add(len(texts), find_words(texts).words)
    file = counts.write(stage.folder / _COUNTED / f"{_name(documents)}.parquet")
    stage.finish_shard(_name(documents), {}, {}, [file])

"""How often each word occurs in a collection of texts: counted by shards, added up, looked up.

The stage ``words`` counts the words of all documents, each field of them; PROP draws from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..corpus.tree import Tree, tree_of_rows
from ..sampling import stable_id
from ..text import first_words, words
from ..work.build_stage import (
    BuildRequest,
    BuildStage,
    StageOptions,
    finish_shards,
    part_name,
    parts_of,
)
from ..work.manifest import read_manifest, table_files
from ..work.mapped import open_table
from ..work.parquet import read_batches, schema_of, write_table
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = [
    "COUNTED_TEXTS",
    "DOCUMENTS_PER_SHARD",
    "DOCUMENT_WORDS",
    "CountedWords",
    "build_words",
    "open_words",
]

DOCUMENT_WORDS = 400
"""The most words of a document that are counted: some 512 tokens, all that PROP's models read."""
COUNTED_TEXTS: Mapping[str, Callable[[Tree], str]] = {
    "title": lambda tree: tree.nodes[0].title,
    "lead": lambda tree: first_words(tree.nodes[0].text, DOCUMENT_WORDS),
    "text": lambda tree: first_words(tree.article(), DOCUMENT_WORDS),
}
"""What the words of each field of a document are counted in."""

DOCUMENTS_PER_SHARD = 20_000
"""The most documents of a shard."""
_BATCH = 512
_COLUMNS = ["id", "title", "sections", "language"]
_COUNTS = schema_of("id int64, word string, occurrences int64")


def _add_up(stage: Stage, request: BuildRequest) -> None:
    """Add up the counts of all shards, once."""
    if not all(map(stage.shard_done, COUNTED_TEXTS)):
        sources = {_counted(field): stage.folder / _counted(field) for field in COUNTED_TEXTS}
        steps = [
            Step(field, partial(_sums_of_shards, table=_counted(field)), order=("id", "word"))
            for field in COUNTED_TEXTS
        ]
        run_steps(stage, sources, steps, request.engine, workers=request.workers)


def _sums_of_shards(tables: Tables, table: str) -> ir.Table:
    counted = tables[table]
    occurrences = counted.occurrences.sum().cast("int64")
    return counted.group_by("id", "word").aggregate(occurrences=occurrences)


def _options(request: BuildRequest) -> StageOptions:
    recorded = {"documents_per_shard": DOCUMENTS_PER_SHARD, "document_words": DOCUMENT_WORDS}
    return StageOptions(recorded, packages=PACKAGES)


def _count_words(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Count the words of all documents, lower-cased, shard by shard.

    It writes a table for each of `COUNTED_TEXTS`, with the columns id (`stable_id` of the word),
    word and occurrences. PROP's collection is all documents, each once. The manifest's ``texts`` is
    the number of documents.
    """
    directory = request.directory
    open_table(directory, "corpus", "pages", _COLUMNS)  # verifies it once for all workers
    documents = open_table(directory, "graph", "documents")
    finish_shards(
        stage,
        request,
        partial(_count_shard, directory=directory, stage=stage),
        parts_of(documents.ids, DOCUMENTS_PER_SHARD),
        workers=request.workers,
        engine=request.engine,
    )
    _add_up(stage, request)
    return {"needed": "text", "texts": len(documents.ids)}


class CountedWords(NamedTuple):
    """The words of all documents of a build.

    Attributes:
        words: each word once.
        occurrences: how often each stands in the documents, int64 of shape (words,).
        texts: the number of documents.
    """

    words: pa.ChunkedArray
    occurrences: np.ndarray
    texts: int


def open_words(directory: Path, fields: Sequence[str]) -> CountedWords:
    """Read the words of all documents of a build.

    Args:
        directory: the folder of the build.
        fields: what the documents are made of: names of `COUNTED_TEXTS`.

    Raises:
        HarpError: the stage is unfinished or damaged.
    """
    folder = directory / "words"
    files = chain.from_iterable(table_files(folder, field) for field in fields)
    schema = pa.schema([_COUNTS.field(name) for name in ("word", "occurrences")])
    batches = (batch for file in files for batch in read_batches(file.path, schema.names))
    table = pa.Table.from_batches(batches, schema)
    sums = table.group_by("word", use_threads=False).aggregate([("occurrences", "sum")])
    occurrences = sums["occurrences_sum"].to_numpy()
    return CountedWords(sums["word"], occurrences, read_manifest(folder)["texts"])


def _count_shard(documents: np.ndarray, *, directory: Path, stage: Stage) -> None:
    pages = open_table(directory, "corpus", "pages", _COLUMNS)
    parts = (documents[first : first + _BATCH] for first in range(0, len(documents), _BATCH))
    counts = {field: Counter[str]() for field in COUNTED_TEXTS}
    for part in parts:
        columns = (column.to_pylist() for column in pages.columns(part, "title", "sections"))
        trees = list(map(tree_of_rows, *columns))
        for field, text in COUNTED_TEXTS.items():
            found = chain.from_iterable(words(text(tree)) for tree in trees)
            counts[field].update(map(str.lower, found))
    name, files = part_name(documents), []
    for field, count in counts.items():
        values = [list(map(stable_id, count)), list(count), list(count.values())]
        batch = pa.record_batch(values, schema=_COUNTS)
        path = stage.folder / _counted(field) / f"{name}.parquet"
        files.append(write_table(path, _COUNTS, [batch]))
    stage.finish_shard(name, {}, {}, files)


def _counted(field: str) -> str:
    """Name the temporary table that holds the counts of each shard."""
    return f"counted_{field}"


build_words = BuildStage(
    "words",
    ("corpus", "graph"),
    _options,
    _count_words,
    temporary=tuple(map(_counted, COUNTED_TEXTS)),
)

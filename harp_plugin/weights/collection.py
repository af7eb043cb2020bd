"""How often each word occurs in a collection of texts: counted by shards, added up, looked up.

The stage ``words`` counts the words of all documents, each field of them; PROP draws from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..corpus.tree import Tree, tree_of_rows
from ..sampling import stable_id
from ..text import first_words
from ..work.build_stage import (
    BuildRequest,
    BuildStage,
    StageOptions,
    finish_shards,
    part_name,
    parts_of,
)
from ..work.manifest import read_manifest, table_files
from ..work.mapped import MappedTable, open_table
from ..work.parquet import ShardFile, read_batches, read_schema, schema_of, write_table
from ..work.sql.engine import EngineOptions
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage
from .words import DistinctWords, find_distinct_words, find_words

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = [
    "COLLECTION",
    "COUNTED",
    "COUNTED_TEXTS",
    "DOCUMENTS_PER_SHARD",
    "DOCUMENT_WORDS",
    "Collection",
    "CountedWords",
    "WordCounts",
    "add_up_counts",
    "build_words",
    "open_words",
]

COUNTED = "counted"
"""The temporary table that holds the counts of each shard."""
COLLECTION = "collection"
"""The table that holds their sums."""

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
_TEXTS = b"texts"
_SUMS = ("occurrences", "documents", "mass")
_COUNTS = schema_of("id int64, word string, occurrences int64, documents int64, mass int64")
_MASS = 2**36
"""Probabilities are added up as integers of this fraction: the sum is the same in any order."""


class WordCounts:
    """Adds up, word by word, what texts say of their words."""

    def __init__(self) -> None:
        self.texts = 0
        self._sums: dict[str, list[int]] = {}

    def add(self, texts: int, words: DistinctWords, mass: np.ndarray | None = None) -> None:
        """Count texts.

        Args:
            texts: their number.
            words: their words.
            mass: a number between 0 and 1 for each of the distinct words, of shape (distinct,).
        """
        self.texts += texts
        size = len(words.vocabulary)
        masses = np.zeros(len(words.number)) if mass is None else np.rint(mass * _MASS)
        # The sums of floats are exact: they are whole numbers far below 2^53.
        columns = (
            np.bincount(words.number, words.frequency, minlength=size).astype(np.int64),
            np.bincount(words.number, minlength=size),
            np.bincount(words.number, masses, minlength=size).astype(np.int64),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for word, values in zip(words.vocabulary, rows, strict=True):
            sums = self._sums.setdefault(word, [0, 0, 0])
            for index, value in enumerate(values):
                sums[index] += value

    def add_texts(self, texts: Sequence[str]) -> None:
        """Count the words of texts, lower-cased."""
        self.add(len(texts), find_distinct_words(texts, find_words(texts)))

    def write(self, path: Path) -> ShardFile:
        """Write the sums as a table, and the number of texts into its schema.

        The columns are id (`stable_id` of the word), word, occurrences, documents and mass.
        """
        sums = list(zip(*self._sums.values(), strict=True)) or [()] * len(_SUMS)
        columns = [[stable_id(word) for word in self._sums], list(self._sums), *map(list, sums)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _COUNTS, strict=True)]
        schema = _COUNTS.with_metadata({_TEXTS: str(self.texts)})
        return write_table(path, schema, [pa.RecordBatch.from_arrays(arrays, schema=schema)])


def add_up_counts(
    stage: Stage,
    engine: EngineOptions | None,
    workers: int,
    sums: Mapping[str, str] = MappingProxyType({COLLECTION: COUNTED}),
) -> int:
    """Add up the counts of all shards of a stage, once.

    Args:
        stage: a started stage, whose shards are all counted.
        engine, workers: as `run_steps` takes them.
        sums: the table of each table of sums that is written.

    Returns:
        The number of texts that were counted.
    """
    if not all(map(stage.shard_done, sums)):
        sources = {counted: stage.folder / counted for counted in sums.values()}
        steps = [
            Step(name, partial(_sums_of_shards, table=counted), order=("id", "word"))
            for name, counted in sums.items()
        ]
        run_steps(stage, sources, steps, engine, workers=workers)
    files = stage.table(next(iter(sums.values())))
    return sum(int(read_schema(file.path).metadata[_TEXTS]) for file in files)


def _sums_of_shards(tables: Tables, table: str) -> ir.Table:
    """Sum the counts of all shards: sums of integers, which are the same in any order."""
    counted = tables[table]
    sums = {name: counted[name].sum().cast("int64") for name in _SUMS}
    return counted.group_by("id", "word").aggregate(**sums)


@dataclass(frozen=True)
class Collection:
    """The words of a collection of texts with their counts, looked up from a memory map.

    Attributes:
        table: the rows of the table `COLLECTION` by `stable_id` of the word.
        texts: the number of texts.
        sums: the sums of the columns occurrences, documents and mass over all words.
        least_mass: the least mass of a word that has any.
    """

    table: MappedTable
    texts: int
    sums: dict[str, int]
    least_mass: int

    @classmethod
    def open(cls, files: list[ShardFile], texts: int, cache: Path) -> Collection:
        """Open the table `COLLECTION`.

        Args:
            files: the files of the table.
            texts: the number of texts.
            cache: the path of the memory map, as in `MappedTable.from_files`.

        Raises:
            HarpError: a file is damaged.
        """
        sums = dict.fromkeys(_SUMS, 0)
        least = _MASS
        for batch in (batch for file in files for batch in read_batches(file.path, list(_SUMS))):
            for name in _SUMS:
                sums[name] += int(batch.column(name).to_numpy().sum())
            masses = batch.column("mass").to_numpy()
            least = min(least, int(masses[masses > 0].min(initial=least)))
        return cls(MappedTable.from_files(files, cache), texts, sums, least)

    @property
    def mean_length(self) -> float:
        """The mean number of words of a text."""
        return self.sums["occurrences"] / max(1, self.texts)

    def background(self, words: Sequence[str], counted: str = "occurrences") -> np.ndarray:
        """Look up P(w|C) by ``occurrences`` or ``documents``; 0 for a word that no text holds."""
        return self._values(words, counted) / max(1, self.sums[counted])

    def surprise(self, words: Sequence[str]) -> np.ndarray:
        """Return -log2 of each word's fraction of the mass; a word without any counts as rarest."""
        masses = np.maximum(self._values(words, "mass"), self.least_mass)
        return np.log2(max(1, self.sums["mass"])) - np.log2(masses)

    def _values(self, words: Sequence[str], column: str) -> np.ndarray:
        rows = self.table.rows(np.array([stable_id(word) for word in words], dtype=np.int64))
        values = np.zeros(len(words))
        in_table = rows >= 0
        if in_table.any():
            values[in_table] = self.table.take(rows[in_table], column).to_numpy()
        return values


def _options(request: BuildRequest) -> StageOptions:
    recorded = {"documents_per_shard": DOCUMENTS_PER_SHARD, "document_words": DOCUMENT_WORDS}
    return StageOptions(recorded, packages=PACKAGES)


def _count_words(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Count the words of all documents, lower-cased, shard by shard.

    It writes a table for each of `COUNTED_TEXTS`, as `WordCounts.write` does.
    PROP's collection is all documents, each once. The weights stage counts words too, but only
    those of documents that links lead to, for it weighs no others; so its counts differ. The
    manifest's ``texts`` is the number of documents.
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
    sums = {field: _counted(field) for field in COUNTED_TEXTS}
    texts = add_up_counts(stage, request.engine, request.workers, sums)
    return {"needed": "text", "texts": texts}


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
    counts = {field: WordCounts() for field in COUNTED_TEXTS}
    for part in parts:
        columns = (column.to_pylist() for column in pages.columns(part, "title", "sections"))
        trees = list(map(tree_of_rows, *columns))
        for field, text in COUNTED_TEXTS.items():
            counts[field].add_texts(list(map(text, trees)))
    name, folder = part_name(documents), stage.folder
    files = [c.write(folder / _counted(field) / f"{name}.parquet") for field, c in counts.items()]
    stage.finish_shard(name, {}, {}, files)


def _counted(field: str) -> str:
    return f"{COUNTED}_{field}"


build_words = BuildStage(
    "words",
    ("corpus", "graph"),
    _options,
    _count_words,
    temporary=tuple(map(_counted, COUNTED_TEXTS)),
)

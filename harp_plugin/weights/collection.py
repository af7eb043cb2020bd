"""How often each word occurs in a collection of texts: counted by shards, added up, looked up.

The stage ``words`` counts the words of all documents; PROP draws from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..sampling import stable_id
from ..work.build_stage import BuildRequest, BuildStage, StageOptions, finish_shards
from ..work.manifest import read_manifest, table_files
from ..work.mapped import MappedTable, open_table
from ..work.parquet import ShardFile, read_batches, read_schema, write_table
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
    "DOCUMENTS_PER_SHARD",
    "Collection",
    "WordCounts",
    "add_up_counts",
    "build_words",
    "count_words",
    "open_words",
]

COUNTED = "counted"
"""The temporary table that holds the counts of each shard."""
COLLECTION = "collection"
"""The table that holds their sums."""

DOCUMENTS_PER_SHARD = 20_000
"""The most documents of a shard."""
_BATCH = 512
_COLUMNS = ["id", "title", "lead"]
_TEXTS = b"texts"
_SUMS = ("occurrences", "documents", "mass")
_COUNTS = pa.schema(
    [("id", pa.int64()), ("word", pa.string()), *((name, pa.int64()) for name in _SUMS)]
)
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

    def write(self, path: Path) -> ShardFile:
        """Write the sums as a table, and the number of texts into its schema.

        The columns are id (`stable_id` of the word), word, occurrences, documents and mass.
        """
        sums = list(zip(*self._sums.values(), strict=True)) or [()] * len(_SUMS)
        columns = [[stable_id(word) for word in self._sums], list(self._sums), *map(list, sums)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _COUNTS, strict=True)]
        schema = _COUNTS.with_metadata({_TEXTS: str(self.texts)})
        return write_table(path, schema, [pa.RecordBatch.from_arrays(arrays, schema=schema)])


def count_words(batches: Iterable[Sequence[str]], path: Path) -> ShardFile:
    """Count the words of texts, lower-cased, and write the counts of a shard to ``path``."""
    counts = WordCounts()
    for texts in batches:
        counts.add(len(texts), find_distinct_words(texts, find_words(texts)))
    return counts.write(path)


def add_up_counts(stage: Stage, engine: EngineOptions | None, workers: int) -> int:
    """Add up the counts of all shards of a stage to its table `COLLECTION`, once.

    Returns:
        The number of texts that were counted.
    """
    if not stage.shard_done(COLLECTION):
        step = Step(COLLECTION, _sums_of_shards, order=("id", "word"))
        run_steps(stage, {COUNTED: stage.folder / COUNTED}, [step], engine, workers=workers)
    counted = stage.table(COUNTED)
    return sum(int(read_schema(file.path).metadata[_TEXTS]) for file in counted)


def _sums_of_shards(tables: Tables) -> ir.Table:
    """Sum the counts of all shards: sums of integers, which are the same in any order."""
    counted = tables[COUNTED]
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

    def counts(self, column: str) -> np.ndarray:
        """The ``occurrences`` or ``documents`` of all words, int64 of shape (words,)."""
        return self.table.take(np.arange(len(self.table)), column).to_numpy()

    def words(self, numbers: np.ndarray) -> list[str]:
        """The words of these numbers, in the order of `counts`."""
        return self.table.take(numbers, "word").to_pylist()

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
    return StageOptions({"documents_per_shard": DOCUMENTS_PER_SHARD}, packages=PACKAGES)


def _count_words(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Count the words of all documents, lower-cased, shard by shard.

    It writes the table ``collection`` as `WordCounts.write` does.
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

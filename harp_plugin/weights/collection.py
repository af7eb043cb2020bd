"""Words of texts as numbers, and what a whole collection says of each word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ..sampling import stable_id
from ..storage import MappedTable, ShardFile, read_batches, read_schema, write_table

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

_TEXTS = b"texts"
_SUMS = ("occurrences", "documents", "mass")
COUNTS = pa.schema(
    [("id", pa.int64()), ("word", pa.string()), *((name, pa.int64()) for name in _SUMS)]
)
MASS = 2**36
"""Probabilities are added up as integers of this fraction: the same sum in any order."""


class Words(NamedTuple):
    """Words of texts, one text after the other, lower-cased.

    Attributes:
        vocabulary: the distinct words.
        number: of each position's word in ``vocabulary``, int64 of shape (positions,).
        text: of each position, int64 of shape (positions,).
    """

    vocabulary: list[str]
    number: np.ndarray
    text: np.ndarray


class Occurring(NamedTuple):
    """Distinct words of each text.

    Attributes:
        text: int64 of shape (terms,).
        number: of the word in the vocabulary, int64 of shape (terms,).
        term: of each position, int64 of shape (positions,).
        frequency: positions of each term, int64 of shape (terms,).
    """

    text: np.ndarray
    number: np.ndarray
    term: np.ndarray
    frequency: np.ndarray


def words_at(texts: Sequence[str], spans: np.ndarray, starts: np.ndarray) -> Words:
    """The words at given places.

    Args:
        texts: the texts.
        spans: character offsets of their words, one text after the other, of shape (words, 2).
        starts: the first word of each text and the end, of shape (texts + 1,).
    """
    text = np.repeat(np.arange(len(texts)), np.diff(starts))
    places = zip(text.tolist(), spans.tolist(), strict=True)
    numbers: dict[str, int] = {}
    number = [
        numbers.setdefault(texts[i][start:end].lower(), len(numbers)) for i, (start, end) in places
    ]
    return Words(list(numbers), np.array(number, dtype=np.int64), text)


def occurring(words: Words) -> Occurring:
    """Merge the repeats of a word within each text."""
    size = max(1, len(words.vocabulary))
    keys, term, frequency = np.unique(
        words.text * size + words.number, return_inverse=True, return_counts=True
    )
    return Occurring(keys // size, keys % size, term.reshape(-1), frequency)


class WordCounts:
    """Sums over texts, word by word."""

    def __init__(self) -> None:
        self.texts = 0
        self._sums: dict[str, list[int]] = {}

    def add(self, texts: int, words: Words, mass: np.ndarray | None = None) -> None:
        """Count texts.

        Args:
            texts: how many they are.
            words: of these texts.
            mass: of each distinct word of each text, as `occurring` orders them; between 0 and 1.
        """
        self.texts += texts
        terms, size = occurring(words), len(words.vocabulary)
        masses = np.zeros(len(terms.number)) if mass is None else np.rint(mass * MASS)
        columns = (
            np.bincount(words.number, minlength=size),
            np.bincount(terms.number, minlength=size),
            # Whole numbers far below 2^53: exact.
            np.bincount(terms.number, masses, minlength=size).astype(np.int64),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for word, more in zip(words.vocabulary, rows, strict=True):
            sums = self._sums.setdefault(word, [0, 0, 0])
            for place, value in enumerate(more):
                sums[place] += value

    def write(self, path: Path) -> ShardFile:
        """Write the sums as a table, the number of texts beside it."""
        sums = list(zip(*self._sums.values(), strict=True)) or [()] * len(_SUMS)
        columns = [[stable_id(word) for word in self._sums], list(self._sums), *map(list, sums)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, COUNTS, strict=True)]
        schema = COUNTS.with_metadata({_TEXTS: str(self.texts)})
        return write_table(path, schema, [pa.RecordBatch.from_arrays(arrays, schema=schema)])


def summed_counts(tables: Tables) -> ir.Table:
    """The sums over all shards; sums of integers, so the same in any order."""
    counted = tables["counted"]
    sums = {name: counted[name].sum().cast("int64") for name in _SUMS}
    return counted.group_by("id", "word").aggregate(**sums)


@dataclass(frozen=True)
class Collection:
    """What a collection says of each word, looked up from a memory map.

    Attributes:
        table: rows of `COUNTS` by `stable_id` of the word.
        texts: number of texts.
        sums: totals of the table's columns over all words.
        least_mass: of a word that has any.
    """

    table: MappedTable
    texts: int
    sums: dict[str, int]
    least_mass: int

    @classmethod
    def open(cls, summed: list[ShardFile], counted: list[ShardFile], cache: Path) -> Collection:
        """Open the sums.

        Args:
            summed: files of the summed table.
            counted: files of the shards that were summed, which know the number of texts.
            cache: as in `MappedTable.of`.

        Raises:
            HarpError: a file is damaged.
        """
        sums = dict.fromkeys(_SUMS, 0)
        least = MASS
        for batch in _batches(summed):
            for name in _SUMS:
                sums[name] += int(batch.column(name).to_numpy().sum())
            masses = batch.column("mass").to_numpy()
            least = min(least, int(masses[masses > 0].min(initial=least)))
        texts = sum(int(read_schema(file.path).metadata[_TEXTS]) for file in counted)
        table = MappedTable.of(summed, cache, ["id", *_SUMS])
        return cls(table, texts, sums, least)

    @cached_property
    def mean_length(self) -> float:
        """Mean number of words of a text."""
        return self.sums["occurrences"] / max(1, self.texts)

    def background(self, words: Sequence[str], counted: str = "occurrences") -> np.ndarray:
        """P(w|C) by ``occurrences`` or ``documents``; 0 for a word that no text holds."""
        return self._values(words, counted) / max(1, self.sums[counted])

    def surprise(self, words: Sequence[str]) -> np.ndarray:
        """-log2 of each word's share of the mass; a word without any counts as the rarest."""
        masses = np.maximum(self._values(words, "mass"), self.least_mass)
        return np.log2(max(1, self.sums["mass"])) - np.log2(masses)

    def _values(self, words: Sequence[str], column: str) -> np.ndarray:
        rows = self.table.rows(np.array([stable_id(word) for word in words], dtype=np.int64))
        values = np.zeros(len(words))
        known = rows >= 0
        if known.any():
            values[known] = self.table.take(rows[known], column).to_numpy()
        return values


def _batches(files: list[ShardFile]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from read_batches(file.path, list(_SUMS))


def flat_spans(found: Iterable[Sequence[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
    """Spans of texts as one array of shape (words, 2), and where each text's start."""
    each = [np.array(spans, dtype=np.int64).reshape(-1, 2) for spans in found]
    starts = np.concatenate([[0], np.cumsum([len(spans) for spans in each])]).astype(np.int64)
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *each]), starts

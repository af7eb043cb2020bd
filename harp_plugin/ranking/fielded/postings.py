"""The counts of each term in each field of each document, as files that are mapped into memory."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ...errors import HarpError
from ..terms import terms

__all__ = ["Postings", "TermPostings", "write_postings"]


class TermPostings(NamedTuple):
    """The documents that have a term.

    Attributes:
        documents: their numbers, ascending, int32 of shape (documents,).
        counts: how often each field has the term, float64 of shape (fields, documents).
    """

    documents: np.ndarray
    counts: np.ndarray


class Postings:
    """What `write_postings` wrote. Documents are numbered in the order of their docnos.

    Args:
        folder: holds the files.
        fields: number of fields.
    """

    def __init__(self, folder: Path, fields: int) -> None:
        self._folder = folder
        self._fields = fields

    @cached_property
    def docnos(self) -> np.ndarray:
        """(documents,) their docnos, ascending; objects."""
        text = (self._folder / "docnos.txt").read_text(encoding="utf-8")
        return np.array(text.split("\n")[:-1], dtype=object)

    @cached_property
    def relative_lengths(self) -> np.ndarray:
        """Length over mean length of a field, float64 of shape (fields, documents); 1 if empty."""
        lengths = self._read("lengths").astype(np.float64)
        means = lengths.mean(axis=1, keepdims=True)
        return np.divide(lengths, means, out=np.ones_like(lengths), where=lengths > 0)

    def of_term(self, term: str, fields: Sequence[int]) -> TermPostings:
        """Look up the documents that have a term in any of these fields.

        Args:
            term: as `harp_plugin.ranking.terms.terms` gives it.
            fields: numbers of fields; the counts of others are 0.
        """
        number = self._numbers.get(term)
        if number is None:
            return TermPostings(np.zeros(0, np.int32), np.zeros((self._fields, 0)))
        parts = {field: self._of_field(field, number) for field in fields}
        documents = np.unique(np.concatenate([numbers for numbers, _ in parts.values()]))
        counts = np.zeros((self._fields, len(documents)))
        for field, (numbers, of_field) in parts.items():
            counts[field, np.searchsorted(documents, numbers)] = of_field
        return TermPostings(documents, counts)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        words = (self._folder / "terms.txt").read_text(encoding="ascii").split("\n")[:-1]
        return {word: number for number, word in enumerate(words)}

    @cached_property
    def _columns(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        names = "offsets", "documents", "counts"
        return [
            tuple(self._read(f"{name}-{field}") for name in names)  # type: ignore[misc]
            for field in range(self._fields)
        ]

    def _of_field(self, field: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        offsets, documents, counts = self._columns[field]
        part = slice(offsets[number], offsets[number + 1])
        return documents[part], counts[part]

    def _read(self, name: str) -> np.ndarray:
        return np.load(self._folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)


class _Field:
    """The terms of one field, document by document."""

    def __init__(self) -> None:
        self.numbers, self.counts = array("i"), array("i")
        self.ends, self.lengths = array("q", [0]), array("i")

    def add(self, words: list[str], numbers: dict[str, int]) -> None:
        for word, count in Counter(words).items():
            self.numbers.append(numbers.setdefault(word, len(numbers)))
            self.counts.append(count)
        self.ends.append(len(self.numbers))
        self.lengths.append(len(words))

    def by_term(self, places: np.ndarray, order: np.ndarray) -> csr_array:
        """Transpose to a matrix of counts, (terms, documents).

        Args:
            places: (terms,) the row of each term.
            order: (documents,) the document of each column.
        """
        shape = len(order), len(places)
        rows = places[np.asarray(self.numbers, dtype=np.int32)]
        matrix = csr_array((np.asarray(self.counts), rows, np.asarray(self.ends)), shape=shape)
        return matrix[order].T.tocsr()


def write_postings(
    documents: Iterable[tuple[str, Sequence[str]]], fields: int, folder: Path
) -> None:
    """Count the terms of documents and write them into a folder.

    All counts are in memory meanwhile, about 40 bytes for each distinct term of each field of each
    document.

    Args:
        documents: docno and texts, one for each field.
        fields: the number of fields.
        folder: where the files are written.

    Raises:
        HarpError: a docno is empty, holds white space, or stands twice.
    """
    columns = [_Field() for _ in range(fields)]
    docnos: list[str] = []
    numbers: dict[str, int] = {}
    for docno, texts in documents:
        docnos.append(docno)
        for column, text in zip(columns, texts, strict=True):
            column.add(terms(text), numbers)
    order = _order(docnos)
    words = sorted(numbers)
    places = np.empty(len(words), np.int32)
    places[[numbers[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    _write_lines(folder / "docnos.txt", [docnos[number] for number in order])
    _write_lines(folder / "terms.txt", words)
    np.save(folder / "lengths.npy", np.array([field.lengths for field in columns])[:, order])
    for field, column in enumerate(columns):
        matrix = column.by_term(places, order)
        np.save(folder / f"offsets-{field}.npy", matrix.indptr.astype(np.int64))
        np.save(folder / f"documents-{field}.npy", matrix.indices.astype(np.int32))
        np.save(folder / f"counts-{field}.npy", matrix.data.astype(np.int32))


def _order(docnos: Sequence[str]) -> np.ndarray:
    for docno in docnos:
        if not docno or re.search(r"\s", docno):
            raise HarpError(f"docno {docno!r} is empty or holds white space: name it otherwise")
    order = np.array(sorted(range(len(docnos)), key=docnos.__getitem__), dtype=np.int64)
    for first, second in pairwise(order):
        if docnos[first] == docnos[second]:
            raise HarpError(f"docno {docnos[first]!r} stands twice: give each document its own")
    return order


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)

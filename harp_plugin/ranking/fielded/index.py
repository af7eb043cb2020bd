"""An index of documents with several fields: the counts of each term in each field."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz
from tqdm import tqdm

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...work.artifact import Artifact, Provenance
from ...work.provenance import INDEX_RULES, package_versions
from ..sharing import Compared, Shareable
from ..terms import ANALYSIS, terms
from ..texts import check_docnos

__all__ = ["FieldedIndex", "Postings", "write_postings"]

_ID = "doc_id"


class FieldedIndex(Shareable, Compared):
    """The terms of each field of the documents of a dataset, stemmed as `Bm25` does.

    The index is built when it is first read. It serves all weights, k1 and b. It is built in
    memory, about 16 bytes for each term of each field, and read from disk.

    Args:
        dataset: what `harp_plugin.collections.dataset.Dataset` takes, or one of these.
        folder: holds one index for each collection and choice of fields.
        fields: names of the fields; by default all that hold a text, except the id.
        quiet: show no progress bar.

    Raises:
        HarpError: the dataset cannot be read, has no id, or lacks a field.
    """

    def __init__(
        self,
        dataset: Any,
        folder: str | PathLike[str],
        fields: Sequence[str] | None = None,
        *,
        quiet: bool = True,
    ) -> None:
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        if not isinstance(self.dataset.name, str):
            raise HarpError("the dataset has no id: register it with ir_datasets, and name its id")
        self.folder = Path(folder)
        self.fields = tuple(fields or self._all_fields())
        self.quiet = quiet
        Dataset(self.dataset.name, self.fields).check()

    @property
    def settings(self) -> dict[str, Any]:
        """What the index depends on, apart from the documents."""
        return {"index with fields": {"fields": list(self.fields), **ANALYSIS}}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the terms depend on."""
        return package_versions("harp_plugin", "pyterrier-pisa", "snowballstemmer")

    @cached_property
    def artifact(self) -> Artifact:
        """The files, which may have to be made."""
        identity = {**self.dataset.documents_identity, "fields": list(self.fields)}
        provenance = Provenance({"collection": identity, **self.settings}, self.versions)
        path = self.folder / f"fielded-bm25-{provenance.key}"
        return Artifact(path, "fielded index", provenance, INDEX_RULES)

    def make(self) -> None:
        """Make the index if it is missing or damaged.

        Raises:
            HarpError: a document cannot be indexed, or the folder holds files that harp did not
                write.
        """
        self.artifact.make(self._fill)

    @cached_property
    def postings(self) -> Postings:
        """The content of the index, which is made if it is missing or damaged."""
        self.make()
        return Postings(self.artifact.path, len(self.fields))

    def _all_fields(self) -> list[str]:
        fields = [name for name in self.dataset.text_fields if name != _ID]
        if not fields:
            raise HarpError(
                f"documents of {self.dataset.name} have no text field: name another dataset"
            )
        return fields

    def _fill(self, temporary: Path) -> None:
        documents = tqdm(
            self.dataset.documents_by_field(self.fields),
            desc="fielded index",
            unit="doc",
            total=self.dataset.document_count,
            disable=self.quiet,
        )
        write_postings(documents, len(self.fields), temporary)

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.dataset.name, self.folder, self.fields

    def __repr__(self) -> str:
        name, folder, fields = self._comparison_key()
        return f"FieldedIndex({name!r}, {str(folder)!r}, {list(fields)!r})"


class Postings:
    """What `write_postings` wrote. Documents are numbered in the order of their docnos.

    Args:
        folder: holds the files.
        fields: number of fields.
    """

    def __init__(self, folder: Path, fields: int) -> None:
        self._folder = folder
        self.fields = fields

    @cached_property
    def docnos(self) -> np.ndarray:
        """(documents,) their docnos, ascending; objects."""
        text = (self._folder / "docnos.txt").read_text(encoding="utf-8")
        return np.array(text.split("\n")[:-1], dtype=object)

    @cached_property
    def lengths(self) -> np.ndarray:
        """(fields, documents) how many terms each field of each document has; float64."""
        return np.load(self._folder / "lengths.npy", allow_pickle=False).astype(np.float64)

    @cached_property
    def relative_lengths(self) -> np.ndarray:
        """Length over mean length of a field, float64 of shape (fields, documents); 1 if empty."""
        lengths = self.lengths
        means = lengths.mean(axis=1, keepdims=True)
        return np.divide(lengths, means, out=np.ones_like(lengths), where=lengths > 0)

    def of_term(self, term: str, fields: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Look up the documents that have a term in any of these fields.

        Args:
            term: as `harp_plugin.ranking.terms.terms` gives it.
            fields: numbers of fields; the counts of others are 0.

        Returns:
            The numbers of the documents, ascending, int32 of shape (documents,), and how often each
            field has the term, float64 of shape (fields, documents).
        """
        number = self._numbers.get(term)
        if number is None:
            return np.zeros(0, np.int32), np.zeros((self.fields, 0))
        parts = {field: self._of_field(field, number) for field in fields}
        documents = np.unique(np.concatenate([numbers for numbers, _ in parts.values()]))
        counts = np.zeros((self.fields, len(documents)))
        for field, (numbers, of_field) in parts.items():
            counts[field, np.searchsorted(documents, numbers)] = of_field
        return documents, counts

    @cached_property
    def sequences(self) -> np.ndarray:
        """The numbers of the terms of all texts, int32, field after field of each document."""
        return np.load(self._folder / "sequences.npy", mmap_mode="r", allow_pickle=False)

    @cached_property
    def ends(self) -> np.ndarray:
        """(texts + 1,) where each text begins in `sequences`, and where the last one ends."""
        return np.load(self._folder / "ends.npy", allow_pickle=False)

    def documents(self, docnos: Sequence[str]) -> np.ndarray:
        """Return the numbers of documents.

        Raises:
            HarpError: the index lacks one; the message names it.
        """
        wanted = np.asarray(docnos, dtype=object)
        numbers = np.searchsorted(self.docnos, wanted)
        numbers[numbers == len(self.docnos)] = 0
        if (missing := self.docnos[numbers] != wanted).any():
            raise HarpError(
                f"the index has no document {wanted[missing][0]!r}: index the dataset that the "
                "first stage has searched"
            )
        return numbers

    def number(self, term: str) -> int:
        """Return the number of a term in `sequences`, or -1 where no document has it."""
        return self._numbers.get(term, -1)

    def frequency(self, term: str) -> int:
        """Return how many documents have a term in any field."""
        return len(self.of_term(term, range(self.fields))[0])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        words = (self._folder / "terms.txt").read_text(encoding="ascii").split("\n")[:-1]
        return {word: number for number, word in enumerate(words)}

    @cached_property
    def _counts(self) -> list[csr_array]:
        """The counts of each field, (terms, documents)."""
        return [load_npz(self._folder / f"counts-{field}.npz") for field in range(self.fields)]

    def _of_field(self, field: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        counts = self._counts[field]
        part = slice(counts.indptr[number], counts.indptr[number + 1])
        return counts.indices[part], counts.data[part]


def write_postings(
    documents: Iterable[tuple[str, Sequence[str]]], fields: int, folder: Path
) -> None:
    """Count the terms of documents and write them into a folder.

    All counts are in memory meanwhile, about 16 bytes for each term of each text.

    Args:
        documents: docno and texts, one for each field.
        fields: the number of fields.
        folder: where the files are written.

    Raises:
        HarpError: a docno is empty, holds white space, or is a duplicate.
    """
    docnos: list[str] = []
    numbers: dict[str, int] = {}
    columns, counts, ends = array("i"), array("i"), array("q", [0])
    sequence, text_ends = array("i"), array("q", [0])
    for docno, texts in documents:
        docnos.append(docno)
        for text in texts:
            of_text = [numbers.setdefault(word, len(numbers)) for word in terms(text)]
            for number, count in Counter(of_text).items():
                columns.append(number)
                counts.append(count)
            ends.append(len(columns))
            sequence.extend(of_text)
            text_ends.append(len(sequence))
    check_docnos(docnos)
    order = np.array(sorted(range(len(docnos)), key=docnos.__getitem__), dtype=np.int64)
    words = sorted(numbers)
    rank = np.empty(len(words), np.int32)
    rank[[numbers[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    parts = np.asarray(counts), rank[np.asarray(columns, dtype=np.int32)], np.asarray(ends)
    matrix = csr_array(parts, shape=(len(docnos) * fields, len(words)))
    _write_lines(folder / "docnos.txt", [docnos[number] for number in order])
    _write_lines(folder / "terms.txt", words)
    for field in range(fields):
        of_field = matrix[field::fields][order].T.tocsr()
        save_npz(folder / f"counts-{field}.npz", of_field, compressed=False)
    limits = np.asarray(text_ends)
    lengths = np.diff(limits).reshape(-1, fields)[order]
    np.save(folder / "lengths.npy", lengths.T)
    np.save(folder / "ends.npy", np.concatenate([[0], np.cumsum(lengths)]))
    starts, stops = limits[::fields][order], limits[fields::fields][order]
    in_order = _gathered(np.asarray(sequence, np.int32), starts, stops, rank)
    np.save(folder / "sequences.npy", in_order)


def _gathered(
    sequence: np.ndarray, starts: np.ndarray, ends: np.ndarray, rank: np.ndarray
) -> np.ndarray:
    """Put parts of a sequence one behind the other, each term by its rank; int32."""
    result = np.empty_like(sequence)
    filled = 0
    for start, end in zip(starts, ends, strict=True):
        result[filled : filled + end - start] = rank[sequence[start:end]]
        filled += end - start
    return result


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)

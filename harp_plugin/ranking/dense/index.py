"""The vectors of all documents of a dataset, in a folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from tqdm import tqdm

from ...errors import HarpError
from ...work.sharing import ALONE, Share
from ...work.writing import remove_temporary, whole_file, write_text
from ..index_folder import IndexFolder
from ..ranks import best
from ..windows import DocumentWindows
from .encoder import Encoder, WindowVectors

__all__ = ["DenseIndex", "Documents", "Shard", "window_scores"]

_DOCNOS = "docnos.txt"
_DECIMALS = 6
"""To which scores are rounded, so that the order does not depend on how a product is blocked."""


class Documents(Protocol):
    """What has documents, such as `harp_plugin.collections.dataset.Dataset`."""

    @property
    def name(self) -> Any:
        """Its name."""

    @property
    def documents_identity(self) -> dict[str, Any]:
        """What an index of the documents depends on; JSON types."""

    @property
    def document_count(self) -> int | None:
        """How many documents there are, where that is known without reading them."""

    def documents(self) -> Iterator[tuple[str, str]]:
        """Give the id and the text of every document."""


class Shard(NamedTuple):
    """The vectors of some documents that follow each other.

    Attributes:
        first: number of the first document.
        content: their vectors, mapped into memory.
    """

    first: int
    content: WindowVectors


class DenseIndex(IndexFolder):
    """The vectors of the documents of a dataset, made when they are first read.

    They are written in shards. A build that was stopped goes on behind the last finished shard. The
    record comes last and commits the whole: nothing is renamed, for stores cannot.

    Args:
        dataset: what is encoded.
        folder: holds one index for each collection, model and settings.
        encoder: makes the vectors.
        vector_dtype: of the vectors on disk, ``float32`` or ``float16``.
        documents_per_shard: the most documents of a shard.
        quiet: show no progress bar.
        share: of this host, where several make the index. Each reads all documents, and encodes its
            own shards; then those that nobody has encoded yet, the later half of them first, so
            that it does not meet the host whose they are.

    Raises:
        HarpError: the dataset has no id.
    """

    kind = "cosine"
    own = re.compile(rf"(starts|vectors)-\d+\.npy|{re.escape(_DOCNOS)}")

    def __init__(
        self,
        dataset: Documents,
        folder: Path,
        encoder: Encoder,
        *,
        vector_dtype: str = "float32",
        documents_per_shard: int = 1000,
        quiet: bool = True,
        share: Share = ALONE,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        if not isinstance(dataset.name, str):
            raise HarpError("the dataset has no id: register it with ir_datasets, and name its id")
        super().__init__(folder)
        self.dataset = dataset
        self.encoder = encoder
        self.vector_dtype = vector_dtype
        self.documents_per_shard = documents_per_shard
        self.quiet = quiet
        self.share = share
        self._is_needed = is_needed

    @property
    def made_from(self) -> dict[str, Any]:
        """The documents, the model and the settings."""
        return {
            "collection": self.dataset.documents_identity,
            **self.encoder.settings,
            "vectors": [self.vector_dtype, self.documents_per_shard],
            "versions": self.encoder.versions,
        }

    @cached_property
    def docnos(self) -> np.ndarray:
        """(documents,) their docnos, in the order of the dataset; objects."""
        self.make()
        lines = (self.path / _DOCNOS).read_text(encoding="utf-8").split("\n")
        return np.array(lines[:-1], dtype=object)

    @cached_property
    def places(self) -> np.ndarray:
        """(documents,) the place of each document in the order of the docnos."""
        places = np.empty(len(self.docnos), np.int64)
        places[np.argsort(self.docnos, kind="stable")] = np.arange(len(places))
        return places

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document, by its docno."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    def shards(self) -> Iterator[Shard]:
        """Read all vectors, shard by shard, in the order of the documents."""
        count = len(self.docnos)
        for first in range(0, count, self.documents_per_shard):
            yield Shard(first, _read(self.path, first // self.documents_per_shard))

    def of_documents(self, numbers: Sequence[int]) -> WindowVectors:
        """Read the vectors of some documents, by their numbers, in this order."""
        shards: dict[int, WindowVectors] = {}
        vectors, sizes = [], [0]
        for number in numbers:
            place, row = divmod(number, self.documents_per_shard)
            if place not in shards:
                shards[place] = _read(self.path, place)
            of_shard, starts = shards[place]
            end = starts[row + 1] if row + 1 < len(starts) else len(of_shard)
            vectors.append(np.asarray(of_shard[starts[row] : end], dtype=np.float32))
            sizes.append(len(vectors[-1]))
        return WindowVectors(np.concatenate(vectors), np.cumsum(sizes)[:-1])

    def search(self, queries: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Compare queries with all documents.

        Args:
            queries: their vectors, (queries, dimensions).
            count: how many documents are found for each.

        Returns:
            For each query the docnos (objects) and the scores (float64) of the best documents, best
            first, and equal scores by docno.
        """
        numbers: list[list[np.ndarray]] = [[] for _ in queries]
        scores: list[list[np.ndarray]] = [[] for _ in queries]
        for shard in self.shards():
            products = queries @ shard.content.vectors.astype(np.float32).T
            for place, of_windows in enumerate(products):
                found = window_scores(self.encoder.windows, of_windows, shard.content.starts)
                documents = shard.first + np.arange(len(found))
                chosen = best(found, self.places[documents], count)
                numbers[place].append(documents[chosen])
                scores[place].append(found[chosen])
        results = []
        for parts in zip(numbers, scores, strict=True):
            documents, found = map(np.concatenate, parts)
            chosen = best(found, self.places[documents], count)
            results.append((self.docnos[documents[chosen]], found[chosen]))
        return results

    def make(self) -> None:
        """Build the index as `IndexFolder.make` does; hosts that share it encode all at once."""
        if self.share.world > 1:
            try:
                self._encode_shared()
            except FileNotFoundError:  # another host has finished the index meanwhile
                if self._is_open():
                    raise
        super().make()

    def remove(self) -> None:
        """Remove the vectors, finished or not, if they are there.

        Where hosts share them, one that writes a shard at this moment removes it when it ends.

        Raises:
            HarpError: their folder holds something else.
        """
        if not self.path.is_dir() or self.path.is_symlink():
            return
        with self._one_at_a_time(), suppress(FileNotFoundError):
            try:
                self._remove_files(self._own_files())
            except HarpError:
                if self.share.world == 1 or self._is_there():
                    raise

    def _is_open(self) -> bool:
        return not self._is_there() and self._is_needed()

    def _encode_shared(self) -> None:
        with self._one_at_a_time():
            if self._is_open():
                self.path.mkdir(parents=True, exist_ok=True)
        rank, world = self.share
        chosen: Container[int] = range(rank, sys.maxsize, world)
        while self._is_open():
            count = self._encode(chosen)
            left = [number for number in range(count) if not self._is_encoded(number)]
            if not left:
                break
            chosen = left[len(left) // 2 :]

    def _build(self) -> None:
        if not self._is_needed():
            return
        self.path.mkdir(exist_ok=True)
        if self.share.world == 1:
            remove_temporary(self.path)
        self._fill(self.path)
        self._write_record(self.path)

    def _fill(self, temporary: Path) -> None:
        docnos: list[str] = []
        self._encode(range(sys.maxsize), docnos)
        if not docnos:
            raise HarpError(f"{self.dataset.name} has no documents: name another dataset")
        _check(docnos)
        write_text(temporary / _DOCNOS, "".join(f"{docno}\n" for docno in docnos))

    def _encode(self, chosen: Container[int], docnos: list[str] | None = None) -> int:
        """Encode the documents of some shards, if that is not done; return how many there are.

        Args:
            chosen: numbers of shards.
            docnos: gets the docnos of all documents.
        """
        documents, count = self.dataset.documents(), 0
        bar = tqdm(
            desc=f"encode {self.dataset.name}",
            unit="doc",
            total=self.dataset.document_count,
            disable=self.quiet,
        )
        with bar:
            while part := list(islice(documents, self.documents_per_shard)):
                if docnos is not None:
                    docnos += (docno for docno, _ in part)
                if count in chosen and not self._is_encoded(count) and self._is_open():
                    content = self.encoder.documents([text for _, text in part])
                    if self._is_open():
                        self._write(count, content)
                bar.update(len(part))
                count += 1
        return count

    def _is_encoded(self, number: int) -> bool:
        return all(path.exists() for path in _paths(self.path, number))

    def _write(self, number: int, content: WindowVectors) -> None:
        for path, values in zip(
            _paths(self.path, number),
            (content.starts, content.vectors.astype(self.vector_dtype)),
            strict=True,
        ):
            with whole_file(path, new_folder=False) as temporary, temporary.open("wb") as file:
                np.save(file, values)

    def __getstate__(self) -> dict[str, Any]:
        left_out = "docnos", "places", "numbers"
        return {name: value for name, value in self.__dict__.items() if name not in left_out}


def window_scores(
    windows: DocumentWindows, of_windows: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Make the score of each document of those of its windows, (documents,) float64.

    Args:
        windows: how they are made.
        of_windows: the scores of windows, those of a document together, (windows,).
        starts: the place of each document's first window, (documents,).
    """
    return np.round(windows.aggregate(of_windows.astype(np.float64), starts), _DECIMALS)


def _paths(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"starts-{number:05d}.npy", folder / f"vectors-{number:05d}.npy"


def _read(folder: Path, number: int) -> WindowVectors:
    starts, vectors = (
        np.load(path, mmap_mode="r", allow_pickle=False) for path in _paths(folder, number)
    )
    return WindowVectors(vectors, np.asarray(starts))


def _check(docnos: Sequence[str]) -> None:
    for docno in docnos:
        if not docno or any(map(str.isspace, docno)):
            raise HarpError(f"docno {docno!r} is empty or holds white space: name it otherwise")
    if len(set(docnos)) < len(docnos):
        twice = next(docno for docno in docnos if docnos.count(docno) > 1)
        raise HarpError(f"docno {twice!r} stands twice: give each document its own")

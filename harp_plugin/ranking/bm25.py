"""BM25 by PISA, over the documents of a collection."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import pandas as pd
import pyterrier as pt
from tqdm import tqdm

from ..collections.dataset import Dataset
from ..errors import HarpError
from ..options import Count, Fraction, Interval, checked
from ..work.artifact import Artifact, Provenance
from ..work.provenance import INDEX_RULES, package_versions
from ..work.thread_lock import thread_lock
from .base import LazyTransformer
from .frames import check_frame, check_queries, with_cutoff
from .terms import ANALYSIS, STEMMER, STOP_WORDS, plain
from .texts import Documents, column_texts

if TYPE_CHECKING:
    from pyterrier_pisa import PisaRetrieve

__all__ = ["Bm25"]

_Number = Annotated[float, Interval(ge=0)]
_screen_lock = thread_lock()
_saved: list[int] = []
"""The file descriptors of the screen, while it is taken away."""
_screens: list[IO[str]] = []
"""For each thread that has taken it away, the screen."""


@dataclass(eq=False, repr=False)
class Bm25(LazyTransformer):
    """Retrieve by BM25: ``Bm25("irds:vaswani", "indexes")``.

    The index of PISA is made when it is first searched, with Porter's stemmer (version 2) and
    Terrier's stop words. PISA knows words of ASCII letters and digits only. So accents are folded,
    and words of other scripts are written as numbers (`harp_plugin.ranking.terms.plain`).

    Args:
        collection: what is indexed: a `harp_plugin.collections.dataset.Dataset`, a dataset of
            PyTerrier or of ir_datasets, or its id there.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        num_results: results per query.
        algorithm: of PISA, such as ``maxscore``; None for its default. All give the same results,
            except for ties and rounding.
        quiet: show no progress bar.

    Raises:
        HarpError: a number makes no sense, a docno holds white space, PISA fails, or the folder of
            the index holds files that harp did not write.
    """

    schematic = {"label": "BM25", "help_url": None}  # noqa: RUF012

    collection: Documents | Any
    folder: str | PathLike[str]
    _: KW_ONLY
    k1: float = 0.9
    b: float = 0.4
    num_results: int = 1000
    algorithm: str | None = None
    quiet: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("k1", _Number), ("b", Fraction), ("num_results", Count)):
            checked(name, kind, getattr(self, name))

    @property
    def documents(self) -> Documents:
        """What is indexed."""
        if hasattr(self.collection, "documents"):
            return self.collection
        return self._make_once("documents", self.collection, partial(Dataset, self.collection))

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranking depends on, apart from the collection."""
        return {"bm25": {"k1": self.k1, "b": self.b, **ANALYSIS}}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the ranking depends on."""
        return package_versions("harp_plugin", "pyterrier-pisa", "snowballstemmer")

    @property
    def artifact(self) -> Artifact:
        """The index, which may have to be made."""
        key = json.dumps(self.documents.documents_identity), self.folder, self.k1, self.b
        return self._make_once("artifact", key, self._new_artifact)

    def _new_artifact(self) -> Artifact:
        settings = {"collection": self.documents.documents_identity, **self.settings}
        provenance = Provenance(settings, self.versions)
        path = Path(self.folder) / f"bm25-{provenance.key}"
        return Artifact(path, "BM25 index", provenance, INDEX_RULES)

    def make(self) -> None:
        """Make the index if it is missing or damaged."""
        self.artifact.make(self._fill)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query.

        Raises:
            HarpError: a query is no text, which the message names by its qid, a qid is there twice,
                or the index cannot be made.
        """
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp.empty:
            return inp.assign(docno="", score=0.0, rank=0)
        check_frame(inp)
        check_queries(inp)
        key = self.artifact.path, self.algorithm
        retriever = self._make_once("retriever", key, self._new_retriever)
        retriever.num_results = self.num_results
        queries = [plain(query) if isinstance(query, str) else query for query in inp["query"]]
        cleaned = inp.assign(query=pd.Series(queries, inp.index, object), _query=inp["query"])
        column_texts(cleaned, "query")
        with _muted():
            results = retriever.transform(cleaned)
        results["score"] = results["score"].astype(float)
        return results.drop(columns="query").rename(columns={"_query": "query"})

    def _new_retriever(self) -> PisaRetrieve:
        self.make()
        with _muted():
            return self._open(self.artifact.path)

    def _open(self, path: Path) -> PisaRetrieve:
        from pyterrier_pisa import PisaIndex

        pisa = PisaIndex(str(path), stemmer=STEMMER, stops=STOP_WORDS)
        return pisa.bm25(
            k1=self.k1, b=self.b, num_results=self.num_results, query_algorithm=self.algorithm
        )

    def _fill(self, folder: Path) -> None:
        from pyterrier_pisa import PisaIndex

        feed = _DocumentFeed(self.documents)
        options: dict[str, Any] = {"total": self.documents.document_count, "unit": "doc"}
        with _muted() as screen:
            bar = tqdm(feed, "BM25 index", file=screen, disable=self.quiet, **options)
            pisa = PisaIndex(str(folder), text_field="text", stemmer=STEMMER)
            pisa.index(iter(bar))
            feed.check(pisa.num_docs())
            self._open(folder)  # writes the score bounds, which must be whole too

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """Make one transformer of ``self % k``."""
        return with_cutoff(self, k)

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.artifact.path, self.num_results, self.algorithm


class _DocumentFeed:
    """Documents for PISA's indexer, which reads them in a thread and drops that thread's errors."""

    def __init__(self, collection: Documents) -> None:
        self._collection = collection
        self._name = collection.name
        self._error: Exception | None = None
        self._count = 0
        self._has_words = False

    def __iter__(self) -> Iterator[dict[str, str]]:
        try:
            for docno, text in self._collection.documents():
                yield self._record(docno, text)
            if not self._has_words:
                yield {"docno": "0", "text": "0"}  # without any word PISA would end this process
        except Exception as error:
            self._error = error

    def check(self, indexed: int) -> None:
        """Raise what went wrong while PISA read, or HarpError if it indexed another number."""
        if self._error is not None:
            raise self._error
        if not self._count:
            raise HarpError(f"{self._name} has no documents: name another collection")
        if not self._has_words:
            raise HarpError(
                f"no document of {self._name} has a letter or digit: name another collection"
            )
        if indexed != self._count:
            raise HarpError(
                f"PISA indexed {indexed} of {self._count} documents of {self._name}:"
                " check the space on disk and run again"
            )

    def _record(self, docno: str, text: str) -> dict[str, str]:
        if not docno or re.search(r"\s", docno):
            raise HarpError(f"docno {docno!r} of {self._name} is empty or holds white space")
        self._count += 1
        text = plain(text)
        self._has_words = self._has_words or bool(re.search("[A-Za-z0-9]", text))
        return {"docno": docno, "text": text}


@contextlib.contextmanager
def _muted() -> Iterator[IO[str]]:
    """Drop what PISA's C++ code prints; give the screen to progress bars.

    The first thread takes the screen away, and the last one gives it back.
    """
    with _screen_lock:
        if not _screens:
            sys.stdout.flush()
            sys.stderr.flush()
            _saved[:] = os.dup(1), os.dup(2)
            with Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
        screen = os.fdopen(os.dup(_saved[1]), "w")
        _screens.append(screen)
    try:
        yield screen
    finally:
        screen.close()
        with _screen_lock:
            _screens.remove(screen)
            if not _screens:
                for stream, number in zip(_saved, (1, 2), strict=True):
                    os.dup2(stream, number)
                    os.close(stream)

"""BM25 by PISA, over the documents of a collection."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyterrier as pt
from pyterrier_pisa import PisaIndex
from tqdm import tqdm

from ..errors import HarpError
from .collection import Collection

STEMMER = "porter2"
STOP_WORDS = "terrier"


class Bm25(pt.Transformer):
    """BM25 with Porter's stemmer (version 2) and Terrier's stop words, over an index of its own.

    PISA knows words of ASCII letters and digits only. So accents are folded, in documents and
    queries alike, and words of other scripts are not found.

    Args:
        collection: what is indexed, unless ``folder`` holds an index of it already.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        depth: results per query.
        quiet: show no progress bar.

    Raises:
        HarpError: a docno holds white space, or PISA fails.
    """

    schematic = {"label": "BM25", "help_url": None}  # noqa: RUF012

    def __init__(
        self, collection: Collection, folder: Path, *, k1: float, b: float, depth: int, quiet: bool
    ) -> None:
        self.collection = collection
        self.folder = folder
        self.k1 = k1
        self.b = b
        self.depth = depth
        self.quiet = quiet

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranking depends on, apart from the collection."""
        return {
            "bm25": {"k1": self.k1, "b": self.b, "stemmer": STEMMER, "stop words": STOP_WORDS},
            "pyterrier-pisa": version("pyterrier-pisa"),
        }

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query; queries come back as they were given."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp.empty:
            return inp.assign(docno="", score=0.0, rank=0)
        index = self._built()
        cleaned = inp.assign(query=inp["query"].map(plain), _given=inp["query"])
        with _muted(index / "pisa.log"):
            found = self._retriever(index).transform(cleaned)
        found["score"] = found["score"].astype(float)
        return found.drop(columns="query").rename(columns={"_given": "query"})

    def _retriever(self, index: Path) -> pt.Transformer:
        pisa = PisaIndex(str(index), stemmer=STEMMER, stops=STOP_WORDS)
        return pisa.bm25(k1=self.k1, b=self.b, num_results=self.depth)

    def _built(self) -> Path:
        identity = {k: v for k, v in self.collection.identity.items() if k != "topics"}
        content = json.dumps([identity, self.settings]).encode()
        key = hashlib.sha256(content).hexdigest()[:12]
        index = self.folder / f"{re.sub(r'[^a-z0-9]+', '-', self.collection.name)}-{key}"
        if not index.is_dir():
            self._build(index)
        return index

    def _build(self, index: Path) -> None:
        temporary = index.with_name(f"{index.name}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        feed = Feed(self.collection)
        with _muted(temporary / "pisa.log") as screen:
            bar = tqdm(
                feed,
                desc=f"index {self.collection.name}",
                unit="doc",
                total=self.collection.count,
                disable=self.quiet,
                file=screen,
            )
            pisa = PisaIndex(str(temporary), text_field="text", stemmer=STEMMER)
            pisa.index(iter(bar))
            feed.check(pisa.num_docs())
            self._retriever(temporary)  # writes the score bounds, which must be whole too
        temporary.rename(index)


class Feed:
    """Documents for PISA's indexer, which reads them in a thread and drops that thread's errors."""

    def __init__(self, collection: Collection) -> None:
        self._documents = collection.documents()
        self._first = next(self._documents, None)
        self._name = collection.name
        self._error: Exception | None = None
        self._count = 0
        if self._first is None:
            raise HarpError(f"dataset {collection.name} has no documents: name another")

    def __iter__(self) -> Iterator[dict[str, str]]:
        try:
            yield self._record(*self._first)  # type: ignore[misc]
            for docno, text in self._documents:
                yield self._record(docno, text)
        except Exception as error:
            self._error = error

    def check(self, indexed: int) -> None:
        """Raise what went wrong while PISA read, or HarpError if it indexed another number."""
        if self._error is not None:
            raise self._error
        if indexed != self._count:
            raise HarpError(
                f"PISA indexed {indexed} of {self._count} documents of {self._name}:"
                " check the space on disk and run again"
            )

    def _record(self, docno: str, text: str) -> dict[str, str]:
        if not docno or re.search(r"\s", docno):
            raise HarpError(f"docno {docno!r} of {self._name} is empty or holds white space")
        self._count += 1
        return {"docno": docno, "text": plain(text)}


def plain(text: str) -> str:
    """Fold accents and blank out what PISA cannot read, such as NUL or half a surrogate pair."""
    if not text.isascii():
        text = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
        text = re.sub(r"[^\x00-\x7f]", " ", text)
    return text.replace("\0", " ")


@contextlib.contextmanager
def _muted(log: Path) -> Iterator[IO[str]]:
    """Send what PISA's C++ code prints to a file; give the screen to progress bars."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        with os.fdopen(os.dup(saved[1]), "w") as screen:
            yield screen
    finally:
        for stream, number in zip(saved, (1, 2), strict=True):
            os.dup2(stream, number)
            os.close(stream)

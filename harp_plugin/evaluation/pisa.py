"""BM25 by PISA, over the documents of a collection."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyterrier as pt
from filelock import FileLock
from pyterrier_pisa import PisaIndex
from tqdm import tqdm

from ..collections.judged_dataset import JudgedDataset
from ..errors import HarpError
from ..files.hashes import changed_file, describe_files
from ..files.records import read_record, write_record
from ..files.versions import package_versions
from ..files.writing import remove_temporary_of, whole_folder

__all__ = ["Bm25", "DocumentFeed", "plain"]

_STEMMER = "porter2"
_STOP_WORDS = "terrier"
_RECORD = "harp_index.json"
_LOG = "pisa.log"

logger = logging.getLogger(__name__)


class Bm25(pt.Transformer):
    """BM25 with Porter's stemmer (version 2) and Terrier's stop words, over an index of its own.

    PISA knows words of ASCII letters and digits only. So accents are folded, in documents and
    queries alike, and words of other scripts are not found. An index is checked when it is opened;
    a damaged one is built anew.

    Args:
        collection: what is indexed, unless ``folder`` holds an index of it already.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        depth: results per query.
        quiet: show no progress bar.

    Raises:
        HarpError: a docno holds white space, PISA fails, or there is something else in the place
            of the index.
    """

    schematic = {"label": "BM25", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        collection: JudgedDataset,
        folder: Path,
        *,
        k1: float,
        b: float,
        depth: int,
        quiet: bool,
    ) -> None:
        self.collection = collection
        self.folder = folder
        self.k1 = k1
        self.b = b
        self.depth = depth
        self.quiet = quiet
        self._checked: Path | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranking depends on, apart from the collection."""
        return {
            "bm25": {"k1": self.k1, "b": self.b, "stemmer": _STEMMER, "stop words": _STOP_WORDS},
        }

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the ranking depends on."""
        return package_versions("harp_plugin", "pyterrier-pisa")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query; queries come back as they were given."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp.empty:
            return inp.assign(docno="", score=0.0, rank=0)
        index = self._index()
        cleaned = inp.assign(query=inp["query"].map(plain), _query_as_given=inp["query"])
        with _muted(index / _LOG):
            results = self._retriever(index).transform(cleaned)
        results["score"] = results["score"].astype(float)
        return results.drop(columns="query").rename(columns={"_query_as_given": "query"})

    def _retriever(self, index: Path) -> pt.Transformer:
        pisa = PisaIndex(str(index), stemmer=_STEMMER, stops=_STOP_WORDS)
        return pisa.bm25(k1=self.k1, b=self.b, num_results=self.depth)

    def _index(self) -> Path:
        """Give the index's folder; build it if it is missing or damaged, one process at a time."""
        if self._checked is None:
            index = self.folder / self._name
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f".{index.name}.lock"):
                if index.is_symlink() or index.exists():
                    self._remove_if_damaged(index)
                if not index.exists():
                    self._build(index)
            self._checked = index
        return self._checked

    @property
    def _made_from(self) -> dict[str, Any]:
        identity = {k: v for k, v in self.collection.identity.items() if k != "topics"}
        return {"collection": identity, **self.settings, "versions": self.versions}

    @property
    def _name(self) -> str:
        key = hashlib.sha256(json.dumps(self._made_from).encode()).hexdigest()[:12]
        return f"{re.sub(r'[^a-z0-9]+', '-', self.collection.name)}-{key}"

    def _remove_if_damaged(self, index: Path) -> None:
        record = self._read_record(index)
        if damage := changed_file(index, record["files"]):
            logger.warning("%s: the index is built anew", damage)
            for name in (*record["files"], _RECORD, _LOG):
                (index / name).unlink(missing_ok=True)
            try:
                index.rmdir()
            except OSError:
                raise HarpError(
                    f"{index} holds files that harp has not written: move it away"
                ) from None

    def _read_record(self, index: Path) -> dict[str, Any]:
        """Read what was built there.

        Raises:
            HarpError: harp did not build it, or the record is damaged.
        """
        advice = "it is no index of harp's, or damaged: move it away or delete it"
        if index.is_symlink() or not (index / _RECORD).is_file():
            raise HarpError(f"{index}: {advice}")
        try:
            record = read_record(index / _RECORD)
        except HarpError as error:
            raise HarpError(f"{error}: {advice}") from error
        if record.get("made_from") != json.loads(json.dumps(self._made_from)):
            raise HarpError(f"{index}: {advice}")
        return record

    def _build(self, index: Path) -> None:
        remove_temporary_of(index)
        with whole_folder(index) as temporary:
            temporary.mkdir()
            self._fill(temporary)
            names = [path.name for path in temporary.iterdir() if path.name != _LOG]
            record = {"made_from": self._made_from, "files": describe_files(temporary, names)}
            write_record(temporary / _RECORD, record)

    def _fill(self, temporary: Path) -> None:
        feed = DocumentFeed(self.collection)
        with _muted(temporary / _LOG) as screen:
            bar = tqdm(
                feed,
                desc=f"index {self.collection.name}",
                unit="doc",
                total=self.collection.document_count,
                disable=self.quiet,
                file=screen,
            )
            pisa = PisaIndex(str(temporary), text_field="text", stemmer=_STEMMER)
            pisa.index(iter(bar))
            feed.check(pisa.num_docs())
            self._retriever(temporary)  # writes the score bounds, which must be whole too


class DocumentFeed:
    """Documents for PISA's indexer, which reads them in a thread and drops that thread's errors."""

    def __init__(self, collection: JudgedDataset) -> None:
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

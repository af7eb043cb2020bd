"""An index of BM25 by PISA, in a folder with a record of what it was made from."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any

from filelock import FileLock
from pyterrier_pisa import PisaIndex, PisaRetrieve
from tqdm import tqdm

from ..errors import HarpError
from ..files.hashes import changed_file, describe_files
from ..files.records import read_record, write_record
from ..files.versions import package_versions
from ..files.writing import remove_temporary_of, whole_folder
from .pisa import DocumentFeed, Documents, muted

__all__ = ["PISA_LOG", "Bm25Index"]

PISA_LOG = "pisa.log"
"""File name in an index of what PISA prints."""
_STEMMER = "porter2"
_STOP_WORDS = "terrier"
_RECORD = "harp_index.json"

logger = logging.getLogger(__name__)


class Bm25Index:
    """Documents indexed with Porter's stemmer (version 2) and Terrier's stop words.

    PISA knows words of ASCII letters and digits only. So accents are folded, in documents and
    queries alike, and words of other scripts are not found.

    Args:
        collection: what is indexed, unless ``folder`` holds an index of it already.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        quiet: show no progress bar.
    """

    def __init__(
        self, collection: Documents, folder: Path, *, k1: float, b: float, quiet: bool
    ) -> None:
        self.collection = collection
        self.folder = folder
        self.k1 = k1
        self.b = b
        self.quiet = quiet

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

    @property
    def path(self) -> Path:
        """The folder of this index."""
        key = hashlib.sha256(json.dumps(self._made_from).encode()).hexdigest()[:12]
        return self.folder / f"{re.sub(r'[^a-z0-9]+', '-', self.collection.name)}-{key}"

    def make(self) -> None:
        """Build the index if it is missing or damaged, one process at a time.

        Raises:
            HarpError: a docno holds white space, PISA fails, or there is something else in the
                place of the index.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / f".{self.path.name}.lock"):
            if self.path.is_symlink() or self.path.exists():
                self._remove_if_damaged()
            if not self.path.exists():
                self._build()

    def retriever(self, depth: int, algorithm: str | None = None) -> PisaRetrieve:
        """Return the transformer that retrieves from the index, which must have been made.

        Args:
            depth: results per query.
            algorithm: of PISA, such as ``maxscore``; None for its default. All give the same
                results, except for ties and rounding.
        """
        return self._retriever(self.path, depth, algorithm)

    def remove(self) -> None:
        """Remove the index, if it is there and harp wrote it.

        Raises:
            HarpError: its folder holds something else.
        """
        remove_temporary_of(self.path)
        if self.path.exists():
            self._remove_files(self._read_record())

    def _retriever(self, path: Path, depth: int, algorithm: str | None = None) -> PisaRetrieve:
        pisa = PisaIndex(str(path), stemmer=_STEMMER, stops=_STOP_WORDS)
        return pisa.bm25(k1=self.k1, b=self.b, num_results=depth, query_algorithm=algorithm)

    @property
    def _made_from(self) -> dict[str, Any]:
        identity = self.collection.identity
        return {"collection": identity, **self.settings, "versions": self.versions}

    def _remove_if_damaged(self) -> None:
        record = self._read_record()
        if damage := changed_file(self.path, record["files"]):
            logger.warning("%s: the index is built anew", damage)
            self._remove_files(record)

    def _remove_files(self, record: dict[str, Any]) -> None:
        for name in (*record["files"], _RECORD, PISA_LOG):
            (self.path / name).unlink(missing_ok=True)
        try:
            self.path.rmdir()
        except OSError:
            raise HarpError(
                f"{self.path} holds files that harp has not written: move it away"
            ) from None

    def _read_record(self) -> dict[str, Any]:
        """Read what was built there.

        Raises:
            HarpError: harp did not build it, or the record is damaged.
        """
        advice = "it is no index of harp's, or damaged: move it away or delete it"
        if self.path.is_symlink() or not (self.path / _RECORD).is_file():
            raise HarpError(f"{self.path}: {advice}")
        try:
            record = read_record(self.path / _RECORD)
        except HarpError as error:
            raise HarpError(f"{error}: {advice}") from error
        if record.get("made_from") != json.loads(json.dumps(self._made_from)):
            raise HarpError(f"{self.path}: {advice}")
        return record

    def _build(self) -> None:
        remove_temporary_of(self.path)
        with whole_folder(self.path) as temporary:
            temporary.mkdir()
            self._fill(temporary)
            names = [path.name for path in temporary.iterdir() if path.name != PISA_LOG]
            record = {"made_from": self._made_from, "files": describe_files(temporary, names)}
            write_record(temporary / _RECORD, record)

    def _fill(self, temporary: Path) -> None:
        feed = DocumentFeed(self.collection)
        with muted(temporary / PISA_LOG) as screen:
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
            self._retriever(temporary, 1)  # writes the score bounds, which must be whole too

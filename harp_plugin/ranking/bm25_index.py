"""An index of BM25 by PISA."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyterrier_pisa import PisaIndex, PisaRetrieve
from tqdm import tqdm

from ..work.versions import package_versions
from .index_folder import IndexFolder
from .pisa import DocumentFeed, Documents, muted
from .terms import STEMMER, STOP_WORDS

__all__ = ["PISA_LOG", "Bm25Index"]

PISA_LOG = "pisa.log"
"""File name in an index of what PISA prints."""


class Bm25Index(IndexFolder):
    """Documents indexed with Porter's stemmer (version 2) and Terrier's stop words.

    PISA knows words of ASCII letters and digits only. So accents are folded, in documents and
    queries alike, and words of other scripts are not found.

    Args:
        collection: what is indexed, unless ``folder`` holds an index of it already.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        quiet: show no progress bar.
    """

    kind = "bm25"
    own = re.compile(rf"fwd(\.\w+)?|inv\.\w+|bm25\..+|pt_meta\.json|{re.escape(PISA_LOG)}")
    unlisted = (PISA_LOG,)

    def __init__(
        self, collection: Documents, folder: Path, *, k1: float, b: float, quiet: bool
    ) -> None:
        super().__init__(folder)
        self.collection = collection
        self.k1 = k1
        self.b = b
        self.quiet = quiet

    @property
    def made_from(self) -> dict[str, Any]:
        """The collection, the settings and the versions."""
        identity = self.collection.identity
        return {"collection": identity, **self.settings, "versions": self.versions}

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranking depends on, apart from the collection."""
        return {
            "bm25": {"k1": self.k1, "b": self.b, "stemmer": STEMMER, "stop words": STOP_WORDS},
        }

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the ranking depends on."""
        return package_versions("harp_plugin", "pyterrier-pisa")

    def retriever(self, depth: int, algorithm: str | None = None) -> PisaRetrieve:
        """Return the transformer that retrieves from the index, which must have been made.

        Args:
            depth: results per query.
            algorithm: of PISA, such as ``maxscore``; None for its default. All give the same
                results, except for ties and rounding.
        """
        return self._retriever(self.path, depth, algorithm)

    def _retriever(self, path: Path, depth: int, algorithm: str | None = None) -> PisaRetrieve:
        pisa = PisaIndex(str(path), stemmer=STEMMER, stops=STOP_WORDS)
        return pisa.bm25(k1=self.k1, b=self.b, num_results=depth, query_algorithm=algorithm)

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
            pisa = PisaIndex(str(temporary), text_field="text", stemmer=STEMMER)
            pisa.index(iter(bar))
            feed.check(pisa.num_docs())
            self._retriever(temporary, 1)  # writes the score bounds, which must be whole too

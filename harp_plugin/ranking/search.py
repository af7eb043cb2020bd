"""Search in a folder of `harp adapt`: its pipeline, with titles, snippets and addresses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ..collections.dataset import Dataset
from ..collections.datasets import PREFIX
from ..errors import HarpError
from ..text import WORD, Snippet, has_surrogates, snippet
from .frames import first_stage_order
from .fusion import observed_systems
from .pipeline import HarpPipeline
from .terms import content_terms

__all__ = ["FolderSearch", "SearchResult"]

_COLLECTION = "collection"
_SAFE = "/!$&'()*+,;=:@~"  # in the path of an address, besides letters and digits


@dataclass(frozen=True)
class SearchResult:
    """A page that a search found.

    Attributes:
        rank: from 1.
        title: of the page.
        address: of the page.
        docno: its id in the collection.
        score: that the pipeline gives it.
        snippet: the passage that shares most words with the query.
        ranks: from 1, by the names of those systems of the pipeline that found it.
    """

    rank: int
    title: str
    address: str
    docno: str
    score: float
    snippet: Snippet
    ranks: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON types; ``marks`` are where words of the query stand."""
        return {**asdict(self), "snippet": self.snippet.text, "marks": self.snippet.marks}


class FolderSearch:
    """The search of a folder that `harp adapt` wrote.

    Args:
        folder: the folder.
        base: what stands before the name of a page in its address.

    Raises:
        HarpError: the folder has no pipeline or no collection, or the pipeline cannot be loaded.
    """

    def __init__(self, folder: str | PathLike[str], base: str = "") -> None:
        self.pipeline = HarpPipeline.load(folder)
        collection = f"{PREFIX}{Path(folder) / _COLLECTION}"
        self._titles, self._texts = (Dataset(collection, [field]) for field in ("title", "text"))
        self._titles.check()
        self._base = base

    def search(self, query: str, results: int) -> list[SearchResult]:
        """Find the best pages for a query.

        Args:
            query: in words.
            results: the most that are returned.

        Raises:
            HarpError: the query has no word, or is not valid Unicode.
        """
        if not WORD.search(query):
            raise HarpError(f"the query {query!r:.60} has no word: write what you look for")
        if has_surrogates(query):
            raise HarpError(f"the query {query!r:.60} is not valid Unicode: write it anew")
        with observed_systems() as systems:
            frame = self.pipeline.search(query).sort_values("rank", kind="stable").head(results)
        ranks = {
            name: {docno: n for n, docno in enumerate(run["docno"].iloc[first_stage_order(run)], 1)}
            for name, run in systems.items()
        }
        docnos = frame["docno"].tolist()
        titles, texts = self._titles.texts(docnos), self._texts.texts(docnos)
        wanted = [word for word in WORD.findall(query) if not word.isascii() or content_terms(word)]
        return [
            SearchResult(
                rank=number,
                title=titles[docno],
                address=f"{self._base}{quote(unquote(docno), _SAFE)}" if self._base else docno,
                docno=docno,
                score=float(score),
                snippet=snippet(" ".join(wanted) or query, texts[docno]),
                ranks={name: of[docno] for name, of in ranks.items() if docno in of},
            )
            for number, (docno, score) in enumerate(zip(docnos, frame["score"], strict=True), 1)
        ]

"""The texts by which hard negatives are retrieved, and the documents of a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import HarpError
from ..tasks.registry import TASKS
from ..work.manifest import read_content
from ..work.mapped import lazy_table, open_table

__all__ = ["QUERIES", "BuildTexts", "needed_queries"]

QUERIES = {"anchor_texts": "anchor text", "sentences": "sentence", "pages": "page"}
"""The tables of hard negatives, and what a row is for: a distinct anchor text, a sentence with
links to two pages or more, a document."""
_PAGE_WORDS = 64
_BATCH = 512


def needed_queries(tasks: Sequence[str]) -> list[str]:
    """List what the tasks retrieve hard negatives by, in the order of `QUERIES`.

    Raises:
        HarpError: a task is unknown, or none of them draws other pages.
    """
    wanted = {getattr(TASKS[task], "negative_queries", None) for task in tasks}
    queries = [name for name in QUERIES if name in wanted]
    if not queries:
        raise HarpError(
            f"no task of {', '.join(tasks)} draws other pages as negatives: leave out --negatives, "
            "or name another task"
        )
    return queries


class BuildTexts:
    """Texts of queries and of documents of a build with finished corpus and graph stages.

    It is what an index takes for documents: `harp_plugin.ranking.texts.Documents`.

    Args:
        directory: the folder of the build.
    """

    name = "documents"
    _anchor_texts = lazy_table("graph", "anchor_texts", "id", "normalized")
    _sentences = lazy_table("corpus", "sentences", "id", "text")
    _pages = lazy_table("corpus", "pages", "id", "title", "lead")

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def documents_identity(self) -> dict[str, Any]:
        """The content of the stages that the documents come from."""
        return read_content(self.directory, "corpus", "graph")

    @property
    def document_count(self) -> int:
        """The number of documents."""
        return len(self.document_ids)

    @cached_property
    def document_ids(self) -> np.ndarray:
        """The ids of all documents, ascending, int64 of shape (documents,)."""
        return open_table(self.directory, "graph", "documents").ids

    def documents(self) -> Iterator[tuple[str, str]]:
        """Give the id and the text of every document, in the order of their ids."""
        for first in range(0, self.document_count, _BATCH):
            ids = self.document_ids[first : first + _BATCH]
            yield from zip(map(str, ids), self.document_texts(ids), strict=True)

    def document_texts(self, ids: np.ndarray) -> list[str]:
        """Make the texts of documents: the title and the lead."""
        columns = (column.to_pylist() for column in self._pages.columns(ids, "title", "lead"))
        return [f"{title} {lead}" for title, lead in zip(*columns, strict=True)]

    def ids(self, queries: str) -> np.ndarray:
        """The ids of all queries of one of `QUERIES`, ascending, int64 of shape (queries,)."""
        if queries == "anchor_texts":
            return self._anchor_texts.ids
        if queries == "pages":
            return self.document_ids
        sentences = open_table(self.directory, "graph", "sentence_anchors")
        [targets] = sentences.columns(sentences.ids, "targets")
        return sentences.ids[targets.to_numpy() >= 2]

    def queries(self, queries: str, ids: np.ndarray) -> list[str]:
        """Make the texts of queries of one of `QUERIES`; of a page, its title and first words."""
        if queries == "pages":
            words = (text.split(None, _PAGE_WORDS) for text in self.document_texts(ids))
            return [" ".join(beginning[:_PAGE_WORDS]) for beginning in words]
        table = self._anchor_texts if queries == "anchor_texts" else self._sentences
        column = "normalized" if queries == "anchor_texts" else "text"
        return table.columns(ids, column)[0].to_pylist()

    def open(self, queries: str) -> None:
        """Open all that the texts of queries and documents are read from."""
        self.queries(queries, self.ids(queries)[:1])
        self.document_texts(self.document_ids[:1])

"""An ir_datasets collection: topics, judgements, document texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from ..errors import HarpError
from . import encyclopedia
from .documents import Documents, reading


class Collection:
    """A dataset with documents, queries and judgements.

    Args:
        name: its ir_datasets id.
        fields: the document fields that make up a text, joined by a space; by default the text
            that the dataset itself recommends.

    Attributes:
        topics: columns qid, query: those with a judgement, in the dataset's order.
        qrels: columns qid, docno, label.

    Raises:
        HarpError: the dataset is unknown, lacks what an evaluation needs, has no such field, or
            cannot be downloaded.
    """

    def __init__(self, name: str, fields: Sequence[str] | None = None) -> None:
        self.name = name
        self.fields = fields
        self._documents = Documents(name, fields)
        self._dataset = self._documents.dataset
        self._documents.check_judged()
        with reading(self.name):
            self.qrels = pd.DataFrame(
                [(q.query_id, q.doc_id, q.relevance) for q in self._dataset.qrels_iter()],
                columns=["qid", "docno", "label"],
            )
            topics = [(q.query_id, q.default_text()) for q in self._dataset.queries_iter()]
        judged = set(self.qrels["qid"])
        self.topics = pd.DataFrame(
            [topic for topic in topics if topic[0] in judged], columns=["qid", "query"]
        )
        if self.topics.empty:
            raise HarpError(f"dataset {name}: none of its {len(topics)} queries has a judgement")

    def documents(self) -> Iterator[tuple[str, str]]:
        """Every document as (docno, text)."""
        return self._documents.all()

    def texts(self, docnos: Iterable[str]) -> dict[str, str]:
        """The texts of some documents.

        Raises:
            HarpError: one is not in the collection.
        """
        wanted = set(docnos)
        texts = self._documents.found(wanted)
        missing = sorted(wanted - set(texts))
        if missing:
            raise HarpError(
                f"{len(missing)} retrieved documents are not in dataset {self.name},"
                f" such as {missing[0]!r}: check that the first stage is of this collection"
            )
        return texts

    def scored_documents(self) -> pd.DataFrame | None:
        """Columns qid, docno, score of the dataset's own first stage; None if it has none."""
        if not self._dataset.has("scoreddocs"):
            return None
        with reading(self.name):
            return pd.DataFrame(
                [(s.query_id, s.doc_id, s.score) for s in self._dataset.scoreddocs_iter()],
                columns=["qid", "docno", "score"],
            )

    @property
    def count(self) -> int | None:
        """How many documents there are, where that is known without reading them."""
        with reading(self.name):
            return self._dataset.docs_count()

    @property
    def identity(self) -> dict[str, Any]:
        """What a run depends on: the dataset, the fields of a text, and the queries."""
        topics = self.topics.to_csv(index=False).encode("utf-8", "surrogatepass")
        ours = self.name == encyclopedia.NAME
        return {
            "dataset": self.name,
            "documents": encyclopedia.content_hash() if ours else None,
            "fields": self.fields,
            "topics": hashlib.sha256(topics).hexdigest(),
        }

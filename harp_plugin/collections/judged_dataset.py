"""A dataset of ir_datasets with judged queries, as frames that PyTerrier reads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ..errors import HarpError
from .dataset import Dataset

__all__ = ["JudgedDataset"]


class JudgedDataset(Dataset):
    """A dataset with documents, queries and judgments.

    Args:
        name: its ir_datasets id.
        fields: the document fields that make up a text, joined by a space; by default the text
            that the dataset itself recommends.

    Attributes:
        topics: columns qid, query: those with a judgment, in the dataset's order.
        qrels: columns qid, docno, label.

    Raises:
        HarpError: the dataset is unknown, lacks what an evaluation needs, has no such field, or
            cannot be downloaded.
    """

    def __init__(self, name: str, fields: Sequence[str] | None = None) -> None:
        super().__init__(name, fields)
        self.check("queries", "qrels")
        self.qrels = pd.DataFrame(self.judgments(), columns=["qid", "docno", "label"])
        queries = self.queries()
        judged = set(self.qrels["qid"])
        self.topics = pd.DataFrame(
            [topic for topic in queries.items() if topic[0] in judged], columns=["qid", "query"]
        )
        if self.topics.empty:
            raise HarpError(f"dataset {name}: none of its {len(queries)} queries has a judgment")

    def with_texts(self, run: pd.DataFrame) -> pd.DataFrame:
        """Add the columns query and text to a run of the topics.

        Raises:
            HarpError: a document is not in the dataset.
        """
        queries = self.topics.set_index("qid")["query"]
        texts = self.texts(run["docno"])
        return run.assign(query=run["qid"].map(queries), text=run["docno"].map(texts))

    @property
    def identity(self) -> dict[str, Any]:
        """What a run depends on: the dataset, the fields of a text, and the queries."""
        topics = self.topics.to_csv(index=False).encode("utf-8", "surrogatepass")
        return {
            "dataset": self.name,
            "documents": self.documents_hash,
            "fields": self.fields,
            "topics": hashlib.sha256(topics).hexdigest(),
        }

"""An ir_datasets collection: topics, judgements, document texts."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ir_datasets
import pandas as pd

from ..errors import HarpError
from . import encyclopedia


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
        encyclopedia.register()
        with self._reading():
            try:
                self._dataset = ir_datasets.load(name)
            except KeyError:
                raise HarpError(
                    f"unknown dataset {name!r}: ids are listed on https://ir-datasets.com"
                ) from None
        for part in ("docs", "queries", "qrels"):
            if not self._dataset.has(part):
                raise HarpError(f"dataset {name} has no {part}: name a judged subset of it")
        self._check_fields()
        with self._reading():
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
        with self._reading():
            for document in self._dataset.docs_iter():
                yield document.doc_id, self._text(document)

    def texts(self, docnos: Iterable[str]) -> dict[str, str]:
        """The texts of some documents.

        Raises:
            HarpError: one is not in the collection.
        """
        wanted = set(docnos)
        with self._reading():
            found = self._dataset.docs_store().get_many_iter(wanted)
            texts = {document.doc_id: self._text(document) for document in found}
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
        with self._reading():
            return pd.DataFrame(
                [(s.query_id, s.doc_id, s.score) for s in self._dataset.scoreddocs_iter()],
                columns=["qid", "docno", "score"],
            )

    @property
    def count(self) -> int | None:
        """How many documents there are, where that is known without reading them."""
        with self._reading():
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

    def _text(self, document: Any) -> str:
        if self.fields is None:
            return document.default_text()
        return " ".join(getattr(document, field) for field in self.fields)

    def _check_fields(self) -> None:
        document = self._dataset.docs_cls()
        known = [name for name in document._fields if document.__annotations__[name] is str]
        unknown = [name for name in self.fields or () if name not in known]
        if unknown:
            raise HarpError(
                f"documents of {self.name} have no text field {unknown[0]!r}:"
                f" they have {', '.join(known)}"
            )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever ir_datasets raises, such as a failed download, into one line."""
        try:
            yield
        except (HarpError, GeneratorExit):
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise HarpError(f"cannot read dataset {self.name}: {reason}") from error

"""Datasets of ir_datasets: queries, judgments, scored documents and documents' texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, get_type_hints

import pandas as pd

from ..errors import HarpError
from ..work.thread_lock import thread_lock
from .judged_queries import check_judgments
from .run import ScoredDocument

__all__ = ["Dataset", "JudgedDataset"]

_one_reader = thread_lock()


class Dataset:
    """A dataset of ir_datasets, opened when something is first read.

    Each process opens files of its own. Threads wait for each other when they look texts up,
    because files of ir_datasets can be read by one thread at a time. Whatever ir_datasets raises,
    such as a failed download, becomes a HarpError of one line.

    Args:
        dataset: an ir_datasets id (``irds:`` before it or not), ``harp-encyclopedia`` and test
            collections, such as ``harp:FOLDER/test``, among them; or a dataset of ir_datasets or
            of PyTerrier.
        fields: the document fields that make up a text, joined by a space; None for the text that
            the dataset itself recommends.

    Raises:
        HarpError: on reading, the dataset is unknown, lacks what is asked for, or cannot be read.
    """

    def __init__(self, dataset: Any, fields: Sequence[str] | None = None) -> None:
        self.fields = fields
        if hasattr(dataset, "irds_ref"):  # one of PyTerrier
            dataset = dataset.irds_ref()
        self._named = dataset.removeprefix("irds:") if isinstance(dataset, str) else dataset
        self._store: tuple[int, Any] | None = None

    @property
    def name(self) -> Any:
        """The dataset's id, or the dataset itself where it has none."""
        if isinstance(self._named, str) or not hasattr(self._named, "dataset_id"):
            return self._named
        return self._named.dataset_id()

    def has(self, part: str) -> bool:
        """Return whether there are ``docs``, ``queries``, ``qrels`` or ``scoreddocs``."""
        return self._dataset.has(part)

    def check(self, *parts: str) -> None:
        """Check that there are documents with the fields, and further parts.

        Args:
            parts: as in `has`.

        Raises:
            HarpError: a part is missing, or a field is not a text of the documents.
        """
        self._require("docs", *parts)
        texts = self.text_fields
        if unknown := [name for name in self.fields or () if name not in texts]:
            raise HarpError(
                f"documents of {self.name} have no text field {unknown[0]!r}: they have "
                f"{', '.join(texts)}"
            )

    def queries(self) -> dict[str, str]:
        """The text of each query, by its id."""
        self._require("queries")
        with self._reading():
            return {query.query_id: query.default_text() for query in self._dataset.queries_iter()}

    def judgments(self) -> Iterator[tuple[str, str, int]]:
        """Every judgment, in the dataset's order: ids of query and document, and the label."""
        self._require("qrels")
        with self._reading():
            for qrel in self._dataset.qrels_iter():
                yield qrel.query_id, qrel.doc_id, qrel.relevance

    def scored_documents(self) -> Iterator[ScoredDocument]:
        """Every result of the dataset's own first stage."""
        self._require("scoreddocs")
        with self._reading():
            for scored in self._dataset.scoreddocs_iter():
                yield ScoredDocument(scored.query_id, scored.doc_id, scored.score)

    @property
    def document_count(self) -> int | None:
        """The number of documents, where it is known without reading them."""
        with self._reading():
            return self._dataset.docs_count()

    @property
    def documents_hash(self) -> str | None:
        """The hash of the documents, where they are files of a user or of this package.

        None for the collections of ir_datasets, which do not change.
        """
        with self._reading():
            make_hash = getattr(self._dataset.docs_handler(), "content_hash", None)
            return None if make_hash is None else make_hash()

    def documents(self) -> Iterator[tuple[str, str]]:
        """Every document's id and text."""
        with self._reading():
            for document in self._dataset.docs_iter():
                yield document.doc_id, self._text(document)

    @property
    def text_fields(self) -> list[str]:
        """Names of the fields of a document that hold a text, its id among them."""
        with self._reading():
            document = self._dataset.docs_cls()
        types = get_type_hints(document)
        return [name for name in document._fields if types[name] is str]

    def documents_by_field(self, fields: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Every document's id and its texts, one for each field."""
        with self._reading():
            for document in self._dataset.docs_iter():
                yield document.doc_id, [getattr(document, field) for field in fields]

    @property
    def documents_identity(self) -> dict[str, Any]:
        """What an index of the documents depends on: their content and the fields of a text.

        The content is named by `documents_hash`, or by an id of ir_datasets that all datasets with
        the same documents share, such as ``wikir/en1k`` for ``wikir/en1k/test``.
        """
        import ir_datasets

        with self._reading():
            content = self.documents_hash or ir_datasets.docs_parent_id(self.name)
        return {"documents": content, "fields": self.fields}

    def texts(self, documents: Iterable[str]) -> dict[str, str]:
        """The texts of documents, by id.

        Raises:
            HarpError: a document is not in the dataset.
        """
        ids = list(documents)
        texts = self.existing_texts(ids)
        if missing := list(dict.fromkeys(id for id in ids if id not in texts)):
            others = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
            raise HarpError(
                f"document {missing[0]!r} is not in dataset {self.name}{others}: check that the "
                "run or the first stage is of this collection"
            )
        return texts

    def existing_texts(self, documents: Iterable[str]) -> dict[str, str]:
        """The texts of those documents that are in the dataset, by id."""
        # A forked worker must not share its parent's open files.
        with _one_reader, self._reading():
            if self._store is None or self._store[0] != os.getpid():
                self._store = os.getpid(), self._dataset.docs_store()
            stored = self._store[1].get_many_iter(set(documents))
            return {document.doc_id: self._text(document) for document in stored}

    @cached_property
    def _dataset(self) -> Any:
        if not isinstance(self._named, str):
            return self._named
        import ir_datasets

        with self._reading():
            try:
                return ir_datasets.load(self._named)
            except HarpError:
                raise
            except KeyError:
                raise HarpError(
                    f"unknown dataset {self._named!r}: ids are listed on https://ir-datasets.com"
                ) from None

    def _require(self, *parts: str) -> None:
        for part in parts:
            if not self.has(part):
                raise HarpError(
                    f"dataset {self.name} has no {part}: name one, or a subset of it, that has "
                    f"{', '.join(parts)}"
                )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except HarpError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise HarpError(f"cannot read dataset {self.name}: {reason}") from error

    def _text(self, document: Any) -> str:
        if self.fields is None:
            return document.default_text()
        return " ".join(getattr(document, field) for field in self.fields)

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_store": None}
        state.pop("_dataset", None)
        return state


class JudgedDataset(Dataset):
    """A dataset with documents, queries and judgments, as frames that PyTerrier reads.

    Args:
        name: its ir_datasets id, or a dataset of ir_datasets.
        fields: the document fields that make up a text, joined by a space; by default the text
            that the dataset itself recommends.

    Attributes:
        topics: columns qid, query: those with a judgment, in the dataset's order.
        qrels: columns qid, docno, label; each judgment once.

    Raises:
        HarpError: the dataset is unknown, lacks what an evaluation needs, has no such field, cannot
            be downloaded, or judges a document twice for a query, differently.
    """

    def __init__(self, name: Any, fields: Sequence[str] | None = None) -> None:
        super().__init__(name, fields)
        self.check("queries", "qrels")
        qrels = pd.DataFrame(self.judgments(), columns=["qid", "docno", "label"])
        self.qrels = qrels.drop_duplicates(ignore_index=True)
        check_judgments(self.qrels, f"dataset {self.name}: ")
        queries = self.queries()
        judged = set(self.qrels["qid"])
        self.topics = pd.DataFrame(
            [topic for topic in queries.items() if topic[0] in judged], columns=["qid", "query"]
        )
        if self.topics.empty:
            raise HarpError(
                f"dataset {self.name}: none of its {len(queries)} queries has a judgment"
            )

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
        return {
            "dataset": self.name,
            "documents": self.documents_hash,
            "fields": self.fields,
            "topics": _frame_hash(self.topics),
        }

    @property
    def judgments_hash(self) -> str:
        """A text that changes with the judgments, which measures depend on besides."""
        return _frame_hash(self.qrels)

    def other_queries(self, option: str, name: str) -> JudgedDataset:
        """Open a dataset whose queries this one's results are learnt from.

        Args:
            option: that names the dataset, for errors.
            name: its ir_datasets id.

        Raises:
            HarpError: it has a query of this dataset, on which what is learnt is tested.
        """
        other = JudgedDataset(name, self.fields)
        shared = other.topics.merge(self.topics, on=["qid", "query"])
        if not shared.empty:
            raise HarpError(
                f"{len(shared)} queries of {option} {name} are evaluated as well, such as "
                f"{shared['qid'].iloc[0]}: name other queries"
            )
        return other


def _frame_hash(frame: pd.DataFrame) -> str:
    text = frame.to_csv(index=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()

"""Where documents' texts come from: columns of the frame, or an ir_datasets dataset."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..errors import HarpError
from .pairs import distinct


class TextSource(Protocol):
    """Gives the texts of a frame's documents.

    Attributes:
        name: the dataset; None where the texts stand in the frame.
        fields: what is joined to a text; None for what the dataset recommends.
        columns: what the frame must have besides ``qid``, ``query`` and ``docno``.
    """

    @property
    def name(self) -> Any: ...

    @property
    def fields(self) -> tuple[str, ...] | None: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """(rows,) the place of each row's document among the distinct ones, and their keys."""

    def read(self, keys: Sequence[str], frame: pd.DataFrame) -> list[str]:
        """The texts of some of those keys; ``frame`` tells an error whose document is missing."""


class FrameTexts:
    """Texts in columns of the frame, several joined by a space; a text is its own key."""

    name = None

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = self.columns = tuple(fields)

    def documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """Find the distinct texts.

        Raises:
            HarpError: one is no string; the message names its qid and docno.
        """
        columns = [strings(frame, column) for column in self.columns]
        texts = columns[0] if len(columns) == 1 else list(map(" ".join, zip(*columns, strict=True)))
        return distinct(texts)

    def read(self, keys: Sequence[str], frame: pd.DataFrame) -> list[str]:
        """The keys themselves."""
        return list(keys)


class DatasetTexts:
    """Texts of an ir_datasets dataset, looked up by ``docno`` when they are needed.

    Args:
        dataset: an ir_datasets id (``irds:`` before it or not), a PyTerrier dataset over one, or
            an ir_datasets dataset.
        fields: fields of its documents, joined by a space; None for the text that it recommends.

    Raises:
        HarpError: ``dataset`` is none of those. An unknown id or field is told when it is read.
    """

    columns: tuple[str, ...] = ()

    def __init__(self, dataset: Any, fields: Sequence[str] | None) -> None:
        if isinstance(dataset, str):
            dataset = dataset.removeprefix("irds:")
        elif hasattr(dataset, "irds_ref"):
            dataset = dataset.irds_ref()
        elif not hasattr(dataset, "docs_store"):
            raise HarpError(f"dataset is {dataset!r:.60}: name one of ir_datasets, such as vaswani")
        self._given = dataset
        self.fields = None if fields is None else tuple(fields)

    def documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """Find the distinct docnos.

        Raises:
            HarpError: one is no string.
        """
        return distinct(strings(frame, "docno"))

    def read(self, keys: Sequence[str], frame: pd.DataFrame) -> list[str]:
        """Look texts up.

        Raises:
            HarpError: the dataset cannot be read, has no such field, or lacks a document.
        """
        with self._reading():
            found = self._documents.get_many_iter(set(keys))
            texts = {document.doc_id: self._text(document) for document in found}
        for docno in keys:
            if docno not in texts:
                qid = frame["qid"][frame["docno"].eq(docno).to_numpy()].iloc[0]
                raise HarpError(
                    f"no document {docno} in dataset {self.name}, retrieved for qid {qid}:"
                    " name the dataset that the first stage has searched"
                )
        return [texts[docno] for docno in keys]

    def queries(self) -> dict[str, str]:
        """The text of each query, by its id.

        Raises:
            HarpError: the dataset cannot be read, or has no queries.
        """
        with self._reading():
            if not self._dataset.has_queries():
                raise HarpError(f"dataset {self.name} has no queries: name a subset that has")
            return {query.query_id: query.default_text() for query in self._dataset.queries_iter()}

    @property
    def name(self) -> Any:
        """The dataset's id, or the dataset itself where it has none."""
        if isinstance(self._given, str) or not hasattr(self._given, "dataset_id"):
            return self._given
        return self._given.dataset_id()

    @cached_property
    def _dataset(self) -> Any:
        import ir_datasets

        if not isinstance(self._given, str):
            return self._given
        try:
            return ir_datasets.load(self._given)
        except KeyError:
            raise HarpError(
                f"unknown dataset {self.name!r}: ids are listed on https://ir-datasets.com"
            ) from None

    @cached_property
    def _documents(self) -> Any:
        if not self._dataset.has_docs():
            raise HarpError(f"dataset {self.name} has no documents: name one that has")
        document = self._dataset.docs_cls()
        known = [name for name in document._fields if document.__annotations__[name] is str]
        unknown = [name for name in self.fields or () if name not in known]
        if unknown:
            raise HarpError(
                f"documents of {self.name} have no text field {unknown[0]!r}:"
                f" they have {', '.join(known)}"
            )
        return self._dataset.docs_store()

    def _text(self, document: Any) -> str:
        if self.fields is None:
            return document.default_text()
        return " ".join(getattr(document, field) for field in self.fields)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever ir_datasets raises, such as a failed download, into one line."""
        try:
            yield
        except HarpError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise HarpError(f"cannot read dataset {self.name}: {reason}") from error


def strings(frame: pd.DataFrame, column: str) -> list[str]:
    """The values of a column.

    Raises:
        HarpError: one is no string; the message names its qid and docno.
    """
    texts = frame[column].tolist()
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            qid, docno = frame["qid"].iloc[row], frame["docno"].iloc[row]
            raise HarpError(
                f"no text in column {column!r} of qid {qid}, docno {docno}: it holds {text!r:.40};"
                " load texts with dataset.text_loader(), or name the dataset"
            )
    return texts

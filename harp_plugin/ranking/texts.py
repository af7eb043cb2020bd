"""Where documents' texts come from: columns of the frame, or an ir_datasets dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..collections.documents import Documents, reading
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
        self.fields = None if fields is None else tuple(fields)
        self._documents = Documents(dataset, self.fields)

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
        self._documents.check()
        texts = self._documents.found(keys)
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
        dataset = self._documents.dataset
        with reading(self.name):
            if not dataset.has_queries():
                raise HarpError(f"dataset {self.name} has no queries: name a subset that has")
            return {query.query_id: query.default_text() for query in dataset.queries_iter()}

    @property
    def name(self) -> Any:
        """The dataset's id, or the dataset itself where it has none."""
        return self._documents.name


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

"""Where documents' texts come from: columns of the frame, or an ir_datasets dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..collections.dataset import Dataset
from ..errors import HarpError
from ..text import has_surrogates, passages
from .frames import check_frame
from .tokens import distinct

__all__ = [
    "DatasetTexts",
    "Documents",
    "FrameTexts",
    "PassagesOf",
    "TextSource",
    "check_docnos",
    "column_texts",
]


class Documents(Protocol):
    """What has documents, such as `harp_plugin.collections.dataset.Dataset`."""

    @property
    def name(self) -> Any:
        """Its name."""

    @property
    def documents_identity(self) -> dict[str, Any]:
        """What an index of the documents depends on; JSON types."""

    @property
    def document_count(self) -> int | None:
        """How many documents there are, where that is known without reading them."""

    def documents(self) -> Iterator[tuple[str, str]]:
        """Give the id and the text of every document."""


@dataclass(frozen=True)
class PassagesOf:
    """The passages of documents, as `harp_plugin.text.passages` makes them, as documents.

    Their ids are those of PyTerrier: ``d1%p0``, ``d1%p1`` and so on for the document ``d1``.

    Args:
        whole: the documents.
        most: most passages of a document; with 1, documents stay as they are.
    """

    whole: Documents
    most: int

    @property
    def name(self) -> Any:
        """The name of the documents."""
        return self.whole.name

    @property
    def documents_identity(self) -> dict[str, Any]:
        """That of the documents, and how many passages each has at most."""
        more = {} if self.most == 1 else {"max_passages": self.most}
        return self.whole.documents_identity | more

    @property
    def document_count(self) -> int | None:
        """How many there are, where that is known without reading them."""
        return self.whole.document_count if self.most == 1 else None

    def documents(self) -> Iterator[tuple[str, str]]:
        """Give the id and the text of every passage."""
        for docno, text in self.whole.documents():
            for number, passage in enumerate(passages(text, self.most)):
                yield docno if self.most == 1 else f"{docno}%p{number}", passage


class FrameTexts:
    """Texts in columns of the frame, several joined by a space; a text is its own key.

    Attributes:
        in_frame: the texts stand in the frame.
        name: the dataset; None where the texts stand in the frame.
        fields: the fields that are joined to a text; None for the text that the dataset recommends.
        columns: the columns that the frame must have as well as ``qid``, ``query`` and ``docno``.
    """

    in_frame = True
    name = None

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = self.columns = tuple(fields)

    def documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """Find the distinct texts.

        Returns:
            (rows,) the index of each row's text among the distinct ones, and these, which are keys.

        Raises:
            HarpError: a text is not a string; the message names its qid and docno.
        """
        columns = [column_texts(frame, column) for column in self.columns]
        texts = columns[0] if len(columns) == 1 else list(map(" ".join, zip(*columns, strict=True)))
        return distinct(texts)

    def read(self, keys: Sequence[str], frame: pd.DataFrame) -> list[str]:
        """Return the keys, which are the texts."""
        return list(keys)


class DatasetTexts:
    """Texts of an ir_datasets dataset, looked up by ``docno`` when they are needed.

    Args:
        dataset: an ir_datasets id (``irds:`` before it or not), a PyTerrier dataset over one, or
            an ir_datasets dataset.
        fields: fields of its documents, joined by a space; None for the text that it recommends.

    Raises:
        HarpError: ``dataset`` is none of those. An unknown id or field is an error only when it is
            read.
    """

    in_frame = False
    columns: tuple[str, ...] = ()

    def __init__(self, dataset: Any, fields: Sequence[str] | None) -> None:
        if not isinstance(dataset, str) and not {"irds_ref", "docs_store"} & {*dir(dataset)}:
            raise HarpError(f"dataset is {dataset!r:.60}: name one of ir_datasets, such as vaswani")
        self.fields = None if fields is None else tuple(fields)
        self._dataset = Dataset(dataset, self.fields)

    def documents(self, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """Find the distinct docnos, as `FrameTexts.documents` finds texts.

        Raises:
            HarpError: a docno is not a string.
        """
        return distinct(column_texts(frame, "docno"))

    def read(self, keys: Sequence[str], frame: pd.DataFrame) -> list[str]:
        """Look up the texts of documents.

        Args:
            keys: docnos.
            frame: names the row of a missing document in errors.

        Raises:
            HarpError: the dataset cannot be read, has no such field, or lacks a document.
        """
        self._dataset.check()
        texts = self._dataset.existing_texts(keys)
        for docno in keys:
            if docno not in texts:
                qid = frame["qid"][frame["docno"].eq(docno).to_numpy()].iloc[0]
                raise HarpError(
                    f"no document {docno} in dataset {self.name}, retrieved for qid {qid}:"
                    " name the dataset that the first stage has searched"
                )
        return [texts[docno] for docno in keys]

    @property
    def name(self) -> Any:
        """The dataset's id, or the dataset itself where it has none."""
        return self._dataset.name


TextSource = FrameTexts | DatasetTexts
"""Gives the texts of a frame's documents."""


def column_texts(frame: pd.DataFrame, column: str) -> list[str]:
    """Read the texts in a column of queries or of results.

    Raises:
        HarpError: a value is not a text; the message names its qid and docno.
    """
    check_frame(frame)
    texts = frame[column].tolist()
    for row, text in enumerate(texts):
        if isinstance(text, str) and (text.isascii() or not has_surrogates(text)):
            continue
        ids = [f"{name} {frame[name].iloc[row]}" for name in ("qid", "docno") if name in frame]
        if isinstance(text, str):
            raise HarpError(
                f"the text in column {column!r} of {', '.join(ids)} holds half a surrogate pair, "
                f"which is no character: {text!r:.40}; remove it"
            )
        advice = "load texts with dataset.text_loader(), or name the dataset"
        if column in ("query", "docno"):
            advice = "make it a text, as by astype(str)"
        where = f"column {column!r} of {', '.join(ids)}"
        raise HarpError(f"no text in {where}: it holds {text!r:.40}; {advice}")
    return texts


def check_docnos(docnos: Sequence[str]) -> None:
    """Check that docnos are distinct, not empty, and without white space.

    Raises:
        HarpError: one is not; the message names it.
    """
    for docno in docnos:
        if not docno or any(map(str.isspace, docno)):
            raise HarpError(f"docno {docno!r} is empty or holds white space: rename it")
    if len(set(docnos)) < len(docnos):
        [(docno, _)] = Counter(docnos).most_common(1)
        raise HarpError(f"docno {docno!r} is a duplicate: give each document its own")

"""Datasets of ir_datasets, and their documents' texts; what goes wrong is told in one line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ..errors import HarpError

_one_reader = threading.RLock()


@contextmanager
def reading(name: Any) -> Iterator[None]:
    """Turn whatever ir_datasets raises, such as a failed download, into one line."""
    try:
        yield
    except HarpError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise HarpError(f"cannot read dataset {name}: {reason}") from error


def open_dataset(name: str) -> Any:
    """The dataset of that id, ``harp-encyclopedia`` among them.

    Raises:
        HarpError: there is none.
    """
    import ir_datasets

    from . import encyclopedia

    encyclopedia.register()
    with reading(name):
        try:
            return ir_datasets.load(name)
        except KeyError:
            raise HarpError(
                f"unknown dataset {name!r}: ids are listed on https://ir-datasets.com"
            ) from None


class Documents:
    """Texts of a dataset's documents by their ids; each process opens files of its own.

    Threads wait for each other: files of ir_datasets can be read by one at a time.

    Args:
        dataset: an ir_datasets id, or an ir_datasets dataset.
        fields: the document fields that make up a text, joined by a space; None for the text that
            the dataset itself recommends.
    """

    def __init__(self, dataset: Any, fields: Sequence[str] | None = None) -> None:
        self.given = dataset
        self.fields = fields
        self._store: tuple[int, Any] | None = None

    @cached_property
    def dataset(self) -> Any:
        """The dataset, opened when it is first asked for."""
        return open_dataset(self.given) if isinstance(self.given, str) else self.given

    @property
    def name(self) -> Any:
        """The dataset's id, or the dataset itself where it has none."""
        if isinstance(self.given, str) or not hasattr(self.given, "dataset_id"):
            return self.given
        return self.given.dataset_id()

    def check(self) -> None:
        """Find that there are documents with such fields.

        Raises:
            HarpError: there are none, or a field is no text of theirs.
        """
        if not self.dataset.has_docs():
            raise HarpError(f"dataset {self.name} has no documents: name one that has")
        document = self.dataset.docs_cls()
        known = [name for name in document._fields if document.__annotations__[name] is str]
        if unknown := [name for name in self.fields or () if name not in known]:
            raise HarpError(
                f"documents of {self.name} have no text field {unknown[0]!r}: they have "
                f"{', '.join(known)}"
            )

    def check_judged(self) -> None:
        """Find that there are queries and judgements as well.

        Raises:
            HarpError: a part is missing, or a field is no text of the documents.
        """
        for part in ("docs", "queries", "qrels"):
            if not self.dataset.has(part):
                raise HarpError(f"dataset {self.name} has no {part}: name a judged subset of it")
        self.check()

    def all(self) -> Iterator[tuple[str, str]]:
        """Every document's id and text."""
        with reading(self.name):
            for document in self.dataset.docs_iter():
                yield document.doc_id, self._text(document)

    def found(self, ids: Iterable[str]) -> dict[str, str]:
        """The texts of those of some documents that are there, by id."""
        # A forked worker must not share its parent's open files.
        with _one_reader, reading(self.name):
            if self._store is None or self._store[0] != os.getpid():
                self._store = os.getpid(), self.dataset.docs_store()
            documents = self._store[1].get_many_iter(set(ids))
            return {document.doc_id: self._text(document) for document in documents}

    def _text(self, document: Any) -> str:
        if self.fields is None:
            return document.default_text()
        return " ".join(getattr(document, field) for field in self.fields)

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self.given, "fields": self.fields, "_store": None}

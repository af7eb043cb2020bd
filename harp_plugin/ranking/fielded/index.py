"""An index of documents with several fields, in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...work.versions import package_versions
from ..index_folder import IndexFolder
from ..terms import STEMMER, STOP_WORDS
from .postings import Postings, write_postings

__all__ = ["FieldedIndex"]

_ID = "doc_id"


class FieldedIndex(IndexFolder):
    """The terms of each field of the documents of a dataset, stemmed as `Bm25Index` does.

    The index is built when it is first read. It serves all weights, k1 and b. It is built in
    memory, about 40 bytes for each distinct term of each field of each document, and read from
    disk.

    Args:
        dataset: an ir_datasets id, or a `harp_plugin.collections.dataset.Dataset`.
        folder: holds one index for each collection and choice of fields.
        fields: names of the fields; by default all that hold a text, except the id.
        quiet: show no progress bar.

    Raises:
        HarpError: the dataset cannot be read, has no id, or lacks a field.
    """

    kind = "fielded-bm25"
    own = re.compile(r"(docnos|terms)\.txt|lengths\.npy|(offsets|documents|counts)-\d+\.npy")

    def __init__(
        self,
        dataset: Dataset | str,
        folder: str | PathLike[str],
        fields: Sequence[str] | None = None,
        *,
        quiet: bool = True,
    ) -> None:
        self.dataset = Dataset(dataset) if isinstance(dataset, str) else dataset
        if not isinstance(self.dataset.name, str):
            raise HarpError("the dataset has no id: register it with ir_datasets, and name its id")
        super().__init__(Path(folder))
        self.fields = tuple(fields or self._all_fields())
        self.quiet = quiet
        Dataset(self.dataset.name, self.fields).check()

    @property
    def made_from(self) -> dict[str, Any]:
        """The documents, their fields, and how texts are cut into terms."""
        identity = {**self.dataset.documents_identity, "fields": list(self.fields)}
        return {"collection": identity, **self.settings, "versions": self.versions}

    @property
    def settings(self) -> dict[str, Any]:
        """What the index depends on, apart from the documents."""
        terms = {"stemmer": STEMMER, "stop words": STOP_WORDS}
        return {"index with fields": {"fields": list(self.fields), **terms}}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the terms depend on."""
        return package_versions("harp_plugin", "pyterrier-pisa")

    @cached_property
    def postings(self) -> Postings:
        """The content of the index, which is built if it is missing or damaged."""
        self.make()
        return Postings(self.path, len(self.fields))

    def _all_fields(self) -> list[str]:
        fields = [name for name in self.dataset.text_fields if name != _ID]
        if not fields:
            raise HarpError(
                f"documents of {self.dataset.name} have no text field: name another dataset"
            )
        return fields

    def _fill(self, temporary: Path) -> None:
        documents = tqdm(
            self.dataset.documents_by_field(self.fields),
            desc=f"index {self.dataset.name}",
            unit="doc",
            total=self.dataset.document_count,
            disable=self.quiet,
        )
        write_postings(documents, len(self.fields), temporary)

    def _settings(self) -> tuple[Any, ...]:
        return self.dataset.name, self.folder, self.fields

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "postings"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldedIndex) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash(self._settings())

    def __repr__(self) -> str:
        name, folder, fields = self._settings()
        return f"FieldedIndex({name!r}, {str(folder)!r}, {list(fields)!r})"

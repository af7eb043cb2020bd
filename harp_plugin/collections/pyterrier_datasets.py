"""Test collections as datasets of PyTerrier: ``pt.get_dataset("harp:FOLDER/test")``."""

from __future__ import annotations

from collections.abc import Iterable

import pyterrier as pt
from pyterrier.datasets._irds import IRDSDataset

from ..errors import HarpError
from .datasets import PREFIX, UnknownCollection

__all__ = ["HarpDataset", "HarpDatasetProvider"]


class HarpDataset(IRDSDataset):
    """A test collection in a folder; all else is as in PyTerrier's datasets of ir_datasets.

    Args:
        name: ``FOLDER``, or ``FOLDER/train``, ``FOLDER/dev`` or ``FOLDER/test``.

    Raises:
        HarpError: there is no such collection.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        try:
            super().__init__(f"{PREFIX}{name}")
        except UnknownCollection as error:
            raise HarpError(str(error)) from None

    def info_url(self) -> None:
        """Return no address: the collection is a folder."""

    def __repr__(self) -> str:
        return f"HarpDataset({self._name!r})"


class HarpDatasetProvider(pt.datasets.DatasetProvider):
    """Gives PyTerrier the datasets whose names start with ``harp:``."""

    def get_dataset(self, name: str) -> HarpDataset:
        """Open a collection.

        Raises:
            HarpError: there is no such collection.
        """
        return HarpDataset(name)

    def list_dataset_names(self) -> Iterable[str]:
        """List no names: which folders there are is not known."""
        return []

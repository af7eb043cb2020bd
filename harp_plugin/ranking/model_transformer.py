"""Transformers of PyTerrier that score the texts of documents by a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any

import pyterrier as pt

from ..errors import HarpError
from .compared_transformer import ComparedTransformer
from .texts import DatasetTexts, FrameTexts, TextSource

__all__ = ["ModelTransformer"]


class ModelTransformer(ComparedTransformer):
    """A transformer with a model and a source of texts, which are made from its attributes.

    What was made is kept until an attribute is changed, and is not pickled. Threads share it.

    Args:
        model: a folder, a hub name, or ``package:NAME``.
        text_field: names of one or more fields that hold a document's text, or None.
        dataset: where texts are looked up; None where they stand in the frame.

    Raises:
        HarpError: ``text_field`` is empty.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        text_field: str | Sequence[str] | None,
        dataset: Any,
    ) -> None:
        self.model = model
        self.text_field = text_field if isinstance(text_field, str | None) else tuple(text_field)
        if self.text_field is not None and not self.text_field:
            raise HarpError("text_field is empty: name the column that holds the text")
        self.dataset = dataset
        self._made: dict[str, tuple[Any, Any]] = {}
        self._lock = threading.RLock()

    @property
    def texts(self) -> TextSource:
        """Where texts come from, by the present attributes."""
        fields = (self.text_field,) if isinstance(self.text_field, str) else self.text_field
        if self.dataset is None:
            return FrameTexts(fields or ("text",))
        key = id(self.dataset), fields
        return self._make_once("texts", key, lambda: DatasetTexts(self.dataset, fields))

    def _make_once(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return the object that was made under this key; make it where the key is another."""
        with self._lock:
            if name not in self._made or self._made[name][0] != key:
                self._made[name] = key, make()
            return self._made[name][1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.RLock()})

    def __repr__(self) -> str:
        defaults = {a.name: a.init_default_value for a in pt.inspect.transformer_attributes(self)}
        named = [
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults.items()
            if name != "model" and getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join([repr(fspath(self.model)), *named])})"

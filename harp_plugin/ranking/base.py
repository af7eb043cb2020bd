"""Bases of transformers: compared by what their results depend on, with a model and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike, fspath
from typing import Any, ClassVar

import pyterrier as pt

from ..errors import HarpError
from ..work.thread_lock import thread_lock
from .sharing import Compared, Shareable
from .texts import DatasetTexts, FrameTexts, TextSource

__all__ = ["ComparedTransformer", "LazyTransformer", "ModelTransformer"]


class ComparedTransformer(Compared, pt.Transformer):
    """A transformer that equals another of its class if both have equal comparison keys.

    An experiment with ``plan="tree"`` runs equal transformers once.
    """

    schematic: ClassVar[dict[str, Any]] = {"help_url": None}  # the label is the class's name

    def __repr__(self) -> str:
        attributes = pt.inspect.transformer_attributes(self, strict=False)
        named = [
            f"{each.name}={_shown(each.value)}" if number else _shown(each.value)
            for number, each in enumerate(attributes)
            if each.value is not each.MISSING
            and (number == 0 or each.value != each.init_default_value)
        ]
        return f"{type(self).__name__}({', '.join(named)})"


def _shown(value: Any) -> str:
    """Write a value as in a call, and the class alone of a model in memory."""
    text = repr(value)
    return f"<{type(value).__name__}>" if "\n" in text else text


class LazyTransformer(Shareable, ComparedTransformer):
    """A transformer with parts that are made from its attributes when they are needed.

    What was made is kept until an attribute is changed, and is not pickled. Threads share it.
    """

    def __post_init__(self) -> None:
        self._made: dict[str, tuple[Any, Any]] = {}
        self._lock = thread_lock()

    def _make_once(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return the object that was made under this key; make it where the key is another."""
        with self._lock:
            if name not in self._made or self._made[name][0] != key:
                self._made[name] = key, make()
            return self._made[name][1]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_made": {}}


@dataclass(eq=False, repr=False)
class ModelTransformer(LazyTransformer):
    """A transformer with a model and a source of texts.

    Args:
        model: a folder, a hub name, or ``package:NAME``; or a model in memory.
        text_field: names of one or more fields that hold a document's text, or None.
        dataset: where texts are looked up; None where they stand in the frame.

    Raises:
        HarpError: ``text_field`` is empty.
    """

    model: Any
    _: KW_ONLY
    text_field: str | Sequence[str] | None = None
    dataset: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.model, str | PathLike):
            self.model = fspath(self.model)
        if not isinstance(self.text_field, str | None):
            self.text_field = tuple(self.text_field)
        if self.text_field is not None and not self.text_field:
            raise HarpError("text_field is empty: name the column that holds the text")

    def _check_in_memory(self, is_fit: bool, kind: str, own: Sequence[str]) -> None:
        """Check a model in memory.

        Args:
            is_fit: whether it is of a class that scores.
            kind: what that is.
            own: arguments that are those of the model itself.

        Raises:
            HarpError: it is of another class, or such an argument is given.
        """
        if not is_fit:
            raise HarpError(
                f"model is {_shown(self.model):.60}: name a folder, one of the hub, package:NAME, "
                f"or {kind}"
            )
        for name in own:
            if getattr(self, name) != getattr(type(self), name):
                raise HarpError(f"{name} is that of the model in memory: set it there")

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state if self.dataset is None else {**state, "dataset": self.texts.name}

    @property
    def _fields(self) -> str | Sequence[str] | None:
        """The fields of a text, by the present attributes."""
        return self.text_field

    @property
    def texts(self) -> TextSource:
        """Where texts come from, by the present attributes."""
        fields = (self._fields,) if isinstance(self._fields, str) else self._fields
        if self.dataset is None:
            return FrameTexts(fields or ("text",))
        key = id(self.dataset), fields
        return self._make_once("texts", key, lambda: DatasetTexts(self.dataset, fields))

"""Objects that threads share, and that are copied and pickled without what they have loaded."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..work.thread_lock import thread_lock

__all__ = ["Shareable"]


class Shareable:
    """An object whose copies and pickles have a lock of their own, and no cached property."""

    def __getstate__(self) -> dict[str, Any]:
        kind = type(self)
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "_lock" and not isinstance(getattr(kind, name, None), cached_property)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=thread_lock())

"""Objects that threads share, and that are copied and pickled without what they have loaded."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..work.thread_lock import thread_lock

__all__ = ["Compared", "Shareable"]


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


class Compared:
    """An object that equals another of its class if both have equal comparison keys."""

    def _comparison_key(self) -> Any:
        """Return all that the results depend on, as an object with a hash."""
        raise NotImplementedError

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._comparison_key()))

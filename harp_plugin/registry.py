"""Registries of readers, tasks and losses, which other packages can add to."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from .errors import HarpError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Items of one kind by their names: those of this package, and those of other packages.

    Another package adds an item through an entry point, which is loaded when its name is looked up
    for the first time. An item that was registered in this process comes before an entry point of
    the same name.

    Args:
        group: the entry point group of the registry, such as ``harp_plugin.tasks``.
        kind: what error messages call an item, such as ``task``.
        items: the items of this package.

    Raises:
        HarpError: a name that is looked up is unknown, or its entry point cannot be loaded.
    """

    def __init__(self, group: str, kind: str, items: Mapping[str, T] | None = None) -> None:
        self.group = group
        self.kind = kind
        self._items: dict[str, T] = dict(items or {})

    def register(self, name: str) -> Callable[[T], T]:
        """Make a decorator that adds the decorated object under ``name``.

        Raises:
            HarpError: another object has this name.
        """

        def add(item: T) -> T:
            if self._items.setdefault(name, item) is not item:
                raise HarpError(f"{self.kind} {name!r} is registered twice: choose another name")
            return item

        return add

    def unregister(self, name: str) -> None:
        """Remove an item that this process has registered, so that its name is free again.

        Raises:
            HarpError: there is none of this name.
        """
        if self._items.pop(name, None) is None:
            raise HarpError(self._unknown(name))

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            points = [point for point in self._entry_points() if point.name == name]
            if not points:
                raise HarpError(self._unknown(name))
            self._items[name] = self._load(points[0])
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[str]:
        names = (point.name for point in self._entry_points())
        return iter(dict.fromkeys([*self._items, *names]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _entry_points(self) -> tuple[EntryPoint, ...]:
        """The entry points; the first of several with one name counts."""
        return _installed(self.group, tuple(sys.path))

    def _load(self, point: EntryPoint) -> Any:
        """Import an item of another package; an error in it is that package's mistake."""
        try:
            return point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist is not None else "another package"
            raise HarpError(
                f"{self.kind} {point.name!r} of {package} ({point.value}) cannot be loaded "
                f"({type(error).__name__}: {error}): fix or uninstall {package}"
            ) from error

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(str(name), list(self), n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"unknown {self.kind} {name!r}: {hint}known are {', '.join(sorted(self))}"


@cache
def _installed(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of the packages on ``path``, read once: that takes some milliseconds."""
    return tuple(entry_points(group=group))

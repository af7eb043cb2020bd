"""Registries of readers, tasks and losses: a dictionary, a decorator, and entry points."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from .errors import HarpError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Named things of one kind, open to other packages.

    Args:
        group: entry point group through which other packages add theirs, such as
            ``harp_plugin.tasks``. An entry point is loaded when its name is first looked up.
        kind: what an item is called in error messages, such as ``task``.

    Raises:
        HarpError: a name that is looked up is unknown, or its entry point cannot be loaded.
    """

    def __init__(self, group: str, kind: str) -> None:
        self.group = group
        self.kind = kind
        self._items: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that adds the decorated object under ``name``.

        Raises:
            HarpError: ``name`` is taken by another object.
        """

        def add(item: T) -> T:
            if self._items.setdefault(name, item) is not item:
                raise HarpError(f"{self.kind} {name!r} is registered twice: choose another name")
            return item

        return add

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            found = [point for point in entry_points(group=self.group) if point.name == name]
            if not found:
                raise HarpError(self._unknown(name))
            self._items[name] = self._loaded(found[0])
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[str]:
        installed = [point.name for point in entry_points(group=self.group)]
        return iter(dict.fromkeys([*self._items, *installed]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _loaded(self, point: EntryPoint) -> Any:
        """Import what another package offers; whatever that raises is the package's mistake."""
        try:
            return point.load()
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist is not None else "another package"
            raise HarpError(
                f"{self.kind} {point.name!r} of {package} ({point.value}) cannot be loaded "
                f"({type(error).__name__}: {error}): mend or uninstall {package}"
            ) from error

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(str(name), list(self), n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"unknown {self.kind} {name!r}: {hint}known are {', '.join(sorted(self))}"

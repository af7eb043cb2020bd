"""Imports that wait until a name of a package is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .errors import user_message

__all__ = ["lazy_attributes"]


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, which imports a name when it is first used.

    Args:
        package: its name.
        modules: the relative module of each name.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(modules[name], package), name)
        except ModuleNotFoundError as error:
            message = f"{name} cannot be imported: {user_message(error) or error}"
            raise ModuleNotFoundError(message, name=error.name) from error

    return load

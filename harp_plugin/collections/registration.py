"""Registers the collections of this package with ir_datasets, as soon as that is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["register", "register_on_import"]

_PACKAGE = "ir_datasets"


def register() -> None:
    """Register ``harp-encyclopedia`` and the ids ``harp:FOLDER`` with ir_datasets.

    What they need is imported when one of them is loaded. A second call changes nothing.
    """
    from ir_datasets import registry

    registry.register_pattern(
        "^harp-encyclopedia$", lambda _id, _groups: _datasets().encyclopedia()
    )
    registry.register_pattern("^harp:.", lambda id, _groups: _datasets().folder_collection(id))


def register_on_import() -> None:
    """Register the collections now if ir_datasets is imported already, else when it is.

    So the import of this package does not import ir_datasets, which takes half a second.
    """
    if _PACKAGE in sys.modules:
        register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds ir_datasets as the other finders do; its loader registers the collections as well."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PACKAGE:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _datasets() -> Any:
    from . import datasets

    return datasets

"""Transformers of PyTerrier that are compared by what their results depend on."""

from __future__ import annotations

from typing import Any

import pyterrier as pt

__all__ = ["ComparedTransformer"]


class ComparedTransformer(pt.Transformer):
    """A transformer that equals another of its class if both have equal comparison keys.

    An experiment with ``plan="tree"`` runs equal transformers once.
    """

    def _comparison_key(self) -> Any:
        """Return all that the results depend on, as an object with a hash."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ComparedTransformer)
            and type(self) is type(other)
            and self._comparison_key() == other._comparison_key()
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._comparison_key()))

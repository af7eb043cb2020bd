"""The parameters of BM25 over fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import HarpError
from ...limits import Limits, check_limits

__all__ = ["FieldSettings", "term_weight"]

_WEIGHT = Limits(least=0, most=1e6)
_K1 = Limits(least=0, most=1e6)
_B = Limits(least=0, most=1)


@dataclass(frozen=True)
class FieldSettings:
    """Parameters of BM25 over fields.

    Attributes:
        fields: names of all fields.
        weights: (fields,) of their counts; a field of weight 0 counts for nothing.
        b: (fields,) how much a long field lessens its counts.
        k1: a larger number gives repeated words more weight.
    """

    fields: tuple[str, ...]
    weights: tuple[float, ...]
    b: tuple[float, ...]
    k1: float

    @classmethod
    def of(
        cls,
        fields: Sequence[str],
        weights: Mapping[str, float] | None,
        k1: float,
        b: float | Mapping[str, float],
    ) -> FieldSettings:
        """Check parameters, and bring them into the order of the fields.

        Args:
            fields: names of all fields.
            weights: by field; 0 for one that is not named. None for 1 each.
            k1: see above.
            b: one number for all fields, or by field.

        Raises:
            HarpError: a field is unknown, a number is out of its range, or all weights are 0.
        """
        weights = dict.fromkeys(fields, 1.0) if weights is None else weights
        b = b if isinstance(b, Mapping) else dict.fromkeys(fields, b)
        for name, values, limits in (("weights", weights, _WEIGHT), ("b", b, _B)):
            if unknown := [field for field in values if field not in fields]:
                raise HarpError(
                    f"{name} name the field {unknown[0]!r}, which the index lacks: it has "
                    f"{', '.join(fields)}"
                )
            for field, value in values.items():
                _check(f"{name} of {field}", value, limits)
        _check("k1", k1, _K1)
        if not any(weights.values()):
            raise HarpError("the weights of all fields are 0: give one a weight above 0")
        missing = [field for field in weights if weights[field] and field not in b]
        if missing:
            raise HarpError(f"b names no field {missing[0]!r}: give it a number from 0 to 1")
        return cls(
            tuple(fields),
            tuple(float(weights.get(field, 0)) for field in fields),
            tuple(float(b.get(field, 0)) for field in fields),
            float(k1),
        )

    @property
    def active(self) -> tuple[int, ...]:
        """The numbers of the fields that have a weight."""
        return tuple(np.flatnonzero(self.weights).tolist())

    @property
    def arguments(self) -> dict[str, Any]:
        """The same as arguments of `FieldedBm25`."""
        return {
            "weights": dict(zip(self.fields, self.weights, strict=True)),
            "k1": self.k1,
            "b": dict(zip(self.fields, self.b, strict=True)),
        }

    def scores(
        self, counts: np.ndarray, relative_lengths: np.ndarray, weight: np.ndarray | float
    ) -> np.ndarray:
        """Score documents by one term (BM25F, Zaragoza et al. 2004, eq. 2 and 3).

        The count of a field is divided by 1 - b + b · length / mean length of this field, and the
        weighted sum x over the fields is saturated once: weight · (k1 + 1) · x / (k1 + x).

        Args:
            counts: (fields, documents) how often each field has the term.
            relative_lengths: (fields, documents) length over mean length.
            weight: of the term, one for all documents or (documents,).

        Returns:
            (documents,) float64.
        """
        total = np.zeros(counts.shape[1])
        for field in self.active:
            b = self.b[field]
            normalized = counts[field] / (1 - b + b * relative_lengths[field])
            total += self.weights[field] * normalized
        saturated = np.divide(total, self.k1 + total, out=np.zeros_like(total), where=total > 0)
        return weight * (self.k1 + 1) * saturated


def _check(name: str, value: Any, limits: Limits) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise HarpError(f"{name} is {value!r:.40}: it must be a number")
    check_limits({name: value}, {name: limits})


def term_weight(documents: int, frequency: int) -> float:
    """Weigh a term by how many of the documents have it, as PISA does; at least 1e-6."""
    return max(1e-6, float(np.log((documents - frequency + 0.5) / (frequency + 0.5))))

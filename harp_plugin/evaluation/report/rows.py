"""The rows of a table as a report shows them: means, and differences with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_rel

from ..results import Results, starred

__all__ = ["Difference", "Row", "rows_of"]

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference of a system from the baseline over the same queries.

    Attributes:
        mean: the mean of the differences.
        half_width: half of the interval of 95 % confidence around it, by Student's t; 0 where there
            is no difference to test.
        p_value: of the paired t-test, after the correction of the results; None where there is no
            difference to test.
    """

    mean: float
    half_width: float
    p_value: float | None

    @property
    def is_significant(self) -> bool:
        """Whether the table marks it with a star."""
        return starred(self.p_value)


@dataclass(frozen=True, slots=True)
class Row:
    """One system.

    Attributes:
        name: of the system.
        means: measure → mean over queries.
        differences: measure → difference from the baseline; None for the baseline itself.
    """

    name: str
    means: dict[str, float]
    differences: dict[str, Difference] | None


def rows_of(results: Results) -> list[Row]:
    """Return the rows of the results, in their order."""
    return [
        Row(name, means, None if name == results.baseline else _differences(results, name))
        for name, means in results.means.items()
    ]


def _differences(results: Results, name: str) -> dict[str, Difference]:
    baseline = results.per_query[results.baseline]
    return {
        measure: _difference(
            list(values.values()),
            [baseline[measure][qid] for qid in values],
            results.p_values[name][measure],
        )
        for measure, values in results.per_query[name].items()
    }


def _difference(values: list[float], baseline: list[float], p_value: float | None) -> Difference:
    mean = float(np.mean(values) - np.mean(baseline))
    if p_value is None:
        return Difference(mean, 0.0, None)
    interval = ttest_rel(values, baseline).confidence_interval(_CONFIDENCE)
    return Difference(mean, float(interval.high - interval.low) / 2, p_value)

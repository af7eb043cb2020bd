"""The rows of a table as a report shows them: means, and differences with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from ..results import Results, starred

__all__ = ["rows_of"]

_CONFIDENCE = 0.95


def rows_of(results: Results) -> list[dict[str, Any]]:
    """Return the rows of the results, in their order.

    Returns:
        Of each row ``name``; ``means`` (measure → mean over queries); and ``differences`` from the
        baseline over the same queries (measure → ``mean``, ``half_width`` of the interval of 95 %
        confidence by Student's t, ``p_value`` after the correction, ``is_significant``). The
        baseline has None for them. Where there is no difference to test, ``half_width`` is 0 and
        ``p_value`` None.
    """
    return [
        {
            "name": name,
            "means": means,
            "differences": None if name == results.baseline else _differences(results, name),
        }
        for name, means in results.means.items()
    ]


def _differences(results: Results, name: str) -> dict[str, dict[str, Any]]:
    baseline, differences = results.per_query[results.baseline], {}
    for measure, by_query in results.per_query[name].items():
        values = list(by_query.values())
        others = [baseline[measure][qid] for qid in by_query]
        p_value, half_width = results.p_values[name][measure], 0.0
        if p_value is not None:
            interval = ttest_rel(values, others).confidence_interval(_CONFIDENCE)
            half_width = float(interval.high - interval.low) / 2
        differences[measure] = {
            "mean": float(np.mean(values) - np.mean(others)),
            "half_width": half_width,
            "p_value": p_value,
            "is_significant": starred(p_value),
        }
    return differences

"""χ² test of drawn counts against a distribution worked by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np
from scipy.stats import chisquare


def agrees(counts: Counter, chances: Mapping[Hashable, float]) -> bool:
    """Whether p > 1e-4. What is expected under five times is put together."""
    total = counts.total()
    assert set(counts) <= set(chances), set(counts) - set(chances)
    assert abs(sum(chances.values()) - 1) < 1e-6
    common = [name for name, chance in chances.items() if chance * total >= 5]
    observed = [counts[name] for name in common]
    expected = [chances[name] * total for name in common]
    rest = total - sum(expected)
    if rest > 1e-6 * total:
        observed.append(total - sum(observed))
        expected.append(rest)
    return chisquare(observed, np.array(expected) / sum(expected) * total).pvalue > 1e-4

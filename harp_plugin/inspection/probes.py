"""Can one side of a pair alone give the positive away? A regression learns it, held out by page."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..sampling import stable_id
from .groups import AuditedGroups, Side
from .measurements import Measurement, Scores, accuracy

__all__ = ["document_probe", "query_probe"]

_CLASSES = 2
_INVERSE_PENALTY = 1e-4
"""Scikit-learn's C. A vector has more numbers than there are groups: weights are kept small."""

_Member = tuple[int, int | None]
"""The row of a member's vector, and the half that its pages lie in; None where they lie in both."""


def document_probe(groups: AuditedGroups) -> Measurement | None:
    """Measure how often a regression on the frozen encoder tells the positive by its document."""
    return _probe(groups, "document")


def query_probe(groups: AuditedGroups) -> Measurement | None:
    """Measure how often a regression on the frozen encoder tells the positive by its query."""
    return _probe(groups, "query")


def _probe(groups: AuditedGroups, side: Side) -> Measurement | None:
    """Measure how often a logistic regression on one side's vectors tells the positive.

    Pages are split into two halves. The members whose pages lie in one half train a classifier,
    which is asked about the pairs of members whose pages lie in the other half; and the other way
    round. So a page that is known by heart does not count, nor does one that a query names.

    Returns:
        None where there is no encoder, or the texts of each group are equal.
    """
    if groups.encoder is None or not groups.differ(side):
        return None
    pairs = [observation.group.members for observation in groups.observations]
    texts = dict.fromkeys(getattr(pair, side) for group in pairs for pair in group)
    rows = {text: row for row, text in enumerate(texts)}
    vectors = groups.encoder.embed(list(rows)).astype(np.float64)
    vectors = (vectors - vectors.mean(0)) / (vectors.std(0) + 1e-6)

    def half(units: set[int]) -> int | None:
        halves = {stable_id("half", groups.seed, unit) % 2 for unit in units}
        return halves.pop() if len(halves) == 1 else None

    members = [
        [(rows[getattr(pair, side)], half(groups.units(pair, side))) for pair in group]
        for group in pairs
    ]
    scores = {asked: _scores(vectors, members, asked) for asked in (0, 1)}

    def scores_of(group: list[_Member]) -> Scores:
        asked = group[0][1]
        values = None if asked is None else scores[asked]
        return [None if values is None or half != asked else values[row] for row, half in group]

    return accuracy(map(scores_of, members))


def _scores(vectors: np.ndarray, groups: list[list[_Member]], asked: int) -> list[float] | None:
    """Score all texts by a classifier of the members of the half that is not asked about."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    counts = Counter(
        (row, number == 0)
        for group in groups
        for number, (row, half) in enumerate(group)
        if half == 1 - asked
    )
    if len({is_positive for _, is_positive in counts}) < _CLASSES:
        return None
    rows, labels = zip(*counts, strict=True)
    model = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=1000)
    with threadpool_limits(1):  # so that sums have one order
        model.fit(vectors[list(rows)], labels, sample_weight=list(counts.values()))
        return model.decision_function(vectors).tolist()

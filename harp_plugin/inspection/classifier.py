"""Can one side of a pair alone give the positive away? Linear classifiers, held out by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..sampling import stable_id
from ..text import words
from .measurements import AuditedGroups, Measurement, Scores, Side, accuracy, sides_differ
from .text_encoder import TextEncoder

__all__ = ["document_alone", "document_probe", "query_alone"]

_CLASSES = 2


class _Features(NamedTuple):
    """How texts become rows of numbers, and scikit-learn's C, the inverse of the penalty."""

    of_texts: Callable[[list[str]], Any]
    inverse_penalty: float


def query_alone(groups: AuditedGroups) -> Measurement | None:
    """How often a bag of words tells the positive by its query."""
    return _held_out_accuracy(groups, "query", _Features(_bags_of_words, 1.0))


def document_alone(groups: AuditedGroups) -> Measurement | None:
    """How often a bag of words tells the positive by its document."""
    return _held_out_accuracy(groups, "document", _Features(_bags_of_words, 1.0))


def document_probe(groups: AuditedGroups) -> Measurement | None:
    """How often a layer on the frozen encoder tells the positive by its document."""
    if groups.encoder is None:
        return None
    # The vectors have more numbers than there are groups, so their weights are kept small.
    features = _Features(_standardised(groups.encoder), 1e-4)
    return _held_out_accuracy(groups, "document", features)


def _held_out_accuracy(
    groups: AuditedGroups, side: Side, features: _Features
) -> Measurement | None:
    """How often a logistic regression on features of one side's texts tells the positive.

    Pages are split into two halves. The members whose pages lie in one half train a classifier,
    which is asked about the pairs whose two pages lie in the other half; and the other way round.

    Args:
        groups: the groups of a task, and the seed of the split.
        side: ``query`` or ``document``.
        features: what the classifier sees of a text.

    Returns:
        None where all members are equal on that side, or the groups are too few to learn from.
    """
    if not any(sides_differ(observation, side) for observation in groups.observations):
        return None
    texts = [
        [getattr(pair, side) for pair in observation.group.members]
        for observation in groups.observations
    ]
    halves = [
        [stable_id("half", groups.seed, unit) % 2 for unit in observation.units]
        for observation in groups.observations
    ]
    return accuracy(_held_out_scores(texts, halves, features))


def _held_out_scores(
    texts: list[list[str]], halves: list[list[int]], features: _Features
) -> Iterator[Scores]:
    """Score the members of each group that lie in the half of the positive."""
    classifiers = _scores_by_half(texts, halves, features)
    for group, group_halves in zip(texts, halves, strict=True):
        scores = classifiers.get(group_halves[0], {})
        yield [
            scores.get(text) if half == group_halves[0] else None
            for text, half in zip(group, group_halves, strict=True)
        ]


def _scores_by_half(
    texts: list[list[str]], halves: list[list[int]], features: _Features
) -> dict[int, dict[str, float]]:
    """For each half, the score of each text by the classifier that the other half trained."""
    distinct = list(dict.fromkeys(text for group in texts for text in group))
    rows = {text: row for row, text in enumerate(distinct)}
    matrix = features.of_texts(distinct)
    scores = {}
    for held_out in (0, 1):
        counts: Counter[tuple[int, bool]] = Counter(
            (rows[text], number == 0)
            for group, group_halves in zip(texts, halves, strict=True)
            for number, (text, half) in enumerate(zip(group, group_halves, strict=True))
            if half != held_out
        )
        if len({is_positive for _, is_positive in counts}) == _CLASSES:
            values = _classify(matrix, counts, features.inverse_penalty)
            scores[held_out] = dict(zip(distinct, values, strict=True))
    return scores


def _classify(matrix, counts: Counter[tuple[int, bool]], inverse_penalty: float) -> list[float]:
    """Train on rows with their labels, weighed by their counts, and score all rows."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    rows, labels = zip(*counts, strict=True)
    model = LogisticRegression(C=inverse_penalty, class_weight="balanced", max_iter=1000)
    with threadpool_limits(1):  # so that sums have one order
        model.fit(matrix[list(rows)], labels, sample_weight=list(counts.values()))
        return model.decision_function(matrix).tolist()


def _bags_of_words(texts: list[str]):
    from sklearn.feature_extraction.text import CountVectorizer

    bags = CountVectorizer(analyzer=lambda text: words(text.lower()), binary=True, dtype=np.float64)
    return bags.fit_transform(texts)


def _standardised(encoder: TextEncoder) -> Callable[[list[str]], np.ndarray]:
    def vectors(texts: list[str]) -> np.ndarray:
        matrix = encoder.embed(texts).astype(np.float64)
        return (matrix - matrix.mean(0)) / (matrix.std(0) + 1e-6)

    return vectors

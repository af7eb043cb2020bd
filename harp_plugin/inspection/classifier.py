"""Can one side of a pair alone give the positive away? A bag of words, held out by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ..sampling import stable_id
from ..text import words
from .measurements import AuditedGroups, Measurement, Scores, Side, accuracy, sides_differ

__all__ = ["document_alone", "query_alone"]

_CLASSES = 2


def query_alone(groups: AuditedGroups) -> Measurement | None:
    """How often a bag of words tells the positive by its query."""
    return _bag_of_words_accuracy(groups, "query")


def document_alone(groups: AuditedGroups) -> Measurement | None:
    """How often a bag of words tells the positive by its document."""
    return _bag_of_words_accuracy(groups, "document")


def _bag_of_words_accuracy(groups: AuditedGroups, side: Side) -> Measurement | None:
    """How often a logistic regression on the words of one side tells the positive.

    Pages are split into two halves. The members whose pages lie in one half train a classifier,
    which is asked about the pairs whose two pages lie in the other half; and the other way round.

    Args:
        groups: the groups of a task, and the seed of the split.
        side: ``query`` or ``document``.

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
    return accuracy(_held_out_scores(texts, halves))


def _held_out_scores(texts: list[list[str]], halves: list[list[int]]) -> Iterator[Scores]:
    """Score the members of each group that lie in the half of the positive."""
    classifiers = _scores_by_half(texts, halves)
    for group, group_halves in zip(texts, halves, strict=True):
        scores = classifiers.get(group_halves[0], {})
        yield [
            scores.get(text) if half == group_halves[0] else None
            for text, half in zip(group, group_halves, strict=True)
        ]


def _scores_by_half(texts: list[list[str]], halves: list[list[int]]) -> dict[int, dict[str, float]]:
    """For each half, the score of each text by the classifier that the other half trained."""
    from sklearn.feature_extraction.text import CountVectorizer

    distinct = list(dict.fromkeys(text for group in texts for text in group))
    rows = {text: row for row, text in enumerate(distinct)}
    bags = CountVectorizer(analyzer=_lower_cased_words, binary=True, dtype=np.float64)
    features = bags.fit_transform(distinct)
    scores = {}
    for held_out in (0, 1):
        counts: Counter[tuple[int, bool]] = Counter(
            (rows[text], number == 0)
            for group, group_halves in zip(texts, halves, strict=True)
            for number, (text, half) in enumerate(zip(group, group_halves, strict=True))
            if half != held_out
        )
        if len({is_positive for _, is_positive in counts}) == _CLASSES:
            scores[held_out] = dict(zip(distinct, _classify(features, counts), strict=True))
    return scores


def _classify(features, counts: Counter[tuple[int, bool]]) -> list[float]:
    """Train on rows with their labels, weighed by their counts, and score all rows."""
    from sklearn.linear_model import LogisticRegression

    rows, labels = zip(*counts, strict=True)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    model.fit(features[list(rows)], labels, sample_weight=list(counts.values()))
    return model.decision_function(features).tolist()


def _lower_cased_words(text: str) -> list[str]:
    return words(text.lower())

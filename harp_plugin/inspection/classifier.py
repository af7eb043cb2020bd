"""Can one side of a pair alone give the positive away? A bag of words, held out by page."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..sampling import stable_id
from ..text import words
from .observations import Observation
from .rules import Outcome, differ, tally

_LEAST = 2


def ask_bag_of_words(observations: list[Observation], side: str, seed: int) -> Outcome | None:
    """How often a logistic regression on the words of one side finds the positive.

    Pages are split into two halves. Members whose pages lie in one half train it, groups are asked
    as far as both pages of a pair lie in the other; both ways.

    Args:
        observations: of the groups of a task.
        side: ``query`` or ``document``.
        seed: of the halves.

    Returns:
        None where all members are equal on that side, or the groups are too few to learn from.
    """
    if not any(differ(observation, side) for observation in observations):
        return None
    texts = [[getattr(pair, side) for pair in each.group.members] for each in observations]
    halves = [
        [stable_id("half", seed, unit) % 2 for unit in observation.units]
        for observation in observations
    ]
    scores = _scores(texts, halves)
    return tally(
        [
            (scores[half[0]][group[0]], scores[half[0]][negative])
            for negative, its_half in zip(group[1:], half[1:], strict=True)
            if its_half == half[0] and half[0] in scores
        ]
        for group, half in zip(texts, halves, strict=True)
    )


def _scores(texts: list[list[str]], halves: list[list[int]]) -> dict[int, dict[str, float]]:
    """For each half of the pages every text's score, by the classifier of the other half."""
    from sklearn.feature_extraction.text import CountVectorizer

    distinct = list(dict.fromkeys(text for group in texts for text in group))
    places = {text: place for place, text in enumerate(distinct)}
    bags = CountVectorizer(analyzer=_words, binary=True, dtype=np.float64).fit_transform(distinct)
    scores = {}
    for half in (0, 1):
        counts: Counter[tuple[int, bool]] = Counter(
            (places[text], number == 0)
            for group, its_halves in zip(texts, halves, strict=True)
            for number, (text, its_half) in enumerate(zip(group, its_halves, strict=True))
            if its_half != half
        )
        if len({positive for _, positive in counts}) == _LEAST:
            scores[half] = dict(zip(distinct, _learn(bags, counts), strict=True))
    return scores


def _learn(bags, counts: Counter[tuple[int, bool]]) -> list[float]:
    from sklearn.linear_model import LogisticRegression

    rows, labels = zip(*counts, strict=True)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    model.fit(bags[list(rows)], labels, sample_weight=list(counts.values()))
    return model.decision_function(bags).tolist()


def _words(text: str) -> list[str]:
    return words(text.lower())

"""A negative query that no count of words tells from the positive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..text import WORD, words
from .base import Source
from .options import DrawOptions
from .terms import Terms, draw_words, stop_words, without

_TRIES = 10


def mirrored(
    query: str, page: int, rng: np.random.Generator, source: Source, options: DrawOptions
) -> str | None:
    """S2 of RQP in the shape of S1: each word becomes another one of its kind.

    A word that the page's lead holds becomes one drawn from the lead (eq. 5); one that it does not
    hold becomes one drawn from the sentence of a random anchor, which it does not hold either.
    Equal words become equal words, stop words stay. With words of the page alone, as in the paper,
    "the query that shares fewer words with the document is the positive" is hardly ever wrong.

    Returns:
        S2, or None where there are too few words.
    """
    inside = set(map(str.lower, words(source.document(page))))
    stopped = stop_words(options.stop_words or "none")
    own = list(dict.fromkeys(w for w in map(str.lower, words(query)) if w not in stopped))
    held = [word for word in own if word in inside]
    strange = [word for word in own if word not in inside]
    once = replace(options, replacement=False)

    def draw(terms: Terms, size: int) -> list[str]:
        return draw_words(rng, without(terms, own, "removed"), size, once, source.heads)

    becomes = dict(zip(held, draw(source.page_terms(page, options), len(held)), strict=False))
    ids = source.examples["rqp"].ids
    for _ in range(_TRIES):
        missing = [word for word in strange if word not in becomes]
        if not missing:
            break
        other = source.anchor(int(ids[rng.integers(len(ids))]))
        if source.has_weights(other.id):
            known = [*inside, *becomes.values()]
            terms = without(source.sentence_terms(other, options), known, "removed")
            becomes |= dict(zip(missing, draw(terms, len(missing)), strict=False))
    if len(becomes) < len(own):
        return None
    return WORD.sub(lambda found: becomes.get(found[0].lower(), found[0]), query)

"""A negative query that no count of words tells from the positive."""

from __future__ import annotations

import numpy as np

from ..text import WORD, words
from .groups import QueryOrigin, SampledWord
from .options import DrawOptions
from .queries import Query, sample_words
from .source import Anchor, BuildSource
from .terms import stop_words, without

__all__ = ["mirrored_query"]

_TRIES = 10


def mirrored_query(
    query: Query,
    anchor: Anchor,
    rng: np.random.Generator,
    source: BuildSource,
    options: DrawOptions,
) -> Query | None:
    """Draw S2 of RQP in the shape of S1: each word becomes another one of its kind.

    A word that the lead of the anchor's page holds becomes one drawn from the lead (eq. 5); one
    that it does not hold becomes one drawn from the sentence of a random anchor, which the lead
    does not hold either. Equal words become equal words, stop words stay. With words of the page
    alone, as in the paper, "the query that shares fewer words with the document is the positive"
    is hardly ever wrong.

    Args:
        query: S1.
        anchor: the anchor of S1.
        rng: source of randomness.
        source: the build.
        options: how words are drawn.

    Returns:
        S2, or None where there are too few words.
    """
    page = anchor.page
    in_lead = set(map(str.lower, words(source.lead(page))))
    stopped = stop_words(options.stop_words or "none")
    text = query.text
    own = list(dict.fromkeys(w for w in map(str.lower, words(text)) if w not in stopped))
    held = [word for word in own if word in in_lead]
    strange = [word for word in own if word not in in_lead]
    terms = without(source.page_terms(page, options), own, "removed")
    sampled = sample_words(rng, terms, len(held), source, options, page=page, replacement=False)
    replaced_by: dict[str, SampledWord] = dict(zip(held, sampled, strict=False))
    ids = source.examples["rqp"].ids
    for _ in range(_TRIES):
        missing = [word for word in strange if word not in replaced_by]
        if not missing:
            break
        other = source.anchor(int(ids[rng.integers(len(ids))]))
        if source.has_weights(other.id):
            taken = [*own, *in_lead, *(word.word for word in replaced_by.values())]
            terms = without(source.sentence_terms(other, options), taken, "removed")
            sampled = sample_words(
                rng, terms, len(missing), source, options, anchor=other.id, replacement=False
            )
            replaced_by |= dict(zip(missing, sampled, strict=False))
    if len(replaced_by) < len(own):
        return None

    def mirrored(word: str) -> str:
        return replaced_by[word.lower()].word if word.lower() in replaced_by else word

    drawn = (replaced_by.get(word.lower()) for word in words(text))
    origin = QueryOrigin(sampled=tuple(word for word in drawn if word is not None))
    return Query(WORD.sub(lambda match: mirrored(match[0]), text), origin)

"""Pseudo queries with their origins, and the pairs that tasks make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..corpus.tree import Node
from ..sampling import sample, zero_truncated_poisson
from ..text import words
from .groups import DocumentOrigin, Pair, PairGroup, QueryOrigin, SampledWord, pair_group
from .options import DrawOptions
from .source import Anchor, BuildSource
from .terms import Terms, distribution, without

__all__ = [
    "Query",
    "anchored_query",
    "context_query",
    "drawn_query",
    "page_group",
    "page_pair",
    "sample_words",
    "section_pair",
    "written_anchor",
]


class Query(NamedTuple):
    """The text of a pseudo query, and where it comes from."""

    text: str
    origin: QueryOrigin


def page_pair(query: Query, page: int, source: BuildSource, fields: Sequence[str] | None) -> Pair:
    """Pair a query with a page as a document, whose text is made of ``fields``."""
    document = source.document(page, fields, query.text)
    return Pair(query.text, document, query.origin, DocumentOrigin(page))


def page_group(
    task: str,
    query: Query,
    pages: Sequence[int],
    source: BuildSource,
    options: DrawOptions,
    relevant: Iterable[int] = (),
    fields: Sequence[str] | None = None,
) -> PairGroup | None:
    """Group a query with pages as documents, the positive first; None without a negative.

    The documents are made of the option ``document_fields``, or of ``fields`` where it is None.
    Other pages that may be relevant to the query are named by ``relevant``.
    """
    fields = options.document_fields or fields
    return pair_group(task, (page_pair(query, page, source, fields) for page in pages), relevant)


def section_pair(query: Query, page: int, section: Node) -> Pair:
    """Pair a query with the text of a page's section."""
    return Pair(query.text, section.text, query.origin, DocumentOrigin(page, section.place))


def sample_words(
    rng: np.random.Generator,
    terms: Terms,
    size: int,
    source: BuildSource,
    options: DrawOptions,
    *,
    anchor: int | None = None,
    page: int | None = None,
    replacement: bool | None = None,
) -> tuple[SampledWord, ...]:
    """Draw words by their weights (eq. 3), none where there is no term to draw.

    Args:
        rng: source of randomness.
        terms: the terms of a text.
        size: number of words.
        source: the build.
        options: how words are drawn.
        anchor: id of the anchor that weighs the terms, where they are those of its sentence.
        page: id of the page, where the terms are those of its lead.
        replacement: whether a word may be drawn again; None for what the options say.
    """
    if not terms.words:
        return ()
    if replacement is None:
        replacement = bool(options.replacement)
    probabilities = distribution(terms.weights, options, source.heads)
    items = terms.written if options.query_case == "text" else terms.words
    drawn = sample(rng, items, probabilities, size, replacement=replacement)
    return tuple(SampledWord(word, anchor, page) for word in drawn)


def written_anchor(anchor: Anchor, source: BuildSource, options: DrawOptions) -> str:
    """Return the text of an anchor as it stands in a query, by the option ``query_case``."""
    text = source.anchor_text(anchor)
    return text.lower() if options.query_case == "lower" else text


def anchored_query(
    anchor: Anchor, sampled: tuple[SampledWord, ...], source: BuildSource, options: DrawOptions
) -> Query:
    """Join S1 from the anchor's text and the sampled words."""
    parts = [written_anchor(anchor, source, options), *(word.word for word in sampled)]
    origin = QueryOrigin(anchor.source, anchor.sentence, anchor.id, sampled)
    return Query(" ".join(parts), origin)


def drawn_query(
    anchor: Anchor,
    terms: Terms,
    rng: np.random.Generator,
    source: BuildSource,
    options: DrawOptions,
    *,
    size: int | None = None,
    page: int | None = None,
) -> Query | None:
    """Draw S1: the anchor's text and l of the terms (eq. 3 and 4).

    Args:
        anchor: the anchor.
        terms: the terms of its sentence or of a page.
        rng: source of randomness.
        source: the build.
        options: how words are drawn.
        size: l, or None to draw it.
        page: id of the page, where the terms are those of its lead.

    Returns:
        S1, or None where fewer words than ``min_drawn_words`` can be drawn.
    """
    if size is None:
        size = zero_truncated_poisson(rng)
    terms = without(terms, words(source.anchor_text(anchor)), options.anchor_words_in_query)
    weighing = anchor.id if page is None else None
    sampled = sample_words(rng, terms, size, source, options, anchor=weighing, page=page)
    if len(sampled) < options.min_drawn_words:
        return None
    return anchored_query(anchor, sampled, source, options)


def context_query(
    anchor: Anchor,
    rng: np.random.Generator,
    source: BuildSource,
    options: DrawOptions,
    *,
    size: int | None = None,
) -> Query | None:
    """Draw S1 of RQP and QDM: the anchor and l words of its sentence (eq. 1 to 4).

    Args:
        anchor: the anchor.
        rng: source of randomness.
        source: the build.
        options: how words are drawn.
        size: l, or None to draw it.

    Returns:
        S1, or None where the anchor lies beyond the model's limit or its sentence has too few
        words.
    """
    if not source.has_weights(anchor.id):
        return None
    terms = source.sentence_terms(anchor, options)
    return drawn_query(anchor, terms, rng, source, options, size=size)

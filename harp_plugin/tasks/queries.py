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

__all__ = ["Draw", "Query", "page_group", "page_pair", "section_pair", "written_anchor"]


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


def written_anchor(anchor: Anchor, source: BuildSource, options: DrawOptions) -> str:
    """Return the text of an anchor as it stands in a query, by the option ``query_case``."""
    text = source.anchor_text(anchor)
    return text.lower() if options.query_case == "lower" else text


class Draw(NamedTuple):
    """What queries are drawn with.

    Attributes:
        rng: source of randomness.
        source: the build.
        options: how words are drawn.
    """

    rng: np.random.Generator
    source: BuildSource
    options: DrawOptions

    def words(
        self,
        terms: Terms,
        size: int,
        *,
        anchor: int | None = None,
        page: int | None = None,
        replacement: bool | None = None,
    ) -> tuple[SampledWord, ...]:
        """Draw words by their weights (eq. 3), none where there is no term to draw.

        Args:
            terms: the terms of a text.
            size: number of words.
            anchor: id of the anchor that weighs the terms, where they are those of its sentence.
            page: id of the page, where the terms are those of its lead.
            replacement: whether a word may be drawn again; None for what the options say.
        """
        if not terms.words:
            return ()
        if replacement is None:
            replacement = bool(self.options.replacement)
        probabilities = distribution(terms.weights, self.options, self.source.heads)
        items = terms.written if self.options.query_case == "text" else terms.words
        drawn = sample(self.rng, items, probabilities, size, replacement=replacement)
        return tuple(SampledWord(word, anchor, page) for word in drawn)

    def anchored(self, anchor: Anchor, sampled: tuple[SampledWord, ...] = ()) -> Query:
        """Join S1 from the anchor's text and the sampled words."""
        text = written_anchor(anchor, self.source, self.options)
        origin = QueryOrigin(anchor.source, anchor.sentence, anchor.id, sampled)
        return Query(" ".join([text, *(word.word for word in sampled)]), origin)

    def query(
        self, anchor: Anchor, terms: Terms, *, size: int | None = None, page: int | None = None
    ) -> Query | None:
        """Draw S1: the anchor's text and l of the terms (eq. 3 and 4).

        Args:
            anchor: the anchor.
            terms: the terms of its sentence or of a page.
            size: l, or None to draw it.
            page: id of the page, where the terms are those of its lead.

        Returns:
            S1, or None where fewer words than ``min_drawn_words`` can be drawn.
        """
        if size is None:
            size = zero_truncated_poisson(self.rng)
        own = words(self.source.anchor_text(anchor))
        terms = without(terms, own, self.options.anchor_words_in_query)
        sampled = self.words(terms, size, anchor=anchor.id if page is None else None, page=page)
        is_enough = len(sampled) >= self.options.min_drawn_words
        return self.anchored(anchor, sampled) if is_enough else None

    def context_query(self, anchor: Anchor, *, size: int | None = None) -> Query | None:
        """Draw S1 of RQP and QDM: the anchor and l words of its sentence (eq. 1 to 4).

        Args:
            anchor: the anchor.
            size: l, or None to draw it.

        Returns:
            S1, or None where the anchor lies beyond the model's limit or its sentence has too few
            words.
        """
        if not self.source.has_weights(anchor.id):
            return None
        return self.query(anchor, self.source.sentence_terms(anchor, self.options), size=size)

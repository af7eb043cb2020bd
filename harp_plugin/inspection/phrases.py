"""The parts of a drawn query: its anchor, and the words that were sampled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..tasks import DrawOptions
from ..tasks.base import Anchor
from ..tasks.terms import Terms
from .tracing import Drawn, TracedSource


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a query.

    Attributes:
        text: as the model reads it; parts are joined by single spaces.
        role: ``anchor``, ``sampled``, ``sentence`` (the whole one above it) or ``text``.
    """

    text: str
    role: str


class QueryParts:
    """Tells the anchor and the sampled words of a group's queries apart, by what the draw read.

    Args:
        drawn: the group.
        source: what it was drawn from.
        options: how it was drawn.

    Attributes:
        sentence: the text of the sentence that the draw read first, if any.
        focus: the anchor that the positive's query holds beside its sampled words, if any.
    """

    def __init__(self, drawn: Drawn, source: TracedSource, options: DrawOptions) -> None:
        self._trace, self._positive = drawn.trace, drawn.group.positive.query
        self._source, self._first = source, options.anchor_position == "first"
        id = drawn.trace.sentence
        self.sentence = None if id is None else source.sentence(id)
        self.focus = self._focus()

    def phrases(self, query: str) -> tuple[Phrase, ...]:
        """A query of the group in parts."""
        if query == self.sentence:
            return (Phrase(query, "sentence"),)
        if self.focus and not self._from_page(query):
            if found := self._sampled_beside(self.focus, query):
                anchor = Phrase(self._source.anchor_text(self.focus), "anchor")
                sampled = [Phrase(word, "sampled") for word in found]
                return (anchor, *sampled) if self._first else (*sampled, anchor)
        elif self._trace.page_terms is not None:
            return tuple(Phrase(word, "sampled") for word in query.split(" "))
        return (Phrase(query, "text"),)

    def sampled(self, query: str) -> list[str]:
        """The words of a query that were sampled."""
        return [phrase.text for phrase in self.phrases(query) if phrase.role == "sampled"]

    def ranks(self, query: str) -> list[int]:
        """The rank, by weight, of each sampled word in the text it was drawn from; 1 is highest."""
        trace = self._trace
        of_page = trace.sentence_terms is None or self._from_page(query)
        terms = [trace.page_terms, *trace.other_terms] if of_page else [trace.sentence_terms]
        found = (_rank(word, terms) for word in self.sampled(query))
        return [rank for rank in found if rank is not None]

    def _from_page(self, query: str) -> bool:
        """Whether all of the query was sampled from a page."""
        both = self._trace.term_page is not None and self._trace.term_anchor is not None
        return self.focus is None or (both and query != self._positive)

    def _focus(self) -> Anchor | None:
        if self._trace.term_anchor is None and self._trace.term_page is None:
            return None
        holds = (a for a in self._trace.anchors if self._sampled_beside(a, self._positive))
        return next(holds, None)

    def _sampled_beside(self, anchor: Anchor, query: str) -> list[str]:
        text = self._source.anchor_text(anchor)
        rest = query.removeprefix(f"{text} ") if self._first else query.removesuffix(f" {text}")
        return rest.split(" ") if rest != query else []


def _rank(word: str, texts: Iterable[Terms | None]) -> int | None:
    """A word's rank in the first of some texts that holds it."""
    for terms in texts:
        if terms is not None and word in terms.words:
            return 1 + int((terms.weights > terms.weights[terms.words.index(word)]).sum())
    return None

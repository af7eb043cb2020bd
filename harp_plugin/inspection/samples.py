"""A drawn group with all that a person needs to judge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..tasks import DrawOptions
from ..tasks.base import Anchor
from ..tasks.importance import anchor_importance
from ..tasks.terms import stop_words
from ..text import words
from .passages import Mention, Passage, Weighed, cut, passage
from .phrases import Phrase, QueryParts
from .tracing import Drawn, TracedSource

_SHADING = {
    "attention": "attention of {}",
    "language-model": "the text's language model",
    "contrastive": "contrastive attention of {}",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One pair of a group.

    Attributes:
        sign: ``+``, or ``−`` with a number where there are several.
        query: in parts.
        document: shaded, with the query's words marked.
        title: of the document's page, if it is a page.
        notes: how the sentence leads to the page.
        same_query: its query is the positive's.
        same_document: its document is the positive's.
    """

    sign: str
    query: tuple[Phrase, ...]
    document: Passage
    title: str | None
    notes: tuple[str, ...]
    same_query: bool = False
    same_document: bool = False

    @property
    def is_positive(self) -> bool:
        """Whether it must score highest."""
        return self.sign == "+"


@dataclass(frozen=True, slots=True)
class Origin:
    """A text that words were drawn from, or that holds the links.

    Attributes:
        title: of its page.
        text: shaded by the weights that the draw used.
        shading: what these weights are; empty where the draw used none.
    """

    title: str
    text: Passage
    shading: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A group to look at.

    Attributes:
        task: its task.
        index: of the group among its task's groups of epoch 0.
        example: id of its example.
        sentence: the sentence that it comes from, if any.
        lead: the page that its words were drawn from, where that is not the positive's.
        members: the positive first.
    """

    task: str
    index: int
    example: int
    sentence: Origin | None
    lead: Origin | None
    members: tuple[Member, ...]


def make_sample(
    drawn: Drawn, source: TracedSource, options: DrawOptions, weighting: str = "attention"
) -> Sample:
    """Retrace a group: mark its sampled words where they were drawn, and name its pages."""
    return _Retraced(drawn, source, options, _SHADING[weighting]).sample()


class _Retraced:
    def __init__(
        self, drawn: Drawn, source: TracedSource, options: DrawOptions, shading: str
    ) -> None:
        self.drawn, self.source, self.options = drawn, source, options
        self.shading = shading
        self.trace, self.group = drawn.trace, drawn.group
        self.stopped = stop_words(options.stop_words or "none")
        self.pages = drawn.pages
        self.parts = QueryParts(drawn, source, options)
        self.text, self.focus = self.parts.sentence, self.parts.focus
        sentence = self.trace.sentence
        self.anchors = [] if sentence is None else source.linked(sentence)
        self.importance = self._importance()
        self.sampled = set(self.parts.sampled(self.group.positive.query))

    def sample(self) -> Sample:
        return Sample(
            self.group.task,
            self.drawn.index,
            self.drawn.example,
            self._sentence(),
            self._lead(),
            tuple(self._member(number) for number in range(len(self.group.members))),
        )

    def _importance(self) -> dict[int, float]:
        """Anchor weights seen from the whole sentence, where the task compares them (eq. 10)."""
        if self.group.task != "rdp" or self.trace.sentence is None:
            return {}
        found = anchor_importance(self.trace.sentence, self.source, self.options)
        return {anchor.id: float(weight) for anchor, weight in zip(*found, strict=True)}

    def _member(self, number: int) -> Member:
        pair, positive = self.group.members[number], self.group.positive
        page = self.pages[number]
        several = len(self.group.negatives) > 1
        return Member(
            "+" if number == 0 else f"−{number if several else ''}",
            self.parts.phrases(pair.query),
            cut(
                pair.document,
                self._page_weights(page),
                stopped=self.stopped,
                marked={*words(pair.query.lower()), *pair.query.lower().split(" ")},
            ),
            None if page is None else self.source.title(page),
            tuple(self._notes(page)),
            same_query=number > 0 and pair.query == positive.query,
            same_document=number > 0 and pair.document == positive.document,
        )

    def _notes(self, page: int | None) -> Iterator[str]:
        linked = [anchor for anchor in self.anchors if anchor.page == page]
        for text in dict.fromkeys(self.source.anchor_text(a) for a in linked):
            yield f"linked as “{text}”{self._weight_of(text, linked)}"
        if self.group.task == "qdm" and page is not None and not linked and self.focus:
            table, text = self.source.examples["qdm"], self.source.anchor_text(self.focus)
            pages = table.array(self.drawn.example, "pages").tolist()
            counts = table.array(self.drawn.example, "counts").tolist()
            count = dict(zip(pages, counts, strict=True))[page]
            yield f"“{text}” leads here {count} time{'s' * (count != 1)} elsewhere"
        elif page is not None and not linked and self.anchors:
            yield "not linked from the sentence"

    def _weight_of(self, text: str, linked: list[Anchor]) -> str:
        weight = sum(
            self.importance.get(anchor.id, 0.0)
            for anchor in linked
            if self.source.anchor_text(anchor) == text
        )
        return f", weight {weight:.4f}" if weight else ""

    def _sentence(self) -> Origin | None:
        if self.text is None:
            return None
        title = self.source.title(self.source.page_with(self.anchors[0])) if self.anchors else ""
        term_anchor, shading = self.trace.term_anchor, ""
        weighed = None
        if term_anchor is not None and term_anchor.sentence == self.trace.sentence:
            spans, _ = self.source.sentence_spans(term_anchor.sentence)
            weighed = Weighed(spans, self.source.anchor_weights(term_anchor.id))
            shading = self.shading.format(f"“{self.source.anchor_text(term_anchor)}”")
        elif self.trace.weighed_sentence == self.trace.sentence is not None:
            weighed = Weighed(*self.source.sentence_spans(self.trace.sentence))
            shading = self.shading.format("[CLS]")
        mentions = [self._mention(anchor) for anchor in self.anchors]
        marked = self.sampled if term_anchor is not None else ()
        shown = passage(self.text, weighed, stopped=self.stopped, marked=marked, mentions=mentions)
        return Origin(title, shown, shading)

    def _mention(self, anchor: Anchor) -> Mention:
        positive, *negatives = self.pages
        role = ""
        if self.focus is not None and anchor.id == self.focus.id:
            role = "focus"
        elif anchor.page == positive and positive not in negatives:
            role = "positive"
        elif anchor.page in negatives and anchor.page != positive:
            role = "negative"
        weight = self.importance.get(anchor.id)
        note = f"weight {weight:.4f}" if weight is not None else ""
        return Mention(anchor.start, anchor.end, self.source.title(anchor.page), role, note)

    def _lead(self) -> Origin | None:
        page = self.trace.term_page
        if page is None or page == self.pages[0]:
            return None
        shown = cut(
            self.source.document(page),
            self._page_weights(page),
            stopped=self.stopped,
            marked=self.sampled,
        )
        return Origin(self.source.title(page), shown, self.shading.format("[CLS]"))

    def _page_weights(self, page: int | None) -> Weighed | None:
        if page is None or not self.source.is_weighed(page):
            return None
        return Weighed(*self.source.page_spans(page))

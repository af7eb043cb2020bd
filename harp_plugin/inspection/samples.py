"""A drawn group with all that a person needs to judge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..tasks import DocumentOrigin, DrawOptions, Pair, QueryOrigin
from ..tasks.anchors import anchor_importance
from ..tasks.pretraining import DrawnGroup
from ..tasks.queries import written_anchor
from ..tasks.source import Anchor, BuildSource
from ..tasks.terms import WeighedText, stop_words
from ..text import words
from .passages import Mention, Passage, cut, passage

__all__ = ["Member", "Origin", "Phrase", "Sample", "make_sample"]

_SHADING = {
    "attention": "attention of {}",
    "language-model": "the text's language model",
    "contrastive": "contrastive attention of {}",
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a query.

    Attributes:
        text: as the model reads it; parts are joined by single spaces.
        role: ``anchor``, ``sampled``, ``kept`` (a word that was not drawn, beside sampled ones),
            ``sentence`` (the whole sentence that is shown above) or ``text``.
    """

    text: str
    role: str


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
    drawn: DrawnGroup,
    index: int,
    source: BuildSource,
    options: DrawOptions,
    weighting: str = "attention",
) -> Sample:
    """Show a group: mark its sampled words where they were drawn, and name its pages.

    Args:
        drawn: the group.
        index: its number among its task's groups of epoch 0.
        source: the build that it was drawn from.
        options: how it was drawn.
        weighting: how the build's words were weighed.
    """
    return _SampleMaker(drawn, source, options, _SHADING[weighting]).sample(index)


class _SampleMaker:
    def __init__(
        self, drawn: DrawnGroup, source: BuildSource, options: DrawOptions, shading: str
    ) -> None:
        self.drawn, self.group = drawn, drawn.group
        self.source, self.options, self.shading = source, options, shading
        self.stopped = stop_words(options.stop_words)
        self.pages = [
            None if pair.document_origin is None else pair.document_origin.page
            for pair in self.group.members
        ]
        self.query = self.group.positive.query_origin or QueryOrigin()
        self.sampled = {drawn.word.lower() for drawn in self.query.sampled}
        sentence = self.query.sentence
        self.links = [] if sentence is None else source.sentence_anchors(sentence)
        self.importance = self._importance()

    def sample(self, index: int) -> Sample:
        return Sample(
            self.group.task,
            index,
            self.drawn.example,
            self._sentence(),
            self._lead(),
            tuple(self._member(number) for number in range(len(self.group.members))),
        )

    def _importance(self) -> dict[int, float]:
        """Anchor weights seen from the whole sentence, where the task compares them (eq. 10)."""
        if self.group.task != "rdp" or self.query.sentence is None:
            return {}
        weighed = anchor_importance(self.query.sentence, self.source, self.options)
        pairs = zip(weighed.anchors, weighed.weights.tolist(), strict=True)
        return {anchor.id: weight for anchor, weight in pairs}

    def _member(self, number: int) -> Member:
        pair, positive = self.group.members[number], self.group.positive
        page = self.pages[number]
        several = len(self.group.negatives) > 1
        return Member(
            "+" if number == 0 else f"−{number if several else ''}",
            self._phrases(pair),
            cut(
                self._document(pair),
                stopped=self.stopped,
                marked={*words(pair.query.lower()), *pair.query.lower().split(" ")},
            ),
            None if page is None else self.source.title(page),
            tuple(self._notes(page)),
            same_query=number > 0 and pair.query == positive.query,
            same_document=number > 0 and pair.document == positive.document,
        )

    def _phrases(self, pair: Pair) -> tuple[Phrase, ...]:
        """A query in parts: its anchor, and the words that were sampled."""
        origin = pair.query_origin or QueryOrigin()
        sampled = [drawn.word for drawn in origin.sampled]
        parts = [Phrase(word, "sampled") for word in sampled]
        if origin.anchor is not None:
            link = self.source.anchor(origin.anchor)
            anchor = Phrase(written_anchor(link, self.source, self.options), "anchor")
            parts = [anchor, *parts]
        elif sampled:
            pieces = pair.query.split(" ")
            is_drawn = [bool({piece, *words(piece)} & set(sampled)) for piece in pieces]
            roles = ("sampled" if drawn else "kept" for drawn in is_drawn)
            parts = [Phrase(*part) for part in zip(pieces, roles, strict=True)]
        elif origin.sentence is not None:
            parts = [Phrase(self.source.sentence(origin.sentence), "sentence")]
        is_whole = " ".join(part.text for part in parts) == pair.query
        return tuple(parts) if is_whole else (Phrase(pair.query, "text"),)

    def _document(self, pair: Pair) -> WeighedText:
        """A document, and the weights of the page's lead where it holds the lead."""
        page = (pair.document_origin or DocumentOrigin()).page
        if page is not None and self.source.is_weighed(page):
            lead = self.source.weighed_lead(page)
            for start in (0, len(self.source.title(page)) + 1):
                if pair.document.startswith(lead.text, start):
                    return lead.within(pair.document, start)
        return WeighedText(pair.document)

    def _notes(self, page: int | None) -> Iterator[str]:
        links = [anchor for anchor in self.links if anchor.page == page]
        for text in dict.fromkeys(map(self._text, links)):
            yield f"linked as “{text}”{self._weight_note(text, links)}"
        if page is None or links:
            return
        if self.group.task == "qdm" and self.query.anchor is not None:
            anchor = self.source.anchor(self.query.anchor)
            leads_to = self.source.ambiguous_text(anchor.text_id)
            count = int(leads_to.counts[leads_to.pages == page].sum())
            text = self._text(anchor)
            yield f"“{text}” leads here {count} time{'s' * (count != 1)} elsewhere"
        elif self.links:
            yield "not linked from the sentence"

    def _weight_note(self, text: str, links: list[Anchor]) -> str:
        same_text = (anchor for anchor in links if self._text(anchor) == text)
        weight = sum(self.importance.get(anchor.id, 0.0) for anchor in same_text)
        return f", weight {weight:.4f}" if weight else ""

    def _sentence(self) -> Origin | None:
        """The sentence of the positive's query, shaded by the weights that the draw read."""
        if self.query.sentence is None:
            return None
        title = self.source.title(self.links[0].source) if self.links else ""
        weighed, shading = WeighedText(self.source.sentence(self.query.sentence)), ""
        weighing = next((w.anchor for w in self.query.sampled if w.anchor is not None), None)
        if weighing is not None:
            anchor = self.source.anchor(weighing)
            weighed = self.source.weighed_by_anchor(anchor)
            shading = self.shading.format(f"“{self._text(anchor)}”")
        elif self.importance:
            weighed = self.source.weighed_sentence(self.query.sentence)
            shading = self.shading.format("[CLS]")
        shown = passage(
            weighed,
            stopped=self.stopped,
            marked=self.sampled if weighing is not None else (),
            mentions=[self._mention(anchor) for anchor in self.links],
        )
        return Origin(title, shown, shading)

    def _mention(self, anchor: Anchor) -> Mention:
        positive, *negatives = self.pages
        role = ""
        if anchor.id == self.query.anchor:
            role = "focus"
        elif anchor.page == positive and positive not in negatives:
            role = "positive"
        elif anchor.page in negatives and anchor.page != positive:
            role = "negative"
        weight = self.importance.get(anchor.id)
        note = f"weight {weight:.4f}" if weight is not None else ""
        return Mention(anchor.start, anchor.end, self.source.title(anchor.page), role, note)

    def _lead(self) -> Origin | None:
        """The lead that the positive's words were drawn from, where it is not the positive's."""
        page = next((drawn.page for drawn in self.query.sampled if drawn.page is not None), None)
        if page is None or page == self.pages[0]:
            return None
        weighed = self.source.weighed_lead(page)
        shown = cut(weighed, stopped=self.stopped, marked=self.sampled)
        return Origin(self.source.title(page), shown, self.shading.format("[CLS]"))

    def _text(self, anchor: Anchor) -> str:
        return self.source.anchor_text(anchor)

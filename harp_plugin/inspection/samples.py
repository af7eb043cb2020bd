"""A drawn group with all that a person needs to judge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from ..tasks import DocumentOrigin, DrawOptions, Pair, QueryOrigin
from ..tasks.anchors import anchor_importance
from ..tasks.pretraining import DrawnGroup
from ..tasks.queries import written_anchor
from ..tasks.source import Anchor, BuildSource
from ..tasks.terms import WeighedText, stop_words
from ..text import words
from .shading import Mention, shaded

__all__ = ["Member", "Sample", "make_sample"]

_CUT = 400


class Member(NamedTuple):
    """One pair of a group.

    Attributes:
        pair: the pair.
        query: its parts, which single spaces join, each with its role: ``anchor``, ``sampled``,
            ``kept`` (a word that was not drawn, next to sampled ones), ``sentence`` (the whole
            sentence that is shown above) or ``text``.
        document: as HTML, shaded, with the query's words marked.
        title: of the document's page, if it is a page.
    """

    pair: Pair
    query: list[tuple[str, str]]
    document: Markup
    title: str | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A group to look at.

    Attributes:
        task: its task.
        index: of the group among its task's groups of epoch 0.
        example: id of its example.
        origins: the sentence that it comes from, and the page that its words were drawn from where
            that is not the positive's: of each a label, the title of its page, what the weights are
            that shade it (empty where the draw used none), and the text as HTML.
        members: the positive first.
    """

    task: str
    index: int
    example: int
    origins: list[tuple[str, str, str, Markup]]
    members: list[Member]


def make_sample(
    drawn: DrawnGroup,
    index: int,
    source: BuildSource,
    options: DrawOptions,
) -> Sample:
    """Show a group: mark its sampled words where they were drawn, and name its pages.

    Args:
        drawn: the group.
        index: its number among its task's groups of epoch 0.
        source: the build that it was drawn from.
        options: how it was drawn.
    """
    maker = _SampleMaker(drawn, source, options)
    origins = [*maker.sentence(), *maker.lead()]
    members = [maker.member(*each) for each in zip(drawn.group.members, maker.pages, strict=True)]
    return Sample(drawn.group.task, index, drawn.example, origins, members)


class _SampleMaker:
    def __init__(self, drawn: DrawnGroup, source: BuildSource, options: DrawOptions) -> None:
        self.group, self.source, self.options = drawn.group, source, options
        self.stopped = stop_words(options.stop_words)
        documents = [pair.document_origin or DocumentOrigin() for pair in self.group.members]
        self.pages = [document.page for document in documents]
        self.query = self.group.positive.query_origin or QueryOrigin()
        self.sampled = {drawn.word.lower() for drawn in self.query.sampled}
        sentence = self.query.sentence
        self.links = [] if sentence is None else source.sentence_anchors(sentence)

    def member(self, pair: Pair, page: int | None) -> Member:
        """Show a pair, its document cut after about 400 characters."""
        marked = {*words(pair.query.lower()), *pair.query.lower().split(" ")}
        shown = shaded(self._document(pair), stopped=self.stopped, marked=marked, limit=_CUT)
        title = None if page is None else self.source.title(page)
        return Member(pair, self._parts(pair), shown, title)

    def _parts(self, pair: Pair) -> list[tuple[str, str]]:
        """Return a query in parts: its anchor, and the words that were sampled."""
        origin = pair.query_origin or QueryOrigin()
        sampled = [drawn.word for drawn in origin.sampled]
        parts = [(word, "sampled") for word in sampled]
        if origin.anchor is not None:
            link = self.source.anchor(origin.anchor)
            anchor = (written_anchor(link, self.source, self.options), "anchor")
            parts = [anchor, *parts]
        elif sampled:
            pieces = pair.query.split(" ")
            is_drawn = [bool({piece, *words(piece)} & {*sampled}) for piece in pieces]
            roles = ("sampled" if drawn else "kept" for drawn in is_drawn)
            parts = list(zip(pieces, roles, strict=True))
        elif origin.sentence is not None:
            parts = [(self.source.sentence(origin.sentence), "sentence")]
        is_whole = " ".join(text for text, _ in parts) == pair.query
        return parts if is_whole else [(pair.query, "text")]

    def _document(self, pair: Pair) -> WeighedText:
        """Return a document, and the weights of the page's lead where it holds the lead."""
        page = (pair.document_origin or DocumentOrigin()).page
        if page is not None and self.source.is_weighed(page):
            lead = self.source.weighed_lead(page)
            for start in (0, len(self.source.title(page)) + 1):
                if pair.document.startswith(lead.text, start):
                    return lead.within(pair.document, start)
        return WeighedText(pair.document)

    def sentence(self) -> Iterator[tuple[str, str, str, Markup]]:
        """Show the sentence of the positive's query, shaded by the weights that the draw read."""
        if self.query.sentence is None:
            return
        title = self.source.title(self.links[0].source) if self.links else ""
        weighed, shading = WeighedText(self.source.sentence(self.query.sentence)), ""
        weighing = next((w.anchor for w in self.query.sampled if w.anchor is not None), None)
        importance: dict[int, float] = {}
        if weighing is not None:
            anchor = self.source.anchor(weighing)
            weighed = self.source.weighed_by_anchor(anchor)
            shading = f"attention of “{self.source.anchor_text(anchor)}”"
        elif self.group.task == "rdp":
            importance = self._importance(self.query.sentence)
            weighed = self.source.weighed_sentence(self.query.sentence)
            shading = "attention of [CLS]"
        mentions = [self._mention(anchor, importance.get(anchor.id)) for anchor in self.links]
        marked = self.sampled if weighing is not None else ()
        shown = shaded(weighed, stopped=self.stopped, marked=marked, mentions=mentions)
        yield "Sentence of", title, shading, shown

    def _importance(self, sentence: int) -> dict[int, float]:
        """Return the weights of anchors seen from the whole sentence, which RDP compares."""
        anchors, weights, _ = anchor_importance(sentence, self.source, self.options)
        return dict(zip((anchor.id for anchor in anchors), weights.tolist(), strict=True))

    def _mention(self, anchor: Anchor, weight: float | None) -> Mention:
        positive, *negatives = self.pages
        role = "link"
        if anchor.id == self.query.anchor:
            role = "focus"
        elif anchor.page == positive and positive not in negatives:
            role = "positive"
        elif anchor.page in negatives and anchor.page != positive:
            role = "negative"
        note = "" if weight is None else f"weight {weight:.4f}"
        return Mention(anchor.start, anchor.end, self.source.title(anchor.page), role, note)

    def lead(self) -> Iterator[tuple[str, str, str, Markup]]:
        """Show the lead that the positive's words were drawn from, where it is another page's."""
        page = next((drawn.page for drawn in self.query.sampled if drawn.page is not None), None)
        if page is None or page == self.pages[0]:
            return
        weighed = self.source.weighed_lead(page)
        shown = shaded(weighed, stopped=self.stopped, marked=self.sampled, limit=_CUT)
        yield "Words drawn from", self.source.title(page), "attention of [CLS]", shown

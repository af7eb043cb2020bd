"""Draws that can be retraced: which page, sentence and anchor a group's texts came from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..corpus.tree import Tree
from ..storage.stage import MANIFEST
from ..tasks import DrawOptions, PairGroup, PreTrainingData
from ..tasks.base import Anchor, Source
from ..tasks.terms import Terms


@dataclass
class Trace:
    """What one draw has read.

    Attributes:
        documents: the pages that were taken as documents, by their text, in order.
        trees: the pages that were read as trees, in order.
        anchors: the anchors whose text was read, in order.
        sentence: the first sentence whose text was read.
        weighed_sentence: the sentence whose [CLS] weights were read.
        term_anchor: the first anchor by whose weights words of its sentence were drawn.
        term_page: the page whose words were drawn.
        sentence_terms: the terms of this sentence.
        page_terms: the terms of this page.
        other_terms: the terms of further sentences.
    """

    documents: dict[str, list[int]] = field(default_factory=dict)
    trees: dict[int, Tree] = field(default_factory=dict)
    anchors: list[Anchor] = field(default_factory=list)
    sentence: int | None = None
    weighed_sentence: int | None = None
    term_anchor: Anchor | None = None
    term_page: int | None = None
    sentence_terms: Terms | None = None
    page_terms: Terms | None = None
    other_terms: list[Terms] = field(default_factory=list)


class TracedSource(Source):
    """A `Source` that notes what is read from it."""

    trace = Trace()

    def document(self, page: int) -> str:
        """A page as a document: its lead."""
        return self._document(page, super().document(page))

    def article(self, page: int) -> str:
        """A page as a document: its whole text."""
        return self._document(page, super().article(page))

    def _document(self, page: int, text: str) -> str:
        pages = self.trace.documents.setdefault(text, [])
        if page not in pages:
            pages.append(page)
        return text

    def tree(self, page: int) -> Tree:
        """A page's sections as a tree."""
        return self.trace.trees.setdefault(page, super().tree(page))

    def sentence(self, id: int) -> str:
        """A sentence's text."""
        if self.trace.sentence is None:
            self.trace.sentence = id
        return super().sentence(id)

    def anchor_text(self, anchor: Anchor) -> str:
        """An anchor's text as written."""
        if anchor not in self.trace.anchors:
            self.trace.anchors.append(anchor)
        return super().anchor_text(anchor)

    def sentence_spans(self, sentence: int) -> tuple[np.ndarray, np.ndarray]:
        """Character offsets of a sentence's words, and [CLS]'s weights."""
        self.trace.weighed_sentence = sentence
        return super().sentence_spans(sentence)

    def sentence_terms(self, anchor: Anchor, options: DrawOptions) -> Terms:
        """Terms of the anchor's sentence, weighed by the anchor."""
        terms = super().sentence_terms(anchor, options)
        if self.trace.term_anchor is None:
            self.trace.term_anchor, self.trace.sentence_terms = anchor, terms
        elif anchor != self.trace.term_anchor:
            self.trace.other_terms.append(terms)
        return terms

    def page_terms(self, page: int, options: DrawOptions) -> Terms:
        """Terms of a page's lead, weighed by [CLS]."""
        self.trace.term_page = page
        self.trace.page_terms = super().page_terms(page, options)
        return self.trace.page_terms

    def linked(self, sentence: int) -> list[Anchor]:
        """The resolved links of any sentence; none where it has none."""
        return self.anchors_of(sentence) if sentence in self._sentence_anchors else []

    def page_with(self, anchor: Anchor) -> int:
        """The page that an anchor's sentence stands on."""
        return self._anchors.get(anchor.id, "source")

    def is_weighed(self, page: int) -> bool:
        """Whether a page's lead has weights: links must lead to it, and terms must be weighed."""
        return self._has_weights and page in self._page_weights

    @cached_property
    def _has_weights(self) -> bool:
        return (self.directory / "weights" / MANIFEST).is_file()


@dataclass(frozen=True)
class Drawn:
    """One group as training draws it, and where it came from.

    Attributes:
        index: of the group among those of its task.
        example: id of the example.
        group: what was drawn.
        trace: what the draw has read.
        skipped: ids of the examples tried before this one, which gave no group.
    """

    index: int
    example: int
    group: PairGroup
    trace: Trace
    skipped: tuple[int, ...]

    @property
    def pages(self) -> tuple[int | None, ...]:
        """The page of each member's document; of pages with one text, each is taken once."""
        found: list[int | None] = []
        taken: Counter[str] = Counter()
        for pair in self.group.members:
            pages = self.trace.documents.get(pair.document, [])
            taken[pair.document] += 1
            found.append(pages[min(taken[pair.document], len(pages)) - 1] if pages else None)
        return tuple(found)


class TracedData(PreTrainingData):
    """`PreTrainingData` whose draws can be retraced."""

    @cached_property
    def source(self) -> TracedSource:
        """The build's texts, anchors and weights."""
        return TracedSource(self.directory, list(self.tasks), verify=False)

    def drawn(self, index: int) -> Drawn | None:
        """Draw group ``index`` of epoch 0, as `group` does; None where 100 examples give none."""
        skipped: list[int] = []
        self.source.trace = Trace()
        for example, group in self.attempts(0, index):
            trace, self.source.trace = self.source.trace, Trace()
            if group is not None:
                return Drawn(index, example, group, trace, tuple(skipped))
            skipped.append(example)
        return None

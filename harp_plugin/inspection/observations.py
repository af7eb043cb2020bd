"""What the audit needs to know of a drawn group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..sampling import stable_id
from ..tasks import DrawOptions, PairGroup
from ..tasks.terms import stop_words
from ..text import normalise_anchor, words
from .phrases import QueryParts
from .tracing import Drawn, TracedSource


@dataclass(frozen=True, slots=True)
class Observation:
    """A group, and what is known of where its texts came from.

    Lists hold one entry for each member, the positive's first.

    Attributes:
        group: as training draws it.
        pages: of the documents, as far as they are from a page.
        titles: of these pages.
        places: of the documents, in the order of the text that both come from: of the first anchor
            that leads to the page, or of the section; None where they have no such order.
        units: what keeps a document's page apart from others; equal for texts of one page.
        linked: whether the sentence that the group came from links to the page; None where it came
            from none.
        anchors: normalised texts of the anchors that it was made of.
        ranks: by weight, of the sampled words of each distinct query, in the text they come from.
        stopped: the stop words of the draw.
    """

    group: PairGroup
    pages: tuple[int | None, ...]
    titles: tuple[str | None, ...]
    places: tuple[int | None, ...]
    units: tuple[int, ...]
    linked: tuple[bool, ...] | None
    anchors: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    stopped: frozenset[str]


def observe(drawn: Drawn, source: TracedSource, options: DrawOptions) -> Observation:
    """Gather it, right after the draw."""
    group, trace = drawn.group, drawn.trace
    parts = QueryParts(drawn, source, options)
    sections = [_section(pair.document, drawn) for pair in group.members]
    pages = tuple(
        page if page is not None else found[0]
        for page, found in zip(drawn.pages, sections, strict=True)
    )
    links = source.linked(trace.sentence) if trace.sentence is not None else []
    first = {anchor.page: anchor.start for anchor in reversed(links)}
    anchors = [anchor for anchor in trace.anchors if anchor.page in pages] or trace.anchors
    of_one_page = len(set(pages)) == 1
    return Observation(
        group,
        pages,
        tuple(None if page is None else source.title(page) for page in pages),
        tuple(place for _, place in sections)
        if of_one_page
        else tuple(first.get(page) if page is not None else None for page in pages),
        tuple(
            stable_id("text", pair.document) if section[0] is None else section[0]
            for pair, section in zip(group.members, sections, strict=True)
        ),
        tuple(page in first for page in pages) if links else None,
        tuple(normalise_anchor(source.anchor_text(anchor)) for anchor in anchors),
        tuple(
            tuple(parts.ranks(query))
            for query in dict.fromkeys(pair.query for pair in group.members)
        ),
        stop_words(options.stop_words or "none"),
    )


def _section(document: str, drawn: Drawn) -> tuple[int | None, int | None]:
    """The page that a text is a section of, or a part of one, and the section's place."""
    for page, tree in drawn.trace.trees.items():
        for node in tree.nodes:
            if node.text == document:
                return page, node.place
    if document not in drawn.trace.documents:
        for page, tree in drawn.trace.trees.items():
            if any(vocabulary(document) <= vocabulary(node.text) for node in tree.nodes):
                return page, None
    return None, None


@lru_cache(maxsize=1 << 12)
def vocabulary(text: str) -> frozenset[str]:
    """The distinct lower-cased words of a text."""
    return frozenset(words(text.lower()))

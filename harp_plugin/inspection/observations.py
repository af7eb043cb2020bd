"""What the audit needs to know of a drawn group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..corpus.boilerplate import begins_with_hatnote
from ..errors import HarpError
from ..sampling import stable_id
from ..tasks import DocumentOrigin, DrawOptions, Pair, PairGroup, QueryOrigin, SampledWord
from ..tasks.anchors import anchor_importance
from ..tasks.source import Anchor, BuildSource
from ..tasks.terms import Terms, stop_words
from ..text import normalize_anchor, words

__all__ = ["Observation", "observe", "page_unit", "query_units", "vocabulary", "word_list"]


@dataclass(frozen=True, slots=True)
class Observation:
    """A group, and what its pairs' origins say of it.

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
        anchors: normalized texts of the anchors that it was made of.
        in_links: number of anchors that lead to each page; None where it is no linked page.
        occurrences: how often the text of the anchor in the positive's query leads to each page;
            None where the query has no anchor, or the document no page.
        layers_agree: whether the layer before the last orders the pages of RDP's anchors as the
            last one does; None for other tasks, and where no such layer weighed the anchors.
        boilerplate: whether each document is a section of references or links, or begins with a
            hatnote; None where it is from no page.
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
    in_links: tuple[int | None, ...]
    occurrences: tuple[int | None, ...]
    layers_agree: bool | None
    boilerplate: tuple[bool | None, ...]
    ranks: tuple[tuple[int, ...], ...]
    stopped: frozenset[str]


def observe(group: PairGroup, source: BuildSource, options: DrawOptions) -> Observation:
    """Gather what the audit needs from a group and the origins of its pairs."""
    query = group.positive.query_origin or QueryOrigin()
    documents = [pair.document_origin or DocumentOrigin() for pair in group.members]
    pages = tuple(document.page for document in documents)
    links = [] if query.sentence is None else source.sentence_anchors(query.sentence)
    first = {anchor.page: anchor.start for anchor in reversed(links)}
    if query.anchor is None:
        anchors = [link for link in links if link.page in pages]
    else:
        anchors = [source.anchor(query.anchor)]
    if len(set(pages)) == 1:
        places = tuple(document.place for document in documents)
    else:
        places = tuple(None if page is None else first.get(page) for page in pages)
    linked = set() if query.sentence is None else source.pages_linked_by(query.sentence)
    targets = {} if query.anchor is None else _targets(anchors[0], source)
    queries: dict[str, QueryOrigin | None] = {}
    for pair in group.members:
        queries.setdefault(pair.query, pair.query_origin)
    return Observation(
        group,
        pages,
        tuple(None if page is None else source.title(page) for page in pages),
        places,
        tuple(page_unit(pair, options.document_fields) for pair in group.members),
        tuple(page in linked for page in pages) if links else None,
        tuple(normalize_anchor(source.anchor_text(anchor)) for anchor in anchors),
        tuple(None if page is None else _in_links(page, source) for page in pages),
        tuple(None if page is None or not targets else targets.get(page, 0) for page in pages),
        _layers_agree(group.task, query, pages, source, options),
        tuple(_is_boilerplate(pair, source) for pair in group.members),
        tuple(
            tuple(_ranks(origin.sampled, source, options)) if origin else ()
            for origin in queries.values()
        ),
        stop_words(options.stop_words),
    )


def _in_links(page: int, source: BuildSource) -> int | None:
    try:
        return source.in_links_to(page)
    except KeyError:
        return None


def _targets(anchor: Anchor, source: BuildSource) -> dict[int, int]:
    """The pages that an anchor's text leads to anywhere, with the numbers of its anchors."""
    try:
        text = source.ambiguous_text(anchor.text_id)
    except KeyError:
        return dict.fromkeys(source.text_targets(anchor.text_id), 1)
    return dict(zip(text.pages.tolist(), text.counts.tolist(), strict=True))


def _layers_agree(
    task: str,
    query: QueryOrigin,
    pages: Sequence[int | None],
    source: BuildSource,
    options: DrawOptions,
) -> bool | None:
    """Whether both layers weigh an anchor of the positive's page more than one of each other."""
    if task != "rdp" or query.sentence is None:
        return None
    try:
        weighed = anchor_importance(query.sentence, source, replace(options, rdp_agreement=True))
    except HarpError:
        return None
    if np.isnan(weighed.layer_before).any():
        return None
    both = np.stack([weighed.weights, weighed.layer_before], axis=1)
    of_page = [
        [w for a, w in zip(weighed.anchors, both, strict=True) if a.page == p] for p in pages
    ]
    positive, *negatives = of_page
    return all(
        any((better > worse).all() for better in positive for worse in negative)
        for negative in negatives
        if len(negative)
    )


def _is_boilerplate(pair: Pair, source: BuildSource) -> bool | None:
    origin = pair.document_origin
    if origin is None or origin.page is None:
        return None
    if origin.place is not None and source.tree(origin.page).nodes[origin.place].boilerplate:
        return True
    return begins_with_hatnote(pair.document)


def page_unit(pair: Pair, fields: Sequence[str] | None = None) -> int:
    """Return what keeps the page of a pair's document apart from other pages.

    It is the page of a section or a passage; of a whole page it is a hash of its text, which
    another page may repeat.

    Args:
        pair: the pair.
        fields: what the text of a whole page is made of.
    """
    origin = pair.document_origin
    if origin is None or origin.page is None:
        return _text_unit(pair.document)
    is_part = origin.place is not None or "passage" in (fields or ())
    return origin.page if is_part else _text_unit(pair.document)


def query_units(group: PairGroup, source: BuildSource, options: DrawOptions) -> set[int]:
    """Return what keeps the pages apart that a group's queries are about, as `page_unit` does.

    A query is about the page that its anchor leads to, or else the one that its text comes from.
    """
    origins = [pair.query_origin or QueryOrigin() for pair in group.members]
    about = [o.page if o.anchor is None else source.anchor(o.anchor).page for o in origins]
    pages = {page for page in about if page is not None}
    fields = options.document_fields or ()
    if (
        group.positive.document_origin or DocumentOrigin()
    ).place is not None or "passage" in fields:
        return pages
    return {_text_unit(source.document(page, fields)) for page in pages}


def _text_unit(text: str) -> int:
    return stable_id("text", text)


def _ranks(
    sampled: Iterable[SampledWord], source: BuildSource, options: DrawOptions
) -> Iterator[int]:
    """The rank of each sampled word by its weight in the text that it is from; 1 is the highest."""
    terms_by_text: dict[tuple[int | None, int | None], Terms | None] = {}
    for drawn in sampled:
        text = (drawn.anchor, drawn.page)
        if text not in terms_by_text:
            terms_by_text[text] = _terms(drawn, source, options)
        terms = terms_by_text[text]
        word = drawn.word.lower()
        if terms is not None and word in terms.words:
            weight = terms.weights[terms.words.index(word)]
            yield 1 + int((terms.weights > weight).sum())


def _terms(drawn: SampledWord, source: BuildSource, options: DrawOptions) -> Terms | None:
    """The terms of the text that a word was drawn from."""
    if drawn.anchor is not None:
        return source.sentence_terms(source.anchor(drawn.anchor), options)
    return None if drawn.page is None else source.page_terms(drawn.page, options)


@lru_cache(maxsize=1 << 12)
def word_list(text: str) -> tuple[str, ...]:
    """Return the lower-cased words of a text, in order."""
    return tuple(words(text.lower()))


@lru_cache(maxsize=1 << 12)
def vocabulary(text: str) -> frozenset[str]:
    """Return the distinct lower-cased words of a text."""
    return frozenset(word_list(text))

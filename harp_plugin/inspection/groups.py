"""The groups of a task as the checks see them: with links, and with what keeps pages apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..sampling import stable_id
from ..tasks import DocumentOrigin, DrawOptions, Pair, PairGroup, QueryOrigin
from ..tasks.source import BuildSource
from .text_encoder import TextEncoder

__all__ = ["AuditedGroups", "Observation", "Side", "observe", "page_units"]


Side: TypeAlias = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Observation:
    """A group, and what the link graph says of its documents, the positive's first.

    Attributes:
        group: as training draws it.
        in_links: number of anchors that lead to each page; None where it is not a linked page.
        occurrences: how often the text of the anchor in the positive's query leads to each page;
            None where the query has no anchor, or the document no page.
    """

    group: PairGroup
    in_links: tuple[int | None, ...]
    occurrences: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class AuditedGroups:
    """The groups of a task that are audited.

    Attributes:
        task: name of the task.
        observations: one for each group.
        seed: of the random split that a learned check makes.
        stopped: the stop words of the draw.
        bm25: scores a query and a document by the words of the build's documents; None where nobody
            counted them.
        encoder: makes vectors of texts; None where there is no model.
        units: gives what keeps the pages apart that a side of a pair tells of.
    """

    task: str
    observations: list[Observation]
    seed: int
    stopped: frozenset[str] = frozenset()
    bm25: Callable[[str, str], float] | None = None
    encoder: TextEncoder | None = None
    units: Callable[[Pair, Side], set[int]] = lambda pair, _: {_text_unit(pair.document)}

    def differ(self, *sides: Side) -> bool:
        """Return whether the members of any group have different texts on one of these sides."""
        return any(
            len({getattr(pair, side) for pair in observation.group.members}) > 1
            for observation in self.observations
            for side in sides
        )


def observe(group: PairGroup, source: BuildSource) -> Observation:
    """Look up what the link graph says of a group's documents."""
    query = group.positive.query_origin or QueryOrigin()
    pages = [(pair.document_origin or DocumentOrigin()).page for pair in group.members]
    targets = {} if query.anchor is None else _targets(source.anchor(query.anchor).text_id, source)
    return Observation(
        group,
        tuple(None if page is None else _in_links(page, source) for page in pages),
        tuple(None if page is None or not targets else targets.get(page, 0) for page in pages),
    )


def _in_links(page: int, source: BuildSource) -> int | None:
    try:
        return source.in_links_to(page)
    except KeyError:
        return None


def _targets(text_id: int, source: BuildSource) -> dict[int, int]:
    """Return the pages that a text leads to anywhere, with the numbers of its anchors."""
    try:
        text = source.ambiguous_text(text_id)
    except KeyError:
        return dict.fromkeys(source.text_targets(text_id), 1)
    return dict(zip(text.pages.tolist(), text.counts.tolist(), strict=True))


def page_units(pair: Pair, side: Side, source: BuildSource, options: DrawOptions) -> set[int]:
    """Return what keeps the pages apart that a side of a pair tells of.

    They are the page of its document and, for the query, the page that the query is about: the one
    that its anchor leads to, or else the one that its text comes from. A section or a passage
    stands for its page; a whole page stands for a hash of its text, which another page may repeat.
    """
    document, query = pair.document_origin or DocumentOrigin(), pair.query_origin or QueryOrigin()
    fields = options.document_fields or ()
    is_part = document.place is not None or "passage" in fields
    about = query.page if query.anchor is None else source.anchor(query.anchor).page
    pages = [about] if side == "query" and about is not None else []
    if is_part and document.page is not None:
        return {document.page, *pages}
    texts = (source.document(page, fields) for page in pages)
    return {_text_unit(text) for text in (pair.document, *texts)}


def _text_unit(text: str) -> int:
    return stable_id("text", text)

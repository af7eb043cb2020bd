"""Terms become judged queries: what is no good query is dropped and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...graph.functional import FUNCTIONAL_ANCHORS
from ...sampling import stable_id
from ...text import normalize_anchor
from .options import QueryOptions
from .tables import KINDS
from .texts import is_address, is_natural, near_form, same_form, title_forms, without_qualifier

__all__ = ["NamedPage", "Query", "Term", "judged_queries"]

_NAMES = {"index": "index term", "redirect": "redirect", "link": "held-out anchor text"}


class Term(NamedTuple):
    """A text that names a page.

    Attributes:
        kind: one of `KINDS`.
        text: as written.
        page: id of the page.
        occurrences: how often it names the page.
        seen: whether a link that training sees has this text.
    """

    kind: str
    text: str
    page: int
    occurrences: int
    seen: bool


class NamedPage(NamedTuple):
    """What the audit knows of a page.

    Attributes:
        doc_id: its id in the collection.
        titles: forms of its title.
        anchors: near forms of the anchor texts that lead to it in training.
    """

    doc_id: str
    titles: frozenset[str]
    anchors: frozenset[str]


@dataclass(frozen=True)
class Query:
    """A judged query.

    Attributes:
        id: its kind and a hash of its text.
        text: as most people wrote it.
        near: its near form.
        pages: ids of the relevant pages, ascending.
    """

    id: str
    text: str
    near: str
    pages: tuple[int, ...] = field(default=())

    @property
    def kind(self) -> str:
        """The kind of the term, one of `KINDS`."""
        return self.id.partition("-")[0]


def judged_queries(
    terms: Iterable[Term],
    pages: Mapping[int, NamedPage],
    options: QueryOptions,
    drops: Counter[str],
) -> list[Query]:
    """Make queries of terms: those of one text, but for case and punctuation, are one query.

    Args:
        terms: of the kinds that the options name.
        pages: what is known of each page, by id.
        options: which queries are left out.
        drops: counts what is left out, by reason.

    Returns:
        The queries, sorted by id.
    """
    groups: dict[str, list[Term]] = defaultdict(list)
    for term in _good_terms(terms, pages, options, drops):
        groups[same_form(term.text)].append(term)
    queries = []
    for form, group in groups.items():
        query = _query(form, group)
        if reason := _reason(query, group, pages, options):
            drops[f"{_NAMES[query.kind]} {reason}"] += 1
        else:
            queries.append(query)
    return sorted(queries, key=lambda query: query.id)


def _good_terms(
    terms: Iterable[Term],
    pages: Mapping[int, NamedPage],
    options: QueryOptions,
    drops: Counter[str],
) -> Iterator[Term]:
    for term in terms:
        cleaned = term._replace(text=without_qualifier(term.text))
        if reason := _term_reason(cleaned, pages[term.page], options):
            drops[f"{_NAMES[term.kind]} {reason}"] += 1
        else:
            yield cleaned


def _term_reason(term: Term, page: NamedPage, options: QueryOptions) -> str | None:
    """Tell why a term is no query, if it is none."""
    if not same_form(term.text):
        return "without a letter or digit"
    if term.kind == "redirect" and is_address(term.text):
        return "that is an address, not a title"
    if term.kind == "redirect" and page.titles & title_forms(term.text):
        return "that differs from the title by case, punctuation or plural only"
    if normalize_anchor(term.text) in FUNCTIONAL_ANCHORS:
        return "that is functional, such as “here”"
    if options.identifiers == "drop" and not is_natural(term.text):
        return "that is an identifier"
    return None


def _query(form: str, group: list[Term]) -> Query:
    written: Counter[str] = Counter()
    for term in group:
        written[term.text] += term.occurrences
    text = min(written, key=lambda text: (-written[text], text))
    kind = min((term.kind for term in group), key=KINDS.index)
    id = f"{kind}-{stable_id('query', form):016x}"
    return Query(id, text, near_form(text), tuple(sorted({term.page for term in group})))


def _reason(
    query: Query, group: list[Term], pages: Mapping[int, NamedPage], options: QueryOptions
) -> str | None:
    """Tell why a query is left out, if it is."""
    relevant = [pages[page] for page in query.pages]
    if len(relevant) > options.max_relevant:
        return f"of more than {options.max_relevant} pages"
    if options.titles == "drop" and any(page.titles & title_forms(query.text) for page in relevant):
        return "that is the title of its page"
    if options.anchors == "drop" and any(query.near in page.anchors for page in relevant):
        return "that is an anchor text of its page in training"
    if any(term.seen for term in group):
        return "that leads to other pages in training"
    return None

"""Terms become judged queries: what is not a good query is dropped and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ...errors import HarpError
from ...graph.functional import FUNCTIONAL_ANCHORS
from ...options import Count, Fraction, Number, Options, Seed, option
from ...sampling import stable_id
from ...text import normalize_anchor
from .tables import KINDS
from .texts import is_address, is_natural, near_form, same_form, title_forms, without_qualifier

__all__ = ["NamedPage", "Query", "QueryOptions", "Term", "judged_queries"]

_KeepOrDrop = Literal["keep", "drop"]
_NAMES = {
    "index": "index term",
    "redirect": "redirect",
    "link": "held-out anchor text",
    "anchor": "anchor text",
}


@dataclass(kw_only=True)
class QueryOptions(Options):
    """Which queries are made, and how they are split.

    Attributes:
        kinds: Where queries come from: terms of an index that people wrote (index), titles of
            redirects (redirect), links that `harp build --held-out-links` holds out (link), links
            that training sees (anchor). The last make train queries only, where there are no
            others, of pages that no other query asks for.
        max_queries_per_page: The most queries of each kind for one page, in all splits together.
        max_queries: The most queries of each kind in dev and in test.
        max_train_queries: The most queries of each kind in train.
        min_train_queries: With fewer queries in train, there is no train, and dev takes them.
        min_test_queries: With fewer queries in test, there is no train and no dev, and test takes
            them: weights can be learned from other folds of them.
        train_fraction: Fraction of the queries in train.
        dev_fraction: Fraction of the queries in dev; the rest is test.
        max_relevant: Queries with more relevant pages are dropped: they ask for a subject.
        identifiers: Keep or drop queries with a word that is not natural language, such as C4996.
        titles: Keep or drop queries that are the title of a relevant page.
        anchors: Keep or drop queries that are an anchor text of a relevant page in training.
        allow_empty: Write the documents alone where there is no query; else this is an error.
        seed: Seed of the splits and of the draw.

    Raises:
        HarpError: a number is out of its range, or a choice is unknown.
    """

    kinds: list[str] = option(list(KINDS[:3]), choices=KINDS)
    max_queries_per_page: Count | None = None
    max_queries: Count | None = 1000
    max_train_queries: Count | None = 1000
    min_train_queries: Number = 0
    min_test_queries: Number = 0
    train_fraction: Fraction = 0.2
    dev_fraction: Fraction = 0.2
    max_relevant: Count = 10
    identifiers: _KeepOrDrop = "drop"
    titles: _KeepOrDrop = "drop"
    anchors: _KeepOrDrop = "drop"
    allow_empty: bool = False
    seed: Seed = 42

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kinds:
            raise HarpError(f"--kinds is empty: give one or more of {', '.join(KINDS)}")
        if not self.train_fraction + self.dev_fraction < 1:
            raise HarpError(
                "--train-fraction and --dev-fraction leave no queries to test: give less"
            )


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
    for written in terms:
        term = written._replace(text=without_qualifier(written.text))
        if reason := _term_reason(term, pages[term.page], options):
            drops[f"{_NAMES[term.kind]} {reason}"] += 1
        else:
            groups[same_form(term.text)].append(term)
    queries = []
    for form, group in groups.items():
        query = _query(form, group)
        if reason := _reason(query, group, pages, options):
            drops[f"{_NAMES[query.kind]} {reason}"] += 1
        else:
            queries.append(query)
    return sorted(queries, key=lambda query: query.id)


def _term_reason(term: Term, page: NamedPage, options: QueryOptions) -> str | None:
    """Return why a term is not a query, if it is not one."""
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
    """Return why a query is left out, if it is."""
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

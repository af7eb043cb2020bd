"""Splits queries so that no page and no near-duplicate query is in two splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from scipy.cluster.hierarchy import DisjointSet

from ...sampling import stable_id
from ..datasets import SPLITS
from .queries import Query, QueryOptions

__all__ = [
    "drawn_queries",
    "few_queries_of_a_page",
    "queries_of_other_pages",
    "shared_by_splits",
    "split_queries",
]

_LARGEST_FRACTION = 0.02
_SMALLEST_LIMIT = 10


def split_queries(
    queries: Sequence[Query], options: QueryOptions, drops: Counter[str]
) -> dict[str, list[Query]]:
    """Split queries by page, near-duplicates together.

    Pages that a query or near-duplicate queries have in common form a group, which goes to one
    split as a whole. A query that would make a group of more than 2 % of the pages is left out.

    Args:
        queries: to be split.
        options: fractions, the fewest queries of train and of test, and seed.
        drops: counts what is left out, by reason.

    Returns:
        The queries of each split, sorted by id.
    """
    kept, groups = _grouped(queries, drops)
    by_group: dict[int, list[Query]] = defaultdict(list)
    for query in kept:
        by_group[groups[query.pages[0]]].append(query)
    first_pages = {group: min(groups.subset(group)) for group in by_group}
    order = sorted(by_group, key=lambda group: stable_id(options.seed, "split", first_pages[group]))
    splits: dict[str, list[Query]] = {split: [] for split in SPLITS}
    ends = (options.train_fraction, options.train_fraction + options.dev_fraction)
    before = 0
    for group in order:
        middle = (before + len(by_group[group]) / 2) / len(kept)
        splits[SPLITS[sum(middle >= end for end in ends)]] += by_group[group]
        before += len(by_group[group])
    if len(splits["train"]) < options.min_train_queries:
        splits["dev"] += splits["train"]
        splits["train"] = []
    if len(splits["test"]) < options.min_test_queries:
        splits = {split: kept if split == "test" else [] for split in SPLITS}
    return {split: sorted(chosen, key=lambda query: query.id) for split, chosen in splits.items()}


def few_queries_of_a_page(
    queries: Sequence[Query], options: QueryOptions, drops: Counter[str]
) -> list[Query]:
    """Draw as many queries of each kind for one page as ``max_queries_per_page`` says, or fewer.

    A page with hundreds of terms would otherwise decide alone what is learned and measured.

    Args:
        queries: to be drawn from, sorted by id.
        options: how many, and the seed.
        drops: counts what is not drawn.
    """
    most = options.max_queries_per_page
    if most is None:
        return list(queries)
    counts: Counter[tuple[str, int]] = Counter()
    drawn = []
    for query in sorted(queries, key=lambda query: stable_id(options.seed, "draw", query.id)):
        places = [(query.kind, page) for page in query.pages]
        if all(counts[place] < most for place in places):
            drawn.append(query)
            counts.update(places)
    drops["query beyond --max-queries-per-page"] += len(queries) - len(drawn)
    return sorted(drawn, key=lambda query: query.id)


def queries_of_other_pages(
    queries: Sequence[Query], splits: Mapping[str, Sequence[Query]]
) -> list[Query]:
    """Return the queries of no page, and near no query, of any split."""
    others = [query for split in splits.values() for query in split]
    pages = {page for query in others for page in query.pages}
    forms = {query.near for query in others}
    return [q for q in queries if pages.isdisjoint(q.pages) and q.near not in forms]


def drawn_queries(
    splits: Mapping[str, Sequence[Query]], options: QueryOptions, drops: Counter[str]
) -> dict[str, list[Query]]:
    """Draw as many queries of each kind and split as the options say.

    Where there are train queries, those of dev and test that are not drawn are added to them,
    unless a drawn one has the same page or is a near-duplicate. A smaller ``max_queries`` draws a
    subset of what a larger one draws.

    Args:
        splits: the queries of each split.
        options: how many, and the seed.
        drops: counts what is not drawn.
    """
    most, seed = options.max_queries, options.seed
    drawn = {split: _drawn(splits.get(split, []), most, seed) for split in SPLITS[1:]}
    chosen = {query.id for queries in drawn.values() for query in queries}
    train = list(splits.get("train", []))
    if train:
        rest = [q for split in drawn for q in splits.get(split, []) if q.id not in chosen]
        train += queries_of_other_pages(rest, drawn)
    drawn = {"train": _drawn(train, options.max_train_queries, seed), **drawn}
    beyond = sum(map(len, splits.values())) - sum(map(len, drawn.values()))
    drops["query beyond --max-queries"] += beyond
    return drawn


def _drawn(queries: Sequence[Query], most: int | None, seed: int) -> list[Query]:
    """Draw the most queries of each kind, sorted by id."""
    by_kind: dict[str, list[Query]] = defaultdict(list)
    for query in sorted(queries, key=lambda query: stable_id(seed, "draw", query.id)):
        by_kind[query.kind].append(query)
    chosen = [query for of_kind in by_kind.values() for query in of_kind[:most]]
    return sorted(chosen, key=lambda query: query.id)


def shared_by_splits(splits: Mapping[str, Sequence[Query]]) -> dict[str, int]:
    """Count the pages, and the near forms of queries, that are in more than one split."""
    pages: Counter[int] = Counter()
    forms: Counter[str] = Counter()
    for queries in splits.values():
        pages.update({page for query in queries for page in query.pages})
        forms.update({query.near for query in queries})
    return {
        "pages in several splits": sum(count > 1 for count in pages.values()),
        "near-duplicate queries across splits": sum(count > 1 for count in forms.values()),
    }


def _grouped(queries: Sequence[Query], drops: Counter[str]) -> tuple[list[Query], DisjointSet]:
    """Join the pages of each query and of its near-duplicates, fewest pages first."""
    by_form: dict[str, list[Query]] = defaultdict(list)
    for query in queries:
        by_form[query.near].append(query)
    pages = {form: {page for query in of for page in query.pages} for form, of in by_form.items()}
    total = len(set().union(*pages.values()))
    limit = max(_SMALLEST_LIMIT, int(_LARGEST_FRACTION * total))
    groups = DisjointSet()
    kept = []
    for form in sorted(by_form, key=lambda form: (len(pages[form]), stable_id("form", form))):
        if _join(groups, pages[form], limit):
            kept += by_form[form]
        else:
            drops["query that would join very many pages in one split"] += len(by_form[form])
    return kept, groups


def _join(groups: DisjointSet, pages: set[int], limit: int) -> bool:
    """Make one group of the groups of pages, unless it would have more pages than the limit.

    Returns:
        Whether it is one group.
    """
    for page in pages:
        groups.add(page)
    roots = {groups[page] for page in pages}
    if sum(groups.subset_size(root) for root in roots) > limit:
        return False
    first = roots.pop()
    for root in roots:
        groups.merge(first, root)
    return True

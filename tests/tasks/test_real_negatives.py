"""No negative of 150 real articles is a page that links or equal texts make relevant."""

from collections import Counter, defaultdict
from typing import NamedTuple

import pytest
from builds import read_table
from orchard_wiki import draws
from wiki_reading import WikiReading

from harp_plugin.graph import FUNCTIONAL_ANCHORS
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.tasks.source import BuildSource

pytestmark = pytest.mark.integration
TASKS = ["ltm", "ict", "bfs", "wlp", "codoc", "hlp", "php", "anchor"]


@pytest.fixture(scope="module")
def source(wiki_build):
    return BuildSource(wiki_build, TASKS)


@pytest.fixture(scope="module")
def wiki(wiki_build):
    return WikiReading(wiki_build)


class Link(NamedTuple):
    """A link of a page's text: where it stands, its text, its page, and those linked beside it."""

    source: str
    text: str
    page: str
    beside: set[str]


@pytest.fixture(scope="module")
def links(wiki):
    rows = wiki.tables["links"]
    pages = {key: wiki.resolved(key) for key in {row["target"] for row in rows}}
    sources = {row["id"]: wiki.titles[row["page"]] for row in wiki.tables["sentences"]}
    beside = defaultdict(set)
    for row in rows:
        beside[row["sentence"]].add(pages[row["target"]])
    return {
        row["id"]: Link(
            sources[row["sentence"]],
            row["normalized"],
            pages[row["target"]],
            beside[row["sentence"]],
        )
        for row in rows
        if row["region"] is None
    }


@pytest.fixture(scope="module")
def pages_of_texts(wiki):
    """By all links, those in boilerplate and on short pages included."""
    found = defaultdict(set)
    for row in wiki.tables["links"]:
        found[row["normalized"]].add(wiki.resolved(row["target"]))
    return found


def test_examples_of_anchor(wiki_build, wiki, links):
    """One for each text and document, the anchor of the lowest id; of a document, two are drawn."""
    first = {}
    for id, link in sorted(links.items()):
        fits = link.page in wiki.anchored[link.source] and link.page in wiki.documents
        if fits and link.text not in FUNCTIONAL_ANCHORS:
            first.setdefault((link.text, link.page), id)
    rows = read_table(wiki_build / "examples" / "anchor").to_pylist()
    assert {row["id"] for row in rows} == set(first.values())
    counts = Counter(page for _, page in first)
    data = PreTrainingData(wiki_build, {"anchor": 1}, draw=DrawOptions(anchors_per_page=2))
    assert len(data) == sum(min(2, count) for count in counts.values()) < len(rows)
    ranks = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["id"]):
        ranks[links[row["id"]].page].append(row["rank"])
    assert all(found == list(range(len(found))) for found in ranks.values())


def barred(task, group, wiki, links, pages_of_texts):
    """Titles that the negatives must not be."""
    origin = group.positive.query_origin
    if task == "anchor":
        link = links[origin.anchor]
        return {link.page} | link.beside | pages_of_texts[link.text]
    title = wiki.titles[origin.page]
    if task == "ltm":
        return {title} | wiki.linked[title] | wiki.related[title]
    more = wiki.beside(title) if task == "hlp" else set()
    return (set(wiki.rows) - wiki.no_link(title)) | more


def ranked(source, task, example, group):
    if task == "anchor":
        return source.hard_negatives("bm25", "anchor_texts", source.anchor(example).text_id)
    return source.hard_negatives("bm25", "pages", group.positive.query_origin.page)


@pytest.mark.parametrize("negatives", ["task", "in_links", "bm25"])
@pytest.mark.parametrize("task", TASKS)
def test_negatives(source, wiki, links, pages_of_texts, task, negatives):
    """Nor, of PHP's one-way links, any but below a mutual one."""
    counts = Counter()
    for example in source.examples[task].ids.tolist()[:150]:
        for group in draws(source, task, example, 2, negatives=negatives):
            counts[group is not None] += 1
            if group is None:
                continue
            never = barred(task, group, wiki, links, pages_of_texts)
            titles = [wiki.titles[pair.document_origin.page] for pair in group.members]
            if task == "php" and titles[1] in never:
                mutual, one_way = wiki.neighbors[wiki.titles[group.positive.query_origin.page]]
                assert titles[0] in mutual and titles[1] in one_way
                continue
            assert never.isdisjoint(titles[1:]) and titles[0] not in titles[1:]
            if negatives == "bm25":
                drawn = {pair.document_origin.page for pair in group.negatives}
                assert drawn <= set(ranked(source, task, example, group))
    assert counts[True] > (0.5 if negatives == "bm25" else 0.9) * counts.total()


def test_options_reach_the_reader_of_training(wiki_build):
    kinds = [DrawOptions(negatives=kind) for kind in ("task", "bm25", "in_links")]
    data = [PreTrainingData(wiki_build, {"wlp": 1, "anchor": 1}, draw=draw) for draw in kinds]
    for index in range(5):
        groups = [each.group(0, index) for each in data]
        assert len({group.task for group in groups}) == 1
        assert len({group.negatives for group in groups}) == 3

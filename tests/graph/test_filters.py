"""The graph's filters, worked by hand on a small wiki, and counted on real ones."""

from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from brute import Graph, link_graph
from builds import read_table
from chi_square import agrees
from dumps import write_dump
from expressions import NAMED, as_graph, compute, rows_of
from small_wiki import ALL, PAGES, SIXTY_FIVE_WORDS
from synthetic import synthetic_wiki

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import FUNCTIONAL_ANCHORS, GraphOptions, build_graph
from harp_plugin.text import normalize_anchor

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    source = write_dump(folder / "small.xml", PAGES)
    build_corpus(folder, CorpusOptions(), sources=[source], quiet=True)
    return folder


@cache
def tables(corpus: Path) -> dict[str, pa.Table]:
    names = ("pages", "sentences", "links", "redirects")
    return {name: read_table(corpus / "corpus" / name) for name in names}


@cache
def graph(corpus: Path, **options) -> tuple[Graph, dict[int, str]]:
    """The graph, and its pages' keys."""
    found = as_graph(compute(tables(corpus), min_words=0, **options))
    return found, {page["id"]: page["key"] for page in tables(corpus)["pages"].to_pylist()}


def links(corpus: Path, **options) -> Counter:
    """Source, normalized text and page of each anchor."""
    found, keys = graph(corpus, **options)
    rows = found.anchors.values()
    return Counter((keys[a["source"]], a["normalized"], keys[a["page"]]) for a in rows)


def documents(corpus: Path, **options) -> set[str]:
    found, keys = graph(corpus, **options)
    return {keys[id] for id in found.documents}


@pytest.mark.parametrize(
    ("options", "drops"),
    [
        ({}, {}),
        ({"functional_anchors": "drop"}, {"link whose text is functional": 1}),
        ({"numeric_anchors": "drop"}, {"link whose text has no letter": 1}),
        ({"long_anchors": "drop"}, {"link whose text has more than 64 words": 1}),
        ({"title_anchors": 0.0}, {"link whose text is the title of its page": 12}),
        (
            {"disambiguation_pages": "drop"},
            {
                "disambiguation page": 1,
                "link to a disambiguation page": 1,
                "link from a disambiguation page": 2,
            },
        ),
        (
            {"list_pages": "drop"},
            {"list page": 1, "link to a list page": 1, "link from a list page": 3},
        ),
        (
            {"min_lead_words": 3},
            {"page with too short a lead": 1, "link to a page with too short a lead": 1},
        ),
    ],
)
def test_each_filter(small, options, drops):
    assert graph(small, **options)[0].drops == {"link to its own page": 1} | drops


def test_lists_are_neither_source_nor_document(small):
    gone = links(small) - links(small, list_pages="drop")
    assert gone.total() == 4
    assert all("List of fruits" in (source, page) for source, _, page in gone)
    assert documents(small) - documents(small, list_pages="drop") == {"List of fruits"}


def test_a_short_lead_leaves_the_links(small):
    gone = links(small) - links(small, min_lead_words=3)
    assert gone == {("Long", "short", "Short"): 1}


def test_texts_that_are_left(small):
    assert links(small, title_anchors=0.0, functional_anchors="drop") == {
        ("Apple", "ants", "Ant"): 1,
        ("Crab apple", "ants", "Ant"): 1,
        ("List of fruits", "the apple", "Apple"): 1,
        ("List of fruits", "crab", "Crab apple"): 1,
        ("Years", "1984", "Mercury (planet)"): 1,
        ("Years", "no 8", "Ant"): 1,
        ("Years", "8th", "Ant"): 1,
        ("Years", SIXTY_FIVE_WORDS, "Ant"): 1,
    }


def test_one_of_near_duplicates_stays(small):
    ids = {page["key"]: page["id"] for page in tables(small)["pages"].to_pylist()}
    _, second = sorted(["Apple", "Crab apple"], key=ids.__getitem__)
    found, _ = graph(small, near_duplicate_leads="drop")
    assert found.drops["page whose lead nearly repeats another's"] == 1
    assert set(PAGES) - documents(small, near_duplicate_leads="drop") == {second}
    gone = links(small) - links(small, near_duplicate_leads="drop")
    assert gone and {page for _, _, page in gone} == {second}


@pytest.mark.parametrize("options", [ALL, *({name: value} for name, value in ALL.items())])
def test_filters_against_brute_force(small, options):
    rows = [table.to_pylist() for table in tables(small).values()]
    assert graph(small, **options)[0] == link_graph(*rows, GraphOptions(min_words=0, **options))


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """A synthetic wiki, with the small one beside it."""
    folder = tmp_path_factory.mktemp("synthetic")
    wiki = synthetic_wiki.Wiki(pages=150, links=1500, redirects=40, seed=3)
    synthetic_wiki.write_dump(wiki, folder / "wiki.xml", quiet=True)
    small = write_dump(folder / "small.xml", PAGES)
    build_corpus(folder, CorpusOptions(), sources=[folder / "wiki.xml", small], quiet=True)
    return folder


def build(corpus: Path, folder: Path, workers: int, **options):
    folder.mkdir()
    (folder / "corpus").symlink_to(corpus / "corpus")
    return build_graph(folder, GraphOptions(min_words=0, **options), workers=workers)


def test_filters_on_a_synthetic_wiki(synthetic, tmp_path):
    """Anchors of this wiki are titles, mostly; "here" stands among the others."""
    options = ALL | {"title_anchors": 0.5}
    rows = [table.to_pylist() for table in tables(synthetic).values()]
    expected = link_graph(*rows, GraphOptions(min_words=0, **options))
    manifest = build(synthetic, tmp_path / "one", 1, **options)
    for name in NAMED:
        found = read_table(tmp_path / "one" / "graph" / name).to_pylist()
        assert {row["id"]: row for row in found} == getattr(expected, name)
    assert (manifest["drops"], manifest["counts"]) == (expected.drops, expected.counts)
    assert manifest["drops"]["link whose text is functional"] >= 1
    assert build(synthetic, tmp_path / "three", 3, **options) == manifest
    for file in (tmp_path / "one" / "graph").rglob("*.parquet"):
        other = tmp_path / "three" / file.relative_to(tmp_path / "one")
        assert other.read_bytes() == file.read_bytes()


def test_the_share_of_title_anchors(synthetic):
    """A larger share keeps all that a smaller one keeps, and each is met."""
    kept = {}
    for share in (0.0, 0.25, 0.75, 1.0):
        anchors = compute(tables(synthetic), min_words=0, title_anchors=share)["anchors"]
        kept[share] = set(rows_of(anchors))
    assert kept[0.0] < kept[0.25] < kept[0.75] < kept[1.0]
    of_titles = len(kept[1.0]) - len(kept[0.0])
    assert of_titles > 600
    for share in (0.25, 0.75):  # within five standard deviations
        found = len(kept[share]) - len(kept[0.0])
        assert abs(found - share * of_titles) < 5 * (of_titles * 0.25 * 0.75) ** 0.5
    for parts in (2, 7, 64):  # ids are split into parts elsewhere
        numbers = Counter(id % parts for id in kept[0.25] - kept[0.0])
        assert agrees(numbers, dict.fromkeys(range(parts), 1 / parts))


def test_functional_anchors_are_normalized():
    assert len(FUNCTIONAL_ANCHORS) > 500
    assert {text for text in FUNCTIONAL_ANCHORS if normalize_anchor(text) != text} == set()
    assert all(FUNCTIONAL_ANCHORS)


@pytest.mark.parametrize(
    ("written", "functional"),
    [
        *((text, True) for text in ("Here", "[PDF]", "Click here!", "Read more »", "this article")),
        *((text, True) for text in ("Weiterlesen …", "Официальный сайт", "こちら", "点击这里")),
        *((text, False) for text in ("apple", "here be dragons", "", "Website design", "history")),
    ],
)
def test_functional_anchors(written, functional):
    assert (normalize_anchor(written) in FUNCTIONAL_ANCHORS) is functional


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"title_anchors": 1.5}, "--title-anchors is 1.5: it must be at least 0 and at most 1"),
        ({"min_lead_words": -1}, "--min-lead-words is -1: it must be at least 0"),
        ({"min_words": -1}, "--min-words is -1: it must be at least 0"),
        ({"list_pages": "no"}, "--list-pages is 'no': it must be one of keep, drop"),
    ],
)
def test_bad_values(options, message):
    with pytest.raises(HarpError, match=message):
        GraphOptions(**options)


@pytest.mark.integration
def test_filters_on_a_real_dump(corpus150):
    rows = [table.to_pylist() for table in tables(corpus150).values()]
    found, _ = graph(corpus150, **ALL)
    assert found == link_graph(*rows, GraphOptions(min_words=0, **ALL))
    assert found.drops["link whose text is the title of its page"] > 300

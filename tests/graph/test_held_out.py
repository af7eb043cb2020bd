"""Links that are held out: no table that training reads shows them, and none contradicts them."""

from functools import cache

import pytest
from brute import link_graph
from builds import read_table
from dumps import write_dump
from expressions import NAMED, as_graph, compute, rows_of
from small_wiki import PAGES
from synthetic import synthetic_wiki

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.work.manifest import read_manifest

SHARES = [
    {"held_out_links": share, "held_out_by": by} for share in (0.3, 0.6) for by in ("page", "text")
]
TABLES = ("pages", "sentences", "links", "redirects")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A synthetic wiki with see-also links, and the small wiki beside it."""
    folder = tmp_path_factory.mktemp("wikis")
    wiki = synthetic_wiki.Wiki(pages=60, links=500, redirects=15, seed=3)
    synthetic_wiki.write_dump(wiki, folder / "wiki.xml", quiet=True)
    see_also = "\n== See also ==\n* [[Apple]]\n* [[Ant]]\n* [[Crab apple]]"
    more = {"Plum": f"A plum. [[Apple|An apple]].{see_also}"}
    small = write_dump(folder / "small.xml", PAGES | more)
    build_corpus(folder, CorpusOptions(), sources=[folder / "wiki.xml", small], quiet=True)
    return folder


@pytest.fixture(scope="module")
def tables(corpus):
    return {name: read_table(corpus / "corpus" / name) for name in TABLES}


@pytest.fixture(scope="module")
def held_out(tables):
    """Gives the graph of some options, and the rows of the links that are held out."""

    @cache
    def graph(**options):
        computed = compute(tables, min_words=0, **options)
        return computed, rows_of(computed["held_out_links"])

    yield graph
    graph.cache_clear()


@pytest.mark.parametrize("options", SHARES)
def test_against_brute_force(tables, held_out, options):
    rows = [table.to_pylist() for table in tables.values()]
    computed, links = held_out(**options)
    expected = link_graph(*rows, GraphOptions(min_words=0, **options))
    assert as_graph(computed) == expected
    whole = link_graph(*rows, GraphOptions(min_words=0)).anchors
    assert links == {id: row for id, row in whole.items() if id not in expected.anchors}
    assert expected.drops["link that is held out for queries"] == len(links) > 20


@pytest.mark.parametrize("options", SHARES)
def test_no_table_shows_them_but_those_of_excluded_negatives(held_out, options):
    computed, links = held_out(**options)
    graph = as_graph(computed)
    pairs = {(row["text_id"], row["page"]) for row in links.values()}
    for row in links.values():
        page, source = row["page"], row["source"]
        assert row["id"] not in graph.page_links[source]["anchors"]
        assert page in graph.page_links[source]["linked"]  # no negative beside this page's texts
        sentence = graph.sentence_anchors.get(row["sentence"])
        if sentence is not None:
            assert row["id"] not in sentence["anchors"] and page in sentence["linked"]
        text = graph.anchor_texts.get(row["text_id"])
        if text is not None:
            assert page in text["targets"]
    assert pairs.isdisjoint((row["text_id"], row["page"]) for row in graph.anchors.values())
    for text in graph.ambiguous_texts.values():
        assert pairs.isdisjoint((text["id"], page) for page in text["pages"])
    if options["held_out_by"] == "page":
        pages = {row["page"] for row in links.values()}
        assert all(graph.documents[page]["in_links"] == 0 for page in pages)
        assert not any(graph.page_links[page]["sources"] for page in pages & set(graph.page_links))
        assert all(pages.isdisjoint(row["targets"]) for row in graph.page_links.values())
        assert pages.isdisjoint(row["target"] for row in graph.see_also)
    else:
        assert {text for text, _ in pairs}.isdisjoint(graph.anchor_texts)


def test_a_larger_share_holds_out_more_and_another_seed_others(held_out):
    chosen = {
        (share, seed): set(held_out(held_out_links=share, held_out_by="text", seed=seed)[1])
        for share, seed in ((0.2, 1), (0.5, 1), (0.8, 1), (0.5, 2))
    }
    assert chosen[0.2, 1] < chosen[0.5, 1] < chosen[0.8, 1]
    assert chosen[0.5, 1] & chosen[0.5, 2]
    assert chosen[0.5, 1] - chosen[0.5, 2] and chosen[0.5, 2] - chosen[0.5, 1]


def test_the_share_of_texts(tables, held_out):
    texts = rows_of(compute(tables, min_words=0)["anchor_texts"])
    for share, seed in ((0.2, 1), (0.5, 1), (0.5, 2)):
        computed, _ = held_out(held_out_links=share, held_out_by="text", seed=seed)
        left = rows_of(computed["anchor_texts"])
        deviation = (len(texts) * share * (1 - share)) ** 0.5
        assert abs(len(texts) - len(left) - share * len(texts)) < 5 * deviation


def build(corpus, folder, **options):
    folder.mkdir()
    (folder / "corpus").symlink_to(corpus / "corpus")
    manifest = build_graph(folder, GraphOptions(min_words=0, **options))
    return manifest, {f: entry["sha256"] for f, entry in manifest["files"].items()}


@pytest.mark.integration
def test_without_them_a_build_is_as_it_was(corpus, tmp_path):
    """The manifest does not name the options either: earlier builds are finished still."""
    plain, files = build(corpus, tmp_path / "plain")
    assert "held_out_links" not in plain["rows"] and "seed" not in plain["settings"]
    again, _ = build(corpus, tmp_path / "again", held_out_by="text", seed=7)
    assert again == plain
    out, others = build(corpus, tmp_path / "out", held_out_links=0.3, held_out_by="text", seed=7)
    assert out["settings"]["held_out_links"] == 0.3 and out["settings"]["seed"] == 7
    assert out["rows"]["held_out_links"] == out["drops"]["link that is held out for queries"] > 0
    assert out["rows"]["anchors"] + out["rows"]["held_out_links"] == plain["rows"]["anchors"]
    assert files.keys() < others.keys()
    assert read_manifest(tmp_path / "out" / "graph") == out
    assert set(NAMED) < set(out["rows"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"held_out_links": 1.0}, "--held-out-links is 1.0: it must be at least 0 and below 1"),
        ({"held_out_by": "pages"}, "--held-out-by is 'pages': it must be one of page, text"),
    ],
)
def test_bad_values(options, said):
    with pytest.raises(HarpError, match=said):
        GraphOptions(**options)

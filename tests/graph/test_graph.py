"""The link graph against a brute force in plain Python, on random graphs and on a real dump."""

import random
from collections import Counter, defaultdict
from types import SimpleNamespace

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brute import ambiguous, link_graph, resolve_redirects
from dumps import write_dump

from harp_plugin import graph
from harp_plugin.corpus.build import TABLES, build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.storage import read_table


@pytest.fixture
def database(tmp_path):
    """An embedded DuckDB; ``database.load(name, table)`` gives it an Arrow table."""
    connection = ibis.duckdb.connect(threads=1)

    def load(name, table):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        return connection.read_parquet(tmp_path / f"{name}.parquet", table_name=name)

    yield SimpleNamespace(load=load, create_table=connection.create_table)
    connection.disconnect()


def rows_of(table, key="id"):
    rows = table.to_pyarrow().to_pylist()
    by_key = {row[key]: row for row in rows}
    assert len(by_key) == len(rows), "ids must be distinct"
    return by_key


def compute(database, tables, min_words):
    """All results of the stage's expressions, as dictionaries by id."""
    known = {name: database.load(name, table) for name, table in tables.items()}
    steps = {
        "kept": lambda t: graph.kept_pages(t, min_words=min_words),
        "resolved": graph.resolved_links,
        "drops": graph.dropped_links,
        "anchors": graph.resolved_anchors,
        "sentence_anchors": graph.anchors_by_sentence,
        "documents": graph.documents,
    }
    for name, expression in steps.items():
        known[name] = database.create_table(name, expression(known))
    return known


def random_graph(seed):
    draw = random.Random(seed)
    titles = [f"T{n}" for n in range(14)]
    pages = [
        {
            "id": draw.getrandbits(62),
            "key": title,
            "title": title,
            "lead": draw.choice(["", "x", "x"]),
            "words": draw.choice([None, 50, 100, 150]),
            "sections": [],
            "see_also": [],
        }
        for title in titles[: draw.randint(2, 8)]
    ]
    redirects = [
        {"source": draw.choice(titles), "target": draw.choice(titles)}
        for _ in range(draw.randint(0, 12))
    ]
    sentences = [
        {"id": draw.getrandbits(62), "page": draw.choice(pages)["id"], "text": "x"}
        for _ in range(draw.randint(1, 10))
    ]
    links = []
    for _ in range(draw.randint(0, 60)):
        start = draw.randint(0, 5)
        name = draw.choice("abcd")
        links.append(
            {
                "id": draw.getrandbits(62),
                "sentence": draw.choice(sentences)["id"],
                "start": start,
                "end": start + 1,
                "anchor": name.upper(),
                "normalised": name,
                "target": draw.choice(titles),
            }
        )
    # A page that stands in two sources gives every row twice.
    pages += draw.sample(pages, 1)
    sentences += draw.sample(sentences, 1)
    links += draw.sample(links, min(2, len(links)))
    return pages, sentences, links, redirects


def as_tables(pages, sentences, links, redirects):
    named = {"pages": pages, "sentences": sentences, "links": links, "redirects": redirects}
    return {name: pa.Table.from_pylist(rows, schema=TABLES[name]) for name, rows in named.items()}


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(database, seed):
    rows = random_graph(seed)
    tables = compute(database, as_tables(*rows), 100)
    anchors, drops, by_sentence, documents = link_graph(*rows, 100)
    assert rows_of(tables["anchors"]) == anchors
    assert {k: v["count"] for k, v in rows_of(tables["drops"], "reason").items()} == drops
    assert rows_of(tables["sentence_anchors"]) == by_sentence
    assert rows_of(tables["documents"]) == documents
    assert len(anchors) + drops.total() == len({link["id"] for link in rows[2]})
    for caps in ((100, 1000), (2, 3), (3, 1)):
        got = rows_of(graph.ambiguous_anchors(tables["anchors"], *caps))
        assert got == ambiguous(anchors, *caps)


def test_random_graphs_reach_every_case():
    """The brute force itself meets every reason, ambiguity and redirects of several hops."""
    drops, anchors, several, hops = Counter(), 0, 0, Counter()
    for seed in range(25):
        rows = random_graph(seed)
        found = link_graph(*rows, 100)
        anchors += len(found[0])
        drops += found[1]
        several += len(ambiguous(found[0], 2, 3))
        titles = {page["key"] for page in rows[0]}
        final = resolve_redirects(rows[3], titles)
        hops["resolved"] += len(final)
        hops["lost"] += len({row["source"] for row in rows[3]} - titles - set(final))
    assert anchors > 50 and several > 20 and min(hops.values()) > 5
    assert len(drops) == 4 and min(drops.values()) > 10


@pytest.mark.parametrize(
    ("chain", "end"),
    [
        ("AB", "B"),
        ("ABCDEF", "F"),
        ("ABCDEFG", None),  # more than five redirects on end
        ("AA", None),
        ("ABA", None),
        ("ABCB", None),
    ],
)
def test_redirect_chains(database, chain, end):
    pairs = {"source": list(chain[:-1]), "target": list(chain[1:])}
    table = database.load("chain", pa.table(pairs))
    found = rows_of(graph.final_redirects(table), "source")
    assert (found["A"]["target"] if "A" in found else None) == end


def test_a_doubled_redirect_takes_one_target(database):
    pairs = {"source": ["A", "A", "A"], "target": ["C", "B", "B"]}
    table = database.load("double", pa.table(pairs))
    assert graph.final_redirects(table).to_pyarrow().to_pylist() == [{"source": "A", "target": "B"}]


def test_a_page_wins_over_a_redirect_of_its_name(tmp_path):
    pages = {"A": "x [[B]].", "B": "y.", "C": "z."}
    source = write_dump(tmp_path / "d.xml", pages, {"B": "C"})
    build_corpus([source], tmp_path, CorpusOptions(), quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=0))
    keys = {row["id"]: row["key"] for row in read_table(tmp_path / "corpus/pages").to_pylist()}
    (anchor,) = read_table(tmp_path / "graph/anchors").to_pylist()
    assert keys[anchor["page"]] == "B"


def test_nothing_resolves(tmp_path):
    pages = {"A": "x [[Nowhere]].", "B": "y [[B]] [[Elsewhere]]."}
    source = write_dump(tmp_path / "d.xml", pages)
    build_corpus([source], tmp_path, CorpusOptions(), quiet=True)
    with pytest.raises(HarpError, match=r"missing page: 2, link to its own page: 1") as caught:
        build_graph(tmp_path, GraphOptions(min_words=0))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "graph" / "manifest.json").exists()


def test_needs_the_corpus(tmp_path):
    with pytest.raises(HarpError, match=r"no finished stage in .*corpus"):
        build_graph(tmp_path, GraphOptions())


@pytest.mark.parametrize(
    "min_words", [0, *(pytest.param(n, marks=pytest.mark.integration) for n in (100, 300))]
)
def test_real_dump(shared_data, tmp_path, min_words):
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    build_corpus([source], tmp_path, CorpusOptions(), quiet=True)
    manifest = build_graph(tmp_path, GraphOptions(min_words=min_words))
    names = ("pages", "sentences", "links", "redirects")
    corpus = [read_table(tmp_path / "corpus" / name).to_pylist() for name in names]
    anchors, drops, by_sentence, documents = link_graph(*corpus, min_words)
    found = {
        name: {row["id"]: row for row in read_table(tmp_path / "graph" / name).to_pylist()}
        for name in ("anchors", "sentence_anchors", "documents")
    }
    assert found["anchors"] == anchors
    assert found["sentence_anchors"] == by_sentence
    assert found["documents"] == documents
    assert manifest["drops"] == drops
    assert len(anchors) + drops.total() == len(corpus[2])
    if min_words == 0:  # data/README.md: 1,557 resolving links, 314 sentences, 5 ambiguous anchors
        assert abs(len(anchors) - 1557) <= 0.05 * 1557
        multi = sum(row["targets"] >= 2 for row in by_sentence.values())
        assert abs(multi - 314) <= 0.06 * 314
        texts = {anchors[id]["normalised"] for id in ambiguous(anchors, 100, 1000)}
        assert abs(len(texts) - 5) <= 2


@pytest.mark.integration
@pytest.mark.parametrize(("min_words", "sentences", "texts"), [(0, 1950, 30), (100, 1830, 29)])
def test_counts_of_the_development_corpus(shared_data, tmp_path, min_words, sentences, texts):
    """data/README.md for all articles; for those of 100 words or more our count stands alone."""
    source = shared_data / "wiki" / "simplewiki-20100814-999.xml.bz2"
    build_corpus([source], tmp_path, CorpusOptions(), quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=min_words))
    anchors = read_table(tmp_path / "graph" / "anchors").to_pylist()
    targets = defaultdict(set)
    pages = defaultdict(set)
    for anchor in anchors:
        targets[anchor["sentence"]].add(anchor["page"])
        pages[anchor["normalised"]].add(anchor["page"])
    assert abs(sum(len(t) >= 2 for t in targets.values()) - sentences) <= 0.01 * sentences
    assert abs(sum(len(p) >= 2 for p in pages.values()) - texts) <= 2
    if min_words == 0:
        assert abs(len(anchors) - 10_442) <= 0.05 * 10_442
        documents = read_table(tmp_path / "graph" / "documents").to_pylist()
        popular = sum(row["in_links"] >= 5 for row in documents)
        assert abs(popular - 534) <= 0.02 * 534

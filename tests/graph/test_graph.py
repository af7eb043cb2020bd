"""The link graph against a brute force in plain Python, on random graphs and on a real dump."""

import random
import shutil
from collections import Counter, defaultdict
from itertools import pairwise

import pyarrow as pa
import pytest
from brute import Graph, ambiguous_texts, link_graph
from builds import read_table
from dumps import write_dump
from expressions import NAMED, as_graph, compute, rows_of

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.tables import TABLES
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.graph.anchor_texts import ambiguous_texts as graph_of_texts

pytestmark = pytest.mark.integration


def random_graph(seed, scale=1, mark=0):
    """Rows of the four tables; graphs of other marks share no page and no anchor text."""
    draw = random.Random(seed)
    titles = [f"T{n}" + "." * mark for n in range(14 * scale)]
    pages = [
        {
            "id": draw.getrandbits(62),
            "key": title,
            "title": title,
            "lead": draw.choice(["", "x", "x"]),
            "words": draw.choice([None, 50, 100, 150]),
            "sections": [],
            "domain": f"{number % 3}.org" if number % 4 else None,
            "see_also": draw.choices(titles, k=draw.choice([0, 1, 8])),
            "kind": draw.choice([*[None] * 4, "disambiguation", "list"]),
            "title_anchors": draw.choice([["a"], ["b", "c"], ["x (y", "x"]]),
            "lead_words": draw.choice([2, 9, 9]),
            "lead_bands": draw.choice([[], draw.choices(range(20), k=2)]),
        }
        for number, title in enumerate(titles[: draw.randint(2, 8) * scale])
    ]
    redirects = [
        {"source": draw.choice(titles[4:]), "target": draw.choice(titles)}
        for _ in range(draw.randint(0, 16))
    ]
    sentences = [
        {
            "id": draw.getrandbits(62),
            "page": draw.choice(pages)["id"],
            "text": draw.choice([f"s{number}", "x", "y"]),
        }
        for number in range(draw.randint(1, 10))
    ]
    links = []
    for _ in range(draw.randint(0, 60) * scale**2):
        start = draw.randint(0, 5)
        name = draw.choice(["a", "b", "c", "d", "here"])
        links.append(
            {
                "id": draw.getrandbits(62),
                "sentence": draw.choice(sentences)["id"],
                "start": start,
                "end": start + 1,
                "anchor": name.upper() + "." * mark,
                "normalized": name + "." * mark,
                "text_id": 1000 * (1 + mark) + ord(name[0]),
                "target": draw.choice(titles),
                "region": draw.choice([*[None] * 8, "header", "hatnote", "references"]),
            }
        )
    # A page that stands in two sources gives every row twice; another version other targets.
    pages += draw.sample(pages, 1)
    sentences += draw.sample(sentences, 1)
    redirects += redirects[:1]
    again = draw.sample(links, min(3, len(links)))
    links += again[:2]
    links += [{**link, "target": draw.choice(titles)} for link in again[2:]]
    return pages, sentences, links, redirects


def as_tables(pages, sentences, links, redirects):
    named = {"pages": pages, "sentences": sentences, "links": links, "redirects": redirects}
    return {name: pa.Table.from_pylist(rows, schema=TABLES[name]) for name, rows in named.items()}


FILTERS = {
    "min_words": 0,
    "min_lead_words": 5,
    "title_anchors": 0.3,
    "functional_anchors": "drop",
    "numeric_anchors": "drop",
    "long_anchors": "drop",
    "same_site_links": "drop",
    "disambiguation_pages": "drop",
    "list_pages": "drop",
    "near_duplicate_leads": "drop",
}


SEEDS = [*range(8), 15, 18, 19, 22, 23]
"""They reach every case."""


def joined_graphs(seeds):
    """The graphs of some seeds as one, whose parts have no link between them."""
    graphs = [random_graph(seed, mark=mark) for mark, seed in enumerate(seeds)]
    return tuple([row for part in parts for row in part] for parts in zip(*graphs, strict=True))


CASES = {
    "no redirects": (random_graph(0), {}),
    "one": (random_graph(1), {}),
    "all": (joined_graphs(SEEDS), {}),
    **{f"filtered {seed}": (random_graph(seed, scale=3), FILTERS) for seed in range(3)},
}


@pytest.mark.parametrize("case", CASES)
def test_random_graphs(case):
    rows, filters = CASES[case]
    tables = compute(as_tables(*rows), **filters)
    expected = link_graph(*rows, GraphOptions(**filters))
    found = as_graph(tables)
    for name in Graph._fields:
        assert getattr(found, name) == getattr(expected, name), name
    links = sum(n for reason, n in found.drops.items() if reason.startswith("link"))
    assert len(found.anchors) + links == len(rows[2])
    for caps in ((100, 1000), (2, 3), (3, 1)):
        most = dict(zip(("max_pages", "max_occurrences"), caps, strict=True))
        got = rows_of(graph_of_texts(tables, **most))
        assert got == ambiguous_texts(expected.anchors.values(), *caps)


def test_random_graphs_reach_every_filter():
    """The brute force meets each reason of a filter, and without filters none of them."""
    plain, drops = Counter(), Counter()
    for seed in range(6):
        rows = random_graph(seed, scale=3)
        plain += link_graph(*rows, GraphOptions()).drops
        drops += link_graph(*rows, GraphOptions(**FILTERS)).drops
    ours = {reason: count for reason, count in drops.items() if reason not in plain}
    assert len(ours) == 4 + (4 + 2) + 4 + 3  # pages, links to and from, see-also, links themselves
    assert min(ours.values()) >= 2


def test_random_graphs_reach_every_case():
    """The brute force itself meets every reason, ambiguity and redirects of several hops."""
    found = link_graph(*joined_graphs(SEEDS), GraphOptions())
    assert len(found.anchors) > 50 and len(found.ambiguous_texts) > 20 and len(found.see_also) > 20
    assert len(found.drops) == 20 and min(found.drops.values()) >= 3
    rare = {"texts of very many pages", "anchors of very many pages"}
    assert {name for name, count in found.counts.items() if count <= 5} == rare


def test_boilerplate_goes_first():
    """A link in a footer has that reason, though its page is missing as well."""
    pages, sentences, links, redirects = random_graph(1)
    links = [{**link, "target": "nowhere", "region": "footer"} for link in links[:-3]]
    found = as_graph(compute(as_tables(pages, sentences, links, redirects)))
    reasons = {reason: n for reason, n in found.drops.items() if reason.startswith("link")}
    assert reasons == {"link in a header, footer or navigation": len(links)}


def chain(length, end):
    return [*(f"R{number}" for number in range(length)), end]


LOOP = "redirect in a loop or through more than 16 others"
MISSING = "redirect to a missing page"


CHAINS = [
    (["A", "Page"], "Page", {}),
    (chain(16, "Page"), "Page", {}),
    (chain(17, "Page"), None, {LOOP: 1}),  # its first redirect has sixteen others to go through
    (chain(16, "Nowhere"), None, {MISSING: 16}),
    (["A", "A"], None, {"redirect to itself": 1}),
    (["A", "B", "A"], None, {LOOP: 2}),
    (["A", "B", "C", "B"], None, {LOOP: 3}),
    (["A", "B", "B"], None, {LOOP: 1, "redirect to itself": 1}),
    (["Page", "A"], "Page", {"redirect from the title of a page": 1}),
    ([*chain(10_000, "R0")], None, {LOOP: 10_000}),
]


def test_redirect_chains():
    """Each chain has titles of its own, but for the page and for the title that is missing."""
    page = {"id": 1, "key": "Page", "lead": "x", "see_also": []}
    redirects, ends, reasons = [], {}, Counter()
    for number, (names, end, expected) in enumerate(CHAINS):
        titles = [t if t in ("Page", "Nowhere") else f"{t} {number}" for t in names]
        redirects += [{"source": a, "target": b} for a, b in pairwise(titles)]
        ends[titles[0]] = end
        reasons.update(expected)
    tables = compute(as_tables([page], [], [], redirects), min_words=0)
    named = rows_of(tables["titles"], "title")
    for title, end in ends.items():
        assert named.get(title, {"page": None})["page"] == (1 if end else None), title
    assert as_graph(tables).drops == reasons


def test_a_doubled_redirect_takes_one_target():
    pages = [{"id": n, "key": key, "lead": "x", "see_also": []} for n, key in enumerate("BC")]
    redirects = [{"source": "A", "target": target} for target in "CBB"]
    tables = compute(as_tables(pages, [], [], redirects), min_words=0)
    assert rows_of(tables["titles"], "title")["A"]["page"] == 0
    assert as_graph(tables).drops == {"redirect read twice": 1, "second target of a redirect": 1}


def test_pages_of_one_key_are_one_page_and_counted():
    """As of two wikis in one build."""
    pages = [{"id": n, "key": key, "lead": "x", "see_also": []} for n, key in ((1, "B"), (2, "C"))]
    tables = compute(
        as_tables([*pages, pages[0] | {"lead": "y"}, pages[0]], [], [], []), min_words=0
    )
    graph = as_graph(tables)
    assert set(graph.documents) == {1, 2} and graph.drops == {"page read twice": 2}


def test_a_redirect_to_itself_through_normalization(tmp_path):
    source = write_dump(tmp_path / "d.xml", {"A": "x [[B]].", "B": "y."}, {"Foo bar": "foo_bar"})
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    assert build_graph(tmp_path, GraphOptions(min_words=0))["drops"] == {"redirect to itself": 1}


def test_texts_of_very_many_pages():
    """The text "here" leads to 101 pages, "there" to 100; each once from page 0."""
    pages = [{"id": n, "key": f"P{n}", "lead": "x", "see_also": []} for n in range(102)]
    sentences = [{"id": 0, "page": 0, "text": "s"}]
    links = [
        {"id": 200 * most + n, "sentence": 0, "start": n, "end": n, "normalized": text}
        | {"target": f"P{n}", "text_id": most}
        for text, most in (("here", 101), ("there", 100))
        for n in range(1, most + 1)
    ]
    found = as_graph(compute(as_tables(pages, sentences, links, [])))
    assert found.counts["texts of several pages"] == 2
    assert found.counts["texts of very many pages"] == 1
    assert found.counts["anchors of very many pages"] == 101


def test_a_page_wins_over_a_redirect_of_its_name(tmp_path):
    pages = {"A": "x [[B]].", "B": "y.", "C": "z."}
    source = write_dump(tmp_path / "d.xml", pages, {"B": "C"})
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=0))
    keys = {row["id"]: row["key"] for row in read_table(tmp_path / "corpus/pages").to_pylist()}
    (anchor,) = read_table(tmp_path / "graph/anchors").to_pylist()
    assert keys[anchor["page"]] == "B"


def test_nothing_resolves(tmp_path):
    pages = {"A": "x [[Nowhere]].", "B": "y [[B]] [[Elsewhere]]."}
    source = write_dump(tmp_path / "d.xml", pages)
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    manifest = build_graph(tmp_path, GraphOptions(min_words=0))
    assert manifest["rows"]["anchors"] == 0
    assert manifest["drops"] == {"link to a missing page": 2, "link to its own page": 1}


def test_needs_the_corpus(tmp_path):
    with pytest.raises(HarpError, match=r"no finished stage in .*corpus"):
        build_graph(tmp_path, GraphOptions())


@pytest.mark.parametrize("min_words", [0, 100])
def test_real_dump(corpus150, tmp_path, min_words):
    shutil.copytree(corpus150, tmp_path, dirs_exist_ok=True)
    manifest = build_graph(tmp_path, GraphOptions(min_words=min_words))
    names = ("pages", "sentences", "links", "redirects")
    corpus = [read_table(tmp_path / "corpus" / name).to_pylist() for name in names]
    expected = link_graph(*corpus, GraphOptions(min_words=min_words))
    for name in NAMED:
        rows = read_table(tmp_path / "graph" / name).to_pylist()
        assert [row["id"] for row in rows] == sorted(getattr(expected, name))
        assert {row["id"]: row for row in rows} == getattr(expected, name)
    assert read_table(tmp_path / "graph" / "see_also").to_pylist() == expected.see_also
    assert manifest["drops"] == expected.drops
    assert manifest["counts"] == expected.counts
    anchors, by_sentence = expected.anchors, expected.sentence_anchors
    if min_words == 0:  # data/README.md: 1,557 resolving links, 314 sentences, 5 ambiguous anchors
        assert abs(len(anchors) - 1557) <= 0.05 * 1557
        multi = sum(row["targets"] >= 2 for row in by_sentence.values())
        assert abs(multi - 314) <= 0.06 * 314
        assert abs(len(expected.ambiguous_texts) - 5) <= 2


@pytest.fixture(scope="module")
def corpus999(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus999")
    source = shared_data / "wiki" / "simplewiki-20100814-999.xml.bz2"
    build_corpus(folder, CorpusOptions(), sources=[source], quiet=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("min_words", "sentences", "texts"), [(0, 1950, 30), (100, 1803, 28)])
def test_counts_of_the_development_corpus(corpus999, tmp_path, min_words, sentences, texts):
    """data/README.md for all articles; for those of 100 words or more our count stands alone."""
    shutil.copytree(corpus999, tmp_path, dirs_exist_ok=True)
    build_graph(tmp_path, GraphOptions(min_words=min_words))
    anchors = read_table(tmp_path / "graph" / "anchors").to_pylist()
    targets = defaultdict(set)
    pages = defaultdict(set)
    for anchor in anchors:
        targets[anchor["sentence"]].add(anchor["page"])
        pages[anchor["normalized"]].add(anchor["page"])
    assert abs(sum(len(t) >= 2 for t in targets.values()) - sentences) <= 0.01 * sentences
    assert abs(sum(len(p) >= 2 for p in pages.values()) - texts) <= 2
    if min_words == 0:
        assert abs(len(anchors) - 10_442) <= 0.05 * 10_442
        documents = read_table(tmp_path / "graph" / "documents").to_pylist()
        popular = sum(row["in_links"] >= 5 for row in documents)
        assert abs(popular - 534) <= 0.02 * 534

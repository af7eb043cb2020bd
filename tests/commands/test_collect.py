"""`harp collect` on small wikis and on a folder of Markdown, against what the sources say."""

import json
import shutil
from collections import defaultdict

import ir_datasets
import pytest
from builds import read_table
from dumps import write_dump

from harp_plugin.cli import main
from harp_plugin.collections.dataset import Dataset
from harp_plugin.collections.datasets import SPLITS
from harp_plugin.collections.known_items import collection as known_items
from harp_plugin.collections.known_items.queries import QueryOptions
from harp_plugin.commands.adapt import AdaptOptions
from harp_plugin.commands.adapt.training import query_count, train_query_count
from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.commands.check import check
from harp_plugin.commands.collect import CollectOptions, collect, summary
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.options import Progress
from harp_plugin.text import normalize_anchor

pytestmark = pytest.mark.integration

LEAD = "{} is a kind of plant that grows in the north and gives fruit in the autumn of the year."
PAGES = {
    "Apple": LEAD.format("Apple") + "\n== Uses ==\nCider.\n== References ==\nA book.",
    "Crab apple": LEAD.format("Crab apple") + " See [[apple|the sweet one]] and [[apple]].",
    "Pear": LEAD.format("Pear") + " See [[Crab apple|sour fruit]] and [[Malus|a tree]].",
    "Quince": LEAD.format("Quince") + " See [[apple|the sweet one]] and [[Pear|perry]].",
    "Plum (fruit)": LEAD.format("Plum") + " See [[apple|round fruit]] and [[Plum (fruit)|me]].",
}
REDIRECTS = {
    "Malus": "Apple",
    "Apples": "Apple",
    "A tree": "Apple",
    "Wild apple": "Crab apple",
    "Pyrus": "Pyrus communis",
    "Pyrus communis": "Pear",
    "Prunes": "Plum (fruit)",
    "Nowhere": "Missing page",
}


def stages(folder, source, **options):
    asked = BuildOptions(
        output_dir=str(folder / "build"), stages=["corpus", "graph"], workers=1, quiet=True
    )
    build([source], asked, GraphOptions(min_words=0, **options))
    return folder / "build"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A build without held-out links."""
    folder = tmp_path_factory.mktemp("plain")
    return stages(folder, write_dump(folder / "wiki.xml", PAGES, REDIRECTS))


def held_out(corpus, folder, **options):
    """A build of a real wiki some of whose links are held out."""
    shutil.copytree(corpus / "corpus", folder / "build" / "corpus")
    build_graph(folder / "build", GraphOptions(min_words=0, **options))
    return folder / "build"


@pytest.fixture(scope="module")
def by_text(tmp_path_factory, corpus150):
    """The real wiki whose links are held out by text."""
    folder = tmp_path_factory.mktemp("by-text")
    return held_out(corpus150, folder, held_out_links=0.4, held_out_by="text")


def run(directory, folder, overwrite=False, **options):
    chosen = CollectOptions(str(folder), workers=1, quiet=True, overwrite=overwrite)
    return collect(directory, chosen, QueryOptions(**options))


def judged(folder):
    """The ids of the relevant pages of each query, by kind and text."""
    relevant = defaultdict(set)
    for split in SPLITS:
        dataset = ir_datasets.load(f"harp:{folder}/{split}")
        texts = {query.query_id: query.text for query in dataset.queries_iter()}
        for qrel in dataset.qrels_iter():
            kind = qrel.query_id.partition("-")[0]
            relevant[kind, texts[qrel.query_id]].add(qrel.doc_id)
    return dict(relevant)


def test_redirects_become_queries(plain, tmp_path):
    folder = run(plain, tmp_path / "collection")
    assert judged(folder) == {
        ("redirect", "Malus"): {"Apple"},
        ("redirect", "Wild apple"): {"Crab_apple"},
        ("redirect", "Pyrus"): {"Pear"},
        ("redirect", "Pyrus communis"): {"Pear"},
        ("redirect", "Prunes"): {"Plum_(fruit)"},
    }
    record = json.loads((folder / "manifest.json").read_text())
    assert record["drops"] == {
        "redirect that differs from the title by case, punctuation or plural only": 1,
        "redirect that is an anchor text of its page in training": 1,
    }
    rows = record["rows"]
    for name in ("queries", "relevant pages"):
        assert sum(rows.get(f"{split} redirect {name}", 0) for split in SPLITS) == 5
    audit = ("pages in several splits", "near-duplicate queries across splits")
    assert [rows[name] for name in (*audit, "document ids made longer to be unique")] == [0, 0, 0]
    assert "Pyrus communis" in (folder / "README.md").read_text()
    assert "documents " in summary(folder) and max(map(len, summary(folder).split("\n"))) <= 80


def test_one_query_for_each_page(plain, tmp_path):
    folder, few = run(plain, tmp_path / "all"), tmp_path / "few"
    left = judged(run(plain, few, max_queries_per_page=1))
    assert left.items() < judged(folder).items()
    assert sorted(map(sorted, left.values())) == [
        ["Apple"],
        ["Crab_apple"],
        ["Pear"],
        ["Plum_(fruit)"],
    ]
    drops = json.loads((few / "manifest.json").read_text())["drops"]
    assert drops["query beyond --max-queries-per-page"] == 1
    with pytest.raises(HarpError, match="max_queries_per_page"):
        run(plain, folder, max_queries_per_page=1)


def test_documents_are_the_pages(plain, tmp_path):
    dataset = ir_datasets.load(f"harp:{run(plain, tmp_path / 'collection')}")
    pages = {page.doc_id: page for page in dataset.docs_iter()}
    assert list(pages) == ["Apple", "Crab_apple", "Pear", "Plum_(fruit)", "Quince"]
    apple = pages["Apple"]
    assert apple.text == f"{LEAD.format('Apple')}\nUses\nCider." and apple.headings == "Uses"
    anchors = ["a tree", "apple", "round fruit", "the sweet one", "the sweet one"]
    assert apple.anchor_text.split("\n") == anchors
    assert pages["Plum_(fruit)"].title == "Plum (fruit)" and not pages["Quince"].anchor_text
    assert dataset.docs_store().get("Quince") == pages["Quince"]


def test_index_terms(tmp_path):
    pages = {
        "array.md": ("Array", ["arrays [C++], multidimensional", "matrices", "C2065"]),
        "list.md": ("List", ["linked lists", "matrices", "lists [C++]"]),
        "loop.md": ("Loop", ["repeating statements"]),
        "cpp.md": ("C++", ["C++", "C"]),
    }
    for name, (title, terms) in pages.items():
        front = f"title: {title}\nhelpviewer_keywords: {json.dumps(terms)}\n"
        text = f"---\n{front}---\n# {title}\n\nSome words about it, and a [loop](loop.md).\n"
        (tmp_path / "docs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    folder = run(stages(tmp_path, tmp_path / "docs"), tmp_path / "collection")
    named = {text: len(pages) for (_, text), pages in judged(folder).items()}
    assert named == {
        "arrays, multidimensional": 1,
        "matrices": 2,
        "linked lists": 1,
        "repeating statements": 1,
        "C": 1,
    }
    drops = json.loads((folder / "manifest.json").read_text())["drops"]
    assert drops == {
        "index term that is an identifier": 1,
        "index term that is the title of its page": 2,
    }


@pytest.mark.parametrize("by", ["page", "text"])
def test_held_out_links_are_queries_that_training_never_sees(corpus150, tmp_path, by):
    directory = held_out(corpus150, tmp_path, held_out_links=0.3, held_out_by=by)
    folder = run(directory, tmp_path / "collection", kinds=["link"], anchors="keep")
    pages = {row["id"]: row for row in read_table(directory / "corpus" / "pages").to_pylist()}
    seen, hidden = defaultdict(set), defaultdict(set)
    for table, found in (("anchors", seen), ("held_out_links", hidden)):
        for row in read_table(directory / "graph" / table).to_pylist():
            found[row["normalized"]].add(pages[row["page"]]["key"].replace(" ", "_"))
    queries = judged(folder)
    assert len(queries) > 20
    for (kind, text), relevant in queries.items():
        assert kind == "link" and normalize_anchor(text) not in seen
        assert relevant >= hidden[normalize_anchor(text)] > set()
    for document in ir_datasets.load(f"harp:{folder}").docs_iter():
        for text in filter(None, document.anchor_text.split("\n")):
            assert document.doc_id in seen[text]


def test_links_that_training_sees_teach_where_nothing_else_does(corpus150, tmp_path):
    directory = held_out(corpus150, tmp_path, held_out_links=0.3)
    kinds = ["index", "redirect", "link", "anchor"]
    few = run(directory, tmp_path / "out" / "collection", kinds=kinds, train_fraction=0.0)
    pages = {row["id"]: row for row in read_table(directory / "corpus" / "pages").to_pylist()}
    seen = defaultdict(set)
    for row in read_table(directory / "graph" / "anchors").to_pylist():
        seen[row["normalized"]].add(pages[row["page"]]["key"].replace(" ", "_"))
    queries = judged(few)
    learned = {text: relevant for (kind, text), relevant in queries.items() if kind == "anchor"}
    others = [relevant for (kind, _), relevant in queries.items() if kind != "anchor"]
    assert len(learned) > 30 and len(others) > 20
    for text, relevant in learned.items():
        assert relevant >= seen[normalize_anchor(text)] > set()
        assert relevant.isdisjoint(set().union(*others))
    train = json.loads((few / "manifest.json").read_text())["rows"]
    assert train["train anchor queries"] == len(learned)
    assert "dev anchor queries" not in train and "test anchor queries" not in train
    options = AdaptOptions(output_dir=str(tmp_path / "out"))
    assert query_count(options, "train") == len(learned) and train_query_count(options) == 0

    enough = run(directory, tmp_path / "enough", kinds=kinds, train_fraction=0.4)
    assert not any(kind == "anchor" for kind, _ in judged(enough))
    asked = {"kinds": kinds, "train_fraction": 0.0, "min_train_queries": len(learned) + 1}
    none = run(directory, tmp_path / "none", **asked)
    assert not any(kind == "anchor" for kind, _ in judged(none))


def hashes(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".lock" not in path.name
    }


def test_the_same_bytes_again(by_text, tmp_path):
    first = hashes(run(by_text, tmp_path / "first"))
    options = CollectOptions(str(tmp_path / "second"), workers=3, quiet=True)
    assert hashes(collect(by_text, options)) == first
    assert {name.partition("/")[0] for name in first} == {
        *("README.md", "documents.jsonl", "documents.index.npy"),
        *("manifest.json", "started.json", "shards", *SPLITS),
    }
    assert run(by_text, tmp_path / "first", seed=42) == tmp_path / "first"
    other = hashes(run(by_text, tmp_path / "third", seed=43))
    assert other["test/qrels.txt"] != first["test/qrels.txt"]
    assert other["documents.jsonl"] == first["documents.jsonl"]


@pytest.mark.slow
def test_interrupted_work_goes_on(by_text, tmp_path, monkeypatch):
    whole = hashes(run(by_text, tmp_path / "whole"))
    for moment in ("write_queries", "Stage.finish"):
        with monkeypatch.context() as patched:
            name = f"{known_items.__name__}.{moment}"
            patched.setattr(name, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                run(by_text, tmp_path / moment)
        assert hashes(run(by_text, tmp_path / moment)) == whole, moment


def test_other_work_is_left_alone(plain, tmp_path):
    folder = run(plain, tmp_path / "collection")
    before = hashes(folder)
    with pytest.raises(HarpError, match="seed: 42 then, 1 now"):
        run(plain, folder, seed=1)
    assert hashes(folder) == before
    run(plain, folder, overwrite=True, seed=1)
    assert hashes(folder) != before


@pytest.mark.parametrize("name", ["README.md", "documents.jsonl", "mine.txt", "test/queries.tsv"])
def test_files_of_others_are_left_alone(plain, tmp_path, name):
    file = tmp_path / "collection" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(HarpError, match=f"did not write, such as {name}"):
        run(plain, tmp_path / "collection", overwrite=True)
    assert file.read_text() == "mine"


def test_damage_is_found(plain, tmp_path):
    folder = run(plain, tmp_path / "collection")
    assert check(folder, Progress(quiet=True)).damages == []
    (folder / "test" / "qrels.txt").write_text("x 0 y 1\n")
    assert any("qrels.txt" in line for line in check(folder, Progress(quiet=True)).damages)
    before = (folder / "documents.jsonl").read_bytes()
    run(plain, folder)  # another size: what is damaged is made anew
    assert check(folder, Progress(quiet=True)).damages == []
    assert (folder / "documents.jsonl").read_bytes() == before


def test_nothing_to_make_queries_of(plain, tmp_path):
    with pytest.raises(HarpError, match=r"nothing of the kinds index, link.*--held-out-links"):
        run(plain, tmp_path / "collection", kinds=["index", "link"])
    run(plain, tmp_path / "collection", kinds=["redirect"])
    with pytest.raises(HarpError, match="no finished stage in"):
        run(tmp_path, tmp_path / "other")


def test_the_command(plain, tmp_path, capsys):
    folder = tmp_path / "collection"
    asked = ["collect", str(plain), "--output-dir", str(folder), "--kinds", "redirect", "--quiet"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert f"collection: harp:{folder}\n" in shown
    assert Dataset(f"harp:{folder}/test").queries()
    assert main([*asked, "--max-queries", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1

"""The words stage: counts by brute force, the same bytes however it is run, and who needs it."""

import shutil
from collections import Counter
from contextlib import suppress

import pyarrow.parquet as pq
import pytest
from dumps import write_dump

from harp_plugin.cli import main
from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.sampling import stable_id
from harp_plugin.tasks.options import DrawOptions
from harp_plugin.tasks.registry import HARP_TASKS, TASKS, needed_stages
from harp_plugin.text import words as words_of
from harp_plugin.weights import collection
from harp_plugin.weights.collection import build_words
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.provenance import OverwriteRules
from harp_plugin.work.stage import Stage

pytestmark = pytest.mark.integration

PAGES = {
    "Apple": "An apple is no Äpfel. It's APPLE, not apple's.\n== More ==\nWords of no [[lead]].",
    "Tree": "The tree: a [[apple|ÄPFEL]] tree; 2 trees, x_y and x.",
    "Fruit": "Fruit.",
    "Headless": "== No lead ==\nThese words are not counted, of a [[fruit]].",
    "Short": "Shorter.",
    "Straße": "STRASSE, straße, Straße ' '' – [[tree]].",
}


def tree(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def rows_of(directory, field="lead"):
    return pq.read_table(directory / "words" / field).to_pylist()


def counts_of(directory, field):
    return {row["word"]: row["occurrences"] for row in rows_of(directory, field)}


def test_counts_by_hand(directory):
    manifest = build_words(directory)
    assert manifest["texts"] == 5
    once = ["an", "is", "no", "it's", "not", "apple's", "the", "a", "2", "trees", "and", "fruit"]
    once += ["y", "shorter", "strasse"]
    leads = dict.fromkeys(once, 1) | {"apple": 2, "äpfel": 2, "x": 2, "tree": 3, "straße": 2}
    assert counts_of(directory, "lead") == leads
    titles = dict.fromkeys(["apple", "tree", "fruit", "short", "straße"], 1)
    assert counts_of(directory, "title") == titles
    articles = leads | {"no": 2} | dict.fromkeys(["words", "of", "lead"], 1)
    assert counts_of(directory, "text") == articles


def beginning(page):
    """The first 400 words of the sections without boilerplate."""
    sections = [s["text"] for s in page["sections"] if not s["boilerplate"]]
    return [word.lower() for text in sections for word in words_of(text)][:400]


FIELDS = {
    "title": lambda page: [word.lower() for word in words_of(page["title"])],
    "lead": lambda page: [word.lower() for word in words_of(page["lead"])][:400],
    "text": beginning,
}


def check_by_brute_force(directory):
    """Return the number of distinct words in all leads and in all texts."""
    pages = {row["id"]: row for row in pq.read_table(directory / "corpus/pages").to_pylist()}
    documents = pq.read_table(directory / "graph" / "documents")["id"].to_pylist()
    for field, words_in in FIELDS.items():
        occurrences = Counter(word for id in documents for word in words_in(pages[id]))
        assert counts_of(directory, field) == occurrences
        assert all(row["id"] == stable_id(row["word"]) for row in rows_of(directory, field))
    assert read_manifest(directory / "words")["texts"] == len(documents)
    return [len(rows_of(directory, field)) for field in ("lead", "text")]


def test_only_documents_count(tmp_path):
    """Pages that are too short for one are left out."""
    source = write_dump(tmp_path / "d.xml", PAGES)
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=6))
    build_words(tmp_path)
    assert check_by_brute_force(tmp_path)[0] == 16
    assert "shorter" not in {row["word"] for row in rows_of(tmp_path)}


def test_a_page_read_twice_counts_once(tmp_path):
    (tmp_path / "sources").mkdir()
    for name in ("one", "two"):
        write_dump(tmp_path / "sources" / f"{name}.xml", PAGES)
    build_corpus(tmp_path, CorpusOptions(), sources=[tmp_path / "sources"], quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=0))
    build_words(tmp_path)
    check_by_brute_force(tmp_path)


@pytest.mark.slow
def test_a_real_wiki(shared_data, tmp_path):
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    options = BuildOptions(output_dir=str(tmp_path), tasks=["prop"], workers=2, quiet=True)
    manifests = build([source], options, CorpusOptions(pages_per_shard=40))
    assert tuple(manifests) == ("corpus", "graph", "examples", "words")
    rows = manifests["words"]["rows"]
    assert check_by_brute_force(tmp_path) == [rows["lead"], rows["text"]]
    assert rows["lead"] == 3960 < rows["text"]


def test_workers_and_interruption_after_every_step(directory, tmp_path, monkeypatch):
    """The same bytes as undisturbed, and no shard done twice."""
    monkeypatch.setattr(collection, "DOCUMENTS_PER_SHARD", 2)
    twice = shutil.copytree(directory, tmp_path / "twice")
    broken = shutil.copytree(directory, tmp_path / "broken")
    manifest = build_words(directory)
    assert build_words(twice, workers=2) == manifest
    assert tree(directory / "words") == tree(twice / "words")
    finish_shard, done = Stage.finish_shard, []

    def interrupt(stage, name, *counts):
        finish_shard(stage, name, *counts)
        done.append(name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "finish_shard", interrupt)
    for _ in range(10):
        with suppress(KeyboardInterrupt):
            assert build_words(broken) == manifest
            break
    assert len(done) == len(set(done)) > 1
    assert tree(directory / "words") == tree(broken / "words")
    assert not list((broken / "words").glob("counted*"))


def test_finished_work_is_kept_and_left_overs_go(directory):
    first, before = build_words(directory), tree(directory / "words")
    (directory / "words" / "counted_lead").mkdir()
    assert build_words(directory) == first
    assert tree(directory / "words") == before
    rules = OverwriteRules(overwrite=True)
    build_graph(directory, GraphOptions(min_words=6), rules=rules)
    again = build_words(directory, rules=rules)
    assert again["rows"]["lead"] < first["rows"]["lead"]


def test_titles_without_a_word_count_nothing(tmp_path):
    source = write_dump(tmp_path / "d.xml", {"!!!": "A song of [[???]].", "???": "See [[!!!]]."})
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=0))
    build_words(tmp_path)
    counted = collection.open_words(tmp_path, ["title"])
    assert (len(counted.words), len(counted.occurrences), counted.texts) == (0, 0, 2)


def test_an_earlier_stage_is_missing(tmp_path):
    with pytest.raises(HarpError, match=r"no finished stage in .*corpus"):
        build_words(tmp_path)
    assert not (tmp_path / "words").exists()


@pytest.mark.parametrize(
    ("tasks", "more"),
    [
        (["prop"], ("words",)),
        (["srr", "rwi", "ati", "ltm", "ict", "bfs", "wlp", "codoc", "hlp", "php", "anchor"], ()),
        (HARP_TASKS, ("weights",)),
        (["acm", "srr", "prop"], ("weights", "words")),
        ([], ()),
    ],
)
def test_needed_stages(tasks, more):
    assert needed_stages(tasks) == ("corpus", "graph", *more, "examples")


def test_every_task_says_what_it_needs():
    for task in TASKS:
        needs = getattr(TASKS[task], "stages", ("weights",))
        needs = needs(DrawOptions()) if callable(needs) else needs
        assert set(needs) <= {"words", "weights"}
        assert needed_stages([task]) == ("corpus", "graph", *needs, "examples")
    with pytest.raises(HarpError, match="unknown task 'srx': did you mean"):
        needed_stages(["rqp", "srx"])


def test_tasks_without_weights_need_no_model(tmp_path, capsys):
    source = write_dump(tmp_path / "d.xml", PAGES)
    line = ["build", source, "--output-dir", tmp_path / "out", "--min-words", "0", "--quiet"]
    line += ["--tasks", "ati", "--model", "/nowhere", "--workers", "1"]
    assert main([str(part) for part in line]) == 0
    found = {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert found == {"corpus", "graph", "examples"}
    assert "ati" in capsys.readouterr().out
    line[line.index("ati")] = "rqp"
    assert main([str(part) for part in line]) == 2
    assert "/nowhere" in capsys.readouterr().err

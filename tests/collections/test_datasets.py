"""Test collections in folders, as ir_datasets, PyTerrier and the package read them."""

import json
import os
import pickle
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import ir_datasets
import numpy as np
import pyterrier as pt
import pytest
from hand_made import DOCUMENTS, SPLITS, line, write_collection

from harp_plugin.collections.dataset import Dataset, JudgedDataset
from harp_plugin.collections.datasets import UnknownCollection
from harp_plugin.collections.documents import INDEX, make_index
from harp_plugin.errors import HarpError
from harp_plugin.evaluation.first_stage import first_stage
from harp_plugin.evaluation.options import ExperimentOptions

ROOT = Path(__file__).parents[2]
READ = [(*document, "") for document in DOCUMENTS]
"""What is read of files without headings, as earlier versions wrote them."""


@pytest.fixture
def folder(tmp_path):
    return write_collection(tmp_path / "collection")


def test_all_parts(folder):
    for split, (queries, qrels) in SPLITS.items():
        dataset = ir_datasets.load(f"harp:{folder}/{split}")
        assert [tuple(document) for document in dataset.docs_iter()] == READ
        assert dict(dataset.queries_iter()) == queries
        assert [(row.query_id, row.doc_id) for row in dataset.qrels_iter()] == qrels
        assert {row.relevance for row in dataset.qrels_iter()} == set(dataset.qrels_defs()) == {1}
        assert dataset.docs_count() == len(DOCUMENTS)


def test_the_documents_alone(folder):
    dataset = ir_datasets.load(f"harp:{folder}")
    assert dataset.has_docs() and not dataset.has_queries() and not dataset.has_qrels()
    assert next(dataset.docs_iter()).default_text() == "Apple A fruit that grows on trees."


@pytest.mark.parametrize("chosen", [slice(1, 3), slice(-2, None), slice(None, None, 2), slice(9)])
def test_slices(folder, chosen):
    documents = ir_datasets.load(f"harp:{folder}").docs_iter()
    assert [tuple(document) for document in documents[chosen]] == READ[chosen]
    assert tuple(documents[-1]) == READ[-1]
    with pytest.raises(IndexError):
        documents[4]


@pytest.mark.parametrize("has_index", [False, True])
def test_look_ups(folder, has_index):
    if has_index:
        path = folder / "documents.jsonl"
        np.save(path.with_suffix(INDEX), make_index(path))
    store = ir_datasets.load(f"harp:{folder}/test").docs_store()
    by_id = {document[0]: document for document in READ}
    assert {id: tuple(found) for id, found in store.get_many([*by_id, "none"]).items()} == by_id
    assert store.get("Äpfel").title == "Äpfel"
    with pytest.raises(KeyError):
        store.get("none")


def test_an_index_saves_reading_the_file(folder, monkeypatch):
    path = folder / "documents.jsonl"
    np.save(path.with_suffix(INDEX), make_index(path))
    name = "harp_plugin.collections.documents.make_index"
    monkeypatch.setattr(name, lambda path: pytest.fail("the whole file was read"))
    assert ir_datasets.load(f"harp:{folder}").docs_store().get("Ant").title == "Ant"


def test_an_index_of_another_file_is_not_used(folder):
    path = folder / "documents.jsonl"
    np.save(path.with_suffix(INDEX), make_index(path))
    path.write_text("".join(map(line, DOCUMENTS[1:])), "utf-8")
    store = ir_datasets.load(f"harp:{folder}").docs_store()
    assert store.get("Ant").title == "Ant"
    ant, bee = ("Ant", "Ant", "An insect.", ""), ("Bee", "Bee", "An insect.", "")
    path.write_text(line(ant) + line(bee))
    np.save(path.with_suffix(INDEX), make_index(path))
    path.write_text(line(bee) + line(ant))
    with pytest.raises(HarpError, match="does not fit the index"):
        store.get("Ant")


def test_a_collection_without_documents(folder):
    (folder / "documents.jsonl").write_text("")
    dataset = ir_datasets.load(f"harp:{folder}")
    assert dataset.docs_count() == 0 and list(dataset.docs_iter()) == []
    assert dataset.docs_store().get_many(["Ant"]) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"doc_id": "a"}\n', "line 1: not a document with doc_id, title, text, anchor_text"),
        ("[1]\n", "line 1: not a document with"),
        ("{\n", "line 1: not a document with"),
    ],
)
def test_damaged_documents(folder, text, said):
    (folder / "documents.jsonl").write_text(text)
    with pytest.raises(HarpError, match=said):
        list(Dataset(f"harp:{folder}").documents())


def test_files_of_other_editors(folder):
    """A byte order mark, Windows' line ends and empty lines."""
    queries = "\ufeffq1\tant \u2028 hill\r\n\r\nq2\tbee\r\n\n"
    (folder / "test" / "queries.tsv").write_bytes(queries.encode())
    (folder / "test" / "qrels.txt").write_bytes("\ufeffq1 0 Ant 1\r\n\r\n q2 0 Bee\t+1".encode())
    judged = JudgedDataset(f"harp:{folder}/test")
    assert judged.queries() == {"q1": "ant \u2028 hill", "q2": "bee"}
    assert judged.qrels[["qid", "docno"]].to_numpy().tolist() == [["q1", "Ant"], ["q2", "Bee"]]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("queries.tsv", "q1\tant\n\nq2 bee\n", "queries.tsv, line 3: 'q2 bee' is not an id, a tab"),
        (
            "queries.tsv",
            "q1\tant\tbee\n",
            "queries.tsv, line 1: .* is not an id, a tab and a query",
        ),
        (
            "queries.tsv",
            "q1\tant\n\nq2\tbee\nq1\tfly\n",
            "line 4: 'q1' is the id of line 1 too: give",
        ),
        ("qrels.txt", "q1 0 Ant 1\nq1 Ant 1\n", "qrels.txt, line 2: 'q1 Ant 1' is not a query, 0,"),
        ("qrels.txt", "q1 0 Ant 0.5\n", "qrels.txt, line 1: .* a whole number"),
    ],
)
def test_damaged_queries_and_judgments(folder, file, text, said):
    (folder / "test" / file).write_text(text)
    with pytest.raises(HarpError, match=said):
        JudgedDataset(f"harp:{folder}/test").queries()


def test_an_id_that_stands_twice(folder):
    write_collection(folder, [*DOCUMENTS, DOCUMENTS[2]])
    with pytest.raises(HarpError, match="two documents 'Äpfel'"):
        Dataset(f"harp:{folder}").texts(["Ant"])


@pytest.mark.parametrize("end", ["", "/", "/test", "/test/"])
def test_ways_to_name_it(folder, monkeypatch, end):
    monkeypatch.chdir(folder.parent)
    for name in ("collection", "./collection", str(folder), f"../{folder.parent.name}/collection"):
        assert Dataset(f"harp:{name}{end}").texts(["Ant"]) == {
            "Ant": "Ant An insect that eats apples."
        }


def test_a_folder_that_is_called_test(tmp_path):
    folder = write_collection(tmp_path / "test")
    assert not ir_datasets.load(f"harp:{folder}").has_queries()
    assert ir_datasets.load(f"harp:{folder}/test").has_queries()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("harp:{0}/no", "there is no folder {0}/no"),
        ("harp:{0}/no/test", "there is no folder {0}/no"),
        ("harp:{0}/collection/tset", "there is no folder {0}/collection/tset"),
        ("harp:{0}/empty", "{0}/empty has no documents.jsonl"),
        ("harp:{0}/empty/dev", "{0}/empty has no documents.jsonl"),
        ("harp:{0}/collection/other", "the splits of {0}/collection are train, dev, test"),
        ("harp:{0}/collection/dev", "{0}/collection/dev/qrels.txt is missing"),
    ],
)
def test_wrong_names(folder, tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "dev" / "qrels.txt").unlink()
    name, said = name.format(tmp_path), said.format(tmp_path)
    for load in (ir_datasets.load, lambda id: Dataset(id).queries(), pt.get_dataset):
        if load is pt.get_dataset:
            name = name.removeprefix("harp:")
            load = provider().get_dataset
        with pytest.raises(HarpError) as error:
            load(name)
        assert said in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(KeyError):
        ir_datasets.load(f"harp:{name}")


def provider():
    """PyTerrier's provider, loaded as the entry point says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    group = "pyterrier.dataset_provider"
    return EntryPoint("harp", project["entry-points"][group]["harp"], group).load()()


@pytest.mark.parametrize("get", [lambda id: pt.get_dataset(f"irds:{id}"), None])
def test_it_is_a_pyterrier_dataset(folder, get):
    get = get or (lambda id: provider().get_dataset(id.removeprefix("harp:")))
    dataset = get(f"harp:{folder}/test")
    assert dict(dataset.get_topics().itertuples(index=False)) == SPLITS["test"][0]
    qrels = dataset.get_qrels()
    assert list(zip(qrels["qid"], qrels["docno"], strict=True)) == SPLITS["test"][1]
    loaded = dataset.text_loader()(qrels.tail(2)[["qid", "docno"]])
    assert list(loaded["anchor_text"]) == ["apples\nthe apple", ""]
    rows = list(dataset.get_corpus_iter(verbose=False))
    assert [row["docno"] for row in rows] == [document[0] for document in DOCUMENTS]
    assert [row["docno"] for row in dataset.get_corpus_iter(False, 1, 2)] == ["Crab_apple", "Äpfel"]


def test_pyterrier_finds_the_entry_point(folder, tmp_path):
    """In a process that sees the entry point of pyproject.toml as an installed one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    entry = project["entry-points"]["pyterrier.dataset_provider"]["harp"]
    installed = tmp_path / "site" / "of_the_test-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: of_the_test\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(f"[pyterrier.dataset_provider]\nharp = {entry}\n")
    code = f"""
import pyterrier as pt
dataset = pt.get_dataset("harp:{folder}/test")
print(len(dataset.get_topics()), dataset)
"""
    environment = {**os.environ, "PYTHONPATH": f"{installed.parent}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == f"2 HarpDataset('{folder}/test')\n", done.stderr


def test_splits_share_their_documents(folder):
    parent = ir_datasets.docs_parent_id(f"harp:{folder}/test")
    assert parent == f"harp:{folder}"


def test_it_is_sent_to_another_process(folder):
    dataset = Dataset(f"harp:{folder}/test")
    dataset.texts(["Ant"])
    again = pickle.loads(pickle.dumps(dataset))
    assert again.texts(["Ant"]) == dataset.texts(["Ant"])


def search(folder, index):
    """The first stage's documents for the test queries."""
    name = f"harp:{folder}/test"
    options = ExperimentOptions(
        dataset=name, output_dir=str(index), index_dir=str(index), quiet=True
    )
    found = first_stage(options, JudgedDataset(name)).retrieve()
    return {qid: list(run["docno"]) for qid, run in found.groupby("qid")}


def test_an_index_of_earlier_documents_is_not_used(folder, tmp_path):
    """Although the id of the collection stays the same, in this process too."""
    before = search(folder, tmp_path / "index")
    assert set(before["redirect-1"]) == {"Apple", "Crab_apple"}
    write_collection(folder, [("Plum", "Plum", "Sour fruit, sour!", ""), *DOCUMENTS])
    after = search(folder, tmp_path / "index")
    assert after["redirect-1"][0] == "Plum"
    assert sum(path.is_dir() for path in (tmp_path / "index").iterdir()) == 2
    write_collection(folder)
    assert search(folder, tmp_path / "index") == before


CODE = {
    "package first": "import harp_plugin, ir_datasets",
    "ir_datasets first": "import ir_datasets, harp_plugin",
    "a part of it": "import harp_plugin; import ir_datasets.formats; import ir_datasets",
    "from": "import harp_plugin; from ir_datasets import load; import ir_datasets",
    "importlib": "import harp_plugin, importlib as i; ir_datasets = i.import_module('ir_datasets')",
    "twice": "import harp_plugin, importlib, ir_datasets; importlib.reload(harp_plugin)",
    "pyterrier": "import harp_plugin, pyterrier; import ir_datasets",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_importing_the_package_registers_all(folder, code):
    more = f"""
ir_datasets.load("harp-encyclopedia"), ir_datasets.load("harp:{folder}/test")
import importlib.util, inspect, sys
assert ir_datasets.__spec__ is importlib.util.find_spec("ir_datasets")
assert type(ir_datasets.__loader__).__module__ != "harp_plugin.collections.registration"
assert inspect.getsource(ir_datasets)
assert not {{"torch", "transformers", "pyarrow"}} & set(sys.modules) or "pyterrier" in sys.modules
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code + more], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_alone_imports_nothing_else():
    code = "import sys, harp_plugin; print({'ir_datasets', 'numpy', 'wrapt'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "set()\n", done.stderr


def test_an_unknown_collection_is_a_key_error_with_a_plain_message():
    assert str(UnknownCollection("no 'x'")) == "no 'x'"


@pytest.mark.parametrize("change", [{"title": None}, {"text": ["a"]}, {"doc_id": 5}])
def test_a_document_of_other_types_is_named_by_its_line(folder, change):
    names = ("doc_id", "title", "text", "anchor_text")
    document = dict(zip(names, DOCUMENTS[0], strict=True)) | change
    with (folder / "documents.jsonl").open("a") as file:
        file.write(json.dumps(document) + "\n")
    number = len(DOCUMENTS) + 1
    with pytest.raises(HarpError, match=rf"line {number}: not a document .* must be a text\)"):
        list(Dataset(f"harp:{folder}").documents())

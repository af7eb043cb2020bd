"""The index of fields in its folder."""

import pickle

import ir_datasets
import pandas as pd
import pytest

from harp_plugin.collections.dataset import Dataset
from harp_plugin.errors import HarpError
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

PAGES = [
    ("b", "Apple pie", "Bake the café pie.", ""),
    ("a", "", "", "pies\nPie"),
    ("c", "日本語", "\0 \ud83d x", "don't C++"),
]
QUERY = pd.DataFrame({"qid": ["1"], "query": ["cafe pies"]})


@pytest.fixture
def pages(make_pages):
    return make_pages(PAGES)


def shown(folder):
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def search(pages, folder, **options):
    return FieldedBm25(FieldedIndex(pages, folder, **options))(QUERY)


def test_all_fields_with_a_text_are_indexed_unless_some_are_named(pages, tmp_path):
    assert FieldedIndex(pages, tmp_path).fields == ("title", "text", "anchor_text", "headings")
    assert FieldedIndex(pages.name, tmp_path, ["text"]).fields == ("text",)
    assert set(search(pages, tmp_path)["docno"]) == {"a", "b"}
    assert set(search(pages, tmp_path, fields=["title", "text"])["docno"]) == {"b"}
    assert len(shown(tmp_path)) == 2


def test_it_is_built_once(pages, tmp_path):
    expected = search(pages, tmp_path)
    (index,) = shown(tmp_path)
    stamps = {file: file.stat().st_mtime_ns for file in index.iterdir()}
    pd.testing.assert_frame_equal(search(pages, tmp_path), expected)
    assert {file: file.stat().st_mtime_ns for file in index.iterdir()} == stamps


def test_other_versions_of_packages_build_no_index(pages, tmp_path, monkeypatch, caplog):
    expected = search(pages, tmp_path)
    other = {"pyterrier-pisa": "99"}
    monkeypatch.setattr(FieldedIndex, "versions", property(lambda _: other))
    pd.testing.assert_frame_equal(search(pages, tmp_path), expected)
    assert len(shown(tmp_path)) == 1
    assert "other package versions" in caplog.text and "99 now" in caplog.text


def test_the_same_documents_give_the_same_bytes(make_pages, tmp_path):
    folders = []
    for name, pages in ("one", PAGES), ("two", PAGES[::-1]):
        index = FieldedIndex(make_pages(pages), tmp_path / name)
        index.make()
        folders.append({f.name: f.read_bytes() for f in index.artifact.path.glob("*.[nt]*")})
    assert folders[0] == folders[1] and len(folders[0]) == 9


def test_a_damaged_file_is_noticed_and_the_index_made_again(pages, tmp_path, caplog):
    expected = search(pages, tmp_path)
    (index,) = shown(tmp_path)
    (index / "counts-1.npz").write_bytes(b"damaged")
    pd.testing.assert_frame_equal(search(pages, tmp_path), expected)
    assert "counts-1.npz has changed since it was written" in caplog.text


def test_what_harp_did_not_write_stays(pages, tmp_path):
    index = FieldedIndex(pages, tmp_path)
    index.artifact.path.mkdir()
    (index.artifact.path / "thesis.txt").write_text("mine")
    with pytest.raises(HarpError, match="files that harp did not write"):
        index.make()
    assert (index.artifact.path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("docnos", "message"),
    [(["a", "a"], "docno 'a' is a duplicate"), (["a b"], "docno 'a b'"), (["", "c"], "docno ''")],
)
def test_a_failed_build_leaves_nothing(tmp_path, docnos, message):
    (tmp_path / "docs.tsv").write_text("".join(f"{docno}\tword\n" for docno in docnos))
    dataset = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "docs.tsv"))
    name = f"test-{tmp_path.name}"
    ir_datasets.registry.register(name, dataset)
    index = FieldedIndex(name, tmp_path / "index")
    with pytest.raises(HarpError, match=message):
        index.make()
    assert shown(tmp_path / "index") == []


def test_documents_without_any_word(make_pages, tmp_path):
    found = search(make_pages([("a", "", "日本語", ""), ("b", "", "", "")]), tmp_path)
    assert len(found) == 0


def test_fields_that_do_not_exist(pages, tmp_path):
    with pytest.raises(HarpError, match=r"no text field 'body': they have doc_id, title, text"):
        FieldedIndex(pages, tmp_path, ["body"])


def test_a_dataset_needs_an_id(tmp_path):
    with pytest.raises(HarpError, match="the dataset has no id"):
        FieldedIndex(Dataset(object()), tmp_path)


def test_an_index_travels_to_other_processes(pages, tmp_path):
    index = FieldedIndex(pages.name, tmp_path)
    expected = FieldedBm25(index)(QUERY)
    again = pickle.loads(pickle.dumps(FieldedBm25(index)))
    pd.testing.assert_frame_equal(again(QUERY), expected)
    assert again == FieldedBm25(index) and hash(again) == hash(FieldedBm25(index))

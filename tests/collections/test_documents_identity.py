"""What an index of documents depends on: their content, not the name of a dataset."""

import ir_datasets
import pytest
from hand_made import DOCUMENTS, SPLITS, write_collection

from harp_plugin.collections.dataset import Dataset, JudgedDataset
from harp_plugin.errors import HarpError


@pytest.fixture
def folder(tmp_path):
    return write_collection(tmp_path / "collection")


def test_splits_of_one_collection_are_the_same_documents(folder):
    expected = Dataset(f"harp:{folder}").documents_identity
    for split in SPLITS:
        assert Dataset(f"harp:{folder}/{split}").documents_identity == expected
        assert JudgedDataset(f"harp:{folder}/{split}").documents_identity == expected


def test_a_moved_collection_is_the_same_documents(folder, tmp_path):
    before = Dataset(f"harp:{folder}/test").documents_identity
    folder.rename(tmp_path / "elsewhere")
    assert Dataset(f"harp:{tmp_path}/elsewhere/dev").documents_identity == before


def test_other_documents_under_the_same_name_are_others(folder):
    before = Dataset(f"harp:{folder}/test").documents_identity
    write_collection(folder, DOCUMENTS[1:])
    assert Dataset(f"harp:{folder}/test").documents_identity != before
    write_collection(folder)
    assert Dataset(f"harp:{folder}/test").documents_identity == before


def test_fields_of_a_text_count(folder):
    title, text = (Dataset(f"harp:{folder}", [name]) for name in ("title", "text"))
    assert title.documents_identity != text.documents_identity


def test_datasets_of_ir_datasets_that_share_their_documents():
    names = ("msmarco-passage", "msmarco-passage/dev", "msmarco-passage/train")
    assert {Dataset(name).documents_identity["documents"] for name in names} == {names[0]}
    assert Dataset("cranfield").documents_identity["documents"] == "cranfield"


def test_a_dataset_without_an_id(folder):
    documents = ir_datasets.load(f"harp:{folder}").docs_handler()
    assert Dataset(ir_datasets.Dataset(documents)).documents_identity["documents"]
    with pytest.raises(HarpError, match=r"^cannot read dataset "):
        _ = Dataset(ir_datasets.create_dataset(docs_tsv="no.tsv")).documents_identity


def test_runs_depend_on_the_name_too(folder):
    identities = [JudgedDataset(f"harp:{folder}/{split}").identity for split in ("dev", "test")]
    assert [identity["dataset"] for identity in identities] == [
        f"harp:{folder}/dev",
        f"harp:{folder}/test",
    ]
    assert identities[0]["documents"] == identities[1]["documents"]

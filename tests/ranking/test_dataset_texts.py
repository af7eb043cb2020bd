"""Texts that are looked up in a dataset, against PyTerrier's text loader."""

import pickle

import ir_datasets
import pandas as pd
import pyterrier as pt
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TsvDocs
from ir_datasets.util import LocalDownload

import harp_plugin  # noqa: F401  registers harp-encyclopedia
from harp_plugin import HarpReranker
from harp_plugin.errors import HarpError
from harp_plugin.ranking import rows

DATASET = "harp-encyclopedia"


@pytest.fixture(scope="module")
def results():
    dataset = pt.get_dataset(f"irds:{DATASET}")
    topics = dataset.get_topics().head(3)
    docnos = [document["docno"] for document in dataset.get_corpus_iter(verbose=False)][:7]
    return topics.merge(pd.DataFrame({"docno": docnos}), how="cross")


class TestPyTerrierContract(
    pt.testing.transformer_test_class(
        lambda: HarpReranker("no/weights/needed", dataset="irds:unknown", passages="max")
    )
):
    """Inspection and schematics need neither model nor dataset."""


def test_no_text_column_is_asked_for():
    reranker = HarpReranker("no/weights/needed", dataset=f"irds:{DATASET}")
    assert pt.inspect.transformer_inputs(reranker) == [["qid", "docno", "query"]]


@pytest.mark.parametrize(
    "dataset",
    [DATASET, f"irds:{DATASET}", pt.get_dataset(f"irds:{DATASET}"), ir_datasets.load(DATASET)],
    ids=["name", "irds-name", "pyterrier", "ir_datasets"],
)
@pytest.mark.parametrize("fields", ["text", ("title", "text")])
def test_equal_to_a_text_loader(telling_bert, results, dataset, fields):
    loader = pt.get_dataset(f"irds:{DATASET}").text_loader()
    expected = (loader >> HarpReranker(telling_bert, text_field=fields))(results)
    ranked = HarpReranker(telling_bert, text_field=fields, dataset=dataset)(results)
    pd.testing.assert_frame_equal(ranked, expected[ranked.columns], atol=1e-6)
    assert list(ranked.columns) == [*results.columns, "score", "rank"]


def test_the_default_is_the_text_that_the_dataset_recommends(telling_bert, results):
    named = HarpReranker(telling_bert, dataset=DATASET, text_field=["title", "text"])
    pd.testing.assert_frame_equal(
        HarpReranker(telling_bert, dataset=DATASET)(results), named(results)
    )


def test_texts_are_read_a_few_at_a_time_and_each_once(telling_bert, results, monkeypatch):
    reranker = HarpReranker(telling_bert, dataset=DATASET)
    at_once = reranker(results)
    reads = []
    read = type(reranker.texts).read

    def spy(self, keys, frame):
        reads.append(keys)
        return read(self, keys, frame)

    monkeypatch.setattr(type(reranker.texts), "read", spy)
    monkeypatch.setattr(rows, "_MANY_ROWS", 6)
    shuffled = results.sample(frac=1, random_state=0)
    in_parts = reranker(shuffled).set_index(["qid", "docno"])["score"]
    assert [len(keys) for keys in reads] == [2, 2, 2, 1]
    assert {key for keys in reads for key in keys} == set(results["docno"])
    expected = at_once.set_index(["qid", "docno"])["score"]
    pd.testing.assert_series_equal(in_parts, expected.reindex(in_parts.index), atol=1e-6)


def test_equal_datasets_make_equal_rerankers():
    one = HarpReranker("m", dataset=DATASET)
    same = HarpReranker("m", dataset=ir_datasets.load(DATASET))
    assert one == same == HarpReranker("m", dataset=pt.get_dataset(f"irds:{DATASET}"))
    assert hash(one) == hash(same)
    assert one != HarpReranker("m")
    assert one != HarpReranker("m", dataset="vaswani")
    assert one != HarpReranker("m", dataset=DATASET, text_field="title")


def test_it_pickles_with_an_open_dataset(telling_bert, results):
    reranker = HarpReranker(telling_bert, dataset=f"irds:{DATASET}")
    before = reranker(results)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(reranker))(results), before)


def test_a_document_that_the_dataset_lacks_is_named_with_its_query(results):
    results = results.copy()
    results.loc[9, "docno"] = "nowhere"
    with pytest.raises(HarpError, match=f"no document nowhere .*{DATASET}.* qid {results.qid[9]}"):
        HarpReranker("no/weights/needed", dataset=DATASET)(results)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "irds:no-such"}, "unknown dataset 'no-such'"),
        ({"dataset": DATASET, "text_field": "url"}, "no text field 'url': they have .*title, text"),
    ],
)
def test_a_bad_dataset_is_told_when_it_is_read(results, options, message):
    with pytest.raises(HarpError, match=message):
        HarpReranker("no/weights/needed", **options)(results)


def test_what_is_no_dataset_is_refused_at_once():
    with pytest.raises(HarpError, match="dataset is 7: name one of ir_datasets"):
        HarpReranker("m", dataset=7)


@pytest.fixture
def twins(tmp_path):
    """A dataset of the user's own; two of its documents have one text."""
    path = tmp_path / "docs.tsv"
    path.write_text("a\tcats and dogs\nb\tweb links\nc\tcats and dogs\n")
    return Dataset(TsvDocs(LocalDownload(path, mkdir=False), namespace="twins", lang="en"))


@pytest.mark.parametrize("passages", ["first", "max"])
def test_documents_of_one_text_are_scored_as_one(telling_bert, twins, passages):
    results = pd.DataFrame({"qid": "1", "query": "cats", "docno": ["c", "b", "a", "c"]})
    options = {"dataset": twins, "passages": passages}
    ranked = HarpReranker(telling_bert, **options)(results)
    texts = pd.Series(["cats and dogs", "web links", "cats and dogs", "cats and dogs"])
    expected = HarpReranker(telling_bert)(results.assign(text=texts))["score"]
    pd.testing.assert_series_equal(ranked["score"], expected, atol=1e-6)
    again = HarpReranker(telling_bert, **options)
    pd.testing.assert_frame_equal(again(results), ranked)
    assert again == HarpReranker(telling_bert, **options) != HarpReranker(telling_bert)


def test_vaswani_needs_no_text_loader(telling_bert, irds_home):
    results = pd.DataFrame(
        {"qid": ["1", "1"], "query": ["ionosphere", "ionosphere"], "docno": ["1", "10"]}
    )
    loader = pt.get_dataset("irds:vaswani").text_loader()
    expected = (loader >> HarpReranker(telling_bert))(results)["score"]
    ranked = HarpReranker(telling_bert, dataset="irds:vaswani")(results)
    pd.testing.assert_series_equal(ranked["score"], expected, atol=1e-6)

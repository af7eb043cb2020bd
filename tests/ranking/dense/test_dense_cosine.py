"""`DenseCosine` as a first stage and as a reranker."""

import json
import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin.collections.dataset import Dataset
from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.index import DenseIndex
from harp_plugin.ranking.windows import DocumentWindows
from harp_plugin.work.sharing import Share

WORDS = [
    "link",
    "page",
    "dog",
    "cat",
    "tree",
    "house",
    "river",
    "stone",
    "music",
    "paper",
    "light",
    "night",
]
TOPICS = pd.DataFrame({"qid": ["2", "1"], "query": ["dogs and cats", "a river"], "note": [1, 2]})


def text(number):
    rng = np.random.default_rng(number // 2)  # two documents each have the same text
    return " ".join(rng.choice(WORDS, 5 + 10 * (number % 7 == 0) + number // 2))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    with (folder / "documents.jsonl").open("w") as file:
        for number in range(23):
            page = {"doc_id": f"d{(number * 7) % 23}", "title": "", "text": text(number)}
            file.write(json.dumps(page | {"anchor_text": "x"}) + "\n")
    return f"harp:{folder}"


@pytest.fixture
def cosine(tiny_bert, dataset, tmp_path):
    def make(**options):
        given = {"dataset": dataset, "index_dir": tmp_path / "index", "text_field": "text"}
        return DenseCosine(tiny_bert, **given | {"device": "cpu"} | options)

    return make


class TestPyTerrierContract(
    pt.testing.transformer_test_class(
        lambda: DenseCosine("no/weights/needed", dataset="irds:vaswani", index_dir="no/folder")
    )
):
    """Inspection and schematics, without a model and without a network."""


def every_pair(dataset):
    texts = dict(Dataset(dataset, ["text"]).documents())
    pairs = TOPICS.merge(pd.DataFrame({"docno": texts.keys(), "text": texts.values()}), how="cross")
    return pairs.sort_values(["qid", "docno"], ascending=[False, True], ignore_index=True)


@pytest.mark.parametrize(
    "windows",
    [{}, {"passages": "max", "passage_length": 6}, {"passages": "mean", "passage_length": 4}],
    ids=["first", "max", "mean"],
)
def test_a_search_finds_the_best_of_all_documents(cosine, tiny_bert, dataset, windows):
    found = cosine(num_results=9, **windows)(TOPICS)
    reranked = DenseCosine(tiny_bert, device="cpu", **windows)(every_pair(dataset))
    best = reranked[reranked["rank"] < 9].sort_values(["qid", "rank"], ascending=[False, True])
    assert list(found["docno"]) == list(best["docno"])
    np.testing.assert_allclose(found["score"], best["score"], atol=2e-6)
    assert list(found["rank"]) == [*range(9)] * 2
    assert list(found.columns) == ["qid", "query", "note", "docno", "score", "rank"]


def test_shards_and_blocks_change_nothing(cosine, tiny_bert, dataset, tmp_path):
    expected = cosine()(TOPICS)
    alone = pd.concat([cosine()(TOPICS.iloc[[row]]) for row in (0, 1)], ignore_index=True)
    pd.testing.assert_frame_equal(alone, expected)
    small = cosine()
    index = DenseIndex(
        Dataset(dataset, ["text"]), tmp_path / "small", small.encoder, documents_per_shard=4
    )
    small._make_once(
        "index", (small.texts, small.encoder, small.index_dir, "float32"), lambda: index
    )
    pd.testing.assert_frame_equal(small(TOPICS), expected)
    assert len(list(index.path.glob("vectors-*"))) == 6


def test_equal_scores_are_ordered_by_docno(cosine):
    found = cosine()(TOPICS)
    tied = found[found.duplicated(["qid", "score"], keep=False)]
    assert len(tied) >= 20
    for _, rows in tied.groupby(["qid", "score"]):
        assert rows["docno"].is_monotonic_increasing


def test_half_precision_vectors(cosine):
    exact = cosine()(TOPICS).set_index(["qid", "docno"])["score"]
    half = cosine(vector_dtype="float16")
    found = half(TOPICS).set_index(["qid", "docno"])["score"]
    np.testing.assert_allclose(found[exact.index], exact, atol=1e-3)
    (vectors,) = half.index.path.glob("vectors-*.npy")
    assert np.load(vectors).dtype == np.float16


def test_reranking_reads_the_vectors_of_the_index(cosine, dataset, monkeypatch):
    pairs = every_pair(dataset).drop(columns="text").iloc[::3]
    expected = cosine(index_dir=None)(pairs)
    with_index = cosine()
    with_index.index.make()
    monkeypatch.setattr(Encoder, "documents", None)
    pd.testing.assert_frame_equal(with_index(pairs), expected)


def test_a_document_that_is_not_there(cosine):
    pairs = TOPICS.assign(docno="elsewhere")
    with pytest.raises(HarpError, match="no document elsewhere in dataset"):
        cosine()(pairs)


def test_a_stopped_build_goes_on_where_it_was(dataset, tiny_bert, tmp_path, monkeypatch):
    encoder = Encoder(tiny_bert, DocumentWindows(), device="cpu")

    def index(folder):
        documents = Dataset(dataset, ["text"])
        return DenseIndex(documents, tmp_path / folder, encoder, documents_per_shard=5)

    index("whole").make()
    encode, encoded = encoder.documents, []

    def stopping(texts):
        if len(encoded) == 2:
            raise KeyboardInterrupt
        encoded.append(len(texts))
        return encode(texts)

    monkeypatch.setattr(encoder, "documents", stopping)
    with pytest.raises(KeyboardInterrupt):
        index("stopped").make()
    assert not (index("stopped").path / "harp_index.json").exists()
    encoded.clear()
    encoded.append(0)
    with pytest.raises(KeyboardInterrupt):
        index("stopped").make()
    monkeypatch.setattr(encoder, "documents", lambda texts: encoded.append(9) or encode(texts))
    index("stopped").make()
    assert encoded == [0, 5, 9, 9]
    whole, stopped = (index(name).path for name in ("whole", "stopped"))
    names = sorted(path.name for path in whole.iterdir())
    assert names == sorted(path.name for path in stopped.iterdir()) and len(names) == 12
    for name in names:
        assert (whole / name).read_bytes() == (stopped / name).read_bytes()


def test_hosts_that_end_at_the_same_time(dataset, tiny_bert, tmp_path, monkeypatch):
    """One finishes the index while another writes a shard a second time."""
    encoder = Encoder(tiny_bert, DocumentWindows(), device="cpu")

    def index(rank):
        documents, share = Dataset(dataset, ["text"]), Share(rank, 2)
        return DenseIndex(documents, tmp_path, encoder, documents_per_shard=5, share=share)

    fast, late = index(0), index(1)
    encode = encoder.documents

    def encode_late(texts):
        (late.path / "vectors-00001.npy.7.harp-tmp").touch()
        monkeypatch.setattr(encoder, "documents", encode)
        fast.make()
        return encode(texts)

    monkeypatch.setattr(encoder, "documents", encode_late)
    monkeypatch.setattr(late, "_write", lambda *_: pytest.fail("the index is finished"))
    late.make()
    record = json.loads((late.path / "harp_index.json").read_text())
    assert len(record["files"]) == 11 and not any("harp-tmp" in name for name in record["files"])
    assert len(index(1).docnos) == 23


def test_vectors_without_a_record_are_unfinished_and_others_are_left(dataset, tiny_bert, tmp_path):
    """What killed hosts left is removed or gone on with; what a person put there is neither."""
    encoder = Encoder(tiny_bert, DocumentWindows(), device="cpu")
    index = DenseIndex(Dataset(dataset, ["text"]), tmp_path, encoder, documents_per_shard=5)
    index.make()
    files = {path.name: path.read_bytes() for path in index.path.iterdir()}
    (index.path / "harp_index.json").unlink()
    (index.path / "vectors-00002.npy").unlink()
    index.make()
    assert {path.name: path.read_bytes() for path in index.path.iterdir()} == files
    (index.path / "harp_index.json").unlink()
    index.remove()
    assert not index.path.exists()
    index.path.mkdir()
    (index.path / "mine").write_text("a person's")
    with pytest.raises(HarpError, match="no index of harp's"):
        index.make()
    with pytest.raises(HarpError, match="harp has not written"):
        index.remove()
    assert (index.path / "mine").exists()


def test_a_damaged_index_is_built_anew(cosine, caplog):
    expected = cosine()(TOPICS)
    (vectors,) = cosine().index.path.glob("vectors-*.npy")
    vectors.write_bytes(vectors.read_bytes()[:-8])
    pd.testing.assert_frame_equal(cosine()(TOPICS), expected)
    assert "has changed since it was written: the index is built anew" in caplog.text


def test_empty_frames_load_no_weights(dataset, tmp_path):
    unloaded = DenseCosine("no/weights", dataset=dataset, index_dir=tmp_path)
    found = unloaded(TOPICS.head(0))
    assert list(found.columns) == ["qid", "query", "note", "docno", "score", "rank"]
    reranked = unloaded(TOPICS.head(0).assign(docno="", score=0.0))
    assert len(reranked) == 0 and list(reranked.columns)[-2:] == ["score", "rank"]


def test_without_an_index_there_is_no_search(tiny_bert):
    with pytest.raises(pt.validate.InputValidationError, match="docno"):
        DenseCosine(tiny_bert)(TOPICS)


@pytest.mark.parametrize("query", [None, 3])
def test_a_query_that_is_no_text_names_its_row(cosine, query):
    with pytest.raises(HarpError, match="the query of qid 7 is"):
        cosine()(pd.DataFrame({"qid": ["7"], "query": [query]}, dtype=object))


def test_equal_settings_make_equal_transformers(cosine, tiny_bert):
    one = cosine()
    assert one == cosine() and hash(one) == hash(cosine())
    assert one != cosine(passages="max") and one != cosine(num_results=3)
    assert (one % 5).compile() == cosine(num_results=5)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    pd.testing.assert_frame_equal(again(TOPICS), one(TOPICS))
    assert repr(DenseCosine("m", num_results=3)) == "DenseCosine('m', num_results=3)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_results": 0}, "num_results is 0"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"vector_dtype": "int8"}, "vector_dtype is 'int8'"),
        ({"dtype": "float3"}, "unknown dtype 'float3'"),
        ({"passages": "last"}, "unknown passages 'last'"),
        ({"dataset": None}, "index_dir needs a dataset"),
    ],
)
def test_arguments_without_a_meaning(cosine, options, message):
    with pytest.raises(HarpError, match=message):
        cosine(**options)


def test_no_text_field(dataset):
    with pytest.raises(HarpError, match="text_field is empty"):
        DenseCosine("no/model/needed", dataset=dataset, text_field=[])

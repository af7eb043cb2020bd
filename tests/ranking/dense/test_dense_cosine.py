"""`DenseCosine` as a first stage and as a reranker."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from filelock import FileLock

from harp_plugin.collections.dataset import Dataset
from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.dense import index as dense_index
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.index import DenseIndex
from harp_plugin.work.artifact import MANIFEST, STARTED
from harp_plugin.work.records import read_record, write_record

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


def test_a_search_finds_the_best_of_all_documents(cosine, tiny_bert, dataset):
    found = cosine(num_results=9)(TOPICS)
    reranked = DenseCosine(tiny_bert, device="cpu")(every_pair(dataset))
    best = reranked[reranked["rank"] < 9].sort_values(["qid", "rank"], ascending=[False, True])
    assert list(found["docno"]) == list(best["docno"])
    np.testing.assert_allclose(found["score"], best["score"], atol=2e-6)
    assert list(found["rank"]) == [*range(9)] * 2
    assert list(found.columns) == ["qid", "query", "note", "docno", "score", "rank"]


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(dense_index, "_DOCUMENTS_PER_SHARD", 5)


def test_shards_and_queries_beside_it_change_nothing(cosine, tmp_path, monkeypatch):
    expected = cosine()(TOPICS)
    alone = pd.concat([cosine()(TOPICS.iloc[[row]]) for row in (0, 1)], ignore_index=True)
    pd.testing.assert_frame_equal(alone, expected)
    monkeypatch.setattr(dense_index, "_DOCUMENTS_PER_SHARD", 4)
    pd.testing.assert_frame_equal(cosine(index_dir=tmp_path / "small")(TOPICS), expected)


def test_equal_scores_are_ordered_by_docno(cosine):
    found = cosine()(TOPICS)
    tied = found[found.duplicated(["qid", "score"], keep=False)]
    assert len(tied) >= 20
    for _, rows in tied.groupby(["qid", "score"]):
        assert rows["docno"].is_monotonic_increasing


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


@pytest.fixture
def index(dataset, tiny_bert, small_shards, tmp_path):
    """Makes an index in shards of 5 documents, and counts what its encoder encodes."""

    def make(name, **options):
        encoder = Encoder(tiny_bert, device="cpu")
        return DenseIndex(Dataset(dataset, ["text"]), tmp_path / name, encoder, **options)

    return make


def files(index):
    paths = (path for path in index.folder.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in paths}


def test_a_stopped_build_resumes_to_the_same_bytes(index, monkeypatch):
    whole, stopped = index("whole"), index("stopped")
    assert whole.make() and not whole.make()
    encode, encoded = Encoder.documents, []

    def stopping(self, texts):
        if len(encoded) == 2:
            raise KeyboardInterrupt
        encoded.append(len(texts))
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "documents", stopping)
    with pytest.raises(KeyboardInterrupt):
        stopped.make()
    shards = sorted(path.name.rpartition("-")[2] for path in stopped.folder.glob("vectors-*"))
    assert shards == ["00000.npy", "00001.npy"]
    encoded[:] = [0]
    with pytest.raises(KeyboardInterrupt):
        stopped.make()
    encoded.clear()
    monkeypatch.setattr(Encoder, "documents", lambda *a: encoded.append(len(a[1])) or encode(*a))
    assert stopped.make() and encoded == [5, 3]
    assert files(stopped) == files(whole)
    assert files(whole).keys() == {
        *("vecs.f4", "docnos.npids", "pt_meta.json", "manifest.json", "started.json", "texts.npy")
    }


def test_only_texts_that_no_other_index_has_are_encoded(index, dataset, tmp_path, monkeypatch):
    index("index").make()
    lines = Path(dataset.removeprefix("harp:"), "documents.jsonl").read_text().splitlines()
    documents = [*map(json.loads, lines[3:]), {**json.loads(lines[0]), "doc_id": "copy"}]
    documents[7]["text"] = "Something else stands here now."
    (tmp_path / "new").mkdir()
    changed = "".join(f"{json.dumps(document)}\n" for document in documents)
    (tmp_path / "new" / "documents.jsonl").write_text(changed)
    encoder = Encoder(index("index").encoder.model, device="cpu")
    encode, encoded = Encoder.documents, []
    monkeypatch.setattr(Encoder, "documents", lambda *a: encoded.extend(a[1]) or encode(*a))
    made, alone = (
        DenseIndex(Dataset(f"harp:{tmp_path / 'new'}", ["text"]), tmp_path / folder, encoder)
        for folder in ("index", "alone")
    )
    assert made.make() and encoded == ["Something else stands here now."]
    assert alone.make() and len(encoded) == 1 + len(documents)
    (docnos, vectors, _), (expected_docnos, expected, _) = (
        each.flex.payload() for each in (made, alone)
    )
    assert list(docnos) == list(expected_docnos) and list(docnos)[-1] == "copy"
    assert vectors == pytest.approx(expected, abs=1e-6)


def test_vectors_of_two_versions_are_in_no_index(index, monkeypatch):
    """A build that another version of torch has begun is begun again."""
    expected = index("whole")
    expected.make()
    documents, counts = Encoder.documents, []

    def counted(self, texts):
        counts.append(len(texts))
        if len(counts) == 2:
            raise KeyboardInterrupt
        return documents(self, texts)

    monkeypatch.setattr(Encoder, "documents", counted)
    versions = property(lambda _: {"torch": "1.0"})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Encoder, "versions", versions)
        index("stopped").make()
    stopped = index("stopped")
    assert len(list(stopped.folder.glob("vectors-*"))) == 1
    stopped.make()
    assert sum(counts[2:]) == sum(1 for _ in stopped.documents.documents())
    found, wanted = files(stopped), files(expected)
    assert found.pop(STARTED) != wanted.pop(STARTED)  # which version began
    assert found == wanted


def test_hosts_encode_their_own_shards_and_the_last_one_finishes(index):
    alone, first, second = (index("alone"), *(index("both", rank=r, world=2) for r in (0, 1)))
    alone.make()
    assert not first.make() and len(list(first.folder.glob("vectors-*"))) == 3
    assert second.make() and not first.make()
    assert files(second) == files(alone)


def test_vectors_without_a_record_are_unfinished_and_others_are_left(index):
    made = index("index")
    made.make()
    expected = files(made)
    (made.folder / "manifest.json").unlink()
    index("index").make()
    assert files(made) == expected
    made.artifact.clear()
    assert not made.folder.exists()
    made.folder.mkdir(parents=True)
    (made.folder / "mine").write_text("a person's")
    for attempt in (made.make, made.artifact.clear):
        with pytest.raises(HarpError, match="harp did not write"):
            attempt()
    assert (made.folder / "mine").exists()


def test_a_whole_index_is_searched_without_a_lock(cosine, monkeypatch):
    """No lock can be made in a folder that cannot be written."""
    expected = cosine()(TOPICS)

    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr(FileLock, "acquire", refused)
    pd.testing.assert_frame_equal(cosine()(TOPICS), expected)


def test_a_damaged_index_is_made_again(cosine, caplog):
    expected = cosine()(TOPICS)
    vectors = cosine().index.folder / "vecs.f4"
    vectors.write_bytes(vectors.read_bytes()[:-8])
    pd.testing.assert_frame_equal(cosine()(TOPICS), expected)
    assert "has changed since it was written" in caplog.text


def of_another_torch(folder):
    record = read_record(folder / MANIFEST)
    record["versions"]["torch"] = "1.0"
    write_record(folder / MANIFEST, record)


def test_an_index_of_other_versions_is_used_and_told(cosine, monkeypatch, caplog):
    expected = cosine()(TOPICS)
    assert not caplog.text
    of_another_torch(cosine().index.folder)
    monkeypatch.setattr(Encoder, "documents", None)
    pd.testing.assert_frame_equal(cosine()(TOPICS), expected)
    (told,) = caplog.messages
    assert f"{cosine().index.folder} was made by other package versions (torch: 1.0 then" in told


def test_empty_frames_load_no_weights(dataset, tmp_path):
    unloaded = DenseCosine("no/weights", dataset=dataset, index_dir=tmp_path)
    found = unloaded(TOPICS.head(0))
    assert list(found.columns) == ["qid", "query", "note", "docno", "score", "rank"]
    reranked = unloaded(TOPICS.head(0).assign(docno="", score=0.0))
    assert len(reranked) == 0 and list(reranked.columns)[-2:] == ["score", "rank"]


def test_without_an_index_there_is_no_search(tiny_bert):
    with pytest.raises(HarpError, match="needs dataset and index_dir: name both"):
        DenseCosine(tiny_bert)(TOPICS)
    assert pt.inspect.transformer_inputs(DenseCosine(tiny_bert)) == [
        ["qid", "docno", "query", "text"]
    ]


@pytest.mark.parametrize("query", [None, 3])
def test_a_query_that_is_no_text_names_its_row(cosine, query):
    with pytest.raises(HarpError, match="column 'query' of qid 7: it holds"):
        cosine()(pd.DataFrame({"qid": ["7"], "query": [query]}, dtype=object))


def test_equal_settings_make_equal_transformers(cosine, tiny_bert):
    one = cosine()
    assert one == cosine() and hash(one) == hash(cosine())
    assert one != cosine(num_results=3)
    assert (one % 5).compile() == cosine(num_results=5)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    pd.testing.assert_frame_equal(again(TOPICS), one(TOPICS))
    assert repr(DenseCosine("m", num_results=3)) == "DenseCosine('m', num_results=3)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_results": 0}, "num_results is 0"),
        ({"num_results": None}, "num_results is None"),
        ({"max_passages": None}, "max_passages is None"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"dtype": "float3"}, "dtype is 'float3': it must be one of"),
        ({"dataset": None}, "index_dir needs a dataset"),
    ],
)
def test_arguments_without_a_meaning(cosine, options, message):
    with pytest.raises(HarpError, match=message):
        cosine(**options)


def test_no_text_field(dataset):
    with pytest.raises(HarpError, match="text_field is empty"):
        DenseCosine("no/model/needed", dataset=dataset, text_field=[])

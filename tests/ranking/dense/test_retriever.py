"""`harp index` and `HarpRetriever`, beside pyterrier_dr and sentence-transformers."""

import json
import pickle
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from lz4.frame import LZ4FrameFile
from pyterrier_dr import FlexIndex
from sentence_transformers import SentenceTransformer

from harp_plugin import HarpRetriever
from harp_plugin.cli import main
from harp_plugin.collections.dataset import Dataset
from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.index import DenseIndex
from harp_plugin.ranking.dense.retriever import ALGORITHMS
from harp_plugin.ranking.texts import PassagesOf

WORDS = ["link", "page", "dog", "cat", "tree", "house", "river", "stone", "music", "paper"]
UNUSUAL = "dé–600"
TOPICS = pd.DataFrame({"qid": ["2", "1"], "query": ["dogs and cats", "a river"], "note": [1, 2]})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(7)
    with (folder / "documents.jsonl").open("w") as file:
        for number in range(1200):
            text = " ".join(rng.choice(WORDS, rng.integers(3, 12)))
            name = f"d{(number * 7) % 1200}"
            page = {"doc_id": {"d600": UNUSUAL}.get(name, name), "title": "", "text": text}
            file.write(json.dumps(page | {"anchor_text": "x"}) + "\n")
    return f"harp:{folder}"


@pytest.fixture(scope="module", params=[True, False], ids=["cosine", "dot"])
def model(request, tiny_bert, tmp_path_factory):
    """An encoder whose vectors have the length 1, or not."""
    folder = tmp_path_factory.mktemp("encoder")
    TrainableBiEncoder.load(str(tiny_bert), normalize=request.param).save(folder)
    load_tokenizer(str(tiny_bert)).save_pretrained(folder)
    return folder


def make(dataset, model, folder, *flags):
    given = ["--model", str(model), "--output-dir", str(folder), "--fields", "text", "--quiet"]
    return main(["index", dataset, *given, *flags])


@pytest.fixture(scope="module")
def index(dataset, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "vectors"
    assert make(dataset, model, folder) == 0
    return folder


class TestPyTerrierContract(pt.testing.transformer_test_class(lambda: HarpRetriever("no/index"))):
    """Inspection and schematics, without an index."""


@pytest.fixture(scope="module")
def scores(dataset, model):
    """The score of each document for each topic, by sentence-transformers."""
    theirs = SentenceTransformer(str(model), device="cpu")
    texts = dict(Dataset(dataset, ["text"]).documents())
    products = theirs.encode_query(TOPICS["query"].tolist()) @ theirs.encode(list(texts.values())).T
    return pd.DataFrame(products, index=TOPICS["qid"], columns=list(texts))


@pytest.mark.parametrize("algorithm", ["exact", "torch", "faiss"])
def test_a_search_finds_the_best_of_all_documents(index, scores, algorithm):
    found = HarpRetriever(index, algorithm=algorithm, num_results=20)(TOPICS)
    assert list(found["qid"]) == ["2"] * 20 + ["1"] * 20
    assert list(found["rank"]) == [*range(20)] * 2
    assert {"qid", "query", "note", "docno", "score", "rank"} == set(found.columns)
    for qid, rows in found.groupby("qid"):
        best = scores.loc[qid].sort_values(ascending=False)[:20]
        np.testing.assert_allclose(rows["score"], best, atol=1e-4, rtol=1e-5)
        np.testing.assert_allclose(rows["score"], scores.loc[qid][rows["docno"]], atol=1e-4)


@pytest.mark.parametrize("algorithm", ["exact", "torch"])
def test_a_qid_that_is_there_twice_is_named(index, algorithm):
    with pytest.raises(HarpError, match="row 1 has the qid 'a' of a row before it: give each"):
        HarpRetriever(index, algorithm=algorithm)(TOPICS.assign(qid="a"))


def test_equal_scores_are_ordered_by_docno(index):
    found = HarpRetriever(index, num_results=1200)(TOPICS)
    tied = found[found.duplicated(["qid", "score"], keep=False)]
    assert len(tied) > 10
    for _, rows in tied.groupby(["qid", "score"]):
        assert rows["docno"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [("hnsw", {"ef_search": 400}), ("ivf", {"n_list": 8, "n_probe": 8})],
)
def test_an_approximate_search_finds_most(index, algorithm, options):
    exact = HarpRetriever(index, num_results=10)(TOPICS)
    retriever = HarpRetriever(index, algorithm=algorithm, num_results=10, options=options)
    found = retriever(TOPICS)
    assert len(set(found["docno"]) & set(exact["docno"])) >= 0.8 * len(set(exact["docno"]))


def test_pyterrier_dr_opens_it(index, model):
    flex = FlexIndex(str(index), verbose=False)
    assert len(flex) == 1200
    vectors = Encoder(model, normalize=None)
    queries = TOPICS.assign(query_vec=list(vectors.queries(TOPICS["query"].tolist())))
    theirs = flex.np_retriever(num_results=5)(queries)
    ours = (HarpRetriever(index) % 5)(TOPICS)
    np.testing.assert_allclose(np.sort(theirs["score"]), np.sort(ours["score"]), atol=1e-5)


def test_an_index_is_shared_as_an_artifact_of_pyterrier(index, model, tmp_path):
    """The package is opened where neither the index nor its encoder lies."""
    package = pt.Artifact.load(str(index)).build_package(str(tmp_path / "package"), verbose=False)
    there = tmp_path / "there" / "index"
    with LZ4FrameFile(package) as file, tarfile.open(fileobj=file, mode="r|") as members:
        members.extractall(there, filter="data")
    moved = shutil.copytree(model, tmp_path / "moved")
    shared = HarpRetriever(pt.Artifact.load(str(there)), model=moved)
    assert shared == HarpRetriever(there, model=moved)
    pd.testing.assert_frame_equal(shared(TOPICS), HarpRetriever(index)(TOPICS))


def test_results_are_reranked(index, scores):
    pairs = TOPICS.merge(pd.DataFrame({"docno": ["d5", "d7", UNUSUAL]}), how="cross")
    found = HarpRetriever(index)(pairs)
    expected = [scores.loc[qid, docno] for qid, docno in zip(found.qid, found.docno, strict=True)]
    np.testing.assert_allclose(found["score"], expected, atol=1e-4)
    assert sorted(found["rank"]) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(HarpError, match="has no document elsewhere"):
        HarpRetriever(index)(TOPICS.assign(docno="elsewhere"))


def test_queries_are_encoded_once_for_a_search_and_its_reranking(index, monkeypatch):
    encode, asked = Encoder.queries, []

    def counted(self, queries):
        asked.append(list(queries))
        return encode(self, queries)

    monkeypatch.setattr(Encoder, "queries", counted)
    retriever = HarpRetriever(index)
    found = retriever.transform(TOPICS)
    again = retriever.transform(found)
    both = found.merge(again, on=["qid", "docno"])
    assert len(both) == len(found)
    np.testing.assert_allclose(both["score_x"], both["score_y"], atol=1e-5)
    retriever.transform(TOPICS[:1])
    retriever.device = "cpu"
    retriever.transform(TOPICS[:1])
    both, first = TOPICS["query"].tolist(), TOPICS["query"].tolist()[:1]
    assert asked == [both, first, first]


def test_copies_are_equal_and_find_the_same(index):
    retriever = HarpRetriever(index, num_results=3)
    expected = retriever(TOPICS)
    copy = pickle.loads(pickle.dumps(retriever))
    assert copy == retriever != HarpRetriever(index, num_results=4)
    assert hash(HarpRetriever(index, algorithm="hnsw", options={"probes": [1]})) != hash(retriever)
    pd.testing.assert_frame_equal(copy(TOPICS), expected)
    assert retriever.fuse_rank_cutoff(2) == HarpRetriever(index, num_results=2)


def test_a_stopped_index_goes_on_and_a_finished_one_is_kept(
    dataset, model, index, tmp_path, monkeypatch, capsys
):
    folder, encode, calls = tmp_path / "index", Encoder.documents, []

    def counting(self, texts):
        calls.append(len(texts))
        return encode(self, texts)

    def stopping(self, texts):
        if calls:
            raise KeyboardInterrupt
        return counting(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "documents", stopping)
        assert make(dataset, model, folder) == 130
    with pytest.raises(HarpError, match="not a finished index: make it with `harp index"):
        HarpRetriever(folder)(TOPICS)
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "documents", counting)
        assert make(dataset, model, folder) == 0
    assert calls == [1000, 200]
    assert (folder / "vecs.f4").read_bytes() == (index / "vecs.f4").read_bytes()
    monkeypatch.setattr(Encoder, "documents", None)
    assert make(dataset, model, folder) == 0
    assert main(["check", str(folder)]) == 0


def test_other_settings_need_overwrite(dataset, model, index, tmp_path, capsys):
    folder = shutil.copytree(index, tmp_path / "index")
    assert make(dataset, model, folder, "--dtype", "bfloat16") == 2
    assert "dtype: float32 then, bfloat16 now" in capsys.readouterr().err
    assert make(dataset, model, folder, "--dtype", "bfloat16", "--overwrite") == 0
    assert (folder / "vecs.f4").read_bytes() != (index / "vecs.f4").read_bytes()
    for name in ("manifest.json", "started.json"):
        (folder / name).unlink()
    assert make(dataset, model, folder) == 2
    assert "files that harp did not write" in capsys.readouterr().err


def test_queries_are_cut_as_the_documents(dataset, model, tmp_path):
    assert make(dataset, model, tmp_path / "short", "--max-length", "4") == 0
    theirs = SentenceTransformer(str(model), device="cpu")
    theirs.max_seq_length = 4
    texts = dict(Dataset(dataset, ["text"]).documents())
    products = theirs.encode_query(TOPICS["query"].tolist()) @ theirs.encode(list(texts.values())).T
    found = HarpRetriever(tmp_path / "short", num_results=5)(TOPICS)
    for qid, expected in zip(TOPICS["qid"], np.sort(products)[:, :-6:-1], strict=True):
        np.testing.assert_allclose(found[found["qid"] == qid]["score"], expected, atol=1e-5)


def test_the_encoder_must_be_the_one_that_made_the_index(index, model, tiny_bert, tmp_path):
    moved = shutil.copytree(model, tmp_path / "moved")
    assert len(HarpRetriever(index, model=moved, num_results=3)(TOPICS)) == 6
    with pytest.raises(HarpError, match="is not the encoder that made"):
        HarpRetriever(index, model=tiny_bert)(TOPICS)


def test_wrong_arguments(index, dataset, model, tmp_path, capsys):
    with pytest.raises(HarpError, match="algorithm is 'fast': it must be one of exact, torch"):
        HarpRetriever(index, algorithm="fast")
    with pytest.raises(HarpError, match="num_results"):
        HarpRetriever(index, num_results=0)
    with pytest.raises(HarpError, match="algorithm exact has no options"):
        HarpRetriever(index, options={"ef_search": 4})
    with pytest.raises(HarpError, match=r"algorithm hnsw: .*ef_serch"):
        HarpRetriever(index, algorithm="hnsw", options={"ef_serch": 4})(TOPICS)
    assert make(dataset, tmp_path / "none", tmp_path / "index") == 2
    assert "no model at" in capsys.readouterr().err
    assert make("harp:/no/such", "x", tmp_path / "index") == 2
    (tmp_path / "file").write_text("")
    assert make(dataset, model, tmp_path / "file") == 2
    assert "file is a file: name another --output-dir" in capsys.readouterr().err


def test_evaluate_takes_it(index, tmp_path, capsys):
    """On the encyclopedia's own queries, whose documents the index does not have."""
    recipe = {"dataset": "harp-encyclopedia", "first_stage": f"dense:{index}", "quiet": True}
    (tmp_path / "recipe.json").write_text(
        json.dumps(recipe | {"output_dir": str(tmp_path / "out")})
    )
    assert main(["evaluate", str(tmp_path / "recipe.json")]) == 0
    assert "\ndense " in capsys.readouterr().out


def test_a_graph_is_opened_again(index):
    pytest.importorskip("faiss")
    first, again = (HarpRetriever(index, algorithm="hnsw").transform(TOPICS) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)


def test_two_searches_at_once_keep_one_graph(index, tmp_path, monkeypatch):
    """Both write it before either has finished."""
    faiss = pytest.importorskip("faiss")
    shutil.copytree(index, tmp_path / "copy")
    path = tmp_path / "copy" / "hnsw_n-32_ef-40.faiss"
    path.unlink(missing_ok=True)
    both, write = Barrier(2, timeout=60), faiss.write_index

    def write_together(*arguments):
        both.wait()
        write(*arguments)
        both.wait()

    monkeypatch.setattr(faiss, "write_index", write_together)
    retrievers = [HarpRetriever(tmp_path / "copy", algorithm="hnsw") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda retriever: retriever.transform(TOPICS), retrievers)
    pd.testing.assert_frame_equal(first, second)
    assert [file.name for file in (tmp_path / "copy").glob("hnsw*")] == [path.name]
    assert faiss.read_index(str(path)).ntotal == 1200


def test_a_graph_without_vectors_is_made_again(index, tmp_path):
    faiss = pytest.importorskip("faiss")
    shutil.copytree(index, tmp_path / "copy")
    path = tmp_path / "copy" / "hnsw_n-32_ef-40.faiss"
    path.unlink(missing_ok=True)
    FlexIndex(tmp_path / "copy").faiss_hnsw_retriever()
    with pytest.raises(RuntimeError):
        faiss.read_index(str(path))
    found = HarpRetriever(tmp_path / "copy", algorithm="hnsw").transform(TOPICS)
    assert len(found) and faiss.read_index(str(path)).ntotal == 1200


@pytest.mark.parametrize("algorithm", ["exact", "torch", "faiss", "hnsw"])
def test_one_result_of_each_query(index, algorithm):
    several = HarpRetriever(index, algorithm=algorithm, num_results=5).transform(TOPICS)
    one = HarpRetriever(index, algorithm=algorithm, num_results=1).transform(TOPICS)
    best = several[several["rank"] == 0].reset_index(drop=True)
    assert len(one) == 2 and np.allclose(one["score"], best["score"], atol=1e-5)


def small_index(docnos, model, folder):
    """The index of documents of random words."""
    rng = np.random.default_rng(3)
    with (folder / "documents.jsonl").open("w") as file:
        for docno in docnos:
            page = {"doc_id": docno, "title": "", "text": " ".join(rng.choice(WORDS, 5))}
            file.write(json.dumps(page | {"anchor_text": ""}) + "\n")
    assert make(f"harp:{folder}", model, folder / "index") == 0
    return folder / "index"


@pytest.mark.parametrize("documents", [1, 2, 5, 30])
def test_a_small_index_gives_all_its_documents(documents, model, tmp_path):
    pytest.importorskip("faiss")
    index = small_index([f"d{number}" for number in range(documents)], model, tmp_path)
    exact = HarpRetriever(index).transform(TOPICS)
    assert exact.groupby("qid").size().to_dict() == {"1": documents, "2": documents}
    for algorithm in ["exact", *ALGORITHMS]:
        for count in (1000, 4):
            retriever = HarpRetriever(index, algorithm=algorithm, num_results=count)
            found = retriever.transform(TOPICS)
            best = exact[exact["rank"] < count].reset_index(drop=True)
            assert len(found) == len(best) == 2 * min(count, documents)
            np.testing.assert_allclose(found["score"], best["score"], atol=1e-4)
    few = {"n_list": 1, "n_probe": 1} if documents == 1 else {"n_list": 2, "n_probe": 2}
    found = HarpRetriever(index, algorithm="ivf", options=few).transform(TOPICS)
    assert len(found) == len(exact)


@pytest.mark.parametrize(
    "docnos",
    [
        ["Москва", "Россия"],
        [f"x{number}y" for number in range(256)] + ["longer-than-the-others"],
        [f"d{number}" for number in range(256)] + ["e5"],
        [f"d{number:03}" for number in range(5, 300)],
        ["d007", "d7", "d07"],
    ],
    ids=["characters", "last-block", "two-sequences", "padded", "similar"],
)
def test_documents_of_any_names_are_found_again(docnos, model, tmp_path):
    index = small_index(docnos, model, tmp_path)
    retriever = HarpRetriever(index)
    found = retriever.transform(TOPICS)
    assert set(found["docno"]) == {*docnos} and retriever.has(docnos)
    again = retriever.transform(found[["qid", "query", "docno"]])
    both = found.merge(again, on=["qid", "docno"])
    assert len(both) == len(found) == 2 * len(docnos)
    np.testing.assert_allclose(both["score_x"], both["score_y"], atol=1e-4)
    assert not retriever.has(["d8-absent"])
    assert [*FlexIndex(str(index), verbose=False).docnos()] == docnos


def test_one_document_is_searched_for_negatives(model, tmp_path):
    small_index(["d1"], model, tmp_path)
    encoder = Encoder(model)
    index = DenseIndex(PassagesOf(Dataset(f"harp:{tmp_path}"), 1), tmp_path, encoder)
    assert index.make()
    found = index.search(encoder.queries(TOPICS["query"].tolist()), 10)
    assert [(docnos.tolist(), scores.shape) for docnos, scores in found] == [(["d1"], (1,))] * 2

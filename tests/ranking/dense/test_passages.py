"""Vectors of passages, beside PyTerrier's own best passage and sentence-transformers."""

import json

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from pyterrier_dr import FlexIndex
from sentence_transformers import SentenceTransformer

from harp_plugin import HarpRetriever
from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import TrainableBiEncoder
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.text import passages

MOST = 4
TOPICS = pd.DataFrame({"qid": ["2", "1"], "query": ["dogs and cats", "a river"]})


@pytest.fixture(scope="module")
def texts():
    """Documents of 3 to 300 words."""
    rng = np.random.default_rng(7)
    words = ["link", "page", "dog", "cat", "tree", "house", "river", "stone", "music", "paper"]
    return {f"d{n}": " ".join(rng.choice(words, rng.integers(3, 300))) for n in range(60)}


@pytest.fixture(scope="module")
def dataset(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    with (folder / "documents.jsonl").open("w") as file:
        for name, text in texts.items():
            page = {"doc_id": name, "title": "", "text": text, "anchor_text": ""}
            file.write(json.dumps(page) + "\n")
    return f"harp:{folder}"


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    TrainableBiEncoder.load(str(tiny_bert)).save(folder)
    load_tokenizer(str(tiny_bert)).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def index(dataset, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "vectors"
    given = ["--model", model, "--output-dir", str(folder), "--fields", "text", "--quiet"]
    assert main(["index", dataset, *given, "--max-passages", str(MOST)]) == 0
    return folder


@pytest.fixture(scope="module")
def scores(texts, model):
    """The best score of a document's passages for each topic, by sentence-transformers."""
    theirs = SentenceTransformer(model, device="cpu")
    queries = theirs.encode(TOPICS["query"].tolist())
    best = {
        name: (queries @ theirs.encode(passages(text, MOST)).T).max(axis=1)
        for name, text in texts.items()
    }
    return pd.DataFrame(best, index=TOPICS["qid"])


def test_passages_have_the_beginning_in_common():
    text = "A title: " + " ".join(f"w{n}," for n in range(2, 170))
    first, second, third = passages(text, 9)
    beginning = "A title: " + " ".join(f"w{n}," for n in range(2, 7)) + " w7"
    assert first == beginning + ", " + " ".join(f"w{n}," for n in range(8, 79)) + " w79"
    assert second == beginning + "\n" + " ".join(f"w{n}," for n in range(80, 151)) + " w151"
    assert third == beginning + "\n" + " ".join(f"w{n}," for n in range(152, 169)) + " w169"
    assert passages(text, 2) == [first, second]
    assert passages(text, 1) == [text]


@pytest.mark.parametrize("words", [0, 1, 8, 80])
def test_a_short_text_is_one_passage(words):
    text = " ".join(["word"] * words) + "!"
    assert passages(text, 5) == [text]
    assert len(passages(text + " more" * (81 - words), 5)) == 2


def test_a_search_finds_the_documents_with_the_best_passages(index, scores):
    found = HarpRetriever(index, num_results=10)(TOPICS)
    assert list(found["rank"]) == [*range(10)] * 2
    for qid, rows in found.groupby("qid"):
        best = scores.loc[qid].sort_values(ascending=False)[:10]
        np.testing.assert_allclose(rows["score"], best, atol=1e-4)
        np.testing.assert_allclose(rows["score"], scores.loc[qid][rows["docno"]], atol=1e-4)


def test_pyterrier_finds_the_same_best_passages(index, model):
    vectors = Encoder(model).queries(TOPICS["query"].tolist())
    search = FlexIndex(str(index), verbose=False).np_retriever(num_results=240, drop_query_vec=True)
    theirs = pt.text.max_passage()(search(TOPICS.assign(query_vec=list(vectors))))
    ours = HarpRetriever(index)(TOPICS)
    both = ours.merge(theirs, on=["qid", "docno"])
    assert len(both) == len(ours) == len(theirs) == 2 * 60
    np.testing.assert_allclose(both["score_x"], both["score_y"], atol=1e-5)


def test_results_are_reranked_with_and_without_an_index(index, dataset, model, scores, tmp_path):
    pairs = TOPICS.merge(pd.DataFrame({"docno": ["d5", "d7", "d11"]}), how="cross")
    options = {"dataset": dataset, "text_field": "text", "max_passages": MOST}
    for cosine in (
        HarpRetriever(index),
        DenseCosine(model, **options),
        DenseCosine(model, index_dir=tmp_path, **options),
    ):
        found = cosine(pairs)
        expected = [scores.loc[qid, name] for qid, name in zip(found.qid, found.docno, strict=True)]
        np.testing.assert_allclose(found["score"], expected, atol=1e-4)


def test_a_missing_document_is_named(index):
    pairs = TOPICS.assign(docno=["d5", "d500"])
    with pytest.raises(HarpError, match="has no document d500"):
        HarpRetriever(index)(pairs)
    assert HarpRetriever(index).has(["d5", "d7"]) and not HarpRetriever(index).has(["d500"])


def test_a_docno_may_look_like_that_of_a_passage(model, tmp_path):
    pages = {"a": "river " * 100, "a%p0": "stone " * 100, "a%p1": "river stone"}
    lines = (
        json.dumps({"doc_id": docno, "title": "", "text": text, "anchor_text": ""})
        for docno, text in pages.items()
    )
    (tmp_path / "documents.jsonl").write_text("".join(f"{line}\n" for line in lines))
    options = {"index_dir": tmp_path, "text_field": "text", "max_passages": MOST}
    found = DenseCosine(model, dataset=f"harp:{tmp_path}", **options)(TOPICS)
    assert found.groupby("qid")["docno"].apply(sorted).tolist() == [[*pages]] * 2
    encoder = SentenceTransformer(model, device="cpu")
    for _, row in found.iterrows():
        query, parts = (
            encoder.encode(row["query"]),
            encoder.encode(passages(pages[row["docno"]], MOST)),
        )
        assert row["score"] == pytest.approx((parts @ query).max(), abs=1e-4)


def test_each_number_of_passages_has_an_index_of_its_own(dataset, model, tmp_path):
    options = {"dataset": dataset, "index_dir": tmp_path, "text_field": "text", "num_results": 5}
    one, four = (DenseCosine(model, max_passages=most, **options) for most in (1, MOST))
    assert not one(TOPICS).equals(four(TOPICS))
    assert len(list(tmp_path.glob("dense-*"))) == 2


def test_passages_that_another_index_has_are_not_encoded_again(
    dataset, model, tmp_path, monkeypatch
):
    encode, encoded = Encoder.documents, []
    monkeypatch.setattr(Encoder, "documents", lambda *a: encoded.extend(a[1]) or encode(*a))
    options = {"dataset": dataset, "text_field": "text"}
    for most in (2, MOST):
        DenseCosine(model, max_passages=most, index_dir=tmp_path / "both", **options)(TOPICS)
    again = DenseCosine(model, max_passages=MOST, index_dir=tmp_path / "alone", **options)
    both, encoded[:] = sorted(encoded), []
    alone = again(TOPICS)
    assert both == sorted(encoded) and len(both) == len(set(both))
    found = DenseCosine(model, max_passages=MOST, index_dir=tmp_path / "both", **options)(TOPICS)
    assert found["docno"].tolist() == alone["docno"].tolist()
    np.testing.assert_allclose(found["score"], alone["score"], atol=1e-6)

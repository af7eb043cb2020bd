"""Windows of long documents, against PyTerrier's passages and against windows cut by hand."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.ranking.windows import DocumentWindows
from harp_plugin.text import query_passage

WORDS = ["link", "page", "tree", "web", "query", "anchor", "text", "graph", "node", "rank"]
QUERIES = {"1": "web link", "2": "rank"}
PYTERRIER = {
    "first": pt.text.first_passage,
    "max": pt.text.max_passage,
    "mean": pt.text.mean_passage,
    "top2": lambda: pt.text.kmaxavg_passage(2),
}


def document(words: int, seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


def frame(lengths: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"qid": qid, "query": query, "docno": f"d{place}", "text": document(words, place)}
            for qid, query in QUERIES.items()
            for place, words in enumerate(lengths)
        ]
    )


def by_document(results: pd.DataFrame) -> pd.DataFrame:
    return results.set_index(["qid", "docno"]).sort_index()[["score", "rank"]]


def test_each_word_is_one_token(wordpiece):
    assert all(len(wordpiece.tokenize(word)) == 1 for word in WORDS)


@pytest.mark.parametrize("passages", PYTERRIER)
@pytest.mark.parametrize(("length", "stride"), [(8, 4), (8, 8), (6, 1)])
def test_equal_to_pyterriers_passages(telling_bert, passages, length, stride):
    """PyTerrier drops the words after its last full window, so here there are none."""
    results = frame([0, 1, length - 1, length, length + stride, length + 5 * stride])
    by_words = (
        pt.text.sliding("text", length, stride, prepend_attr=None)
        >> HarpReranker(telling_bert)
        >> PYTERRIER[passages]()
    )
    ours = HarpReranker(
        telling_bert, passages=passages, passage_length=length, passage_stride=stride
    )
    pd.testing.assert_frame_equal(
        by_document(ours(results)), by_document(by_words(results)), atol=1e-6, check_dtype=False
    )


@pytest.mark.parametrize("length", [10, 64, 65, 300])
def test_the_passage_that_matches_the_query(telling_bert, length):
    results = frame([length, length + 7])
    passages = list(map(query_passage, results["query"], results["text"]))
    expected = HarpReranker(telling_bert)(results.assign(text=passages))
    found = HarpReranker(telling_bert, passages="matching")(results)
    pd.testing.assert_frame_equal(by_document(found), by_document(expected))
    features = HarpReranker(telling_bert) ** HarpReranker(telling_bert, passages="matching")
    both = np.stack(features.compile()(results)["features"])
    np.testing.assert_allclose(both[:, 1], expected["score"], atol=1e-6)


@pytest.mark.parametrize("passages", ["first", "max", "mean", "top2"])
def test_the_end_of_a_document_is_read(telling_bert, passages):
    results = frame([21])
    words = results["text"][0].split()
    texts = [" ".join(words[start : start + 8]) for start in (0, 4, 8, 12, 16)]
    assert texts[-1].split() == words[16:] and len(words[16:]) == 5
    scores = np.sort(Scorer(telling_bert).score([QUERIES["1"]] * 5, texts).astype(float))
    first = Scorer(telling_bert).score([QUERIES["1"]], texts[:1])[0]
    by_hand = {
        "first": first,
        "max": scores[-1],
        "mean": scores.mean(),
        "top2": scores[-2:].mean(),
    }
    ours = HarpReranker(telling_bert, passages=passages, passage_length=8, passage_stride=4)
    assert ours(results)["score"][0] == pytest.approx(by_hand[passages], abs=1e-6)
    assert np.ptp(scores) > 0.01, "scores that hardly differ prove nothing"


def test_windows_are_as_long_as_what_fits_beside_the_query(telling_bert):
    """20 tokens less 3 special ones and the query; a window starts every half of that."""
    text = document(40, 7)
    results = pd.DataFrame({"qid": ["1"], "query": ["web link"], "docno": ["d"], "text": [text]})
    words = text.split()
    windows = [" ".join(words[start : start + 15]) for start in range(0, 29, 7)]
    scores = Scorer(telling_bert).score(["web link"] * 5, windows)
    ours = HarpReranker(telling_bert, passages="max", max_length=20)
    assert ours(results)["score"][0] == pytest.approx(scores.max(), abs=1e-6)


def test_a_short_document_scores_the_same_however_it_is_read(telling_bert):
    results = frame([1, 5, 9])
    plain = by_document(HarpReranker(telling_bert)(results))
    for passages in PYTERRIER:
        read = by_document(HarpReranker(telling_bert, passages=passages)(results))
        pd.testing.assert_frame_equal(read, plain, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_every_token_is_in_a_window_and_none_is_over_its_length(length):
    for stride in range(1, length + 1):
        cut = DocumentWindows("max", length, stride)
        for tokens in range(40):
            windows = [range(tokens)[window] for window in cut.slices(tokens, 100)]
            assert set().union(*windows) == set(range(tokens))
            assert all(len(window) == length for window in windows[:-1])
            assert tokens == 0 or 0 < len(windows[-1]) <= length


def test_windows_share_the_memory_of_the_document(telling_bert, monkeypatch):
    seen = []
    score_tokens = Scorer.score_tokens

    def spy(self, queries, documents, pairs, **options):
        seen.extend(documents)
        return score_tokens(self, queries, documents, pairs, **options)

    monkeypatch.setattr(Scorer, "score_tokens", spy)
    results = frame([90]).head(1)
    HarpReranker(telling_bert, passages="max", passage_length=10, passage_stride=5)(results)
    assert len(seen) == 17
    assert all(np.shares_memory(a, b) for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passages": "best"}, "passages is 'best': it must be one of first, max, mean, top2"),
        ({"passage_length": 0}, "passage_length is 0"),
        ({"passage_stride": -1}, "passage_stride is -1"),
        ({"passage_length": 4, "passage_stride": 5}, "passage_stride 5 is over passage_length 4"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    with pytest.raises(HarpError, match=message):
        HarpReranker("no/weights/needed", **options)

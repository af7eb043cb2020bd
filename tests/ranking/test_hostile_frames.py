"""Frames that a person may give by mistake: one line from all that ranks, before it scores."""

import numpy as np
import pandas as pd
import pytest

from harp_plugin import HarpFusion, HarpReranker
from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.ranking.learned import LearnedRanker

ROWS = 12
FRAME = pd.DataFrame(
    {
        "qid": ["q"] * ROWS,
        "query": ["a link"] * ROWS,
        "docno": [f"d{number}" for number in range(ROWS)],
        "text": [f"page {number}" for number in range(ROWS)],
        "score": np.arange(ROWS, 0, -1.0),
        "rank": np.arange(ROWS),
        "features": [np.array([1.0, number]) for number in range(ROWS)],
    }
)


def mixed(column, value):
    values = pd.Series([value, *FRAME[column].astype(object)[1:]], dtype=object)
    return FRAME.assign(**{column: values})


CASES = {
    "a column twice": (
        pd.concat([FRAME, FRAME[["query", "docno"]]], axis=1),
        "column 'query' is there twice: keep one",
    ),
    "no qid": (mixed("qid", np.nan), "row 0 has no qid: give each query and document an id"),
    "a qid is None": (mixed("qid", None), "row 0 has no qid"),
    "no docno": (mixed("docno", None), "row 0 has no docno"),
    "mixed qids": (mixed("qid", 7), "column 'qid' has texts and numbers: make all of them texts"),
    "mixed docnos": (mixed("docno", 7), "column 'docno' has texts and numbers"),
    "a score is None": (mixed("score", None), "row 0 has the score None, which is no number"),
    "mixed scores": (mixed("score", "high"), "row 0 has the score 'high', which is no number"),
    "scores are texts": (
        FRAME.assign(score=FRAME["score"].astype(str)),
        "row 0 has the score '12.0', which is no number: give numbers, or drop the column 'score'",
    ),
    "ranks are texts": (
        FRAME.assign(rank=FRAME["rank"].astype(str)),
        "row 0 has the rank '0', which is no number",
    ),
    "a rank is missing": (
        FRAME.assign(rank=FRAME["rank"].where(FRAME["rank"] > 0)),
        "the rank nan",
    ),
}
TEXTS = {
    "half a surrogate pair in a query": (
        mixed("query", "a \ud800"),
        "the text in column 'query' of qid q, docno d0 holds half a surrogate pair",
    ),
    "half a surrogate pair in a text": (
        mixed("text", "\udfff b"),
        "the text in column 'text' of qid q, docno d0 holds half a surrogate pair",
    ),
    "a query is missing": (
        mixed("query", None),
        "'query' of qid q, docno d0: it holds None; make it a",
    ),
    "a text is a number": (mixed("text", 3), "no text in column 'text' of qid q, docno d0"),
}


@pytest.fixture(params=["reranker", "ensemble", "features", "cosine", "fusion", "learned"])
def transformer(request, telling_bert):
    reranker = HarpReranker(telling_bert)
    return {
        "reranker": lambda: reranker,
        "ensemble": lambda: HarpReranker.ensemble([telling_bert, telling_bert]),
        "features": lambda: (reranker**reranker).compile(),
        "cosine": lambda: DenseCosine(telling_bert),
        "fusion": lambda: HarpFusion({"one": StageBefore(), "two": StageBefore()}),
        "learned": lambda: LearnedRanker({"trees": [], "linear": [1.0, 1.0], "parts": [1.0, 0.0]}),
    }[request.param]()


def assert_one_line(transformer, frame, said):
    with pytest.raises(HarpError) as caught:
        transformer.transform(frame)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", CASES)
def test_ids_scores_and_ranks(name, transformer):
    assert_one_line(transformer, *CASES[name])


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name, transformer):
    if isinstance(transformer, HarpFusion | LearnedRanker):
        pytest.skip("it reads no texts")
    assert_one_line(transformer, *TEXTS[name])


def test_a_right_frame_passes(transformer):
    assert len(transformer.transform(FRAME)) == ROWS
    numbers = FRAME.assign(qid=1, rank=FRAME["rank"].astype(object))
    assert len(transformer.transform(numbers)) == ROWS


@pytest.mark.parametrize("make", [HarpReranker, DenseCosine])
@pytest.mark.parametrize("model", [None, 3])
def test_a_model_that_is_no_name(make, model):
    with pytest.raises(HarpError, match=f"model is {model}: name a folder, one of the hub, "):
        make(model)

"""The scores of BM25 over fields: by hand, by a loop over all documents, and PISA's."""

import math

import numpy as np
import pandas as pd
import pytest
from pyterrier_pisa import tokenize

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.errors import HarpError
from harp_plugin.ranking.bm25 import Bm25
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex
from harp_plugin.ranking.terms import plain, query_terms, terms

PAGES = [
    ("c", "Apple", "pear pear plum", "apple apple"),
    ("a", "Pear tree", "an apple is no pear", ""),
    ("b", "Plum", "plum cake with plums", "cake"),
    ("e", "Quince", "quince", "fruit"),
    ("d", "Quince", "quince", "fruit"),
]
FIELDS = ["title", "text", "anchor_text"]


def topics(*queries):
    return pd.DataFrame({"qid": [str(n) for n in range(len(queries))], "query": queries})


def scores(found):
    return dict(zip(found["docno"], found["score"], strict=True))


@pytest.fixture
def index(make_pages, tmp_path):
    return FieldedIndex(make_pages(PAGES), tmp_path / "index", FIELDS)


def test_a_score_worked_by_hand(index):
    """“cake”: twice in no field; b has it once in the text (4 words) and once in its anchors (1).

    Mean lengths: text (3 + 5 + 4 + 1 + 1) / 5 = 2.8, anchors (2 + 0 + 1 + 1 + 1) / 5 = 1.
    """
    found = FieldedBm25(
        index, {"text": 2, "anchor_text": 3}, k1=1.5, b={"text": 0.5, "anchor_text": 0.25}
    )(topics("cake"))
    total = 2 * 1 / (0.5 + 0.5 * 4 / 2.8) + 3 * 1 / (0.75 + 0.25 * 1 / 1)
    expected = math.log((5 - 1 + 0.5) / (1 + 0.5)) * 2.5 * total / (1.5 + total)
    assert scores(found) == {"b": pytest.approx(expected, rel=1e-12)}


@pytest.mark.parametrize(
    ("weights", "k1", "b"),
    [
        ({"title": 3, "text": 1, "anchor_text": 0.5}, 0.9, 0.4),
        ({"title": 1}, 1.2, {"title": 0.75}),
        ({"title": 2, "anchor_text": 1, "text": 0}, 0, 1),
    ],
)
def test_scores_are_those_of_a_loop_over_all_documents(index, weights, k1, b):
    queries = ["apple pear", "plum cake fruit", "apple apple the tree", "nothing here"]
    found = FieldedBm25(index, weights, k1=k1, b=b)(topics(*queries))
    for qid, query in enumerate(queries):
        expected = brute(query, weights, k1, b)
        assert scores(found[found["qid"] == str(qid)]) == pytest.approx(expected, rel=1e-12)


def brute(query, weights, k1, b):
    """Read the formula document by document."""
    counts = {row[0]: {f: terms(t) for f, t in zip(FIELDS, row[1:], strict=True)} for row in PAGES}
    active = [field for field, weight in weights.items() if weight]
    means = {f: sum(len(doc[f]) for doc in counts.values()) / len(counts) for f in active}
    result = {}
    for term in query_terms(query):
        having = [d for d, doc in counts.items() if any(term in doc[f] for f in active)]
        weight = max(1e-6, math.log((len(PAGES) - len(having) + 0.5) / (len(having) + 0.5)))
        for docno in having:
            total = 0
            for f in active:
                of_field = b[f] if isinstance(b, dict) else b
                length = 1 - of_field + of_field * len(counts[docno][f]) / means[f]
                total += weights[f] * counts[docno][f].count(term) / length if length else 0
            result[docno] = result.get(docno, 0) + weight * (k1 + 1) * total / (k1 + total)
    return result


def test_larger_weights_are_a_smaller_k1(index):
    one = FieldedBm25(index, {"title": 1, "text": 0.5}, k1=0.5)(topics("apple pear plum"))
    two = FieldedBm25(index, {"title": 4, "text": 2}, k1=2)(topics("apple pear plum"))
    assert list(one["docno"]) == list(two["docno"])
    np.testing.assert_allclose(one["score"] / 1.5, two["score"] / 3)


def test_equal_scores_are_ordered_by_docno(index):
    assert list(FieldedBm25(index)(topics("quince"))["docno"]) == ["d", "e"]
    assert list(FieldedBm25(index, num_results=1)(topics("quince"))["docno"]) == ["d"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {"body": 1}}, "weights name the field 'body', which the index lacks"),
        ({"b": {"body": 1}}, "b name the field 'body'"),
        ({"weights": {"text": -1}}, "weights is .*-1.*it must be at least 0"),
        ({"weights": {"text": "1"}}, "weights is .*'1'"),
        ({"weights": {"text": 0}}, "the weights of all fields are 0"),
        ({"weights": {}}, "the weights of all fields are 0"),
        ({"k1": -1}, "k1 is -1"),
        ({"b": 1.5}, "b is .*1.5.*at most 1"),
        ({"b": {"title": 0.5}}, "b names no field 'text'"),
        ({"num_results": 0}, "num_results is 0"),
    ],
)
def test_arguments_without_a_meaning(index, arguments, message):
    with pytest.raises(HarpError, match=message):
        FieldedBm25(index, **arguments)


def test_words_are_those_that_pisa_cuts_the_whole_text_into(irds_home):
    odd = "don't U.S.A. e.g. i.b.m foo.bar. a..b 'quoted' C++ x_y 1,0.5 O''N \x1c caf\u00e9's ..."
    texts = [odd, *(text for _, text in JudgedDataset("vaswani").documents())]
    assert [terms(text) for text in texts] == [tokenize(plain(text), "porter2") for text in texts]


def test_one_field_gives_the_scores_of_pisa(irds_home, tmp_path):
    """All 93 queries of vaswani, top 100; PISA sums in float32."""
    vaswani = JudgedDataset("vaswani")
    index = FieldedIndex(vaswani, tmp_path / "fielded", ["text"])
    ours = FieldedBm25(index, k1=1.2, b=0.75, num_results=100)(vaswani.topics)
    pisa = Bm25(vaswani, tmp_path / "pisa", k1=1.2, b=0.75, num_results=200, quiet=True)(
        vaswani.topics
    )
    both = ours.merge(pisa, on=["qid", "docno"], how="left", suffixes=("", "_pisa"))
    assert both["score_pisa"].notna().all() and len(both) == 93 * 100
    np.testing.assert_allclose(both["score"], both["score_pisa"], rtol=2e-6)

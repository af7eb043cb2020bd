"""Weights that are chosen by judged queries."""

import ir_measures
import numpy as np
import pandas as pd
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex, tune
from harp_plugin.ranking.fielded.tuning import GRIDS

FRUITS = ["apple", "pear", "plum", "quince", "cherry", "fig"]
NOISE = [f"{fruit} {fruit} " * 3 for fruit in FRUITS]


@pytest.fixture
def pages(make_pages):
    """The title is right; the long text speaks of the next fruit."""
    documents = [
        (f"d{n}", fruit, f"{NOISE[(n + 1) % len(FRUITS)]} and {fruit} {fruit}", "")
        for n, fruit in enumerate(FRUITS)
    ]
    queries = {f"q{n}": fruit for n, fruit in enumerate(FRUITS)} | {"unjudged": "apple"}
    return make_pages(documents, queries, [(f"q{n}", f"d{n}", 1) for n in range(len(FRUITS))])


@pytest.fixture
def index(pages, tmp_path):
    return FieldedIndex(pages, tmp_path / "index")


def test_the_field_that_is_right_gets_the_weight(index, pages):
    tuned = tune(index, pages.topics, pages.qrels, "RR@10")
    before = tuned.tried["RR@10"].iloc[0]
    assert before < tuned.value == 1
    assert tuned.value == tuned.tried["RR@10"].max()
    weights = tuned.arguments["weights"]
    assert weights["title"] > weights["text"]


@pytest.mark.parametrize("measure", ["RR@2", "nDCG@10", "AP"])
def test_every_value_is_that_of_the_transformer(index, pages, measure):
    tuned = tune(index, pages.topics, pages.qrels, measure)
    parsed = ir_measures.parse_measure(measure)
    qrels = pages.qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for row in tuned.tried.to_dict("records")[::7]:
        of = {name: {f: row[f"{name}.{f}"] for f in index.fields} for name in ("weights", "b")}
        run = FieldedBm25(index, of["weights"], k1=row["k1"], b=of["b"])(pages.topics)
        scored = pd.DataFrame(
            {"query_id": run["qid"], "doc_id": run["docno"], "score": -run["rank"].astype(float)}
        )
        found = ir_measures.calc_aggregate([parsed], qrels, scored)[parsed]
        assert row[str(parsed)] == pytest.approx(found, abs=1e-6)


def test_it_gives_the_same_every_time_and_tries_nothing_twice(index, pages):
    one, two = (tune(index, pages.topics, pages.qrels) for _ in range(2))
    assert one.settings == two.settings
    pd.testing.assert_frame_equal(one.tried, two.tried)
    assert not one.tried.drop(columns="RR@10").duplicated().any()


def test_where_nothing_helps_the_start_stays(make_pages, tmp_path):
    pages = make_pages([("d", "apple", "", "")], {"q": "apple"}, [("q", "d", 1)])
    tuned = tune(FieldedIndex(pages, tmp_path), pages.topics, pages.qrels)
    assert tuned.settings.weights == (1, 1, 1, 1) and tuned.settings.k1 == 0.9
    assert set(tuned.settings.b) == {0.4}
    assert tuned.value == 1


def test_one_field_keeps_its_weight(pages, tmp_path):
    tuned = tune(FieldedIndex(pages, tmp_path, ["text"]), pages.topics, pages.qrels)
    assert set(tuned.tried["weights.text"]) == {1}
    assert len(tuned.tried) >= len(GRIDS["k1"]) + len(GRIDS["b"]) - 1


def test_a_query_without_results_counts_as_nought(make_pages, tmp_path):
    queries = {"q": "apple", "r": "unknown"}
    pages = make_pages([("d", "apple", "", "")], queries, [("q", "d", 1), ("r", "d", 1)])
    assert tune(FieldedIndex(pages, tmp_path), pages.topics, pages.qrels).value == 0.5


@pytest.mark.parametrize(
    ("queries", "measure", "message"),
    [
        ({"other": "apple"}, "AP", "none of the 1 queries to tune on has a judgment"),
        ({"q0": "none of it"}, "AP", "no document has a word of the queries to tune on"),
        ({"q0": "apple"}, "nDCX", "unknown measure 'nDCX'"),
    ],
)
def test_what_cannot_be_tuned_on(index, pages, queries, measure, message):
    topics = pd.DataFrame(queries.items(), columns=["qid", "query"])
    with pytest.raises(HarpError, match=message):
        tune(index, topics, pages.qrels, measure)


def test_a_table_of_what_was_tried(index, pages):
    tried = tune(index, pages.topics, pages.qrels, "AP").tried
    fields = ["title", "text", "anchor_text", "headings"]
    expected = [*(f"weights.{f}" for f in fields), "k1", *(f"b.{f}" for f in fields), "AP"]
    assert set(tried.columns) == set(expected)
    assert np.isfinite(tried.to_numpy(dtype=float)).all()

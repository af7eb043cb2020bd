"""`FieldedBm25` as a PyTerrier transformer."""

import pandas as pd
import pyterrier as pt
import pytest

from harp_plugin.errors import HarpError
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

PAGES = [(f"d{n}", "apple" if n % 2 else "pear", "fruit " * n, "") for n in range(1, 8)]
TOPICS = pd.DataFrame(
    {"qid": ["2", "1", "3"], "query": ["fruit", "apples", "none"], "note": ["x", "y", "z"]}
)


@pytest.fixture
def index(make_pages, tmp_path):
    return FieldedIndex(make_pages(PAGES), tmp_path / "index")


class TestPyTerrierContract(
    pt.testing.transformer_test_class(
        lambda: FieldedBm25(FieldedIndex("harp-encyclopedia", "no/such/folder"))
    )
):
    """Inspection and schematics, without an index."""


def test_inspection_names_inputs_and_outputs(index):
    bm25 = FieldedBm25(index)
    assert pt.inspect.transformer_inputs(bm25) == [["qid", "query"]]
    outputs = pt.inspect.transformer_outputs(bm25, ["qid", "query", "note"])
    assert outputs == ["qid", "query", "note", "docno", "score", "rank"]


def test_results_are_a_ranked_frame(index):
    found = FieldedBm25(index)(TOPICS.set_axis([5, 5, 0]))
    assert list(found["qid"]) == ["2"] * 7 + ["1"] * 4
    for _, rows in found.groupby("qid"):
        assert list(rows["rank"]) == list(range(len(rows)))
        assert rows["score"].is_monotonic_decreasing
    assert set(zip(found["qid"], found["note"], strict=True)) == {("2", "x"), ("1", "y")}
    assert list(found.index) == list(range(11))


def test_an_empty_frame_stays_empty(index):
    found = FieldedBm25(index)(TOPICS.head(0))
    assert list(found.columns) == ["qid", "query", "note", "docno", "score", "rank"]
    assert len(found) == 0 and str(found["score"].dtype) == "float64"


def test_a_missing_column_is_told_by_pyterrier(index):
    with pytest.raises(pt.validate.InputValidationError, match=r"missing_columns=\['query'\]"):
        FieldedBm25(index)(TOPICS[["qid"]])


@pytest.mark.parametrize("query", [None, float("nan"), 3, ["apple"]])
def test_a_query_that_is_no_text_names_its_row(index, query):
    with pytest.raises(HarpError, match="column 'query' of qid 7: it holds"):
        FieldedBm25(index)(pd.DataFrame({"qid": ["7"], "query": [query]}, dtype=object))


def test_a_qid_that_is_there_twice_is_named(index):
    with pytest.raises(HarpError, match="row 2 has the qid '2' of a row before it: give each"):
        FieldedBm25(index)(TOPICS.assign(qid=["2", "1", "2"]))


def test_equal_settings_make_equal_transformers(index):
    one = FieldedBm25(index, dict.fromkeys(index.fields, 1), b=0.4)
    assert one == FieldedBm25(index) and hash(one) == hash(FieldedBm25(index))
    assert one != FieldedBm25(index, {"title": 1}) and one != FieldedBm25(index, k1=1)
    assert eval(repr(one), {"FieldedBm25": FieldedBm25, "FieldedIndex": FieldedIndex}) == one


def test_a_cutoff_is_made_part_of_the_search(index):
    pipeline = (FieldedBm25(index) % 2).compile()
    assert pipeline == FieldedBm25(index, num_results=2)
    pd.testing.assert_frame_equal(pipeline(TOPICS), (FieldedBm25(index) % 2)(TOPICS))

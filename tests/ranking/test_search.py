"""The search in an index: ties, queries of any kind, and how rankings are ordered."""

import numpy as np
import pytest
from brute_bm25 import BruteBm25

from harp_plugin.errors import HarpError
from harp_plugin.negatives.bm25 import best_pages
from harp_plugin.negatives.mining import rank
from harp_plugin.negatives.options import NegativeOptions
from harp_plugin.negatives.queries import needed_queries
from harp_plugin.ranking.bm25 import Bm25

TEXTS = {
    3: "apple tree and pear tree",
    5: "apple apple apple",
    7: "the pear of café owners",
    **{100 + number: "a moth of the family of moths" for number in range(40)},
    **{200 + number: "a beetle" for number in range(20)},
    900: "moth moth moth moth",
}


class Texts:
    """Documents by id, as a collection that PISA indexes."""

    name = "texts"
    documents_identity = {"texts": 1}  # noqa: RUF012

    def __init__(self, texts):
        self.texts = texts
        self.document_count = len(texts)

    def documents(self):
        return ((str(id), text) for id, text in sorted(self.texts.items()))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Bm25(Texts(TEXTS), tmp_path_factory.mktemp("i"), algorithm="maxscore")


def search(index, *queries, depth=3):
    return [found.pages.tolist() for found in best_pages(index, queries, depth)]


def test_each_query_has_its_own_results(index):
    assert search(index, "pear", "", "beetle apples", "no such words", "Café", depth=2) == [
        [3, 7],
        [],
        [5, 3],
        [],
        [7],
    ]


def test_ties_at_the_last_place_are_broken_by_id(index):
    """Forty pages share the second place: PISA itself would give any of them."""
    assert search(index, "moth") == [[900, 100, 101]]
    assert search(index, "moth", depth=12) == [[900, *range(100, 111)]]
    assert search(index, "beetle", depth=19) == [[*range(200, 219)]]
    assert search(index, "beetle", depth=20) == [[*range(200, 220)]]
    assert search(index, "beetle", depth=50) == [[*range(200, 220)]]


def test_a_query_does_not_depend_on_the_others(index):
    alone = [search(index, query, depth=12)[0] for query in ("moth", "pear", "beetle")]
    assert search(index, "moth", "pear", "beetle", depth=12) == alone


def test_scores_are_those_of_the_formula(index):
    brute = BruteBm25(TEXTS)
    queries = ["apple pear tree tree", "moth of the family", "Beetles"]
    for query, found in zip(queries, best_pages(index, queries, 100), strict=True):
        expected = brute.scores(query)
        assert set(found.pages.tolist()) == set(expected)
        for page, score in zip(found.pages.tolist(), found.scores.tolist(), strict=True):
            assert score == pytest.approx(expected[page], rel=1e-4)


def test_an_index_is_removed_with_all_that_it_wrote(tmp_path):
    index = Bm25(Texts(TEXTS), tmp_path)
    assert search(index, "pear") == [[3, 7]]
    index.artifact.clear()
    assert not index.artifact.path.exists()
    index.artifact.clear()


def test_rank():
    found = rank(np.array([4, 2, 9, 7]), np.array([1.0, 1.0, 3.0, 0.5]), 3)
    assert found.pages.tolist() == [9, 2, 4] and found.scores.tolist() == [3.0, 1.0, 1.0]
    assert found.pages.dtype == np.int64 and found.scores.dtype == np.float32


def test_tasks_that_draw_no_other_page_need_no_queries():
    with pytest.raises(HarpError, match="no task of prop, srr draws other pages"):
        needed_queries(["prop", "srr"])


@pytest.mark.parametrize("depth", [0, -1, 1001])
def test_a_depth_that_makes_no_sense(depth):
    with pytest.raises(HarpError, match="--negatives-depth is"):
        NegativeOptions(negatives_depth=depth)

"""The task `anchor`: which anchors are examples, and which pages stand beside the linked one."""

from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chi_square import agrees
from orchard_wiki import draws

from harp_plugin.errors import HarpError
from harp_plugin.tasks import DrawOptions, PreTrainingData, QueryOrigin
from harp_plugin.tasks.anchor import AnchorText
from harp_plugin.tasks.registry import check_negatives, needed_stages
from harp_plugin.tasks.source import BuildSource

BARRED = {"APPLE", "TREE", "FRUIT", "RECORDS", "CIDER"}
"""Of sentence 0's `Apple`: pages of its text, and those that its sentence links to."""


@pytest.fixture(scope="module")
def anchor_source(hand_build):
    return BuildSource(hand_build.directory, ["anchor"])


@pytest.fixture
def draw(anchor_source, hand_build):
    names = {page: name for name, page in hand_build.pages.items()}

    def draw(number=0, place=0, count=900, source=anchor_source, **options):
        example = hand_build.anchors[number, place]
        groups = draws(source, "anchor", example, count, **options)
        return [g and (g, [names[pair.document_origin.page] for pair in g.members]) for g in groups]

    return draw


def anchor_table(*anchors):
    """Anchors (id, text, page); the id of a text is its length."""
    rows = [
        {"id": id, "normalized": text, "text_id": len(text), "page": page}
        for id, text, page in anchors
    ]
    return pa.Table.from_pylist(rows)


class TestExamples:
    def test_one_for_each_text_and_page_and_functional_texts_behind_the_others(self, tmp_path):
        anchors = anchor_table(
            (7, "fig", 1),
            (3, "fig", 1),  # the lowest id stands for both
            (5, "fig", 2),  # another page
            (4, "apple", 1),
            (1, "here", 1),  # functional, in English and in German
            (2, "diese seite", 2),
            (9, "a", 1),
        )
        pq.write_table(anchors, tmp_path / "anchors.parquet")
        connection = ibis.duckdb.connect(threads=1)
        tables = {"anchors": connection.read_parquet(tmp_path / "anchors.parquet")}
        table = AnchorText.examples(tables).to_pyarrow().to_pylist()
        found = {row["id"]: (row["functional"], row["rank"]) for row in table}
        named = {3: (False, 0), 4: (False, 1), 9: (False, 2), 5: (False, 0)}
        assert found == named | {1: (True, 3), 2: (True, 1)} and len(table) == 6

    def test_of_the_hand_build(self, anchor_source, hand_build):
        """Twelve spots, and the first of each text and page; of TREE and CIDER several texts."""
        table = anchor_source.examples["anchor"]
        several = {(0, 1): 0, (5, 0): 1, (6, 0): 2, (1, 2): 0, (4, 0): 1, (0, 2): 0, (5, 1): 1}
        single = [(0, 0), (1, 0), (6, 1), (7, 0), *((8 + n, 0) for n in range(12))]
        expected = several | dict.fromkeys(single, 0)
        ranks = {hand_build.anchors[place]: rank for place, rank in expected.items()}
        assert {id: table.get(id, "rank") for id in table.ids.tolist()} == ranks

    @pytest.mark.parametrize(("most", "groups"), [(5, 23), (3, 23), (2, 22), (1, 19)])
    def test_at_most_so_many_of_a_page(self, hand_build, most, groups):
        """Of every round, each example that is left is drawn from once."""
        options = DrawOptions(anchors_per_page=most)
        data = PreTrainingData(hand_build.directory, {"anchor": 1}, draw=options)
        assert len(data) == data.groups["anchor"] == data.examples["anchor"] == groups
        drawn = [data.drawn(0, index) for index in range(len(data))]
        assert len({each.example for each in drawn}) == groups
        assert not any(each.skipped for each in drawn)
        pages = Counter(each.group.positive.document_origin.page for each in drawn)
        assert max(pages.values()) == min(most, 3)

    @pytest.mark.parametrize("fraction", [1, 0.99])
    def test_functional_texts_are_left_out_unless_they_are_kept(self, fraction):
        """The texts of this table look alike as queries."""
        rows = [(1, True, 2), (3, False, 0), (4, False, 1), (2, True, 1), (5, False, 0)]
        ids, functional, ranks = map(np.array, zip(*sorted(rows), strict=True))
        columns = {"functional": pa.array(functional), "rank": pa.array(ranks)}
        table = SimpleNamespace(
            ids=ids,
            columns=lambda asked, *names: [
                columns[name].take(pa.array(np.searchsorted(ids, asked))) for name in names
            ],
        )
        pages = {1: 1, 3: 1, 4: 1, 2: 2, 5: 2}
        source = SimpleNamespace(
            texts_and_pages=lambda asked: (asked, np.array([pages[id] for id in asked.tolist()])),
            query_likeness=lambda texts: np.zeros(len(texts)),
        )

        def selected(**options):
            options = DrawOptions(query_like_share=fraction, **options)
            return AnchorText.select(table, options, source).tolist()

        assert selected() == [3, 4, 5]
        assert selected(functional_anchors="keep") == [1, 2, 3, 4, 5]
        assert selected(functional_anchors="keep", anchors_per_page=1) == (
            [1, 2] if fraction < 1 else [3, 5]
        )

    def test_less_than_one(self):
        with pytest.raises(HarpError, match="--anchors-per-page is 0: it must be at least 1"):
            DrawOptions(anchors_per_page=0)


class TestQuery:
    def test_the_text_alone(self, draw, hand_build):
        for group, pages in draw(count=20):
            assert {pair.query.lower() for pair in group.members} == {"apple"} and pages[
                0
            ] == "APPLE"
            anchor = hand_build.anchors[0, 0]
            origins = {pair.query_origin for pair in group.members}
            assert origins == {QueryOrigin(99, hand_build.sentence(0), anchor)}
            assert group.positive.document == hand_build.lead("APPLE")

    def test_with_context(self, draw):
        found = draw(count=50, anchor_query="context")
        for group, _ in found:
            assert group.positive.query.lower().split()[0] == "apple"
            assert len(group.positive.query.split()) > 1
            assert {pair.query for pair in group.members} == {group.positive.query}
        assert len({group.positive.query for group, _ in found}) > 10

    def test_context_of_an_anchor_without_weights(self, cut_build):
        source = BuildSource(cut_build.directory, ["anchor"])
        example = cut_build.anchors[0, 2]
        assert draws(source, "anchor", example, 3, anchor_query="context") == [None] * 3
        assert all(draws(source, "anchor", example, 3))

    def test_context_needs_weights(self):
        assert "weights" not in needed_stages(["anchor"], DrawOptions())
        assert "weights" in needed_stages(["anchor"], DrawOptions(anchor_query="context"))
        assert "weights" not in needed_stages(["wlp"], DrawOptions(anchor_query="context"))


class TestNegatives:
    def test_other_documents(self, draw, hand_build):
        others = sorted(set(hand_build.pages) - BARRED)
        assert {len(set(pages)) for _, pages in draw(count=20)} == {5}
        found = draw(negatives_per_group=2)
        twos = dict.fromkeys(map(frozenset, combinations(others, 2)), 1 / 105)
        assert agrees(Counter(frozenset(pages[1:]) for _, pages in found), twos)
        first = Counter(pages[1] for _, pages in found)
        assert agrees(first, dict.fromkeys(others, 1 / 15))

    @pytest.mark.parametrize(("asked", "given"), [(1, 1), (15, 15), (40, 15)])
    def test_no_more_than_there_are(self, draw, asked, given):
        for _, pages in draw(count=10, negatives_per_group=asked):
            assert len(pages) == len(set(pages)) == 1 + given and not BARRED.intersection(pages[1:])

    def test_by_in_links(self, draw):
        """IRON has two, GOLD and each spot one, SALT none."""
        found = draw(negatives="in_links", negatives_per_group=1)
        chances = {f"SPOT{n}": 1 / 15 for n in range(12)} | {"GOLD": 1 / 15, "IRON": 2 / 15}
        assert agrees(Counter(pages[1] for _, pages in found), chances)

    def test_of_a_search(self, draw, searched_build):
        """Of the seven that it found, TREE is linked beside it, and to three the text leads."""
        source = BuildSource(searched_build.directory, ["anchor"])
        found = draw(source=source, negatives="bm25", negatives_per_group=2)
        chances = dict.fromkeys(map(frozenset, combinations(["SALT", "IRON", "GOLD"], 2)), 1 / 3)
        assert agrees(Counter(frozenset(pages[1:]) for _, pages in found), chances)
        assert draw(number=8, count=3, source=source, negatives="bm25") == [None] * 3

    def test_a_mixture_without_other_pages(self):
        draw = DrawOptions(negatives="bm25")
        message = "--negatives bm25: no task of rqp draws other pages: leave the option out"
        with pytest.raises(HarpError, match=message):
            check_negatives(["rqp"], draw)
        check_negatives(["rqp", "anchor"], draw)
        check_negatives(["rqp"], DrawOptions())

    def test_a_build_without_a_search(self, hand_build):
        with pytest.raises(HarpError, match="run `harp build` with --negatives bm25"):
            PreTrainingData(hand_build.directory, {"anchor": 1}, draw=DrawOptions(negatives="bm25"))

"""The presets against the words of the specification's own table, where the shared folder is."""

import re
from pathlib import Path

import pytest

from harp_plugin.tasks import PRESETS
from harp_plugin.weights.options import WeightOptions

TITLE = "## HARP: pair generation"
COLUMNS = ("paper", "default")
"""The column ``released`` is knowledge about the code of the authors, and no preset."""
ANY = ""
"""A cell that says nothing of the option."""
POINTS = {
    # Point: option, and its value by the first of these words that the cell has.
    "unit of sampling": [("unit", {"wordpiece string": "wordpiece", "word": "word"})],
    "row of the anchor, eq. 1": [
        (
            "anchor_row",
            {"own character span": "span", "first wordpiece": "first_piece", "h_a": "span"},
        ),
    ],
    "eq. 3": [
        ("normalization", {"`linear`: ": "linear", "softmax of": "softmax"}),
        ("temperature", {"summed mean": "1", "summed *sums*": "1/heads"}),
    ],
    "replacement": [("replacement", {"without:": False, "with": True})],
    "anchor words in S1": [
        (
            "anchor_words_in_query",
            {"not drawn again": "removed", "unsaid": "kept", "kept": "kept"},
        ),
        ("min_drawn_words", {"`min_drawn_words`": 1}),
    ],
    "case": [
        (
            "query_case",
            {"all lower-cased": "lower", "unsaid": "lower_words", "lower-cased": "lower_words"},
        ),
    ],
    "stop words": [("stop_words", {"extended by our own short list": "english"})],
    "S2, the RQP negative": [
        (
            "rqp_negative_words",
            {"`anchors_on_page`:": "anchors_on_page", "words of the page": "page", "same": "page"},
        ),
        (
            "negative_query_length",
            {
                "same number of drawn words": "equal",
                ANY: "drawn",
            },
        ),
    ],
    "anchor words in S2 of the page, eq. 5": [
        (
            "anchor_words_in_negative",
            {"removed": "removed", "weight 0": "zero_weight"},
        ),
    ],
    "QDM negative": [
        (
            "qdm_negatives",
            {
                "pair of pages is drawn first": "pair_first",
                "another page of the same anchor": "drawn",
            },
        ),
    ],
    "RDP": [
        ("rdp_agreement", {"`rdp_agreement`": True, ANY: False}),
    ],
    "ACM": [
        (
            "acm_negative_page",
            {
                "elsewhere in the same article": "same_article",
                "page from the corpus": "any",
            },
        ),
    ],
    "mixing": [("mixing", {"concatenated": "proportional", "uniform": "uniform"})],
    "freshness": [("redraw_each_epoch", {"drawn anew each epoch": True, "fixed": False})],
}
ELSEWHERE = {
    # Points that no option of a preset settles.
    *("layer, heads", "eq. 2, repeats", "eq. 4, query length l", "S1", "eq. 10", "documents"),
}


@pytest.fixture(scope="module")
def table(shared_data) -> dict[str, dict[str, str]]:
    """Point → preset → cell."""
    path = Path(shared_data).parent / "SPEC.md"
    if not path.is_file():
        pytest.skip(f"no specification at {path}")
    section = path.read_text("utf-8").partition(TITLE)[2].partition("\n## ")[0]
    rows = [line.strip("| \n") for line in section.splitlines() if line.startswith("|")]
    (_, *header), _, *body = [re.split(r"\s+\|\s+", row) for row in rows]
    presets = [cell.strip("`") for cell in header]
    assert set(presets) == {*COLUMNS, "released"}
    return {point: dict(zip(presets, cells, strict=True)) for point, *cells in body}


def test_every_point_of_the_specification_is_an_option_or_settled_elsewhere(table):
    assert table.keys() == POINTS.keys() | ELSEWHERE


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("preset", COLUMNS)
def test_presets_are_what_the_specification_says(table, point, preset):
    cell, weights = table[point][preset], WeightOptions()
    for option, values in POINTS[point]:
        said = [value for words, value in values.items() if words in cell]
        if not said:
            assert is_left_open(option, preset), f"{option}: {cell}"
        else:
            values = PRESETS[preset] | {"unit": weights.unit, "anchor_row": weights.anchor_row}
            assert values[option] == said[0], f"{option}: {cell}"


def is_left_open(option, preset):
    """Whether the preset may have any value: the other columns do not speak of it."""
    return (option, preset) in {
        ("temperature", "default"),  # of a softmax, which the default does not have
        ("min_drawn_words", "paper"),
        ("stop_words", "paper"),  # a list that is not carried
    }

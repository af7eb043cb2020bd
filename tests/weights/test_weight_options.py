"""The presets of weighing, and what a build leaves behind in its process."""

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.weights.options import WeightOptions
from harp_plugin.weights.workers import one_thread


@pytest.mark.parametrize(
    ("preset", "unit", "anchor_row"),
    [
        ("default", "word", "span"),
        ("paper", "word", "span"),
    ],
)
def test_presets(preset, unit, anchor_row):
    options = WeightOptions(preset=preset)
    assert (options.unit, options.anchor_row) == (unit, anchor_row)


def test_what_is_given_wins():
    assert WeightOptions(preset="paper", unit="wordpiece").unit == "wordpiece"


def test_unknown_preset():
    with pytest.raises(HarpError, match="default, paper"):
        WeightOptions(preset="papre")


def test_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)

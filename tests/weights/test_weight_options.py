"""The options of weighing, and what a build leaves behind in its process."""

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.models.devices import one_thread
from harp_plugin.weights.options import WeightOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "--dtype is 'float64'"),
        ({"unit": "words"}, "--unit is 'words': it must be one of word, wordpiece"),
        ({"anchor_row": "first"}, "--anchor-row is 'first'"),
        ({"batch_tokens": 0}, "--batch-tokens is 0: it must be at least 1"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(HarpError, match=message):
        WeightOptions(**options)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)

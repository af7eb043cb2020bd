"""The options of weighing, and what a build leaves behind in its process."""

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.models.devices import one_thread
from harp_plugin.weights.options import WeightOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"weighting": "bm25"},
            "--weighting is 'bm25': it must be one of attention, language-model",
        ),
        ({"dtype": "float64"}, "--dtype is 'float64'"),
        ({"unit": "words"}, "--unit is 'words': it must be one of word, wordpiece"),
        ({"anchor_row": "first"}, "--anchor-row is 'first'"),
        ({"weighting": "language-model", "background": "words"}, "--background is 'words'"),
        ({"batch_tokens": 0}, "--batch-tokens is 0: it must be at least 1"),
        ({"weighting": "language-model", "dirichlet_mu": -1.0}, "--dirichlet-mu is -1"),
        ({"weighting": "language-model", "dirichlet_mu": float("nan")}, "--dirichlet-mu is nan"),
        ({"weighting": "contrastive", "saturation": 0.0}, "--saturation is 0"),
        *(
            (
                {"weighting": "language-model", name: value},
                f"{flag} belongs to --weighting attention",
            )
            for name, flag, value in (
                ("unit", "--unit", "wordpiece"),
                ("dtype", "--dtype", "bfloat16"),
                ("anchor_row", "--anchor-row", "first_piece"),
                ("batch_tokens", "--batch-tokens", 512),
            )
        ),
        ({"dirichlet_mu": 3.0}, "--dirichlet-mu belongs to --weighting language-model, not to a"),
        ({"background": "documents"}, "--background belongs to --weighting language-model"),
        (
            {"weighting": "language-model", "saturation": 0.1},
            "--saturation belongs to --weighting contrastive",
        ),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(HarpError, match=message):
        WeightOptions(**options)


def test_options_that_change_the_result():
    assert WeightOptions(weighting="language-model").recorded() == {
        "weighting": "language-model",
        "dirichlet_mu": None,
        "background": "occurrences",
    }
    contrastive = WeightOptions(weighting="contrastive").recorded()
    assert (contrastive["unit"], contrastive["random_distribution"]) == ("word", "mean")
    assert contrastive["saturation"] == 0.01 and "background" not in contrastive
    assert "saturation" not in WeightOptions().recorded()


def test_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)

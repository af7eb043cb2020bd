"""The table of scoring options: defaults, checks, and what reads it."""

import inspect
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.evaluation.reranking.options import RerankOptions
from harp_plugin.ranking import HarpEnsemble
from harp_plugin.ranking.options import SCORING_OPTIONS, check_scoring_options
from harp_plugin.ranking.windows import DocumentWindows


@pytest.mark.parametrize("name", SCORING_OPTIONS)
def test_every_option_has_help_and_a_default_that_is_allowed(name):
    option = SCORING_OPTIONS[name]
    assert option.help.endswith(".")
    check_scoring_options({name: option.default}, from_json=True)


@pytest.mark.parametrize("commands", [EvaluationOptions, CrossValidationOptions, RerankOptions])
def test_commands_have_the_defaults_of_the_table(commands):
    offered = {option.name: option for option in fields(commands)}
    for name in offered.keys() & SCORING_OPTIONS.keys():
        assert offered[name].default == SCORING_OPTIONS[name].default
        assert offered[name].metadata["help"]


@pytest.mark.parametrize("reranker", [HarpReranker, Scorer])
def test_python_has_the_defaults_of_the_table(reranker):
    parameters = inspect.signature(reranker).parameters
    for name in parameters.keys() & SCORING_OPTIONS.keys():
        assert parameters[name].default == SCORING_OPTIONS[name].default


def test_every_choice_is_implemented():
    for passages in SCORING_OPTIONS["passages"].choices:
        windows = DocumentWindows(passages)
        assert windows.aggregate(np.array([1.0, 3.0, 2.0]), np.array([0])).shape == (1,)
    for normalization in SCORING_OPTIONS["score_normalization"].choices:
        HarpEnsemble([HarpReranker("m")], score_normalization=normalization)
    for dtype in SCORING_OPTIONS["dtype"].choices:
        Scorer("m", dtype=dtype)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dtype": "int3"}, "row: unknown dtype 'int3': choose one of float32, bfloat16"),
        ({"seed": -1}, "row: seed is -1: it must be at least 0"),
        ({"seed": True}, "row: seed is True: it must be a whole number"),
        ({"weights": [1, "2"]}, r"row: weights is \[1, '2'\]: it must be a list of numbers"),
        ({"weights": [1, -1]}, "row: weights is -1: it must be at least 0"),
        ({"allow_untrained": 1}, "row: allow_untrained is 1: it must be true or false"),
    ],
)
def test_a_value_without_sense_is_named(values, message):
    with pytest.raises(HarpError, match=message):
        check_scoring_options(values, "row: ", from_json=True)


def test_null_is_the_default_in_json_alone():
    check_scoring_options({"dtype": None}, from_json=True)
    check_scoring_options({"max_length": None})
    with pytest.raises(HarpError, match="unknown dtype None"):
        check_scoring_options({"dtype": None})


def test_the_table_is_light():
    code = "import sys, harp_plugin.ranking.options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

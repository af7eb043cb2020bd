"""The options of scoring: defaults in Python and in commands, and what takes each choice."""

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest

from harp_plugin import HarpReranker, Scorer
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.evaluation.options import RerankOptions
from harp_plugin.ranking import HarpEnsemble
from harp_plugin.ranking.options import (
    Dtype,
    ModelOptions,
    Passages,
    ScoreNormalization,
    chosen_dtype,
)
from harp_plugin.ranking.windows import DocumentWindows

DECLARED = {option.name: option.default for option in fields(ModelOptions)}


@pytest.mark.parametrize("commands", [EvaluationOptions, CrossValidationOptions, RerankOptions])
def test_commands_have_the_declared_defaults(commands):
    offered = {option.name: option for option in fields(commands)}
    for name in offered.keys() & DECLARED.keys() - {"model"}:
        assert offered[name].default == DECLARED[name]


@pytest.mark.parametrize("reranker", [HarpReranker, Scorer])
def test_python_has_the_declared_defaults(reranker):
    parameters = inspect.signature(reranker).parameters
    for name in parameters.keys() & DECLARED.keys() - {"model"}:
        assert parameters[name].default == DECLARED[name]


def test_every_choice_is_implemented():
    for passages in get_args(Passages):
        windows = DocumentWindows(passages)
        assert windows.aggregate(np.array([1.0, 3.0, 2.0]), np.array([0])).shape == (1,)
    for normalization in get_args(ScoreNormalization):
        HarpEnsemble([HarpReranker("m")], score_normalization=normalization)
    for dtype in get_args(Dtype):
        Scorer("m", dtype=dtype)


def test_no_device_is_a_clear_error():
    options = RerankOptions(dataset="harp-encyclopedia", model="m", device=[])
    with pytest.raises(HarpError, match="device is empty"):
        Scorer("m", device=options.device)
    assert chosen_dtype("auto", options.device) in ("float32", "bfloat16")


def test_the_declaration_is_light():
    code = "import sys, harp_plugin.ranking.options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Options of an evaluation, from flags and from recipes."""

import json

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.options_parser import OptionsParser, options_from

RERANKERS = {"random": {"model": "m", "allow_untrained": True}, "HARP": "package:x"}


def parse(*flags: str) -> EvaluationOptions:
    return OptionsParser((EvaluationOptions,), "harp evaluate", "").read(flags)[0]


def test_flags_and_recipe_give_the_same():
    recipe = {
        "dataset": "irds:vaswani",
        "rerankers": RERANKERS,
        "measures": ["AP", "RR@10"],
        "fields": ["title"],
        "max_length": 128,
    }
    from_flags = parse(
        *("--dataset", "vaswani", "--rerankers", json.dumps(RERANKERS)),
        *("--measures", "AP", "RR@10", "--fields", "title", "--max_length", "128"),
    )
    (from_recipe,) = options_from(recipe, [EvaluationOptions], "recipe")
    assert from_flags == from_recipe
    assert from_flags.systems["HARP"] == {
        **{"model": "package:x", "max_length": 128, "dtype": "float32", "seed": 42},
        "passages": None,
    }
    assert from_flags.systems["random"]["allow_untrained"] is True


def test_a_list_of_models_is_an_ensemble():
    given = {"plain": ["a", "b"], "scaled": {"model": ["a", "b"], "score_normalization": "zscore"}}
    systems = EvaluationOptions(dataset="vaswani", rerankers=given, seed=3).systems
    assert systems["plain"]["model"] == ["a", "b"] and systems["plain"]["seed"] == 3
    assert systems["scaled"]["score_normalization"] == "zscore"


def test_passages_of_all_rows_and_of_one():
    given = {"plain": "a", "own": {"model": "b", "passages": "max", "passage_length": 64}}
    systems = EvaluationOptions(dataset="vaswani", rerankers=given, passages="matching").systems
    assert systems["plain"]["passages"] == "matching"
    assert (systems["own"]["passages"], systems["own"]["passage_length"]) == ("max", 64)


@pytest.mark.parametrize(
    ("given", "reference"),
    [
        ({}, "BM25"),
        ({"rerankers": {"a": "m"}}, "BM25"),
        ({"rerankers": {"a": "m", "b": "m"}}, "a"),
        ({"rerankers": {"a": "m", "b": "m"}, "baseline": "b"}, "b"),
        ({"rerankers": {"a": "m", "b": "m"}, "baseline": "first stage"}, "BM25"),
        ({"first_stage": "x.run", "rerankers": {"a": "m"}}, "first stage"),
    ],
)
def test_the_row_that_others_are_tested_against(given, reference):
    assert EvaluationOptions(dataset="vaswani", **given).reference == reference


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": 0}, "depth is 0"),
        ({"measures": []}, "measures is empty"),
        ({"baseline": "x"}, "unknown baseline 'x': rows are BM25"),
        ({"rerankers": "{"}, "rerankers is not JSON"),
        ({"rerankers": "[1]"}, r"--rerankers is '\[1\]': it must be an object"),
        ({"rerankers": {"a": 3}}, "reranker 'a' is 3: name its model"),
        ({"rerankers": {"a": []}}, r"reranker 'a' is \[\]: name its model"),
        ({"rerankers": {"a": ["m", None]}}, "reranker 'a': model is "),
        ({"rerankers": {"a": {"model": "m", "weights": [1]}}}, "is one model: weights"),
        ({"rerankers": {"a": {"model": "cosine:m", "seed": 1}}}, "which takes no seed"),
        (
            {"correction": "bonferroni"},
            "--correction is 'bonferroni'",
        ),
        ({"rerankers": {"a": {}}}, "reranker 'a' is {}: name its model"),
        ({"rerankers": {"a": {"model": "m", "depth": 3}}}, "unknown key 'depth': known are"),
        ({"rerankers": {"a b": "m", "A/b": "m"}}, "share a file name"),
        ({"rerankers": {"BM25": "m"}}, "share a file name"),
    ],
)
def test_an_option_without_sense_is_named(given, message):
    with pytest.raises(HarpError, match=message):
        EvaluationOptions(dataset="vaswani", **given)

"""Options of a cross-validation, from flags and from recipes."""

import json

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.options_parser import OptionsParser

SYSTEMS = {
    "HARP": {"model": "a", "finetuning": {"learning_rate": 2e-5}},
    "BERT": "b",
    "both": ["a", "b"],
}


def parse(*flags, recipe=None):
    return OptionsParser((CrossValidationOptions,), "harp cross-validate", "").read(flags, recipe)[
        0
    ]


def make(**changes):
    return CrossValidationOptions(**{"dataset": "vaswani", "systems": SYSTEMS, **changes})


def test_flags_and_recipe_give_the_same(tmp_path):
    recipe = {
        "dataset": "irds:vaswani",
        "systems": SYSTEMS,
        "train_queries": [0, 5, None],
        "finetuning": {"learning_rate": 1e-5, "max_steps": 3},
        "seeds": [1, 2],
    }
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))
    from_recipe = parse(recipe=str(path))
    from_flags = parse(
        *("--dataset", "vaswani", "--systems", json.dumps(SYSTEMS), "--seeds", "1", "2"),
        *("--train-queries", "0", "5", "all"),
        *("--finetuning", json.dumps(recipe["finetuning"])),
    )
    assert from_flags.query_counts == from_recipe.query_counts == [0, 5, None]
    for options in (from_flags, from_recipe):
        assert options.rows == ["BM25", "HARP", "BERT", "both"] and options.reference == "HARP"
        assert options.finetuning_of("HARP") == {"learning_rate": 2e-5, "max_steps": 3}
        assert options.finetuning_of("both") == recipe["finetuning"]
        assert options.models("both") == ["a", "b"] and options.models("BERT") == ["b"]


def test_the_grid_is_every_choice():
    options = make(grid={"learning_rate": [1e-5, 2e-5], "negatives_per_group": [3, 7]})
    assert options.candidates == [
        {"learning_rate": rate, "negatives_per_group": count}
        for rate in (1e-5, 2e-5)
        for count in (3, 7)
    ]
    assert make().candidates == [{}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"systems": {}}, "systems is empty"),
        ({"systems": None}, "--systems is None: it must be an object"),
        ({"systems": {"x": {}}}, "system 'x' is {}: name its model"),
        ({"systems": {"x": []}}, r"system 'x' is \[\]: name its model"),
        ({"systems": {"x": ["a", 1]}}, "system 'x': model is"),
        ({"systems": {"x": {"model": "a", "lr": 1}}}, "system 'x': unknown key 'lr': known are"),
        ({"systems": {"x": {"model": "a", "weights": [1]}}}, "need several"),
        (
            {"systems": {"x": {"model": "a", "finetuning": 3}}},
            "finetuning is 3: it must be",
        ),
        ({"systems": {"x": {"model": "a", "finetuning": {"seed": 3}}}}, "system 'x' names seed"),
        ({"systems": {"a b": "m", "A/b": "m"}}, "share a file name"),
        ({"finetuning": {"output_dir": "x"}}, "finetuning names output_dir"),
        ({"finetuning": {"model_name_or_path": "x"}}, "finetuning names model"),
        ({"finetuning": "{"}, "finetuning is not JSON"),
        ({"grid": {"learning_rate": 1e-5}}, "grid: learning_rate is 1e-05: list the values"),
        ({"grid": {"query_ids": ["x"]}}, "names query_ids"),
        ({"folds": 1}, "folds are fewer than 2"),
        ({"fold_files": ["one"]}, "folds are fewer than 2: name more, for training"),
        ({"fold_files": []}, "folds are fewer than 2"),
        ({"folds": 2, "grid": {"max_steps": [1]}}, "folds are fewer than 3: .*validation"),
        ({"train_queries": [5, "many"]}, "train_queries has 'many'"),
        ({"train_queries": [-1]}, "train_queries has -1"),
        ({"train_queries": [None, "all"]}, "name at least one, each once"),
        ({"train_queries": []}, "name at least one, each once"),
        ({"seeds": []}, r"seeds is \[\]"),
        ({"seeds": [1, 1]}, "each once"),
        ({"min_steps": -1}, "--min-steps is -1"),
        ({"baseline": "x"}, "unknown baseline 'x'"),
        (
            {"correction": "bonferroni"},
            "--correction is 'bonferroni'",
        ),
        ({"depth": 0}, "depth is 0"),
    ],
)
def test_an_option_without_sense_is_named(changes, message):
    with pytest.raises(HarpError, match=message) as raised:
        make(**changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("depth", "expected"), [(None, 100), (300.0, 300), (300, 300), (10, 30)])
def test_the_first_stage_is_as_deep_as_negatives_are_drawn(depth, expected):
    assert make(depth=30, finetuning={"depth": depth}).first_stage_depth == expected

"""Recipes and flags become options; the package's own recipes are sound."""

import json
from dataclasses import dataclass, field

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.options import OptionsParser, read_recipe, recipe_folder
from harp_plugin.tasks import HARP_TASKS
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)


@dataclass
class Options:
    number: int = field(metadata={"help": "A number."})
    words: list[str] = field(default_factory=list, metadata={"help": "Words."})
    colour: str = field(default="red", metadata={"help": "c", "choices": ["red", "blue"]})
    loud: bool = field(default=False, metadata={"help": "Noise."})


def read(tmp_path, recipe, *argv):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))
    return OptionsParser((Options,), "harp test", "").read(argv, str(path))[0]


def test_a_flag_wins_over_the_recipe_and_the_recipe_over_the_default(tmp_path):
    assert read(tmp_path, {"number": 1, "loud": True}) == Options(1, [], "red", True)
    assert read(tmp_path, {"number": 1, "colour": "blue"}, "--number", "2") == Options(
        2, [], "blue"
    )


def test_a_remark_is_allowed(tmp_path):
    assert read(tmp_path, {"about": "why", "number": 1}).number == 1


@pytest.mark.parametrize(
    "recipe",
    [
        {"number": "many"},
        {"number": 1.5},
        {"number": True},
        {"number": 1, "words": "one"},
        {"number": 1, "colour": "green"},
        {"number": 1, "louder": True},
        {},
        [1],
    ],
)
def test_wrong_recipes(tmp_path, recipe):
    with pytest.raises(HarpError):
        read(tmp_path, recipe)


def test_unknown_recipe_lists_those_there_are():
    with pytest.raises(HarpError, match="quickstart"):
        read_recipe("no-such-recipe")


def recipes(start):
    return sorted(path.stem for path in recipe_folder().glob(f"{start}*.json"))


@pytest.mark.parametrize("name", [*recipes("harp-"), *recipes("minilm-"), "quickstart"])
def test_training_recipes_parse(name, tmp_path):
    parser = OptionsParser(
        (HarpModelArguments, HarpDataArguments, HarpTrainingArguments), "harp train", ""
    )
    argv = ["--bf16", "false", "--output_dir", str(tmp_path)]
    _, data, training, _ = parser.read(argv, name)
    recipe = read_recipe(name)
    assert data.task_weights == recipe["tasks"]
    assert training.learning_rate == recipe["learning_rate"]


def test_ablations_lack_one_thing_each():
    whole = read_recipe("harp-bert-base-wikipedia")
    assert set(whole["tasks"]) == set(HARP_TASKS)
    for task in HARP_TASKS:
        without = read_recipe(f"harp-bert-base-wikipedia-without-{task}")
        assert set(without["tasks"]) == set(HARP_TASKS) - {task}
    assert read_recipe("harp-bert-base-wikipedia-without-mlm")["losses"] == {"hinge": 1}


@pytest.mark.parametrize("name", recipes("evaluate-"))
def test_evaluation_recipes_parse(name):
    options, _ = OptionsParser((EvaluationOptions,), "harp evaluate", "").read([], name)
    assert options.systems


def test_the_finetuning_recipe_says_what_it_needs():
    assert "harp finetune" in read_recipe("finetune-msmarco-document")["about"]

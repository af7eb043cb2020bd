"""The JSON schema of recipes, by the package jsonschema."""

import json

import jsonschema
import pytest
import transformers

from harp_plugin.cli import main
from harp_plugin.commands.schema import parsers, recipe_schema
from harp_plugin.options_parser import SCHEMA, recipe_folder, recipe_names

FROM_VERSION = "5.23.0"
"""The version of transformers whose options the schema in the package has."""


@pytest.fixture(scope="module")
def schema():
    return recipe_schema(parsers())


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def of_command(schema, command):
    """The schema of one command, as a validator."""
    branch = next(one for one in schema["anyOf"] if one["title"] == f"harp {command}")
    return jsonschema.Draft7Validator({**branch, "definitions": schema["definitions"]})


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_valid_for_its_command(schema, validator, name):
    path = recipe_folder() / f"{name}.json"
    recipe = json.loads(path.read_text(encoding="utf-8"))
    validator.validate(recipe)
    command = {"cross": "cross-validate", "evaluate": "evaluate", "finetune": "finetune"}
    of_command(schema, command.get(name.split("-")[0], "train")).validate(recipe)
    assert (path.parent / recipe["$schema"]).samefile(recipe_folder() / SCHEMA)


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("train", {"learning_rat": 1e-4}),
        ("train", {"learning_rate": "much"}),
        ("train", {"max_length": 1.5}),
        ("train", {"preset": "papers"}),
        ("train", {"tasks": "rqp", "document_fields": ["texts"]}),
        ("evaluate", {"depth": True}),
        ("evaluate", {"correction": "holms"}),
        ("build", {"tasks": ["rqp"], "functional_anchors": "no"}),
    ],
)
def test_wrong_values_are_invalid(schema, command, recipe):
    assert not of_command(schema, command).is_valid(recipe)


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("train", {"max_steps": 1e5, "bf16": "auto", "max_query_length": {"srr": 30}}),
        ("train", {"model_name_or_path": "bert-base-uncased", "tasks": {"rqp": 1}}),
        ("train", {"stop_words": None, "temperature": "1/heads"}),
        ("build", {"tasks": ["rqp"], "site_root": ["/cpp/="]}),
        ("evaluate", {"rerankers": {"a": "m"}, "measures": ["AP"], "max_length": None}),
    ],
)
def test_right_values_are_valid(schema, command, recipe):
    of_command(schema, command).validate(recipe)


def test_every_option_of_every_command_is_in_it(schema):
    for command, parser in parsers().items():
        branch = next(one for one in schema["anyOf"] if one["title"] == f"harp {command}")
        options = [option for option in parser.options if option.in_recipes]
        assert {option.name for option in options} <= branch["properties"].keys()
        assert len(parser.options) - len(options) == (command in ("evaluate", "cross-validate"))
        assert "allow_functions" not in branch["properties"]
        for option in options:
            place = branch["properties"][option.name]["$ref"].rpartition("/")[2]
            assert schema["definitions"][place], option.name


def test_the_command_prints_it(schema, capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema


@pytest.mark.skipif(
    transformers.__version__ != FROM_VERSION, reason=f"transformers is not {FROM_VERSION}"
)
def test_the_file_next_to_the_recipes_is_up_to_date(schema):
    written = json.loads((recipe_folder() / SCHEMA).read_text(encoding="utf-8"))
    assert written == schema, "run: harp schema > schema.json; mv schema.json recipes/" + SCHEMA

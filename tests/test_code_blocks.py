"""Every code block of the documentation: its commands, options, recipes and names exist.

Tutorials, docs/reranking.md, docs/fusion.md and docs/extending.md also run, in tests of their own.
The others name corpora, models and folders that a reader has and a test does not.
"""

import ast
import importlib
import json
import re
import shlex
from pathlib import Path

import jsonschema
import pytest

from harp_plugin.commands.schema import parsers, recipe_schema
from harp_plugin.options_parser import recipe_names

PARSERS = parsers()
RECIPE_SCHEMA = recipe_schema(PARSERS)
ROOT = Path(__file__).parents[1]
GENERATED = {"docs/measured.md", "docs/changes.md"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts)
FENCE = re.compile(r"^```([\w{}]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NO_CODE = {"{toctree}", "{image}", "", "bash", "text", "toml", "yaml"}
WITHOUT_OPTIONS = {"check", "schema"}
TAKES_A_RECIPE = {"train", "finetune", "evaluate", "cross-validate"}
OTHER_PROGRAMS = {
    ".",
    "accelerate",
    "aws",
    "cd",
    "cp",
    "git",
    "hf",
    "pip",
    "pytest",
    "python",
    "sbatch",
    "torchrun",
    "tox",
}


def blocks(*kinds):
    """The blocks of these languages, each with its page and place."""
    every = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        found = FENCE.findall(page.read_text(encoding="utf-8")) if name not in GENERATED else []
        for place, (kind, text) in enumerate(found):
            if kind in kinds:
                every.append(pytest.param(text, id=f"{name}-{place}"))
    return every


def commands(block):
    """The commands of a console block, without its output, comments and redirections."""
    joined = block.replace("\\\n", " ")
    for line in joined.splitlines():
        if line.startswith("$ "):
            for part in re.split(r"&&|\|", re.sub(r">\s*\S+", "", line[2:])):
                yield shlex.split(part, comments=True)


def known_flags(command):
    options = PARSERS[command].options
    names = {name for option in options for name in (option.name, *option.names)}
    return {f"--{name}" for name in names} | {f"--{name.replace('_', '-')}" for name in names}


def test_there_are_blocks_of_no_other_kind():
    kinds = {kind for page in PAGES for kind, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= {"console", "json", "python", *NO_CODE}
    assert len(blocks("console", "json", "python")) > 50


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_and_their_options_exist(block):
    for program, *arguments in commands(block):
        if program != "harp":
            assert program in OTHER_PROGRAMS, program
            scripts = [text for text in arguments if text.startswith("benchmarks/")]
            for script in scripts:
                text = (ROOT / script).read_text(encoding="utf-8")
                flags = [each for each in arguments if each.startswith("--")]
                assert [flag for flag in flags if f'"{flag}"' not in text] == []
            continue
        command, *rest = arguments
        if command in WITHOUT_OPTIONS:
            continue
        flags = {each.partition("=")[0] for each in rest if each.startswith("--")}
        assert flags <= known_flags(command) | {"--help", "--help-all"}, command
        if command in TAKES_A_RECIPE and rest and not rest[0].startswith("-"):
            assert rest[0].endswith((".json", ".yaml")) or rest[0] in recipe_names(), rest[0]


@pytest.mark.parametrize("block", blocks("json"))
def test_recipes_are_valid(block):
    try:
        found = json.loads(block)
    except json.JSONDecodeError:
        found = json.loads(f"{{{block}}}")  # a part of a recipe
    if "query" not in found:  # Tevatron's JSON lines
        jsonschema.Draft7Validator(RECIPE_SCHEMA).validate(found)


@pytest.mark.parametrize("block", blocks("python"))
def test_imports_exist(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and not node.module.startswith("my_package"):
            module = importlib.import_module(node.module)
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []

"""Options are declared once: values are checked in Python, as flags and in recipes."""

import inspect
import json
import math
import re
from dataclasses import dataclass, fields
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
from transformers import HfArgumentParser

from harp_plugin.commands import COMMANDS, load
from harp_plugin.errors import HarpError
from harp_plugin.options import (
    Count,
    Fraction,
    Interval,
    Number,
    Options,
    Overwriting,
    Ranks,
    Seed,
    option,
)
from harp_plugin.options_parser import OptionsParser, option_help


@dataclass
class OfALibrary:
    learning_rate: float = 0.1
    epochs: int = 3


@dataclass(kw_only=True)
class Example(Overwriting, Options, OfALibrary):
    """Options with each kind of value.

    Attributes:
        output_dir: A folder.
        model: A model, the largest of
            which knows 90% of the words.
    """

    narrowed: ClassVar = {"learning_rate": Annotated[float, Interval(ge=0, lt=1)]}

    output_dir: str
    model: str = option("tiny", aliases=["model_name_or_path"])
    max_length: Count = 8
    min_words: Number | None = None
    seeds: list[Seed] = option([1])
    fraction: Fraction = 0.5
    unit: Literal["word", "page"] | None = None
    kinds: list[Literal["a", "b"]] = option(["a"])
    tasks: list[str] = option([], choices=["rqp", "qdm"])
    losses: dict[str, float] | str | None = None
    redraw: bool = True
    bf16: bool | Literal["auto"] | None = None


@pytest.fixture
def read(tmp_path):
    """Reads flags, over a recipe if one is given."""

    def parse(*argv, recipe=None):
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps(recipe or {}))
        parser = OptionsParser((Example,), "harp test", "")
        return parser.read(argv, str(path) if recipe is not None else None)[0]

    return parse


WRONG = [
    ("max_length", 0, "at least 1 and at most 1000000000"),
    ("max_length", 2**70, "at least 1 and at most 1000000000"),
    ("max_length", 1.5, "a whole number"),
    ("max_length", "8", "a whole number"),
    ("max_length", True, "a whole number"),
    ("max_length", None, "a whole number"),
    ("min_words", -1, "at least 0 and at most 1000000000"),
    ("seeds", [1, 2**32], "at least 0 and at most 4294967295"),
    ("seeds", 1, "a list, each a whole number"),
    ("fraction", 1.01, "at least 0 and at most 1"),
    ("fraction", math.nan, "a number"),
    ("fraction", math.inf, "a number"),
    ("unit", "text", "one of word, page or null"),
    ("kinds", ["a", "c"], "a list, each one of a, b"),
    ("tasks", ["rqp", "acm"], "a list, each one of rqp, qdm"),
    ("tasks", "rqp", "a list, each one of rqp, qdm"),
    ("losses", {"hinge": "1"}, "an object or a text or null"),
    ("redraw", "no", "true or false"),
    ("output_dir", 5, "a text"),
    ("overwrite", 1, "true or false"),
    ("bf16", "perhaps", "true or false or one of auto or null"),
    ("learning_rate", 1, "at least 0 and below 1"),
]


@pytest.mark.parametrize(("name", "value", "words"), WRONG)
def test_a_wrong_value_is_one_line_that_says_what_is_allowed(name, value, words, read):
    flag = "--" + name.replace("_", "-")
    with pytest.raises(HarpError, match=rf"^{flag} is .*: it must be {words}$"):
        Example(**{"output_dir": "out", name: value})
    if not isinstance(value, float) or math.isfinite(value):
        with pytest.raises(HarpError, match=rf"recipe.json: {name} is .*: it must be {words}$"):
            read(recipe={"output_dir": "out", name: value})


RIGHT = [
    ("output_dir", Path("a/b"), "a/b"),
    ("max_length", 1e1, 10),
    ("seeds", (1, 2), [1, 2]),
    ("min_words", None, None),
    ("fraction", 1, 1.0),
    ("losses", {"hinge": 1}, {"hinge": 1.0}),
    ("losses", '{"hinge": 1}', '{"hinge": 1}'),
    ("bf16", True, True),
    ("bf16", "auto", "auto"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), RIGHT)
def test_a_right_value_has_the_declared_type(name, value, wanted):
    result = getattr(Example(**{"output_dir": "out", name: value}), name)
    assert result == wanted and type(result) is type(wanted)


FLAGS = [
    (["--max-length", "9"], "max_length", 9),
    (["--max_length=9"], "max_length", 9),
    (["--model_name_or_path", "large"], "model", "large"),
    (["--seeds", "1", "2"], "seeds", [1, 2]),
    (["--kinds", "b", "a"], "kinds", ["b", "a"]),
    (["--unit", "page"], "unit", "page"),
    (["--no-redraw"], "redraw", False),
    (["--redraw", "false"], "redraw", False),
    (["--overwrite"], "overwrite", True),
    (["--bf16"], "bf16", True),
    (["--bf16", "false"], "bf16", False),
    (["--bf16", "auto"], "bf16", "auto"),
    (["--losses", '{"hinge": 1}'], "losses", '{"hinge": 1}'),
]


@pytest.mark.parametrize(("argv", "name", "value"), FLAGS)
def test_flags(argv, name, value, read):
    assert getattr(read("--output-dir", "out", *argv), name) == value


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--max-length", "x"], "argument --max-length: invalid int value: 'x'"),
        (["--max-length", "0"], "--max-length is 0: it must be at least 1"),
        (["--kinds", "c"], "argument --kinds: invalid choice: 'c'"),
        (["--max_lenght", "9"], "unknown argument --max_lenght: did you mean --max-length?"),
        (["--ouput_dir", "x"], "unknown argument --ouput_dir: did you mean --output-dir?"),
    ],
)
def test_wrong_flags(argv, message, read):
    with pytest.raises(HarpError) as error:
        read("--output-dir", "out", *argv)
    assert str(error.value).startswith(message)
    with pytest.raises(HarpError, match="arguments are required: --output-dir "):
        read()


def test_recipes_and_flags_over_them(read):
    recipe = {"output_dir": "there", "model_name_or_path": "large", "bf16": "auto"}
    wanted = Example(output_dir="here", model="large", bf16="auto")
    assert read("--output-dir", "here", recipe=recipe) == wanted
    with pytest.raises(HarpError, match="unknown key 'max_lenght': did you mean max_length"):
        read(recipe={"output_dir": "here", "max_lenght": 1})


def test_the_parser_of_transformers_reads_the_declaration_too():
    parser = HfArgumentParser(Ranks)
    argv = ["--rank", "1", "--world", "2"]
    assert parser.parse_args_into_dataclasses(argv, look_for_args_file=False)[0].rank == 1


def test_help_shows_each_flag_once_with_dashes(read, capsys):
    with pytest.raises(SystemExit):
        read("--help")
    text = capsys.readouterr().out
    assert "The same as --redraw false." in text and "other options:" in text
    assert "--max-length VALUE" in text and "--no-redraw" in text and "--unit word|page" in text
    assert "_" not in text


def test_help_is_the_docstring(read, capsys):
    with pytest.raises(SystemExit):
        read("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "A model, the largest of which knows 90% of the words. (default: tiny)" in text
    assert "Replace earlier work" in text


def classes_of_options():
    """Our classes that declare options of commands, without those of other libraries."""
    every = {base for name in COMMANDS for kind in load(name).dataclasses for base in kind.__mro__}
    ours = [kind for kind in every if issubclass(kind, Options) and kind is not Options]
    return sorted(ours, key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", classes_of_options())
def test_docstrings_say_what_each_option_does(kind):
    """A misspelled name in a docstring would leave an option without help."""
    declared = {f.name for f in fields(kind)} & inspect.get_annotations(kind).keys()
    text = cleandoc(kind.__doc__)
    documented = re.findall(r"^    (\w+): (?=\S)", text.partition("Attributes:")[2], re.MULTILINE)
    assert declared == {name for name in documented if name != "HarpError"}
    assert all(option_help(kind)[name].endswith((".", ")")) for name in declared)


def test_ranks_belong_together():
    assert Ranks(rank=1, world=2).rank == 1
    with pytest.raises(HarpError, match="give both"):
        Ranks(rank=1)
    with pytest.raises(HarpError, match="--rank is 2: it must be below --world, 2"):
        Ranks(rank=2, world=2)

"""Options keep working under the names that they had, and under those of other projects."""

import json
from dataclasses import dataclass, field, replace

import pytest
from transformers import HfArgumentParser

from harp_plugin.errors import HarpError
from harp_plugin.option_names import OptionNames, old_names, other_names, takes_old_names
from harp_plugin.options import OptionsParser


@takes_old_names
@dataclass
class Options:
    output_dir: str = field(
        metadata={"help": "A folder.", "aliases": old_names("output", "out_folder")}
    )
    model: str = field(
        default="tiny", metadata={"help": "A model.", "aliases": other_names("model_name_or_path")}
    )
    new_draws: bool = field(
        default=True, metadata={"help": "Draws.", "aliases": old_names("fresh")}
    )
    max_length: int = field(default=8, metadata={"help": "Tokens."})


@pytest.fixture
def read(tmp_path):
    """Reads flags, over a recipe if one is given."""

    def parse(*argv, recipe=None):
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps(recipe or {}))
        parser = OptionsParser((Options,), "harp test", "")
        return parser.read(argv, str(path) if recipe is not None else None)[0]

    return parse


WANTED = Options(output_dir="here", model="large", new_draws=False)


@pytest.mark.parametrize("flag", ["--output-dir", "--output_dir", "--output", "--out_folder"])
@pytest.mark.parametrize("model", ["--model", "--model_name_or_path", "--model-name-or-path"])
@pytest.mark.parametrize("no_draws", ["--no-new-draws", "--no_fresh", "--fresh=false"])
def test_flags_under_any_name(read, flag, model, no_draws):
    assert read(flag, "here", f"{model}=large", no_draws) == WANTED


@pytest.mark.parametrize("flag", ["--output", "--out-folder", "--output-dir"])
def test_flags_under_any_name_for_the_parser_of_transformers(flag):
    parser = HfArgumentParser(Options)
    given = [flag, "here", "--model_name_or_path", "large", "--fresh", "false"]
    assert parser.parse_args_into_dataclasses(given, look_for_args_file=False)[0] == WANTED


@pytest.mark.parametrize("output", ["output_dir", "output", "out_folder"])
@pytest.mark.parametrize("model", ["model", "model_name_or_path"])
@pytest.mark.parametrize("draws", ["new_draws", "fresh"])
def test_keys_of_a_recipe_under_any_name(read, output, model, draws):
    assert read(recipe={output: "here", model: "large", draws: False}) == WANTED


def test_arguments_in_python_under_the_old_name():
    assert Options(output="here", model_name_or_path="large", fresh=False) == WANTED
    assert replace(WANTED, model="tiny").model == "tiny"
    with pytest.raises(TypeError):
        Options(outputs="here")


def test_an_old_name_warns_in_one_line_that_names_the_new_one(read, caplog):
    read("--output", "here", "--no-fresh")
    first, second = caplog.messages
    assert first.startswith("--output is now called --output-dir") and "\n" not in first
    assert second.startswith("--no-fresh is now called --no-new-draws")
    caplog.clear()
    read(recipe={"output": "here"})
    assert "recipe.json: output is now called output_dir" in caplog.text
    caplog.clear()
    Options(output="here")
    assert "Options: output is now called output_dir" in caplog.text


def test_present_names_and_those_of_other_projects_do_not_warn(read, caplog):
    read("--output-dir", "here", "--model_name_or_path", "large")
    read(recipe={"output_dir": "here", "model_name_or_path": "large"})
    assert not caplog.messages


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("output", "output_dir", "output-dir"),
        ("out_folder", "output", "output-dir"),
        ("model_name_or_path", "model", "model"),
    ],
)
def test_two_names_of_one_option_are_an_error(read, old, new, name):
    with pytest.raises(HarpError, match=f"are names of one option: give only --{name}"):
        read(f"--{old}", "here", f"--{new}", "there")
    with pytest.raises(HarpError, match=r"recipe.json: .* are names of one option: give only"):
        read(recipe={old: "here", new: "there"})


def test_a_flag_wins_over_a_recipe_under_another_name(read):
    assert read("--output-dir", "there", recipe={"output": "here"}).output_dir == "there"
    assert read("--output", "there", recipe={"output_dir": "here"}).output_dir == "there"


def test_what_an_earlier_release_recorded_is_the_same_option(caplog):
    recorded = {"fresh": True, "model_name_or_path": "large", "removed": 1}
    now = {"new_draws": True, "model": "large", "removed": 1}
    assert OptionNames([Options]).recorded(recorded) == now
    assert not caplog.messages


def test_people_read_flags_with_dashes(read, capsys):
    with pytest.raises(SystemExit):
        read("--help")
    text = capsys.readouterr().out
    assert "--max-length VALUE" in text and "--no-new-draws" in text
    assert "_" not in text and "--output " not in text
    with pytest.raises(HarpError, match=r"argument --max-length: invalid int value: 'x'"):
        read("--output-dir", "here", "--max_length", "x")
    with pytest.raises(HarpError, match="unknown argument --max_lenght: did you mean --max-len"):
        read("--output-dir", "here", "--max_lenght", "9")
    with pytest.raises(HarpError, match="unknown argument --ouput_dir: did you mean --output-dir"):
        read("--ouput_dir", "here")
    with pytest.raises(HarpError, match="arguments are required: --output-dir "):
        read()
    with pytest.raises(HarpError, match="unknown key 'max_lenght': did you mean max_length"):
        read(recipe={"output_dir": "here", "max_lenght": 1})

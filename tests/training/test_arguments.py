import importlib
import json
import sys
from pathlib import Path

import pytest
import torch

from harp_plugin.errors import HarpError
from harp_plugin.options_parser import OptionsParser
from harp_plugin.tasks import HARP_TASKS, DrawOptions
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)


def parse(*flags):
    parser = OptionsParser((HarpDataArguments,), "harp train", "")
    return parser.read(["--build_dir", "built", *flags])[0]


def test_weights_as_flags_and_in_a_recipe():
    flags = parse("--tasks", '{"rqp": 2}', "--losses", '{"hinge": 1}')
    recipe = {"build_dir": "built", "tasks": {"rqp": 2}, "losses": {"hinge": 1}}
    assert HarpDataArguments(**recipe) == flags
    assert flags.tasks == {"rqp": 2}


def test_names_with_weights_are_the_same_as_json():
    flags = parse("--tasks", "rqp", "acm=0.5", "--losses", "hinge", "mlm=0.1")
    assert flags.tasks == {"rqp": 1.0, "acm": 0.5} and flags.losses == {"hinge": 1.0, "mlm": 0.1}
    of_recipe = HarpDataArguments(build_dir="built", tasks=["rqp", "acm=0.5"], losses=flags.losses)
    assert of_recipe == flags


def test_defaults_are_the_four_tasks_and_the_losses_of_the_preset():
    assert parse().tasks == dict.fromkeys(HARP_TASKS, 1.0)
    assert parse().losses == {"hinge": 1.0, "mlm": 1.0} and parse().redraw_each_epoch
    assert not parse("--preset", "paper").redraw_each_epoch


def test_options_of_drawing_stand_in_the_same_recipe():
    options = parse("--preset", "paper", "--redraw_each_epoch", "true", "--query_case", "text")
    expected = DrawOptions(preset="paper", redraw_each_epoch=True, query_case="text")
    assert options.draw_options == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--tasks", "rqp=much"), "tasks is not JSON"),
        (("--losses", "[1]"), "losses is"),
        (("--max_query_length", "long"), "max_query_length is not JSON"),
    ],
)
def test_wrong_values_are_named(flags, message):
    with pytest.raises(HarpError, match=message):
        parse(*flags)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ('{"rpq": 1}', "unknown task 'rpq'"),
        ('{"rqp": -1}', "tasks: 'rqp' has weight -1"),
        ('{"rqp": 0}', "tasks is empty"),
    ],
)
def test_wrong_tasks_are_named(tasks, message):
    with pytest.raises(HarpError, match=message):
        _ = parse("--tasks", tasks).task_weights


@pytest.mark.parametrize(
    ("given", "rqp", "acm"), [("30", 30, 30), ('{"rqp": 30}', 30, None), ("null", None, None)]
)
def test_query_limits_as_a_flag_and_in_a_recipe(given, rqp, acm):
    flags = parse("--tasks", '{"rqp": 1, "acm": 1}', "--max-query-length", given)
    assert flags.query_limits == {"rqp": rqp, "acm": acm}
    recipe = {"build_dir": "built", "tasks": flags.tasks, "max_query_length": json.loads(given)}
    assert HarpDataArguments(**recipe) == flags


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0", "max_query_length is 0 for"),
        ("-1", "max_query_length is -1 for"),
        ("30.5", "max_query_length is 30.5 for"),
        ("true", "max_query_length is True for"),
        ("513", "with a max_length of 512 it must be from 1 to 512"),
        ("[30]", r"max_query_length is \[30\]"),
        ('{"rqp": 0}', "max_query_length is 0 for rqp"),
        ('{"rpq": 30}', "unknown task 'rpq': did you mean 'rqp'"),
    ],
)
def test_wrong_query_lengths_are_found_before_the_build_is_opened(given, message):
    with pytest.raises(HarpError, match=message):
        parse("--max_query_length", given).check()


@pytest.mark.parametrize("option", [{"negatives_x_device": True}, {"grad_cache": True}])
def test_options_of_dense_retrieval_are_refused(option, tmp_path):
    if not hasattr(HarpTrainingArguments, *option):
        pytest.skip("the installed Tevatron has no such option")
    with pytest.raises(HarpError, match="has no meaning"):
        HarpTrainingArguments(output_dir=str(tmp_path), use_cpu=True, **option)


def test_weight_of_zero_leaves_a_task_out():
    assert parse("--tasks", '{"rqp": 0, "acm": 2}').task_weights == {"acm": 2.0}


def test_missing_tevatron_is_one_line(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "harp_plugin.training.tevatron")
    with pytest.raises(HarpError, match=r"tevatron is not installed: run `pip install"):
        importlib.import_module("harp_plugin.training.tevatron")


def test_other_tevatron_is_one_line(monkeypatch):
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if "." in name else "tevatron"
    )
    monkeypatch.delitem(sys.modules, "harp_plugin.training.tevatron")
    with pytest.raises(HarpError, match=r"install the release"):
        importlib.import_module("harp_plugin.training.tevatron")


@pytest.mark.parametrize("flag", ["--overwrite", "--overwrite-output-dir"])
def test_both_names_of_overwriting(flag):
    parser = OptionsParser((HarpTrainingArguments,), "harp train", "")
    options, *_ = parser.read(["--output_dir", "out", flag, "--accept-other-versions"])
    assert options.overwrite and options.accept_other_versions


def test_training_is_quiet_by_our_name_and_by_that_of_transformers(tmp_path):
    def read(**recipe):
        (tmp_path / "recipe.json").write_text(json.dumps({"output_dir": "out", **recipe}))
        parser = OptionsParser((HarpTrainingArguments,), "harp train", "")
        return parser.read([], str(tmp_path / "recipe.json"))[0]

    assert read(quiet=True).disable_tqdm and read(disable_tqdm=True).disable_tqdm
    assert not read().disable_tqdm


def test_names_of_tevatron_and_of_transformers_are_read_without_a_warning(tmp_path, caplog):
    recipe = {
        "model_name_or_path": "bert",
        "build_dir": "built",
        "output_dir": "out",
        "overwrite_output_dir": True,
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    parser = OptionsParser(
        (HarpModelArguments, HarpDataArguments, HarpTrainingArguments), "harp train", ""
    )
    model, _, training, _ = parser.read([], str(tmp_path / "recipe.json"))
    assert model == HarpModelArguments(model="bert") and training.overwrite
    assert not caplog.messages


def precision(*flags):
    parser = OptionsParser((HarpTrainingArguments,), "harp train", "")
    options, *_ = parser.read(["--output-dir", "out", *flags])
    return options.bf16


@pytest.mark.parametrize("multiplies", [True, False])
def test_auto_is_bf16_where_the_cpu_multiplies_it(multiplies, monkeypatch):
    monkeypatch.setattr("harp_plugin.training.arguments.multiplies_bfloat16", lambda: multiplies)
    assert precision("--bf16", "auto", "--use-cpu") is multiplies
    assert precision("--bf16", "--use-cpu") is True
    assert precision("--use-cpu") is precision("--bf16", "false", "--use-cpu") is False


@pytest.mark.skipif(torch.accelerator.is_available(), reason="this machine has a GPU")
def test_auto_asks_the_cpu_where_there_is_no_gpu():
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    assert precision("--bf16", "auto") is any(name in flags for name in ("avx512_bf16", "amx_tile"))
    with pytest.raises(HarpError, match="support bf16"):
        precision("--bf16")


def test_other_precisions_are_refused():
    with pytest.raises(HarpError, match="--bf16 is 'half': it must be true or false or one of"):
        precision("--bf16", "half")


def read_data(tmp_path, *flags, **recipe):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({"build_dir": "built", **recipe}))
    parser = OptionsParser((HarpDataArguments,), "harp train", "")
    return parser.read(flags, str(path))[0]


def test_a_switch_whose_default_depends_on_the_preset_needs_no_value(tmp_path):
    assert read_data(tmp_path, "--rdp-agreement", preset="paper").rdp_agreement is True
    assert read_data(tmp_path, preset="paper").rdp_agreement is False
    assert read_data(tmp_path, "--rdp-agreement", "false").rdp_agreement is False


def test_help_shows_the_values_of_switches(capsys):
    parser = OptionsParser((HarpDataArguments, HarpTrainingArguments), "harp train", "")
    parser.print_help()
    text = capsys.readouterr().out
    assert "--rdp-agreement true|false" in text and "--bf16 true|false|auto" in text

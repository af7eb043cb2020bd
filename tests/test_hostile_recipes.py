"""Recipes that are damaged, wrong or misleading: one line, status 2, and nothing starts."""

import json
import os

import pytest

from harp_plugin.cli import main

pytestmark = pytest.mark.timeout(20, func_only=True)

DEEP = 4 * 10**4
NEEDED = {
    "build": {"output_dir": "out"},
    "train": {"model": "no-model", "build_dir": "no-build", "output_dir": "out"},
    "finetune": {"model": "no-model", "dataset": "vaswani", "output_dir": "out"},
    "evaluate": {"dataset": "vaswani", "output_dir": "out"},
    "cross-validate": {"dataset": "vaswani", "systems": {"a": "no-model"}, "output_dir": "out"},
}


@pytest.fixture
def line(capsys, tmp_path, monkeypatch):
    """Runs a command by a recipe in an empty folder; gives its one line."""
    monkeypatch.chdir(tmp_path)

    def run(command, recipe):
        argv = [command, "--recipe", recipe] if command == "build" else [command, recipe]
        status = main([str(argument) for argument in argv])
        error = capsys.readouterr().err
        assert status == 2, error
        assert error.startswith("harp: error: ") and error.count("\n") == 1, error
        assert error[:-1].isprintable() and len(error) < 1400
        assert not (tmp_path / "out").exists()
        return error

    return run


def nested(opening, closing):
    return opening * DEEP + closing * DEEP


FILES = {
    "empty": (b"", "is not a recipe"),
    "white space": (b" \n\t ", "is not a recipe"),
    "cut": (b'{"output_dir": ', "is not a recipe"),
    "two objects": (b"{}{}", "is not a recipe"),
    "null": (b"null", "one object"),
    "a list": (b"[1, 2]", "one object"),
    "a number": (b"7", "one object"),
    "a text": (b'"output_dir"', "one object"),
    "deep lists": (nested("[", "]").encode(), "nested too deeply"),
    "deep objects": (nested('{"":', "}").encode(), "nested too deeply"),
    "no UTF-8": (b'{"output_dir": "\xff\xfe"}', "is not a recipe"),
    "UTF-16": (json.dumps({"output_dir": "out"}).encode("utf-16"), "is not a recipe"),
    "a duplicate key": (
        b'{"output_dir": "a", "output_dir": "b"}',
        "'output_dir' is a duplicate",
    ),
    "an inner key twice": (b'{"tasks": {"rqp": 1, "rqp": 2}}', "'rqp' is a duplicate"),
    "NaN": (b'{"title_anchors": NaN}', "'NaN' is not a finite number"),
    "Infinity": (b'{"learning_rate": -Infinity}', "'-Infinity' is not a finite number"),
    "beyond floats": (b'{"learning_rate": 1e999}', "'1e999' is not a finite number"),
    "too many digits": (b'{"workers": 1' + b"0" * 5000 + b"}", "is not a recipe"),
    "half a surrogate pair": (b'{"output_dir": "a\\ud800"}', "half a surrogate pair"),
    "half a pair in a key": (b'{"\\udfff": 1}', "half a surrogate pair"),
    "NUL in a path": (b'{"output_dir": "a\\u0000b"}', "NUL"),
    "NUL deep inside": (b'{"tasks": {"a": [{"\\u0000": 1}]}}', "NUL"),
    "escape sequences": (b'{"\\u001b[2J\\nrm": 1}', "unknown key '\\x1b[2J\\nrm'"),
    "a program": (b"\x7fELF\x00\x01", "is not a recipe"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["build", "train"])
def test_files_that_are_no_recipes(name, command, line, tmp_path):
    content, said = FILES[name]
    path = tmp_path / "recipe.json"
    path.write_bytes(content)
    error = line(command, path)
    assert said in error and "recipe.json" in error


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))])
YAML_FILES = {
    "a bomb of aliases": (BOMB, "it has an alias: write out what the alias stands for"),
    "an alias of itself": ("a: &a [*a]", "it has an alias"),
    "a tag of a number": ("a: !!int ''", "is not a recipe"),
    "a tag of a decimal": ("a: !!float ''", "is not a recipe"),
    "a tag of a truth": ("a: !!bool nonsense", "is not a recipe"),
    "a tag of a time": ("a: !!timestamp nonsense", "is not a recipe"),
    "an object of Python": ("a: !!python/object/apply:os.abort []", "is not a recipe"),
    "deep lists": ("a: " + "[" * 1000, "nested too deeply"),
    "very many keys": ("\n".join(f"k{n}: 1" for n in range(30_000)), "over 256 KiB"),
}


@pytest.mark.parametrize("name", YAML_FILES)
def test_yaml_that_is_no_recipe(name, line, tmp_path):
    content, said = YAML_FILES[name]
    (tmp_path / "recipe.yaml").write_text(content)
    assert said in line("build", "recipe.yaml")


def test_a_recipe_of_very_many_keys(line, tmp_path):
    recipe = {f"k{n}": 1 for n in range(10**6)}
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    assert "recipe.json is over 256 KiB: name a recipe" in line("train", "recipe.json")


def test_paths_that_are_no_files(line, tmp_path):
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "circle.json").symlink_to(tmp_path / "circle.json")
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "absent")
    for name in ("folder.json", "pipe.json", "circle.json", "nowhere.json", ".", "a" * 5000):
        for command in NEEDED:
            line(command, name)
    assert "holds a NUL" in line("train", "a\0b")


def test_a_recipe_that_may_not_be_read(line, tmp_path, monkeypatch):
    (tmp_path / "recipe.json").write_text("{}")

    def refuse(*_arguments, **_named):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", refuse)
    assert "recipe.json cannot be read (Permission denied)" in line("train", "recipe.json")


WRONG = [
    *(("build", key, None) for key in ("workers", "output_dir", "tasks", "quiet", "memory")),
    ("build", "output_dir", 5),
    ("build", "output_dir", ["out"]),
    ("build", "workers", "2"),
    ("build", "workers", 1.5),
    ("build", "workers", True),
    ("build", "workers", 10**400),
    ("build", "workers", -1),
    ("build", "workers", [2]),
    ("build", "tasks", [{}]),
    ("build", "tasks", [["rqp"]]),
    ("build", "tasks", [None]),
    ("build", "tasks", "rqp"),
    ("build", "tasks", {"rqp": 1}),
    ("build", "tasks", ["rqp", "no-such-task"]),
    ("build", "stages", ["corpus", "weihgts"]),
    ("build", "quiet", "false"),
    ("build", "quiet", 0),
    ("build", "min_words", -5),
    ("build", "title_anchors", 2),
    ("build", "title_anchors", "half"),
    ("build", "memory", 4),
    ("build", "memory", "plenty"),
    ("build", "preset", "papers"),
    ("build", "about", ["why"]),
    ("build", "about", {"a": 1}),
    ("build", "wokers", 2),
    ("build", "sources", ["dump.xml"]),
    ("build", "help", True),
    ("train", "learning_rate", "1e-4"),
    ("train", "learning_rate", None),
    ("train", "learning_rate", [1e-4]),
    ("train", "max_steps", 10.5),
    ("train", "max_steps", "ten"),
    ("train", "seed", 10**400),
    ("train", "tasks", [{}]),
    ("train", "tasks", {"rqp": "1"}),
    ("train", "tasks", {"rqp": None}),
    ("train", "tasks", "{"),
    ("train", "losses", 1),
    ("train", "losses", {"hinge": True}),
    ("train", "max_query_length", {"srr": 1.5}),
    ("train", "lr_scheduler_type", "foo"),
    ("train", "eval_strategy", 3),
    ("train", "save_strategy", "sometimes"),
    ("train", "optim", "no-optimizer"),
    ("train", "lr_scheduler_kwargs", "{"),
    ("train", "accelerator_config", "nowhere.json"),
    ("train", "report_to", {"a": 1}),
    ("train", "bf16", 1),
    ("train", "overwrite", "no"),
    ("train", "deepspeed", {"a": 1}),
    ("finetune", "dataset", 5),
    ("finetune", "train_file", "lines.jsonl"),
    ("finetune", "queries", "all"),
    ("finetune", "losses", ["lce=much"]),
    ("evaluate", "allow_functions", True),
    ("cross-validate", "allow_functions", True),
    ("evaluate", "depth", "100"),
    ("evaluate", "depth", 0),
    ("evaluate", "measures", "nDCG@10"),
    ("evaluate", "measures", [10]),
    ("evaluate", "rerankers", ["a"]),
    ("evaluate", "rerankers", "{"),
    ("evaluate", "rerankers", {"a": 1}),
    ("evaluate", "rerankers", {"a": {"model": "m", "max_lenght": 5}}),
    ("evaluate", "correction", "bonferroni"),
    ("evaluate", "fields", [None]),
    ("cross-validate", "systems", {}),
    ("cross-validate", "systems", {"a": {"model": 5}}),
    ("cross-validate", "seeds", [1.5]),
    ("cross-validate", "seeds", ["1"]),
    ("cross-validate", "folds", None),
    ("cross-validate", "train_queries", [[5]]),
    ("cross-validate", "train_queries", [{}]),
    ("cross-validate", "grid", {"learning_rate": 1e-4}),
    ("cross-validate", "finetuning", [1]),
]


@pytest.mark.parametrize(("command", "key", "value"), WRONG)
def test_wrong_values(command, key, value, line, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({**NEEDED[command], key: value}))
    error = line(command, path)
    told = (key.rstrip("s"), key.replace("_", "-"), "recipe.json", "training options")
    assert any(words in error for words in told)


FLAGS = [
    ("build", "--workers", "two"),
    ("build", "--workers", "9" * 5000),
    ("build", "--title-anchors", "nan"),
    ("build", "--quiet", "perhaps"),
    ("build", "--output-dir"),
    ("build", "--recipe"),
    ("build", "--output-dir", "a\0b"),
    ("train", "--learning_rate", "inf"),
    ("train", "--max_steps", "1.5"),
    ("train", "--lr_scheduler_type", "foo"),
    ("evaluate", "--depth", ""),
    ("evaluate", "--\x1b[2J", "1"),
    ("rerank", "--depth", "0x10"),
    ("inspect", "--samples", "-1"),
]


@pytest.mark.parametrize("argv", FLAGS, ids=lambda argv: " ".join(argv)[:40])
def test_wrong_flags(argv, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *flags = argv
    (tmp_path / "r.json").write_text(json.dumps(NEEDED.get(command, {})))
    first = {"build": ["--recipe", "r.json"], "rerank": ["run", "--dataset", "d", "--model", "m"]}
    assert main([command, *first.get(command, ["r.json"]), *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("harp: error: ") and error.count("\n") == 1
    assert error[:-1].isprintable() and len(error) < 1400


def test_what_is_no_mistake(tmp_path):
    """A byte-order mark, null where nothing is the default, a whole number with an exponent."""
    from harp_plugin.commands.build import BuildOptions
    from harp_plugin.options_parser import OptionsParser

    recipe = {"about": "why", "output_dir": "out", "workers": 1e1, "device": None}
    path = tmp_path / "recipe.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(recipe).encode())
    options, _ = OptionsParser((BuildOptions,), "harp build", "").read([], str(path))
    assert options.workers == 10 and isinstance(options.workers, int) and options.device is None

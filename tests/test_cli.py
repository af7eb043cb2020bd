"""The command as a person uses it: help, errors of one line, exit status."""

import bz2
import json
import os
import re
import subprocess
import sys

import pytest

from harp_plugin.cli import main
from harp_plugin.commands import COMMANDS, load


@pytest.fixture
def harp(capsys, monkeypatch):
    """Run a command; give its status, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*argv):
        status = main([str(argument) for argument in argv])
        return (status, *capsys.readouterr())

    return run


def fails(result, *said):
    status, _, error = result
    assert status == 2
    assert error.startswith("harp: error: ")
    assert error.count("\n") == 1
    for words in said:
        assert words in error


def test_help_names_every_command(harp):
    status, output, _ = harp("--help")
    assert status == 0
    assert all(f"  {command} " in output for command in COMMANDS)
    assert max(map(len, output.splitlines())) <= 80


def test_help_into_a_pipe_that_nobody_reads():
    read, write = os.pipe()
    os.close(read)
    line = [sys.executable, "-m", "harp_plugin.cli", "--help"]
    result = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed):
    line = ["sh", "-c", f'exec "$0" -m harp_plugin.cli --version {closed}', sys.executable]
    result = subprocess.run(line, capture_output=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(harp, command):
    status, output, _ = harp(command, "--help")
    assert status == 0
    assert output == load(command).parser(command, COMMANDS[command]).format_help(), (
        "python -m harp_plugin schema --kind help > harp_plugin/data/help.json"
    )
    assert max(map(len, output.splitlines())) <= 80
    assert f"usage: harp {command}" in output
    assert "--" in output and not re.search("--[a-z-]*_", output)


def test_a_recipe_works_where_none_is_needed(harp, tmp_path):
    (tmp_path / "recipe.json").write_text('{"samples": -1}')
    fails(harp("inspect", tmp_path, "--recipe", tmp_path / "recipe.json"), "samples is -1")


def test_help_is_light():
    """Of every command; without transformers it takes some tenths of a second."""
    code = (
        "import sys; from harp_plugin.cli import main; from harp_plugin.commands import COMMANDS; "
        "assert not any(main([name, '--help']) for name in COMMANDS); "
        "heavy = {'torch', 'transformers', 'pandas', 'pyterrier', 'tevatron'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_package_is_run_as_the_command():
    line = [sys.executable, "-m", "harp_plugin", "--version"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("harp ")
    wrong = subprocess.run([*line[:3], "serach"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "unknown command 'serach'" in wrong.stderr


def test_import_is_light():
    code = (
        "import sys, harp_plugin, harp_plugin.cli; "
        "heavy = {'torch', 'transformers', 'pyarrow', 'pyterrier', 'ibis'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="torch has another OpenMP there")
@pytest.mark.parametrize(
    ("given", "spins"),
    [
        ({}, "1000"),
        pytest.param({"GOMP_SPINCOUNT": "5"}, "5", marks=pytest.mark.slow),
        pytest.param({"OMP_WAIT_POLICY": "active"}, "30000000000", marks=pytest.mark.slow),
    ],
)
def test_threads_that_wait_sleep_early_unless_the_environment_says_otherwise(given, spins):
    code = "from harp_plugin.cli import main; main(['check', 'nowhere']); import torch"
    ours = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= given | {"OMP_DISPLAY_ENV": "VERBOSE"}
    line = [sys.executable, "-c", code]
    shown = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert f"GOMP_SPINCOUNT = '{spins}'" in shown.stderr


def test_unknown_command(harp):
    fails(harp("biuld"), "biuld", "build")


def test_unknown_flag_is_told_with_the_nearest(harp):
    fails(harp("build", "x.xml", "--output-dir", "y", "--min-word", "3"), "--min-words")


def test_missing_source(harp, tmp_path):
    fails(harp("build", tmp_path / "no.xml", "--output-dir", tmp_path / "out"), "no.xml")
    assert not (tmp_path / "out" / "corpus" / "manifest.json").exists()


def test_no_source(harp, tmp_path):
    fails(harp("build", "--output-dir", tmp_path), "no source")


def test_missing_model(harp, tmp_path, shared_data):
    source = shared_data / "wiki" / "simplewiki-core150.xml.bz2"
    result = harp(
        "build", source, "--output-dir", tmp_path, "--model", tmp_path / "none", "--quiet"
    )
    fails(result, "none")
    assert not (tmp_path / "weights" / "manifest.json").exists()


def test_broken_dumps(harp, tmp_path, shared_data):
    whole = (shared_data / "wiki" / "simplewiki-core150.xml.bz2").read_bytes()
    xml = bz2.decompress(whole)
    broken = {
        "truncated.xml.bz2": whole[: len(whole) // 2],
        "cut.xml": xml[: len(xml) // 2],
        "words.txt": b"hello",
        "empty.xml": b"",
        "latin.xml": xml.replace(b"Africa", b"Afr\xefca"),
    }
    for name, content in broken.items():
        source, output = tmp_path / name, tmp_path / f"{name}-out"
        source.write_bytes(content)
        build = ["build", source, "--output-dir", output, "--stages", "corpus", "--quiet"]
        fails(harp(*build), name)
        assert not (output / "corpus" / "manifest.json").exists()


def test_unknown_recipe_key(harp, tmp_path):
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"learning_rat": 1}))
    fails(harp("train", recipe), "recipe.json", "learning_rat", "learning_rate")


def test_recipe_that_is_no_json(harp, tmp_path):
    recipe = tmp_path / "recipe.json"
    recipe.write_text("{")
    fails(harp("train", recipe), "recipe.json")


def test_unfinished_build(harp, tmp_path):
    fails(harp("inspect", tmp_path), "harp build")
    fails(harp("export", tmp_path, "--output-dir", tmp_path / "out"), "harp build")


def test_interrupt_says_that_work_is_kept(harp, monkeypatch):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("harp_plugin.commands.quickstart.quickstart", interrupted)
    status, _, error = harp("quickstart")
    assert status == 130
    assert "run again" in error


def test_a_caller_in_python_keeps_its_own_signals():
    """After an interrupted command, a Ctrl-C is the caller's again, as in a notebook."""
    script = (
        "import os, signal, time\n"
        "from harp_plugin import cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def wait(arguments):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    [time.sleep(0.1) for _ in range(300)]\n"
        "cli._run = wait\n"
        "assert cli.main(['build']) == 130\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(30)\n"
        "except KeyboardInterrupt:\n"
        "    print('the caller was interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "the caller was interrupted\n"

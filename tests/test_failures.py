"""Errors of the system and of damaged input are one line; mistakes of the program are not."""

import errno
import gzip
import io
import json
import logging
import lzma
import os
import subprocess
import sys
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harp_plugin.cli import _OneLine, main
from harp_plugin.errors import show, user_message

pytestmark = pytest.mark.integration


class ClientError(Exception):
    """As aiohttp has it, which is installed with the stores that need it."""

    __module__ = "aiohttp.client_exceptions"


class ClientPayloadError(ClientError):
    """Of a server that closes the connection in the middle of a file."""


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.fixture
def fails(capsys, monkeypatch):
    """Runs a command that raises an error; gives its one line."""

    def run(error):
        def raising(_options):
            raise error

        monkeypatch.setattr("harp_plugin.commands.quickstart.quickstart", raising)
        assert main(["quickstart"]) == 2
        line = capsys.readouterr().err
        assert line.startswith("harp: error: ") and line.count("\n") == 1
        assert line[:-1].isprintable()
        return line

    return run


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.ESTALE])
def test_errors_of_the_system_name_the_file(number, fails):
    error = OSError(number, os.strerror(number), "some/folder/\x1b[2J\nfile\udcff")
    assert "some/folder/\\x1b[2J\\nfile\\udcff: " in fails(error)
    assert os.strerror(number) in fails(error)


def damaged_table():
    table = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(1000))}), table)
    content = bytearray(table.getvalue())
    content[10:200] = bytes(190)
    return raised(pq.read_table, pa.BufferReader(bytes(content)))


DAMAGE = {
    "zlib": lambda: raised(zlib.decompress, b"junk"),
    "lzma": lambda: raised(lzma.decompress, b"\xfd7zXZ\0junk and more junk"),
    "gzip": lambda: raised(gzip.decompress, b"\x1f\x8bjunk and more junk"),
    "end of file": lambda: raised(gzip.decompress, gzip.compress(b"text")[:-3]),
    "no Parquet": lambda: raised(pq.read_table, pa.BufferReader(b"junk" * 9)),
    "Parquet": damaged_table,
    "half a surrogate pair": lambda: raised("a\ud800".encode),
    "no UTF-8": lambda: raised(b"\xff".decode),
    "JSON": lambda: raised(json.loads, "{"),
    "nested JSON": lambda: raised(json.loads, "[" * 10**5),
    "memory": lambda: MemoryError(),
    "a connection": lambda: ClientPayloadError("Response payload is not completed"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_input(name, fails):
    fails(DAMAGE[name]())


def test_mistakes_of_the_program_keep_their_traceback(monkeypatch):
    for kind in (TypeError, KeyError, IndexError, AttributeError, AssertionError, ValueError):
        assert user_message(kind("x")) is None
    assert user_message(RecursionError("maximum recursion depth exceeded")) is None
    assert user_message(pa.ArrowKeyError("x")) is None
    assert user_message(pa.ArrowTypeError("x")) is None
    assert user_message(ModuleNotFoundError("x", name="harp_plugin.nothing")) is None

    def raising(_options):
        raise KeyError("a mistake")

    monkeypatch.setattr("harp_plugin.commands.quickstart.quickstart", raising)
    with pytest.raises(KeyError, match="a mistake"):
        main(["quickstart"])


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("pandas", "pyterrier"),
        ("pyterrier", "pyterrier"),
        ("ir_datasets.formats", "pyterrier"),
        ("pyterrier_dr", "dense"),
        ("tevatron", "train"),
        ("ibis", "build"),
        ("sklearn", "build"),
        ("markdown_it", "build"),
        ("fastapi", "serve"),
        ("faiss", "faiss"),
        ("s3fs", "s3"),
        ("pyspark", "spark"),
        ("a_package_of_another", "all"),
    ],
)
def test_a_package_that_is_missing_names_the_extra_that_brings_it(module, extra):
    message = user_message(ModuleNotFoundError("x", name=module))
    assert message == f"{module} is not installed: run `pip install 'harp-plugin[{extra}]'`"


@pytest.mark.parametrize("name", ["HarpReranker", "HarpPipeline", "HarpRetriever"])
def test_a_transformer_without_pyterrier_names_the_extra(name):
    code = f"import sys; sys.modules['pandas'] = None; from harp_plugin import {name}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: {name} cannot be imported: pandas is not ins")
    assert last.endswith("run `pip install 'harp-plugin[pyterrier]'`")


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("build", "pandas", "build"),
        pytest.param("finetune", "pyarrow", "train", marks=pytest.mark.slow),
        ("rerank", "pandas", "pyterrier"),
        ("adapt", "pandas", "all"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(command, module, extra):
    code = f"import sys; sys.modules['{module}'] = None; from harp_plugin.cli import main; "
    code += f"sys.exit(main(['{command}', 'x']))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    hint = f"needs {module}: run `pip install 'harp-plugin[{extra}]'`"
    assert (result.returncode, result.stderr) == (2, f"harp: error: harp {command} {hint}\n")


@pytest.mark.parametrize("obstacle", ["file", "dangling", "circle", "long"])
def test_an_output_that_cannot_be_written(obstacle, tmp_path, capsys):
    source = tmp_path / "d.html"
    source.write_text("<html><p>A <a href='b'>b</a>.")
    output = tmp_path / ("o" * 300 if obstacle == "long" else "out")
    if obstacle == "file":
        output.write_text("mine")
    elif obstacle != "long":
        output.symlink_to(output if obstacle == "circle" else tmp_path / "none" / "absent")
    argv = ["build", source, "--output-dir", output / "inner", "--stages", "corpus", "--quiet"]
    for target in (output / "inner", output):
        argv[3] = target
        if obstacle == "dangling" and target == output:
            continue
        assert main([str(part) for part in argv]) in (0, 2)
        line = capsys.readouterr().err
        assert "Traceback" not in line and line.count("\n") <= 1
        if obstacle != "dangling":
            assert line.startswith("harp: error: ") and str(output)[:40] in line


def test_a_full_disk_and_a_name_that_is_no_text(tmp_path, monkeypatch, capsys):
    """A limit on the size of files stands for the disk's."""
    name = os.fsdecode(b"d\xff\x1b.html")
    (tmp_path / name).write_text("<html><p>A <a href='b'>b</a>.")
    line = [sys.executable, "-m", "harp_plugin.cli", "build", name, "--output-dir", "out"]
    line += ["--stages", "corpus", "--quiet", "--workers", "1"]
    full = subprocess.run(
        ["bash", "-c", 'ulimit -f 0; "$@"', "-", *line], cwd=tmp_path, capture_output=True
    )
    assert full.returncode == 2, full.stderr
    assert full.stderr.startswith(b"harp: error: ") and full.stderr.count(b"\n") == 1
    monkeypatch.chdir(tmp_path)
    assert main(line[3:]) == 0
    line[4] = name + "x"
    assert main(line[3:]) == 2
    assert "no source at d\\udcff\\x1b.htmlx" in capsys.readouterr().err


def test_log_records_are_one_line():
    text = "the file \x1b[2J\nharp: error: not this"
    record = logging.LogRecord("harp_plugin.x", logging.INFO, "", 0, "read %s", (text,), None)
    shown = _OneLine("%(name)s: %(message)s").format(record)
    assert shown == "read the file \\x1b[2J\\nharp: error: not this"


def test_results_are_shown_without_control_characters(capsys):
    show("a\x1b[2J\n  b\x85c\ud800")
    assert capsys.readouterr().out == "a\\x1b[2J\n  b\\x85c\\ud800\n"

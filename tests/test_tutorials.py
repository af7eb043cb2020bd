"""The tutorials run as they stand, with fewer steps, shorter texts and fewer candidates."""

import json
import os
import re
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
NUMBERS = re.compile(rf"({'|'.join(SMALLER)})(:? |=)\d+")


def smaller(number):
    return f"{number[1]}{number[2]}{SMALLER[number[1]]}"


def blocks(name):
    text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    return FENCE.findall(NUMBERS.sub(smaller, text))


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
    run(sys.executable, "-c", "".join(script(NOTEBOOK.read_text(encoding="utf-8"))))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial(tmp_path, run, name):
    for kind, block in blocks(name):
        if file := FILE.match(block):
            (tmp_path / file[1]).parent.mkdir(exist_ok=True)
            (tmp_path / file[1]).write_text(block)
        elif kind == "python":
            run(sys.executable, "-c", block)
        else:
            for command in commands(block):
                run("bash", "-euc", command.replace("pip install", INSTALL))

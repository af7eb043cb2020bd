"""Which folder may import which, and that no two files import each other.

The order stands in ``pyproject.toml``; the linter reads type hints and imports in functions too.
"""

import logging.config
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"


@pytest.fixture(autouse=True)
def loggers_stay(monkeypatch):
    """Let the linter not disable the loggers of later tests."""
    monkeypatch.setattr(logging.config, "dictConfig", lambda settings: None)


def test_imports_keep_the_order_of_the_folders(capsys):
    status = lint_imports(config_filename=str(CONFIGURATION), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_the_linter_finds_a_circle(tmp_path, monkeypatch, capsys):
    """Two files that import each other, one of them for a type hint alone."""
    package = tmp_path / "circular_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from . import second\n")
    (package / "second.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .first import Name\n"
    )
    text = CONFIGURATION.read_text("utf-8")
    circles = text[text.index('id = "circles"') :].split("[[")[0]
    contract = circles.replace("harp_plugin", "circular_package")
    configuration = tmp_path / "pyproject.toml"
    configuration.write_text(
        '[tool.importlinter]\nroot_package = "circular_package"\n'
        f"[[tool.importlinter.contracts]]\n{contract}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert lint_imports(config_filename=str(configuration), no_cache=True) != 0
    assert "circular_package" in capsys.readouterr().out

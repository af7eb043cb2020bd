"""The documentation site is built without a warning, and works without a network."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from harp_plugin.commands.schema import parsers
from harp_plugin.options_parser import recipe_names

DOCS = Path(__file__).parents[1] / "docs"
LOADED = re.compile(
    r"<(?:script|img|link rel=\"(?:stylesheet|preload|icon)\")[^>]*?(?:src|href)=\"(.*?)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `tox -e docs` builds it; a link without a target is an error."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        DOCS,
        folder,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    return folder


@pytest.mark.slow
def test_every_page_is_reached(site):
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    assert all((site / f"{page}.html").is_file() for page in pages)
    index = (site / "index.html").read_text(encoding="utf-8")
    entries = set(re.findall(r'href="([^"#]+)\.html"', index))
    assert {str(page) for page in pages} - entries <= {"index"}


@pytest.mark.slow
def test_it_works_offline(site):
    assert (site / "searchindex.js").is_file()
    for page in site.rglob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert loaded and not [name for name in loaded if name.startswith(("http", "//"))], page


@pytest.mark.slow
def test_the_reference_has_every_option_and_recipe(site):
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for command, parser in parsers().items():
        assert f'id="harp-{command}"' in commands
        for option in parser.options:
            assert f">{option.name}<" in commands, (command, option.name)
    recipes = (site / "reference" / "recipes.html").read_text(encoding="utf-8")
    assert all(f'id="{name.replace("/", "-")}"' in recipes for name in recipe_names())


def test_a_page_of_options_shows_those_of_the_help_first(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    page = import_module("options_page").options_page("train", parsers()["train"])
    head, further = page.split("further options")
    assert "| `build_dir` |" in head and "| `adam_beta1` |" in further
    assert "`adam_beta1`" not in head
    rows = [line.strip() for line in page.splitlines() if line.strip().startswith("| `")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)

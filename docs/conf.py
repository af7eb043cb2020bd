"""The documentation site: `tox -e docs` builds it into .tox/docs/site."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from harp_plugin import __version__
from harp_plugin.commands.schema import parsers
from harp_plugin.options_parser import ABOUT, read_recipe, recipe_names

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
ROOT = HERE.parent

project = "harp_plugin"
copyright = "the authors of harp_plugin"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"harp_plugin {__version__}"
html_static_path = ["figures"]
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 4

# Docstrings write names of Python in single backticks, and code in double ones.
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

_OUTSIDE = {
    "../benchmarks/RESULTS.md": "measured.md",
    "../README.md": "index.md",
    "../CHANGELOG.md": "changes.md",
}
_INCLUDED = {"measured": "../benchmarks/RESULTS.md", "changes": "../CHANGELOG.md"}


def _write_pages() -> None:
    """Write the pages that are made from the package, where they changed."""
    from options_page import options_page

    commands = ["# Commands", ""]
    commands += [
        "All options, as the commands know them. A recipe, in JSON or YAML, names them so;"
    ]
    commands += ["a flag has dashes: `--output-dir`.", ""]
    commands += [options_page(name, parser) for name, parser in parsers().items()]
    _write("reference/commands.md", "\n".join(commands))
    recipes = ["# Recipes of the package", ""]
    recipes += ["Each is found by its name: `harp train harp-bert-base-wikipedia`.", ""]
    for name in recipe_names():
        recipe = read_recipe(name)
        about = recipe.pop(ABOUT, "")
        body = json.dumps(recipe, indent=2, ensure_ascii=False)
        recipes += [f"## {name}", "", about, "", "```json", body, "```", ""]
    _write("reference/recipes.md", "\n".join(recipes))
    for page, source in _INCLUDED.items():
        _write(f"{page}.md", (HERE / source).read_text(encoding="utf-8"))


def _write(name: str, text: str) -> None:
    path = HERE / name
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _mend_links(app: object, page: str, source: list[str]) -> None:
    """Point links that leave the folder of the documentation at the pages of the site."""
    text = source[0]
    for outside, inside in _OUTSIDE.items():
        text = text.replace(f"]({outside}", f"]({inside}")
    text = re.sub(r"\]\(\.\./recipes/([\w-]+)\.json\)", r"](reference/recipes.md#\1)", text)
    if page in _INCLUDED:
        text = re.sub(r"\]\((?:\.\./)?docs/([\w/-]+\.md)", r"](\1", text)
    source[0] = text


def _signature(app: object, what: str, name: str, thing: Any, *_: object) -> tuple[str, str] | None:
    """Show how a class is made where its base class hides it by ``__new__``."""
    if what != "class":
        return None
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return None
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    empty = inspect.Signature.empty
    return str(signature.replace(parameters=plain, return_annotation=empty)), ""


def setup(app: object) -> None:
    """Make the generated pages, and rewrite links as pages are read."""
    _write_pages()
    app.connect("autodoc-process-signature", _signature)  # type: ignore[attr-defined]
    app.connect("source-read", _mend_links)  # type: ignore[attr-defined]

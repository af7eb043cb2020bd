"""Recipes: files of options in JSON or YAML, and those that the package carries."""

from __future__ import annotations

import difflib
import json
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from .errors import HarpError

__all__ = ["ABOUT", "FOR_EDITORS", "SCHEMA", "read_recipe", "recipe_folder", "recipe_names"]

ABOUT = "about"
"""Key of a recipe for a remark to its reader."""
FOR_EDITORS = "$schema"
"""Key of a recipe for the JSON schema by which an editor helps; nothing else reads it."""
SCHEMA = "recipe.schema.json"
"""Name of the file of the JSON schema, beside the package's recipes."""
_LARGEST_FILE = 16 << 20
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_YAML = ".yaml", ".yml"


def read_recipe(name: str) -> dict[str, Any]:
    """Read a recipe: a JSON or YAML file, or the name of one that the package carries.

    A file is YAML 1.2 where its name ends in ``.yaml`` or ``.yml``, so that ``1e-4`` is a number
    and ``no`` is a text.

    Raises:
        HarpError: there is none, or it is no object of options.
    """
    path = Path(name)
    try:
        if not path.is_file():
            path = _of_the_package(path)
        if not path.is_file():
            raise HarpError(f"no recipe {name}: {_hint(name)}")
        if path.stat().st_size > _LARGEST_FILE:
            raise HarpError(f"{name} is over {_LARGEST_FILE >> 20} MiB: name a recipe")
        text = path.read_text(encoding="utf-8-sig")
        return _parsed(_as_json(text) if path.suffix.lower() in _YAML else text)
    except RecursionError as error:
        raise HarpError(f"{name} is nested too deeply: mend it") from error
    except OSError as error:
        raise HarpError(f"{name} cannot be read ({error.strerror}): check it") from error
    except ValueError as error:
        raise HarpError(f"{name} is no recipe ({error}): mend it") from error


def _hint(name: str) -> str:
    close = difflib.get_close_matches(name.removesuffix(".json"), recipe_names(), n=1)
    if close:
        return f"did you mean {close[0]}? Or name a file that exists"
    return f"name a file, or one of {', '.join(recipe_names())}"


def _of_the_package(path: Path) -> Path:
    """Where the recipe of this name would lie, whatever folder stands before it."""
    name = path.as_posix().removesuffix(".json")
    known = (known for known in recipe_names() if f"/{name}".endswith(f"/{known}"))
    return recipe_folder() / f"{next(known, path.name)}.json"


def _as_json(text: str) -> str:
    """Write YAML as JSON.

    Raises:
        ValueError: it is no YAML, or holds what JSON has no type for.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return json.dumps(YAML(typ="safe", pure=True).load(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark else ""
        raise ValueError(f"{error.problem or error.context}{place}") from error
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except TypeError as error:
        raise ValueError(f"{error}: write it in quotation marks") from error


def _parsed(text: str) -> dict[str, Any]:
    """One JSON object, in which nothing stands that would be used in silence.

    Raises:
        ValueError: it is none, or a key stands twice, a number is not finite or too large, or a
            text holds what no file name can.
        RecursionError: it is nested too deeply.
    """
    recipe = json.loads(
        text, object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite
    )
    if not isinstance(recipe, dict):
        raise ValueError("it must be one object of options")
    _check_texts(recipe)
    recipe.pop(FOR_EDITORS, None)
    return recipe


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r:.60} is no finite number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r:.60} stands in it twice")
    return found


def _check_texts(value: Any) -> None:
    if isinstance(value, str) and _NO_TEXT.search(value):
        raise ValueError(f"{value!r:.60} holds a NUL character or half a surrogate pair")
    for part in value if isinstance(value, list | dict) else ():
        _check_texts(part)
        if isinstance(value, dict):
            _check_texts(value[part])


def recipe_names() -> list[str]:
    """List the recipes of the package."""
    folder = recipe_folder()
    every = (path.relative_to(folder) for path in folder.rglob("*.json"))
    return sorted(path.with_suffix("").as_posix() for path in every if path.name != SCHEMA)


def recipe_folder() -> Path:
    """Where the package's recipes lie, and their JSON schema."""
    return Path(str(files("harp_plugin"))) / "recipes"

"""`harp schema`: the options of all commands, as a JSON schema, and their help."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from ..options import Options, is_enum, json_schema, union_members
from ..options_parser import ABOUT, FOR_EDITORS, Command, Option, OptionsParser
from . import COMMANDS, load

__all__ = ["help_texts", "parsers", "recipe_schema"]

_DRAFT = "http://json-schema.org/draft-07/schema#"


def parsers() -> dict[str, OptionsParser]:
    """Return what reads the options of each command that has any, by its name."""
    every = {name: load(name).parser(name, COMMANDS[name]) for name in COMMANDS}
    return {name: parser for name, parser in every.items() if parser.options}


def recipe_schema(commands: Mapping[str, OptionsParser]) -> dict[str, Any]:
    """Describe what recipes may hold, for editors that complete and check JSON and YAML.

    Args:
        commands: the parser of each command, by its name.

    Returns:
        A JSON schema of draft 7, which most editors know. A recipe fits it if it fits one command.
        Options that several commands have alike stand in it once.
    """
    shared: dict[str, dict[str, Any]] = {}
    branches = []
    for command, parser in commands.items():
        properties: dict[str, Any] = {name: {"type": "string"} for name in (ABOUT, FOR_EDITORS)}
        for option in filter(attrgetter("in_recipes"), parser.options):
            place = _shared(option, shared)
            for name in (option.name, *option.names):
                properties[name] = {"$ref": f"#/definitions/{place}"}
        branch = {"title": f"harp {command}", "type": "object", "properties": properties}
        branches.append({**branch, "additionalProperties": False})
    named = {"$schema": _DRAFT, "title": "A recipe of harp"}
    return {**named, "anyOf": branches, "definitions": shared}


def _shared(option: Option, shared: dict[str, dict[str, Any]]) -> str:
    """Return the name under which an option's schema stands among all; it is added if missing."""
    own = _schema(option)
    place, number = option.name, 1
    while shared.setdefault(place, own) != own:
        number += 1
        place = f"{option.name}_{number}"
    return place


def _schema(option: Option) -> dict[str, Any]:
    if any(is_enum(kind) for kind in union_members(option.kind)):
        schema: dict[str, Any] = {"enum": [*option.choices]}
    else:
        schema = json_schema(option.kind)
    return {"description": option.help, **schema} if option.help else schema


def help_texts() -> dict[str, str]:
    """Return the help of each command, by its name."""
    return {
        name: load(name).parser(name, summary).format_help() for name, summary in COMMANDS.items()
    }


@dataclass(kw_only=True)
class SchemaOptions(Options):
    """What is printed.

    Attributes:
        kind: The schema of recipes, or the help of all commands as the package stores it.
    """

    kind: Literal["recipes", "help"] = "recipes"


@Command("", SchemaOptions)
def command(options: SchemaOptions) -> None:
    """An editor that knows it completes and checks the options of a recipe, in JSON or YAML."""
    printed = help_texts() if options.kind == "help" else recipe_schema(parsers())
    print(json.dumps(printed, indent=1, ensure_ascii=False))

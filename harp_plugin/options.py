"""Options of a command: dataclasses read from flags, from one JSON recipe, or from both."""

from __future__ import annotations

import difflib
import json
from argparse import SUPPRESS, Action, ArgumentDefaultsHelpFormatter, ArgumentError, Namespace
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from transformers.hf_argparser import HfArgumentParser

from .errors import HarpError

ABOUT = "about"
"""Key of a recipe for a remark to its reader."""


class OptionsParser(HfArgumentParser):
    """Reads dataclasses from flags and a recipe, as Tevatron's own drivers do.

    A flag wins over the recipe, the recipe over the default. Every key of the recipe must be known.

    Args:
        dataclasses: the options; each field's help is its ``metadata["help"]``.
        prog: the command as typed, such as ``harp build``.
        description: what the command does.
        arguments: the positional arguments as the usage line shows them.
        shown: names of the options that ``--help`` shows; None for all.
    """

    def __init__(
        self,
        dataclasses: Sequence[Any],
        prog: str,
        description: str,
        arguments: str = "",
        shown: frozenset[str] | None = None,
    ) -> None:
        self._names = {f.name for options in dataclasses for f in fields(options) if f.init}
        self._count = len(dataclasses)
        super().__init__(
            list(dataclasses),
            prog=prog,
            usage=f"{prog} {arguments}[--option value ...]",
            description=description,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        for action in self._actions:
            if shown is not None and action.dest in self._names - shown:
                action.help = SUPPRESS

    def error(self, message: str) -> Any:
        """Turn a usage error into a `HarpError`."""
        raise HarpError(f"{message} (see `{self.prog} --help`)")

    def read(self, argv: Sequence[str], recipe: str | None = None) -> tuple[Any, ...]:
        """Parse flags over a recipe.

        Returns:
            One object per dataclass, then the namespace of arguments added besides them.

        Raises:
            HarpError: a flag or a key of the recipe is unknown or has a wrong value.
        """
        if recipe is not None:
            self._take(read_recipe(recipe), recipe)
        try:
            *options, unknown = self.parse_args_into_dataclasses(
                list(argv), look_for_args_file=False, return_remaining_strings=True
            )
        except ArgumentError as error:
            raise HarpError(str(error)) from error
        if unknown:
            flag = unknown[0].partition("=")[0]
            name = flag.lstrip("-").replace("-", "_")
            raise HarpError(f"unknown argument {flag}: {self._hint(name, '--')}")
        rest = () if len(options) > self._count else (Namespace(),)
        return (*options, *rest)

    def _hint(self, name: str, dashes: str = "") -> str:
        close = difflib.get_close_matches(name, self._names, n=1)
        return f"did you mean {dashes}{close[0]}?" if close else f"see `{self.prog} --help`"

    def _take(self, values: dict[str, Any], recipe: str) -> None:
        values = {key: value for key, value in values.items() if key != ABOUT}
        for key in values:
            if key not in self._names:
                raise HarpError(f"{recipe}: unknown key {key!r}: {self._hint(key)}")
        for action in self._actions:
            if action.dest in values:
                _check(action, values[action.dest], recipe)
                action.required = False
        self.set_defaults(**values)


class _Formatter(ArgumentDefaultsHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _get_help_string(self, action: Action) -> str | None:
        if action.default in (None, [], SUPPRESS) or "efault" in (action.help or ""):
            return action.help
        return super()._get_help_string(action)

    def _format_action_invocation(self, action: Action) -> str:
        """Show ``--min-words VALUE`` only; ``--min_words`` works as well."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        dashed = [option for option in action.option_strings if "_" not in option]
        name = (dashed or action.option_strings)[0]
        if action.choices:
            return f"{name} {'|'.join(map(str, action.choices))}"
        more = " ..." if action.nargs in ("+", "*") else ""
        return f"{name} {'true|false' if action.nargs == '?' else 'VALUE'}{more}"


def _check(action: Action, value: Any, recipe: str) -> None:
    """Check a recipe's value as argparse checks a flag's."""
    several = action.nargs in ("+", "*")
    if several and not isinstance(value, list):
        raise HarpError(f"{recipe}: {action.dest} must be a list, not {value!r:.60}")
    for one in value if several else [value]:
        if isinstance(one, str) and action.choices and one not in action.choices:
            known = ", ".join(map(str, action.choices))
            raise HarpError(f"{recipe}: {action.dest} is {one!r}: known are {known}")
        wrong = {int: (bool, str, float), float: (bool, str)}.get(action.type)  # type: ignore[call-overload]
        if wrong and isinstance(one, wrong) and not (isinstance(one, float) and one.is_integer()):
            raise HarpError(f"{recipe}: {action.dest} must be a number, not {one!r:.60}")


def read_recipe(name: str) -> dict[str, Any]:
    """Read a recipe: a JSON file, or the name of one that the package carries.

    Raises:
        HarpError: there is none, or it is no JSON object.
    """
    path = Path(name)
    if not path.is_file():
        path = recipe_folder() / f"{path.name.removesuffix('.json')}.json"
    if not path.is_file():
        known = sorted(recipe.stem for recipe in recipe_folder().glob("*.json"))
        raise HarpError(f"no recipe {name}: name a JSON file, or one of {', '.join(known)}")
    try:
        recipe = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise HarpError(f"{name} is not JSON ({error}): mend it") from error
    if not isinstance(recipe, dict):
        raise HarpError(f"{name} must be one JSON object of options")
    return recipe


def recipe_folder() -> Path:
    """Where the package's recipes lie."""
    return Path(str(files("harp_plugin"))) / "recipes"

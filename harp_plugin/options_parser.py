"""Reads the options of a command from flags, from a recipe, or from both."""

from __future__ import annotations

import difflib
from argparse import (
    SUPPRESS,
    Action,
    ArgumentError,
    ArgumentParser,
    ArgumentTypeError,
    HelpFormatter,
    Namespace,
)
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import Field, fields
from itertools import takewhile
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from transformers.hf_argparser import HfArgumentParser, string_to_bool

from .errors import HarpError
from .options import checked, flag, option_types, union_members
from .recipe_files import ABOUT, read_recipe

__all__ = ["Option", "OptionsParser"]


class Option(NamedTuple):
    """One option of a command.

    Attributes:
        name: as a recipe has it.
        names: the further names under which it is accepted.
        kind: the type of its value in a recipe.
        choices: the values that a text may be; empty for any.
        help: what it does, with its default.
        shown: whether ``--help`` shows it, and not ``--help-all`` alone.
        required: whether the command needs it.
    """

    name: str
    names: tuple[str, ...]
    kind: Any
    choices: tuple[Any, ...]
    help: str
    shown: bool
    required: bool


class OptionsParser(HfArgumentParser):
    """Reads dataclasses from flags and a recipe, as Tevatron's own drivers do.

    A flag wins over the recipe, the recipe over the default. Every key of the recipe must be known.
    A flag is shown with dashes and is accepted with underscores too.

    Args:
        dataclasses: the options, as `harp_plugin.options` declares them.
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
        self._types: dict[str, Any] = {}
        self._aliases: dict[str, str] = {}
        for options in dataclasses:
            self._types |= option_types(options)
            for option in fields(options):
                aliases = option.metadata.get("aliases", ())
                self._aliases |= {name.lstrip("-"): option.name for name in aliases}
        self._count = len(dataclasses)
        super().__init__(
            list(dataclasses),
            prog=prog,
            usage=f"{prog} {arguments}[--option value ...]",
            description=description,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        self._help = {action.dest: action.help or "" for action in self._actions}
        for action in self._actions:
            if shown is not None and action.dest in self._types.keys() - shown:
                action.help = SUPPRESS

    @staticmethod
    def _parse_dataclass_field(parser: ArgumentParser, field: Field[Any]) -> None:
        """Add the flag of an option whose type argparse or transformers cannot read."""
        field = copy(field)
        members = {kind for kind in union_members(field.type) if kind is not NoneType}
        lists = [kind for kind in members if get_origin(kind) is list]
        if len(members) > 1:
            field.type = str | None
            if bool in members:
                field.type = _true_false_or_text
                settings = {"nargs": "?", "const": True, **field.metadata}
                field.metadata = settings  # type: ignore[assignment]
        elif lists and not isinstance(item := get_args(lists[0])[0], type):
            field.type = list[str]
            if get_origin(item) is Literal:
                settings = {**field.metadata, "choices": list(get_args(item))}
                field.metadata = settings  # type: ignore[assignment]
        HfArgumentParser._parse_dataclass_field(parser, field)

    def add_argument(self, *names: Any, **settings: Any) -> Action:
        """Add an argument; a person is shown its first name, with dashes.

        A flag that is true or false may stand without a value, and is true then.
        """
        if settings.get("type") is string_to_bool:
            settings = {"nargs": "?", "const": True, **settings}
        action = super().add_argument(*names, **settings)
        if names[0].startswith("--"):
            action.option_strings = [flag(names[0].lstrip("-"))]
        return action

    @property
    def options(self) -> list[Option]:
        """The options that a recipe may have, in the order of their dataclasses."""
        return [
            Option(
                action.dest,
                tuple(name for name, own in self._aliases.items() if own == action.dest),
                self._types[action.dest],
                tuple(action.choices or ()),
                _with_default(action, self._help[action.dest]).replace("%%", "%"),
                action.help is not SUPPRESS,
                action.required,
            )
            for action in self._actions
            if action.dest in self._types
        ]

    def error(self, message: str) -> Any:
        """Turn a usage error into a `HarpError`."""
        raise HarpError(f"{message} (see `{self.prog} --help`)")

    def read(self, argv: Sequence[str], recipe: str | None = None) -> tuple[Any, ...]:
        """Parse flags over a recipe.

        Returns:
            One object per dataclass, then the namespace of arguments added besides them.

        Raises:
            HarpError: a flag or a key of the recipe is unknown or has a wrong value, or the values
                do not go together.
        """
        if recipe is not None:
            self._take(read_recipe(recipe), recipe)
        self._refuse_unknown(argv)
        try:
            *options, unknown = self.parse_args_into_dataclasses(
                list(argv),
                look_for_args_file=False,
                return_remaining_strings=True,
            )
        except ArgumentError as error:
            raise HarpError(str(error)) from error
        except (ValueError, TypeError, OverflowError, OSError, ImportError) as error:
            place = "the options" if recipe is None else f"{recipe} and the flags"
            reason = " ".join(str(error).split())
            raise HarpError(f"{place} do not make sense ({reason}): mend them") from error
        if unknown:
            raise self._unknown(unknown[0])
        rest = () if len(options) > self._count else (Namespace(),)
        return (*options, *rest)

    def _refuse_unknown(self, arguments: Sequence[str]) -> None:
        """Refuse a flag that there is not, before a needed one is missed in its place."""
        for argument in takewhile(lambda argument: argument != "--", arguments):
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                raise self._unknown(argument)

    def _unknown(self, argument: str) -> HarpError:
        typed = argument.partition("=")[0]
        name = typed.lstrip("-").replace("-", "_")
        return HarpError(f"unknown argument {typed}: {self._hint(name, flag)}")

    @staticmethod
    def value_of(name: str, argv: Sequence[str]) -> str | None:
        """The value of one flag, before the others are read."""
        parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        parser.add_argument(name, dest="value", nargs="?")
        return parser.parse_known_args(argv)[0].value

    def _hint(self, name: str, written: Callable[[str], str] = str) -> str:
        close = difflib.get_close_matches(name, self._types, n=1)
        return f"did you mean {written(close[0])}?" if close else f"see `{self.prog} --help`"

    def _take(self, values: dict[str, Any], recipe: str) -> None:
        about = values.pop(ABOUT, "")
        if not isinstance(about, str):
            raise HarpError(f"{recipe}: {ABOUT} is {about!r:.60}: it must be a text")
        values = {self._aliases.get(key, key): value for key, value in values.items()}
        for key in values:
            if key not in self._types:
                raise HarpError(f"{recipe}: unknown key {key!r:.60}: {self._hint(key)}")
        for action in self._actions:
            if (name := action.dest) in values:
                values[name] = checked(
                    f"{recipe}: {name}", self._types[name], values[name], [*(action.choices or ())]
                )
                action.required = False
        self.set_defaults(**values)


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _get_help_string(self, action: Action) -> str | None:
        return _with_default(action, action.help or "")

    def _format_action_invocation(self, action: Action) -> str:
        """Show ``--min-words VALUE``, and a choice's values in place of ``VALUE``."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        name = action.option_strings[0]
        if action.choices:
            return f"{name} {'|'.join(map(str, action.choices))}"
        more = " ..." if action.nargs in ("+", "*") else ""
        value = "true|false" if action.nargs == "?" else "VALUE"
        return f"{name} {action.metavar or value}{more}"


def _with_default(action: Action, text: str) -> str:
    """Add the default of an option to its help, as it is written after the flag."""
    default = action.default
    if default in (None, [], "", SUPPRESS) or "efault" in text:
        return text
    values = default if isinstance(default, list) else [default]
    words = " ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values)
    return f"{text} (default: {words.replace('%', '%%')})"


def _true_false_or_text(text: str) -> bool | str:
    try:
        return string_to_bool(text)
    except ArgumentTypeError:
        return text

"""Options of a command: dataclasses read from flags, from a recipe, or from both."""

from __future__ import annotations

import difflib
import math
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
from dataclasses import fields
from enum import Enum
from itertools import takewhile
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from transformers.hf_argparser import HfArgumentParser, string_to_bool

from .errors import HarpError
from .option_names import OptionNames, flag
from .recipe_files import ABOUT, read_recipe
from .work.store_names import local_values

__all__ = ["Option", "OptionsParser"]

_LARGEST = 2**63
_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "null",
}


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
    A flag is shown with dashes and is accepted with underscores too. The names that an option had
    before, or has in other projects, are accepted as `harp_plugin.option_names` says.

    Args:
        dataclasses: the options; each field's help is its ``metadata["help"]``. A class variable
            ``advice`` has what an error adds about an option whose value is not known, by its name.
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
        self._types = _recipe_types(dataclasses)
        self._option_names = OptionNames(dataclasses)
        self._count = len(dataclasses)
        self._advice: dict[str, str] = {}
        for options in dataclasses:
            self._advice |= getattr(options, "advice", {})
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
            if action.type is float:
                action.type = _number
            if shown is not None and action.dest in self._types.keys() - shown:
                action.help = SUPPRESS

    def add_argument(self, *names: Any, **settings: Any) -> Action:
        """Add an argument; of a flag's names a person is shown the present one, with dashes.

        A flag that is true or false may stand without a value, and is true then.
        """
        if settings.get("type") is string_to_bool:
            settings = {"nargs": "?", "const": True, **settings}
        action = super().add_argument(*names, **settings)
        shown = map(self._option_names.shown_flag, action.option_strings)
        action.option_strings = list(dict.fromkeys(shown))
        return action

    @property
    def options(self) -> list[Option]:
        """The options that a recipe may have, in the order of their dataclasses."""
        return [
            Option(
                action.dest,
                self._option_names.others(action.dest),
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
            HarpError: a flag or a key of the recipe is unknown or has a wrong value, an option is
                given under two names, or the values do not go together.
        """
        if recipe is not None:
            values = local_values(read_recipe(recipe))
            self._take(self._option_names.values(values, f"{recipe}: "), recipe)
        arguments = self._option_names.arguments(argv)
        self._refuse_unknown(arguments)
        try:
            *options, unknown = self.parse_args_into_dataclasses(
                arguments,
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

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            message = error.message + self._advice.get(action.dest, "")
            raise ArgumentError(action, message) from None

    def _hint(self, name: str, written: Callable[[str], str] = str) -> str:
        close = difflib.get_close_matches(name, self._types, n=1)
        return f"did you mean {written(close[0])}?" if close else f"see `{self.prog} --help`"

    def _take(self, values: dict[str, Any], recipe: str) -> None:
        about = values.pop(ABOUT, "")
        if not isinstance(about, str):
            raise HarpError(f"{recipe}: {ABOUT} is {about!r:.60}: it must be a text")
        for key in values:
            if key not in self._types:
                raise HarpError(f"{recipe}: unknown key {key!r:.60}: {self._hint(key)}")
        for action in self._actions:
            if action.dest in values:
                kind = self._types[action.dest]
                advice = self._advice.get(action.dest, "")
                values[action.dest] = _check(action, kind, values[action.dest], recipe, advice)
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


class _NoNumber(ArgumentTypeError, ValueError):
    pass


def _recipe_types(dataclasses: Sequence[Any]) -> dict[str, Any]:
    """The type that a recipe's value of each option must have.

    An option of the type ``Annotated[A, B]`` is of type A as a flag, and of type B in a recipe.
    """
    types: dict[str, Any] = {}
    for options in dataclasses:
        hints = get_type_hints(options, include_extras=True)
        for option in fields(options):
            kind = hints[option.name]
            if get_origin(kind) is Annotated:
                kind = get_args(kind)[1]
            if option.init:
                types[option.name] = kind | None if option.default is None else kind
    return types


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _NoNumber(f"{text!r:.60} is no finite number")
    return number


def _check(action: Action, kind: Any, value: Any, recipe: str, advice: str = "") -> Any:
    """Check a recipe's value by the option's type and choices.

    Returns:
        The value; a whole number for one such as 1e5, where the option is one.

    Raises:
        HarpError: the value is of another type, too large, or none of the choices.
    """
    if not _fits(value, kind):
        words = _words(kind)
        raise HarpError(f"{recipe}: {action.dest} is {value!r:.60}: it must be {words}{advice}")
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and action.choices and one not in action.choices:
            known = ", ".join(map(str, action.choices))
            raise HarpError(f"{recipe}: {action.dest} is {one!r:.60}: known are {known}{advice}")
    return int(value) if isinstance(value, float) and not _fits(value, kind, whole=False) else value


def _fits(value: Any, kind: Any, *, whole: bool = True) -> bool:
    """Whether a value of JSON is of a type; ``whole`` takes 1e5 for a whole number."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        # transformers writes `SchedulerType | str` where only the names of the first are known.
        named = any(isinstance(one, type) and issubclass(one, Enum) for one in inner)
        return any(_fits(value, one, whole=whole) for one in inner if not (named and one is str))
    if origin is Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(_fits(one, inner[0], whole=False) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(one, inner[1], whole=False) for one in value.values()
        )
    if kind is float or kind is int:
        return _is_number(value, fraction=kind is float, whole=whole)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value in [member.value for member in kind]
    return isinstance(kind, type) and isinstance(value, kind)


def _is_number(value: Any, *, fraction: bool, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= _LARGEST:
        return isinstance(value, float) and fraction
    return isinstance(value, int) or fraction or (whole and value.is_integer())


def _words(kind: Any) -> str:
    """A type in the words of JSON."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is list or kind is list:
        return f"a list, each {_words(inner[0])}" if inner else "a list"
    if origin is dict or kind is dict:
        return "an object"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return _WORDS.get(kind, "left out")

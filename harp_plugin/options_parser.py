"""Commands of `harp`, and their options: read from flags, from a recipe, or from both.

A file of `harp_plugin.commands` declares its command so::

    @Command("DIR --output-dir DIR", ExportOptions, DrawOptions, positional=BUILD)
    def command(options: ExportOptions, draw: DrawOptions, directory: str) -> None:
        \"\"\"Pairs are drawn from a build and written as JSON lines.\"\"\"
        show(f"dataset: {export(directory, options, draw)}")
"""

from __future__ import annotations

import difflib
import json
import math
import re
from argparse import (
    SUPPRESS,
    Action,
    ArgumentError,
    ArgumentParser,
    ArgumentTypeError,
    HelpFormatter,
    Namespace,
)
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import Field, fields
from importlib.resources import files
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from docstring_parser import DocstringStyle, parse
from transformers.hf_argparser import HfArgumentParser, string_to_bool

from .errors import HarpError, folded
from .options import (
    Device,
    Options,
    Overwriting,
    Progress,
    Ranks,
    Workers,
    checked,
    flag,
    is_enum,
    option_types,
    union_members,
)
from .work.processes import folder_of_workers

__all__ = [
    "ABOUT",
    "BUILD",
    "FOR_EDITORS",
    "RECIPE",
    "SCHEMA",
    "SOURCES",
    "Command",
    "Option",
    "OptionsParser",
    "option_help",
    "options_from",
    "read_recipe",
    "recipe_folder",
    "recipe_names",
    "recipe_values",
]

ABOUT = "about"
"""Key of a recipe for a remark to its reader."""
FOR_EDITORS = "$schema"
"""Key of a recipe for the JSON schema by which an editor helps; nothing else reads it."""
SCHEMA = "recipe.schema.json"
"""Name of the file of the JSON schema, next to the package's recipes."""
_LARGEST_FILE = 256 << 10
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_YAML = ".yaml", ".yml"
_FEW_OPTIONS = 20
"""An error about an unknown option lists the known ones where there are no more than these."""
_LONGEST_CHOICES = 48
"""Characters of choices that help shows next to the name of an option."""

BUILD = {"metavar": "DIR", "help": "Folder that `harp build` wrote."}
RECIPE = {
    "metavar": "RECIPE",
    "nargs": "?",
    "help": "JSON or YAML file, or the name of a recipe of the package; flags can say all instead.",
}
SOURCES = {"metavar": "SOURCE", "nargs": "*", "help": "File, folder or irds:COLLECTION to read."}


_COMMON = (Workers, Device, Ranks, Progress, Overwriting)
"""Options that the help of a command lists after its own."""


class Command:
    """A sub-command, and the decorator that makes it of its function.

    The function takes an object of each dataclass, then the argument without a flag; it returns its
    exit status where that may be another than 0. Its docstring is a part of the help.

    Args:
        usage: the arguments that it needs.
        dataclasses: its options.
        positional: the argument that has no flag, as `add_argument` takes it.
        shown: names of the options that ``--help`` shows, where ``--help-all`` shows all.
        trains: whether it starts processes that load data for training.
    """

    run: Callable[..., int | None]
    help: str

    def __init__(
        self,
        usage: str,
        *dataclasses: type,
        positional: dict[str, Any] | None = None,
        shown: frozenset[str] | None = None,
        trains: bool = False,
    ) -> None:
        self.usage = f"{usage} " if usage else ""
        self.dataclasses = dataclasses
        self.positional = positional
        self.shown = shown
        self.trains = trains

    def __call__(self, run: Callable[..., int | None]) -> Command:
        self.run, self.help = run, cleandoc(run.__doc__ or "")
        return self

    def parser(self, name: str, summary: str, *, shows_all: bool = False) -> OptionsParser:
        """Return what reads the options and all other arguments.

        Args:
            name: of the command.
            summary: the sentence that stands before its help.
            shows_all: whether ``--help`` shows all options.
        """
        shown = None if shows_all else self.shown
        help = f"{summary} {self.help}"
        parser = OptionsParser(self.dataclasses, f"harp {name}", help, self.usage, shown)
        if self.shown is not None:
            parser.add_argument("--help-all", action="help", help="Show every option and exit.")
        if self.positional is not None:
            parser.add_argument("positional", **self.positional)
        if self.positional is not RECIPE:
            parser.add_argument("--recipe", help="JSON or YAML file with any of these options.")
        return parser

    def main(self, argv: list[str], name: str, summary: str) -> int:
        """Read flags and recipe, run the command, and return its exit status.

        Args:
            argv: the arguments after the name of the command.
            name: of the command.
            summary: the sentence that stands before its help.

        Raises:
            HarpError: an argument or a key of the recipe is unknown or has a wrong value, or the
                command raises the error.
        """
        parser = self.parser(name, summary, shows_all="--help-all" in argv)
        if self.positional is RECIPE:
            recipe = argv[0] if argv and not argv[0].startswith("-") else None
        else:
            flags = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
            flags.add_argument("--recipe", nargs="?")
            recipe = flags.parse_known_args(argv)[0].recipe
        *options, rest = parser.read(argv, recipe)
        if self.positional is RECIPE and rest.positional != recipe:
            raise HarpError(f"{rest.positional} stands after a flag: write the recipe first")
        if self.positional not in (None, RECIPE):
            options.append(rest.positional)
        with folder_of_workers() if self.trains else nullcontext():
            return self.run(*options) or 0


class Option(NamedTuple):
    """One option of a command.

    Attributes:
        name: as a recipe has it.
        names: the further names under which it is accepted.
        kind: the type of its value in a recipe.
        choices: the values that a text may be; empty for any.
        help: what it does, with its default.
        shown: whether ``--help`` shows it, and not ``--help-all`` alone.
        in_recipes: whether a recipe may give it.
    """

    name: str
    names: tuple[str, ...]
    kind: Any
    choices: tuple[Any, ...]
    help: str
    shown: bool
    in_recipes: bool


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
        self._dataclasses = dataclasses
        self._types = {name: kind for o in dataclasses for name, kind in option_types(o).items()}
        super().__init__(
            list(dataclasses),
            prog=prog,
            usage=f"{prog} {arguments}[--option value ...]",
            description=description,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        documented = {name: text for o in dataclasses for name, text in option_help(o).items()}
        self._help = {a.dest: documented.get(a.dest, a.help or "") for a in self._actions}
        for action in self._actions:
            action.help = self._help[action.dest]
            if action.nargs == 0 and action.dest in self._types:
                action.help = f"The same as {flag(action.dest)} false."
            if shown is not None and action.dest in self._types.keys() - shown:
                action.help = SUPPRESS
        self._group()

    def _group(self) -> None:
        """Show options in groups by the class that declares them, and the common ones last."""
        common = {option.name for kind in _COMMON for option in fields(kind)}
        rest = self._optionals._group_actions
        for options in self._dataclasses:
            kinds = [kind for kind in options.__mro__ if issubclass(kind, Options)]
            declared = {option.name: options for option in fields(options)}
            declared |= {name: kind for kind in reversed(kinds) for name in kind.__annotations__}
            for kind in kinds:
                of_kind = {name for name, by in declared.items() if by is kind} - common
                group = self.add_argument_group(re.split("[.;:]", kind.__doc__ or "")[0])
                group._group_actions += (action for action in rest if action.dest in of_kind)
                rest[:] = (action for action in rest if action.dest not in of_kind)
        self._action_groups.remove(self._optionals)
        self._action_groups.append(self._optionals)
        self._optionals.title = "other options"

    @staticmethod
    def _parse_dataclass_field(parser: ArgumentParser, field: Field[Any]) -> None:
        """Add the flag of an option whose type argparse or transformers cannot read."""
        field = copy(field)
        members = {kind for kind in union_members(field.type) if kind is not NoneType}
        lists = [kind for kind in members if get_origin(kind) is list]
        has_object = any(get_origin(kind) is dict for kind in members)
        if lists and has_object:
            field.type = lists[0]
        elif has_object or (len(members) > 1 and not any(map(is_enum, members))):
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
        """The options, in the order of their dataclasses."""
        only_flags = _only_flags(self._dataclasses)
        aliases = _aliases(self._dataclasses)
        return [
            Option(
                action.dest,
                tuple(name for name, own in aliases.items() if own == action.dest),
                self._types[action.dest],
                tuple(action.choices or ()),
                _with_default(action, self._help[action.dest]).replace("%%", "%"),
                action.help is not SUPPRESS,
                action.dest not in only_flags,
            )
            for action in self._actions
            if action.dest in self._types and action.nargs != 0
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
        where = "the flags"
        if recipe is not None:
            where = f"{recipe} and the flags"
            values = recipe_values(read_recipe(recipe), self._dataclasses, recipe)
            self.set_defaults(**values)
            for action in self._actions:
                action.required = action.required and action.dest not in values
        takes_words = any(a.dest == "positional" and a.nargs in ("+", "*") for a in self._actions)
        end = argv.index("--") if takes_words and "--" in argv else len(argv)
        argv, literal = argv[:end], argv[end + 1 :]
        self._refuse_unknown(argv)
        try:
            with _sense(where):
                *options, unknown = self.parse_args_into_dataclasses(
                    self._with_truths(argv, takes_words=takes_words),
                    look_for_args_file=False,
                    return_remaining_strings=True,
                )
        except ArgumentError as error:
            raise HarpError(str(error)) from error
        rest = options.pop() if len(options) > len(self._dataclasses) else Namespace()
        words = getattr(rest, "positional", None)
        if isinstance(words, list) and not any(word.startswith("-") for word in unknown):
            words += [*unknown, *literal]  # argparse gives those after a flag apart
        elif unknown:
            raise self._unknown(unknown[0])
        return (*options, rest)

    def _with_truths(self, argv: Sequence[str], *, takes_words: bool) -> list[str]:
        """Write ``--flag`` as ``--flag=true`` where neither true nor false follows.

        argparse would take the next word, such as a query, as the value of the flag. Where words
        follow, ``no`` and the like are words.
        """
        words = list(argv)
        end = words.index("--") if "--" in words else len(words)
        for place, word in enumerate(words[:end]):
            action = self._option_string_actions.get(word)
            following = "".join(words[place + 1 : place + 2])
            if action is None or action.type is not string_to_bool:
                continue
            is_word = takes_words and following.lower() not in ("true", "false")
            if is_word or not isinstance(_true_false_or_text(following), bool):
                words[place] = f"{word}=true"
        return words

    def _refuse_unknown(self, arguments: Sequence[str]) -> None:
        """Refuse a flag that there is not, before a needed one is missed in its place."""
        for argument in takewhile(lambda argument: argument != "--", arguments):
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                raise self._unknown(argument)

    def _unknown(self, argument: str) -> HarpError:
        typed = argument.partition("=")[0]
        name = typed.lstrip("-").replace("-", "_")
        nearest = _nearest(name, self._types, flag) or f" (see `{self.prog} --help`)"
        return HarpError(f"unknown argument {typed}{nearest}")


def option_help(options: type) -> dict[str, str]:
    """Return what each option does, by its name, from the docstrings of a class and its bases.

    Args:
        options: a class of `harp_plugin.options.Options`. Options that it has of other libraries
            are left out.
    """
    classes = [base for base in reversed(options.__mro__) if issubclass(base, Options)]
    return {
        option.arg_name: " ".join((option.description or "").split()).replace("%", "%%")
        for base in classes
        for option in parse(base.__doc__ or "", DocstringStyle.GOOGLE).params
    }


def options_from(
    recipe: Mapping[str, Any], dataclasses: Sequence[type], where: str
) -> tuple[Any, ...]:
    """Make the options of a command from a recipe, in Python.

    Args:
        recipe: values by the names of options.
        dataclasses: the options.
        where: what errors call the recipe.

    Returns:
        One object per dataclass.

    Raises:
        HarpError: a key is unknown, a value is wrong, one is missing, or the values do not go
            together.
    """
    values = recipe_values(recipe, dataclasses, where)
    with _sense(where):
        return tuple(
            options(**{name: values[name] for name in option_types(options) if name in values})
            for options in dataclasses
        )


def recipe_values(
    recipe: Mapping[str, Any], dataclasses: Sequence[Any], where: str
) -> dict[str, Any]:
    """Return the values of a recipe by the names of options, each checked by its type."""
    types = {name: kind for o in dataclasses for name, kind in option_types(o).items()}
    only_flags = _only_flags(dataclasses)
    aliases = _aliases(dataclasses)
    values: dict[str, Any] = {}
    for key, value in recipe.items():
        name = aliases.get(key, key)
        if key == ABOUT:
            checked(f"{where}: {ABOUT}", str, value)
        elif name in only_flags:
            raise HarpError(f"{where}: {key} is no key of recipes: give {flag(name)} as a flag")
        elif name not in types:
            known = f": known are {', '.join(types)}" * (len(types) <= _FEW_OPTIONS)
            raise HarpError(f"{where}: unknown key {key!r:.60}{_nearest(key, types) or known}")
        else:
            values[name] = checked(f"{where}: {name}", types[name], value)
    return values


def _only_flags(dataclasses: Sequence[Any]) -> set[str]:
    """The options that no recipe may give."""
    return {name for options in dataclasses for name in getattr(options, "only_flags", ())}


def _aliases(dataclasses: Sequence[Any]) -> dict[str, str]:
    """The names of options by those that they have in other projects."""
    every = (option for options in dataclasses for option in fields(options))
    return {
        alias.lstrip("-").replace("-", "_"): option.name
        for option in every
        for alias in option.metadata.get("aliases", ())
    }


def _nearest(name: str, names: Iterable[str], written: Callable[[str], str] = str) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {written(close[0])}?" if close else ""


@contextmanager
def _sense(where: str) -> Iterator[None]:
    """Turn the error of a library about values that do not go together into a `HarpError`."""
    try:
        yield
    except (ValueError, TypeError, OverflowError, OSError, ImportError) as error:
        raise HarpError(f"{where}: the options do not make sense ({folded(error)})") from error


class _Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=78)

    def _get_help_string(self, action: Action) -> str | None:
        text = _with_default(action, action.help or "")
        return f"{text} One of {', '.join(_choices(action))}." if _has_many(action) else text

    def _format_action_invocation(self, action: Action) -> str:
        """Show ``--min-words VALUE``, and a choice's values in place of ``VALUE``."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        name = action.option_strings[0]
        if action.choices and not _has_many(action):
            return f"{name} {'|'.join(_choices(action))}"
        more = " ..." if action.nargs in ("+", "*") else ""
        value = "true|false" if action.nargs == "?" else "VALUE"
        return f"{name} {action.metavar or value}{more}"


def _choices(action: Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _has_many(action: Action) -> bool:
    """Return whether the choices of an option are too long for the line of its name."""
    return len("|".join(_choices(action))) > _LONGEST_CHOICES


def _with_default(action: Action, text: str) -> str:
    """Add the default of an option to its help, as it is written after the flag."""
    default = None if action.nargs == 0 else action.default
    if default in (None, [], {}, "", SUPPRESS) or "efault" in text:
        return text
    values = default if isinstance(default, list) else [default]
    words = " ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values)
    return f"{text} (default: {words.replace('%', '%%')})"


def _true_false_or_text(text: str) -> bool | str:
    try:
        return string_to_bool(text)
    except ArgumentTypeError:
        return text


def read_recipe(name: str) -> dict[str, Any]:
    """Read a recipe: a JSON or YAML file, or the name of one that the package carries.

    A file is YAML 1.2 where its name ends in ``.yaml`` or ``.yml``, so that ``1e-4`` is a number
    and ``no`` is a text.

    Raises:
        HarpError: there is none, or it is not an object of options.
    """
    path = Path(name)
    try:
        if not path.is_file():
            path = _of_the_package(path)
        if not path.is_file():
            raise HarpError(f"no recipe {name}: {_hint(name)}")
        if path.stat().st_size > _LARGEST_FILE:
            raise HarpError(f"{name} is over {_LARGEST_FILE >> 10} KiB: name a recipe")
        text = path.read_text(encoding="utf-8-sig")
        return _parsed(_as_json(text) if path.suffix.lower() in _YAML else text)
    except RecursionError as error:
        raise HarpError(f"{name} is nested too deeply: fix it") from error
    except OSError as error:
        raise HarpError(f"{name} cannot be read ({error.strerror}): check it") from error
    except ValueError as error:
        raise HarpError(f"{name} is not a recipe ({error}): fix it") from error


def _hint(name: str) -> str:
    close = difflib.get_close_matches(name.removesuffix(".json"), recipe_names(), n=1)
    if close:
        return f"did you mean {close[0]}? Or name a file that exists"
    return f"name a file, or one of {', '.join(recipe_names())}"


def _of_the_package(path: Path) -> Path:
    """Return the path of the recipe of this name, whatever folder stands before it."""
    name = path.as_posix().removesuffix(".json")
    matching = (recipe for recipe in recipe_names() if f"/{name}".endswith(f"/{recipe}"))
    return recipe_folder() / f"{next(matching, path.name)}.json"


def _as_json(text: str) -> str:
    """Write YAML as JSON.

    Raises:
        ValueError: it is not YAML, or holds what JSON has no type for.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value = YAML(typ="safe", pure=True).load(text)
        _refuse_aliases(value, set())
        return json.dumps(value)
    except YAMLError as error:
        raise ValueError(folded(error)) from error
    except TypeError as error:
        raise ValueError(f"{error}: write it in quotation marks") from error
    except (LookupError, AttributeError, OverflowError) as error:  # of a wrong value behind a tag
        raise ValueError(f"a tag does not fit its value ({error!r:.60})") from error


def _refuse_aliases(value: Any, seen: set[int]) -> None:
    """Refuse a list or an object that stands in several places, where its copies could be many.

    Raises:
        ValueError: there is one.
    """
    if isinstance(value, list | dict):
        if id(value) in seen:
            raise ValueError("it has an alias: write out what the alias stands for")
        seen.add(id(value))
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_aliases(part, seen)


def _parsed(text: str) -> dict[str, Any]:
    """Return the one JSON object of a text.

    Raises:
        ValueError: it is none, or a key is a duplicate, a number is not finite or too large, or a
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
        raise ValueError(f"{text!r:.60} is not a finite number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    if duplicates := [key for key, count in counts.items() if count > 1]:
        raise ValueError(f"the key {duplicates[0]!r:.60} is a duplicate")
    return dict(pairs)


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
    """Return the folder of the package's recipes and their JSON schema."""
    return Path(str(files("harp_plugin"))) / "recipes"

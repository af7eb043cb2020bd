"""The names under which an option may be given: its own, those it had, those of other projects.

A field of a dataclass of options lists its further names under ``aliases`` in its metadata, where
transformers' `HfArgumentParser` looks for them too:
``field(metadata={"help": "Folder for the result.", "aliases": old_names("output")})``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from .errors import HarpError

__all__ = ["OptionNames", "flag", "old_names", "other_names", "takes_old_names"]

logger = logging.getLogger(__name__)

_Options = TypeVar("_Options")


class _OldFlag(str):
    """A flag that works with a warning."""


def old_names(*names: str) -> list[str]:
    """The ``aliases`` of an option that had other names: they work, with a warning."""
    return [_OldFlag(spelled) for name in names for spelled in _spellings(name)]


def other_names(*names: str) -> list[str]:
    """The ``aliases`` of an option that has other names in other projects, which work as well."""
    return [spelled for name in names for spelled in _spellings(name)]


def flag(name: str) -> str:
    """The flag of an option as a person reads it, such as ``--output-dir``."""
    return "--" + name.replace("_", "-")


class OptionNames:
    """Translates the names of options to their present ones.

    Args:
        dataclasses: the options.
    """

    def __init__(self, dataclasses: Iterable[Any]) -> None:
        self._present: dict[str, str] = {}
        self._old: set[str] = set()
        for option in (option for options in dataclasses for option in fields(options)):
            for alias in option.metadata.get("aliases", ()):
                names = {_name(alias): option.name, f"no_{_name(alias)}": f"no_{option.name}"}
                self._present |= names
                if isinstance(alias, _OldFlag):
                    self._old.update(names)

    def present(self, name: str) -> str:
        """The present name of an option, which may be given under another one."""
        return self._present.get(name, name)

    def others(self, name: str) -> tuple[str, ...]:
        """The further names of an option."""
        present = (other for other, own in self._present.items() if own == name)
        return tuple(present)

    def shown_flag(self, argument: str) -> str:
        """A flag in any spelling as a person reads it: its present name with dashes."""
        return flag(self.present(_name(argument))) if argument.startswith("--") else argument

    def values(self, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
        """Values by the present names of their options.

        Args:
            values: the values by any names.
            where: stands before a name in messages.

        Raises:
            HarpError: an option is given under two names.
        """
        self._check(values, where, str)
        return self.recorded(values)

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """The arguments of a command, with the present names of their flags.

        Raises:
            HarpError: an option is given under two names.
        """
        argv = list(argv)
        end = argv.index("--") if "--" in argv else len(argv)
        names = {n: _name(argv[n]) for n in range(end) if argv[n].startswith("--")}
        self._check(names.values(), "", flag)
        for place, name in names.items():
            if name in self._present:
                _, equals, value = argv[place].partition("=")
                argv[place] = flag(self.present(name)) + equals + value
        return argv

    def recorded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values that an earlier release has written down, by the present names; no warning."""
        return {self.present(name): value for name, value in values.items()}

    def _check(self, names: Iterable[str], where: str, written: Callable[[str], str]) -> None:
        names = list(dict.fromkeys(names))
        for name in names:
            twins = [other for other in names if self.present(other) == self.present(name)]
            if len(twins) > 1:
                both = " and ".join(map(written, twins))
                raise HarpError(
                    f"{where}{both} are names of one option: give only "
                    f"{written(self.present(name))}"
                )
            if name in self._old:
                logger.warning(
                    "%s%s is now called %s: the old name will not work in the next release",
                    where,
                    written(name),
                    written(self.present(name)),
                )


def takes_old_names(options: type[_Options]) -> type[_Options]:
    """Let Python make a dataclass with any name of a field; a decorator above ``@dataclass``."""
    names = OptionNames([options])
    make = options.__init__

    @wraps(make)
    def make_with_present_names(self: Any, *values: Any, **named: Any) -> None:
        make(self, *values, **names.values(named, f"{options.__name__}: "))

    setattr(options, "__init__", make_with_present_names)  # noqa: B010
    return options


def _spellings(name: str) -> list[str]:
    return list(dict.fromkeys([f"--{name}", flag(name)]))


def _name(argument: str) -> str:
    return argument.partition("=")[0].removeprefix("--").replace("-", "_")

"""The names under which an option may be given: its own, those it had, those of other projects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from .errors import HarpError

__all__ = ["OLD_NAMES", "OTHER_NAMES", "OptionNames", "flag", "takes_old_names"]

_Options = TypeVar("_Options")

logger = logging.getLogger(__name__)

OLD_NAMES = "old_names"
"""Key of a field's metadata: names that the option had before. They work, with a warning."""
OTHER_NAMES = "other_names"
"""Key of a field's metadata: names that other projects use. They work, without a warning."""


class OptionNames:
    """Translates the names of options to their present ones.

    Args:
        dataclasses: the options. A field lists its further names in its metadata, as
            ``{"old_names": ("output",)}`` or ``{"other_names": ("model_name_or_path",)}``.
    """

    def __init__(self, dataclasses: Iterable[Any]) -> None:
        self._present: dict[str, str] = {}
        self._old: set[str] = set()
        for option in (option for options in dataclasses for option in fields(options)):
            old = option.metadata.get(OLD_NAMES, ())
            for name in (*old, *option.metadata.get(OTHER_NAMES, ())):
                self._present |= {name: option.name, f"no_{name}": f"no_{option.name}"}
            self._old.update(f"{no}{name}" for name in old for no in ("", "no_"))

    def present(self, name: str) -> str:
        """The present name of an option, which may be given under another one."""
        return self._present.get(name, name)

    def values(self, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
        """Values by the present names of their options.

        Args:
            values: the values by any names.
            where: stands before a name in messages.

        Raises:
            HarpError: an option is given under two names.
        """
        self._check(values, where, str)
        return {self.present(name): value for name, value in values.items()}

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


def flag(name: str) -> str:
    """The flag of an option as a person reads it, such as ``--output-dir``."""
    return "--" + name.replace("_", "-")


def _name(argument: str) -> str:
    return argument.partition("=")[0].removeprefix("--").replace("-", "_")


def takes_old_names(options: type[_Options]) -> type[_Options]:
    """Let Python make a dataclass with any name of a field; a decorator above ``@dataclass``."""
    names = OptionNames([options])
    make = options.__init__

    @wraps(make)
    def make_with_present_names(self: Any, *values: Any, **named: Any) -> None:
        make(self, *values, **names.values(named, f"{options.__name__}: "))

    setattr(options, "__init__", make_with_present_names)  # noqa: B010
    return options

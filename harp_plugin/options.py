"""Options, declared once: flags, recipes, Python calls and the JSON schema read one declaration.

A class of options is a dataclass whose docstring says what each of them does; ``--help``, the JSON
schema and the documentation read it there::

    @dataclass(kw_only=True)
    class GraphOptions(Overwriting, Options):
        \"\"\"Which pages and links count.

        Attributes:
            dataset: Id in ir_datasets.
            min_words: Pages with fewer words are left out.
            held_out_by: What decides whether a link is held out.
            kinds: Where queries come from.
        \"\"\"

        dataset: str  # without a default: it is required
        min_words: Number = 100
        held_out_by: Literal["page", "text"] = "page"
        kinds: list[str] = option(KINDS, choices=KINDS)

The annotation says what a value must be: a type with its limits (`Count`, `Number`, `Seed`,
`Fraction`, or any ``Annotated[int, Interval(...)]``), or a ``Literal`` of the choices. Every value
is checked when an object is made, in Python, by flags or by a recipe, with an error such as
``--min-words is -1: it must be at least 0``. A class checks in ``__post_init__`` only what concerns
several options, after ``super().__post_init__()``. Options that several commands have are the
small classes at the end of this file.

An option of another library's dataclass is narrowed by its type in ``narrowed``::

    class HarpTrainingArguments(Options, TrainingArguments):
        narrowed = {"learning_rate": Annotated[float, Interval(ge=0)], "seed": Seed}
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Interval
from pydantic import ConfigDict, TypeAdapter, ValidationError

from .errors import HarpError

__all__ = [
    "MOST",
    "Count",
    "Device",
    "Fraction",
    "Interval",
    "Number",
    "Options",
    "OverwriteRules",
    "Overwriting",
    "Progress",
    "Ranks",
    "Seed",
    "Workers",
    "checked",
    "flag",
    "is_enum",
    "json_schema",
    "option",
    "option_types",
    "type_words",
    "union_members",
]

MOST = 10**9
"""More steps, groups, tokens or results than any run has."""
Count = Annotated[int, Interval(ge=1, le=MOST)]
"""A number of things of which at least one is needed."""
Number = Annotated[int, Interval(ge=0, le=MOST)]
"""A number of things of which none is needed."""
Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]
"""What NumPy's and PyTorch's generators both take."""
Fraction = Annotated[float, Interval(ge=0, le=1)]
"""A part of a whole, none and all of it included."""

_CONFIG = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
_LIMITS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "null",
}


def flag(name: str) -> str:
    """Return the flag of an option as a person reads it, such as ``--output-dir``."""
    return "--" + name.replace("_", "-")


def option(
    default: Any = MISSING,
    *,
    choices: Sequence[Any] = (),
    factory: Callable[[], Any] | None = None,
    aliases: Sequence[str] = (),
    **argument: Any,
) -> Any:
    """Declare an option for which a type and a plain default do not say enough.

    Args:
        default: its value where nothing is given; a list is copied. Without it, the
            option is required.
        choices: the values that a text, or each text of a list, may be, where they are not known to
            a ``Literal``.
        factory: makes the default, in place of ``default``.
        aliases: names that the option has in other projects; flags and recipes may use them.
        **argument: further arguments of `argparse.ArgumentParser.add_argument`.
    """
    metadata = argument
    if choices:
        metadata["choices"] = list(choices)
    if aliases:
        metadata["aliases"] = [name for alias in aliases for name in (f"--{alias}", flag(alias))]
    if isinstance(default, list | tuple | dict):
        factory = partial(dict if isinstance(default, dict) else list, default)
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(kw_only=True)
class Options:
    """Base of all options: checks every value when an object is made.

    Paths become texts, tuples become lists, and 1e3 becomes 1000 where a whole number is needed.

    Raises:
        HarpError: a value is of another type, out of its limits, or none of the choices.
    """

    narrowed: ClassVar[Mapping[str, Any]] = {}
    """Types of options that another library's dataclass declares, by name."""
    only_flags: ClassVar[frozenset[str]] = frozenset()
    """Options that are flags only: a recipe, which another person may have written, gives none."""

    def __post_init__(self) -> None:
        for name, kind in _declared(type(self)):  # type: ignore[arg-type]
            setattr(self, name, checked(flag(name), kind, getattr(self, name)))


@cache
def option_types(options: type) -> dict[str, Any]:
    """Return the type of each option of a dataclass, with its limits, by name."""
    hints = get_type_hints(options, include_extras=True) | dict(getattr(options, "narrowed", {}))
    types = {option.name: hints[option.name] for option in fields(options) if option.init}
    for option in fields(options):
        if option.init and (choices := option.metadata.get("choices")):
            kind: Any = Literal[tuple(choices)]
            is_list = get_origin(types[option.name]) is list
            types[option.name] = list[kind] if is_list else kind
        if option.init and option.default is None:
            types[option.name] |= None
    return types


@cache
def _declared(options: type) -> list[tuple[str, Any]]:
    """The name and type of the options that a class and its bases of `Options` declare."""
    classes = [base for base in options.__mro__ if issubclass(base, Options)]
    names = {name for base in classes for name in (*inspect.get_annotations(base), *base.narrowed)}
    return [(name, kind) for name, kind in option_types(options).items() if name in names]


def checked(name: str, kind: Any, value: Any) -> Any:
    """Check a value by its type.

    Args:
        name: of the option, as errors write it.
        kind: its type, whose limits and ``Literal`` count.
        value: what is given.

    Returns:
        The value as the type has it.

    Raises:
        HarpError: it is of another type, out of its limits, or none of the choices.
    """
    value = _plain(name, value, kind)
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        types = {detail["type"] for detail in error.errors(include_url=False)}
        wanted = type_words(kind)
        if types & _LIMITS:
            wanted = next(map(_interval_words, _intervals(kind)))
        raise HarpError(f"{name} is {value!r:.60}: it must be {wanted}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=_CONFIG)


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; an object of another library is anything."""
    schema = TypeAdapter(kind, config=_CONFIG).json_schema()
    return {} if "$defs" in schema else schema


def _plain(name: str, value: Any, kind: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple):
        return list(value)
    members = {get_args(k)[0] if get_origin(k) is Annotated else k for k in union_members(kind)}
    is_object = any(get_origin(member) is dict for member in members) and str not in members
    if is_object and isinstance(value, str) and value.startswith("{"):  # a flag
        try:
            return json.loads(value)
        except ValueError as error:
            raise HarpError(f"{name} is not JSON ({error}): {value!r:.60}") from None
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if is_whole and int in members and float not in members else value


def union_members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_enum(kind: Any) -> bool:
    """Return whether a type has named values."""
    return isinstance(kind, type) and issubclass(kind, Enum)


def _intervals(kind: Any) -> Iterator[Interval]:
    if isinstance(kind, Interval):
        yield kind
    for part in get_args(kind):
        yield from _intervals(part)


def _interval_words(interval: Interval) -> str:
    """Limits in words, such as ``at least 0 and below 1``."""
    words = {
        "at least": interval.ge,
        "above": interval.gt,
        "at most": interval.le,
        "below": interval.lt,
    }
    return " and ".join(
        f"{word} {limit:.12g}" for word, limit in words.items() if limit is not None
    )


def type_words(kind: Any) -> str:
    """Return a type in the words of JSON, such as ``a list, each a text``."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(type_words, inner)))
    if origin is Annotated:
        return type_words(inner[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is list or kind is list:
        return f"a list, each {type_words(inner[0])}" if inner else "a list"
    if origin is dict or kind is dict:
        return "an object"
    if is_enum(kind):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return _WORDS.get(kind, "left out")


@dataclass(frozen=True)
class OverwriteRules:
    """What may be done with earlier work that is not what is asked for now.

    Attributes:
        overwrite: replace work that was made from something else, or has changed since.
        accept_other_versions: use work that other package versions have made.
        output: the option that names another path, for errors.
    """

    overwrite: bool = False
    accept_other_versions: bool = False
    output: str = "--output-dir"


@dataclass(kw_only=True)
class Overwriting(Options):
    """What may be done with earlier work in the place of the result.

    Attributes:
        overwrite: Replace earlier work of harp that was made from something else or has changed
            since it was written.
        accept_other_versions: Use work that other package versions have made as it is.
    """

    overwrite: bool = False
    accept_other_versions: bool = False

    @property
    def rules(self) -> OverwriteRules:
        """What may be done with other work in the output folder."""
        return OverwriteRules(self.overwrite, self.accept_other_versions)


@dataclass(kw_only=True)
class Progress(Options):
    """What is shown while a command works.

    Attributes:
        quiet: Show no progress bars.
    """

    quiet: bool = False


@dataclass(kw_only=True)
class Device(Options):
    """Where a model computes.

    Attributes:
        device: Device that computes, such as cpu or cuda:1 (default: a GPU if there is one).
    """

    device: str | None = None


@dataclass(kw_only=True)
class Workers(Options):
    """How many processes work on this machine.

    Attributes:
        workers: How many worker processes run; the result is the same for any number (default: one
            for each core).
    """

    workers: Count = os.cpu_count() or 1


@dataclass(kw_only=True)
class Ranks(Options):
    """Which part of the work this machine does, where several share a folder.

    Attributes:
        rank: Number of this machine, from 0, of those that share the output folder.
        world: How many machines share the output folder.

    Raises:
        HarpError: only one of the two is given, or there is no such rank.
    """

    rank: Number | None = None
    world: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.rank is None) != (self.world is None):
            raise HarpError("--rank and --world belong together: give both, or none of them")
        if self.rank is not None and self.world is not None and self.rank >= self.world:
            raise HarpError(f"--rank is {self.rank}: it must be below --world, {self.world}")

"""Records that are one JSON value a line, and what is wrong with one in a single line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from ...errors import HarpError
from ...text import without_surrogates
from ..pages import Dropped
from .source import Source

T = TypeVar("T")

_MOST_VALUES = 4 << 20
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class Line(NamedTuple):
    """One line of a source, or the lines of one record, and where it starts."""

    name: str
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"{self.name}, line {self.number}"


def lines(source: Source) -> Iterator[Line | Dropped]:
    """Stream the lines of a source that are not blank."""
    for line in source.lines():
        yield line if isinstance(line, Dropped) else Line(source.name, *line)


@contextmanager
def well_formed(place: str, what: str) -> Iterator[None]:
    """Name the place of a record that is not what it should be.

    Raises:
        HarpError: the code within raised ValueError, KeyError, TypeError or RecursionError.
    """
    try:
        yield
    except RecursionError as error:
        raise HarpError(f"{place}: nested too deeply: take it out") from error
    except (ValueError, KeyError, TypeError) as error:
        reason = " ".join(repr(error).split())[:300]
        raise HarpError(f"{place}: no {what} ({reason}): mend it or take it out") from error


def json_object(data: bytes | str) -> dict[str, Any]:
    """Parse a JSON object; half a surrogate pair becomes U+FFFD.

    Raises:
        ValueError: it is no JSON object, or no UTF-8.
        RecursionError: it is nested too deeply.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    if text.count("[") + text.count("{") > _MOST_VALUES:
        raise ValueError("over four million lists and objects")
    value = typed(json.loads(text), dict, "the line")
    return _without_surrogates(value) if _HALF_PAIR.search(text) else value


def typed(value: Any, kind: type[T], name: str) -> T:
    """The value itself, if it is of this type.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} is of type {type(value).__name__}, not {kind.__name__}")
    return value


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """A field that holds text.

    Raises:
        KeyError: there is none.
        ValueError: it holds something else.
    """
    return typed(fields[name], str, name)


def identifier(value: Any, name: str) -> str:
    """A text that is not empty.

    Raises:
        ValueError: it is empty, or something else.
    """
    if not typed(value, str, name):
        raise ValueError(f"{name} is empty")
    return value


def list_field(fields: Mapping[str, Any], name: str) -> list[Any]:
    """A field that holds a list.

    Raises:
        KeyError: there is none.
        ValueError: it holds something else.
    """
    return typed(fields[name], list, name)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(part) for part in value]
    if isinstance(value, dict):
        return {without_surrogates(key): _without_surrogates(part) for key, part in value.items()}
    return value

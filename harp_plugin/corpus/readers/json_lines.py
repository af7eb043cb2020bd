"""Reads records that are one JSON object a line, and checks their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

from ...errors import HarpError, folded
from ...text import without_surrogates
from ..pages import Dropped, Item
from .source import Source

__all__ = [
    "JsonLinesReader",
    "Record",
    "checked",
    "line_records",
    "list_field",
    "malformed_record",
    "nonempty_text",
    "text_field",
]

T = TypeVar("T")

_MAX_VALUES = 4 << 20
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class Record(NamedTuple):
    """One line of a source, or the lines of one record.

    Attributes:
        name: the name of the source.
        number: the number of the first line, from 1.
        data: the bytes of the lines.
        is_document: it is a document, and ``number`` counts documents.
    """

    name: str
    number: int
    data: bytes
    is_document: bool = False

    @property
    def place(self) -> str:
        """The place of the record as messages name it."""
        return f"{self.name}, {'document' if self.is_document else 'line'} {self.number}"

    def fields(self) -> dict[str, Any]:
        """Parse the record as a JSON object, in which half a surrogate pair becomes U+FFFD.

        Raises:
            ValueError: the record is not a JSON object in UTF-8.
            RecursionError: it is nested too deeply.
        """
        text = self.data.decode("utf-8-sig")
        if text.count("[") + text.count("{") > _MAX_VALUES:
            raise ValueError("over four million lists and objects")
        value = checked(json.loads(text), dict, "the line")
        if _HALF_PAIR.search(text):
            value = json.loads(without_surrogates(json.dumps(value, ensure_ascii=False)))
        return value


class JsonLinesReader:
    """Reads sources that hold one JSON object a line.

    A reader of one format sets the attributes and defines `items`.

    Attributes:
        field_names: names of fields, with their quotes, that the first line must hold.
        record_name: what error messages call a record, such as ``article of KILT``.
    """

    field_names: ClassVar[tuple[bytes, ...]]
    record_name: ClassVar[str]

    def recognizes(self, source: Source) -> bool:
        """Return whether the first line is a JSON object with the fields of the format."""
        line = source.head.lstrip().partition(b"\n")[0]
        return line.startswith(b"{") and all(name in line for name in self.field_names)

    def records(self, source: Source) -> Iterator[Record | Dropped]:
        """Stream the lines."""
        return line_records(source.name, source.lines())

    def parse(self, record: Record) -> Iterable[Item]:
        """Turn a record into pages and redirects.

        Raises:
            HarpError: the record does not have this format.
        """
        with malformed_record(record.place, self.record_name):
            yield from self.items(record)

    def items(self, record: Record) -> Iterable[Item]:
        """Turn a record into pages and redirects.

        Raises:
            ValueError, KeyError, TypeError, RecursionError: the record does not have this format.
        """
        raise NotImplementedError


def line_records(
    name: str, lines: Iterable[tuple[int, bytes] | Dropped]
) -> Iterator[Record | Dropped]:
    """Make records of numbered lines.

    Args:
        name: the name of their source.
        lines: lines with their numbers, as `Source.lines` gives them.
    """
    for line in lines:
        yield line if isinstance(line, Dropped) else Record(name, *line)


@contextmanager
def malformed_record(place: str, record_name: str) -> Iterator[None]:
    """Turn errors of the code inside into an error that names the place of a record.

    Args:
        place: the place of the record.
        record_name: what the record should be.

    Raises:
        HarpError: the code raised ValueError, KeyError, TypeError or RecursionError.
    """
    try:
        yield
    except RecursionError as error:
        raise HarpError(f"{place}: nested too deeply: take it out") from error
    except (ValueError, KeyError, TypeError) as error:
        raise HarpError(
            f"{place}: no {record_name} ({folded(repr(error))}): fix it or take it out"
        ) from error


def checked(value: Any, kind: type[T], name: str) -> T:
    """Return a value after a check of its type.

    Args:
        value: the value of a field.
        kind: the type that it must have.
        name: the name of the field.

    Raises:
        ValueError: it has another type.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} is of type {type(value).__name__}, not {kind.__name__}")
    return value


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that holds text.

    Raises:
        KeyError: the field is missing.
        ValueError: it holds something else.
    """
    return checked(fields[name], str, name)


def list_field(fields: Mapping[str, Any], name: str) -> list[Any]:
    """Return a field that holds a list.

    Raises:
        KeyError: the field is missing.
        ValueError: it holds something else.
    """
    return checked(fields[name], list, name)


def nonempty_text(value: Any, name: str) -> str:
    """Return a value that must be a text with at least one character, such as an id.

    Raises:
        ValueError: it is empty or of another type.
    """
    if not checked(value, str, name):
        raise ValueError(f"{name} is empty")
    return value

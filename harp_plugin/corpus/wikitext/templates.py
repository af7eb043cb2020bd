"""What inline templates show, by the table ``wikitext-templates.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from ..word_lists import read_table

__all__ = ["HOLE", "expanded", "is_shown", "leaves_hole"]

HOLE = "\ue0f0"
"""The mark in the place of an inline template that is not known."""
_TABLE = read_table("wikitext-templates.toml")
_FORMS = {
    name: key.split("\n") if key[0] != "\n" else [key]
    for key, names in _TABLE["shown"].items()
    for name in names
}
_SILENT = frozenset(_TABLE["silent"]["names"])
_SILENT_STARTS = tuple(_TABLE["silent"]["starts"])
_UNITS, _BETWEEN = _TABLE["units"], _TABLE["convert"]["between"]
_FIELD = re.compile(r"\{(!?)([^{}]+)\}")
_INLINE = re.compile(r"[^\s.,:;!?({|>}*#=][\"')]? \Z")
_MARKS = re.compile(r"'{2,}|\]+|</?\w+ ?/?>")
_CONVERT = frozenset({"convert", "cvt"})
_SHOWN = _CONVERT.union(_FORMS)
_NUMBER = re.compile(r"[-+−]?[\d,.]*\d(?:[+ ]?\d+[/⁄]\d+)?|[-+−]?\d+[/⁄]\d+")


def _known(name: str) -> str:
    name = " ".join(name.replace("_", " ").split()).lower()
    return "lang-" if name.startswith("lang-") else name


def is_shown(name: str) -> bool:
    """Return whether a template is known to show words."""
    return _known(name) in _SHOWN


def leaves_hole(name: str, before: str) -> bool:
    """Return whether a template that is not shown was a part of a sentence, and no note to it.

    Args:
        name: the name of the template.
        before: the last characters before it.
    """
    known = _known(name)
    is_silent = known in _SILENT or known.startswith(_SILENT_STARTS)
    return not is_silent and _INLINE.search(_MARKS.sub("", before)) is not None


def expanded(name: str, arguments: Mapping[str, str]) -> str | None:
    """Return what a template shows, as wikitext; None if that is not known.

    Args:
        name: the name of the template.
        arguments: its arguments by their names or numbers, as wikitext.
    """
    given = {key: value.strip() for key, value in arguments.items() if value.strip()}
    positional = [given[key] for key in given if key.isdigit()]
    known = _known(name)
    if known in _CONVERT:
        return _converted(positional, given, is_short=known == "cvt")
    values = {"*": "".join(positional)} | given
    for form in _FORMS.get(known, ()):
        fields = [match[2].split("|") for match in _FIELD.finditer(form)]
        if all(any(values.get(part) for part in parts) for parts in fields):
            return _FIELD.sub(partial(_value, values), form)
    return None


def _value(values: Mapping[str, str], field: re.Match[str]) -> str:
    shown = (values[part] for part in field[2].split("|") if values.get(part))
    return "" if field[1] else next(shown)


def _converted(positional: list[str], given: Mapping[str, str], *, is_short: bool) -> str | None:
    """Return a measure in the first unit of ``convert``: ``1300|mi|km`` is "1,300 miles"."""
    shown, last = "", ""
    rest = iter(positional)
    for part in rest:
        if not _NUMBER.fullmatch(part):
            return None
        shown += f"{int(part):,}" if part.isdecimal() and len(part) < 16 else part
        last, between = part, next(rest, "")
        if between not in _BETWEEN:
            break
        shown += _BETWEEN[between]
    else:
        return None
    one, many = _UNITS.get(between, [between, between])
    if given.get("adj") in ("on", "mid", "1"):
        return f"{shown}-{one}"
    is_short = is_short or given.get("abbr") in ("on", "in")
    unit = between if is_short and one[:1] != "°" else one if last == "1" else many
    return f"{shown} {unit}"

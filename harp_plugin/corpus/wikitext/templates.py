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
_WORDED = tuple(_TABLE["silent"]["worded"])
_UNITS, _BETWEEN = _TABLE["units"], _TABLE["convert"]["between"]
_PAIRS = frozenset(_TABLE["convert"]["pairs"])
_FIELD = re.compile(r"\{(!?)([^{}]+)\}")
_INLINE = re.compile(r"(?:[^\s.,:;!?({|>}*#=][\"')]? |\d)\Z")
# A word that what follows belongs to.
_OPEN = re.compile(r"\b(?:at|in|as|is|of|called|pronounced|see) \Z", re.IGNORECASE)
# A hole in front of which no word stands, and a comma or the first letter of what follows. Behind
# other punctuation, a comma is no sign that words are missing.
_FIRST = re.compile(
    r"(?:([,;:] |\()|\A|(?<![,;:])\s|[*#:;|])(?:\[+|<\w+>)*('{2,})?" + HOLE + r"(?(2)\2)"
    r"(?:\]+|</\w+>)*(?:(?(1)(?!)|,)|(?: |&nbsp;|['’-])\(?(\w))"
)
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


def leaves_hole(name: str, before: str, after: str = "") -> bool:
    """Return whether a template that is not shown was a part of a sentence, and no note to it.

    Args:
        name: the name of the template.
        before: the last characters before it.
        after: the first characters behind it.
    """
    known = _known(name)
    plain = _MARKS.sub("", before).replace("&nbsp;", " ")
    if known in _SILENT or known.startswith(_SILENT_STARTS):
        return f"{known}|".startswith(_WORDED) and _OPEN.search(plain) is not None
    first = _FIRST.search(f"{before}{HOLE}{after}")
    goes_on = first is not None and (first[3] or "a").islower()
    return goes_on or _INLINE.search(plain) is not None


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
    """Return a measure in the first units of ``convert``: ``1300|mi|km`` is "1,300 miles"."""
    is_short = is_short or given.get("abbr") in ("on", "in")
    gap = "-" if given.get("adj") in ("on", "mid", "1") else " "
    shown = ""
    for place in range(0, len(positional) - 1, 2):
        number, unit = positional[place : place + 2]
        if not _NUMBER.fullmatch(number):
            return None
        shown += f"{int(number):,}" if number.isdecimal() and len(number) < 16 else number
        if unit in _BETWEEN:
            shown += _BETWEEN[unit]
            continue
        one, many = _UNITS.get(unit, [unit, unit])
        is_code = is_short and gap == " " and one[:1] != "°"
        shown += gap + (unit if is_code else one if gap == "-" or number == "1" else many)
        if " ".join([unit, *positional[place + 3 : place + 4]]) not in _PAIRS:
            return shown
        shown += gap
    return None

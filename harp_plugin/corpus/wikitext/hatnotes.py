"""Takes hatnotes out of wikitext by their shape: a line in italics that holds a link."""

from __future__ import annotations

import re

from ...text import WORD
from ..pages import SEE_ALSO_HEADINGS

__all__ = ["take_hatnotes"]

_LONGEST = 600
_START = re.compile(r"\A|^=+([^\n]*?)=+[ \t]*$", re.MULTILINE)
_LINE = re.compile(
    r"(?:[ \t]*(?:\[\[[^\[\]\n|]+:[^\[\]\n]*\]\][ \t]*)?\n)*+"  # no text, or a file
    r"([ :*]*''[^\n]*)(?:\n|\Z)"
)
_IN_ITALICS = re.compile(r" *([:*]*) *''(.+)''[ .,;:]*")
_LINK = re.compile(r"\[\[[^\[\]]*\]\]")


def take_hatnotes(wikitext: str) -> tuple[str, str]:
    """Take the hatnotes out of the starts of sections.

    A hatnote is a line that stands in italics as a whole and holds a link, such as ``:''For the
    band, see [[Heart (band)]].''``, among other words; below a heading, it is indented. See-also
    sections have none.

    Args:
        wikitext: the text of a page without comments, templates and tables.

    Returns:
        The wikitext without them, and the hatnotes, each on a line of its own.
    """
    kept: list[str] = []
    taken: list[str] = []
    position = 0
    for start in _START.finditer(wikitext):
        if start[1] and start[1].strip().lower() in SEE_ALSO_HEADINGS:
            continue
        place = start.end() + wikitext.startswith("\n", start.end())
        while line := _LINE.match(wikitext, place):
            hatnote = _hatnote(line[1], lead=start[1] is None)
            if hatnote is None:
                break
            kept.append(wikitext[position : line.start()])
            taken.append(hatnote)
            place = position = line.end()
    return "".join([*kept, wikitext[position:]]), "\n".join(taken)


def _hatnote(line: str, *, lead: bool) -> str | None:
    """Return the words of a line if it is a hatnote."""
    shape = _IN_ITALICS.fullmatch(line.replace("'''", ""))
    if shape is None or len(line) > _LONGEST or not (lead or shape[1].startswith(":")):
        return None
    text, links = _LINK.subn("", shape[2])
    return shape[2] if links and "''" not in text and WORD.search(text) else None

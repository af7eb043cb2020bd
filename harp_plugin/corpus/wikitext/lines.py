"""Reads lines of wikitext before the parser does.

`keep_apostrophes` decides which apostrophes are quote marks, as MediaWiki does.
`without_interlanguage` drops the list of titles in other languages that some dumps have as plain
text: articles that were written back from HTML may end with ``arz:...new:...``, the links of wikis
that the converter had no name for, one behind the other, sometimes right behind the last word.
`take_hatnotes` takes hatnotes out by their shape: a line in italics that holds a link.
`set_aside` puts marks in the place of lines that hold only words and plain links and need no
parser, three quarters of the prose of an article; all around them is parsed as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...text import WORD
from ..pages import SEE_ALSO_HEADINGS
from ..word_lists import LANGUAGES

__all__ = [
    "INTERLANGUAGE",
    "MARK",
    "PLAIN_LINK",
    "keep_apostrophes",
    "put_back",
    "set_aside",
    "take_hatnotes",
    "without_bullets",
    "without_interlanguage",
]

INTERLANGUAGE = "list of titles in other languages, in plain text"
"""The reason that the manifest counts."""

_TWO_LETTERS = frozenset(LANGUAGES["wiki_codes"]["of_two_letters"])
_LONGER = frozenset(LANGUAGES["wiki_codes"]["longer"])
_COLON = re.compile(r"[a-z-]{2,12}:(?=[^\s:/])")
_MARKUP = re.compile(r"[\[\]{}<>|=]")
_LATIN = re.compile("[A-Za-zÀ-ɏ]")
_LONGEST_TITLE = 120
_RUN = re.compile("'{2,}")
_LONGEST_HATNOTE = 600
_SECTION_START = re.compile(r"\A|^=+([^\n]*?)=+[ \t]*$", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"(?:[ \t]*(?:\[\[[^\[\]\n|]+:[^\[\]\n]*\]\][ \t]*)?\n)*+"  # no text, or a file
    r"([ :*]*''[^\n]*)(?:\n|\Z)"
)
_IN_ITALICS = re.compile(r" *([:*]*) *''(.+)''[ .,;:]*")
_ANY_LINK = re.compile(r"\[\[[^\[\]]*\]\]")
PLAIN_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
"""A link; its groups are the target and, if the link has one, the text that it shows."""
MARK = re.compile("\x02(\\d+)\x03")
"""The mark that stands for plain lines; its group is their number."""
_LINE = (
    r"(?!=|[*#:]*;|-{4}|\[\[[^\]\n]*//)"
    r"(?:[^\[\]{}<>&|\n:/]++|(?<![A-Za-z]):|:(?=\s|$)|/(?!/)"
    r"|\[\[[^\[\]{}<>&|\n/]++(?:\|[^\[\]{}<>&|\n]*+)?\]\])*+$"
)
_LINES = re.compile(rf"^(?=.){_LINE}(?:\n{_LINE})*+", re.MULTILINE)
_LIST = re.compile(r"^[*#:]+", re.MULTILINE)


def keep_apostrophes(wikitext: str) -> str:
    """Turn the three marks in ``''[[Hamlet]]'''s`` into the one apostrophe that a reader sees.

    MediaWiki's rule: where a line has an odd number of bold marks and an odd number of italic
    marks, one ``'''`` is an apostrophe followed by ``''``. It is the first ``'''`` after a word of
    one letter, else the first after a longer word, else the first after a space.
    """
    if "'''" not in wikitext:
        return wikitext
    lines = wikitext.split("\n")
    return "\n".join(_balanced(line) if "'''" in line else line for line in lines)


def _balanced(line: str) -> str:
    runs = list(_RUN.finditer(line))
    lengths = [len(run[0]) for run in runs]
    bold = sum(length != 2 for length in lengths)
    italic = sum(length == 2 or length >= 5 for length in lengths)
    marks = [run.start() for run in runs if len(run[0]) == 3]
    if bold % 2 == 0 or italic % 2 == 0 or not marks:
        return line
    place = min(marks, key=lambda mark: (_rank(line[:mark]), mark))
    return f"{line[:place]}'{line[place + 3 :]}"


def _rank(text_before: str) -> int:
    if text_before.endswith(" "):
        return 2
    return 0 if text_before[-2:-1] == " " else 1


def without_interlanguage(wikitext: str) -> str:
    """Return wikitext without a list of titles in other languages at its end.

    A list is the end of the last line, from the first code of a language on, where titles without
    markup stand right behind the colons of such codes. Behind a letter or a space, as in
    ``Interface:Title``, it has several titles or one in another script.
    """
    text = wikitext.rstrip()
    start = text.rfind("\n") + 1
    line = text[start:]
    marks = [mark.end() for mark in _MARKUP.finditer(line)]
    codes = list(_codes(line, marks[-1] if marks else 0))
    if not codes:
        return wikitext
    first = codes[0][0]
    ends = [code_start for code_start, _ in codes[1:]] + [len(line)]
    titles = [line[colon + 1 : end] for (_, colon), end in zip(codes, ends, strict=True)]
    if max(map(len, titles)) > _LONGEST_TITLE:
        return wikitext
    before = line[:first][-1:]
    if (before == " " or _LATIN.match(before)) and len(titles) == 1 and _LATIN.match(titles[0]):
        return wikitext
    return text[: start + first].rstrip()


def _codes(line: str, place: int) -> Iterator[tuple[int, int]]:
    """Give the start and the colon of each code of a language behind a place in a line.

    Inside a line, a code of two letters counts only where no letter stands before it.
    """
    for run in _COLON.finditer(line, place):
        colon = run.end() - 1
        for code_start in range(run.start(), colon - 1):
            code = line[code_start:colon]
            glued = code_start > 0 and (line[code_start - 1] == " " or code_start > run.start())
            if code in _LONGER or (code in _TWO_LETTERS and not glued):
                yield code_start, colon
                break


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
    for start in _SECTION_START.finditer(wikitext):
        if start[1] and start[1].strip().lower() in SEE_ALSO_HEADINGS:
            continue
        place = start.end() + wikitext.startswith("\n", start.end())
        while line := _FIRST_LINE.match(wikitext, place):
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
    if shape is None or len(line) > _LONGEST_HATNOTE or not (lead or shape[1].startswith(":")):
        return None
    text, links = _ANY_LINK.subn("", shape[2])
    return shape[2] if links and "''" not in text and WORD.search(text) else None


def set_aside(wikitext: str) -> tuple[str, list[str]]:
    """Replace runs of plain lines by marks.

    Returns:
        The wikitext with the marks, and the lines of each mark by its number.
    """
    runs: list[str] = []

    def mark(lines: re.Match[str]) -> str:
        runs.append(lines[0])
        return f"\x02{len(runs) - 1}\x03"

    return _LINES.sub(mark, wikitext.replace("\x02", "").replace("\x03", "")), runs


def put_back(text: str, runs: list[str]) -> str:
    """Replace marks by their lines, as they stand in the wikitext."""
    return MARK.sub(lambda mark: runs[int(mark[1])], text)


def without_bullets(lines: str) -> str:
    """Remove the marks of lists and indents from the starts of lines."""
    return _LIST.sub("", lines)

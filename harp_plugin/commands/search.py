"""`harp search`: the pipeline of a folder, for one query or at a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from textwrap import TextWrapper, indent
from typing import TYPE_CHECKING

from ..errors import HarpError, one_line, show
from ..options import Count, Options
from ..options_parser import Command

if TYPE_CHECKING:
    from ..ranking.search import SearchResult

__all__ = ["SearchOptions", "as_text"]

_FOLDER = {
    "metavar": "DIR [QUERY]",
    "nargs": "+",
    "help": "Folder that `harp adapt` wrote, and the words of a query (after -- where one begins "
    "with a dash); without any, a prompt asks.",
}
_INDENT = " " * 4
_wrap = TextWrapper(76, break_long_words=False, break_on_hyphens=False).wrap
_STANDING_FOR_BOLD = "\ufdd0", "\ufdd1"
"""Unicode has made them no characters, so that no page has them; a terminal's codes are escaped."""
_BOLD = dict(zip(map(ord, _STANDING_FOR_BOLD), ("\x1b[1m", "\x1b[22m"), strict=True))
_ASTERISKS = "**", "**"


@dataclass(kw_only=True)
class SearchOptions(Options):
    """What is printed of the results.

    Attributes:
        results: How many pages are shown at most.
        base: What stands before the name of a page in its address, such as
            https://docs.example.org/.
        json: Print one line of JSON for each query, with the query and its results.
    """

    results: Count = 10
    base: str = ""
    json: bool = False


def as_text(results: Iterable[SearchResult], marks: tuple[str, str] = _ASTERISKS) -> str:
    """Write results in 80 columns.

    Args:
        results: of a search.
        marks: what stands before and after a word of the query.
    """
    blocks = []
    for result in results:
        lines = [*_wrap(result.title), result.address, *_wrap(result.snippet.marked(*marks))]
        text = indent("\n".join(lines), _INDENT)
        blocks.append(f"{result.rank:>2}{text[2:]}")
    return "\n\n".join(blocks) or "nothing was found"


def _ask(answer: Callable[[str], None], prompt: str) -> None:
    """Answer queries until the input ends."""
    with suppress(ImportError):
        import readline  # noqa: F401  (`input` has a history by it)
    while True:
        query = input(prompt)
        try:
            if query.strip():
                answer(query)
        except HarpError as error:
            print(f"harp: error: {one_line(error)}", file=sys.stderr)


@Command("DIR [QUERY]", SearchOptions, positional=_FOLDER)
def command(options: SearchOptions, arguments: list[str]) -> None:
    """Each result has its title, its address, and the passage that fits the query best.

    Words of the query are bold in a terminal, and between asterisks elsewhere. Ctrl-C and Ctrl-D
    end the prompt.
    """
    from ..ranking.search import FolderSearch

    folder, *words = arguments
    search = FolderSearch(folder, options.base)

    def answer(query: str) -> None:
        results = search.search(query, options.results)
        if options.json:
            found = [result.as_json() for result in results]
            print(json.dumps({"query": query, "results": found}), flush=True)
        else:
            marks = _STANDING_FOR_BOLD if sys.stdout.isatty() else _ASTERISKS
            show(as_text(results, marks), _BOLD)

    if words:
        answer(" ".join(words))
        return
    prompt = "search> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    with suppress(EOFError, *[KeyboardInterrupt] * bool(prompt)):
        _ask(answer, prompt)
    if prompt:
        print()

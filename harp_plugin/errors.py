"""The error that users are meant to see, and how its message is printed."""

from __future__ import annotations

import re

__all__ = ["LONGEST_MESSAGE", "HarpError", "folded", "one_line"]

LONGEST_MESSAGE = 1200
"""The most characters of a message that are printed; a path in it may be longer than that."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class HarpError(Exception):
    """An error that the user can solve.

    Its message is one line that says what is wrong, where, and what to do. The command line prints
    it without a traceback and exits with status 2.
    """


def one_line(message: object) -> str:
    """Return a message as one line of bounded length, with control characters escaped.

    Texts from a file (a query, the id of a document, a path) may hold line ends or the escape
    sequences of a terminal.
    """
    text = _CONTROL.sub(_escaped, str(message))
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} [...] {text[-half:]}"


def folded(error: object) -> str:
    """Return what an error of a library says, with single spaces, at most 300 characters of it."""
    return " ".join(str(error).split())[:300]


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")

"""The one error that users are meant to see, and how messages are printed."""

from __future__ import annotations

import re

LONGEST_MESSAGE = 1200
"""Characters of a message that are printed; a path or a name from a source may be longer."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class HarpError(Exception):
    """An error that the user can mend.

    Its message is one line that says what is wrong, where, and what to do. The command line prints
    it without a traceback and exits with status 2.
    """


def one_line(message: object) -> str:
    """A message as one line that a terminal can show: control characters escaped, length bounded.

    What comes from a file (a query, a document's id, a path) may hold line ends or the escape
    sequences of a terminal.
    """
    text = _CONTROL.sub(_escaped, str(message))
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} [...] {text[-half:]}"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")

"""The error that users are meant to see, and how messages and results are printed."""

from __future__ import annotations

import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress

__all__ = ["LONGEST_MESSAGE", "HarpError", "folded", "one_line", "show", "user_message"]

LONGEST_MESSAGE = 1200
"""The most characters of a message that are printed; a path in it may be longer than that."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_DAMAGED = (zlib.error, lzma.LZMAError, EOFError, json.JSONDecodeError)
_NAME = "harp-plugin"
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Names of distributions where they differ from those of their modules."""
_UNWRITTEN = re.compile(
    "No space left|File too large|PytorchStreamWriter|inline_container.*unexpected pos"
)
"""What safetensors and torch say where a file of weights cannot be written."""
_BUGS = (TypeError, LookupError, AttributeError, AssertionError, NotImplementedError)


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


def show(result: object, styles: Mapping[int, str] | None = None) -> None:
    """Print a result whose lines may hold names and texts of sources.

    Args:
        result: what is printed; control characters are escaped.
        styles: what is printed in place of a character, such as a terminal's code for bold.
    """
    text = "\n".join(map(one_line, str(result).split("\n"))).translate(styles or {})
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def user_message(error: BaseException) -> str | None:
    """Return the message for an error that the user can solve.

    These are errors of the operating system and of damaged input, wherever they are raised, even in
    a worker process.

    Returns:
        The message; None for an error that only a mistake in the program causes.
    """
    if isinstance(error, HarpError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "harp_plugin").partition(".")[0]
        advice = f"is not installed: run `pip install '{_NAME}[{_extra_of(module)}]'`"
        return None if module == "harp_plugin" else f"{error.name} {advice}"
    if isinstance(error, MemoryError) or _is_instance(error, "torch", "OutOfMemoryError"):
        return "there is too little memory: give fewer --workers, or smaller batches"
    if _is_instance(error, "aiohttp", "ClientError"):
        return f"a connection broke ({folded(error)}): run the command again to resume"
    if isinstance(error, OSError):
        names = [os.fsdecode(n) for n in (error.filename, error.filename2) if _is_path(n)]
        path = f"{' -> '.join(names)}: " if names else ""
        return f"{path}{error.strerror or error}: check the path, the disk or the connection"
    if isinstance(error, UnicodeError):
        return f"a text is not valid Unicode ({error}): correct the input"
    if _UNWRITTEN.search(str(error)):
        advice = "free space on the disk, and run the command again to resume"
        return f"a file cannot be written ({folded(error)}): {advice}"
    is_loop = isinstance(error, RuntimeError) and str(error).startswith("Symlink loop")
    if is_loop or (isinstance(error, RecursionError) and "JSON" in str(error)):
        return f"{error}: check the file"
    if isinstance(error, _BUGS):
        return None
    if isinstance(error, _DAMAGED) or _is_instance(error, "pyarrow", "ArrowException"):
        kind = type(error).__name__
        return f"a file is damaged ({kind}: {error}): restore it, or run its command again"
    return None


def _extra_of(module: str) -> str:
    """Return the first extra of this package that brings a module, and ``all`` for others."""
    from importlib.metadata import PackageNotFoundError, requires

    needed = _DISTRIBUTIONS.get(module, module.replace("_", "-"))
    with suppress(PackageNotFoundError):  # the source tree is used, and not installed
        lines = "\n".join(requires(_NAME) or ())
        if found := re.search(rf"^{needed}\b.*extra == .(\w+)", lines, re.M):
            return found[1]
    return "all"


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes | os.PathLike)


def _is_instance(error: BaseException, package: str, name: str) -> bool:
    """Return whether an error is of a class of a package, without importing the package."""
    classes = type(error).__mro__
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in classes)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")

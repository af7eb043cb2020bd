"""URLs of object stores in the arguments of a command, in recipes, and as names of models."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .store_copies import StoreCopy
from .store_paths import SCHEMES, is_url, path_of, with_urls

__all__ = ["copied_back", "exchange_with_hosts", "local_name", "local_values"]

_URL = re.compile(rf"\b(?:{'|'.join(SCHEMES)})://[^\"]+")
_OUTPUT = "output"
_SPLIT = re.compile(r"/(train|dev|test)$")
_COLLECTION = "harp:"
_COUNTS_OF_HOSTS = ("SLURM_ARRAY_TASK_COUNT", "SLURM_NTASKS", "WORLD_SIZE")
_SECONDS_BETWEEN = 5.0

Written = Callable[[str], list[str]]
"""Gives the names of a file and of those that are written beside it."""

logger = logging.getLogger(__name__)


class _Copies:
    """The copies of one command; its outputs are copied back by a thread.

    Args:
        is_shared: whether other hosts write outputs too, and what they write is copied here.
        written: gives the names of the files that are written where the option ``output`` names a
            file; None where that is an old name of ``output_dir``.
    """

    def __init__(self, *, is_shared: bool = False, written: Written | None = None) -> None:
        self._is_shared = is_shared
        self._written = written
        self._copies: dict[str, StoreCopy] = {}
        self._outputs: list[StoreCopy] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def local(self, text: str, option: str = "") -> str:
        """Return a text with local paths in place of URLs; what lies at them is copied first.

        Args:
            text: a URL, a name that ends with one, such as ``harp:s3://bucket/queries/test``, or
                JSON with URLs in it.
            option: the name of the option whose value it is.
        """

        def path(match: re.Match[str]) -> str:
            is_collection = text[: match.start()].endswith(_COLLECTION)
            return self._path(match[0], option, is_collection=is_collection)

        return _URL.sub(path, text)

    def _path(self, url: str, option: str, *, is_collection: bool) -> str:
        option = option.replace("-", "_").strip("_")
        if any(path_of(url).is_relative_to(copy.path) for copy in self._outputs):
            return str(path_of(url))  # what the command itself writes there
        if url not in self._copies:
            self._copies[url] = self._copied(url, option, is_collection=is_collection)
        if option.startswith(_OUTPUT) and self._copies[url] not in self._outputs:
            self._outputs.append(self._copies[url])
            if self._thread is None:
                self._thread = threading.Thread(target=self._send, daemon=True)
                self._thread.start()
        return str(path_of(url))

    def _copied(self, url: str, option: str, *, is_collection: bool) -> StoreCopy:
        if option.startswith(_OUTPUT):
            written = self._written if option == _OUTPUT else None
            copy = StoreCopy(url, written and written(path_of(url).name))
            copy.check_writable()
            copy.pull()
            return copy
        # The queries of a collection need the documents beside their folder.
        whole = _SPLIT.sub("", url) if is_collection else url
        for folder in dict.fromkeys((whole, url)):
            copy = StoreCopy(folder)
            if copy.pull():
                return copy
        raise HarpError(f"nothing lies at {url}: check the URL")

    def _send(self) -> None:
        """Copy outputs back every few seconds; what fails is copied the next time."""
        fails = False
        while not self._ended.wait(_SECONDS_BETWEEN):
            try:
                self.exchange()
                fails = False
            except (HarpError, OSError) as error:
                if not fails:
                    logger.warning("not yet copied, and tried again: %s", error)
                fails = True

    def exchange(self) -> None:
        """Copy outputs back, and copy here what other hosts have written."""
        for copy in list(self._outputs):
            copy.push()
            if self._is_shared:
                copy.pull(is_in_use=True)

    def end(self) -> None:
        """Copy outputs back a last time."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        for copy in self._outputs:
            copy.push()


_copies: list[_Copies] = []
"""The copies of the commands that run; in Python there is none, and each URL is read anew."""


def local_name(name: str) -> str:
    """Return the path of the copy of what a URL names, which is copied here first.

    Args:
        name: a URL, or any other name, which is returned as it is.

    Raises:
        HarpError: nothing lies at the URL, or the store cannot be read.
    """
    url = with_urls(name)
    if not is_url(url) or (url != name and Path(name).exists()):
        return name
    return _present().local(url)


def local_values(values: Any, option: str = "") -> Any:
    """Return the values of a recipe with local paths in place of URLs.

    Args:
        values: an object, a list or another value of JSON.
        option: the name of the option.

    Raises:
        HarpError: nothing lies at a URL, or the store cannot be read.
    """
    if isinstance(values, dict):
        return {name: local_values(value, option or name) for name, value in values.items()}
    if isinstance(values, list):
        return [local_values(value, option) for value in values]
    return _present().local(values, option) if isinstance(values, str) else values


def exchange_with_hosts() -> None:
    """Let other hosts see what is finished here, and see what they have finished, at once.

    Outputs in stores are copied there and from there, as they are every few seconds anyway. What
    fails is copied the next time.
    """
    with suppress(HarpError, OSError):
        _present().exchange()


def _present() -> _Copies:
    return _copies[-1] if _copies else _Copies()


@contextmanager
def copied_back(
    arguments: Sequence[str] = (), *, written: Written | None = None
) -> Iterator[list[str]]:
    """Give a command's arguments with local paths in place of URLs.

    Outputs, those that a recipe names too, are copied into their stores every few seconds of the
    block, and at its end. What other hosts write there, where several share the work, comes here.

    Args:
        arguments: without the name of the command.
        written: gives the names of the files that are written where the option ``output`` names a
            file.

    Raises:
        HarpError: nothing lies at a URL, or a store cannot be read or, at the end, be written.
    """
    flags = {argument.partition("=")[0] for argument in arguments}
    is_shared = "--world" in flags or _are_several_hosts()
    copies = _Copies(is_shared=is_shared, written=written)
    _copies.append(copies)
    try:
        yield _local_arguments(arguments, copies)
    except BaseException:
        with suppress(HarpError, OSError):  # what ended the block is the error to tell
            copies.end()
        raise
    else:
        copies.end()
    finally:
        _copies.remove(copies)


def _local_arguments(arguments: Sequence[str], copies: _Copies) -> list[str]:
    local = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        flag, equals, value = argument.partition("=")
        if flag.startswith("--") and equals:
            local.append(f"{flag}={copies.local(value, flag)}")
        else:
            local.append(copies.local(argument, before))
    return local


def _are_several_hosts() -> bool:
    counts = (os.environ.get(name, "") for name in _COUNTS_OF_HOSTS)
    return any(count.isdecimal() and int(count) > 1 for count in counts)

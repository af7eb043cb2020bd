"""Folders and files in object stores, named by URL."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ..errors import HarpError, folded
from .writing import whole_file

__all__ = ["Store"]

_WAITS = (0.1, 0.5, 2.0, 5.0)
"""Seconds before a request that failed is made again."""
_VERSIONS = ("ETag", "etag", "md5Hash", "mtime", "modificationTime", "LastModified")
_CREDENTIALS = re.compile(r"(?!hdfs|webhdfs)\w+://[^/@]*:[^@]*@|\w+://[^/@]*:(?!\d+/)[^@]*@")
"""The beginning of a URL with a password, which may have slashes. Hadoop's URLs may have a port."""
_SECRET = re.compile("KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 4
_NO_SECOND_TRY = (PermissionError, ImportError, ValueError)
_PROBE = ".harp-can-write"

R = TypeVar("R")


class Store:
    """A folder or a file in an object store, through fsspec.

    A request that fails is made again, up to four times. Credentials are what fsspec finds in the
    environment or in its configuration; no error shows them.

    Args:
        url: such as ``s3://bucket/folder``.

    Raises:
        HarpError: the URL has a password or no path, or the package for such URLs is missing.
    """

    def __init__(self, url: str) -> None:
        if _CREDENTIALS.match(url):
            shown = f"{url.partition('://')[0]}://{url.rpartition('@')[2]}"
            raise HarpError(
                f"the URL of {shown} has credentials in it: leave "
                "them out, and give them by the environment, as the store's own tools read them"
            )
        self.url = url.rstrip("/")
        self._files, self._root = self._tried(_opened, self.url)
        self._root = str(self._root).rstrip("/")
        if not self._root:
            raise HarpError(f"{url} names no folder: write one behind the name of the store")

    def files(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """List the files of the folder, or those that are named.

        Returns:
            A text for each that changes with its content, by its path in the folder; of a file
            itself by an empty path. Nothing if nothing has the URL.

        Raises:
            HarpError: the store cannot be read.
        """
        self._files.invalidate_cache()
        found: dict[str, Any] = {}
        with suppress(FileNotFoundError):
            if names is None:
                found = self._tried(self._files.find, self._root, detail=True)
        for name in names or ():
            with suppress(FileNotFoundError):
                found[self._path(name)] = self._tried(self._files.info, self._path(name))
        start = len(self._root) + 1
        named = {self._files._strip_protocol(path)[start:]: info for path, info in found.items()}
        if outside := [name for name in named if ".." in name.split("/")]:
            raise HarpError(f"{self.url} holds a file {outside[0]!r}: remove it from the store")
        return {
            name: _version(info)
            for name, info in named.items()
            if info.get("type") != "directory" and not name.endswith(("/", _PROBE))
        }

    def download(self, name: str, path: Path) -> None:
        """Copy a file of the folder to ``path``.

        Raises:
            HarpError: the store cannot be read.
        """
        self._tried(self._files.get_file, self._path(name), str(path))

    def upload(self, content: Path | bytes, name: str) -> None:
        """Copy a file, or bytes, into the folder.

        Raises:
            FileNotFoundError: there is no such file here.
            HarpError: the store cannot be written.
        """
        target = self._path(name)
        try:
            if "file" in self._files.protocol:
                with whole_file(Path(target)) as temporary:
                    self._put(content, str(temporary))
            else:
                self._put(content, target)
        except FileNotFoundError as error:
            if isinstance(content, Path) and not content.exists():
                raise
            raise HarpError(self._message(error)) from None

    def _put(self, content: Path | bytes, target: str) -> None:
        if self._root.startswith("/"):  # a file system, not a store of objects
            self._tried(self._files.makedirs, target.rpartition("/")[0], exist_ok=True)
        if isinstance(content, bytes):
            self._tried(self._files.pipe_file, target, content)
        else:
            self._tried(self._files.put_file, str(content), target)

    def check_writable(self) -> None:
        """Write a file of a few bytes, and remove it.

        Raises:
            HarpError: the store cannot be written.
        """
        self.upload(b"harp", _PROBE)
        self.remove([_PROBE])

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of the folder; that one is missing is no error.

        Raises:
            HarpError: the store cannot be written.
        """
        for name in names:
            try:
                self._tried(self._files.rm_file, self._path(name))
            except FileNotFoundError:
                continue

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _tried(self, call: Callable[..., R], *arguments: Any, **options: Any) -> R:
        """Call until it succeeds, and say in one line why it does not."""
        for wait in (*_WAITS, None):
            try:
                return call(*arguments, **options)
            except FileNotFoundError:
                raise
            except Exception as error:
                lacks_credentials = "Credential" in type(error).__name__
                if wait is None or lacks_credentials or isinstance(error, _NO_SECOND_TRY):
                    raise HarpError(self._message(error)) from None
                time.sleep(wait)
        raise AssertionError

    def _message(self, error: Exception) -> str:
        reason = folded(error) or type(error).__name__
        for name, value in os.environ.items():
            if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
                reason = reason.replace(value, "...")
        advice = "check the URL and the credentials"
        if isinstance(error, ImportError):
            advice = "install what reads such URLs; for s3://, run `pip install 'harp-plugin[s3]'`"
        return f"{self.url}: {reason} ({type(error).__name__}): {advice}"


def _opened(url: str) -> Any:
    from fsspec.core import url_to_fs

    return url_to_fs(url)


def _version(info: dict[str, Any]) -> str:
    version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
    return f"{info.get('size')} {version}"

"""Sources, models and collections that lie at a URL, such as ``s3://bucket/folder``: fsspec."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from filelock import FileLock

from ..errors import HarpError, folded
from .writing import remove_temporary_of, whole

__all__ = ["RemoteFile", "files_at", "is_url", "local_path"]

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PASSWORD = re.compile(r"[^/]*://[^/@]*:[^/@]*@")
_VERSIONS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "Last-Modified")


class RemoteFile(NamedTuple):
    """A file at a URL.

    Attributes:
        name: its path below the folder that the URL names; its own name if it names the file.
        size: in bytes.
        version: a text that changes when the file does, where the store has one.
        url: the URL that names it or its folder.
        files: the file system of fsspec.
        path: in the file system.
    """

    name: str
    size: int
    version: str
    url: str
    files: Any
    path: str

    def open(self) -> IO[bytes]:
        """Open the file, which is read as it comes.

        Raises:
            HarpError: it cannot be opened.
        """
        with _one_line_errors(self.url):
            return self.files.open(self.path, "rb")


def is_url(name: str | Path) -> bool:
    """Return whether a name is a URL, not a path."""
    return isinstance(name, str) and _URL.match(name) is not None


def files_at(url: str) -> list[RemoteFile]:
    """List the file at a URL, or all files below a folder, in order.

    Raises:
        HarpError: nothing lies at the URL, it has a password in it, or it cannot be read.
    """
    if _PASSWORD.match(url):
        raise HarpError(
            f"the URL of {url.rpartition('@')[2]} has a password in it: leave it out, and give it "
            "by the environment, as the store's own tools read it"
        )
    with _one_line_errors(url):
        from fsspec.core import url_to_fs

        files, root = url_to_fs(url)
        entries = files.find(root, detail=True)
        # Listings by HTTP have no sizes.
        entries = {p: e if e.get("size") else files.info(p) for p, e in entries.items()}
    if not entries:
        raise HarpError(f"nothing lies at {url}: check the URL")
    start = len(root.rstrip("/")) + 1
    return [
        RemoteFile(
            path[start:] or Path(path).name,
            entry.get("size") or 0,
            next((str(entry[name]) for name in _VERSIONS if entry.get(name)), ""),
            *(url, files, path),
        )
        for path, entry in sorted(entries.items())
    ]


def local_path(name: str) -> str:
    """Return the path of a copy of the folder at a URL; any other name is returned as it is.

    The copy is kept in the user's folder for caches, until the files at the URL change.

    Raises:
        HarpError: as `files_at` does.
    """
    if not is_url(name):
        return name
    remote = files_at(name)
    listed = [(file.name, file.size, file.version) for file in remote]
    key = hashlib.sha256(json.dumps([name, listed]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cache / "harp_plugin" / "urls" / key / name.rstrip("/").rpartition("/")[2]
    if folder.is_dir():
        return str(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")), _one_line_errors(name):
        remove_temporary_of(folder)
        if not folder.is_dir():  # another process made it meanwhile
            with whole(folder) as temporary:
                _copy(name, remote, temporary)
    return str(folder)


def _copy(url: str, remote: list[RemoteFile], folder: Path) -> None:
    """Copy the files at a URL into a folder.

    Raises:
        HarpError: a file's name leads out of it.
    """
    for file in remote:
        target = folder / file.name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise HarpError(f"{url} holds a file {file.name!r}: remove it")
        target.parent.mkdir(parents=True, exist_ok=True)
        file.files.get_file(file.path, str(target))


@contextmanager
def _one_line_errors(url: str) -> Iterator[None]:
    try:
        yield
    except HarpError:
        raise
    except ImportError as error:
        raise HarpError(f"{url}: {folded(error)}: install the package that reads it") from None
    except Exception as error:
        reason = folded(error) or type(error).__name__
        raise HarpError(
            f"{url} cannot be read ({reason}): check the URL and the credentials"
        ) from None

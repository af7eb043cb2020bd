"""A local copy of a folder in an object store."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import HarpError
from .records import read_record, write_record
from .store_paths import copies_folder, path_of
from .stores import Store
from .writing import TEMPORARY, whole_file

__all__ = ["StoreCopy"]

_INDEX = ".index"
_OPENERS = (".harp_unfinished", "harp_run.json", "started.json")
"""Records that say whose a folder is: they stand in the store before what they speak of."""
_MANIFEST = "manifest.json"
_MAPPED = "mapped"
"""Name of the folder in a build with the copies that readers make for themselves."""
_VECTORS = f"{_MAPPED}/cosine-"
"""What the names of vectors begin with, which hosts that mine negatives share."""
_AT_ONCE = 8


class StoreCopy:
    """A local copy of a folder, or of files, in an object store.

    The store is what counts: what changed there is copied anew. What a command writes is copied
    into the store in an order that makes sense to a reader at any moment: files before the records
    that list them, and manifests last. Nothing is renamed there.

    Args:
        url: of the folder; or of a file, with ``is_file``.
        is_file: whether to copy only the files in its folder whose names begin with its name.
    """

    def __init__(self, url: str, *, is_file: bool = False) -> None:
        self.path = path_of(url)
        self._prefix = self.path.name if is_file else ""
        self._folder = self.path.parent if is_file else self.path
        self._store = Store(url.rstrip("/").rpartition("/")[0] if is_file else url)
        self.url = self._store.url
        key = hashlib.sha256(f"{self.url}\0{self._prefix}".encode()).hexdigest()[:24]
        self._index_path = copies_folder() / _INDEX / f"{key}.json"

    def pull(self) -> bool:
        """Copy what is in the store and not here; return whether anything is in the store.

        Raises:
            HarpError: the store cannot be read.
        """
        with self._one_at_a_time():
            stored = {n: v for n, v in self._store.files().items() if n.startswith(self._prefix)}
            index = self._read_index()
            for name in index.keys() - stored.keys():
                self._local(name).unlink(missing_ok=True)
                del index[name]
            missing = [
                name
                for name, version in stored.items()
                if index.get(name, [""])[0] != version or not self._local(name).is_file()
            ]
            for names in _in_order(missing):
                with ThreadPoolExecutor(_AT_ONCE) as threads:
                    for name, state in zip(names, threads.map(self._download, names), strict=True):
                        index[name] = [stored[name], state]
            self._write_index(index)
        return bool(stored)

    def check_writable(self) -> None:
        """Check that the store can be written, before long work begins.

        Raises:
            HarpError: it cannot.
        """
        self._store.check_writable()

    def push(self) -> None:
        """Copy what is here and not in the store; remove there what was removed here.

        Raises:
            HarpError: the store cannot be written.
        """
        with self._one_at_a_time():
            index = self._read_index()
            states = self._states()
            changed = [n for n, state in states.items() if index.get(n, [0, None])[1] != state]
            gone = index.keys() - states.keys()
            if not changed and not gone:
                return
            records = {n: self._local(n).read_bytes() for n in changed if n.endswith(".json")}
            self._store.remove(name for name in gone if name.endswith(".json"))
            self._store.remove(n for n in changed if n in index and n.endswith(_MANIFEST))
            for names in _in_order(changed):
                contents = [records.get(name, self._local(name)) for name in names]
                with ThreadPoolExecutor(_AT_ONCE) as threads:
                    list(threads.map(self._store.upload, contents, names))
            self._store.remove(name for name in gone if not name.endswith(".json"))
            stored = self._store.files()
            kept = {name: entry for name, entry in index.items() if name not in gone}
            sent = {name: [stored.get(name, ""), states[name]] for name in changed}
            self._write_index(kept | sent)

    def _download(self, name: str) -> list[int]:
        path = self._local(name)
        with whole_file(path) as temporary:
            self._store.download(name, temporary)
        return _state(path)

    def _local(self, name: str) -> Path:
        return self._folder / name if name else self._folder

    def _states(self) -> dict[str, list[int]]:
        """Size and time of each file that belongs into the store."""
        if self._prefix:
            paths = [p for p in self._folder.glob(f"{self._prefix}*") if p.is_file()]
        else:
            paths = [p for p in self._folder.rglob("*") if p.is_file()]
        names = {path.relative_to(self._folder).as_posix(): path for path in paths}
        return {name: _state(path) for name, path in names.items() if not _stays_here(name)}

    def _read_index(self) -> dict[str, Any]:
        """Read the version in the store, and size and time here, of each file that was copied."""
        try:
            return read_record(self._index_path)
        except HarpError:
            return {}

    def _write_index(self, index: dict[str, Any]) -> None:
        write_record(self._index_path, index)

    def _one_at_a_time(self) -> FileLock:
        self._index_path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self._index_path.with_suffix(".lock"), thread_local=False)


def _in_order(names: list[str]) -> list[list[str]]:
    """Put names in groups: what opens a folder, files, records, manifests."""
    groups: list[list[str]] = [[], [], [], []]
    for name in sorted(names):
        file = name.rpartition("/")[2]
        is_record = file.endswith(".json")
        group = 0 if file in _OPENERS else 1 + is_record + file.endswith(_MANIFEST)
        groups[group].append(name)
    return groups


def _stays_here(name: str) -> bool:
    """Tell whether a file is of use here only: unfinished, a lock, or a reader's copy."""
    is_lock = name.endswith((".lock", ".lock.by"))
    is_copy = name.startswith(f"{_MAPPED}/") and not name.startswith(_VECTORS)
    return TEMPORARY in name or is_lock or is_copy


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]

"""A local copy of a folder in an object store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from ..errors import HarpError
from .records import read_record, write_record
from .store_order import CHECKPOINT, MANIFEST, NO_OTHERS, in_order, marks_of, removals, stays_here
from .store_paths import copies_folder, path_of
from .stores import Store
from .writing import whole_file

__all__ = ["StoreCopy"]

_INDEX = ".index"
_AT_ONCE = 8
_SECONDS_BETWEEN_INDEXES = 30


T = TypeVar("T")


class StoreCopy:
    """A local copy of a folder, or of files, in an object store.

    The store is what counts: what changed there is copied anew. What a command writes is copied
    into the store in an order that makes sense to a reader at any moment: files before the records
    that list them, and manifests last. Nothing is renamed there.

    Args:
        url: of the folder; or of a file, with ``names``.
        names: of files; only these are copied, from and to the folder in which the URL is.
    """

    def __init__(self, url: str, names: Sequence[str] | None = None) -> None:
        self.path = path_of(url)
        self._folder = self.path if names is None else self.path.parent
        self._names = names
        self._store = Store(url if names is None else url.rstrip("/").rpartition("/")[0])
        self.url = self._store.url
        key = f"{self.url}\0{'' if names is None else self.path.name}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        self._index_path = copies_folder() / _INDEX / f"{digest}.json"

    def pull(self, *, is_in_use: bool = False) -> bool:
        """Copy what is in the store and not here; return whether anything is in the store.

        Args:
            is_in_use: a command is at work here; what it has removed here is not copied again, and
                what others have removed in the store stays until all that is new is here.

        Raises:
            HarpError: the store cannot be read.
        """
        with self._one_at_a_time(), self._index() as index:
            stored = self._stored()
            missing = [
                name
                for name, version in stored.items()
                if index.get(name, [""])[0] != version
                or not (is_in_use or self._local(name).is_file())
            ]
            for names in in_order(missing):
                for name, state in self._each(self._download, names, index):
                    index[name] = [stored[name], state]
            for name in index.keys() - stored.keys():
                self._local(name).unlink(missing_ok=True)
                del index[name]
            if not is_in_use:
                for mark in marks_of(stored):
                    self._local(mark).unlink(missing_ok=True)  # `push` removes it in the store
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
        with self._one_at_a_time(), self._index() as index:
            states = self._states()
            changed = [n for n, state in states.items() if index.get(n, [0, None])[1] != state]
            records = {n: self._local(n).read_bytes() for n in changed if n.endswith(".json")}
            marks = marks_of(changed) - states.keys()
            records |= dict.fromkeys(marks, NO_OTHERS)
            replaced = [n for n in changed if n in index and n.endswith(MANIFEST)]
            gone = index.keys() - states.keys() if self._folder.is_dir() else set()
            first, later, last = removals(gone - marks, states)
            openers, *others, manifests = in_order(changed)
            manifests.sort(key=lambda name: states[name][1])
            of_checkpoints = [name for name in manifests if CHECKPOINT.fullmatch(name)]

            def send(name: str) -> str:
                self._store.upload(records.get(name, self._local(name)), name)
                return self._store.files([name]).get(name, "")

            def send_all(*groups: Iterable[str]) -> None:
                for names in groups:
                    for name, version in self._each(send, sorted(names), index):
                        index[name] = [version, states.get(name)]

            self._store.remove(first)
            send_all(marks_of(replaced) & marks)
            self._store.remove(replaced)
            # Manifests are sent one at a time, as they were written: none before an older one.
            send_all(openers, marks, *others, *([name] for name in of_checkpoints))
            self._store.remove([*sorted(marks), *later])
            send_all(*([name] for name in manifests if name not in of_checkpoints))
            self._store.remove(last)
            for name in gone | marks:
                del index[name]

    def _download(self, name: str) -> list[int]:
        path = self._local(name)
        with whole_file(path) as temporary:
            self._store.download(name, temporary)
        return _state(path)

    def _local(self, name: str) -> Path:
        return self._folder / name if name else self._folder

    def _stored(self) -> dict[str, str]:
        """The versions of the files in the store that belong here."""
        stored = self._store.files(self._names)
        return {name: version for name, version in stored.items() if not stays_here(name)}

    def _states(self) -> dict[str, list[int]]:
        """Size and time of each file that belongs into the store."""
        found = self._folder.rglob("*") if self._names is None else map(self._local, self._names)
        paths = [path for path in found if path.is_file()]
        names = {path.relative_to(self._folder).as_posix(): path for path in paths}
        return {name: _state(path) for name, path in names.items() if not stays_here(name)}

    def _each(
        self, do: Callable[[str], T], names: list[str], index: dict[str, Any]
    ) -> Iterator[tuple[str, T]]:
        """Do something with many files, a few at once; the index is written now and then."""
        written = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            try:
                for name, result in zip(names, threads.map(do, names), strict=True):
                    yield name, result
                    if time.monotonic() - written > _SECONDS_BETWEEN_INDEXES:
                        self._write_index(index)
                        written = time.monotonic()
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    @contextmanager
    def _index(self) -> Iterator[dict[str, Any]]:
        """Give the version in the store, and size and time here, of each file that was copied.

        What is done when the block ends, by an error too, need not be done again.
        """
        try:
            index = read_record(self._index_path)
        except HarpError:
            index = {}
        before = dict(index)
        try:
            yield index
        finally:
            if index != before:
                self._write_index(index)

    def _write_index(self, index: dict[str, Any]) -> None:
        write_record(self._index_path, index)

    def _one_at_a_time(self) -> FileLock:
        self._index_path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self._index_path.with_suffix(".lock"), thread_local=False)


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]

"""A folder that holds an index, with a record of what it was made from."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import HarpError
from ..work.hashes import changed_file, describe_files
from ..work.records import read_record, write_record
from ..work.writing import TEMPORARY, remove_temporary, remove_temporary_of, whole_folder

__all__ = ["RECORD", "IndexFolder"]

RECORD = "harp_index.json"
"""Name of the record of an index, in its folder."""

logger = logging.getLogger(__name__)


class IndexFolder(ABC):
    """An index in a folder of its own, which is written whole and built anew where it is damaged.

    Args:
        folder: holds one index for each collection and setting.
    """

    kind: str
    """What the folder's name begins with."""
    own: re.Pattern[str]
    """Names of the files of an index, without the record. Without a record they are unfinished."""
    unlisted: tuple[str, ...] = ()
    """File names that the record does not list, for they may change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    @abstractmethod
    def made_from(self) -> dict[str, Any]:
        """All that the content of the index depends on; JSON types."""

    @abstractmethod
    def _fill(self, temporary: Path) -> None:
        """Write the files of the index into an empty folder."""

    @property
    def path(self) -> Path:
        """The folder of this index."""
        key = hashlib.sha256(json.dumps(self._made_from).encode()).hexdigest()[:12]
        return self.folder / f"{self.kind}-{key}"

    def make(self) -> None:
        """Build the index if it is missing or damaged, one process at a time.

        Raises:
            HarpError: a document cannot be indexed, or there is something else in the place of the
                index.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._one_at_a_time():
            if self._is_there():
                self._remove_if_damaged()
            if not self._is_there():
                self._build()

    def remove(self) -> None:
        """Remove the index, if it is there and harp wrote it.

        Raises:
            HarpError: its folder holds something else.
        """
        if not self.folder.is_dir():
            return
        with self._one_at_a_time():
            remove_temporary_of(self.path)
            if self.path.exists():
                self._remove_files(self._read_record()["files"])

    def _is_there(self) -> bool:
        """Tell whether the index, or something else, is in its place.

        The record comes last, in an object store too, so that files without one are unfinished.
        """
        path = self.path
        if path.is_symlink() or not path.is_dir() or (path / RECORD).is_file():
            return path.is_symlink() or path.exists()
        names = (file.name for file in path.iterdir())
        return not all(self.own.fullmatch(name) or name.endswith(TEMPORARY) for name in names)

    def _own_files(self) -> list[str]:
        return [path.name for path in self.path.iterdir() if self.own.fullmatch(path.name)]

    def _one_at_a_time(self) -> FileLock:
        return FileLock(self.folder / f".{self.path.name}.lock")

    @cached_property
    def _made_from(self) -> dict[str, Any]:
        return self.made_from

    def _remove_if_damaged(self) -> None:
        record = self._read_record()
        if damage := changed_file(self.path, record["files"]):
            logger.warning("%s: the index is built anew", damage)
            self._remove_files(record["files"])

    def _remove_files(self, names: Iterable[str]) -> None:
        remove_temporary(self.path)
        for name in (*names, RECORD, *self.unlisted):
            (self.path / name).unlink(missing_ok=True)
        try:
            self.path.rmdir()
        except OSError:
            raise HarpError(
                f"{self.path} holds files that harp has not written: move it away"
            ) from None

    def _read_record(self) -> dict[str, Any]:
        """Read what was built there.

        Raises:
            HarpError: harp did not build it, or the record is damaged.
        """
        advice = "it is no index of harp's, or damaged: move it away or delete it"
        if self.path.is_symlink() or not (self.path / RECORD).is_file():
            raise HarpError(f"{self.path}: {advice}")
        try:
            record = read_record(self.path / RECORD)
        except HarpError as error:
            raise HarpError(f"{error}: {advice}") from error
        if record.get("made_from") != json.loads(json.dumps(self._made_from)):
            raise HarpError(f"{self.path}: {advice}")
        return record

    def _build(self) -> None:
        remove_temporary_of(self.path)
        if self.path.exists():
            self._remove_files(self._own_files())
        with whole_folder(self.path) as temporary:
            temporary.mkdir()
            self._fill(temporary)
            self._write_record(temporary)

    def _write_record(self, folder: Path) -> None:
        unlisted = {RECORD, *self.unlisted}
        names = [
            path.name
            for path in folder.iterdir()
            if path.name not in unlisted and path.suffix != TEMPORARY
        ]
        record = {"made_from": self._made_from, "files": describe_files(folder, names)}
        write_record(folder / RECORD, record)

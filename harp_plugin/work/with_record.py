"""Files with a record that tells whether they are finished, and whether harp wrote them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .hashes import file_hash
from .output_paths import refuse_special
from .provenance import MadeFrom, OverwriteRules, refuse_changed
from .records import NOT_WRITTEN_BY_HARP, read_own_record, write_record
from .writing import whole_file

__all__ = ["FileWithRecord", "FolderWithRecord", "record_path"]


def record_path(path: Path) -> Path:
    """Name the record of a file, which lies beside it."""
    return path.with_name(f"{path.name}.json")


class FileWithRecord:
    """A file, and beside it a record of what the file was made from.

    The record, ``NAME.json``, holds the settings, the versions and the SHA-256 of the file. A file
    that has no such record was not written by harp, and is never replaced.

    Args:
        path: the file.
        made_from: what its content depends on; settings and versions, no inputs.
        rules: what may be replaced.
    """

    def __init__(self, path: Path, made_from: MadeFrom, rules: OverwriteRules) -> None:
        self.path = path
        self.made_from = made_from
        self.rules = rules

    @property
    def record_path(self) -> Path:
        """Where the record lies."""
        return record_path(self.path)

    def is_finished(self) -> bool:
        """Tell whether the file is there, made from the same, and unchanged since.

        If it is not, it may be written.

        Raises:
            HarpError: harp did not write what is there, or may not replace it.
        """
        record = self.read_record()
        if record is None or not self.path.exists():
            return False
        return self.can_use(record, unchanged=record.get("sha256") == file_hash(self.path))

    def can_use(self, record: Mapping[str, Any], *, unchanged: bool) -> bool:
        """Decide what is done with the file that is there: use it, or replace it.

        Args:
            record: the file's.
            unchanged: whether the file is as the record says.

        Returns:
            True if the file can be used as it is, False if it may be replaced.

        Raises:
            HarpError: neither is allowed.
        """
        if not unchanged:
            refuse_changed(self.path, self.rules)
            return False
        stored = MadeFrom(record["settings"], record["versions"])
        return self.made_from.can_use(self.path, stored, self.rules)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a temporary path to write to; at the end of the block it gets the file's name."""
        with whole_file(self.path) as temporary:
            yield temporary
            self.write_record(sha256=file_hash(temporary))

    def write_record(self, **more: Any) -> None:
        """Write the record, before the file gets its name: a kill leaves no file without one."""
        settings = {"settings": self.made_from.settings, "versions": self.made_from.versions}
        write_record(self.record_path, {**settings, **more})

    def read_record(self) -> dict[str, Any] | None:
        """Read the record, None if there is nothing yet.

        Raises:
            HarpError: the record is damaged, or harp did not write what is there.
        """
        output = self.rules.output
        refuse_special(self.path, output)
        refuse_special(self.record_path, output)
        if not self.record_path.exists():
            if self.path.exists():
                raise HarpError(f"{self.path} {NOT_WRITTEN_BY_HARP}: name another {output}")
            return None
        record = read_own_record(self.record_path, output, together_with=self.path)
        if not all(isinstance(record.get(name), dict) for name in ("settings", "versions")):
            raise HarpError(f"{self.record_path} {NOT_WRITTEN_BY_HARP}: name another {output}")
        return record


class FolderWithRecord:
    """A folder, and in it a record of the files that harp has written there, by their hashes.

    It is for files whose content follows from what is compared already, such as a table and its
    plot. Any other file in the folder is left as it is.

    Args:
        folder: has one writer at a time.
        rules: what may be replaced.

    Raises:
        HarpError: the record is damaged, or harp did not write it.
    """

    NAME = "harp_files.json"
    """File name of the record."""

    def __init__(self, folder: Path, rules: OverwriteRules) -> None:
        self._folder = folder
        self._rules = rules
        self._record_path = folder / self.NAME
        refuse_special(self._record_path, rules.output)
        self._hashes: dict[str, list[str]] = {}
        if self._record_path.exists():
            self._hashes = read_own_record(self._record_path, rules.output)

    def write(self, path: Path, content: str | bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            HarpError: there is one that harp did not write, or that was changed since.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        refuse_special(path, self._rules.output)
        name = path.relative_to(self._folder).as_posix()
        written, new = self._hashes.get(name, []), hashlib.sha256(data).hexdigest()
        if path.exists() and (present := file_hash(path)) != new:
            if not written:
                raise HarpError(f"{path} {NOT_WRITTEN_BY_HARP}: name another {self._rules.output}")
            if present not in written:
                refuse_changed(path, self._rules)
        # The record comes first: a kill leaves no file that is not in it.
        self._hashes[name] = [*written[-1:], new]
        write_record(self._record_path, self._hashes)
        with whole_file(path) as temporary:
            temporary.write_bytes(data)

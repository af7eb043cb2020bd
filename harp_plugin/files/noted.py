"""Files with a note beside them, which says what they were made from and what their content is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .made_from import OverwriteRules, refuse_other_settings, refuse_other_versions
from .writing import TEMPORARY, file_hash, read_record, whole_file, write_record


class NotedFile:
    """A file that is made from settings, by packages of some versions.

    The note, ``NAME.json``, holds all that and the SHA-256 of the file. What has no such note is
    not ours: it is never replaced.

    Args:
        path: the file.
        settings: everything its content depends on but for versions; JSON types.
        versions: of the packages that make it.
        rules: what may be replaced.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        versions: Mapping[str, str],
        rules: OverwriteRules,
    ) -> None:
        self.path = path
        self.settings = json.loads(json.dumps(settings))
        self.versions = dict(versions)
        self.rules = rules

    @property
    def note(self) -> Path:
        """The note's path."""
        return note_of(self.path)

    def is_finished(self) -> bool:
        """Whether the file is there, made from the same, and unchanged since.

        If it is not, it may be made.

        Raises:
            HarpError: something at its path is not ours, or is ours and may not be replaced.
        """
        note = self.stored_note()
        if note is None or not self.path.exists():
            return False
        return self.fits(note, unchanged=note.get("sha256") == file_hash(self.path))

    def fits(self, note: Mapping[str, Any], *, unchanged: bool) -> bool:
        """Whether what a note describes can be used; if not, it may be replaced.

        Args:
            note: the file's.
            unchanged: whether the file is as the note says.

        Raises:
            HarpError: it may not be replaced.
        """
        rules = self.rules
        if not unchanged:
            if not rules.overwrite:
                raise HarpError(
                    f"{self.path} is not as it was written: name another {rules.output}, or give "
                    "--overwrite to make it anew"
                )
            return False
        if note["settings"] != self.settings:
            if not rules.overwrite:
                refuse_other_settings(self.path, note["settings"], self.settings, rules.output)
            return False
        if note["versions"] != self.versions and not rules.keep:
            if not rules.overwrite:
                refuse_other_versions(self.path, note["versions"], self.versions)
            return False
        return True

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a temporary path to write to; at the end of the block it gets its name."""
        with whole_file(self.path) as temporary:
            yield temporary
            self.write_note(sha256=file_hash(temporary))

    def write_note(self, **more: Any) -> None:
        """Write the note, before the file gets its name: a kill never leaves one that has none."""
        write_record(self.note, {"settings": self.settings, "versions": self.versions, **more})

    def stored_note(self) -> dict[str, Any] | None:
        """The note, None if there is nothing yet.

        Raises:
            HarpError: what is there is not ours.
        """
        refuse_special(self.path, self.rules.output)
        refuse_special(self.note, self.rules.output)
        if not self.note.exists():
            if self.path.exists():
                raise HarpError(f"{self.path} {_NOT_OURS}: name another {self.rules.output}")
            return None
        return read_note(self.path, self.rules.output)


class Ledger:
    """The files that we have written to a folder, by their hashes in ``harp_files.json``.

    For files whose content follows from what is checked already, such as a table and its plot.

    Args:
        folder: has one writer at a time.
        rules: what may be replaced.

    Raises:
        HarpError: the record is damaged, or not ours.
    """

    NAME = "harp_files.json"

    def __init__(self, folder: Path, rules: OverwriteRules) -> None:
        self._folder = folder
        self._rules = rules
        self._path = folder / self.NAME
        refuse_special(self._path, rules.output)
        self._files: dict[str, list[str]] = {}
        if self._path.exists():
            self._files = own_record(self._path, rules.output)

    def write(self, path: Path, content: str | bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            HarpError: there is one that is not ours, or that was changed since.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        refuse_special(path, self._rules.output)
        name = path.relative_to(self._folder).as_posix()
        known, digest = self._files.get(name, []), hashlib.sha256(data).hexdigest()
        if path.exists() and (now := file_hash(path)) != digest:
            if not known:
                raise HarpError(f"{path} {_NOT_OURS}: name another {self._rules.output}")
            if now not in known and not self._rules.overwrite:
                raise HarpError(
                    f"{path} is not as it was written: move it away, or give --overwrite to make "
                    "it anew"
                )
        # The record comes first: a kill never leaves a file of ours that is not in it.
        self._files[name] = [*known[-1:], digest]
        write_record(self._path, self._files)
        with whole_file(path) as temporary:
            temporary.write_bytes(data)


def own_record(path: Path, output: str) -> dict[str, Any]:
    """Read a record of ours.

    Raises:
        HarpError: it is damaged, or not ours.
    """
    try:
        return read_record(path)
    except HarpError as error:
        raise HarpError(
            f"{error}, or it {_NOT_OURS}: move it away, or name another {output}"
        ) from error


_NOT_OURS = "was not written by harp, which leaves it as it is"


def read_note(path: Path, output: str) -> dict[str, Any]:
    """The note of a file.

    Raises:
        HarpError: it is damaged, or not ours.
    """
    try:
        note = read_record(note_of(path))
    except HarpError as error:
        raise HarpError(
            f"{error}, or {_NOT_OURS}: move it away with {path.name}, or name another {output}"
        ) from error
    if not all(isinstance(note.get(name), dict) for name in ("settings", "versions")):
        raise HarpError(f"{note_of(path)} {_NOT_OURS}: name another {output}")
    return note


def note_of(path: Path) -> Path:
    """Where the note of a file lies."""
    return path.with_name(f"{path.name}.json")


def refuse_special(path: Path, output: str) -> None:
    """Refuse to write where there is no plain file.

    Raises:
        HarpError: there is a folder, a link, a device or the like.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "no plain file"
        raise HarpError(f"{path} is {kind}: name another {output}")


def refuse_input(output: Path, inputs: Mapping[str, str | Path], option: str) -> None:
    """Refuse to write what is read.

    Args:
        output: a file to be written.
        inputs: paths that are read, by what they are called.
        option: names another place, for errors.

    Raises:
        HarpError: the output is one of the inputs.
    """
    for name, path in inputs.items():
        if output.resolve() == Path(path).resolve() or (
            output.exists() and Path(path).exists() and output.samefile(path)
        ):
            raise HarpError(f"{output} is {name}: name another {option}")


def remove_temporary_of(path: Path) -> None:
    """Remove what killed processes left of a file and of its notes; for its only writer."""
    start, end = re.escape(path.name), re.escape(TEMPORARY)
    name = re.compile(rf"{start}(\.part|\.input)?(\.json)?\.\d+{end}")
    for left in path.parent.iterdir() if path.parent.is_dir() else ():
        if name.fullmatch(left.name) and left.is_file() and not left.is_symlink():
            left.unlink(missing_ok=True)

"""What is finished, whole and current: one answer for everything that harp writes.

An `Artifact` is a folder (its record is ``manifest.json`` in it) or a file (its record is
``NAME.json`` next to it). The record says what the work was made from (`Provenance`) and lists its
files with sizes and SHA-256. Sizes are compared when work is opened; hashes by `verify_record`,
which is ``harp check``.

A folder or a file that is made at once, such as an index, a copy of a table or a run. It appears
whole or not at all, one process makes it, and the others wait::

    provenance = Provenance({"fields": ["title"]}, package_versions("numpy"), {"documents": digest})
    index = Artifact(parent / f"bm25-{provenance.key}", "index", provenance, rules)
    index.make(lambda temporary: build_into(temporary))  # does nothing where it is finished

    run = Artifact(folder / "bm25.run", "run", provenance, rules, is_file=True)
    if not run.is_finished():
        with run.writing() as temporary:
            temporary.write_text(lines)

An index that is an artifact of PyTerrier writes ``pt_meta.json`` into ``temporary`` like any other
file.

A folder that is filled over hours, such as a stage or the folder of a training. ``own`` matches the
files that it may hold before they are listed::

    model = Artifact(folder, "model", provenance, rules, own=r"checkpoint-\\d+/.*")
    if not model.is_finished():
        model.start()  # resumes the same work, or removes other work where the rules allow it
        train(folder)
        model.commit(["config.json", "model.safetensors"], steps=100)

A file that grows. It is started, and unfinished until its parts are copied to its final name::

    part = Artifact(output.with_name("x.run.part"), "part", provenance, rules, is_file=True)
    part.start()  # what the same work wrote before stays
    with part.path.open("ab") as file: ...
    part.clear()

A folder where other files may lie, such as that of results. ``own`` matches what this work writes;
a file of that name that it has not written is refused before anything is computed::

    results = Artifact(
        folder, "results", provenance, rules, own=r"results\\.json|report\\.html", is_shared=True
    )
    results.is_finished()  # HarpError where the files may not be replaced
    results.write({"results.json": text, "report.html": page})
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import HarpError
from .provenance import OverwriteRules, Provenance
from .records import (
    NOT_WRITTEN_BY_HARP,
    changed_file,
    describe_file,
    describe_files,
    read_record,
    write_record,
)
from .writing import TEMPORARY, refuse_special, remove_temporary_of, whole

__all__ = [
    "MANIFEST",
    "STARTED",
    "Artifact",
    "OverwriteRules",
    "Provenance",
    "read_finished",
    "read_if_whole",
    "record_path",
    "remove_empty",
    "verify_record",
]

MANIFEST = "manifest.json"
"""Name of the record of a finished folder."""
STARTED = "started.json"
"""Name of the record of a folder that is started; it stays when the folder is finished."""
_LEFTOVER = re.compile(rf"(.*/)?[^/]*{re.escape(TEMPORARY)}(/.*)?|(.*/)?\.[^/]*\.lock(\.by)?")
"""Locks, and what killed processes have left."""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Artifact:
    """Work in a folder or a file, with a record of what it was made from.

    Only its own files are ever replaced or removed.

    Args:
        path: the folder or the file.
        kind: what it is, such as ``index``.
        provenance: what the work depends on.
        rules: what may be done with other work.
        is_file: ``path`` is a file.
        own: regular expression of the paths in the folder that such work writes, listed or not.
        is_shared: other files may lie in the folder.
    """

    path: Path
    kind: str
    provenance: Provenance
    rules: OverwriteRules = field(default_factory=OverwriteRules)
    _: KW_ONLY
    is_file: bool = False
    own: str = ""
    is_shared: bool = False

    @property
    def _folder(self) -> Path:
        return self.path.parent if self.is_file else self.path

    @property
    def record_path(self) -> Path:
        """Where the record of the finished work lies."""
        return record_path(self.path) if self.is_file else self.path / MANIFEST

    def read(self) -> dict[str, Any] | None:
        """Read the record of the work; it lists no ``files`` where the work is unfinished.

        Returns:
            The record; None if nothing has been started.

        Raises:
            HarpError: harp did not write what is there, or the record is damaged.
        """
        self._refuse_special()
        record = self._read_record()
        if record is None and any(path.exists() for path in self._records):
            raise HarpError(
                f"the record {self._records[0]} is damaged, or {NOT_WRITTEN_BY_HARP}: move it away "
                f"with its files, or name another {self.rules.output}"
            )
        if record is None or self.is_shared:
            self._refuse_unknown(record)
        return record

    def check(self) -> dict[str, Any] | None:
        """Check that what is there is the same work, or may be replaced.

        Returns:
            The record of the same work; None if there is none, or other work that is replaced.

        Raises:
            HarpError: as `is_finished` does, but for files that have changed.
        """
        record = self.read()
        if record is None or self._can_be_used(record):
            return record
        self._refuse_unknown(record)
        return None

    def is_finished(self) -> bool:
        """Return whether the work was made from the same, and no file is missing.

        If it is not, it may be made.

        Raises:
            HarpError: harp did not write what is there; or it was made from something else or has
                changed since, and the rules do not allow to replace it.
        """
        record = self.check()
        if record is None or "files" not in record:
            return False
        damage = changed_file(self._folder, record["files"], whole=self.is_shared)
        if damage is None:
            return True
        if not damage.endswith("missing"):
            self._refuse_damage(damage)
        logger.warning("%s: %s is made again", damage, self.path)
        return False

    def is_whole(self) -> bool:
        """Return whether the work is finished, whatever else is there; without an error."""
        record = self._read_record()
        return (
            record is not None
            and "files" in record
            and self._is_same(record)
            and changed_file(self._folder, record["files"], whole=False) is None
        )

    def make(self, fill: Callable[[Path], None]) -> bool:
        """Make the work unless it is finished; other processes wait meanwhile.

        Args:
            fill: writes the file, or the files of an empty folder, at the path that it gets.

        Returns:
            Whether it was made now.

        Raises:
            HarpError: as `is_finished` does.
        """
        if self.is_whole():  # without a lock, which a folder that cannot be written has not
            self.tell_other_versions()
            return False
        with self.turn():
            if self.is_finished():
                return False
            remove_temporary_of(self.path)
            with self.writing() as temporary:
                fill(temporary)
            return True

    def tell_other_versions(self) -> None:
        """Log a warning, once, where other package versions made the finished work."""
        stored = Provenance.from_record(read_record(self.record_path))
        if difference := self.provenance.version_difference(stored):
            _tell_once(f"{self.path} was made by other package versions ({difference})")

    def turn(self) -> FileLock:
        """Return the lock of one process after another, next to the work; they wait for it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def start(self, **more: Any) -> None:
        """Begin the work, or resume it: other work is removed, the same work stays.

        Args:
            more: further entries of the record, until that of the finished work is written.

        Raises:
            HarpError: as `is_finished` does, or other work lies together with unknown files.
        """
        record = self.check()
        if record is None:
            self.clear()
            record = self._made_from
        self._folder.mkdir(parents=True, exist_ok=True)
        write_record(self._records[-1], {n: record[n] for n in self._made_from} | more)
        if not self.is_file:
            self.record_path.unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a temporary path; at the end of the block, it replaces the work and is finished.

        A folder is made, empty; it must have no writer's lock in it.

        Raises:
            HarpError: the folder holds files that harp did not write.
        """
        with whole(self.path) as temporary:
            if self.is_file:
                yield temporary
                self.clear()
                self._write({self.path.name: describe_file(temporary)}, self.record_path)
            else:
                temporary.mkdir()
                yield temporary
                self.clear()
                names = [path.relative_to(temporary).as_posix() for path in _files_below(temporary)]
                self._write(describe_files(temporary, names), temporary / MANIFEST)

    def write(self, contents: Mapping[str, str | bytes], **more: Any) -> None:
        """Write small files into a shared folder, and record them.

        Args:
            contents: of the files, by their paths in the folder.
            more: further entries of the record.

        Raises:
            HarpError: as `is_finished` does.
        """
        record = self.check()
        if record is None:
            self.clear()
        files = dict((record or {}).get("files", {}))
        data = {name: _as_bytes(content) for name, content in contents.items()}
        for name, content in data.items():
            path = self.path / name
            if name in files and path.exists():
                if damage := changed_file(self.path, {name: files[name]}):
                    self._refuse_damage(damage)
                path.unlink()
            elif path.exists() or path.is_symlink():
                raise HarpError(f"{path} {NOT_WRITTEN_BY_HARP}: name another {self.rules.output}")
            files[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self._write(files, self.record_path, **more)  # first: a kill leaves no file without it
        for name, content in data.items():
            with whole(self.path / name) as temporary:
                temporary.write_bytes(content)

    def commit(
        self, files: Iterable[str] | Mapping[str, Mapping[str, Any]], **more: Any
    ) -> dict[str, Any]:
        """Write the record, by which the work is finished.

        Args:
            files: paths in the folder, or what the record says of each, with size and SHA-256.
            more: further entries of the record.

        Returns:
            The record.
        """
        if not isinstance(files, Mapping):
            files = describe_files(self._folder, files)
        self._write(files, self.record_path, **more)
        return read_record(self.record_path)

    def clear(self) -> None:
        """Remove the work, finished or not, and what killed processes have left of it.

        Raises:
            HarpError: the folder holds files that harp did not write; nothing is removed.
        """
        record = self._read_record()
        self._refuse_unknown(record)
        for path in (*self._own_files(record), *self._records):
            path.unlink(missing_ok=True)
        if not self.is_file and not self.is_shared:
            remove_empty(self.path)

    @property
    def _records(self) -> tuple[Path, ...]:
        """The record of finished work, and that of work that is started."""
        return (self.record_path,) if self.is_file else (self.record_path, self.path / STARTED)

    @property
    def _made_from(self) -> dict[str, Any]:
        return {"kind": self.kind, **json.loads(json.dumps(asdict(self.provenance)))}

    def _write(self, files: Mapping[str, Any], path: Path, **more: Any) -> None:
        write_record(path, {**self._made_from, "files": dict(files), **more})

    def _read_record(self) -> dict[str, Any] | None:
        for path in self._records:
            record = read_if_whole(path)
            if record is not None:
                return record
        return None

    def _is_same(self, record: Mapping[str, Any]) -> bool:
        stored = Provenance.from_record(record)
        return record["kind"] == self.kind and self.provenance.agrees_with(stored, self.rules)

    def _can_be_used(self, record: Mapping[str, Any]) -> bool:
        """Return whether work may be used or resumed; False if it may be replaced."""
        if self._is_same(record):
            return True
        if "files" in record or self._own_files(record):
            if record["kind"] != self.kind and not self.rules.overwrite:
                raise HarpError(
                    f"{self.path} holds {record['kind']}, not {self.kind}: name another "
                    f"{self.rules.output}, or give --overwrite to replace it"
                )
            stored = Provenance.from_record(record)
            self.provenance.refuse_replacing(self.path, stored, self.rules)
        return False

    def _refuse_special(self) -> None:
        """Refuse links, URLs, and a folder in place of a file or a file in place of a folder."""
        refuse_special(self.path, self.rules.output, is_folder=not self.is_file)
        for path in self._records:
            refuse_special(path, self.rules.output)

    def _refuse_damage(self, damage: str) -> None:
        if not self.rules.overwrite:
            raise HarpError(
                f"{damage}: move it away, name another {self.rules.output}, or give --overwrite "
                "to make it again"
            )

    def _refuse_unknown(self, record: Mapping[str, Any] | None) -> None:
        """Refuse files that harp did not write."""
        output = self.rules.output
        if self.is_file and self.path.exists() and record is None:
            raise HarpError(f"{self.path} {NOT_WRITTEN_BY_HARP}: name another {output}")
        if not self.is_file and (unknown := self._unknown_files(record)):
            raise HarpError(
                f"{self._folder} holds {len(unknown):,} files that harp did not write, such as "
                f"{unknown[0]}: name another {output}, or move them away"
            )

    def _unknown_files(self, record: Mapping[str, Any] | None) -> list[str]:
        listed = {*(record or {}).get("files", ()), *(path.name for path in self._records)}
        names = [name for name in self._names() if name not in listed]
        if self.is_shared:
            return [name for name in names if re.fullmatch(self.own, name)]
        names = [name for name in names if not _LEFTOVER.fullmatch(name)]
        return [name for name in names if record is None or not re.fullmatch(self.own, name)]

    def _own_files(self, record: Mapping[str, Any] | None) -> list[Path]:
        """List the files of the work that are there, without its records and locks.

        The records of folders in it come last, so that a kill while they are removed leaves none
        without its record.
        """
        if self.is_file:
            return [self.path] if self.path.exists() else []
        listed = {*(record or {}).get("files", ())}
        names = [
            name
            for name in self._names()
            if name in listed
            or name.endswith(TEMPORARY)
            or (not self.is_shared and re.fullmatch(self.own, name))
        ]
        return [self.path / name for name in sorted(names, key=lambda name: MANIFEST in name)]

    def _names(self) -> list[str]:
        return [path.relative_to(self.path).as_posix() for path in _files_below(self.path)]


@cache
def _tell_once(message: str) -> None:
    logger.warning("%s, and is used: remove it to have it made again", message)


def record_path(path: Path) -> Path:
    """Name the record of a file, which lies next to it."""
    return path.with_name(f"{path.name}.json")


def read_finished(path: Path) -> dict[str, Any]:
    """Read the record of a finished folder or file, whatever it was made from.

    Raises:
        HarpError: it is unfinished, its record is damaged, or a file is missing or has another
            size than the record says.
    """
    record_file = path / MANIFEST if path.is_dir() else record_path(path)
    if not record_file.is_file():
        raise HarpError(f"{path} is not finished, or {NOT_WRITTEN_BY_HARP}: check the path")
    record = read_record(record_file)
    if "files" not in record:
        raise HarpError(f"{path} is not finished: run its command again")
    folder = path if path.is_dir() else path.parent
    if damage := changed_file(folder, record["files"], whole=False):
        raise HarpError(f"{damage}: restore it, or make {path} again")
    return record


def verify_record(record_file: Path) -> list[str]:
    """Compare the whole content of the files that a record lists with their SHA-256.

    Returns:
        One line for each file that is missing or has changed, or for a record that is damaged.
    """
    try:
        files = read_record(record_file).get("files", {})
    except HarpError as error:
        return [str(error)]
    damages = (changed_file(record_file.parent, {name: files[name]}) for name in sorted(files))
    return [damage for damage in damages if damage is not None]


def read_if_whole(path: Path) -> dict[str, Any] | None:
    """Read the record of an artifact; None if it is missing, damaged or of something else."""
    try:
        record = read_record(path)
    except HarpError:
        return None
    is_artifact = record.keys() >= {"kind", "settings", "versions", "inputs"}
    return record if is_artifact else None


def _files_below(folder: Path) -> list[Path]:
    """List all files and links in a folder and in its folders; links are not followed."""
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def remove_empty(folder: Path) -> None:
    """Remove all empty folders in a folder, and itself if it is empty."""
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content

"""One stage of a build: a folder, its finished shards, and the manifest that commits it."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..files.locks import LOCK
from ..files.made_from import MadeFrom, OverwriteRules
from ..files.records import read_record, write_record
from ..files.versions import package_versions
from ..files.writing import TEMPORARY
from .parquet import ShardFile

MANIFEST = "manifest.json"
STARTED = "started.json"
_SHARDS = "shards"
_LEFTOVER = re.compile(rf"(.*/)?[^/]*{re.escape(TEMPORARY)}(/.*)?|{re.escape(LOCK)}.*")
_OURS = re.compile(
    rf"{_LEFTOVER.pattern}|{re.escape(MANIFEST)}|{re.escape(STARTED)}|{_SHARDS}/[^/]*\.json"
    r"|[^/]+/(part|train|from)-[^/]*\.(parquet|jsonl)"
)
"""Paths that a stage writes in its folder, beside those that its manifest lists."""

logger = logging.getLogger(__name__)


class Stage:
    """A folder that a stage fills, shard by shard.

    ``manifest.json`` is written last and commits the whole. Before that, each finished shard has a
    small file under ``shards/``; what has none is written again after a kill. Work that was made
    from other options or other input is replaced only where ``rules`` says so, and what the
    stage did not write is never deleted.

    Args:
        folder: the stage's own folder.
        options: what the stage was asked to do.
        inputs: fingerprints of what it reads; None where that is not known yet.
        packages: distributions whose versions decide the bytes.
        rules: what may be done with other work in the folder.
        kind: what the folder holds; its name by default.
        others: names of files that are written beside the shards, and may be edited later.
        temporary: tables that are removed when the stage is finished.
    """

    def __init__(
        self,
        folder: Path,
        options: Mapping[str, Any],
        inputs: Mapping[str, str | None],
        packages: tuple[str, ...] = (),
        *,
        rules: OverwriteRules | None = None,
        kind: str | None = None,
        others: tuple[str, ...] = (),
        temporary: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.options = json.loads(json.dumps(dict(options)))
        self.inputs = dict(inputs)
        self.packages = ("harp-plugin", *packages)
        self.rules = rules or OverwriteRules()
        self.kind = kind or folder.name
        self.others = others
        self.temporary = temporary

    @property
    def fingerprint(self) -> str:
        """A hash of the options and the inputs."""
        asked = json.dumps([self.options, self.inputs], sort_keys=True)
        return hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()

    @property
    def versions(self) -> dict[str, str]:
        """The installed versions of the packages that decide the bytes."""
        return package_versions(*self.packages)

    @property
    def finished(self) -> bool:
        """Whether the folder holds the whole result of just these options and inputs.

        No file is missing or of another size; `harp check` compares their whole content.
        """
        manifest = _record(self.folder / MANIFEST)
        if manifest is None or manifest.get("fingerprint") != self.fingerprint:
            return False
        return all(file.has_size for file in _all_files(self.folder, manifest))

    def check(self) -> None:
        """Find that the stage may work in its folder.

        Raises:
            HarpError: the folder holds files that no stage wrote, or work of other settings or
                package versions that ``rules`` does not allow to replace or to keep.
        """
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            kind = "symbolic link" if self.folder.is_symlink() else "file"
            raise HarpError(f"{self.folder} is a {kind}, not a folder: name another --output-dir")
        stored = self._stored()
        if stored is None and not self._has_records():
            self._refuse_foreign(_LEFTOVER)
            return
        if stored is not None and self._continues(stored):
            return
        if stored is None:
            raise HarpError(
                f"{self.folder} has a {MANIFEST} or {STARTED} that is damaged or was not written "
                "by harp: move the folder away, or name another --output-dir"
            )
        if self._has_work(stored):
            self._made_from.refuse_replacing(self.folder, _made_from(stored), self.rules)
        self._refuse_foreign(_OURS)

    def is_finished(self) -> bool:
        """Whether nothing is left to do.

        Raises:
            HarpError: as `check` does.
        """
        self.check()
        stored = self._stored()
        return stored is not None and self._continues(stored) and self.finished

    def start(self) -> None:
        """Make the folder ready: keep the finished shards of the same work, clear other work.

        Raises:
            HarpError: as `check` does.
        """
        self.check()
        stored = self._stored()
        if stored is None or not self._continues(stored):
            self._clear()
            stored = self._asked()
        shards = self.folder / _SHARDS
        shards.mkdir(parents=True, exist_ok=True)
        if _record(self.folder / STARTED) is None:
            write_record(self.folder / STARTED, {name: stored[name] for name in self._asked()})
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for leftover in list(self.folder.rglob(f"*{TEMPORARY}")):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        self._forget_damaged_shards()

    def shard_done(self, name: str) -> bool:
        """Whether shard ``name`` is finished."""
        return self._shard(name).is_file()

    def finish_shard(
        self,
        name: str,
        rows: Mapping[str, int],
        drops: Mapping[str, int],
        files: Iterable[ShardFile] = (),
    ) -> None:
        """Commit a shard whose files all have their final names.

        Args:
            name: of the shard.
            rows: written, by table.
            drops: of input, by reason.
            files: all that the shard wrote.
        """
        listed = {file.path.relative_to(self.folder).as_posix(): file.entry for file in files}
        write_record(self._shard(name), {"rows": dict(rows), "drops": dict(drops), "files": listed})

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Sum of rows written and of drops over the finished shards."""
        rows: Counter[str] = Counter()
        drops: Counter[str] = Counter()
        for record in self._shard_records():
            rows.update(record["rows"])
            drops.update(record["drops"])
        return rows, drops

    def table(self, name: str) -> list[ShardFile]:
        """The files of a table that the finished shards wrote, in order."""
        return _table(self.folder, self._files(), name)

    def finish(self, *, needed: str | None = None, **more: Any) -> dict[str, Any]:
        """Write the manifest, which commits the stage, and remove its temporary tables.

        Args:
            needed: a table that must not be empty; None for any.
            more: further entries of the manifest.

        Raises:
            HarpError: the stage has written no row at all, or none of the needed table.
        """
        rows, drops = self.counts()
        if not (rows[needed] if needed else any(rows.values())):
            reasons = ", ".join(f"{reason}: {n:,}" for reason, n in drops.most_common(3))
            inputs = ", ".join(name.rpartition(":")[2] for name in self.inputs)
            raise HarpError(
                f"nothing came out of {inputs} in {self.folder}"
                + (f" (dropped: {reasons})" if reasons else "")
                + ": check the source and the options"
            )
        kept = {
            name: file
            for name, file in self._files().items()
            if name.partition("/")[0] not in self.temporary
        }
        manifest = {
            **self._asked(),
            "content": _content(kept, more),
            "rows": dict(sorted(rows.items())),
            "drops": dict(sorted(drops.items())),
            "files": kept,
            **more,
        }
        write_record(self.folder / MANIFEST, manifest)
        self.remove_temporary_tables()
        return read_manifest(self.folder)

    def remove_temporary_tables(self) -> None:
        """Remove what only an unfinished stage needs."""
        for name in self.temporary:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _asked(self) -> dict[str, Any]:
        return {
            "stage": self.kind,
            "fingerprint": self.fingerprint,
            "options": self.options,
            "inputs": self.inputs,
            "versions": self.versions,
        }

    def _stored(self) -> dict[str, Any] | None:
        """What the work in the folder was made from: by its manifest, else by how it started."""
        for name in (MANIFEST, STARTED):
            stored = _record(self.folder / name)
            if stored is not None and stored.keys() >= self._asked().keys():
                return stored
        return None

    def _has_records(self) -> bool:
        return any((self.folder / name).exists() for name in (MANIFEST, STARTED))

    def _has_work(self, stored: Mapping[str, Any]) -> bool:
        """Whether the folder holds a finished stage, or shards of one that could be gone on with.

        Unfinished work from an input that is another now cannot be gone on with by anyone.
        """
        if "content" in stored:
            return True
        has_same_inputs = self._made_from.has_inputs_of(_made_from(stored))
        return has_same_inputs and any((self.folder / _SHARDS).glob("*.json"))

    @property
    def _made_from(self) -> MadeFrom:
        return _made_from(self._asked())

    def _continues(self, stored: Mapping[str, Any]) -> bool:
        """Whether the work in the folder is the one that is asked for."""
        return self._made_from.agrees_with(_made_from(stored), self.rules)

    def _refuse_foreign(self, ours: re.Pattern[str]) -> None:
        listed = {*self.others, *(_record(self.folder / MANIFEST) or {}).get("files", {})}
        names = (path.relative_to(self.folder).as_posix() for path in _files_below(self.folder))
        foreign = [name for name in names if not ours.fullmatch(name) and name not in listed]
        if foreign:
            raise HarpError(
                f"{self.folder} holds {len(foreign):,} files that harp did not write, such as "
                f"{foreign[0]}: name another --output-dir, or move them away"
            )

    def _clear(self) -> None:
        for path in _files_below(self.folder):
            if path.name != LOCK:
                path.unlink()
        _remove_empty_folders(self.folder)

    def _forget_damaged_shards(self) -> None:
        """Have the shards written again whose record or whose files are damaged."""
        for path in sorted((self.folder / _SHARDS).glob("*.json")):
            record = _record(path)
            files = [] if record is None else _all_files(self.folder, record)
            damaged = [path] if record is None else [f.path for f in files if not f.is_whole]
            if damaged:
                logger.warning("%s is damaged or missing: its shard is made anew", damaged[0])
                path.unlink()

    def _shard(self, name: str) -> Path:
        return self.folder / _SHARDS / f"{name}.json"

    def _shard_records(self) -> Iterator[dict[str, Any]]:
        for path in sorted((self.folder / _SHARDS).glob("*.json")):
            yield read_record(path)

    def _files(self) -> dict[str, Any]:
        files: dict[str, Any] = {}
        for record in self._shard_records():
            files |= record["files"]
        return dict(sorted(files.items()))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a finished stage's manifest.

    Raises:
        HarpError: the stage has not been finished, or its manifest is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise HarpError(f"no finished stage in {folder}: run `harp build` to the end first")
    try:
        manifest = read_record(path)
    except HarpError as error:
        raise HarpError(f"{error}: run `harp build` again, which makes it anew") from error
    if not manifest.keys() >= {"stage", "fingerprint", "content", "files", "rows"}:
        raise HarpError(f"{path} is of no stage of `harp build`: name its folder")
    return manifest


def read_content(directory: Path, *stages: str, needed: bool = True) -> dict[str, str | None]:
    """The hash of what each finished stage of a build holds.

    Args:
        directory: the folder of the build.
        stages: their names.
        needed: whether it is an error that a stage is unfinished; else its hash is None.

    Raises:
        HarpError: a stage is unfinished, its manifest is damaged, or it was made from other tables
            than the folder holds now.
    """
    if not needed:
        found = {stage: _record(directory / stage / MANIFEST) for stage in stages}
        return {stage: (manifest or {}).get("content") for stage, manifest in found.items()}
    manifests = {stage: read_manifest(directory / stage) for stage in stages}
    contents = {stage: manifest["content"] for stage, manifest in manifests.items()}
    for stage, manifest in manifests.items():
        for name in manifest["inputs"].keys() & contents.keys():
            if manifest["inputs"][name] != contents[name]:
                raise HarpError(
                    f"{directory / stage} was made from another {name} than {directory / name}: "
                    "run `harp build` again with --overwrite"
                )
    return contents


def table_files(folder: Path, name: str, *, whole: bool = False) -> list[ShardFile]:
    """The files of a table of a finished stage, in order, checked against its manifest.

    Args:
        folder: of the stage.
        name: of the table.
        whole: compare the whole content of each file, else its size and its number of rows.

    Raises:
        HarpError: the stage is unfinished, or a file is missing, damaged, or not of the stage.
    """
    files = listed_files(folder, name)
    ours = {file.path for file in files}
    for path in sorted((folder / name).glob("*.parquet")):
        if path not in ours:
            raise HarpError(f"{path} is no file of this build: move it away")
    for file in files:
        file.check(whole=whole)
    return files


def listed_files(folder: Path, name: str) -> list[ShardFile]:
    """The files of a table by a finished stage's manifest, in order and unchecked.

    Raises:
        HarpError: the stage is unfinished or has no such table.
    """
    files = _table(folder, read_manifest(folder)["files"], name)
    if not files:
        raise HarpError(f"no table {name} in {folder}: run `harp build` again with its stage")
    return files


def _table(folder: Path, files: Mapping[str, Any], name: str) -> list[ShardFile]:
    return [
        ShardFile.listed(folder / path, file)
        for path, file in sorted(files.items())
        if path.rpartition("/")[0] == name
    ]


def _content(files: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    hashes = {name: file["sha256"] for name, file in files.items()}
    text = json.dumps([hashes, more], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _made_from(manifest: Mapping[str, Any]) -> MadeFrom:
    settings = {"stage": manifest["stage"], **manifest["options"]}
    return MadeFrom(settings, manifest["versions"], manifest["inputs"])


def _record(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path)
    except HarpError:
        return None


def _all_files(folder: Path, record: Mapping[str, Any]) -> list[ShardFile]:
    return [ShardFile.listed(folder / path, file) for path, file in record["files"].items()]


def _files_below(folder: Path) -> list[Path]:
    """All files and symbolic links in a folder and its folders; links are not followed."""
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def _remove_empty_folders(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()

"""One stage of a build: a folder, its finished shards, and the manifest that commits it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .manifest import MANIFEST, STARTED, content_hash, read_manifest, record_or_none, shard_files
from .parquet import ShardFile
from .provenance import MadeFrom, OverwriteRules
from .records import write_record
from .shard_records import SHARDS, ShardRecords
from .store_paths import with_urls
from .unknown_files import clear_folder, refuse_strange_files
from .versions import package_versions
from .writing import remove_temporary

__all__ = ["EmptyStageError", "Stage"]


class EmptyStageError(HarpError):
    """A stage has written no row at all, or none of a table that must not be empty."""


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
        self.options = with_urls(json.loads(json.dumps(dict(options))))
        self.inputs = dict(inputs)
        self.packages = ("harp-plugin", *packages)
        self.rules = rules or OverwriteRules()
        self.kind = kind or folder.name
        self.others = others
        self.temporary = temporary
        self._shards = ShardRecords(folder)

    @property
    def fingerprint(self) -> str:
        """A hash of the options and the inputs."""
        text = json.dumps([self.options, self.inputs], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def versions(self) -> dict[str, str]:
        """The installed versions of the packages that decide the bytes."""
        return package_versions(*self.packages)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the finished stage."""
        return read_manifest(self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether the folder holds the whole result of just these options and inputs.

        No file is missing or of another size; `harp check` compares their whole content.
        """
        manifest = record_or_none(self.folder / MANIFEST)
        if manifest is None or manifest.get("fingerprint") != self.fingerprint:
            return False
        files = shard_files(self.folder, manifest["files"])
        return not any(file.damage(whole=False) for file in files)

    def check(self) -> None:
        """Check that the stage may work in its folder.

        Raises:
            HarpError: the folder holds files that no stage wrote, or work of other settings or
                package versions that ``rules`` does not allow to replace or to keep.
        """
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            kind = "symbolic link" if self.folder.is_symlink() else "file"
            raise HarpError(f"{self.folder} is a {kind}, not a folder: name another --output-dir")
        stored = self._read_stored()
        if stored is None:
            self._refuse_unknown()
        elif not self._agrees_with(stored):
            if self._has_work(stored):
                self._made_from.refuse_replacing(self.folder, _made_from(stored), self.rules)
            refuse_strange_files(self.folder, self._listed(), has_started=True)

    def is_finished(self) -> bool:
        """Tell whether nothing is left to do; temporary tables that a kill has left are removed.

        Raises:
            HarpError: as `check` does.
        """
        self.check()
        stored = self._read_stored()
        is_finished = stored is not None and self._agrees_with(stored) and self.is_whole
        if is_finished:
            self._remove_temporary_tables()
        return is_finished

    def start(self, *, with_others: bool = False) -> None:
        """Make the folder ready: keep the finished shards of the same work, clear other work.

        Args:
            with_others: other hosts may be at work in the folder; what they are writing, or have
                finished by now, is left as it is.

        Raises:
            HarpError: as `check` does; or, with others, one of them has other settings or package
                versions.
        """
        self.check()
        if with_others and self.is_whole:
            return
        stored = self._read_stored()
        if stored is None or not self._agrees_with(stored):
            if stored and with_others and self._made_from.has_inputs_of(_made_from(stored)):
                self._made_from.refuse_replacing(self.folder, _made_from(stored), self.rules)
            clear_folder(self.folder)
            stored = self._record()
        (self.folder / SHARDS).mkdir(parents=True, exist_ok=True)
        if record_or_none(self.folder / STARTED) is None:
            started = {name: stored[name] for name in self._record()}
            write_record(self.folder / STARTED, started)
        (self.folder / MANIFEST).unlink(missing_ok=True)
        if not with_others:
            remove_temporary(self.folder, recursive=True)
        self._shards.forget_damaged()

    def shard_done(self, name: str) -> bool:
        """Tell whether shard ``name`` is finished."""
        return name in self._shards

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

        Raises:
            HarpError: another process has started other work in the folder meanwhile.
        """
        started = record_or_none(self.folder / STARTED)
        if started is not None and not self._agrees_with(started):
            raise HarpError(
                f"another process has started other work in {self.folder}: start all hosts with "
                "the same options and package versions, and give --overwrite"
            )
        self._shards.write(name, rows, drops, files)

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Sum up the rows written and the drops over the finished shards."""
        return self._shards.counts()

    def table(self, name: str) -> list[ShardFile]:
        """List the files of a table that the finished shards wrote, in order."""
        return shard_files(self.folder, self._shards.files(), table=name)

    def finish(
        self, *, needed: str | None = None, with_others: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Write the manifest, which commits the stage, and remove its temporary tables.

        What executors of Spark left unfinished when they were killed is removed as well.

        Args:
            needed: a table that must not be empty; None for any.
            with_others: other hosts may be at work in the folder, as in `start`.
            more: further entries of the manifest.

        Raises:
            EmptyStageError: the stage has written no row at all, or none of the needed table.
        """
        rows, drops = self.counts()
        if not (rows[needed] if needed else any(rows.values())):
            raise EmptyStageError(self._nothing_written(drops))
        if not with_others:
            remove_temporary(self.folder, recursive=True)
        kept = {
            name: entry
            for name, entry in self._shards.files().items()
            if name.partition("/")[0] not in self.temporary
        }
        manifest = {
            **self._record(),
            "content": content_hash(kept, more),
            "rows": dict(sorted(rows.items())),
            "drops": dict(sorted(drops.items())),
            "files": kept,
            **more,
        }
        write_record(self.folder / MANIFEST, manifest)
        self._remove_temporary_tables()
        return read_manifest(self.folder)

    def _remove_temporary_tables(self) -> None:
        for name in self.temporary:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def _made_from(self) -> MadeFrom:
        return _made_from(self._record())

    def _record(self) -> dict[str, Any]:
        """What the manifest and the record of the start say of what the stage is made from."""
        return {
            "stage": self.kind,
            "fingerprint": self.fingerprint,
            "options": self.options,
            "inputs": self.inputs,
            "versions": self.versions,
        }

    def _read_stored(self) -> dict[str, Any] | None:
        """Read what the work in the folder was made from; None where no record can be read."""
        for name in (MANIFEST, STARTED):
            stored = record_or_none(self.folder / name)
            if stored is not None and stored.keys() >= self._record().keys():
                return stored
        return None

    def _agrees_with(self, stored: Mapping[str, Any]) -> bool:
        return self._made_from.agrees_with(_made_from(stored), self.rules)

    def _has_work(self, stored: Mapping[str, Any]) -> bool:
        """Tell whether the folder holds a finished stage, or shards that could be gone on with.

        Nobody can go on with unfinished work from an input that has changed since.
        """
        has_same_inputs = self._made_from.has_inputs_of(_made_from(stored))
        return "content" in stored or (has_same_inputs and self._shards.has_any())

    def _refuse_unknown(self) -> None:
        """Refuse a folder in which no record tells what it holds, unless nothing is there."""
        try:
            if any((self.folder / name).exists() for name in (MANIFEST, STARTED)):
                raise HarpError(
                    f"{self.folder} has a {MANIFEST} or {STARTED} that is damaged or was not "
                    "written by harp: move the folder away, or name another --output-dir"
                )
            refuse_strange_files(self.folder, (), has_started=False)
        except HarpError:
            if self._read_stored() is None:  # another host may have started it just now
                raise

    def _listed(self) -> set[str]:
        manifest = record_or_none(self.folder / MANIFEST) or {}
        return {*self.others, *manifest.get("files", {})}

    def _nothing_written(self, drops: Counter[str]) -> str:
        reasons = ", ".join(f"{reason}: {n:,}" for reason, n in drops.most_common(3))
        inputs = ", ".join(name.rpartition(":")[2] for name in self.inputs)
        dropped = f" (dropped: {reasons})" if reasons else ""
        return (
            f"nothing came out of {inputs} in {self.folder}{dropped}: check the source and the "
            "options"
        )


def _made_from(record: Mapping[str, Any]) -> MadeFrom:
    settings = {"stage": record["stage"], **record["options"]}
    return MadeFrom(settings, record["versions"], record["inputs"])

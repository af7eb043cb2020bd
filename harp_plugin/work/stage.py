"""One stage of a build: a folder, its finished shards, and the manifest that commits it."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .artifact import MANIFEST, STARTED, Artifact, OverwriteRules, Provenance, read_if_whole
from .manifest import content_hash, shard_files
from .parquet import ShardFile
from .provenance import package_versions
from .records import changed_file, read_record, write_record
from .writing import remove_temporary

__all__ = ["SHARDS", "Stage"]

SHARDS = "shards"
"""Name of the folder with a record of each finished shard."""
_OWN = rf"{SHARDS}/[^/]*\.json|[^/]+/(part|train|from)-[^/]*\.(parquet|jsonl)"

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Stage:
    """An `Artifact` that is filled shard by shard.

    ``manifest.json`` is written last and commits the whole. Before that, each finished shard has a
    small file under ``shards/``; what has none is written again after a kill.

    Args:
        folder: the stage's own folder.
        options: what the stage was asked to do.
        inputs: fingerprints of what it reads; None where that is not known yet.
        packages: distributions whose versions decide the bytes.
        rules: what may be done with other work in the folder.
        kind: what the folder holds; its name by default.
        others: names of files that are written next to the shards, and may be edited later.
        temporary: tables that are removed when the stage is finished.
    """

    folder: Path
    options: Mapping[str, Any]
    inputs: Mapping[str, str | None]
    packages: tuple[str, ...] = ()
    _: KW_ONLY
    rules: OverwriteRules = field(default_factory=OverwriteRules)
    kind: str = ""
    others: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.options = json.loads(json.dumps(dict(self.options)))
        self.versions = package_versions("harp-plugin", *self.packages)
        self.kind = self.kind or self.folder.name

    @property
    def _artifact(self) -> Artifact:
        provenance = Provenance(self.options, self.versions, self.inputs)
        rules = self.rules
        started = (
            None if (self.folder / MANIFEST).exists() else read_if_whole(self.folder / STARTED)
        )
        inputs = Provenance({}, {}, self.inputs)
        if started and inputs.difference(Provenance({}, {}, started["inputs"])):
            rules = replace(rules, overwrite=True)  # nobody can resume it: its input is gone
        own = "|".join([_OWN, *map(re.escape, self.others)])
        return Artifact(self.folder, self.kind, provenance, rules, own=own)

    @property
    def is_whole(self) -> bool:
        """Whether the folder holds the finished stage of just these options and inputs."""
        return self._artifact.is_whole()

    def check(self) -> None:
        """Check that the stage may work in its folder.

        Raises:
            HarpError: the folder holds files that no stage wrote, or work of other settings or
                package versions that ``rules`` does not allow to replace or to use.
        """
        self._artifact.check()

    def is_finished(self) -> bool:
        """Return whether nothing is left to do; damaged shards are written again.

        Raises:
            HarpError: as `check` does.
        """
        self.check()
        if self.is_whole:
            self._remove_temporary_tables()
        return self.is_whole

    def start(self, *, with_others: bool = False) -> None:
        """Make the folder ready: keep the finished shards of the same work, clear other work.

        Args:
            with_others: other ranks may be at work in the folder; what they are writing, or have
                finished by now, is left as it is.

        Raises:
            HarpError: as `check` does.
        """
        with self._artifact.turn() if with_others else nullcontext():
            if with_others and self.is_whole:
                return
            if with_others and (started := read_if_whole(self.folder / STARTED)):
                stored, artifact = Provenance.from_record(started), self._artifact
                artifact.provenance.refuse_replacing(self.folder, stored, self.rules)
            self._artifact.start()
            (self.folder / SHARDS).mkdir(exist_ok=True)
            if not with_others:
                remove_temporary(self.folder, recursive=True)
            for path in self._records():
                if damage := self._damage(path):
                    logger.warning("%s: its shard is made again", damage)
                    path.unlink(missing_ok=True)

    def shard_done(self, name: str) -> bool:
        """Return whether shard ``name`` is finished."""
        return self._record_path(name).is_file()

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
        started = read_if_whole(self.folder / STARTED)
        if started is not None and self._artifact.provenance.difference(
            Provenance.from_record(started)
        ):
            raise HarpError(
                f"another process has started other work in {self.folder}: start all ranks with "
                "the same options"
            )
        listed = {file.path.relative_to(self.folder).as_posix(): file.entry for file in files}
        record = {"rows": dict(rows), "drops": dict(drops), "files": listed}
        write_record(self._record_path(name), record)

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Sum up the rows written and the drops over the finished shards."""
        rows: Counter[str] = Counter()
        drops: Counter[str] = Counter()
        for record in map(read_record, self._records()):
            rows.update(record["rows"])
            drops.update(record["drops"])
        return rows, drops

    def table(self, name: str) -> list[ShardFile]:
        """List the files of a table that the finished shards wrote, in order."""
        return shard_files(self.folder, self._files(), name)

    def finish(
        self, *, needed: str | None = None, with_others: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Write the manifest, which commits the stage, and remove what is temporary.

        These are the temporary tables, and the unfinished files of Spark's executors that died.

        Args:
            needed: a table that must not be empty; None for any.
            with_others: other ranks may start the stage meanwhile.
            more: further entries of the manifest.

        Raises:
            HarpError: the stage has written no row at all, or none of the needed table.
        """
        rows, drops = self.counts()
        if not (rows[needed] if needed else any(rows.values())):
            raise HarpError(self._nothing_written(drops))
        for table in self.folder.iterdir():
            remove_temporary(table, recursive=True)
        files = {
            name: entry
            for name, entry in self._files().items()
            if name.partition("/")[0] not in self.temporary
        }
        with self._artifact.turn() if with_others else nullcontext():
            manifest = self._artifact.commit(
                files,
                content=content_hash(files, more),
                rows=dict(sorted(rows.items())),
                drops=dict(sorted(drops.items())),
                **more,
            )
        self._remove_temporary_tables()
        return manifest

    def clear(self) -> None:
        """Remove all that the stage has written."""
        self._artifact.clear()

    def _remove_temporary_tables(self) -> None:
        for name in self.temporary:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _records(self) -> list[Path]:
        return sorted((self.folder / SHARDS).glob("*.json"))

    def _record_path(self, name: str) -> Path:
        return self.folder / SHARDS / f"{name}.json"

    def _files(self) -> dict[str, Any]:
        files: dict[str, Any] = {}
        for record in map(read_record, self._records()):
            files |= record["files"]
        return dict(sorted(files.items()))

    def _damage(self, path: Path) -> str | None:
        try:
            return changed_file(self.folder, read_record(path)["files"], whole=False)
        except HarpError as error:
            return str(error)

    def _nothing_written(self, drops: Counter[str]) -> str:
        reasons = ", ".join(f"{reason}: {n:,}" for reason, n in drops.most_common(3))
        inputs = ", ".join(name.rpartition(":")[2] for name in self.inputs)
        dropped = f" (dropped: {reasons})" if reasons else ""
        return (
            f"nothing came out of {inputs} in {self.folder}{dropped}: check the source and the "
            "options"
        )

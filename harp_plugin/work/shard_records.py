"""The records of a stage's finished shards."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .manifest import record_or_none, shard_files
from .parquet import ShardFile
from .records import read_record, write_record

__all__ = ["SHARDS", "ShardRecords"]

SHARDS = "shards"
"""Name of the folder with a record of each finished shard."""

logger = logging.getLogger(__name__)


class ShardRecords:
    """A small file for each finished shard of a stage: its rows, drops and files.

    Args:
        folder: of the stage.
    """

    def __init__(self, folder: Path) -> None:
        self._stage = folder
        self._folder = folder / SHARDS

    def __contains__(self, name: str) -> bool:
        return self._path(name).is_file()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for path in self._paths():
            yield read_record(path)

    def write(
        self,
        name: str,
        rows: Mapping[str, int],
        drops: Mapping[str, int],
        files: Iterable[ShardFile],
    ) -> None:
        """Record a shard as finished; `Stage.finish_shard` says how."""
        listed = {file.path.relative_to(self._stage).as_posix(): file.entry for file in files}
        record = {"rows": dict(rows), "drops": dict(drops), "files": listed}
        write_record(self._path(name), record)

    def has_any(self) -> bool:
        """Tell whether any shard is finished."""
        return bool(self._paths())

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Sum up the rows written and the drops."""
        rows: Counter[str] = Counter()
        drops: Counter[str] = Counter()
        for record in self:
            rows.update(record["rows"])
            drops.update(record["drops"])
        return rows, drops

    def files(self) -> dict[str, Any]:
        """Collect the entries of all files, by their paths in the stage's folder."""
        files: dict[str, Any] = {}
        for record in self:
            files |= record["files"]
        return dict(sorted(files.items()))

    def forget_damaged(self) -> None:
        """Remove the records of shards that have damage, so that they are written again."""
        for path in self._paths():
            if damage := self._damage(path):
                logger.warning("%s: its shard is made anew", damage)
                path.unlink(missing_ok=True)

    def _damage(self, path: Path) -> str | None:
        record = record_or_none(path)
        if record is None:
            return f"{path} is damaged"
        damages = (file.damage(whole=True) for file in shard_files(self._stage, record["files"]))
        return next(filter(None, damages), None)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

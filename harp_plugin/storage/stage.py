"""One stage of a build: a folder, its finished shards, and the manifest that commits it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import HarpError

MANIFEST = "manifest.json"
_STARTED = "started.json"
_SHARDS = "shards"


class Stage:
    """A folder that a stage fills, shard by shard.

    ``manifest.json`` is written last and commits the whole. Before that, each finished shard has a
    small file under ``shards/``; what has none is written again after a kill. A stage started with
    other options or other input is cleared first.

    Args:
        folder: the stage's own folder.
        options: what the stage was asked to do.
        inputs: fingerprints of what it reads.
        packages: distributions whose versions go into the manifest.
    """

    def __init__(
        self,
        folder: Path,
        options: Mapping[str, Any],
        inputs: Mapping[str, str],
        packages: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.options = dict(options)
        self.inputs = dict(inputs)
        self.packages = ("harp-plugin", *packages)

    @property
    def fingerprint(self) -> str:
        """A hash of the options and the inputs."""
        asked = json.dumps([self.options, self.inputs], sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()

    @property
    def finished(self) -> bool:
        """Whether the folder holds the whole result of just these options and inputs."""
        path = self.folder / MANIFEST
        return path.is_file() and read_manifest(self.folder)["fingerprint"] == self.fingerprint

    def start(self) -> None:
        """Make the folder ready: keep the finished shards of the same work, clear anything else."""
        started = self.folder / _STARTED
        if not started.is_file() or started.read_text() != self.fingerprint:
            if self.folder.exists():
                shutil.rmtree(self.folder)
            (self.folder / _SHARDS).mkdir(parents=True)
            write_text(started, self.fingerprint)
        for leftover in list(self.folder.rglob("*.tmp")):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)

    def shard_done(self, name: str) -> bool:
        """Whether shard ``name`` is finished."""
        return (self.folder / _SHARDS / f"{name}.json").is_file()

    def finish_shard(self, name: str, rows: Mapping[str, int], drops: Mapping[str, int]) -> None:
        """Commit a shard whose tables have all been renamed to their final names."""
        counts = {"rows": dict(rows), "drops": dict(drops)}
        write_text(self.folder / _SHARDS / f"{name}.json", json.dumps(counts, sort_keys=True))

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Sum of rows written and of drops over the finished shards."""
        rows: Counter[str] = Counter()
        drops: Counter[str] = Counter()
        for path in sorted((self.folder / _SHARDS).glob("*.json")):
            counts = json.loads(path.read_text())
            rows.update(counts["rows"])
            drops.update(counts["drops"])
        return rows, drops

    def finish(self, *, needed: str | None = None, **more: Any) -> dict[str, Any]:
        """Write the manifest, which commits the stage.

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
        manifest = {
            "stage": self.folder.name,
            "fingerprint": self.fingerprint,
            "options": self.options,
            "inputs": self.inputs,
            "rows": dict(sorted(rows.items())),
            "drops": dict(sorted(drops.items())),
            "versions": {name: _version(name) for name in self.packages},
            **more,
        }
        text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
        write_text(self.folder / MANIFEST, text + "\n")
        return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a finished stage's manifest.

    Raises:
        HarpError: the stage has not been finished, or its manifest is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise HarpError(f"no finished stage in {folder}: run `harp build` to the end first")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise HarpError(f"{path} is damaged ({error}): delete {folder} and build again") from error


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"

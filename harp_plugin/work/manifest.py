"""The manifest of a finished stage, and the tables that it lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import HarpError
from .artifact import MANIFEST, read_if_whole
from .parquet import ShardFile
from .records import json_hash, read_record

__all__ = [
    "content_hash",
    "most_frequent",
    "read_content",
    "read_manifest",
    "shard_files",
    "source_names",
    "table_files",
]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a finished stage's manifest.

    Raises:
        HarpError: the stage has not been finished, or its manifest is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        kind = folder.name.removesuffix("_negatives")
        asked = "the stage " if kind == folder.name else "--negatives "
        raise HarpError(
            f"no finished stage in {folder}: run `harp build` with {asked}{kind} to the end first"
        )
    try:
        manifest = read_record(path)
    except HarpError as error:
        raise HarpError(f"{error}: run `harp build` again, which makes it again") from error
    if not manifest.keys() >= {"kind", "content", "files", "rows"}:
        raise HarpError(f"{path} is not of a stage of `harp build`: name its folder")
    return manifest


def read_content(directory: Path, *stages: str, needed: bool = True) -> dict[str, str | None]:
    """Read the hash of what each finished stage of a build holds.

    Args:
        directory: the folder of the build.
        stages: their names.
        needed: whether it is an error that a stage is unfinished; else its hash is None.

    Raises:
        HarpError: a stage is unfinished, its manifest is damaged, or it was made from other tables
            than the folder holds now.
    """
    if not needed:
        records = {stage: read_if_whole(directory / stage / MANIFEST) for stage in stages}
        return {stage: (record or {}).get("content") for stage, record in records.items()}
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


def table_files(folder: Path, name: str) -> list[ShardFile]:
    """List the files of a table of a finished stage, in order, and compare their sizes.

    Raises:
        HarpError: the stage is unfinished or has no such table, or a file is missing, has changed,
            or is not of the stage.
    """
    files = shard_files(folder, read_manifest(folder)["files"], name)
    if not files:
        raise HarpError(f"no table {name} in {folder}: run `harp build` again with its stage")
    paths = {file.path for file in files}
    for path in sorted((folder / name).glob("*.parquet")):
        if path not in paths:
            raise HarpError(f"{path} is not a file of this build: move it away")
    for file in files:
        file.check()
    return files


def shard_files(folder: Path, listed: Mapping[str, Any], table: str) -> list[ShardFile]:
    """Turn the files of a table that a record lists into shard files, in order.

    Args:
        folder: of the stage.
        listed: the record's entry for each file, by its path in the folder.
        table: the table.
    """
    return [
        ShardFile(folder / path, **entry)
        for path, entry in sorted(listed.items())
        if path.rpartition("/")[0] == table
    ]


def source_names(directory: Path) -> list[str]:
    """List the names of the sources of a build with a finished corpus."""
    return [name.partition(":")[2] for name in read_manifest(directory / "corpus")["inputs"]]


def most_frequent(drops: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort reasons of drops with their numbers, the most frequent first."""
    return sorted(drops.items(), key=lambda drop: (-drop[1], drop[0]))


def content_hash(files: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    """Compute the hash of what a stage holds, whatever it was made from.

    Args:
        files: the manifest's entry for each file.
        more: what the manifest says of the tables besides their files.
    """
    hashes = {name: entry["sha256"] for name, entry in files.items()}
    return json_hash([hashes, more])[:32]

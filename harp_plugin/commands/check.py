"""`harp check`: compare what commands of harp have written with its checksums."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from ..errors import HarpError
from ..models.folder import MANIFEST as MODEL_MANIFEST
from ..models.folder import listed_files
from ..work.copies import damaged_copies
from ..work.hashes import changed_file, file_hash
from ..work.manifest import MANIFEST, STARTED, read_content, read_manifest, table_files
from ..work.records import CHECKSUM, read_record
from ..work.shard_records import SHARDS
from ..work.with_record import FolderWithRecord

__all__ = ["CheckOptions", "Checked", "check"]

_RECORDS_OF_FOLDERS = (MANIFEST, STARTED, MODEL_MANIFEST)
_OTHER_RECORDS = ("harp_run.json", "harp_index.json", FolderWithRecord.NAME)
_CHECKSUM_LINE = re.compile(rb'^  "%b": "[0-9a-f]{64}"' % CHECKSUM.encode(), re.MULTILINE)
_MOST_BYTES_SEARCHED = 1 << 20
_RESTORE = "restore it, or train again"
_OVERWRITE = "run its command again with --overwrite"


@dataclass
class CheckOptions:
    """How a folder is checked."""

    quiet: bool = field(default=False, metadata={"help": "Show no progress bar."})


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        parts: stages of builds, datasets, models, runs, results and indexes that were compared.
        damages: one line for each damage: the file, what is wrong, and what to do.
        unfinished: folders of stages that their command will continue.
    """

    parts: int
    damages: list[str]
    unfinished: list[Path]

    def __str__(self) -> str:
        return "\n".join(
            [
                *self.damages,
                *(f"{folder} is unfinished: run its command again" for folder in self.unfinished),
                f"{self.parts:,} parts checked, {len(self.damages):,} damages",
            ]
        )


def check(directory: str | Path, options: CheckOptions | None = None) -> Checked:
    """Compare all that commands of harp have written to a folder with its checksums.

    Nothing is changed.

    Args:
        directory: what a command wrote, or a folder that holds such folders.
        options: how it is done.

    Raises:
        HarpError: there is no such folder, or it holds nothing that can be checked.
    """
    directory, options = Path(directory), options or CheckOptions()
    if not directory.is_dir():
        raise HarpError(f"no folder {directory}: check the path")
    started = {*_parents(directory, MANIFEST), *_parents(directory, STARTED)}
    unfinished = sorted(folder for folder in started if not (folder / MANIFEST).exists())
    stages = sorted(started - set(unfinished))
    models = sorted(_parents(directory, MODEL_MANIFEST))
    records = [path for path in sorted(directory.rglob("*.json")) if _is_other_record(path)]
    work: list[tuple[Callable[[Path], Iterable[str]], Path]] = [
        *((_stage_damages, folder) for folder in stages),
        *((_build_damages, folder) for folder in sorted({stage.parent for stage in stages})),
        *((_model_damages, folder) for folder in models),
        *((_record_damages, path) for path in records),
    ]
    if not work and not unfinished:
        raise HarpError(f"{directory} holds nothing that harp has written: name its folder")
    damages: list[str] = []
    for find_damages, path in tqdm(work, desc="check", disable=options.quiet):
        damages += find_damages(path)
    return Checked(len(stages) + len(models) + len(records), damages, unfinished)


def _parents(directory: Path, name: str) -> Iterator[Path]:
    """Find folders with a record of this name.

    Other programs write files of the same names. So one of a stage's two records must have a
    checksum; the other one may be damaged.
    """
    for path in directory.rglob(name):
        others = (path.with_name(other) for other in (MANIFEST, STARTED) if other != name)
        if name == MODEL_MANIFEST or any(_has_checksum(file) for file in (path, *others)):
            yield path.parent


def _has_checksum(path: Path) -> bool:
    """Tell whether a file has a checksum where records have it, so that harp wrote it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _CHECKSUM_LINE.search(file.read(_MOST_BYTES_SEARCHED)) is not None


def _stage_damages(folder: Path) -> Iterator[str]:
    try:
        tables = {name.rpartition("/")[0] for name in read_manifest(folder)["files"]}
    except HarpError as error:
        yield str(error)
        return
    for table in sorted(tables):
        try:
            table_files(folder, table, whole=True)
        except HarpError as error:
            yield str(error)


def _build_damages(build: Path) -> Iterator[str]:
    """Find stages that do not fit together, and damaged copies for look-ups."""
    stages = [path.parent.name for path in sorted(build.glob(f"*/{MANIFEST}"))]
    contents = read_content(build, *stages, needed=False)
    try:
        read_content(build, *(stage for stage, content in contents.items() if content))
    except HarpError as error:
        yield str(error)
    for path in damaged_copies(build / "mapped"):
        yield f"{path} is damaged or missing: the next command that needs it makes it anew"


def _model_damages(folder: Path) -> Iterator[str]:
    try:
        files = listed_files(folder)
        was_discarded = not any((folder / name).exists() for name in files)
        if not was_discarded and (damage := changed_file(folder, files)):
            yield f"{damage}: {_RESTORE}"
    except (HarpError, OSError) as error:
        yield f"{error}: {_RESTORE}"


def _is_other_record(path: Path) -> bool:
    """Tell whether a file is a record that harp wrote outside of builds and models."""
    if path.parent.name in (SHARDS, "mapped") or path.name in _RECORDS_OF_FOLDERS:
        return False
    return path.is_file() and (path.name in _OTHER_RECORDS or _has_checksum(path))


def _record_damages(path: Path) -> Iterator[str]:
    """Find damage of a record, and of the files whose hashes it holds."""
    try:
        record = read_record(path)
    except HarpError as error:
        yield f"{error}: {_OVERWRITE}"
        return
    if damage := changed_file(path.parent, record.get("files", {})):
        yield f"{damage}: {_OVERWRITE}"
    hashes = record if path.name == FolderWithRecord.NAME else {}
    if isinstance(record.get("sha256"), str):
        hashes = {path.name.removesuffix(".json"): [record["sha256"]]}
    for name, written in sorted(hashes.items()):
        file = path.parent / name
        if not file.is_file():
            yield f"{file} is missing: run its command again"
        elif file_hash(file) not in written:
            yield f"{file} has changed since it was written: {_OVERWRITE}"

"""`harp check`: whether what our commands have written is still as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from ..errors import HarpError
from ..files.hashes import changed_file, file_hash
from ..files.records import CHECKSUM, read_record
from ..files.with_record import FolderWithRecord
from ..models.folder import MANIFEST as MODEL_MANIFEST
from ..models.folder import listed_files
from ..storage.mapped import damaged_copies
from ..storage.stage import MANIFEST, STARTED, read_content, read_manifest, table_files

_OF_FOLDERS = (MANIFEST, STARTED, MODEL_MANIFEST)
_RECORDS = ("harp_run.json", "harp_index.json", FolderWithRecord.NAME)
_OURS = re.compile(rb'^  "%b": "[0-9a-f]{64}"' % CHECKSUM.encode(), re.MULTILINE)
_HEAD = 1 << 20
_RESTORE = "restore it, or train again"


@dataclass
class CheckOptions:
    """How a folder is checked."""

    quiet: bool = field(default=False, metadata={"help": "No progress bar."})


@dataclass(frozen=True)
class Checked:
    """What was found.

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
    """Compare all that our commands have written to a folder with its checksums.

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
        *((_of_stage, folder) for folder in stages),
        *((_of_build, folder) for folder in sorted({stage.parent for stage in stages})),
        *((_of_model, folder) for folder in models),
        *((_of_record, path) for path in records),
    ]
    if not work and not unfinished:
        raise HarpError(f"{directory} holds nothing that harp has written: name its folder")
    damages: list[str] = []
    for find, path in tqdm(work, desc="check", disable=options.quiet):
        damages += find(path)
    return Checked(len(stages) + len(models) + len(records), damages, unfinished)


def _parents(directory: Path, name: str) -> Iterator[Path]:
    """Folders with a record of this name that is ours, or that stands beside one of ours."""
    for path in directory.rglob(name):
        others = (path.with_name(other) for other in (MANIFEST, STARTED) if other != name)
        if name == MODEL_MANIFEST or any(_is_ours(file) for file in (path, *others)):
            yield path.parent


def _is_ours(path: Path) -> bool:
    """Whether a file has a checksum where our records have it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _OURS.search(file.read(_HEAD)) is not None


def _of_stage(folder: Path) -> Iterator[str]:
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


def _of_build(build: Path) -> Iterator[str]:
    """Damage between the stages of a build, and of its copies for look-ups."""
    names = [path.parent.name for path in sorted(build.glob(f"*/{MANIFEST}"))]
    whole = [name for name, content in read_content(build, *names, needed=False).items() if content]
    try:
        read_content(build, *whole)
    except HarpError as error:
        yield str(error)
    for path in damaged_copies(build / "mapped"):
        yield f"{path} is damaged or missing: the next command that needs it makes it anew"


def _of_model(folder: Path) -> Iterator[str]:
    try:
        files = listed_files(folder)
        was_discarded = not any((folder / name).exists() for name in files)
        if not was_discarded and (damage := changed_file(folder, files)):
            yield f"{damage}: {_RESTORE}"
    except (HarpError, OSError) as error:
        yield f"{error}: {_RESTORE}"


def _is_other_record(path: Path) -> bool:
    """Whether a file is a record of ours outside of builds and models."""
    if path.parent.name in ("shards", "mapped") or path.name in _OF_FOLDERS:
        return False
    return path.is_file() and (path.name in _RECORDS or _is_ours(path))


def _of_record(path: Path) -> Iterator[str]:
    """Damage of a record, and of the files whose hashes it holds."""
    try:
        record = read_record(path)
    except HarpError as error:
        yield f"{error}: run its command again with --overwrite"
        return
    if damage := changed_file(path.parent, record.get("files", {})):
        yield f"{damage}: run its command again with --overwrite"
    hashes = record if path.name == FolderWithRecord.NAME else {}
    if isinstance(record.get("sha256"), str):
        hashes = {path.name.removesuffix(".json"): [record["sha256"]]}
    for name, known in sorted(hashes.items()):
        file = path.parent / name
        if not file.is_file():
            yield f"{file} is missing: run its command again"
        elif file_hash(file) not in known:
            yield f"{file} is not as it was written: run its command again with --overwrite"

"""`harp check`: compare what commands of harp have written with its checksums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ..errors import HarpError, show
from ..options import Progress
from ..options_parser import Command
from ..work.artifact import MANIFEST, STARTED, verify_record
from ..work.manifest import read_content
from ..work.records import CHECKSUM
from ..work.stage import SHARDS

__all__ = ["Checked", "check"]

_CHECKSUM_LINE = re.compile(rb'^  "%b": "[0-9a-f]{64}"' % CHECKSUM.encode(), re.MULTILINE)
_MOST_BYTES_SEARCHED = 1 << 20
_FOLDER = {"metavar": "DIR", "help": "Folder that a command wrote."}
_ADVICE = "restore it, or delete it and run its command again"


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        parts: stages of builds, datasets, models, runs, results and indexes that were compared.
        damages: one line for each damage: the file, what is wrong, and what to do.
        unfinished: folders that their command will resume.
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


def check(directory: str | Path, options: Progress | None = None) -> Checked:
    """Compare all that commands of harp have written to a folder with its checksums.

    Nothing is changed.

    Args:
        directory: what a command wrote, or a folder that holds such folders.
        options: what is shown meanwhile.

    Raises:
        HarpError: there is no such folder, or it holds nothing that can be checked.
    """
    directory, options = Path(directory), options or Progress()
    if not directory.is_dir():
        raise HarpError(f"no folder {directory}: check the path")
    records = list(_records(directory))
    unfinished = [path.parent for path in records if path.name == STARTED]
    records = [path for path in records if path.name != STARTED]
    if not records and not unfinished:
        raise HarpError(f"{directory} holds nothing that harp has written: name its folder")
    damages: list[str] = []
    for record in tqdm(records, desc="check", disable=options.quiet):
        damages += (f"{damage}: {_ADVICE}" for damage in verify_record(record))
    for build in sorted({path.parent.parent for path in records if path.name == MANIFEST}):
        damages += _stages_of_other_tables(build)
    return Checked(len(records), damages, unfinished)


def _records(directory: Path) -> Iterator[Path]:
    """Find the records of finished work, and those of work that was started and not finished.

    Other programs write files of the same names: what harp wrote has a checksum, or lies next to a
    record of harp that has one.
    """
    for path in sorted(directory.rglob("*.json")):
        manifest, started = (path.with_name(name) for name in (MANIFEST, STARTED))
        if path.parent.name == SHARDS or not path.is_file():
            continue
        if path.name == STARTED:
            is_record = _has_checksum(path) and not manifest.exists()
        else:
            is_record = _has_checksum(path) or (path == manifest and _has_checksum(started))
        if is_record:
            yield path


def _has_checksum(path: Path) -> bool:
    """Return whether a file has a checksum where records have it, so that harp wrote it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _CHECKSUM_LINE.search(file.read(_MOST_BYTES_SEARCHED)) is not None


def _stages_of_other_tables(build: Path) -> list[str]:
    """Find stages of a build that do not fit together."""
    stages = [path.parent.name for path in sorted(build.glob(f"*/{MANIFEST}"))]
    contents = read_content(build, *stages, needed=False)
    try:
        read_content(build, *(stage for stage, content in contents.items() if content))
    except HarpError as error:
        return [str(error)]
    return []


@Command("DIR", Progress, positional=_FOLDER)
def command(options: Progress, directory: str) -> int:
    """All files of builds, datasets, models, runs and indexes in a folder are compared.

    The command prints a line for each damage and changes nothing. Its exit status is 2 if there is
    a damage.
    """
    checked = check(directory, options)
    show(checked)
    return 2 if checked.damages else 0

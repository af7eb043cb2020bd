"""`harp check`: whether what our commands have written is still as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from .errors import HarpError
from .files import read_record
from .model_folder import MANIFEST as MODEL_MANIFEST
from .model_folder import changed_file, listed_files
from .storage.mapped import damaged_copies
from .storage.stage import MANIFEST, STARTED, read_content, read_manifest, table_files


@dataclass
class CheckOptions:
    """How a folder is checked."""

    quiet: bool = field(default=False, metadata={"help": "No progress bar."})


@dataclass(frozen=True)
class Checked:
    """What was found.

    Attributes:
        folders: stages of builds, datasets and models whose files were compared.
        damages: one line for each damage: the file, what is wrong, and what to do.
    """

    folders: int
    damages: list[str]

    def __str__(self) -> str:
        said = f"{self.folders:,} folders checked, {len(self.damages):,} damages"
        return "\n".join([*self.damages, said])


def check(directory: str | Path, options: CheckOptions | None = None) -> Checked:
    """Compare all files of builds, datasets and models in a folder with their checksums.

    Nothing is changed.

    Args:
        directory: what `harp build`, `harp export`, `harp train` or `harp finetune` wrote, or a
            folder that holds such folders.
        options: how it is done.

    Raises:
        HarpError: there is no such folder, or it holds nothing that can be checked.
    """
    directory, options = Path(directory), options or CheckOptions()
    if not directory.is_dir():
        raise HarpError(f"no folder {directory}: check the path")
    stages = sorted({*_parents(directory, MANIFEST), *_parents(directory, STARTED)})
    models = sorted(_parents(directory, MODEL_MANIFEST))
    builds = sorted({stage.parent for stage in stages})
    if not stages and not models:
        raise HarpError(f"{directory} holds no build, dataset or model of ours: name its folder")
    damages: list[str] = []
    with tqdm(total=len(stages) + len(models), desc="check", disable=options.quiet) as bar:
        for folder in [*stages, *models]:
            damages += _of_model(folder) if folder in models else _of_stage(folder)
            bar.update()
    for build in builds:
        damages += _of_build(build, [stage for stage in stages if stage.parent == build])
    return Checked(len(stages) + len(models), damages)


def _parents(directory: Path, name: str) -> Iterator[Path]:
    return (path.parent for path in directory.rglob(name) if path.is_file())


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


def _of_build(build: Path, stages: list[Path]) -> Iterator[str]:
    """Damage between the stages, and of the copies for look-ups."""
    try:
        read_content(build, *(stage.name for stage in stages))
    except HarpError as error:
        if all((stage / MANIFEST).is_file() for stage in stages) and "another" in str(error):
            yield str(error)
    for path in damaged_copies(build / "mapped"):
        yield f"{path} is damaged or missing: the next command that needs it makes it anew"


def _of_model(folder: Path) -> Iterator[str]:
    try:
        if damage := changed_file(folder, listed_files(folder)):
            yield f"{damage}: restore it, or train again"
        read_record(folder / MODEL_MANIFEST)
    except (HarpError, OSError) as error:
        yield f"{error}: restore it, or train again"

"""`harp collect`: judged queries from the corpus itself, as a test collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..collections.known_items.collection import build_collection, summary
from ..collections.known_items.queries import QueryOptions
from ..corpus.pages import EMPTY_INDEX
from ..errors import show
from ..options import Overwriting, Progress, Workers
from ..options_parser import BUILD, Command
from ..work.build_stage import BuildRequest
from ..work.lock import one_writer
from ..work.manifest import read_content, read_manifest
from ..work.sql.engine import EngineOptions

__all__ = ["CollectOptions", "collect", "summary"]


@dataclass
class CollectOptions(Workers, Progress, Overwriting):
    """Where the collection is written.

    Attributes:
        output_dir: Folder for the collection.
    """

    output_dir: str


def collect(
    directory: str | Path,
    options: CollectOptions,
    queries: QueryOptions | None = None,
    engine: EngineOptions | None = None,
) -> Path:
    """Make judged queries from a finished build, and write them as a test collection.

    The folder is a dataset of ir_datasets: ``harp:FOLDER`` has the documents; with ``/train``,
    ``/dev`` or ``/test`` behind it, it has queries and judgments as well. The same build and
    options give the same bytes.

    Args:
        directory: a folder written by ``harp build``.
        options: where the collection is written.
        queries: which queries are made.
        engine: the engine of the relational work and its memory.

    Returns:
        The folder.

    Raises:
        HarpError: the build is unfinished or damaged, no query can be made of it, or the folder
            holds another collection or other files.
    """
    folder = Path(options.output_dir)
    request = BuildRequest(
        Path(directory),
        (queries or QueryOptions(), engine or EngineOptions()),
        workers=options.workers,
        quiet=options.quiet,
        rules=options.rules,
        output=folder,
    )
    read_content(request.directory, *build_collection.needs)
    build_collection.stage(request).check()
    with one_writer(folder):
        build_collection.build(request)
    return folder


@Command("DIR --output-dir DIR", CollectOptions, QueryOptions, EngineOptions, positional=BUILD)
def command(
    options: CollectOptions, queries: QueryOptions, engine: EngineOptions, directory: str
) -> None:
    """Queries are index terms, redirects and held-out links.

    ir_datasets, PyTerrier and `harp evaluate` know the folder as harp:DIR/train, harp:DIR/dev and
    harp:DIR/test.
    """
    folder = collect(directory, options, queries, engine)
    if empty := read_manifest(Path(directory) / "corpus")["drops"].get(EMPTY_INDEX.reason):
        show(f"{empty:,} x {EMPTY_INDEX.reason}: {directory} has no query of it")
    show(f"{summary(folder)}\ncollection: harp:{folder}")

"""`harp collect`: judged queries from the corpus itself, as a test collection."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ..collections.known_items.collection import collection_stage, make_collection
from ..collections.known_items.folder import summary
from ..collections.known_items.options import QueryOptions
from ..work.lock import one_writer
from ..work.provenance import OverwriteRules, keep_option, overwrite_option
from ..work.sql.engine import EngineOptions

__all__ = ["CollectOptions", "collect", "summary"]


@dataclass
class CollectOptions:
    """Where the collection is written."""

    output_dir: str = field(metadata={"help": "Folder for the collection."})
    workers: int = field(
        default=os.cpu_count() or 1,
        metadata={"help": "How many threads run. The files are the same for any number."},
    )
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar."})
    overwrite: bool = overwrite_option("a collection")
    keep: bool = keep_option()


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
    directory, queries = Path(directory), queries or QueryOptions()
    rules = OverwriteRules(options.overwrite, options.keep)
    stage = collection_stage(directory, Path(options.output_dir), queries, rules)
    stage.check()
    with one_writer(stage.folder):
        if not stage.is_finished():
            make_collection(
                stage, directory, queries, engine, workers=options.workers, quiet=options.quiet
            )
    return stage.folder

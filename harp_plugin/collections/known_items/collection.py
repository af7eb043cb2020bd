"""Makes a test collection of a build, in the folder of a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import HarpError
from ...work.build_stage import BuildRequest, BuildStage, StageOptions
from ...work.manifest import read_manifest
from ...work.parquet import read_batches
from ...work.sql.steps import PACKAGES, run_steps
from ...work.stage import Stage
from .documents import DocumentIds, named_pages, page_keys, write_documents
from .folder import CARD, FILES, write_card, write_queries, write_record_of
from .options import QueryOptions
from .queries import Term, judged_queries
from .splits import drawn_queries, shared_by_splits, split_queries
from .tables import PAGES, TERMS, sources, steps

__all__ = ["build_collection"]

_COLLECTION = "collection"


def _options(request: BuildRequest) -> StageOptions:
    return StageOptions(asdict(request.of(QueryOptions)), packages=PACKAGES)


def _make(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Make the collection, or what is missing of it.

    Raises:
        HarpError: no query can be made, or the engine fails.
    """
    options, tables = request.of(QueryOptions), sources(request.directory)
    run_steps(
        *(stage, tables, steps(options.kinds, [*tables]), request.engine),
        workers=request.workers,
        quiet=request.quiet,
    )
    if not stage.shard_done(_COLLECTION):
        _write(stage, request.directory, options)
    return {}


def _write(stage: Stage, directory: Path, options: QueryOptions) -> None:
    """Write all files of the collection."""
    _, counted = stage.counts()
    drops = Counter(counted)
    files = [file.path for file in stage.table(PAGES)]
    terms = list(_terms(stage))
    ids = DocumentIds(page_keys(files))
    pages = named_pages(files, {term.page for term in terms}, ids)
    queries = judged_queries(terms, pages, options, drops)
    splits = drawn_queries(split_queries(queries, options, drops), options, drops)
    if not any(splits.values()):
        stage.clear()  # other options may be given for it
        raise HarpError(_nothing(directory, options, len(terms), drops))
    folder = stage.folder
    written = write_documents(files, folder, ids) + write_queries(folder, splits, pages)
    rows = {"documents": written[0].rows}
    audit = shared_by_splits(splits) | {"document ids made longer to be unique": ids.lengthened}
    made_from = {"settings": stage.options, "inputs": stage.inputs}
    written.append(write_record_of(folder, made_from, rows["documents"], splits, audit, +drops))
    if not (folder / CARD).exists():  # it may have been edited since
        write_card(folder, _source(directory), _held_out_by(directory), splits, pages)
    rows |= {f"{split} queries": len(chosen) for split, chosen in splits.items()}
    stage.finish_shard(_COLLECTION, rows, +drops - counted, written)


def _terms(stage: Stage) -> Iterator[Term]:
    for file in stage.table(TERMS):
        for batch in read_batches(file.path, list(Term._fields)):
            yield from (Term(**row) for row in batch.to_pylist())


def _source(directory: Path) -> str:
    inputs: dict[str, Any] = read_manifest(directory / "corpus")["inputs"]
    return ", ".join(name.partition(":")[2] for name in inputs)


def _held_out_by(directory: Path) -> str:
    return read_manifest(directory / "graph")["settings"].get("held_out_by", "")


def _nothing(directory: Path, options: QueryOptions, terms: int, drops: Counter[str]) -> str:
    kinds = ", ".join(options.kinds)
    if not terms:
        return (
            f"{directory} has nothing of the kinds {kinds} to make queries of: build it again with "
            "--overwrite --held-out-links 0.1, or read a source with redirects or index terms"
        )
    reasons = ", ".join(f"{name}: {count:,}" for name, count in drops.most_common(3))
    return f"no query is left of {terms:,} terms of {directory} (dropped: {reasons}): keep more"


build_collection = BuildStage(
    _COLLECTION, ("corpus", "graph"), _options, _make, temporary=(TERMS, PAGES), others=FILES
)

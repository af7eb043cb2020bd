"""Makes a test collection of a build, in the folder of a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

from ...errors import HarpError
from ...sampling import stable_id
from ...work.build_stage import BuildRequest, BuildStage, StageOptions
from ...work.manifest import read_manifest
from ...work.parquet import ShardFile, read_batches
from ...work.records import read_record, write_record
from ...work.sql.steps import PACKAGES, run_steps
from ...work.stage import Stage
from ...work.writing import write_text
from ..datasets import DOCUMENTS, QRELS, QUERIES, SPLITS
from .documents import DocumentIds, named_pages, page_keys, write_documents
from .queries import NamedPage, Query, QueryOptions, Term, judged_queries
from .splits import drawn_queries, shared_by_splits, split_queries
from .tables import PAGES, TERMS, sources, steps

__all__ = ["RECORD", "build_collection", "summary"]

_COLLECTION = "collection"
CARD = "README.md"
RECORD = "collection.json"
_QUERY_FILES = tuple(f"{split}/{name}" for split in SPLITS for name in (QUERIES, QRELS))
FILES = (DOCUMENTS, "documents.index.npy", *_QUERY_FILES, RECORD, CARD)
"""What is written, next to the records of the stage."""
_SAMPLES = 10
_HELD_OUT = {
    "": "No link was held out.",
    "page": "Links were held out by page: what a `link` query asks for has no `anchor_text`.",
    "text": "Links were held out by text: what a `link` query asks for may have other links.",
}
"""What the data card says of the anchor texts of documents."""

Splits = Mapping[str, Sequence[Query]]


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


def write_queries(folder: Path, splits: Splits, pages: Mapping[int, NamedPage]) -> list[ShardFile]:
    """Write the queries and judgments of each split.

    Returns:
        The files.
    """
    written = []
    for split, queries in splits.items():
        lines = [f"{query.id}\t{query.text}\n" for query in queries]
        judged = [
            f"{query.id} 0 {pages[page].doc_id} 1\n" for query in queries for page in query.pages
        ]
        for name, rows in ((QUERIES, lines), (QRELS, judged)):
            path = folder / split / name
            write_text(path, "".join(rows))
            written.append(ShardFile.from_path(path, len(rows)))
    return written


def _counts(splits: Splits) -> dict[str, dict[str, dict[str, int]]]:
    """Count the queries and the relevant pages of each split and kind."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for split, queries in splits.items():
        by_kind = counts.setdefault(split, {})
        for kind in sorted({query.kind for query in queries}):
            chosen = [query for query in queries if query.kind == kind]
            relevant = sum(len(query.pages) for query in chosen)
            by_kind[kind] = {"queries": len(chosen), "relevant pages": relevant}
    return counts


def write_record_of(
    folder: Path,
    made_from: Mapping[str, Any],
    documents: int,
    splits: Splits,
    audit: Mapping[str, int],
    drops: Mapping[str, int],
) -> ShardFile:
    """Write ``collection.json``: what the collection is made of, and its counts.

    Args:
        folder: of the collection, whose other files are written.
        made_from: its settings and inputs.
        documents: their number.
        splits: the queries of each split.
        audit: what the audit has counted.
        drops: what was left out, by reason.
    """
    record = {
        **made_from,
        "documents": documents,
        "queries": _counts(splits),
        "audit": audit,
        "drops": drops,
    }
    write_record(folder / RECORD, record)
    return ShardFile.from_path(folder / RECORD, 1)


def write_card(
    folder: Path, source: str, held_out_by: str, splits: Splits, pages: Mapping[int, NamedPage]
) -> None:
    """Write ``README.md``, the data card.

    Args:
        folder: of the collection, whose record is written.
        source: what the corpus was made of.
        held_out_by: ``page`` or ``text``; empty where no link is held out.
        splits: the queries of each split.
        pages: what is known of their pages.
    """
    record = read_record(folder / RECORD)
    queries = [query for chosen in splits.values() for query in chosen]
    samples = sorted(queries, key=lambda query: stable_id("sample", query.id))[:_SAMPLES]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "counts": [
            (split, kind, f"{count['queries']:,}", f"{count['relevant pages']:,}")
            for split in SPLITS
            for kind, count in record["queries"][split].items()
        ],
        "samples": [
            (query.id, query.text, ", ".join(pages[page].doc_id for page in query.pages))
            for query in samples
        ],
        "audit": [(name, f"{count:,}") for name, count in record["audit"].items()],
        "drops": [(name, f"{count:,}") for name, count in _by_count(record["drops"])],
        "options": list(record["settings"].items()),
    }
    card = Template((files("harp_plugin") / "data" / "collection-card.md").read_text("utf-8"))
    text = card.substitute(
        {name: "\n".join(_row(cells) for cells in table) for name, table in rows.items()},
        sources=source,
        anchors=_HELD_OUT[held_out_by],
        documents=f"{record['documents']:,}",
        queries=f"{len(queries):,}",
    )
    write_text(folder / CARD, text)


def summary(folder: Path) -> str:
    """Write the counts of a finished collection as lines of at most 80 columns."""
    record = read_record(folder / RECORD)
    lines = [f"{'documents':<44} {record['documents']:>12,}"]
    for split in SPLITS:
        for kind, count in record["queries"][split].items():
            lines.append(f"{split:<6} {kind:<10} {'queries':<26} {count['queries']:>12,}")
    lines += [f"{name[:43]:<44} {count:>12,}" for name, count in record["audit"].items()]
    for name, count in _by_count(record["drops"]):
        start = f"dropped {count:>10,}  "
        lines += wrap(name, 80, initial_indent=start, subsequent_indent=" " * len(start))
    return "\n".join(lines)


def _by_count(drops: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(Counter(drops).items(), key=lambda drop: (-drop[1], drop[0]))


def _row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in cells)} |"


build_collection = BuildStage(
    _COLLECTION, ("corpus", "graph"), _options, _make, temporary=(TERMS, PAGES), others=FILES
)

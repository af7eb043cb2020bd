"""Makes a test collection of a build, in the folder of a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

from ...errors import HarpError
from ...sampling import stable_id
from ...work.build_stage import BuildRequest, BuildStage, StageOptions
from ...work.manifest import most_frequent, read_manifest, source_names
from ...work.parquet import ShardFile, read_batches, write_lines
from ...work.sql.steps import PACKAGES, run_steps
from ...work.stage import Stage
from ...work.writing import write_text
from ..datasets import DOCUMENTS, QRELS, QUERIES, SPLITS
from .documents import DocumentIds, named_pages, page_keys, write_documents
from .queries import NamedPage, Query, QueryOptions, Term, judged_queries
from .splits import (
    drawn_queries,
    few_queries_of_a_page,
    queries_of_other_pages,
    shared_by_splits,
    split_queries,
)
from .tables import PAGES, TERMS, sources, steps

__all__ = ["build_collection", "summary"]

_COLLECTION = "collection"
CARD = "README.md"
_QUERY_FILES = tuple(f"{split}/{name}" for split in SPLITS for name in (QUERIES, QRELS))
FILES = (DOCUMENTS, "documents.index.npy", *_QUERY_FILES, CARD)
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
    paths = [file.path for file in stage.table(PAGES)]
    terms = [term for term in _terms(stage) if term.kind != "anchor"]
    ids = DocumentIds(page_keys(paths))
    pages = named_pages(paths, {term.page for term in terms}, ids)
    queries = few_queries_of_a_page(judged_queries(terms, pages, options, drops), options, drops)
    splits = drawn_queries(split_queries(queries, options, drops), options, drops)
    if not splits["train"]:
        anchors = [term for term in _terms(stage) if term.kind == "anchor"]
        pages |= named_pages(paths, {term.page for term in anchors}, ids)
        learned = judged_queries(anchors, pages, replace(options, anchors="keep"), drops)
        others = queries_of_other_pages(learned, splits)
        others = few_queries_of_a_page(others, options, drops)
        if len(others) >= options.min_train_queries:
            splits["train"] = drawn_queries({"train": others}, options, drops)["train"]
    if not any(splits.values()) and not options.allow_empty:
        stage.clear()  # other options may be given for it
        raise HarpError(_nothing(directory, options, len(terms), drops))
    folder = stage.folder
    written = write_documents(paths, folder, ids) + write_queries(folder, splits, pages)
    audit = shared_by_splits(splits) | {"document ids made longer to be unique": ids.lengthened}
    counts = _counts(splits)
    if not (folder / CARD).exists():  # it may have been edited since
        tables: dict[str, Sequence[Sequence[Any]]] = {
            "counts": [(*place, *numbers) for place, numbers in counts.items()],
            "samples": _samples(splits, pages),
            "audit": list(audit.items()),
            "drops": most_frequent(+drops),
            "options": [(name, str(value)) for name, value in stage.options.items()],
        }
        held_out_by = read_manifest(directory / "graph")["settings"].get("held_out_by", "")
        card = Template((files("harp_plugin") / "data" / "collection-card.md").read_text("utf-8"))
        text = card.substitute(
            {name: "\n".join(map(_row, table)) for name, table in tables.items()},
            sources=", ".join(source_names(directory)),
            anchors=_HELD_OUT[held_out_by],
            documents=f"{written[0].rows:,}",
            queries=f"{sum(map(len, splits.values())):,}",
        )
        write_text(folder / CARD, text)
    rows = {"documents": written[0].rows}
    for (split, kind), (number, relevant) in counts.items():
        rows |= {f"{split} {kind} queries": number, f"{split} {kind} relevant pages": relevant}
    rows |= audit
    stage.finish_shard(_COLLECTION, rows, +drops - counted, written)


def _terms(stage: Stage) -> Iterator[Term]:
    for file in stage.table(TERMS):
        for batch in read_batches(file.path, list(Term._fields)):
            yield from (Term(**row) for row in batch.to_pylist())


def _nothing(directory: Path, options: QueryOptions, terms: int, drops: Counter[str]) -> str:
    kinds = ", ".join(options.kinds)
    if not read_manifest(directory / "graph")["rows"]["anchors"] and not terms:
        return (
            f"the pages of {directory} have no links to each other, and no redirects or terms of "
            "an index: there is nothing to learn from or to measure with; read a source whose "
            "pages link to each other; for Markdown whose links begin with a slash, add --site-root"
        )
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
            written.append(write_lines(folder / split / name, rows))
    return written


def _counts(splits: Splits) -> dict[tuple[str, str], tuple[int, int]]:
    """Count the queries and their relevant pages, by split and kind."""
    counts = {}
    for split, queries in splits.items():
        for kind, chosen in groupby(queries, attrgetter("kind")):  # an id begins with the kind
            relevant = [len(query.pages) for query in chosen]
            counts[split, kind] = len(relevant), sum(relevant)
    return counts


def _samples(splits: Splits, pages: Mapping[int, NamedPage]) -> list[tuple[str, str, str]]:
    queries = [query for chosen in splits.values() for query in chosen]
    return [
        (query.id, query.text, ", ".join(pages[page].doc_id for page in query.pages))
        for query in sorted(queries, key=lambda query: stable_id("sample", query.id))[:_SAMPLES]
    ]


def summary(folder: Path) -> str:
    """Write the counts of a finished collection as lines of at most 80 columns."""
    manifest = read_manifest(folder)
    counts = {name: n for name, n in manifest["rows"].items() if name not in (TERMS, PAGES)}
    lines = [f"{name[:43]:<44} {count:>12,}" for name, count in counts.items()]
    for name, count in most_frequent(manifest["drops"]):
        start = f"dropped {count:>10,}  "
        lines += wrap(name, 80, initial_indent=start, subsequent_indent=" " * len(start))
    return "\n".join(lines)


def _row(cells: Sequence[Any]) -> str:
    texts = [f"{cell:,}" if type(cell) is int else str(cell) for cell in cells]
    return f"| {' | '.join(text.replace('|', '&#124;') for text in texts)} |"


build_collection = BuildStage(
    _COLLECTION, ("corpus", "graph"), _options, _make, temporary=(TERMS, PAGES), others=FILES
)

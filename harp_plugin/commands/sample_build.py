"""The link graph and the examples of a sample, as they would be inside the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..corpus.tables import TABLES
from ..graph import GraphOptions, build_graph
from ..sampling import stable_id
from ..tasks.build import build_examples
from ..text import title_anchors
from ..work.manifest import read_manifest
from ..work.parquet import read_table, table_bytes, write_table
from ..work.provenance import OverwriteRules
from ..work.sql.options import EngineOptions
from ..work.stage import EmptyStageError, Stage

__all__ = ["SampleBuild", "build_sample"]

_OUTSIDE = "outside"


@dataclass(frozen=True)
class SampleBuild:
    """What the build of a sample holds, without the pages outside of it.

    Attributes:
        rows: the rows of each table of the stages graph and examples.
        size: the bytes of these tables.
        documents: the ids of the sample's documents, int64 of shape (documents,).
    """

    rows: dict[str, int]
    size: float
    documents: np.ndarray


def build_sample(
    directory: Path,
    fraction: float,
    graph: GraphOptions,
    tasks: Sequence[str],
    engine: EngineOptions,
    workers: int,
) -> SampleBuild:
    """Run the stages graph and examples on the corpus of a sample.

    Most links of a sample lead to pages outside of it. So pages without links are added for a part
    of these targets, drawn at random: as many that links outside of the sample resolve as often as
    the links into the sample let expect. Where the sample is a share f of the sources and r of its
    links lead into it, r / f of its links resolve in the whole.

    Args:
        directory: the folder whose stage ``corpus`` holds the sample; pages are added to it.
        fraction: the share of the sources that the sample is, above 0 and at most 1.
        graph: which pages and links count.
        tasks: the tasks whose examples are made.
        engine: the engine and its memory limit.
        workers: the number of threads of the engine.

    Returns:
        What was built; without tables if no link of the sample leads into it.

    Raises:
        HarpError: a stage fails, or the sample is the whole and no link or no example comes out.
    """
    outside = np.zeros(0, dtype=np.int64)
    if fraction < 1:
        keys = sorted(_missing_targets(directory / "corpus"), key=_page_id)
        _write_pages(directory, keys, graph)
        with suppress(EmptyStageError):
            build_graph(directory, graph, engine, workers=workers)
        in_links = _in_links(directory)
        links = [in_links.pop(_page_id(key), 0) for key in keys]
        links_inside = sum(in_links.values())
        if not links_inside:
            return SampleBuild({}, 0.0, np.array(list(in_links), dtype=np.int64))
        links_outside = links_inside * (1 - fraction) / fraction
        keys = _draw(keys, links, min(1.0, links_outside / max(1, sum(links))))
        _write_pages(directory, keys, graph)
        outside = np.array([_page_id(key) for key in keys], dtype=np.int64)
    rules = OverwriteRules(overwrite=True)
    manifests = {"graph": build_graph(directory, graph, engine, workers=workers, rules=rules)}
    # A larger sample may have examples where this one has none.
    with suppress(*([EmptyStageError] if fraction < 1 else [])):
        manifests["examples"] = build_examples(
            directory, tasks, engine, workers=workers, rules=rules
        )
    rows, size = {}, 0.0
    for stage, manifest in manifests.items():
        for table, count in manifest["rows"].items():
            folder = directory / stage / table
            rows[table] = count and _rows_of_sample(folder, outside)
            size += table_bytes(folder) * rows[table] / max(1, count)
    documents = np.array(list(_in_links(directory)), dtype=np.int64)
    return SampleBuild(rows, size, np.setdiff1d(documents, outside))


def _in_links(directory: Path) -> dict[int, int]:
    """The number of resolved links that lead to each document, by its id."""
    documents = read_table(directory / "graph" / "documents", ["id", "in_links"])
    columns = (documents.column(name).to_pylist() for name in ("id", "in_links"))
    return dict(zip(*columns, strict=True))


def _rows_of_sample(folder: Path, outside: np.ndarray) -> int:
    """Count the rows of a table that are not of a page outside of the sample."""
    table = read_table(folder)
    column = "id" if "id" in table.column_names else "source"
    return int((~np.isin(table.column(column).to_numpy(), outside)).sum())


def _missing_targets(corpus: Path) -> set[str]:
    """The keys that links, see-also links and redirects lead to and that no page has."""
    pages = read_table(corpus / "pages", ["key", "see_also"])
    links = read_table(corpus / "links", ["target", "region"])
    redirects = read_table(corpus / "redirects", ["source", "target"])
    targets = {
        *links.filter(links.column("region").is_null()).column("target").to_pylist(),
        *(key for keys in pages.column("see_also").to_pylist() for key in keys or ()),
        *redirects.column("target").to_pylist(),
    }
    return targets.difference(
        pages.column("key").to_pylist(), redirects.column("source").to_pylist()
    )


def _draw(keys: Sequence[str], links: Sequence[int], share: float) -> list[str]:
    """Draw a share of targets, so that they have this share of the links.

    Targets of about as many links are drawn by this share as well: for each target, from the most
    linked on, what is owed grows by the share of its links, and it is drawn if that comes nearer.

    Args:
        keys: the keys of the targets, in random order.
        links: the number of links to each target.
        share: between 0 and 1.
    """
    drawn: list[str] = []
    owed = 0.0
    for count, key in sorted(zip(links, keys, strict=True), key=lambda target: -target[0]):
        weight = max(1, count)
        owed += share * weight
        if owed > weight / 2:
            drawn.append(key)
            owed -= weight
    return drawn


def _write_pages(directory: Path, keys: Sequence[str], graph: GraphOptions) -> None:
    """Write pages without links to the finished stage ``corpus``, in place of any before."""
    corpus = directory / "corpus"
    manifest = read_manifest(corpus)
    rules = OverwriteRules(accept_other_versions=True)
    stage = Stage(corpus, manifest["options"], manifest["inputs"], rules=rules)
    stage.start()
    schema = TABLES["pages"]
    batch = pa.RecordBatch.from_pylist(list(_pages(keys, graph)), schema=schema)
    file = write_table(corpus / "pages" / f"part-{_OUTSIDE}.parquet", schema, [batch])
    stage.finish_shard(_OUTSIDE, {"pages": len(keys)}, {}, [file])
    stage.finish()


def _pages(keys: Sequence[str], graph: GraphOptions) -> Iterator[dict]:
    """Rows of pages that no option of the link graph leaves out."""
    for key in keys:
        yield {
            "id": _page_id(key),
            "key": key,
            "title": key,
            "lead": key,
            "sections": [],
            "see_also": [],
            "title_anchors": title_anchors(key),
            "lead_words": graph.min_lead_words,
            "lead_bands": [],
        }


def _page_id(key: str) -> int:
    """The id of a page: a hash of its key, so that an order by ids is random."""
    return stable_id("page", key)

"""Runs the stage's expressions in this process, without the stage around them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
from brute import Graph

from harp_plugin.graph import GraphOptions
from harp_plugin.graph.build import steps

NAMED = (
    *("anchors", "sentence_anchors", "page_links", "documents"),
    *("anchor_texts", "ambiguous_texts"),
)
DROPS = ("page_drops", "redirect_drops", "link_drops", "see_also_drops")


class Computed(Mapping[str, pa.Table]):
    """The results of the stage's steps, each computed when it is asked for."""

    def __init__(self, tables: Mapping[str, pa.Table], options: GraphOptions) -> None:
        self.connection = ibis.duckdb.connect(threads=1)
        self.steps = {step.name: step for step in steps(options)}
        self.known = {name: self._loaded(name, table) for name, table in tables.items()}

    def __getitem__(self, name: str):
        if name not in self.known:
            expression = self.steps[name].expression(self)
            self.known[name] = self.connection.create_table(f"result_{name}", expression)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, *self.steps])

    def __len__(self) -> int:
        return len(self.known) + len(self.steps)

    def _loaded(self, name: str, table: pa.Table):
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(table, Path(folder) / "table.parquet")
            read = self.connection.read_parquet(Path(folder) / "table.parquet")
            return self.connection.create_table(name, read)


def compute(tables: Mapping[str, pa.Table], **options) -> Computed:
    """The results of all the stage's steps, as Ibis tables."""
    return Computed(tables, GraphOptions(**options))


def rows_of(table, key: str = "id") -> dict:
    """Rows by a column, which must be distinct."""
    rows = table.to_pyarrow().to_pylist()
    by_key = {row[key]: row for row in rows}
    assert len(by_key) == len(rows), "ids must be distinct"
    return by_key


def as_graph(tables: Mapping) -> Graph:
    """The results of all steps as the brute force gives them."""
    drops: Counter[str] = Counter()
    for name in DROPS:
        drops += Counter(
            {k: int(row["count"]) for k, row in rows_of(tables[name], "reason").items()}
        )
    pairs = (
        tables["see_also"].to_pyarrow().sort_by([("source", "ascending"), ("target", "ascending")])
    )
    counts = {k: int(row["count"]) for k, row in rows_of(tables["counts"], "name").items()}
    return Graph(*(rows_of(tables[name]) for name in NAMED), pairs.to_pylist(), drops, counts)

"""Builds that several test files run and compare."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions
from harp_plugin.negatives.options import NegativeOptions
from harp_plugin.weights.options import WeightOptions
from harp_plugin.work.lock import LOCK
from harp_plugin.work.parquet import parquet_files, read_batches, read_schema

PAGES = {
    "Apple": "An apple is a [[fruit]] of a [[tree]]. Some call [[Cider|it]] wine.",
    "Tree": "A [[tree]] bears [[fruit|it]]; [[nowhere]] else.",
    "Fruit": "The [[apple]] and the [[pear]] are sweet.",
    "Pear": "A [[Pyrus]] is a tree.",
    "Cider": "It is made of [[apple]]s.",
}
TASKS = ["rqp", "qdm", "rdp", "acm", "prop", "anchor"]
"""Which need every stage, with hard negatives and example queries."""
QUERIES = Path(__file__).parent / "commands" / "queries.txt"


def read_table(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Read all Parquet files of a folder, in order; the checksum of every page is verified."""
    paths = parquet_files(folder)
    schema = read_schema(paths[0])
    names = columns or schema.names
    batches = [batch for path in paths for batch in read_batches(path, names)]
    return pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in names]))


def run(source, output, model, workers=1, pages_per_shard=40, **options) -> dict[str, Any]:
    """Build a source with all stages but ``query_likeness``, unless options say otherwise."""
    options = {"tasks": TASKS, "workers": workers, "device": "cpu", "quiet": True, **options}
    options = {"negatives": ["model", "dense"], **options}
    kinds = ("model", "dense")
    reranker, encoder = (str(model) if kind in options["negatives"] else None for kind in kinds)
    return build(
        [source],
        BuildOptions(output_dir=str(output), **options),
        CorpusOptions(pages_per_shard=pages_per_shard),
        GraphOptions(min_words=0),
        WeightOptions(model=str(model)),
        NegativeOptions(8, negatives_model=reranker, negatives_encoder=encoder),
    )


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a build but the lock, and the copies that any reader makes for itself."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    found = {path.relative_to(folder): path.read_bytes() for path in files}
    return {str(name): data for name, data in found.items() if name.parts[0] != "mapped"}


def same(one: Path, two: Path) -> None:
    """Check that two folders hold the same files."""
    first, second = tree(one), tree(two)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []

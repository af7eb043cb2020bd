"""Stage 1: sources become the tables pages, sentences, links and redirects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from ..errors import HarpError
from ..sampling import stable_id
from ..storage import Stage, read_manifest, shard_map, write_table
from .options import CorpusOptions
from .readers import READERS, Source, choose_reader, sources
from .readers.base import UnknownFormat
from .readers.source import COLLECTION
from .tables import TABLES, table_rows

_PACKAGES = ("mwparserfromhell", "selectolax", "resiliparse", "sentencex", "pyarrow")
_SHARD_SIZE = 32 << 20


class Run(NamedTuple):
    """Consecutive sources of one format, which share shards."""

    reader: str
    sources: list[Source]


class Shard(NamedTuple):
    """Records of one format that become one file of each table."""

    name: str
    reader: str
    records: list[Any]
    stage: Stage
    position: int


def build_corpus(
    named: Sequence[str | Path],
    directory: Path,
    options: CorpusOptions,
    *,
    workers: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Read all sources into Parquet shards under ``directory/corpus``.

    The same bytes for any number of workers. Finished shards are kept over a kill.

    Args:
        named: files, folders, and collections such as ``irds:kilt``.
        directory: the folder of the build.
        options: how to read.
        workers: processes that parse; one more reads.
        quiet: no progress bar.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: a source is missing, damaged, of no known format, or yields nothing.
    """
    found = [sources(name) for name in named]
    inputs = {f"{n}:{name}": _fingerprint(found[n]) for n, name in enumerate(map(_base, named))}
    stage = Stage(directory / "corpus", asdict(options), inputs, _PACKAGES)
    if stage.finished:
        return read_manifest(stage.folder)
    runs, unknown = find_runs(found, options.reader)
    stage.start()
    if unknown:
        stage.finish_shard("unknown", {}, {"file of unknown format": unknown})
    total = sum(source.size for run in runs for source in run.sources)
    with tqdm(total=total or None, unit="B", unit_scale=True, desc="corpus", disable=quiet) as bar:
        pages = 0
        for position, count in shard_map(write_shard, _shards(runs, options, stage), workers):
            pages += count
            bar.set_postfix_str(f"{pages / max(bar.format_dict['elapsed'], 1e-3):,.0f} pages/s")
            bar.update(position - bar.n)
    return stage.finish()


def _base(name: str | Path) -> str:
    return str(name) if str(name).startswith(COLLECTION) else Path(name).name


def _fingerprint(found: list[Source]) -> str:
    """Name sources by sizes, first and last MiB: cheap, and the same wherever they lie."""
    parts: list[str | int] = []
    for source in found:
        parts += [source.name, source.size]
        if source.path is not None:
            with source.open(decompress=False) as file:
                parts.append(file.read(1 << 20).hex())
                file.seek(max(0, source.size - (1 << 20)))
                parts.append(file.read().hex())
    return f"{stable_id(*parts):016x}"


def find_runs(found: list[list[Source]], reader: str) -> tuple[list[Run], int]:
    """Group sources by format; the files of a folder may be of unknown formats, but not all."""
    runs: list[Run] = []
    unknown = 0
    for together in found:
        known: list[tuple[str, Source]] = []
        for source in together:
            try:
                known.append((choose_reader(source, reader), source))
            except UnknownFormat:
                if len(together) == 1:
                    raise
                unknown += 1
        if not known:
            raise HarpError(f"no file beside {together[0].path} is in a known format")
        for name, group in groupby(known, key=itemgetter(0)):
            runs.append(Run(name, [source for _, source in group]))
    return runs, unknown


def _shards(runs: list[Run], options: CorpusOptions, stage: Stage) -> Iterator[Shard]:
    done = 0
    for number, run in enumerate(runs):
        batch: list[Any] = []
        pages = size = part = 0
        for source, record in _records(run):
            batch.append(record)
            pages += getattr(record, "pages", 1)
            size += record_size(record)
            if pages >= options.pages_per_shard or size >= _SHARD_SIZE:
                yield from _shard(f"{number:03d}-{part:05d}", run, batch, stage, done + source)
                batch, pages, size, part = [], 0, 0, part + 1
        done += sum(source.size for source in run.sources)
        if batch:
            yield from _shard(f"{number:03d}-{part:05d}", run, batch, stage, done)


def _shard(name: str, run: Run, records: list[Any], stage: Stage, position: int) -> Iterator[Shard]:
    if not stage.shard_done(name):
        yield Shard(name, run.reader, records, stage, position)


def _records(run: Run) -> Iterator[tuple[int, Any]]:
    """Records with the number of compressed bytes read so far."""
    reader = READERS[run.reader]()
    done = 0
    for source in run.sources:
        for record in reader.records(source):
            yield done + source.position, record
        done += source.size


def record_size(record: Any) -> int:
    """Bytes and characters in a record, of one level of nesting."""
    parts = record if isinstance(record, tuple) else (record,)
    return sum(len(part) for part in parts if isinstance(part, str | bytes))


def write_shard(shard: Shard) -> tuple[int, int]:
    """Parse a shard's records and write its tables.

    Returns:
        The shard's position in the sources, and its number of pages.
    """
    counts: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    for number, part in enumerate(table_rows(READERS[shard.reader](), shard.records)):
        drops.update(part.drops)
        for name, schema in TABLES.items():
            file = f"part-{shard.name}{f'-{number:03d}' if number else ''}.parquet"
            batch = pa.RecordBatch.from_pylist(part.rows[name], schema=schema)
            counts[name] += write_table(shard.stage.folder / name / file, schema, [batch])
    shard.stage.finish_shard(shard.name, counts, +drops)
    return shard.position, counts["pages"]

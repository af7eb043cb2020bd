"""Stage 1: sources become the tables pages, sentences, links and redirects."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from ..errors import HarpError
from ..files.made_from import OverwriteRules
from ..files.writing import file_hash
from ..storage import ShardFile, Stage, read_manifest, shard_map, write_table
from .options import CorpusOptions
from .readers import READERS, Source, choose_reader, sources
from .readers.base import UnknownFormat
from .readers.mediawiki import index_of
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
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Read all sources into Parquet shards under ``directory/corpus``.

    The same bytes for any number of workers. Finished shards are kept over a kill.

    Args:
        named: files, folders, and collections such as ``irds:kilt``.
        directory: the folder of the build.
        options: how to read.
        workers: processes that parse; one more reads.
        quiet: no progress bar.
        rules: what may be done with other work in the folder.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: a source is missing, damaged, of no known format, changes while it is read, or
            yields nothing; or the folder holds other work or other files.
    """
    stage = corpus_stage(named, directory, options, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    found = [sources(name) for name in named]
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
    if _inputs(named) != stage.inputs:
        raise HarpError(f"a source of {stage.folder} changed while it was read: run again")
    return stage.finish()


def corpus_stage(
    named: Sequence[str | Path],
    directory: Path,
    options: CorpusOptions,
    rules: OverwriteRules | None = None,
) -> Stage:
    """The stage of these sources and options, not started.

    Raises:
        HarpError: a source is missing or cannot be read.
    """
    inputs = _inputs(named)
    return Stage(directory / "corpus", asdict(options), inputs, _PACKAGES, rules=rules)


def _inputs(named: Sequence[str | Path]) -> dict[str, str]:
    return {
        f"{number}:{_base(name)}": _fingerprint(sources(name)) for number, name in enumerate(named)
    }


def _base(name: str | Path) -> str:
    return str(name) if str(name).startswith(COLLECTION) else Path(name).name


def _fingerprint(found: list[Source]) -> str:
    """A hash of names and whole contents: the same wherever the files lie.

    A collection of ir_datasets is known by its name and the release of ir_datasets only. Files are
    read once a process, unless the size or the time of one of them changes.
    """
    indexes = ((source, index_of(source)) for source in found)
    files = [
        file
        for source, index in indexes
        for file in ([source] if index is None else [source, Source(index.name, index)])
    ]
    state = _digest(f"{file.path}\0{_status(file)}\0" for file in files)
    if state not in _known:
        _known[state] = _digest(f"{file.name}\0{_content(file)}\0" for file in files)
    return _known[state]


_known: dict[str, str] = {}


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def _status(source: Source) -> tuple[int, ...]:
    if source.path is None:
        return ()
    status = source.path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _content(source: Source) -> str:
    if source.path is None:
        return version("ir-datasets")
    with source.open(decompress=False):  # tells in one line what cannot be read
        return file_hash(source.path)


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
    files: list[ShardFile] = []
    for number, part in enumerate(table_rows(READERS[shard.reader](), shard.records)):
        drops.update(part.drops)
        for name, schema in TABLES.items():
            file = f"part-{shard.name}{f'-{number:03d}' if number else ''}.parquet"
            batch = pa.RecordBatch.from_pylist(part.rows[name], schema=schema)
            files.append(write_table(shard.stage.folder / name / file, schema, [batch]))
            counts[name] += batch.num_rows
    shard.stage.finish_shard(shard.name, counts, +drops, files)
    return shard.position, counts["pages"]

"""The corpus stage: sources become tables of pages, links, redirects, index terms and others."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from ..errors import HarpError
from ..work.build_stage import BuildRequest, BuildStage, StageOptions
from ..work.map_shards import map_shards
from ..work.parquet import ShardFile, write_table
from ..work.records import file_hash, file_state
from ..work.stage import Stage
from ..work.urls import is_url
from .markdown import configurations
from .options import CorpusOptions
from .readers import (
    READERS,
    Reader,
    Source,
    UnknownFormat,
    choose_reader,
    configured_reader,
    sources,
)
from .readers.mediawiki import multistream_index
from .readers.registry import OTHER_FORMAT
from .readers.source import COLLECTION, is_passed_over
from .tables import TABLES, table_rows

__all__ = ["build_corpus"]

_PACKAGES = (
    *("mwparserfromhell", "markdown-it-py", "mdit-py-plugins", "pyyaml", "selectolax"),
    *("resiliparse", "fastwarc", "ada-url", "tldextract", "sentencex", "regex", "pyarrow"),
)
_SHARD_SIZE = 32 << 20


_Shard = tuple[str, str, list[Any]]
"""Records of one format that become one file of each table, after their name and their reader."""
_Run = tuple[str, list[Source]]
"""The name of a reader, and consecutive sources of its format, which share shards."""


def _options(request: BuildRequest) -> StageOptions:
    return StageOptions(asdict(request.of(CorpusOptions)), _inputs(request.sources), _PACKAGES)


def _check(request: BuildRequest) -> None:
    """Check that there are sources, and that what is read and what is written lie apart."""
    if not request.sources:
        raise HarpError("no source: name a dump, such as enwiki-latest-pages-articles.xml.bz2")
    output = request.directory
    for name in request.sources:
        sources(name)
        if str(name).startswith(COLLECTION) or is_url(name):
            continue
        read, written = Path(name).resolve(), output.resolve()
        if read.is_relative_to(written):
            raise HarpError(f"--output-dir {output} holds the source {name}: name another folder")
        if written.is_relative_to(read):
            raise HarpError(
                f"--output-dir {output} lies inside the source {name}: name another folder"
            )


def _read_sources(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Read all sources into Parquet shards under ``corpus``.

    Raises:
        HarpError: a source is missing, damaged, of no known format, changes while it is read,
            or yields no page.
    """
    options = request.of(CorpusOptions)
    groups = [sources(name) for name in request.sources]
    named = [s.path for group in groups for s in group if s.path is not None and s.folder is None]
    for source in chain.from_iterable(groups):
        source.named = named if source.folder is None else ()
    runs, unreadable = _find_runs(groups, options.reader)
    _check_names(runs)
    if unreadable:
        stage.finish_shard("unknown", {}, {"file of unknown format": unreadable})
    total, pages = sum(source.size for _, run in runs for source in run), 0
    counts: Counter[str] = Counter()
    with tqdm(
        total=total or None, unit="B", unit_scale=True, desc="corpus", disable=request.quiet
    ) as bar:
        shards = _shards(runs, options, stage, bar, counts)
        write = partial(_write_shard, stage=stage)
        for count in map_shards(write, shards, request.engine, request.workers):
            pages += count
            bar.set_postfix_str(f"{pages / max(bar.format_dict['elapsed'], 1e-3):,.0f} pages/s")
    if _inputs(request.sources) != stage.inputs:
        raise HarpError(f"a source of {stage.folder} changed while it was read: run again")
    return {"needed": "pages", **({"counts": dict(sorted(counts.items()))} if counts else {})}


build_corpus = BuildStage("corpus", (), _options, _read_sources, _check)


def _inputs(source_names: Sequence[str | Path]) -> dict[str, str]:
    """Return the fingerprints of the sources by their numbers and names."""
    return {
        f"{number}:{_base_name(name)}": _fingerprint(sources(name))
        for number, name in enumerate(source_names)
    }


def _base_name(name: str | Path) -> str:
    return str(name) if str(name).startswith(COLLECTION) else Path(name).name


def _fingerprint(group: list[Source]) -> str:
    """Return a hash of the names and the contents of sources, wherever their files lie.

    The hidden files by which generators of sites are configured count too. For a collection of
    ir_datasets, this is a hash of its name and of the release of ir_datasets. A process reads each
    file once, unless the size or the time of a file changes.
    """
    indexes = ((source, multistream_index(source)) for source in group)
    files = [
        file
        for source, index in indexes
        for file in ([source] if index is None else [source, Source(index.name, index)])
    ]
    if (folder := group[0].folder) is not None:
        paths = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")))
        hidden = configurations(filter(is_passed_over, paths))
        files += [Source(name, folder / name) for name in hidden if (folder / name).is_file()]
    state = _digest(f"{file.path}\0{file.name}\0{_status(file)}\0" for file in files)
    if state not in _fingerprints:
        _fingerprints[state] = _digest(f"{file.name}\0{_content_hash(file)}\0" for file in files)
    return _fingerprints[state]


_fingerprints: dict[str, str] = {}


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def _status(source: Source) -> tuple[int | str, ...]:
    if source.path is None:
        return () if source.remote is None else (source.remote.size, source.remote.version)
    return file_state(source.path)


def _content_hash(source: Source) -> str:
    if source.remote is not None:
        return f"{source.remote.size} {source.remote.version}"
    if source.path is None:
        return version("ir-datasets")
    with source.open(decompress=False):  # raises an error of one line if it cannot be read
        return file_hash(source.path)


def _find_runs(groups: list[list[Source]], reader: str) -> tuple[list[_Run], int]:
    """Group sources by format.

    Args:
        groups: the sources of each name that the user gave: a folder gives several.
        reader: the name of a reader, or ``auto``.

    Returns:
        The runs, and the number of files in folders that no reader recognizes.

    Raises:
        HarpError: no reader recognizes a source, or any file of a folder.
    """
    runs: list[_Run] = []
    unreadable = 0
    for group in groups:
        readable: list[tuple[str, Source]] = []
        for source in group:
            try:
                readable.append((choose_reader(source, reader), source))
            except UnknownFormat:
                if len(group) == 1:
                    raise
                unreadable += 1
        if not readable:
            first = group[0].path or group[0].name
            raise HarpError(
                f"neither {first} nor a file next to it is in a known format: {OTHER_FORMAT}"
            )
        for name, same_format in groupby(readable, key=itemgetter(0)):
            runs.append((name, [source for _, source in same_format]))
    return runs, unreadable


def _check_names(runs: list[_Run]) -> None:
    """Check that no two files have the same path below their folders, which is the key of a page.

    Raises:
        HarpError: two files have.
    """
    files = (source for name, run in runs if name in ("html", "markdown") for source in run)
    for name, count in Counter(file.name for file in files).items():
        if count > 1:
            raise HarpError(
                f"{name} is in two sources, and pages are named by their paths: name one folder "
                "that holds both"
            )


def _shards(
    runs: list[_Run], options: CorpusOptions, stage: Stage, bar: tqdm[Any], counts: Counter[str]
) -> Iterator[_Shard]:
    """Give the shards that the stage has not finished, and add up what the readers count."""
    readers = {name: configured_reader(name, options) for name, _ in runs}
    for number, (name, run) in enumerate(runs):
        for part, records in enumerate(_batches(readers[name], run, options, bar)):
            shard = f"{number:03d}-{part:05d}"
            if not stage.shard_done(shard):
                yield shard, name, records
    for reader in readers.values():
        counts.update(getattr(reader, "counts", {}))


def _batches(
    reader: Reader, run: list[Source], options: CorpusOptions, bar: tqdm[Any]
) -> Iterator[list[Any]]:
    """Give the records of each shard; the bar shows how many bytes have been read."""
    batch: list[Any] = []
    pages = size = 0
    for source in run:
        before = bar.n
        for record in reader.records(source):
            batch.append(record)
            pages += getattr(record, "pages", 1)
            size += _record_size(record)
            if pages >= options.pages_per_shard or size >= _SHARD_SIZE:
                bar.update(before + source.position - bar.n)
                yield batch
                batch, pages, size = [], 0, 0
        bar.update(before + source.size - bar.n)
    if batch:
        yield batch


def _record_size(record: Any) -> int:
    """Return the number of bytes and characters in a record, or in the parts of a tuple."""
    parts = record if isinstance(record, tuple) else (record,)
    return sum(len(part) for part in parts if isinstance(part, str | bytes))


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Run the garbage collector less often: it searches the trees of pages in vain."""
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], 50_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_fewer_collections()
def _write_shard(shard: _Shard, *, stage: Stage) -> int:
    """Parse a shard's records, write its tables and return its number of pages."""
    shard_name, reader, records = shard
    counts: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    files: list[ShardFile] = []
    for number, (rows, part_drops) in enumerate(table_rows(READERS[reader](), records)):
        drops.update(part_drops)
        for name, schema in TABLES.items():
            file = f"part-{shard_name}{f'-{number:03d}' if number else ''}.parquet"
            batch = pa.RecordBatch.from_pylist(rows[name], schema=schema)
            files.append(write_table(stage.folder / name / file, schema, [batch]))
            counts[name] += batch.num_rows
    stage.finish_shard(shard_name, counts, +drops, files)
    return counts["pages"]

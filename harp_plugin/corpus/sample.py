"""Reads a sample of sources, from which the size of a whole build is estimated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..work.stage import Stage
from .build import Run, Shard, find_runs, page_count, record_size, write_shard
from .options import CorpusOptions
from .readers import Source, configured_reader, sources
from .scripts import check_scripts

__all__ = ["Sample", "sample_corpus"]

_MIN_FILES = 16


@dataclass(frozen=True)
class Sample:
    """The size of a sample.

    Attributes:
        fraction: the share of the sources that was read, from 0 to 1.
        seconds: how long one process read and parsed.
    """

    fraction: float
    seconds: float


def sample_corpus(
    source_names: Sequence[str | Path], directory: Path, options: CorpusOptions, pages: int
) -> Sample:
    """Write the tables of a sample of the sources to ``directory/corpus``.

    Of many files, 16 that are spread evenly are read, each from its beginning; if they give too few
    pages, more files follow.

    Args:
        source_names: files, folders, and collections such as ``irds:kilt``.
        directory: the folder of the sample.
        options: how sources are read.
        pages: how many pages to read at least, if the sources have so many.

    Raises:
        HarpError: a source is missing, damaged, of no known format, or yields nothing, or
            pages only in scripts without spaces.
    """
    runs, _ = find_runs([sources(name) for name in source_names], options.reader)
    unread = [(run, source) for run in runs for source in run.sources]
    stage = Stage(directory / "corpus", asdict(options), {str(name): "" for name in source_names})
    stage.start()
    read, pages_read, files_read, shards = 0.0, 0, 0, 0
    started = time.perf_counter()
    while unread and pages_read < pages:
        # Where the files so far were too short, as many files again are read.
        chosen = _spread(unread, max(_MIN_FILES, files_read))
        pages_per_file = -(-(pages - pages_read) // len(chosen))
        records_by_reader: dict[str, list[Any]] = {}
        for run, source in chosen:
            records, size = _first_records(run, source, pages_per_file, options)
            read += size
            pages_read += sum(map(page_count, records))
            records_by_reader.setdefault(run.reader, []).extend(records)
        for reader, records in records_by_reader.items():
            write_shard(Shard(f"{shards:05d}", reader, records, stage, 0))
            shards += 1
        files_read += len(chosen)
        chosen_ids = {id(source) for _, source in chosen}
        unread = [(run, source) for run, source in unread if id(source) not in chosen_ids]
    seconds = time.perf_counter() - started
    check_scripts(", ".join(Path(name).name for name in source_names), *stage.counts())
    stage.finish()
    total = sum(_size(source) for run in runs for source in run.sources)
    if not read:
        raise HarpError("nothing was read of the sources: check them")
    return Sample(min(1.0, read / total), seconds)


def _spread(all_sources: list[tuple[Run, Source]], most: int) -> list[tuple[Run, Source]]:
    """Return at most ``most`` of the sources, spread evenly."""
    count = min(most, len(all_sources))
    return [all_sources[n * len(all_sources) // count] for n in range(count)]


def _first_records(
    run: Run, source: Source, pages: int, options: CorpusOptions
) -> tuple[list[Any], float]:
    """Return the first records of a source, and the part of its `_size` that they take."""
    stream = configured_reader(run.reader, options).records(source)
    records: list[Any] = []
    pages_read = bytes_read = 0
    while pages_read < pages:
        record = next(stream, None)
        if record is None:
            return records, _size(source)
        records.append(record)
        pages_read += page_count(record)
        bytes_read += record_size(record)
    if source.path is None:
        return records, float(pages_read)
    # The decompressor has read a whole block; only the part that the records fill counts.
    # It knows 0 bytes of a file that has been read to its end.
    read = source.decompressed
    share = min(1.0, bytes_read / read) if read else 1.0
    return records, source.position * share


def _size(source: Source) -> float:
    """Return the size of a file in bytes, or of a collection in documents."""
    if source.path is not None:
        return float(source.size)
    import ir_datasets

    count = ir_datasets.load(source.collection).docs_count()
    return float(count or 1)

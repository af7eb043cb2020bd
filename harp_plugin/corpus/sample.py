"""Reads a sample of sources, to tell what the whole of them holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..storage import Stage
from .build import Run, Shard, find_runs, record_size, write_shard
from .options import CorpusOptions
from .readers import READERS, Source, sources

_FILES = 16


@dataclass(frozen=True)
class Sample:
    """What was read for a sample.

    Attributes:
        fraction: the part of the sources that was read: 1 for all.
        seconds: how long one process took.
    """

    fraction: float
    seconds: float


def sample_corpus(
    named: Sequence[str | Path], directory: Path, options: CorpusOptions, pages: int
) -> Sample:
    """Write the tables of the first pages of some of the sources to ``directory/corpus``.

    Of many files, 16 are read, spread evenly, or more where that gives fewer pages; of each file,
    its beginning.

    Raises:
        HarpError: a source is missing, damaged, of no known format, or yields nothing.
    """
    runs, _ = find_runs([sources(name) for name in named], options.reader)
    left = [(run, source) for run in runs for source in run.sources]
    stage = Stage(directory / "corpus", asdict(options), {str(name): "" for name in named})
    stage.start()
    read, found, files = 0.0, 0, 0
    started = time.perf_counter()
    while left and found < pages:
        # Twice as many files each time, if those so far were short.
        chosen = _spread(left, max(_FILES, files))
        each = -(-(pages - found) // len(chosen))
        for run, source in chosen:
            records, part = _first(run, source, each)
            read += part
            found += sum(getattr(record, "pages", 1) for record in records)
            write_shard(Shard(f"{files:05d}", run.reader, records, stage, 0))
            files += 1
        taken = {id(source) for _, source in chosen}
        left = [(run, source) for run, source in left if id(source) not in taken]
    seconds = time.perf_counter() - started
    stage.finish()
    total = sum(_size(source) for run in runs for source in run.sources)
    if not read:
        raise HarpError("nothing was read of the sources: check them")
    return Sample(min(1.0, read / total), seconds)


def _spread(all_sources: list[tuple[Run, Source]], most: int) -> list[tuple[Run, Source]]:
    count = min(most, len(all_sources))
    return [all_sources[n * len(all_sources) // count] for n in range(count)]


def _first(run: Run, source: Source, pages: int) -> tuple[list[Any], float]:
    """The first records of a source, and how much of its size they are."""
    stream = READERS[run.reader]().records(source)
    records: list[Any] = []
    found = used = 0
    while found < pages:
        more = list(islice(stream, 1))
        if not more:
            return records, _size(source)
        records += more
        found += getattr(more[0], "pages", 1)
        used += record_size(more[0])
    if source.path is None:
        return records, float(found)
    # What was read ahead, in blocks of the compression, does not count.
    return records, source.position * min(1.0, used / (source.decompressed or used))


def _size(source: Source) -> float:
    """Bytes of a file, documents of a collection: of one kind each in the usual build."""
    if source.path is not None:
        return float(source.size)
    import ir_datasets

    count = ir_datasets.load(source.collection).docs_count()
    return float(count or 1)

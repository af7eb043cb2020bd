"""Stage 1: sources become the tables pages, sentences, links and redirects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from ..sampling import stable_id
from ..storage import Stage, read_manifest, shard_map, write_table
from ..text import normalise_anchor
from .options import CorpusOptions
from .pages import Dropped, Page, Redirect
from .readers import READERS, Reader, choose_reader
from .readers.base import open_source
from .sentences import linked_sentences
from .wikitext import without_debris

SECTION = pa.struct([("level", pa.int8()), ("title", pa.string()), ("text", pa.string())])
TABLES: dict[str, pa.Schema] = {
    "pages": pa.schema(
        [
            ("id", pa.int64()),
            ("key", pa.string()),
            ("title", pa.string()),
            ("lead", pa.string()),
            ("words", pa.int32()),
            ("sections", pa.list_(SECTION)),
            ("see_also", pa.list_(pa.string())),
        ]
    ),
    "sentences": pa.schema([("id", pa.int64()), ("page", pa.int64()), ("text", pa.string())]),
    "links": pa.schema(
        [
            ("id", pa.int64()),
            ("sentence", pa.int64()),
            ("start", pa.int32()),
            ("end", pa.int32()),
            ("anchor", pa.string()),
            ("normalised", pa.string()),
            ("target", pa.string()),
        ]
    ),
    "redirects": pa.schema([("source", pa.string()), ("target", pa.string())]),
}
_PACKAGES = ("mwparserfromhell", "mwxml", "sentencex", "pyarrow")


class _Shard(NamedTuple):
    name: str
    reader: str
    records: list[Any]
    stage: Stage


def build_corpus(
    sources: list[Path],
    directory: Path,
    options: CorpusOptions,
    *,
    workers: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Read all sources into Parquet shards under ``directory/corpus``.

    The same bytes for any number of workers. Finished shards are kept over a kill.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: a source is missing, damaged, of no known format, or yields nothing.
    """
    readers = [(path, *choose_reader(path, options.reader)) for path in sources]
    inputs = {f"{n}:{path.name}": _fingerprint(path) for n, path in enumerate(sources)}
    stage = Stage(directory / "corpus", asdict(options), inputs, _PACKAGES)
    if stage.finished:
        return read_manifest(stage.folder)
    stage.start()
    shards = _shards(readers, options, stage, quiet)
    for _ in shard_map(_write_shard, shards, workers):
        pass
    return stage.finish()


def _fingerprint(path: Path) -> str:
    """Name a source by its size, first and last MiB: cheap, and the same wherever it lies."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(1 << 20)
        file.seek(max(0, size - (1 << 20)))
        tail = file.read()
    return f"{stable_id(size, head.hex(), tail.hex()):016x}"


def _shards(
    readers: list[tuple[Path, str, Reader]], options: CorpusOptions, stage: Stage, quiet: bool
) -> Iterator[_Shard]:
    total = sum(path.stat().st_size for path, *_ in readers)
    done = 0
    with tqdm(total=total, unit="B", unit_scale=True, desc="corpus", disable=quiet) as bar:
        for source, (path, name, reader) in enumerate(readers):
            file, raw = open_source(path)
            with file, raw:
                batches = _batched(reader.records(file, path.name), options.pages_per_shard)
                for number, records in enumerate(batches):
                    bar.update(done + raw.tell() - bar.n)
                    shard = f"{source:03d}-{number:05d}"
                    if not stage.shard_done(shard):
                        yield _Shard(shard, name, records, stage)
            done += path.stat().st_size
            bar.update(done - bar.n)


def _batched(records: Iterator[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _write_shard(shard: _Shard) -> None:
    reader = READERS[shard.reader]()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    drops: Counter[str] = Counter()
    for record in shard.records:
        for item in reader.parse(record):
            if isinstance(item, Dropped):
                drops[item.reason] += 1
            elif isinstance(item, Redirect):
                rows["redirects"].append({"source": item.source, "target": item.target})
            else:
                _add_page(item, rows, drops)
    counts = {}
    for name, schema in TABLES.items():
        path = shard.stage.folder / name / f"part-{shard.name}.parquet"
        batch = pa.RecordBatch.from_pylist(rows[name], schema=schema)
        counts[name] = write_table(path, schema, [batch])
    shard.stage.finish_shard(shard.name, counts, +drops)


def _add_page(page: Page, rows: dict[str, list[dict[str, Any]]], drops: Counter[str]) -> None:
    page_id = stable_id("page", page.key)
    drops.update(page.drops)
    rows["pages"].append(
        {
            "id": page_id,
            "key": page.key,
            "title": page.title,
            "lead": without_debris(page.lead),
            "words": page.word_count,
            "sections": [
                {"level": s.level, "title": s.title, "text": without_debris(s.body.text)}
                for s in page.sections
            ],
            "see_also": page.see_also,
        }
    )
    number = 0
    for section in page.sections:
        found = linked_sentences(section.body, page.language, drops, split=page.split)
        for sentence in found:
            sentence_id = stable_id("sentence", page_id, number, sentence.text)
            number += 1
            rows["sentences"].append({"id": sentence_id, "page": page_id, "text": sentence.text})
            for link in sentence.links:
                rows["links"].append(
                    {
                        "id": stable_id("anchor", sentence_id, link.start, link.end),
                        "sentence": sentence_id,
                        "start": link.start,
                        "end": link.end,
                        "anchor": link.anchor,
                        "normalised": normalise_anchor(link.anchor),
                        "target": link.target,
                    }
                )

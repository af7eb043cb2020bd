"""Texts of a shard, read a chunk at a time and tokenized ahead of their weighing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, tee
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..work.mapped import MappedTable, open_table
from ..work.parquet import ShardFile, read_batches
from ..work.processes import results_in_order
from .attention import AttentionWeigher
from .tokens import Tokenizer, keep_tokenizer, tokenize_kept
from .weighed_texts import WeighedTexts
from .words import Span

__all__ = ["Chunk", "graph_tables", "lead_chunks", "sentence_chunks", "weigh_chunks"]

_CHUNK = 512


class Chunk(NamedTuple):
    """Some texts of a table.

    Attributes:
        ids: the ids of the texts, int64 of shape (texts,).
        texts: the texts themselves.
        anchors: the ids of their anchors, one text after the other.
        spans: the character offsets of the anchors of each text.
    """

    ids: np.ndarray
    texts: list[str]
    anchors: np.ndarray
    spans: list[list[Span]] | None


def graph_tables(directory: Path) -> dict[str, MappedTable]:
    """Open the tables of the link graph that chunks need."""
    names = ("anchors", "sentence_anchors", "documents")
    return {name: open_table(directory, "graph", name) for name in names}


def weigh_chunks(
    weigher: AttentionWeigher, chunks: Iterable[Chunk]
) -> Iterator[tuple[Chunk, WeighedTexts]]:
    """Weigh chunks while the next ones are tokenized: in a thread, or in processes for a GPU."""
    chunks, ahead = tee(chunks)
    with _tokenizing_ahead(weigher) as (tokenize, count):
        tokenized = results_in_order(tokenize, ahead, count + 1)
        for chunk, texts in zip(chunks, tokenized, strict=True):
            yield chunk, weigher.weigh_tokenized(texts)


@contextmanager
def _tokenizing_ahead(weigher: AttentionWeigher) -> Iterator[tuple[Callable[[Chunk], Future], int]]:
    """Give a function that tokenizes elsewhere, and the number of chunks to call it for."""
    if not weigher.tokenizers:
        with ThreadPoolExecutor(1) as pool:
            yield lambda chunk: pool.submit(weigher.tokenize, chunk.texts, chunk.spans), 1
        return
    spawn = multiprocessing.get_context("spawn")
    tokenizer: Tokenizer = weigher.tokenize
    count = weigher.tokenizers
    with ProcessPoolExecutor(count, spawn, keep_tokenizer, (tokenizer,)) as pool:
        yield lambda chunk: pool.submit(tokenize_kept, chunk.texts, chunk.spans), 2 * count


def sentence_chunks(file: ShardFile, tables: dict[str, MappedTable]) -> Iterator[Chunk]:
    """Read the linked sentences of a shard, with the spans of their anchors."""
    file.check()
    for batch in read_batches(file.path, ["id", "text"], _CHUNK):
        rows = tables["sentence_anchors"].rows(batch.column("id").to_numpy())
        batch, rows = batch.filter(pa.array(rows >= 0)), rows[rows >= 0]
        groups = tables["sentence_anchors"].take(rows, "anchors")
        anchors = groups.flatten().to_numpy()
        ends = (ends.to_pylist() for ends in tables["anchors"].columns(anchors, "start", "end"))
        spans = iter(zip(*ends, strict=True))
        counts = groups.value_lengths().to_pylist()
        texts = batch.column("text").to_pylist()
        anchor_spans = [list(islice(spans, count)) for count in counts]
        yield Chunk(batch.column("id").to_numpy(), texts, anchors, anchor_spans)


def lead_chunks(file: ShardFile, tables: dict[str, MappedTable]) -> Iterator[Chunk]:
    """Read the leads of a shard's pages that links lead to."""
    file.check()
    for batch in read_batches(file.path, ["id", "lead"], _CHUNK):
        rows = tables["documents"].rows(batch.column("id").to_numpy())
        batch, rows = batch.filter(pa.array(rows >= 0)), rows[rows >= 0]
        linked = tables["documents"].take(rows, "in_links").to_numpy() > 0
        batch = batch.filter(pa.array(linked))
        ids, texts = batch.column("id").to_numpy(), batch.column("lead").to_pylist()
        yield Chunk(ids, texts, np.zeros(0, dtype=np.int64), None)

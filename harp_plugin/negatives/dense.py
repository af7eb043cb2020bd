"""The stage ``dense_negatives``: the pages whose vectors are nearest to that of each query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import HarpError
from ..ranking.dense.encoder import Encoder
from ..ranking.dense.index import DenseIndex
from ..ranking.windows import DocumentWindows
from ..weights.attention import default_dtype
from ..work.manifest import read_content, read_manifest
from ..work.provenance import OverwriteRules
from ..work.sharing import ALONE, Share
from ..work.stage import Stage
from .options import NegativeOptions
from .queries import BuildDocuments, BuildTexts
from .shards import Ranking, over_shards, rank, write_rankings

__all__ = ["build_dense_negatives", "check_encoder", "dense_negatives_stage"]

_QUERIES_PER_SHARD = 5000
_QUERIES_AT_ONCE = 512


class _Shard(NamedTuple):
    queries: str
    name: str
    ids: np.ndarray


def build_dense_negatives(
    directory: Path,
    queries: Sequence[str],
    options: NegativeOptions,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
    share: Share = ALONE,
) -> dict[str, Any]:
    """Find the nearest documents of each query by which tasks draw hard negatives.

    They are what a bi-encoder mines for its next round of training: ANCE's negatives (Xiong et al.
    2021), with which Anchor-DR trains for its second epoch ("Implementation details"). The encoder
    reads the query, and the title and the lead of the page. The tables are those of
    ``bm25_negatives``. The vectors of the documents are kept until the stage is finished.

    Args:
        directory: build folder with finished corpus and graph stages.
        queries: the tables to make, of `harp_plugin.negatives.queries.QUERIES`.
        options: the encoder, and how many pages are kept.
        device: such as ``cpu`` or ``cuda:1``; None takes a GPU where there is one.
        workers: has no effect: the threads of torch share the work.
        quiet: show no progress bar.
        rules: what may be done with other work in the folder.
        share: of this host, where several share the encoding and the search.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: no encoder is named or it cannot be loaded, an earlier stage is unfinished or
            damaged, or the folder holds other work or other files.
    """
    del workers
    read_content(directory, "corpus", "graph")
    stage = dense_negatives_stage(directory, queries, options, device, rules)
    index = DenseIndex(
        BuildDocuments(directory, only_latin=False),
        directory / "mapped",
        _encoder(options, device, stage.options["dtype"]),
        quiet=quiet,
        share=share,
        is_needed=lambda: not stage.is_whole,
    )
    if not stage.is_finished():
        share.start(stage)
        try:
            _find(stage, index, BuildTexts(directory, verify=True), options, quiet)
        except FileNotFoundError:  # another host has finished the stage and removed the vectors
            if not stage.is_whole:
                raise
        share.finish(stage)
    index.remove()
    return read_manifest(stage.folder)


def _find(
    stage: Stage, index: DenseIndex, texts: BuildTexts, options: NegativeOptions, quiet: bool
) -> None:
    shards = {
        f"{shard.queries}-{shard.name}": shard for shard in _shards(texts, stage.options["queries"])
    }

    def find(shard: _Shard) -> None:
        asked = texts.queries(shard.queries, shard.ids)
        found = _rankings(index, asked, options.negatives_depth)
        write_rankings(stage, shard.queries, shard.name, shard.ids, found, {})

    index.make()
    over_shards(find, shards, stage, 1, quiet, share=index.share)


def dense_negatives_stage(
    directory: Path,
    queries: Sequence[str],
    options: NegativeOptions,
    device: str | None = None,
    rules: OverwriteRules | None = None,
) -> Stage:
    """The stage, not started. Its inputs are None while they are unfinished.

    Raises:
        HarpError: no encoder is named, or the encoder or the device cannot be used.
    """
    from ..models.devices import choose_device

    dtype = default_dtype(choose_device(device))
    encoder = _encoder(options, device, dtype)
    inputs = read_content(directory, "corpus", "graph", needed=False)
    inputs["encoder"] = encoder.fingerprint
    recorded = {
        "queries": list(queries),
        "depth": options.negatives_depth,
        "queries_per_shard": _QUERIES_PER_SHARD,
        "encoder": encoder.model,
        "dtype": dtype,
    }
    packages = ("torch", "transformers", "tokenizers", "pyarrow")
    return Stage(directory / "dense_negatives", recorded, inputs, packages, rules=rules)


def check_encoder(options: NegativeOptions) -> None:
    """Load the encoder.

    Raises:
        HarpError: no encoder is named, or it cannot be loaded.
    """
    _encoder(options, "cpu", "float32").queries(["a"])


def _encoder(options: NegativeOptions, device: str | None, dtype: str) -> Encoder:
    if options.negatives_encoder is None:
        raise HarpError("--negatives dense needs --negatives-encoder: name an encoder")
    return Encoder(
        options.negatives_encoder, DocumentWindows(), device=device, dtype=dtype, normalize=None
    )


def _shards(texts: BuildTexts, queries: Sequence[str]) -> list[_Shard]:
    shards = []
    for kind in queries:
        ids = texts.ids(kind)
        for first in range(0, max(1, len(ids)), _QUERIES_PER_SHARD):
            part = ids[first : first + _QUERIES_PER_SHARD]
            shards.append(_Shard(kind, f"from-{part[0] if len(part) else 0:019d}", part))
    return shards


def _rankings(index: DenseIndex, queries: list[str], depth: int) -> list[Ranking]:
    rankings = []
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        vectors = index.encoder.queries(queries[first : first + _QUERIES_AT_ONCE])
        for pages, scores in index.search(vectors, depth):
            rankings.append(rank(pages.astype(np.int64), scores, depth))
    return rankings

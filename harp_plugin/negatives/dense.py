"""The stage ``dense_negatives``: the pages whose vectors are nearest to that of each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import HarpError
from ..models.devices import default_dtype
from ..models.loading import choose_device
from ..ranking.dense.encoder import Encoder
from ..ranking.dense.index import DenseIndex
from ..work.build_stage import BuildRequest, BuildStage, StageOptions
from ..work.stage import Stage
from .mining import Ranker, Ranking, mine, rank, recorded_options
from .options import NegativeOptions
from .queries import BuildTexts

__all__ = ["build_dense_negatives"]

_QUERIES_AT_ONCE = 512


def _load_ranker(index: DenseIndex, depth: int) -> Ranker:
    """Return what compares queries with the vectors of all documents of a build."""

    def ranked(texts: BuildTexts, queries: str, ids: np.ndarray) -> list[Ranking]:
        rankings: list[Ranking] = []
        for first in range(0, len(ids), _QUERIES_AT_ONCE):
            asked = texts.queries(queries, ids[first : first + _QUERIES_AT_ONCE])
            for pages, scores in index.search(index.encoder.queries(asked), depth):
                rankings.append(rank(pages.astype(np.int64), scores, depth))
        return rankings

    return ranked


def _options(request: BuildRequest) -> StageOptions:
    encoder = _encoder(request)
    recorded = {**recorded_options(request), "encoder": encoder.model, "dtype": encoder.dtype}
    packages = ("torch", "transformers", "tokenizers", "pyarrow")
    return StageOptions(recorded, {"encoder": encoder.fingerprint}, packages)


def _check(request: BuildRequest) -> None:
    """Load the encoder, and encode a text."""
    _encoder(request, "cpu").queries(["a"])


def _find_nearest(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Find the nearest documents of each query by which tasks draw hard negatives.

    They are what a bi-encoder mines for its next round of training: ANCE's negatives (Xiong et al.
    2021), with which Anchor-DR trains for its second epoch ("Implementation details"). The encoder
    reads the query, and the title and the lead of the page. The vectors of the documents are kept
    until the stage is finished. It runs in this process: the threads of torch divide the work.
    """
    index = _index(request)
    index.make()
    mine(stage, request, (_load_ranker, index, stage.options["depth"]))
    return {}


def _index(request: BuildRequest) -> DenseIndex:
    texts, folder = BuildTexts(request.directory), request.directory / "mapped"
    return DenseIndex(texts, folder, _encoder(request), quiet=request.quiet)


def _remove_index(request: BuildRequest) -> None:
    _index(request).artifact.clear()


def _encoder(request: BuildRequest, device: str | None = None) -> Encoder:
    model, device = request.of(NegativeOptions).negatives_encoder, device or request.device
    if model is None:
        raise HarpError("--negatives dense needs --negatives-encoder: name an encoder")
    dtype = default_dtype(choose_device(device))
    return Encoder(model, device=device, dtype=dtype, normalize=None)


build_dense_negatives = BuildStage(
    "dense_negatives", ("corpus", "graph"), _options, _find_nearest, _check, clean=_remove_index
)

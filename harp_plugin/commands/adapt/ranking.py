"""The ranking of `harp adapt`: the table, and the pipeline that is saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..steps import options_of_every_step, say
from .budget import ranking_dtype
from .options import AdaptOptions
from .training import DEPTH

if TYPE_CHECKING:
    from ...evaluation import Results

__all__ = ["FUSION", "rank", "save_pipeline"]

FUSION = "all three"
"""The row of the pipeline that is saved, where there is a cross-encoder."""
_WITHOUT_RERANKER = "fielded BM25 + cosine"
"""Its row where there is none."""
_FIRST_STAGE = "fielded BM25"
_RERANKER = "cross-encoder"
_DENSE = "cosine"
_CANDIDATES = "union"
"""Of the fusions with the cosine: its results are not a subset of BM25's."""
_LEARNT_BY = "nDCG@10"
"""It varies less than RR@10 between queries, so that fewer of them show a gain."""
_MAX_LENGTH = 128


def rank(options: AdaptOptions, reranker: str | None, dense: str) -> Results:
    """Rank the test queries by all systems, with weights from the dev queries.

    The cosine ranks all pages, not BM25's results alone: on a wiki, whose links say in other words
    what their page is about, it finds pages that BM25 does not.

    Args:
        options: of the command.
        reranker: folder of the cross-encoder; None if there is none.
        dense: the encoder whose cosine ranks.
    """
    from ...evaluation import EvaluationOptions, evaluate

    folder = options.folder
    say("evaluate", "first stages, rerankers and their fusions on the test queries")
    dev = options.dataset("dev")
    rerankers = {} if reranker is None else {_RERANKER: {"model": reranker, "passages": "matching"}}
    return evaluate(
        EvaluationOptions(
            dataset=options.dataset("test"),
            first_stage="fielded-bm25",
            tuning_dataset=dev,
            first_stages={"BM25": "bm25", _DENSE: f"cosine:{dense}"},
            rerankers=rerankers,
            fusions=_fusions(reranker is not None, {"train_dataset": dev, "measure": _LEARNT_BY}),
            depth=DEPTH,
            max_length=_MAX_LENGTH,
            dtype=ranking_dtype(),
            measures=["RR@10", "nDCG@10"],
            baseline=_FIRST_STAGE,
            correction="holm",
            report=True,
            output_dir=str(folder / "evaluation"),
            index_dir=str(folder / "index"),
            **options_of_every_step(options),
        )
    )


def _fusions(has_reranker: bool, learnt: dict[str, str]) -> dict[str, Any]:
    """Return the rows of fusions; the weights of most are learnt."""
    two = {"of": [_FIRST_STAGE, _DENSE], "candidates": _CANDIDATES}
    if not has_reranker:
        by_ranks = {f"{_WITHOUT_RERANKER}, by ranks": {**two, "weights": "rrf"}}
        return {_WITHOUT_RERANKER: {**two, **learnt}, **by_ranks}
    three = {"of": [_FIRST_STAGE, _RERANKER, _DENSE], "candidates": _CANDIDATES}
    return {
        _WITHOUT_RERANKER: {**two, **learnt},
        "fielded BM25 + cross-encoder": {"of": [_FIRST_STAGE, _RERANKER], **learnt},
        FUSION: {**three, **learnt},
        f"{FUSION}, by ranks": {**three, "weights": "rrf"},
    }


def save_pipeline(options: AdaptOptions, reranker: str | None, dense: str) -> None:
    """Save the fusion of all systems as a pipeline, with the weights that dev has chosen.

    Args:
        options: of the command.
        reranker: folder of the cross-encoder; None if there is none.
        dense: the encoder whose cosine ranks.
    """
    from ...ranking import HarpFusion, HarpPipeline, HarpReranker
    from ...ranking.dense import DenseCosine
    from ...ranking.fielded import FieldedBm25, FieldedIndex

    folder = options.folder
    record = json.loads((folder / "evaluation" / "results.json").read_text(encoding="utf-8"))
    index, dataset, dtype = folder / "index", options.dataset("test"), ranking_dtype()
    chosen = {name: record["first_stage"][name] for name in ("weights", "k1", "b")}
    bm25 = FieldedBm25(FieldedIndex(dataset, index), **chosen, num_results=DEPTH)
    systems: dict[str, Any] = {_FIRST_STAGE: bm25}
    if reranker is not None:
        systems[_RERANKER] = bm25 >> HarpReranker(
            reranker, dataset=dataset, passages="matching", max_length=_MAX_LENGTH, dtype=dtype
        )
    systems[_DENSE] = DenseCosine(
        dense, dataset=dataset, index_dir=index, num_results=DEPTH, dtype=dtype
    )
    row = _WITHOUT_RERANKER if reranker is None else FUSION
    weights = record["fusions"][row]["learnt"][0]["weights"]
    HarpPipeline(HarpFusion(systems, weights=weights, candidates=_CANDIDATES)).save(folder)

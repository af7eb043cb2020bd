"""The ranking of `harp adapt`: the table, and the pipeline that is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...files.records import read_record
from ..steps import say
from .budget import ranking_dtype
from .options import AdaptOptions
from .training import DEPTH

if TYPE_CHECKING:
    from ...evaluation import Results

__all__ = ["FUSION", "rank", "save_pipeline"]

FUSION = "all three"
"""The row of the pipeline that is saved."""
_FIRST_STAGE = "fielded BM25"
_RERANKER = "cross-encoder"
_LEARNT_BY = "nDCG@10"
"""It varies less than RR@10 between queries, so that fewer of them show a gain."""
_MAX_LENGTH = 128


def rank(options: AdaptOptions, reranker: str, dense: str) -> Results:
    """Rank the test queries by all systems, with weights from the dev queries.

    Args:
        options: of the command.
        reranker: folder of the cross-encoder.
        dense: the encoder whose cosine ranks.
    """
    from ...evaluation import EvaluationOptions, evaluate

    folder = options.folder
    say("evaluate", "first stages, the cross-encoder and their fusions on the test queries")
    dev = options.dataset("dev")
    three = [_FIRST_STAGE, _RERANKER, "cosine"]
    learnt = {"learn_on": dev, "measure": _LEARNT_BY}
    return evaluate(
        EvaluationOptions(
            dataset=options.dataset("test"),
            first_stage="fielded-bm25",
            tune_on=dev,
            first_stages={"BM25": "bm25"},
            rerankers={
                "cosine": f"cosine:{dense}",
                _RERANKER: {"model": reranker, "passages": "matching"},
            },
            fusions={
                "fielded BM25 + cosine": {"of": [_FIRST_STAGE, "cosine"], **learnt},
                "fielded BM25 + cross-encoder": {"of": [_FIRST_STAGE, _RERANKER], **learnt},
                FUSION: {"of": three, **learnt},
                f"{FUSION}, by ranks": {"of": three, "weights": "rrf"},
            },
            depth=DEPTH,
            max_length=_MAX_LENGTH,
            dtype=ranking_dtype(),
            measures=["RR@10", "nDCG@10"],
            baseline=_FIRST_STAGE,
            correction="holm",
            report=True,
            output_dir=str(folder / "evaluation"),
            index_dir=str(folder / "index"),
            overwrite=options.overwrite,
            keep=options.keep,
            quiet=options.quiet,
        )
    )


def save_pipeline(options: AdaptOptions, reranker: str, dense: str) -> None:
    """Save the fusion of all three systems as a pipeline, with the weights that dev has chosen.

    Args:
        options: of the command.
        reranker: folder of the cross-encoder.
        dense: the encoder whose cosine ranks.
    """
    from ...ranking import HarpFusion, HarpPipeline, HarpReranker
    from ...retrieval.dense import DenseCosine
    from ...retrieval.fielded import FieldedBm25, FieldedIndex

    folder = options.folder
    record = read_record(folder / "evaluation" / "results.json")
    index, dataset, dtype = folder / "index", options.dataset("test"), ranking_dtype()
    chosen = {name: record["first_stage"][name] for name in ("weights", "k1", "b")}
    bm25 = FieldedBm25(FieldedIndex(dataset, index), **chosen, num_results=DEPTH)
    rerankers = {
        _RERANKER: HarpReranker(
            reranker, dataset=dataset, passages="matching", max_length=_MAX_LENGTH, dtype=dtype
        ),
        "cosine": DenseCosine(dense, dataset=dataset, index_dir=index, dtype=dtype),
    }
    weights = record["fusions"][FUSION]["learnt"][0]["weights"]
    systems = {_FIRST_STAGE: bm25} | {name: bm25 >> r for name, r in rerankers.items()}
    HarpPipeline(HarpFusion(systems, weights=weights)).save(folder)

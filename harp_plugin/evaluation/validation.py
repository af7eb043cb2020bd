"""Ranking quality of a model in memory, for its training to watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..collections.dataset import JudgedDataset
from ..collections.judged_queries import few_shot_order, read_query_ids
from ..errors import HarpError
from ..models.sentence_encoder import SentenceEncoderFiles
from ..ranking import Scorer
from ..ranking.dense.vectors import TextVectors
from ..training.validation import ValidationOptions
from .first_stage import first_stage
from .options import SCORED_DOCUMENTS, EvaluationOptions
from .results import averages, measure_runs, parse_measures
from .runs import ranked
from .teachers import products

__all__ = ["RankingValidation"]


class RankingValidation:
    """Reranks the best documents of a first stage for a few judged queries, and measures them.

    The measures are those of `evaluate` for the same model, queries, depth and measures. An encoder
    reranks by the products of its vectors.

    Args:
        options: the dataset, the queries, the first stage and the measures.
        query_ids: file of the query ids to draw from, unless the options name one. Only queries
            that have a relevant document are drawn.
        seed: draws the queries. Any number of processes draws the same ones, and fewer queries are
            among those that are drawn when more are asked for.
        max_length: tokens of a pair.
        index_dir: folder of BM25 indexes, which is used where there is no other first stage.
        quiet: show no progress bars.

    Attributes:
        dataset: ir_datasets id.
        queries: ids of the queries, in the dataset's order.
        measures: by their names in the options.

    Raises:
        HarpError: the dataset, the run or a measure is at fault, or there is no such query.
    """

    def __init__(
        self,
        options: ValidationOptions,
        *,
        query_ids: str | None = None,
        seed: int = 42,
        max_length: int | None = None,
        index_dir: str | Path = "harp-output/index",
        quiet: bool = True,
    ) -> None:
        self.dataset = options.validation_dataset or ""
        self.max_length = max_length
        self.quiet = quiet
        names = options.validation_measures
        self.measures = dict(zip(names, parse_measures(names), strict=True))
        collection = JudgedDataset(self.dataset, options.validation_fields)
        allowed = read_query_ids(
            options.validation_query_ids or query_ids,
            set(collection.topics["qid"]),
            f"dataset {self.dataset}",
        )
        allowed &= set(collection.qrels.loc[collection.qrels["label"] > 0, "qid"])
        order = few_shot_order(allowed, seed, purpose="validation")
        drawn = set(order[: options.validation_queries])
        topics = collection.topics[collection.topics["qid"].isin(drawn)]
        if topics.empty:
            raise HarpError(f"dataset {self.dataset} has none of the queries to validate on")
        collection.topics = topics.reset_index(drop=True)
        self.queries: list[str] = collection.topics["qid"].tolist()
        self._topics = collection.topics
        self._qrels = collection.qrels[collection.qrels["qid"].isin(self.queries)]
        self._run = _candidates(collection, options, Path(index_dir), quiet)
        pairs = collection.with_texts(self._run)
        self._pairs = pairs["query"].tolist(), pairs["text"].tolist()

    def __call__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        files: SentenceEncoderFiles | None = None,
    ) -> dict[str, float]:
        """Compute the mean of each measure over the queries; one without results counts as 0.

        Args:
            model: an encoder, or a model for sequence classification.
            tokenizer: its tokenizer.
            files: how an encoder makes vectors of texts; None for a model that reads pairs.
        """
        if files is None:
            scorer = Scorer.from_model(model, tokenizer, max_length=self.max_length)
            scores = scorer.score(*self._pairs, verbose=not self.quiet, progress=_bar)
        else:
            encoder = TextVectors(model, tokenizer, files)
            scores = products(encoder, *self._pairs)
        run = ranked(self._run.assign(score=scores.astype(np.float64)))
        measures = list(self.measures.values())
        per_query = measure_runs({"model": run}, self._topics, self._qrels, measures)
        means = averages(per_query)["model"]
        return {name: means[str(measure)] for name, measure in self.measures.items()}


def _bar(**options: Any) -> tqdm:
    """Make the bar of a validation, which leaves its line to the bar of the training."""
    return tqdm(**options | {"desc": "validate", "leave": False})


def _candidates(
    collection: JudgedDataset, options: ValidationOptions, index_dir: Path, quiet: bool
) -> pd.DataFrame:
    """The run that is reranked: columns qid, docno, score, rank."""
    if options.validation_run is not None and not Path(options.validation_run).is_file():
        raise HarpError(f"validation_run {options.validation_run}: there is no such file")
    offered = SCORED_DOCUMENTS if collection.has(SCORED_DOCUMENTS) else "bm25"
    settings = EvaluationOptions(
        dataset=collection.name,
        first_stage=options.validation_run or offered,
        depth=options.validation_depth,
        index_dir=str(index_dir),
        quiet=quiet,
    )
    return first_stage(settings, collection).retrieve().reset_index(drop=True)

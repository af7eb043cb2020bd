"""The first stage: BM25, with fields or without, a cosine, a run, or a user's transformer."""

from __future__ import annotations

import importlib
import inspect
import re
from copy import copy
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from ..collections.dataset import JudgedDataset
from ..errors import HarpError
from ..ranking.bm25 import Bm25
from ..ranking.dense import DenseCosine, HarpRetriever
from ..work.hashes import file_hash
from .fielded import FieldedFirstStage
from .options import COSINE, DENSE, FIELDED_BM25, ExperimentOptions
from .runs import COLUMNS, ranked, read_run

__all__ = ["FirstStage", "dense_cosine", "first_stages"]


class FirstStage:
    """Gives each topic its best ``depth`` results.

    Attributes:
        settings: what the results depend on, apart from the collection and the depth.
        versions: of the packages that they depend on.
        file: the run on disk; None for another first stage.

    Raises:
        HarpError: ``options.first_stage`` is unknown, its function cannot be imported or returns no
            transformer, or the options of BM25 over fields are unfit.
    """

    def __init__(self, options: ExperimentOptions, collection: JudgedDataset) -> None:
        self._collection = collection
        self._depth = options.depth
        first_stage = options.first_stage
        self.file: Path | None = None
        self.versions: dict[str, str] = {}
        self._transformer: pt.Transformer | None = None
        if first_stage == "bm25":
            bm25 = self._transformer = _bm25(options, collection)
            self.settings, self.versions = bm25.settings, bm25.versions
        elif first_stage == FIELDED_BM25:
            fielded = self._transformer = FieldedFirstStage(options, collection)
            self.settings, self.versions = fielded.settings, fielded.versions
        elif options.cosine_model is not None:
            cosine = self._transformer = dense_cosine(options.cosine_model, options, collection)
            self.settings, self.versions = cosine.encoder.settings, cosine.encoder.versions
        elif first_stage.startswith(DENSE):
            dense = self._transformer = HarpRetriever(
                first_stage.removeprefix(DENSE), num_results=options.depth, device=options.device
            )
            self.settings = dense.settings
        elif Path(first_stage).is_file():
            self.file = Path(first_stage)
            self.settings = {"run": file_hash(self.file)}
        elif re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", first_stage):
            self._transformer, self.settings = _call(first_stage, options)
        else:
            raise HarpError(
                f"unknown first stage {first_stage!r}: name bm25, {FIELDED_BM25}, {COSINE}MODEL, "
                f"{DENSE}FOLDER, a run that exists, or module:function"
            )

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The weights, k1 and b of fielded BM25, chosen or named; None for another first stage."""
        stage = self._transformer
        return stage.chosen if isinstance(stage, FieldedFirstStage) else None

    def on(self, collection: JudgedDataset) -> FirstStage:
        """Take this first stage, as it is, for other queries on the same documents."""
        other = copy(self)
        other._collection = collection
        return other

    def retrieve(self) -> pd.DataFrame:
        """Retrieve for the topics: columns qid, docno, score, rank.

        Raises:
            HarpError: nothing was retrieved for any topic.
        """
        topics = self._collection.topics
        run = self._transform(topics) if self.file is None else read_run(self.file)
        run = run[run["qid"].isin(topics["qid"]) & (run["rank"] < self._depth)]
        if run.empty:
            raise HarpError(
                f"the first stage retrieved nothing for the {len(topics)} queries of"
                f" {self._collection.name}: check that both are of one collection and one language"
            )
        return run

    def _transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        assert self._transformer is not None
        results = self._transformer.transform(topics)
        missing = [column for column in COLUMNS[:3] if column not in results.columns]
        if missing:
            raise HarpError(f"the first stage gives no column {missing[0]}: return ranked results")
        return ranked(results.astype({"qid": str, "docno": str, "score": float}))


def first_stages(options: ExperimentOptions, collection: JudgedDataset) -> dict[str, FirstStage]:
    """Make every first stage, by row; that which is reranked stands at the head."""
    stages = {options.rows[0]: FirstStage(options, collection)}
    assert isinstance(options.first_stages, dict)
    for row, first_stage in options.first_stages.items():
        own = copy(options)
        own.first_stage = first_stage
        stages[row] = FirstStage(own, collection)
    return stages


def _bm25(options: ExperimentOptions, collection: JudgedDataset) -> Bm25:
    return Bm25(
        collection,
        options.index_folder,
        k1=options.bm25_k1,
        b=options.bm25_b,
        depth=options.depth,
        quiet=options.quiet,
    )


def dense_cosine(model: str, options: ExperimentOptions, collection: JudgedDataset) -> DenseCosine:
    """Make the cosine of an encoder, which searches or reranks by one index of vectors."""
    return DenseCosine(
        model,
        dataset=collection.name,
        index_dir=options.index_folder,
        text_field=options.fields,
        num_results=options.depth,
        device=options.device,
        dtype=options.dtype,
        verbose=not options.quiet,
    )


def _call(name: str, options: ExperimentOptions) -> tuple[pt.Transformer, dict[str, Any]]:
    module_name, function_name = name.split(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise HarpError(f"first stage {name} cannot be imported: {error}") from error
    transformer = function(options)
    if not isinstance(transformer, pt.Transformer):
        raise HarpError(f"first stage {name} returns {type(transformer)}: return a transformer")
    source = file_hash(Path(inspect.getfile(function)))
    return transformer, {"function": name, "source": source}

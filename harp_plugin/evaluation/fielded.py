"""BM25 over fields as a first stage, with settings that are named or chosen by other queries."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from ..collections.dataset import JudgedDataset
from ..errors import HarpError
from ..ranking.fielded import FieldedBm25, FieldedIndex, FieldSettings, Tuning, tune
from ..work.provenance import MadeFrom
from ..work.with_record import FileWithRecord
from .options import ExperimentOptions
from .results import parse_measures

__all__ = ["TUNING_FILE", "FieldedFirstStage"]

TUNING_FILE = "fielded-bm25.json"
"""File name in the output folder of the settings that were chosen and of all that were tried."""


class FieldedFirstStage(pt.Transformer):
    """`FieldedBm25` by the options of an experiment.

    With ``tune_on``, the settings are chosen when they are first needed, and kept in the output
    folder.

    Args:
        options: of the experiment.
        collection: what is searched.

    Attributes:
        settings: what the results depend on, apart from the collection and the depth.
        versions: of the packages that they depend on.

    Raises:
        HarpError: the documents lack a field, or the queries to tune on are unfit.
    """

    schematic = {"label": "FieldedBm25", "help_url": None}  # noqa: RUF012

    def __init__(self, options: ExperimentOptions, collection: JudgedDataset) -> None:
        self.options = options
        self.collection = collection
        assert not isinstance(options.field_weights, str)
        fields = list(options.field_weights or ()) or options.fields
        self._index = FieldedIndex(collection, options.index_folder, fields, quiet=options.quiet)
        self._start = FieldSettings.from_arguments(
            self._index.fields, options.field_weights, options.bm25_k1, options.bm25_b
        )
        self._tuned_on = _other_queries(options.tune_on, collection) if options.tune_on else None
        self.settings = {**self._index.settings, **self._start.arguments, **self._tuning_inputs()}
        self.versions = self._index.versions

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query."""
        arguments = {name: self.chosen[name] for name in ("weights", "k1", "b")}
        depth = self.options.depth
        return FieldedBm25(self._index, **arguments, num_results=depth).transform(inp)

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """The weights, k1 and b; where they were tuned, the measure and its value as well."""
        if self._tuned_on is None:
            return self._start.arguments
        path = Path(self.options.output_dir) / TUNING_FILE
        made_from = MadeFrom({**self.collection.documents_identity, **self.settings}, self.versions)
        file = FileWithRecord(path, made_from, self.options.rules)
        if not file.is_finished():
            content = json.dumps(_as_json(self._tune(self._tuned_on)), indent=2)
            with file.writing() as temporary:
                temporary.write_text(content + "\n", encoding="utf-8")
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {name: value for name, value in stored.items() if name != "tried"}

    def _tuning_inputs(self) -> dict[str, Any]:
        if self._tuned_on is None:
            return {}
        qrels = self._tuned_on.qrels.to_csv(index=False).encode("utf-8", "surrogatepass")
        return {
            "tuned on": self._tuned_on.identity,
            "judgments": hashlib.sha256(qrels).hexdigest(),
            "measure": self.options.measures[0],
        }

    def _tune(self, queries: JudgedDataset) -> Tuning:
        measure = parse_measures(self.options.measures[:1])[0]
        quiet = self.options.quiet
        tuning = tune(
            self._index, queries.topics, queries.qrels, measure, start=self._start, quiet=quiet
        )
        if tuning.value == 0:
            raise HarpError(
                f"{measure} is 0 for all queries of tune_on {queries.name}, whatever the weights: "
                f"name queries that are judged on the documents of {self.collection.name}"
            )
        return tuning


def _other_queries(name: str, collection: JudgedDataset) -> JudgedDataset:
    """Open the queries to tune on.

    Raises:
        HarpError: one of them is to be evaluated.
    """
    queries = JudgedDataset(name)
    shared = queries.topics.merge(collection.topics, on=["qid", "query"])
    if not shared.empty:
        raise HarpError(
            f"{len(shared)} queries of tune_on {name} are evaluated as well, such as "
            f"{shared['qid'].iloc[0]}: name other queries"
        )
    return queries


def _as_json(tuning: Tuning) -> dict[str, Any]:
    return {
        **tuning.arguments,
        "measure": tuning.measure,
        "value": tuning.value,
        "tried": tuning.tried.to_dict("records"),
    }

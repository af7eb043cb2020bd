"""The runs of folds: fine-tune on a fold's training queries, and rank its held-out queries."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ...collections.dataset import JudgedDataset
from ...errors import HarpError
from ...training.finetune import FinetuneDataArguments
from ...training.run_folder import remove_weights
from ...work.artifact import MANIFEST
from ...work.records import file_hash
from ..first_stage import FirstStage
from ..folds import Fold
from ..results import averages, measure_runs, parse_measures
from ..runs import make_reranker, ranked, rerank
from ..training import finetune
from .finetuning import Condition, Finetuning, FinetuningArguments, FoldRun
from .options import CrossValidationOptions

__all__ = ["FoldRuns"]


@dataclass(frozen=True)
class FoldRuns:
    """Makes the runs of conditions from those of folds; those of earlier starts are used again.

    Attributes:
        options: of the cross-validation.
        collection: what is ranked.
        folds: each is held out once.
        stage: the first stage.
        first: its run, which is reranked.
        fingerprints: of each system's models.
        finetuning: makes the arguments of fine-tunings.
    """

    options: CrossValidationOptions
    collection: JudgedDataset
    folds: Sequence[Fold]
    stage: FirstStage
    first: pd.DataFrame
    fingerprints: dict[str, list[str]]
    finetuning: Finetuning

    def check_models(self) -> None:
        """Score one pair by every model, before anything is trained.

        Raises:
            HarpError: a model cannot be loaded, or an option of ranking makes no sense for it.
        """
        pair = pd.DataFrame([["1", "word", "1", "word"]], columns=["qid", "query", "docno", "text"])
        for system in self.options.model_rows:
            arguments = self._ranking(
                Condition(system, 0, self.options.seeds[0]), self.options.finetuning_of(system)
            )
            if 0 not in self.options.query_counts:
                arguments["allow_untrained"] = True
            self._reranker(self.options.models(system), arguments).transform(pair)

    def steps(self, condition: Condition) -> int:
        """Return how many runs make up the run of a condition."""
        if condition.query_count == 0:
            return 1
        return len(self.folds) * len(self.options.candidates)

    def run(self, condition: Condition, bar: tqdm) -> tuple[pd.DataFrame, list[int]]:
        """Read or make the run of a condition over all queries.

        Each query is ranked by a model that has not seen it.

        Args:
            condition: the condition.
            bar: shows the progress; it is moved by `steps`.

        Returns:
            The run, and the index of the grid's candidate that was taken for each fold.
        """
        path = Path(self.options.output_dir) / "runs" / f"{condition.name}.run"
        if condition.query_count == 0:
            bar.set_postfix_str(f"{condition.system}, not fine-tuned")
            finetuning = self.options.finetuning_of(condition.system)
            settings = self._settings(condition, finetuning)
            models, ranking = self.options.models(condition.system), settings["ranking"]
            untrained = partial(self._rerank, self.first, condition.system, models, ranking)
            run = self.stage.reranked(path, settings, untrained)
            bar.update()
            return run, []
        parts, hashes, chosen = [], [], []
        for fold in self.folds:
            runs = []
            for candidate in range(len(self.options.candidates)):
                fold_run = FoldRun(condition, fold, candidate)
                bar.set_postfix_str(str(fold_run))
                runs.append(self._fold_run(fold_run))
                file = self._path(fold_run)  # there is none where no held-out query has results
                hashes.append(file_hash(file) if file.is_file() else "")
                bar.update()
            chosen.append(self._best(runs, fold))
            run = runs[chosen[-1]]
            parts.append(run[run["qid"].isin(fold.test)])
        settings = {"settings": self.stage.run_settings, "parts": hashes, "chosen": chosen}
        return self.stage.reranked(path, settings, lambda: self._pooled(parts)), chosen

    def _pooled(self, parts: list[pd.DataFrame]) -> pd.DataFrame:
        order = {qid: index for index, qid in enumerate(self.collection.topics["qid"])}
        pooled = pd.concat(parts, ignore_index=True)
        return ranked(pooled.sort_values("qid", key=lambda qid: qid.map(order), kind="stable"))

    def _best(self, runs: list[pd.DataFrame], fold: Fold) -> int:
        """Return the index of the run that is best on the queries for validation."""
        if not fold.validation or runs[0].empty:
            return 0
        topics, qrels = (
            frame[frame["qid"].isin(fold.validation)]
            for frame in (self.collection.topics, self.collection.qrels)
        )
        (measure,) = parse_measures(self.options.measures[:1])
        by_index = {str(index): run for index, run in enumerate(runs)}
        means = averages(measure_runs(by_index, topics, qrels, [measure]))
        values = [by_measure[str(measure)] for by_measure in means.values()]
        return values.index(max(values))

    def _fold_run(self, fold_run: FoldRun) -> pd.DataFrame:
        """Read or make the run of a fold's held-out queries, those for validation among them.

        The fine-tuned checkpoints are removed once the run is written, unless they shall be kept.
        """
        queries = {*fold_run.fold.test, *fold_run.fold.validation}
        first = self.first[self.first["qid"].isin(queries)].reset_index(drop=True)
        if first.empty:
            return first
        condition = fold_run.condition
        members = range(len(self.options.models(condition.system)))
        arguments = [self.finetuning.arguments(fold_run, member) for member in members]
        deciding = arguments[0].deciding
        settings = {
            **self._settings(condition, deciding),
            "finetuning": deciding,
            "train": fold_run.fold.train,
            "data": self.finetuning.queries_of(fold_run).fingerprint,
        }

        def make() -> pd.DataFrame:
            checkpoints = [str(_finetune(fold_run, member)) for member in arguments]
            return self._rerank(first, condition.system, checkpoints, settings["ranking"])

        run = self.stage.reranked(self._path(fold_run), settings, make)
        if not self.options.keep_checkpoints:
            for member in arguments:
                remove_weights(Path(str(member.training.output_dir)))
        return run

    def _settings(self, condition: Condition, finetuning: dict[str, Any]) -> dict[str, Any]:
        """Return what every run of a condition depends on."""
        return {
            **self.stage.run_settings,
            "models": self.fingerprints[condition.system],
            "ranking": self._ranking(condition, finetuning),
        }

    def _path(self, fold_run: FoldRun) -> Path:
        return self.finetuning.folder / fold_run.condition.name / f"{fold_run.name}.run"

    def _ranking(self, condition: Condition, finetuning: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a system's reranker."""
        return {
            "max_length": finetuning.get("max_length", FinetuneDataArguments.max_length),
            "dtype": self.options.dtype,
            "seed": condition.seed,
            **self.options.ranking_of(condition.system),
        }

    def _rerank(
        self, first: pd.DataFrame, system: str, models: list[str], ranking: dict[str, Any]
    ) -> pd.DataFrame:
        reranker = self._reranker(models, ranking)
        return rerank(first, self.collection, reranker, system, quiet=True)

    def _reranker(self, models: list[str], arguments: dict[str, Any]) -> pt.Transformer:
        model = models if len(models) > 1 else models[0]
        options = self.options
        return make_reranker(
            model, device=options.device, batch_tokens=options.batch_tokens, **arguments
        )


def _finetune(fold_run: FoldRun, arguments: FinetuningArguments) -> Path:
    folder = Path(str(arguments.training.output_dir))
    if (folder / MANIFEST).is_file() and not (folder / "config.json").is_file():
        (folder / MANIFEST).unlink()  # its weights were removed
    logger = logging.getLogger("harp_plugin.training")
    level = logger.level
    logger.setLevel(logging.ERROR)  # what it would say once for every fold is hidden
    try:
        return finetune(arguments.model, arguments.data, arguments.training)
    except HarpError as error:
        raise HarpError(f"{fold_run}: {error}") from error
    finally:
        logger.setLevel(level)

"""The runs of folds: fine-tune on a fold's training queries, and rank its held-out queries."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ...collections.dataset import JudgedDataset
from ...errors import HarpError
from ...ranking.options import names_of_part
from ...training.finetune import FinetuneDataArguments
from ...training.recipe import OPTIONS_WITHOUT_EFFECT
from ...training.run_folder import remove_weights
from ...work.artifact import MANIFEST
from ...work.hashes import file_hash
from ...work.versions import scoring_versions
from ..rerankers import make_reranker, rerank
from ..runs import stored_run
from ..training import finetune
from .conditions import Condition, FoldRun
from .options import CrossValidationOptions
from .recipes import Recipe, Recipes, read_finetuning

__all__ = ["FirstStageRun", "FoldRuns"]


@dataclass(frozen=True)
class FirstStageRun:
    """The first stage's run.

    Attributes:
        run: what is reranked.
        settings: what it depends on.
        versions: of the packages that made it.
        negatives: file of the run from which negatives are drawn.
    """

    run: pd.DataFrame
    settings: dict[str, Any]
    versions: dict[str, str]
    negatives: Path


class FoldRuns:
    """Makes the runs of folds in a folder, where those of earlier starts are used again.

    Args:
        options: of the cross-validation.
        collection: what is ranked.
        first_stage: the run that is reranked.
        fingerprints: of each system's models.
        recipes: of the fine-tunings.
    """

    def __init__(
        self,
        options: CrossValidationOptions,
        collection: JudgedDataset,
        first_stage: FirstStageRun,
        fingerprints: dict[str, list[str]],
        recipes: Recipes,
    ) -> None:
        self._options = options
        self._collection = collection
        self._first_stage = first_stage
        self._fingerprints = fingerprints
        self._recipes = recipes
        self._folder = Path(options.output_dir) / "finetuning"

    def check_models(self) -> None:
        """Score one pair by every model, before anything is trained.

        Raises:
            HarpError: a model cannot be loaded, or an option of ranking makes no sense for it.
        """
        pair = pd.DataFrame([["1", "word", "1", "word"]], columns=["qid", "query", "docno", "text"])
        for system in self._options.model_rows:
            condition = Condition(system, 0, self._options.seeds[0])
            arguments = self._ranking(condition, self._options.finetuning_of(system))
            if 0 not in self._options.query_counts:
                arguments["allow_untrained"] = True
            for name in names_of_part("ensemble"):
                arguments.pop(name, None)
            for model in self._options.models(system):
                make_reranker(model, device=self._options.device, **arguments).transform(pair)

    def fold_run(self, fold_run: FoldRun) -> pd.DataFrame:
        """Read or make the run of a fold's held-out queries, those for validation among them.

        The fine-tuned checkpoints are removed once the run is written, unless they shall be kept.
        """
        queries = {*fold_run.fold.test, *fold_run.fold.validation}
        first = self._first_stage.run
        first = first[first["qid"].isin(queries)].reset_index(drop=True)
        if first.empty:
            return first
        recipes = self._recipes.recipes(fold_run)

        def make() -> pd.DataFrame:
            checkpoints = [str(self._checkpoint(fold_run, recipe)) for recipe in recipes]
            return self._rerank(first, fold_run.condition, checkpoints, recipes[0])

        run = self._stored_run(self._path(fold_run), self._settings(fold_run, recipes[0]), make)
        if not self._options.keep_checkpoints:
            for recipe in recipes:
                remove_weights(Path(recipe["output_dir"]))
        return run

    def hash_of(self, fold_run: FoldRun) -> str:
        """The hash of a fold's run; empty where no held-out query has results."""
        path = self._path(fold_run)
        return file_hash(path) if path.is_file() else ""

    def run_without_training(self, condition: Condition, path: Path) -> pd.DataFrame:
        """Read or make the run of all queries by a system that is not fine-tuned."""
        finetuning = self._options.finetuning_of(condition.system)
        models = self._options.models(condition.system)
        settings = {
            **self._first_stage.settings,
            "models": self._fingerprints[condition.system],
            "ranking": self._ranking(condition, finetuning),
        }
        first = self._first_stage.run
        return self._stored_run(
            path, settings, lambda: self._rerank(first, condition, models, finetuning)
        )

    def pooled_run(
        self, path: Path, settings: dict[str, Any], make: Callable[[], pd.DataFrame]
    ) -> pd.DataFrame:
        """Read or make the run that is put together from those of folds."""
        return self._stored_run(path, {"settings": self._first_stage.settings, **settings}, make)

    def _stored_run(
        self, path: Path, settings: dict[str, Any], make: Callable[[], pd.DataFrame]
    ) -> pd.DataFrame:
        versions = {**self._first_stage.versions, **scoring_versions()}
        return stored_run(path, settings, make, versions=versions, rules=self._options.rules)

    def _path(self, fold_run: FoldRun) -> Path:
        return self._folder / fold_run.condition.name / f"{fold_run.name}.run"

    def _settings(self, fold_run: FoldRun, recipe: Recipe) -> dict[str, Any]:
        without_effect = ("query_ids", "negatives_run", "model", *OPTIONS_WITHOUT_EFFECT)
        kept = {k: value for k, value in recipe.items() if not k.startswith(without_effect)}
        return {
            **self._first_stage.settings,
            "models": self._fingerprints[fold_run.condition.system],
            "ranking": self._ranking(fold_run.condition, kept),
            "recipe": kept,
            "negatives": file_hash(Path(recipe["negatives_run"])),
            "train": fold_run.fold.train,
        }

    def _ranking(self, condition: Condition, finetuning: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a system's reranker."""
        return {
            "max_length": finetuning.get("max_length", FinetuneDataArguments.max_length),
            "dtype": self._options.dtype,
            "seed": condition.seed,
            **self._options.ranking_of(condition.system),
        }

    def _rerank(
        self,
        first: pd.DataFrame,
        condition: Condition,
        models: list[str],
        finetuning: dict[str, Any],
    ) -> pd.DataFrame:
        reranker = make_reranker(
            models if len(models) > 1 else models[0],
            device=self._options.device,
            batch_tokens=self._options.batch_tokens,
            **self._ranking(condition, finetuning),
        )
        return rerank(first, self._collection, reranker, condition.system, quiet=True)

    def _checkpoint(self, fold_run: FoldRun, recipe: Recipe) -> Path:
        folder = Path(recipe["output_dir"])
        if (folder / MANIFEST).is_file() and not (folder / "config.json").is_file():
            (folder / MANIFEST).unlink()  # its weights were removed
        self._recipes.write(recipe)
        with _only_errors("harp_plugin.training"):
            try:
                return finetune(*read_finetuning(recipe))
            except HarpError as error:
                raise HarpError(f"{fold_run}: {error}") from error


@contextlib.contextmanager
def _only_errors(name: str) -> Iterator[None]:
    """Hide what a logger would say once for every fold, but for errors."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)

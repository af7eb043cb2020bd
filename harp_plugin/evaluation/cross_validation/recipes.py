"""The recipes of a cross-validation's fine-tunings, as `harp finetune` reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import HarpError
from ...options_parser import OptionsParser
from ...training.arguments import HarpModelArguments, HarpTrainingArguments
from ...training.finetune import FINETUNING, FinetuneDataArguments
from ...work.with_record import FolderWithRecord
from ..folds import Fold
from .conditions import Condition, FoldRun
from .options import CrossValidationOptions

__all__ = ["Recipe", "Recipes", "TrainingQueries", "check_finetuning", "read_finetuning"]

Recipe = dict[str, Any]
_Arguments = tuple[HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments]


@dataclass(frozen=True)
class TrainingQueries:
    """The queries of a fold that can be learnt from.

    Attributes:
        count: how many they are.
        shortages: why others cannot be learnt from.
    """

    count: int
    shortages: list[str]


class Recipes:
    """Makes the recipe of each fine-tuning, and the files that it names.

    Args:
        options: of the cross-validation.
        negatives: file of the run from which negatives are drawn.
        files: writes the recipes and the files of folds.
    """

    def __init__(
        self, options: CrossValidationOptions, negatives: Path, files: FolderWithRecord
    ) -> None:
        self._options = options
        self._negatives = negatives
        self._files = files
        self._training_queries: dict[str, TrainingQueries] = {}

    def check_training_queries(self, folds: Sequence[Fold]) -> dict[str, list[TrainingQueries]]:
        """Check that every fold has as many queries to learn from as are asked for.

        Returns:
            Those of each fold, by system.

        Raises:
            HarpError: a fold has too few, or the data of fine-tuning cannot be read.
        """
        return {system: self._check_folds(system, folds) for system in self._options.model_rows}

    def recipes(self, fold_run: FoldRun) -> list[Recipe]:
        """Make the recipe of the fine-tuning of each model of a system."""
        models = self._options.models(fold_run.condition.system)
        return [self._recipe(fold_run, member) for member in range(len(models))]

    def write(self, recipe: Recipe) -> None:
        """Write a recipe beside the folder of its checkpoint."""
        folder = Path(recipe["output_dir"])
        text = json.dumps(recipe, indent=2)
        self._files.write(folder.with_name(f"{folder.name}.json"), f"{text}\n")

    def _check_folds(self, system: str, folds: Sequence[Fold]) -> list[TrainingQueries]:
        condition = Condition(system, None, self._options.seeds[0])
        most = max((count for count in self._options.query_counts if count), default=0)
        candidates = range(len(self._options.candidates))
        for fold_run in (FoldRun(condition, fold, place) for place in candidates for fold in folds):
            queries = self._queries_of(fold_run)
            if most > queries.count:
                why = f" ({'; '.join(queries.shortages)})" if queries.shortages else ""
                raise HarpError(
                    f"train_queries has {most}, but fold {fold_run.fold.number} has"
                    f" {queries.count} queries to learn from{why}: ask for fewer, or for all"
                )
        return [self._queries_of(FoldRun(condition, fold, 0)) for fold in folds]

    def _recipe(self, fold_run: FoldRun, member: int) -> Recipe:
        values = self._values(fold_run, member)
        _, _, training = read_finetuning(values)
        count = fold_run.condition.query_count
        if count is not None:
            values["queries"] = count
        learnt = self._queries_of(fold_run).count if count is None else count
        batch = training.per_device_train_batch_size * training.gradient_accumulation_steps
        steps = math.ceil(learnt / batch) * training.num_train_epochs
        if training.max_steps <= 0 and steps < self._options.min_steps:
            values["max_steps"] = self._options.min_steps
        return values

    def _values(self, fold_run: FoldRun, member: int = 0) -> Recipe:
        """The recipe of one fine-tuning, but for its number of queries and of steps."""
        condition, options = fold_run.condition, self._options
        folder = Path(options.output_dir) / "finetuning" / condition.name
        models = options.models(condition.system)
        part = f"-model-{member + 1}" if len(models) > 1 else ""
        values = {
            "save_strategy": "no",
            "report_to": "none",
            "dataloader_drop_last": False,
            "negatives_run": str(self._negatives),
            **options.finetuning_of(condition.system),
            **options.candidates[fold_run.candidate],
            "model": models[member],
            "dataset": options.dataset,
            "fields": options.fields,
            "query_ids": str(self._write_train_ids(fold_run.fold)),
            "seed": condition.seed,
            "output_dir": str(folder / f"{fold_run.name}{part}"),
            "overwrite": options.overwrite,
            "accept_other_versions": options.keep,
            "quiet": True,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _write_train_ids(self, fold: Fold) -> Path:
        path = Path(self._options.output_dir) / "folds" / f"fold-{fold.number}.train.txt"
        self._files.write(path, "".join(f"{query}\n" for query in fold.train))
        return path

    def _queries_of(self, fold_run: FoldRun) -> TrainingQueries:
        _, data, training = read_finetuning(self._values(fold_run))
        data = replace(data, queries=None)
        key = json.dumps([repr(data), fold_run.fold.train])
        if key not in self._training_queries:
            data.check()
            groups = data.groups(training.seed)
            self._training_queries[key] = TrainingQueries(len(groups), groups.shortages())
        return self._training_queries[key]


def check_finetuning(options: CrossValidationOptions) -> None:
    """Check every choice of options of fine-tuning, before anything is ranked.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    for system in options.model_rows:
        for candidate in options.candidates:
            values = {
                "negatives_run": options.output_dir,
                **options.finetuning_of(system),
                **candidate,
                "model": options.models(system)[0],
                "dataset": options.dataset,
                "output_dir": options.output_dir,
            }
            values = {name: value for name, value in values.items() if value is not None}
            _, data, _ = read_finetuning(values)
            try:
                data.check()
            except HarpError as error:
                raise HarpError(f"finetuning: {error}") from error


def read_finetuning(recipe: Recipe) -> _Arguments:
    """Read a recipe as `harp finetune` does.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    parser = OptionsParser(FINETUNING, "harp finetune", "")
    try:
        model, data, training, _rest = parser.read(list(_flags(recipe)))
    except HarpError as error:
        raise HarpError(f"finetuning: {error}") from error
    if training.world_size > 1:
        raise HarpError("a cross-validation runs in one process: start it without torchrun")
    return model, data, training


def _flags(recipe: Recipe) -> Iterator[str]:
    for name, value in recipe.items():
        yield f"--{name}"
        for item in value if isinstance(value, list) else [value]:
            yield item if isinstance(item, str) else json.dumps(item)

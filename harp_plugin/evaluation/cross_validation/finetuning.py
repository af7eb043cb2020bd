"""The fine-tunings of a cross-validation: their options, and the queries that they learn from."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import HarpError
from ...options_parser import options_from
from ...training.arguments import HarpModelArguments, HarpTrainingArguments
from ...training.finetune import FINETUNING, FinetuneDataArguments
from ...training.recipe import OPTIONS_WITHOUT_EFFECT
from ..folds import Fold
from ..options import file_stem
from .options import CrossValidationOptions, count_label

__all__ = ["Condition", "Finetuning", "FinetuningArguments", "FoldRun", "TrainingQueries"]


class TrainingQueries(NamedTuple):
    """Those training queries of a fold that a model can learn from.

    Attributes:
        number: how many they are.
        shortages: why the others cannot be used.
        fingerprint: a text that changes with them, their judgments, negatives or teacher scores.
    """

    number: int
    shortages: list[str]
    fingerprint: str


@dataclass(frozen=True)
class Condition:
    """A system that is fine-tuned on a number of queries by a seed. Its folds make up one run.

    Attributes:
        system: the name of its row.
        query_count: number of training queries; None for all, 0 for no fine-tuning.
        seed: of the fine-tuning.
    """

    system: str
    query_count: int | None
    seed: int

    @property
    def name(self) -> str:
        """The condition as a part of file names."""
        count = count_label(self.query_count)
        return f"{file_stem(self.system)}-{count}-queries-seed-{self.seed}"


@dataclass(frozen=True)
class FoldRun:
    """The run of one held-out fold under a condition, with one candidate of the grid's values.

    Attributes:
        condition: the condition.
        fold: which queries are learnt from and which are ranked.
        candidate: the index of the candidate in `CrossValidationOptions.candidates`.
    """

    condition: Condition
    fold: Fold
    candidate: int

    @property
    def name(self) -> str:
        """The run as a file name, unique within its condition."""
        candidate = f"-candidate-{self.candidate + 1}" if self.fold.validation else ""
        return f"fold-{self.fold.number}{candidate}"

    def __str__(self) -> str:
        count = count_label(self.condition.query_count)
        return f"{self.condition.system}, {count} queries, {self.name}"


class FinetuningArguments(NamedTuple):
    """What `finetune` takes, and the named values that decide the model.

    Attributes:
        model: arguments of the model.
        data: what the model learns from.
        training: arguments of the training.
        deciding: the values that the model depends on, apart from the files that they name.
    """

    model: HarpModelArguments
    data: FinetuneDataArguments
    training: HarpTrainingArguments
    deciding: dict[str, Any]


class Finetuning:
    """Makes the arguments of each fine-tuning.

    Args:
        options: of the cross-validation.

    Attributes:
        folder: of all fine-tunings.
        negatives: file of the run from which negatives are drawn.
    """

    def __init__(self, options: CrossValidationOptions) -> None:
        self._options = options
        self.folder = Path(options.output_dir) / "finetuning"
        self._usable: dict[str, TrainingQueries] = {}
        self.negatives = self.folder / "first-stage.run"

    def check(self) -> None:
        """Check every choice of options, before anything is ranked.

        Raises:
            HarpError: an option is unknown or has a wrong value.
        """
        fold = Fold(1, (), (), ())
        for system in self._options.model_rows:
            for fold_run in self._fold_runs(system, [fold]):
                arguments = self._read(fold_run)
                arguments.data.check()
                if (kind := arguments.model.model_kind) != "cross-encoder":
                    raise HarpError(f"model_kind {kind} cannot be cross-validated: leave it out")

    def check_training_queries(self, folds: Sequence[Fold]) -> dict[str, list[TrainingQueries]]:
        """Check that every fold has as many queries to learn from as are asked for.

        Returns:
            Those of each fold, by system.

        Raises:
            HarpError: a fold has too few, or the data of fine-tuning cannot be read.
        """
        most = max(filter(None, self._options.query_counts), default=0)
        training_queries = {}
        for system in self._options.model_rows:
            fold_runs = self._fold_runs(system, folds)
            for fold_run in fold_runs:
                usable = self.queries_of(fold_run)
                if most > usable.number:
                    why = f" ({'; '.join(usable.shortages)})" if usable.shortages else ""
                    raise HarpError(
                        f"train_queries has {most}, but fold {fold_run.fold.number} has"
                        f" {usable.number} queries to learn from{why}: ask for fewer, or for all"
                    )
            training_queries[system] = list(map(self.queries_of, fold_runs[: len(folds)]))
        return training_queries

    def arguments(self, fold_run: FoldRun, member: int = 0) -> FinetuningArguments:
        """Make the arguments for a model of a system."""
        model, data, training, deciding = self._read(fold_run, member)
        count = fold_run.condition.query_count
        learnt = self.queries_of(fold_run).number if count is None else count
        batch = training.per_device_train_batch_size * training.gradient_accumulation_steps
        steps = math.ceil(learnt / batch) * training.num_train_epochs
        if training.max_steps <= 0 and steps < self._options.min_steps:
            training.max_steps = deciding["max_steps"] = self._options.min_steps
        deciding["queries"] = count
        return FinetuningArguments(model, replace(data, queries=count), training, deciding)

    def _fold_runs(self, system: str, folds: Sequence[Fold]) -> list[FoldRun]:
        condition = Condition(system, None, self._options.seeds[0])
        candidates = range(len(self._options.candidates))
        return [FoldRun(condition, fold, index) for index in candidates for fold in folds]

    def _read(self, fold_run: FoldRun, member: int = 0) -> FinetuningArguments:
        """Read the values of one fine-tuning, but for its number of queries and of steps.

        Raises:
            HarpError: an option is unknown or has a wrong value.
        """
        condition, options = fold_run.condition, self._options
        models = options.models(condition.system)
        part = f"-model-{member + 1}" if len(models) > 1 else ""
        values = {
            "save_strategy": "no",
            "report_to": "none",
            "dataloader_drop_last": False,
            "negatives_run": str(self.negatives),
            **options.finetuning_of(condition.system),
            **options.candidates[fold_run.candidate],
            "model": models[member],
            "dataset": options.dataset,
            "fields": options.fields,
            "query_ids": str(self.folder.with_name("folds") / fold_run.fold.train_file),
            "seed": condition.seed,
            "output_dir": str(self.folder / condition.name / f"{fold_run.name}{part}"),
            "overwrite": options.overwrite,
            "accept_other_versions": options.accept_other_versions,
            "quiet": True,
        }
        values = {name: value for name, value in values.items() if value is not None}
        without_effect = ("query_ids", "negatives_run", "model", *OPTIONS_WITHOUT_EFFECT)
        deciding = {k: value for k, value in values.items() if not k.startswith(without_effect)}
        model, data, training = options_from(values, FINETUNING, "finetuning")
        if training.world_size > 1:
            raise HarpError("a cross-validation runs in one process: start it without torchrun")
        return FinetuningArguments(model, data, training, deciding)

    def queries_of(self, fold_run: FoldRun) -> TrainingQueries:
        """Find out which training queries of a fold can be used, once for each fold."""
        _, data, training, _ = self._read(fold_run)
        key = json.dumps([repr(data), fold_run.fold.train])
        if key not in self._usable:
            groups = data.groups(training.seed)
            self._usable[key] = TrainingQueries(len(groups), groups.shortages(), groups.fingerprint)
        return self._usable[key]

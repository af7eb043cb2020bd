"""What a cross-validation is made of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from ...errors import HarpError
from ...options import MOST, Interval, Number, Seed, option
from ...ranking.options import EnsembleOptions
from ...training.finetune import FinetuneDataArguments
from ..options import ExperimentOptions, model_row

__all__ = ["CrossValidationOptions", "count_label"]

_ALL = "all"
_SET_BY_CROSS_VALIDATION = {
    *("model", "model_name_or_path", "overwrite_output_dir"),
    *("dataset", "train_file", "fields", "queries", "query_ids", "validation_query_ids"),
    *("output_dir", "seed", "overwrite", "accept_other_versions", "resume_from_checkpoint"),
    *("quiet", "disable_tqdm"),
}
"""Options of fine-tuning that a user may not name."""


@dataclass(kw_only=True)
class _SystemOptions(EnsembleOptions):
    """The options of one system.

    Attributes:
        model: A model, or the models of an ensemble.
        finetuning: Options of fine-tuning of its own.
        allow_untrained: Score with random weights where there are none.
    """

    model: str | list[str]
    finetuning: dict[str, Any] | None = None
    allow_untrained: bool = False


@dataclass(kw_only=True)
class CrossValidationOptions(ExperimentOptions):
    """What is fine-tuned on which folds.

    Attributes:
        systems: Models to start from by the name of their row: a model, a list of models (an
            ensemble), or an object with `model` and any of finetuning (options of its own),
            allow_untrained, and of an ensemble's weights and score_normalization. As a flag: JSON.
        finetuning: Options of `harp finetune` for all systems. As a flag: JSON.
        grid: Options of fine-tuning with lists of values. The best values for each held-out fold
            are chosen on a validation fold, as in PROP. As a flag: JSON.
        folds: How many folds there are. They are drawn by the seed.
        fold_files: One file for each fold, with the id of a query on each line, in place of folds
            that are drawn.
        train_queries: How many training queries each fold has: one or several numbers. A smaller
            number is a part of a larger one; all (in JSON null too) takes every query, and 0 does
            not fine-tune.
        min_steps: How many steps fine-tuning takes at least.
        seed: Seed by which the folds are drawn.
        seeds: Seeds of fine-tuning. The measures of a query are means over them.
        output_dir: Folder for tables, plot, runs and results.json.
        keep_checkpoints: Keep the checkpoint of each fold after its run is written.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    systems: dict[str, Any] = option({})
    finetuning: dict[str, Any] = option({})
    grid: dict[str, Any] = option({})
    folds: Annotated[int, Interval(le=MOST)] = 5
    fold_files: list[str] | None = None
    train_queries: list[str | int | None] = option(["5", "10", "20", _ALL])
    min_steps: Number = 0
    seed: Seed = 42
    seeds: list[Seed] = option([42])
    output_dir: str = "harp-output/cross-validation"
    keep_checkpoints: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_finetuning("finetuning", self.finetuning)
        _check_finetuning("grid", self.grid)
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise HarpError(f"grid: {name} is {values!r:.60}: list the values to choose from")
        self.systems = {
            name: model_row(f"system {name!r}", row, _SystemOptions)
            for name, row in self.systems.items()
        }
        for name, system in self.systems.items():
            _check_finetuning(f"system {name!r}", system.get("finetuning", {}))
        if not self.systems:
            raise HarpError("systems is empty: name a model to fine-tune")
        self.check_rows("systems")
        for name, fusion in self.fused_rows.items():
            if fusion.train_dataset:
                raise HarpError(
                    f"fusion {name!r} has train_dataset: a cross-validation learns weights on the "
                    "training folds, leave it out"
                )
        self._check_numbers()

    def _check_numbers(self) -> None:
        least = 3 if self.grid else 2
        if (self.folds if self.fold_files is None else len(self.fold_files)) < least:
            why = "training, validation and held-out" if self.grid else "training and held-out"
            raise HarpError(f"folds are fewer than {least}: name more, for {why} queries")
        for name, values in (("seeds", self.seeds), ("train_queries", self.query_counts)):
            if not values or len(set(values)) < len(values):
                raise HarpError(f"{name} is {getattr(self, name)}: name at least one, each once")

    @property
    def model_rows(self) -> list[str]:
        return list(self.systems)

    @property
    def query_counts(self) -> list[int | None]:
        """Numbers of training queries; None stands for all.

        Raises:
            HarpError: an entry is not such a number.
        """
        return [_query_count(entry) for entry in self.train_queries]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Every choice of the grid's values; one empty choice without a grid."""
        choices = product(*self.grid.values())
        return [dict(zip(self.grid, values, strict=True)) for values in choices]

    @property
    def first_stage_depth(self) -> int:
        """How many results of the first stage are reranked, or are where negatives are drawn."""
        depths = (
            {**self.finetuning_of(system), **candidate}.get("depth")
            for system, candidate in product(self.model_rows, self.candidates)
        )
        numbers = (FinetuneDataArguments.depth if depth is None else depth for depth in depths)
        return max([self.depth, 1, *(int(n) for n in numbers if isinstance(n, int | float))])

    def models(self, system: str) -> list[str]:
        """Return the model of a system, or the models of its ensemble."""
        model = self.systems[system]["model"]
        return model if isinstance(model, list) else [model]

    def finetuning_of(self, system: str) -> dict[str, Any]:
        """Return options of fine-tuning, the system's own over the common ones."""
        return {**self.finetuning, **self.systems[system].get("finetuning", {})}

    def ranking_of(self, system: str) -> dict[str, Any]:
        """Return arguments of a system's reranker but for its model."""
        own = self.systems[system]
        return {key: own[key] for key in own.keys() - {"model", "finetuning"}}


def count_label(count: int | None) -> str:
    """Write a number of training queries as tables and file names show it."""
    return _ALL if count is None else str(count)


def _query_count(entry: Any) -> int | None:
    if entry in (None, _ALL):
        return None
    if not str(entry).isdecimal():
        raise HarpError(f"train_queries has {entry!r}: name numbers from 0, or all")
    return int(entry)


def _check_finetuning(where: str, values: dict[str, Any]) -> None:
    """Check options of fine-tuning.

    Raises:
        HarpError: the cross-validation sets one of them.
    """
    if refused := sorted(_SET_BY_CROSS_VALIDATION & values.keys()):
        raise HarpError(f"{where} names {refused[0]}: the cross-validation sets it, leave it out")

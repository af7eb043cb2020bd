"""What a cross-validation is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ...errors import HarpError
from ...limits import MOST, NUMBER, SEED, Limits, check_limits
from ...ranking.options import scoring_option
from ...training.finetune import FinetuneDataArguments
from ..options import ExperimentOptions, check_model_row, read_mapping

__all__ = ["CrossValidationOptions", "count_label"]

_ALL = "all"
_SYSTEM_OPTIONS = ("finetuning", "allow_untrained")
_SET_BY_CROSS_VALIDATION = {
    *("model", "model_name_or_path", "overwrite_output_dir"),
    *("dataset", "train_file", "fields", "queries", "query_ids", "validation_query_ids"),
    *("output_dir", "seed", "overwrite", "accept_other_versions", "resume_from_checkpoint"),
    *("quiet", "disable_tqdm"),
}
"""Options of fine-tuning that a user may not name."""
_LIMITS = {
    "folds": Limits(most=MOST),
    "min_steps": NUMBER,
    "seed": SEED,
    "seeds": SEED,
}


@dataclass
class CrossValidationOptions(ExperimentOptions):
    """Options of `cross_validate`, for flags or a JSON recipe.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    systems: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Models to start from by the name of their row: a model, a list of models (an"
            " ensemble), or an object with `model` and any of finetuning (options of its own),"
            " allow_untrained, and of an ensemble's weights and score_normalization. As a flag:"
            " JSON."
        },
    )
    finetuning: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Options of `harp finetune` for all systems. As a flag: JSON."},
    )
    grid: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Options of fine-tuning with lists of values. The best values for each "
            "held-out fold are chosen on a validation fold, as in PROP. As a flag: JSON."
        },
    )
    folds: int = field(
        default=5, metadata={"help": "How many folds there are. They are drawn by the seed."}
    )
    fold_files: list[str] | None = field(
        default=None,
        metadata={
            "help": "One file for each fold, with the id of a query on each line, in place "
            "of folds that are drawn."
        },
    )
    train_queries: list[str | int | None] = field(
        default_factory=lambda: ["5", "10", "20", _ALL],
        metadata={
            "help": "How many training queries each fold has: one or several numbers. A smaller "
            "number is a part of a larger one; all (in JSON null too) takes every query, "
            "and 0 does not fine-tune."
        },
    )
    min_steps: int = field(
        default=0,
        metadata={"help": "How many steps fine-tuning takes at least."},
    )
    seed: int = field(default=42, metadata={"help": "Seed by which the folds are drawn."})
    seeds: list[int] = field(
        default_factory=lambda: [42],
        metadata={"help": "Seeds of fine-tuning. The measures of a query are means over them."},
    )
    dtype: str = scoring_option(
        "dtype",
        help="Type of the numbers that rankings are computed with: float32, bfloat16 or float16.",
    )
    output_dir: str = field(
        default="harp-output/cross-validation",
        metadata={"help": "Folder for tables, plot, runs and results.json."},
    )
    keep_checkpoints: bool = field(
        default=False,
        metadata={"help": "Keep the checkpoint of each fold after its run is written."},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.finetuning = _finetuning("finetuning", read_mapping("finetuning", self.finetuning))
        self.grid = _finetuning("grid", read_mapping("grid", self.grid))
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise HarpError(f"grid: {name} is {values!r:.60}: list the values to choose from")
        systems = read_mapping("systems", self.systems)
        self.systems = {name: _checked_system(name, row) for name, row in systems.items()}
        if not self.systems:
            raise HarpError("systems is empty: name a model to fine-tune")
        self.check_rows("systems")
        assert isinstance(self.fusions, dict)
        for name, fusion in self.fusions.items():
            if fusion["learn_on"]:
                raise HarpError(
                    f"fusion {name!r} has learn_on: a cross-validation learns weights on the "
                    "training folds, leave it out"
                )
        self._check_numbers()

    def _check_numbers(self) -> None:
        check_limits(self, _LIMITS)
        least = 3 if self.grid else 2
        if (len(self.fold_files) if self.fold_files else self.folds) < least:
            why = "training, validation and held-out" if self.grid else "training and held-out"
            raise HarpError(f"folds are fewer than {least}: queries are needed for {why}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise HarpError(f"seeds is {self.seeds}: name at least one, each once")
        if not self.query_counts or len(set(self.query_counts)) < len(self.query_counts):
            raise HarpError(f"train_queries is {self.train_queries}: name some, each once")

    @property
    def model_rows(self) -> list[str]:
        return list(self.systems or ())

    @property
    def query_counts(self) -> list[int | None]:
        """Numbers of training queries; None stands for all.

        Raises:
            HarpError: an entry is no such number.
        """
        return [_query_count(entry) for entry in self.train_queries]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Every choice of the grid's values; one empty choice without a grid."""
        assert isinstance(self.grid, dict)
        choices = product(*self.grid.values())
        return [dict(zip(self.grid, values, strict=True)) for values in choices]

    @property
    def first_stage_depth(self) -> int:
        """How many results of the first stage are reranked, or are where negatives are drawn."""
        depths = [
            {**self.finetuning_of(system), **candidate}.get("depth", FinetuneDataArguments.depth)
            for system in self.model_rows
            for candidate in self.candidates
        ]
        return max([self.depth, 1, *(depth for depth in depths if isinstance(depth, int))])

    def models(self, system: str) -> list[str]:
        """The model of a system, or the models of its ensemble."""
        model = self._system(system)["model"]
        return model if isinstance(model, list) else [model]

    def finetuning_of(self, system: str) -> dict[str, Any]:
        """Options of fine-tuning, the system's own over the common ones."""
        assert isinstance(self.finetuning, dict)
        return {**self.finetuning, **self._system(system).get("finetuning", {})}

    def ranking_of(self, system: str) -> dict[str, Any]:
        """Arguments of a system's reranker but for its model."""
        own = self._system(system)
        return {key: own[key] for key in own.keys() - {"model", "finetuning"}}

    def _system(self, name: str) -> dict[str, Any]:
        assert isinstance(self.systems, dict)
        return self.systems[name]


def count_label(count: int | None) -> str:
    """Write a number of training queries as tables and file names show it."""
    return _ALL if count is None else str(count)


def _query_count(entry: Any) -> int | None:
    if entry in (None, _ALL):
        return None
    if not str(entry).isdecimal():
        raise HarpError(f"train_queries has {entry!r}: name numbers from 0, or all")
    return int(entry)


def _checked_system(name: str, row: Any) -> dict[str, Any]:
    """Check a system, and write the options of its own fine-tuning by their present names.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    system = check_model_row("system", name, row, _SYSTEM_OPTIONS)
    own = system.get("finetuning", {})
    if not isinstance(own, dict):
        raise HarpError(f"system {name!r}: finetuning is {own!r:.60}: it must map names")
    own = _finetuning(f"system {name!r}", own)
    return {**system, "finetuning": own} if "finetuning" in system else system


def _finetuning(where: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return options of fine-tuning.

    Raises:
        HarpError: the cross-validation sets one of them.
    """
    if refused := sorted(_SET_BY_CROSS_VALIDATION & values.keys()):
        raise HarpError(f"{where} names {refused[0]}: the cross-validation sets it, leave it out")
    return values

"""What a cross-validation is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any

from ...errors import HarpError
from ...limits import MOST, NUMBER, SEED, Limits, check_limits
from ...option_names import OptionNames
from ...training.arguments import HarpModelArguments, HarpTrainingArguments
from ...training.judged_arguments import FinetuneDataArguments
from ..options import ENSEMBLE_KEYS, ExperimentOptions, by_name, check_model

SYSTEM_KEYS = {"model", "finetuning", "allow_untrained"} | ENSEMBLE_KEYS
OF_A_TRIAL = {
    *("model", "dataset", "train_file", "fields", "queries", "query_ids"),
    *(
        "validation_query_ids",
        "output_dir",
        "seed",
        "overwrite",
        "keep",
        "resume_from_checkpoint",
        "quiet",
        "disable_tqdm",
    ),
}
"""Options of fine-tuning that the cross-validation sets."""
_NAMES = OptionNames((HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments))
ALL = "all"
LIMITS = {
    "folds": Limits(most=MOST),
    "min_steps": NUMBER,
    "seed": SEED,
    "seeds": SEED,
}


@dataclass
class CrossValidationOptions(ExperimentOptions):
    """Options of `cross_validate`, for flags or a JSON recipe.

    Raises:
        HarpError: a value has no sense; the message names the option.
    """

    systems: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Models to start from by the name of their row: a model, a list of models (an"
            " ensemble), or an object with `model` and any of finetuning (options of its own),"
            " allow_untrained, and of an ensemble's weights and normalisation. As a flag: JSON."
        },
    )
    finetuning: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "Options of `harp finetune` for all systems. As a flag: JSON."},
    )
    grid: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Options of fine-tuning with lists of values, of which each held-out fold's"
            " best are chosen on a validation fold, as PROP does. As a flag: JSON."
        },
    )
    folds: int = field(default=5, metadata={"help": "Folds, drawn by the seed."})
    fold_files: list[str] | None = field(
        default=None,
        metadata={"help": "Files of query ids, one a line and one file a fold, in place of drawn."},
    )
    train_queries: Annotated[list[str], list[str | int | None]] = field(
        default_factory=lambda: ["5", "10", "20", ALL],
        metadata={
            "help": "Numbers of training queries, drawn from each fold's training part, fewer"
            " nested in more; all (in JSON null too) takes every one, 0 fine-tunes not at all."
        },
    )
    min_steps: int = field(
        default=0,
        metadata={"help": "Steps that fine-tuning takes at least, however few the queries."},
    )
    seed: int = field(default=42, metadata={"help": "Draws the folds."})
    seeds: list[int] = field(
        default_factory=lambda: [42],
        metadata={"help": "Seeds of fine-tuning: measures are means over them, query by query."},
    )
    dtype: str = field(
        default="float32",
        metadata={"help": "In ranking: float32, bfloat16, float16, or int8 on a CPU."},
    )
    output_dir: str = field(
        default="harp-output/cross-validation",
        metadata={"help": "Folder of tables, plot, runs and results.json."},
    )
    keep_checkpoints: bool = field(
        default=False,
        metadata={"help": "Keep each fold's checkpoint after its run is written."},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.finetuning = _finetuning("finetuning", by_name("finetuning", self.finetuning))
        self.grid = _finetuning("grid", by_name("grid", self.grid))
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise HarpError(f"grid: {name} is {values!r:.60}: list the values to choose from")
        given = by_name("systems", self.systems)
        self.systems = {name: _checked_system(name, value) for name, value in given.items()}
        if not self.systems:
            raise HarpError("systems is empty: name a model to fine-tune")
        self.check_rows("systems")
        self._check_numbers()

    def _check_numbers(self) -> None:
        check_limits(self, LIMITS)
        least = 3 if self.grid else 2
        if (len(self.fold_files) if self.fold_files else self.folds) < least:
            why = "training, validation and held-out" if self.grid else "training and held-out"
            raise HarpError(f"folds are fewer than {least}: queries are needed for {why}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise HarpError(f"seeds is {self.seeds}: name at least one, each once")
        if not self.counts or len(set(self.counts)) < len(self.counts):
            raise HarpError(f"train_queries is {self.train_queries}: name some, each once")

    @property
    def row_names(self) -> list[str]:
        return list(self.systems or ())

    @property
    def counts(self) -> list[int | None]:
        """Numbers of training queries; None stands for all.

        Raises:
            HarpError: one is no such number.
        """
        return [_count(given) for given in self.train_queries]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Every choice of the grid's values; one empty choice without a grid."""
        assert isinstance(self.grid, dict)
        choices = product(*self.grid.values())
        return [dict(zip(self.grid, values, strict=True)) for values in choices]

    @property
    def negatives_depth(self) -> int:
        """How deep into the first stage's run any fine-tuning draws its negatives."""
        given = [
            {**self.finetuning_of(system), **candidate}.get("depth", FinetuneDataArguments.depth)
            for system in self.row_names
            for candidate in self.candidates
        ]
        return max((depth for depth in given if isinstance(depth, int)), default=1)

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


def label(count: int | None) -> str:
    """A number of training queries as tables and file names show it."""
    return ALL if count is None else str(count)


def _count(given: Any) -> int | None:
    if given in (None, ALL):
        return None
    if not str(given).isdecimal():
        raise HarpError(f"train_queries has {given!r}: name numbers from 0, or all")
    return int(given)


def _checked_system(name: str, value: Any) -> dict[str, Any]:
    """The options of a system, with those of its own fine-tuning by their present names.

    Raises:
        HarpError: an option is unknown or has a wrong value.
    """
    system = check_model("system", name, value, SYSTEM_KEYS)
    own = system.get("finetuning", {})
    if not isinstance(own, dict):
        raise HarpError(f"system {name!r}: finetuning is {own!r:.60}: it must map names")
    own = _finetuning(f"system {name!r}", own)
    return {**system, "finetuning": own} if "finetuning" in system else system


def _finetuning(where: str, values: dict[str, Any]) -> dict[str, Any]:
    """Options of fine-tuning by their present names.

    Raises:
        HarpError: the cross-validation sets one of them, or one is given under two names.
    """
    options = _NAMES.values(values, f"{where}: ")
    taken = sorted(OF_A_TRIAL & options.keys())
    if taken:
        raise HarpError(f"{where} names {taken[0]}: the cross-validation sets it, leave it out")
    return options

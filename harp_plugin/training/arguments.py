"""Options of a training run, in Tevatron's style: one flat recipe, three dataclasses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch

from ..errors import HarpError
from ..tasks import HARP_TASKS, TASKS, DrawOptions
from .data import query_limits
from .losses import WeightedSum, checked_weights
from .tevatron import TevatronTrainingArguments
from .validation import ValidationOptions

LOSSES_OF_PRESET = {
    "default": {"hinge": 1.0, "mlm": 1.0},
    "paper": {"hinge": 1.0, "mlm": 1.0},
    "released": {"softmax_margin": 1.0, "mlm": 1.0},
}
EXAMPLE = {
    "tasks": '{"rqp": 1, "qdm": 1}',
    "losses": '{"hinge": 1, "mlm": 1}',
    "max_query_length": '30 or {"srr": 30, "ltm": 255}',
}


SHOWN = frozenset(
    {
        *("model_name_or_path", "build_dir", "output_dir", "tasks", "losses", "preset", "mixing"),
        *("max_length", "mlm_probability", "groups_per_epoch", "per_device_train_batch_size"),
        *("gradient_accumulation_steps", "learning_rate", "num_train_epochs", "max_steps"),
        *("warmup_ratio", "lr_scheduler_type", "bf16", "dataloader_num_workers", "save_steps"),
        *("logging_steps", "report_to", "seed", "overwrite_output_dir"),
        *("eval_strategy", "eval_steps", "validation_dataset", "validation_run"),
        *("load_best_model_at_end", "early_stopping_patience"),
    }
)
"""The options that a newcomer needs; the others are TrainingArguments' and of drawing."""


@dataclass
class HarpModelArguments:
    """Which model is trained."""

    model_name_or_path: str = field(
        metadata={
            "help": "Model to start from: a checkpoint folder, a name on the Hugging Face hub, or "
            "package:NAME for a Python package that carries one."
        }
    )
    tokenizer_name: str | None = field(
        default=None, metadata={"help": "Tokenizer, if it is not the model's own."}
    )


@dataclass
class HarpDataArguments(DrawOptions):
    """What is learnt, from which data, and how pairs are drawn from it."""

    build_dir: str = field(kw_only=True, metadata={"help": "Folder that `harp build` wrote."})
    tasks: dict[str, float] | str | None = field(
        default=None,
        metadata={
            "help": "Pre-training tasks with their weights in the mixture, as JSON, such as "
            '{"rqp": 1, "qdm": 1}. Default: rqp, qdm, rdp and acm, 1 each.'
        },
    )
    losses: dict[str, float] | str | None = field(
        default=None,
        metadata={
            "help": "Losses with their weights in the sum, as JSON. Default: those of the preset, "
            '{"hinge": 1, "mlm": 1}; for released {"softmax_margin": 1, "mlm": 1}.'
        },
    )
    groups_per_epoch: int | None = field(
        default=None,
        metadata={"help": "Pair groups in one epoch. Default: as many as there are examples."},
    )
    max_length: int = field(
        default=512,
        metadata={"help": "Most tokens of a pair, special tokens included; documents are cut."},
    )
    max_query_length: dict[str, int] | str | int | None = field(
        default=None,
        metadata={
            "help": "Most tokens of a query: a number, or one by task as JSON, such as "
            '{"srr": 30, "ltm": 255}. Default, and for tasks not named: half of max_length.'
        },
    )
    mlm_probability: float = field(
        default=0.15, metadata={"help": "Share of a document's tokens that the mlm loss masks."}
    )

    def __post_init__(self) -> None:
        for name, value in asdict(self.draw_options).items():
            setattr(self, name, value)
        self.tasks = weights("tasks", self.tasks, dict.fromkeys(HARP_TASKS, 1.0))
        self.losses = weights("losses", self.losses, LOSSES_OF_PRESET[self.preset])
        self.max_query_length = from_json("max_query_length", self.max_query_length)

    def check(self) -> None:
        """Find what is wrong without opening the build.

        Raises:
            HarpError: as `weighted_sum`, `task_weights` and `query_limits` say.
        """
        self.weighted_sum()
        _ = self.query_limits

    @property
    def task_weights(self) -> dict[str, float]:
        """Weight of each task by name; a weight of 0 leaves a task out.

        Raises:
            HarpError: a task is not registered, a weight is negative, or no task is left.
        """
        given = checked_weights("tasks", weights("tasks", self.tasks, {}))
        for name in given:
            TASKS[name]
        return given

    @property
    def query_limits(self) -> dict[str, int]:
        """Most tokens of a query by task; see `harp_plugin.training.data.query_limits`."""
        return query_limits(self.max_query_length, tuple(self.task_weights), self.max_length)

    @property
    def draw_options(self) -> DrawOptions:
        """How pairs are drawn, what is not given as the preset says."""
        return DrawOptions(
            **{option.name: getattr(self, option.name) for option in fields(DrawOptions)}
        )

    def weighted_sum(self) -> WeightedSum:
        """The total loss.

        Raises:
            HarpError: a loss is not registered, a weight is negative, or no loss is left.
        """
        return WeightedSum(weights("losses", self.losses, {}))


@dataclass
class HarpTrainingArguments(ValidationOptions, TevatronTrainingArguments):
    """How it is trained: Tevatron's options, which are those of transformers' Trainer.

    ``per_device_train_batch_size`` counts pair groups: a batch of 8 groups of two is 16 pairs.
    """

    overwrite_output_dir: bool = field(
        default=False,
        metadata={
            "help": "Replace what another recipe has trained in output_dir.",
            "aliases": ["--overwrite"],
        },
    )
    keep: bool = field(
        default=False,
        metadata={
            "help": "Go on from checkpoints, or leave a finished run, that other package versions "
            "have made."
        },
    )
    warmup_steps: float = field(
        default=0,
        metadata={"help": "Steps in which the learning rate rises from 0; under 1: their share."},
    )
    warmup_ratio: float = field(
        default=0.1,
        metadata={"help": "Share of the steps that warm up, where warmup_steps is not given."},
    )
    dataloader_drop_last: bool = field(
        default=True,
        metadata={
            "help": "Leave an epoch's last batch out if it is not full on every process. What is "
            "left out differs in each epoch."
        },
    )
    dataloader_pin_memory: bool = field(
        default_factory=torch.cuda.is_available,
        metadata={"help": "Keep batches in pinned memory (default: where there is a GPU)."},
    )
    disable_tqdm: bool | None = field(
        default=False, metadata={"help": "Show no progress bar and no log lines."}
    )
    remove_unused_columns: bool = field(
        default=False, metadata={"help": "Has no effect: batches are made of pair groups."}
    )
    logging_nan_inf_filter: bool = field(
        default=False, metadata={"help": "Hide losses that are not finite. Default: stop at them."}
    )

    def __post_init__(self) -> None:
        if self.warmup_ratio and not self.warmup_steps:
            self.warmup_steps = self.warmup_ratio
        for name in ("negatives_x_device", "grad_cache", "do_encode"):
            if getattr(self, name, None) not in (False, "no", None):
                raise HarpError(
                    f"{name} has no meaning when a cross-encoder is trained: leave it out"
                )
        if self.validation_dataset is not None:
            self.validation_dataset = self.validation_dataset.removeprefix("irds:")
        metric = self.metric_for_best_model
        try:
            super().__post_init__()
        except (ValueError, TypeError) as error:
            raise HarpError(f"training options: {' '.join(str(error).split())}") from error
        self._check_validation(metric)

    def _check_validation(self, metric: str | None) -> None:
        is_best = self.save_strategy == "best"
        chooses = bool(self.load_best_model_at_end or is_best or self.early_stopping_patience)
        self.check_validation(
            evaluates=self.eval_strategy != "no",
            chooses=chooses,
            metric=(metric or "").removeprefix("eval_") or None,
        )
        if chooses and metric is None:
            self.metric_for_best_model = self.metric
            self.greater_is_better = self.metric != "loss"


def weights(name: str, given: object, default: object) -> dict[str, Any]:
    """Read an option that maps names to weights, given as a mapping or as JSON text.

    Raises:
        HarpError: it is neither.
    """
    value = from_json(name, default if given is None else given)
    if not isinstance(value, Mapping):
        raise HarpError(f"{name} is {value!r}: write it as {EXAMPLE[name]}")
    return dict(value)


def from_json(name: str, given: object) -> Any:
    """Read an option that may be given as JSON text.

    Raises:
        HarpError: the text is not JSON.
    """
    try:
        return json.loads(given) if isinstance(given, str) else given
    except json.JSONDecodeError as error:
        raise HarpError(f"{name} is not JSON ({error}): write it as {EXAMPLE[name]}") from error

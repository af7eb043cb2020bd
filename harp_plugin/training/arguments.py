"""Options of a training run, in Tevatron's style: one flat recipe, three dataclasses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

import torch

from ..errors import HarpError
from ..limits import COUNT, MAX_LENGTH, MOST, NUMBER, SEED, SHARE, Limits, check_limits
from ..option_names import other_names, takes_old_names
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
DATA_LIMITS = {"groups_per_epoch": COUNT, "max_length": MAX_LENGTH, "mlm_probability": SHARE}
_LARGE = 1e30
TRAINING_LIMITS = {
    **dict.fromkeys(("learning_rate", "weight_decay"), Limits(least=0, most=_LARGE)),
    **dict.fromkeys(("adam_beta1", "adam_beta2"), Limits(least=0, below=1)),
    "adam_epsilon": Limits(least=0, most=_LARGE),
    "max_grad_norm": Limits(least=0),
    "max_steps": Limits(least=1, most=MOST, also=-1, meaning="for num_train_epochs"),
    "warmup_steps": NUMBER,
    "warmup_ratio": Limits(least=0, below=1),
    "seed": SEED,
    "save_total_limit": Limits(least=-1),
    "dataloader_num_workers": Limits(least=0, most=1000),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size"), COUNT),
    **dict.fromkeys(("gradient_accumulation_steps", "dataloader_prefetch_factor"), COUNT),
    **dict.fromkeys(("ddp_timeout", "ddp_bucket_cap_mb"), COUNT),
    "eval_delay": Limits(least=0),
}
EPOCH_LIMITS = {"num_train_epochs": Limits(above=0, most=MOST)}
"""Where max_steps does not say how long it trains."""
STEP_LIMITS = {
    "logging": {"logging_steps": Limits(above=0)},
    "eval": {"eval_steps": Limits(least=0)},
    "save": {"save_steps": Limits(above=0)},
}
"""Where the strategy is steps; eval_steps of 0 are logging_steps."""
WITHOUT_MEANING = (
    *("negatives_x_device", "grad_cache", "do_encode"),
    *("label_smoothing_factor", "neftune_noise_alpha", "use_liger_kernel"),
)


SHOWN = frozenset(
    {
        *("model", "build_dir", "output_dir", "tasks", "losses", "preset", "mixing"),
        *("max_length", "mlm_probability", "groups_per_epoch", "per_device_train_batch_size"),
        *("gradient_accumulation_steps", "learning_rate", "num_train_epochs", "max_steps"),
        *("warmup_ratio", "lr_scheduler_type", "bf16", "dataloader_num_workers", "save_steps"),
        *("logging_steps", "report_to", "seed", "overwrite", "keep", "quiet"),
        *("eval_strategy", "eval_steps", "validation_dataset", "validation_run"),
        *("load_best_model_at_end", "early_stopping_patience"),
    }
)
"""The options that a newcomer needs; the others are TrainingArguments' and of drawing."""


@takes_old_names
@dataclass
class HarpModelArguments:
    """Which model is trained."""

    model: str = field(
        metadata={
            "help": "Model that training starts from: a checkpoint folder, a name on the Hugging "
            "Face hub, or package:NAME for a Python package that carries one. Tevatron's name for "
            "it, model_name_or_path, works too.",
            "aliases": other_names("model_name_or_path"),
        }
    )
    tokenizer_name: str | None = field(
        default=None, metadata={"help": "Tokenizer, where it is not that of the model."}
    )


@takes_old_names
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
    losses: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Losses with their weights in the sum, as JSON, or with their parameters, such "
            'as {"hinge": {"weight": 1, "margin": 0.5}}. Default: those of the preset, '
            '{"hinge": 1, "mlm": 1}; for released {"softmax_margin": 1, "mlm": 1}.'
        },
    )
    groups_per_epoch: int | None = field(
        default=None,
        metadata={
            "help": "How many groups of pairs an epoch has. Default: as many as there are examples."
        },
    )
    max_length: int = field(
        default=512,
        metadata={
            "help": "How many tokens a pair has at most, special tokens included. Longer "
            "documents are cut."
        },
    )
    max_query_length: dict[str, int] | str | int | None = field(
        default=None,
        metadata={
            "help": "Most tokens of a query: a number, or one by task as JSON, such as "
            '{"srr": 30, "ltm": 255}. Default: a pair that is too long leaves half of '
            "max_length to each of its texts."
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
            HarpError: a number has no sense, or as `weighted_sum`, `task_weights` and
                `query_limits` say.
        """
        check_limits(self, DATA_LIMITS)
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
    def query_limits(self) -> dict[str, int | None]:
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


@takes_old_names
@dataclass
class HarpTrainingArguments(ValidationOptions, TevatronTrainingArguments):
    """How it is trained: Tevatron's options, which are those of transformers' Trainer.

    ``per_device_train_batch_size`` counts pair groups: a batch of 8 groups of two is 16 pairs.
    """

    overwrite: bool = field(
        default=False,
        metadata={
            "help": "Replace what another recipe has trained in the output folder. The name in "
            "transformers, overwrite_output_dir, works too.",
            "aliases": other_names("overwrite_output_dir"),
        },
    )
    keep: bool = field(
        default=False,
        metadata={
            "help": "Use checkpoints and a finished model that other package versions have made."
        },
    )
    warmup_steps: float = field(
        default=0,
        metadata={
            "help": "Number of steps in which the learning rate rises from 0, or their "
            "share where it is below 1."
        },
    )
    warmup_ratio: float = field(
        default=0.1,
        metadata={
            "help": "Share of the steps in which the learning rate rises from 0, where "
            "--warmup-steps is not named."
        },
    )
    dataloader_drop_last: bool = field(
        default=True,
        metadata={
            "help": "Leave the last batch of an epoch out if it is not full on every process. "
            "Other groups are left out in each epoch."
        },
    )
    dataloader_pin_memory: bool = field(
        default_factory=torch.cuda.is_available,
        metadata={"help": "Keep batches in pinned memory (default: if there is a GPU)."},
    )
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar and no log lines."})
    disable_tqdm: bool | None = field(
        default=False, metadata={"help": "The same as --quiet, by the name in transformers."}
    )
    fsdp: Annotated[str | None, bool | str | list[str] | None] = field(
        default=None,
        metadata={
            "help": "Shard the model over processes with PyTorch's FSDP.",
            "nargs": "?",
            "const": True,
        },
    )
    include_num_input_tokens_seen: Annotated[str, str | bool] = field(
        default="no",
        metadata={"help": "Log tokens read: all, non_padding or no.", "nargs": "?", "const": "all"},
    )
    debug: Annotated[str, str | list[str] | None] = field(
        default="",
        metadata={
            "help": "Debug options of transformers; underflow_overflow is not possible here."
        },
    )
    remove_unused_columns: bool = field(
        default=False,
        metadata={"help": "This has no effect, as batches are made of groups of pairs."},
    )
    logging_nan_inf_filter: bool = field(
        default=False,
        metadata={"help": "Hide losses that are not finite. Default: training stops at them."},
    )

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.quiet:
            self.disable_tqdm = True
        if self.warmup_ratio and not self.warmup_steps:
            self.warmup_steps = self.warmup_ratio
        for name in WITHOUT_MEANING:
            if getattr(self, name, None) not in (False, "no", None):
                raise HarpError(
                    f"{name} has no meaning when a cross-encoder is trained: leave it out"
                )
        if "underflow_overflow" in (self.debug or ()):
            raise HarpError(
                "debug names underflow_overflow, which cannot follow a joint model: leave it out, "
                "a loss that is not finite ends the run"
            )
        seen = str(self.include_num_input_tokens_seen).lower()
        self.include_num_input_tokens_seen = {"true": "all", "false": "no"}.get(seen, seen)
        if getattr(self, "report_to", None) is None:
            self.report_to = "none"
        if self.validation_dataset is not None:
            self.validation_dataset = self.validation_dataset.removeprefix("irds:")
        metric = self.metric_for_best_model
        try:
            super().__post_init__()
        except (ValueError, TypeError) as error:
            raise HarpError(f"training options: {' '.join(str(error).split())}") from error
        self._check_validation(metric)

    def _check_numbers(self) -> None:
        limits = TRAINING_LIMITS | (EPOCH_LIMITS if self.max_steps < 1 else {})
        for name, of_steps in STEP_LIMITS.items():
            if getattr(self, f"{name}_strategy") == "steps":
                limits |= of_steps
        check_limits(self, limits)
        # PyTorch refuses one beta of 0, as JSON writes it, beside one of 0.999.
        for name in ("adam_beta1", "adam_beta2"):
            setattr(self, name, float(getattr(self, name)))

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


PRETRAINING = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)
"""The options of `harp train`."""


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

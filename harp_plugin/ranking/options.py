"""The options of scoring: each has its name, type, default, help, limits and checks here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import HarpError
from ..limits import COUNT, MOST, SEED, Limits, check_limits

__all__ = [
    "SCORING_OPTIONS",
    "ScoringOption",
    "check_scoring_options",
    "default_of",
    "dtype_name",
    "names_of_part",
    "scoring_option",
]

Part = Literal["scorer", "windows", "texts", "ensemble"]

_TYPES_IN_WORDS = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
    list: "a list of numbers",
}


_SHORT_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, kw_only=True)
class ScoringOption:
    """One option of scoring.

    Attributes:
        part: what takes the option: the ``scorer`` of pairs, the ``windows`` of long documents, the
            source of ``texts``, or an ``ensemble``.
        type: of its value; None as well, where that is the default.
        default: the value that it has when it is not named.
        help: one sentence that ``--help`` shows.
        limits: the least and the most that a number may be.
        choices: the names that a text may be.
        changes_scores: whether another value gives other scores. One that only changes the last
            bits, by rounding, does not.
    """

    part: Part
    type: type
    help: str
    default: Any = None
    limits: Limits | None = None
    choices: tuple[str, ...] = ()
    changes_scores: bool = True


SCORING_OPTIONS = {
    "device": ScoringOption(
        part="scorer",
        type=str,
        help="Device that scores, such as cpu or cuda:1; by default CUDA where there is one.",
        changes_scores=False,
    ),
    "dtype": ScoringOption(
        part="scorer",
        type=str,
        default="float32",
        choices=("float32", "bfloat16", "float16"),
        help="Type of the numbers that scores are computed with: float32, bfloat16 or float16.",
    ),
    "batch_tokens": ScoringOption(
        part="scorer",
        type=int,
        limits=COUNT,
        help="How many tokens a batch has; by default what memory allows.",
        changes_scores=False,
    ),
    "max_length": ScoringOption(
        part="scorer",
        type=int,
        limits=Limits(least=4, most=MOST),  # each model says more exactly what it takes
        help="How many tokens a pair has at most; by default what the model allows.",
    ),
    "allow_untrained": ScoringOption(
        part="scorer",
        type=bool,
        default=False,
        help="Score with random weights where the checkpoint has none.",
    ),
    "seed": ScoringOption(
        part="scorer",
        type=int,
        default=42,
        limits=SEED,
        help="Seed by which the weights of untrained heads are drawn.",
    ),
    "passages": ScoringOption(
        part="windows",
        type=str,
        default="first",
        choices=("first", "max", "mean", "top2", "matching"),
        help="What scores a document that is longer than the input of the model: its beginning "
        "(first); the max, the mean or the mean of the two best (top2) scores of its windows; or "
        "its first words and the passage that shares most words with the query (matching).",
    ),
    "passage_length": ScoringOption(
        part="windows",
        type=int,
        limits=COUNT,
        help="How many tokens a window has; by default what fits beside the query.",
    ),
    "passage_stride": ScoringOption(
        part="windows",
        type=int,
        limits=COUNT,
        help="How many tokens lie between the starts of two windows; by default half a window.",
    ),
    "fields": ScoringOption(
        part="texts",
        type=list,
        help="Fields of a document whose texts are joined by a space; by default the text that "
        "the dataset recommends.",
    ),
    "weights": ScoringOption(
        part="ensemble",
        type=list,
        limits=Limits(least=0, most=1e9),
        help="The weight of each model's scores; equal ones by default.",
    ),
    "score_normalization": ScoringOption(
        part="ensemble",
        type=str,
        choices=("minmax", "zscore"),
        help="Scale each model's scores of a query before they are added: minmax or zscore.",
    ),
}
"""Every option of scoring by its name. A command offers some of them."""


def default_of(name: str) -> Any:
    """The value that a scoring option has when it is not named."""
    return SCORING_OPTIONS[name].default


def dtype_name(dtype: Any) -> str:
    """The name of a type of numbers that may be written ``bf16`` or ``torch.bfloat16`` as well."""
    name = str(dtype).removeprefix("torch.")
    return _SHORT_DTYPES.get(name, name)


def names_of_part(part: Part, *, only_if_changes_scores: bool = False) -> list[str]:
    """The names of the options that a part of scoring takes.

    Args:
        part: such as ``scorer``; see `ScoringOption`.
        only_if_changes_scores: leave out the options that change no score.
    """
    return [
        name
        for name, option in SCORING_OPTIONS.items()
        if option.part == part and (option.changes_scores or not only_if_changes_scores)
    ]


def scoring_option(name: str, help: str | None = None) -> Any:
    """Make the dataclass field of a command's scoring option.

    Args:
        name: in `SCORING_OPTIONS`.
        help: the command's own sentence, where the common one is not enough.
    """
    option = SCORING_OPTIONS[name]
    metadata: dict[str, Any] = {"help": help or option.help}
    if option.choices:
        metadata["choices"] = list(option.choices)
    return field(default=option.default, metadata=metadata)


def check_scoring_options(
    values: Mapping[str, Any], where: str = "", *, from_json: bool = False
) -> None:
    """Check values of scoring options by their limits and choices.

    Args:
        values: by the names of options.
        where: stands before a name in errors.
        from_json: whether the values were read from JSON: their types are checked too, and null
            stands for the default of any option.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """
    for name, value in values.items():
        option = SCORING_OPTIONS[name]
        if value is None and (from_json or option.default is None):
            continue
        if from_json and not _has_type(value, option.type):
            words = _TYPES_IN_WORDS[option.type]
            raise HarpError(f"{where}{name} is {value!r:.60}: it must be {words}")
        if option.limits is not None:
            check_limits({name: value}, {name: option.limits}, where)
        if option.choices and value not in option.choices:
            choices = ", ".join(option.choices)
            raise HarpError(f"{where}unknown {name} {value!r:.60}: choose one of {choices}")


def _has_type(value: Any, expected: type) -> bool:
    numbers = value if isinstance(value, list) else []
    return type(value) is expected and all(type(number) in (int, float) for number in numbers)

"""Options of weighing terms."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import HarpError
from ..options import flag

__all__ = ["DTYPES", "PRESETS", "SATURATION", "WEIGHTINGS", "WeightOptions"]

WEIGHTINGS = ("attention", "language-model", "contrastive")
DTYPES = ("float32", "bfloat16")
SATURATION = 0.01
_OUR_CHOICE = {
    "unit": "word",
    "anchor_row": "span",
    "background": "occurrences",
    "saturation": SATURATION,
    "random_distribution": "mean",
}
PRESETS: dict[str, dict[str, Any]] = {
    "default": _OUR_CHOICE,
    "paper": _OUR_CHOICE,
}
_OPTIONS_OF = {
    "dirichlet_mu": ("language-model",),
    "background": ("language-model",),
    "saturation": ("contrastive",),
    "random_distribution": ("contrastive",),
}
_OPTIONS_OF_MODELS = ("model", "unit", "anchor_row", "batch_tokens", "dtype")


@dataclass
class WeightOptions:
    """How terms are weighed. An option that is None takes the value of the preset.

    Raises:
        HarpError: a value is unknown, an option belongs to another weighting, or a number is out
            of its range.
    """

    model: str = field(
        default="bert-base-uncased",
        metadata={
            "help": "Encoder that weighs the terms: a folder, a name on the Hugging Face "
            "hub, or package:NAME for a Python package that carries one."
        },
    )
    preset: str = field(
        default="default",
        metadata={
            "help": "Values of the options that are not named: default or paper (its letter).",
            "choices": list(PRESETS),
        },
    )
    weighting: str = field(
        default="attention",
        metadata={
            "help": "How terms are weighed: attention (HARP), language-model (PROP; it needs no "
            "model, and pairs should be drawn with --normalization linear) or contrastive"
            " (B-PROP; its authors draw with --temperature 1).",
            "choices": list(WEIGHTINGS),
        },
    )
    unit: str | None = field(
        default=None,
        metadata={
            "help": "Unit that is weighed and drawn (default: word).",
            "choices": ["word", "wordpiece"],
        },
    )
    anchor_row: str | None = field(
        default=None,
        metadata={
            "help": "Whose attention an anchor has: the mean over all its wordpieces (span), or "
            "that of the first one (default: span).",
            "choices": ["span", "first_piece"],
        },
    )
    batch_tokens: int | None = field(
        default=None,
        metadata={
            "help": "How many tokens a forward pass has (default: 2048 on a CPU, 65536 on a GPU)."
        },
    )
    dtype: str | None = field(
        default=None,
        metadata={
            "help": "Type of the numbers that the encoder computes with (default: bfloat16 on a "
            "GPU, float32 on a CPU).",
            "choices": list(DTYPES),
        },
    )
    dirichlet_mu: float | None = field(
        default=None,
        metadata={
            "help": "language-model: the parameter μ of Dirichlet smoothing (default: the mean "
            "length of a lead)."
        },
    )
    background: str | None = field(
        default=None,
        metadata={
            "help": "language-model: P(w|C) counts the occurrences of a word, or the documents "
            "that have it (default: occurrences).",
            "choices": ["occurrences", "documents"],
        },
    )
    saturation: float | None = field(
        default=None,
        metadata={
            "help": "contrastive: the parameter k of the saturated attention a / (a + k) "
            "(default: 0.01)."
        },
    )
    random_distribution: str | None = field(
        default=None,
        metadata={
            "help": "contrastive: the random distribution is the mean of the documents' "
            "distributions, or is that of their attention added up (default: "
            "mean).",
            "choices": ["mean", "pooled"],
        },
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            value, choices = getattr(self, option.name), option.metadata.get("choices")
            if choices and value not in (option.default, *choices):
                raise HarpError(f"unknown {option.name} {value!r}: known are {', '.join(choices)}")
        for name, weightings in _OPTIONS_OF.items():
            if getattr(self, name) is not None and self.weighting not in weightings:
                raise HarpError(
                    f"{flag(name)} belongs to --weighting {weightings[0]}, not to "
                    f"{self.weighting}: leave it out"
                )
        for name, value in PRESETS[self.preset].items():
            applies = self.weighting in _OPTIONS_OF.get(name, WEIGHTINGS)
            if getattr(self, name) is None and applies:
                # The authors of PROP and B-PROP weigh whole words.
                is_unit = name == "unit" and self.weighting != "attention"
                setattr(self, name, "word" if is_unit else value)
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.weighting == "language-model" and self.unit != "word":
            raise HarpError(f"--unit {self.unit}: the language model is one of words: leave it out")
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise HarpError(f"--batch-tokens {self.batch_tokens}: give a number of 1 or more")
        if self.dirichlet_mu is not None and not 0 <= self.dirichlet_mu < math.inf:
            raise HarpError(f"--dirichlet-mu {self.dirichlet_mu}: give a number of 0 or more")
        if self.saturation is not None and not 0 < self.saturation < math.inf:
            raise HarpError(f"--saturation {self.saturation}: give a number above 0")

    @property
    def needs_model(self) -> bool:
        """Whether an encoder is needed to weigh."""
        return self.weighting != "language-model"

    def recorded(self) -> dict[str, Any]:
        """Return the options that change the result."""
        unused = {
            name for name, weightings in _OPTIONS_OF.items() if self.weighting not in weightings
        }
        if not self.needs_model:
            unused.update(_OPTIONS_OF_MODELS)
        return {name: value for name, value in asdict(self).items() if name not in unused}

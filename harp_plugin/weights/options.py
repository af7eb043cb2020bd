"""Options of weighing terms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, get_args

from ..errors import HarpError
from ..options import Count, Interval, Options, flag, option

__all__ = ["DTYPES", "SATURATION", "WeightOptions"]

SATURATION = 0.01
_Dtype = Literal["float32", "bfloat16"]
DTYPES: tuple[_Dtype, ...] = get_args(_Dtype)
_DEFAULTS: dict[str, dict[str, Any]] = {
    "language-model": {"dirichlet_mu": None, "background": "occurrences"},
    "contrastive": {"saturation": SATURATION, "random_distribution": "mean"},
}
"""Options that belong to one weighting, with their defaults."""
_OPTIONS_OF_MODELS = ("model", "unit", "anchor_row", "batch_tokens", "dtype")


@dataclass(kw_only=True)
class WeightOptions(Options):
    """How terms are weighed.

    Raises:
        HarpError: an option belongs to another weighting.
    """

    model: str = option(
        "bert-base-uncased",
        "Encoder that weighs the terms: a folder, a name on the Hugging Face hub, or package:NAME "
        "for a Python package that carries one.",
    )
    weighting: Literal["attention", "language-model", "contrastive"] = option(
        "attention",
        "How terms are weighed: attention (HARP), language-model (PROP; it needs no model, and "
        "pairs should be drawn with --normalization linear) or contrastive (B-PROP; its authors "
        "draw with --temperature 1).",
    )
    unit: Literal["word", "wordpiece"] = option("word", "Unit that is weighed and drawn.")
    anchor_row: Literal["span", "first_piece"] = option(
        "span",
        "Whose attention an anchor has: the mean over all its wordpieces (span), or that of the "
        "first one.",
    )
    batch_tokens: Count | None = option(
        None, "How many tokens a forward pass has (default: 2048 on a CPU, 65536 on a GPU)."
    )
    dtype: _Dtype | None = option(
        None,
        "Type of the numbers that the encoder computes with (default: bfloat16 on a GPU, float32 "
        "on a CPU).",
    )
    dirichlet_mu: Annotated[float, Interval(ge=0)] | None = option(
        None,
        "language-model: the parameter μ of Dirichlet smoothing (default: the mean length of a "
        "lead).",
    )
    background: Literal["occurrences", "documents"] | None = option(
        None,
        "language-model: P(w|C) counts the occurrences of a word, or the documents that have it "
        "(default: occurrences).",
    )
    saturation: Annotated[float, Interval(gt=0)] | None = option(
        None,
        "contrastive: the parameter k of the saturated attention a / (a + k) (default: 0.01).",
    )
    random_distribution: Literal["mean", "pooled"] | None = option(
        None,
        "contrastive: the random distribution is the mean of the documents' distributions, or is "
        "that of their attention added up (default: mean).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for weighting, defaults in _DEFAULTS.items():
            for name, default in defaults.items():
                if self.weighting == weighting and getattr(self, name) is None:
                    setattr(self, name, default)
                elif self.weighting != weighting and getattr(self, name) is not None:
                    raise HarpError(
                        f"{flag(name)} belongs to --weighting {weighting}, not to "
                        f"{self.weighting}: leave it out"
                    )
        if not self.needs_model and self.unit != "word":
            raise HarpError(f"--unit {self.unit}: the language model is one of words: leave it out")

    @property
    def needs_model(self) -> bool:
        """Whether an encoder is needed to weigh."""
        return self.weighting != "language-model"

    def recorded(self) -> dict[str, Any]:
        """Return the options that change the result."""
        unused = {n for key in _DEFAULTS.keys() - {self.weighting} for n in _DEFAULTS[key]}
        if not self.needs_model:
            unused.update(_OPTIONS_OF_MODELS)
        return {name: value for name, value in asdict(self).items() if name not in unused}

"""Options of weighing terms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

from ..errors import HarpError
from ..options import Count, Interval, Options, flag

__all__ = ["DTYPES", "WeightOptions"]

Dtype: TypeAlias = Literal["float32", "bfloat16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
_WEIGHTINGS = {
    "dirichlet_mu": "language-model",
    "background": "language-model",
    "saturation": "contrastive",
    "random_distribution": "contrastive",
}
_OPTIONS_OF_MODELS = {"model", "unit", "anchor_row", "batch_tokens", "dtype"}


@dataclass(kw_only=True)
class WeightOptions(Options):
    """How terms are weighed.

    Attributes:
        model: Encoder that weighs the terms: a folder, a name on the Hugging Face hub, or
            package:NAME for a Python package that carries one.
        weighting: How terms are weighed: attention (HARP), language-model (PROP; it needs no model,
            and pairs should be drawn with --normalization linear) or contrastive (B-PROP; its
            authors draw with --temperature 1).
        unit: Unit that is weighed and drawn.
        anchor_row: Whose attention an anchor has: the mean over all its wordpieces (span), or that
            of the first one.
        batch_tokens: How many tokens a forward pass has (default: 2048 on a CPU, 65536 on a GPU).
        dtype: Type of the numbers that the encoder computes with (default: bfloat16 on a GPU,
            float32 on a CPU).
        dirichlet_mu: language-model: the parameter μ of Dirichlet smoothing (default: the mean
            length of a lead).
        background: language-model: P(w|C) counts the occurrences of a word, or the documents that
            have it.
        saturation: contrastive: the parameter k of the saturated attention a / (a + k).
        random_distribution: contrastive: the random distribution is the mean of the documents'
            distributions, or is that of their attention added up.

    Raises:
        HarpError: an option belongs to another weighting.
    """

    model: str = "bert-base-uncased"
    weighting: Literal["attention", "language-model", "contrastive"] = "attention"
    unit: Literal["word", "wordpiece"] = "word"
    anchor_row: Literal["span", "first_piece"] = "span"
    batch_tokens: Count | None = None
    dtype: Dtype | None = None
    dirichlet_mu: Annotated[float, Interval(ge=0)] | None = None
    background: Literal["occurrences", "documents"] = "occurrences"
    saturation: Annotated[float, Interval(gt=0)] = 0.01
    random_distribution: Literal["mean", "pooled"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in sorted(self._unused() - {"model"}):
            if getattr(self, name) != getattr(WeightOptions, name):
                owner = _WEIGHTINGS.get(name, "attention or contrastive")
                raise HarpError(
                    f"{flag(name)} belongs to --weighting {owner}, not to {self.weighting}: leave "
                    "it out"
                )

    @property
    def needs_model(self) -> bool:
        """Return whether an encoder is needed to weigh."""
        return self.weighting != "language-model"

    def recorded(self) -> dict[str, Any]:
        """Return the options that change the result."""
        unused = self._unused()
        return {name: value for name, value in asdict(self).items() if name not in unused}

    def _unused(self) -> set[str]:
        """Return the options that this way of weighing does not read."""
        others = {name for name, kind in _WEIGHTINGS.items() if kind != self.weighting}
        return others if self.needs_model else others | _OPTIONS_OF_MODELS

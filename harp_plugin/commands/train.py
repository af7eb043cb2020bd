"""`harp train`: pre-training on pair groups of a build."""

from __future__ import annotations

from typing import Any

from ..errors import show
from ..options_parser import RECIPE, Command
from ..training.arguments import PRETRAINING, SHOWN

__all__ = ["command"]


@Command("[RECIPE]", *PRETRAINING, positional=RECIPE, shown=SHOWN, trains=True)
def command(*options: Any) -> None:
    """Its options are those of transformers' TrainingArguments too.

    They all work in a recipe and as flags; --help-all shows them.
    """
    from ..evaluation.training import train

    show(f"checkpoint: {train(*options)}")

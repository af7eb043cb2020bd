"""`harp finetune`: training on judged queries."""

from __future__ import annotations

from typing import Any

from ..errors import show
from ..options_parser import RECIPE, Command
from ..training.finetune import FINETUNING, SHOWN

__all__ = ["command"]


@Command("[RECIPE]", *FINETUNING, positional=RECIPE, shown=SHOWN, trains=True)
def command(*options: Any) -> None:
    """Positives come from qrels and hard negatives from a first-stage run.

    Or both come from Tevatron's JSON lines. Tevatron's training options work as in `harp train`;
    --help-all shows them.
    """
    from ..evaluation.training import finetune

    show(f"checkpoint: {finetune(*options)}")

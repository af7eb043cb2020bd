"""`harp evaluate`: rankings and their measures on a collection."""

from __future__ import annotations

from ..errors import show
from ..evaluation import EvaluationOptions, evaluate
from ..options_parser import RECIPE, Command

__all__ = ["command"]


@Command("[RECIPE]", EvaluationOptions, positional=RECIPE)
def command(options: EvaluationOptions) -> None:
    """Queries, documents and judgments are those of an ir_datasets collection.

    The command writes TREC runs and results.json.
    """
    show(evaluate(options))

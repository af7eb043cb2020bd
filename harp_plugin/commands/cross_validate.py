"""`harp cross-validate`: fine-tuning and measuring by folds."""

from __future__ import annotations

from ..errors import show
from ..evaluation.cross_validation import CrossValidationOptions, cross_validate
from ..options_parser import RECIPE, Command

__all__ = ["command"]

_NO_PLOT = "none; run `pip install 'harp-plugin[plot]'` and this command again"


@Command("[RECIPE]", CrossValidationOptions, positional=RECIPE, trains=True)
def command(options: CrossValidationOptions) -> None:
    """Each system is fine-tuned on the queries of the other folds, or on a few of them.

    It is measured on the fold that is held out. The command writes TREC runs, tables, results.json
    and, with matplotlib (`pip install 'harp-plugin[plot]'`), a plot. What is finished is kept, and
    an interrupted cross-validation is resumed.
    """
    results = cross_validate(options)
    plot = results.path / "plot.png"
    show(f"{results}\n\nplot: {plot if plot.exists() else _NO_PLOT}")

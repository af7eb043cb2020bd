"""`harp rerank`: other scores for a TREC run."""

from __future__ import annotations

from ..errors import show
from ..evaluation.options import RerankOptions
from ..evaluation.reranking import rerank
from ..options_parser import Command

__all__ = ["command"]

_RUN = {"metavar": "RUN", "help": "TREC run, which may end in .gz, or - for standard input."}


@Command("RUN --dataset ID --model MODEL", RerankOptions, positional=_RUN)
def command(options: RerankOptions, run: str) -> None:
    """Whole queries are kept in OUTPUT.part.

    After an interruption, run the command again and it resumes.
    """
    output = rerank(run, options)
    if output is not None:
        show(f"run: {output}")

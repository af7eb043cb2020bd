"""The training of `harp adapt`: on links, and then on queries of the train split."""

from __future__ import annotations

from typing import Any

from ..steps import say, training_arguments
from .options import AdaptOptions
from .plan import DEPTH

__all__ = ["train_on_links", "train_on_queries"]

_OF_LINKS = ("about", "build_dir", "tasks", "negatives", "document_fields")
"""Options of the training that its second part does not have."""


def train_on_links(options: AdaptOptions, recipe: dict[str, Any], steps: int) -> None:
    from ...evaluation.training import train
    from ...training.arguments import PRETRAINING

    say("train", f"{options.model} on {', '.join(recipe['tasks'])}")
    arguments = _arguments(options, PRETRAINING, "links", recipe | {"max_steps": steps})
    print(f"checkpoint: {train(*arguments)}")


def train_on_queries(options: AdaptOptions, recipe: dict[str, Any], steps: int) -> None:
    """Go on with the queries of the train split, against what BM25 over fields finds for them."""
    from ...evaluation import EvaluationOptions, evaluate
    from ...evaluation.training import finetune
    from ...training.judged_arguments import FINETUNING

    folder, train = options.folder, options.dataset("train")
    say("train", "the same model on the queries of the train split")
    found = EvaluationOptions(
        dataset=train,
        first_stage="fielded-bm25",
        tune_on=options.dataset("dev"),
        depth=DEPTH,
        measures=["RR@10"],
        output_dir=str(folder / "candidates"),
        index_dir=str(folder / "index"),
        overwrite=options.overwrite,
        keep=options.keep,
        quiet=options.quiet,
    )
    evaluate(found)
    arguments = {name: value for name, value in recipe.items() if name not in _OF_LINKS}
    arguments |= {
        "model": str(folder / "links") if "links" in options.learn_from else options.model,
        "dataset": train,
        "negatives_run": str(folder / "candidates" / "runs" / "fielded-bm25.run"),
        "depth": DEPTH,
        "passages": "matching",
        "max_steps": steps,
        "output_dir": str(folder / "queries"),
    }
    print(f"checkpoint: {finetune(*_arguments(options, FINETUNING, 'queries', arguments))}")


def _arguments(
    options: AdaptOptions, dataclasses: tuple[type, ...], name: str, recipe: dict[str, Any]
) -> tuple[Any, ...]:
    path = options.folder / f"{name}.json"
    flags = ["--quiet"] if options.quiet else []
    return training_arguments(dataclasses, path, recipe, options.rules, flags)

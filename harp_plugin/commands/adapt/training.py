"""The training of the cross-encoder of `harp adapt`: on links, then on train queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...models.loading import COSINE
from ...options import option_types
from ...options_parser import options_from, read_recipe
from ..steps import options_of_every_step, say
from .options import AdaptOptions

__all__ = [
    "DEPTH",
    "FEWEST_TRAIN_QUERIES",
    "finetuning_part",
    "query_count",
    "train",
    "train_query_count",
    "training_recipe",
]

DEPTH = 50
"""How many results of each query are ranked."""
FEWEST_TRAIN_QUERIES = 100
"""With fewer, the cross-encoder learns from links alone, and BM25 is tuned on dev."""
_NEEDED = ("tasks", "max_length", "per_device_train_batch_size", "negatives_per_group")


def query_count(options: AdaptOptions, split: str) -> int:
    """Return how many judged queries a split has."""
    return len(Dataset(options.dataset(split)).queries())


def train_query_count(options: AdaptOptions) -> int:
    """Return how many train queries are learned from: those that are not texts of links."""
    return sum(not qid.startswith("anchor-") for qid in Dataset(options.dataset("train")).queries())


def training_recipe(options: AdaptOptions) -> dict[str, Any]:
    """Return the recipe of the training on links, with its model and its build.

    Raises:
        HarpError: it lacks an option from which the number of steps follows.
    """
    recipe = read_recipe(options.training)
    missing = [option for option in _NEEDED if option not in recipe]
    if missing:
        raise HarpError(
            f"the recipe {options.training} lacks {', '.join(missing)}, from which the number of "
            "training steps follows: add it, as in recipes/adapt.json"
        )
    if str(recipe.get("teacher", "")).startswith(COSINE):
        recipe["teacher"] = f"{COSINE}{options.cosine_encoder}"
    return recipe | {
        "model": options.model,
        "build_dir": str(options.folder / "build"),
        "seed": options.seed,
    }


def train(recipe: dict[str, Any], options: AdaptOptions, steps: Mapping[str, int]) -> str:
    """Train the cross-encoder.

    Args:
        recipe: of the training on links.
        options: of the command.
        steps: on links, and on queries; the second may be 0.

    Returns:
        The folder of the model after all steps.
    """
    _train_on_links(recipe, options, steps["links"])
    if count := steps["queries"]:
        _train_on_queries(recipe, options, count)
    return str(options.folder / ("queries" if steps["queries"] else "links"))


def _train_on_links(recipe: dict[str, Any], options: AdaptOptions, steps: int) -> None:
    from ...evaluation.training import train
    from ...training.arguments import PRETRAINING

    say("train", f"the cross-encoder {recipe['model']} on {', '.join(recipe['tasks'])}")
    _publish(train(*_arguments(options, PRETRAINING, "links", recipe | {"max_steps": steps})))


def _train_on_queries(recipe: dict[str, Any], options: AdaptOptions, steps: int) -> None:
    """Train on the queries of the train split, against what BM25 over fields finds for them."""
    from ...evaluation.training import finetune
    from ...training.finetune import FINETUNING

    say("train", "the cross-encoder on the queries of the train split")
    arguments = finetuning_part(recipe) | {
        "model": str(options.folder / "links"),
        "dataset": options.dataset("train"),
        "negatives_run": str(_candidates(options)),
        "depth": DEPTH,
        "passages": "matching",
        "max_steps": steps,
    }
    _publish(finetune(*_arguments(options, FINETUNING, "queries", arguments)))


def _publish(folder: Path) -> None:
    """Say where a finished model is, and remove its checkpoints, which have the optimizer too."""
    from ...training.run_folder import remove_checkpoints

    remove_checkpoints(folder)
    print(f"model: {folder}")


def finetuning_part(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training on links that a training on judged queries has as well."""
    from ...training.finetune import FINETUNING

    names = {name for options in FINETUNING for name in option_types(options)}
    part = {name: value for name, value in recipe.items() if name in names}
    if "losses" in part:
        part["losses"] = _without_teacher(part["losses"])
    return part


def _without_teacher(losses: dict[str, Any]) -> dict[str, Any]:
    """Leave out the losses that read a teacher's scores, which judged queries do not have."""
    from ...training.losses import WeightedSum

    distilling = WeightedSum(losses).reading("teacher_scores")
    return {name: losses[name] for name in losses if name not in distilling} or {"lce": 1}


def _candidates(options: AdaptOptions) -> Path:
    """Rank the queries of the train split by BM25 over fields, tuned on dev; return the run."""
    from ...evaluation import EvaluationOptions, evaluate

    folder = options.folder / "candidates"
    evaluate(
        EvaluationOptions(
            dataset=options.dataset("train"),
            first_stage="fielded-bm25",
            tuning_dataset=options.dataset("dev"),
            depth=DEPTH,
            measures=["RR@10"],
            output_dir=str(folder),
            index_dir=str(options.folder / "index"),
            **options_of_every_step(options),
        )
    )
    return folder / "runs" / "fielded-bm25.run"


def _arguments(
    options: AdaptOptions, dataclasses: tuple[type, ...], name: str, recipe: dict[str, Any]
) -> tuple[Any, ...]:
    recipe = recipe | {"output_dir": str(options.folder / name), **options_of_every_step(options)}
    return options_from(recipe, dataclasses, f"the training of {name}")

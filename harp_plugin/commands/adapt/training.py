"""The training of `harp adapt`: on links, and then on queries of the train split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "Learner",
    "cross_encoder",
    "encoder",
    "finetuning_part",
    "query_count",
    "train",
    "train_query_count",
]

DEPTH = 50
"""How many results of each query are ranked."""
_NEEDED = ("tasks", "max_length", "per_device_train_batch_size", "negatives_per_group")


def query_count(options: AdaptOptions, split: str) -> int:
    """Return how many judged queries a split has."""
    return len(Dataset(options.dataset(split)).queries())


def train_query_count(options: AdaptOptions) -> int:
    """Return how many train queries models learn from: those that are not texts of links."""
    return sum(not qid.startswith("anchor-") for qid in Dataset(options.dataset("train")).queries())


@dataclass(frozen=True)
class Learner:
    """A model that learns from links, and then from queries of the train split.

    Attributes:
        name: what it is, for messages.
        recipe: of the training on links.
        folders: where the model is after each part of its training, by `SIGNALS` in their order.
        finetuning: options of the second part.
    """

    name: str
    recipe: dict[str, Any]
    folders: Mapping[str, str]
    finetuning: dict[str, Any] = field(default_factory=dict)

    def trained(self, options: AdaptOptions, steps: Mapping[str, int]) -> str | None:
        """Name the folder of the model after all steps; None if it is not trained."""
        folders = [folder for folder in self.folders.values() if steps[folder]]
        return str(options.folder / folders[-1]) if folders else None


def cross_encoder(options: AdaptOptions) -> Learner:
    """Return the reranker."""
    folders = {"links": "links", "queries": "queries"}
    recipe = _recipe(options, options.training, options.model)
    return Learner("cross-encoder", recipe, folders, {"passages": "matching"})


def encoder(options: AdaptOptions) -> Learner:
    """Return the encoder of the cosine."""
    folders = {"links": "encoder-links", "queries": "encoder-queries"}
    recipe = _recipe(options, options.encoder_training, options.base_encoder)
    return Learner("encoder", recipe, folders)


def _recipe(options: AdaptOptions, name: str, model: str) -> dict[str, Any]:
    recipe = read_recipe(name)
    missing = [option for option in _NEEDED if option not in recipe]
    if missing:
        raise HarpError(
            f"the recipe {name} lacks {', '.join(missing)}, from which the number of training "
            "steps follows: add it, as in recipes/adapt.json"
        )
    if str(recipe.get("teacher", "")).startswith(COSINE):
        recipe["teacher"] = f"{COSINE}{options.base_encoder}"
    return recipe | {
        "model": model,
        "build_dir": str(options.folder / "build"),
        "seed": options.seed,
    }


def train(learner: Learner, options: AdaptOptions, steps: Mapping[str, int]) -> None:
    """Train a model as many steps of each part as its folders say.

    Args:
        learner: the model.
        options: of the command.
        steps: by the names of folders.
    """
    if count := steps[learner.folders["links"]]:
        _train_on_links(learner, options, count)
    if count := steps[learner.folders["queries"]]:
        _train_on_queries(learner, options, count)


def _train_on_links(learner: Learner, options: AdaptOptions, steps: int) -> None:
    from ...evaluation.training import train
    from ...training.arguments import PRETRAINING

    recipe, name = learner.recipe, learner.folders["links"]
    say("train", f"the {learner.name} {recipe['model']} on {', '.join(recipe['tasks'])}")
    arguments = _arguments(options, PRETRAINING, name, recipe | {"max_steps": steps})
    _publish(train(*arguments))


def _train_on_queries(learner: Learner, options: AdaptOptions, steps: int) -> None:
    """Train on the queries of the train split, against what BM25 over fields finds for them."""
    from ...evaluation.training import finetune
    from ...training.finetune import FINETUNING

    name = learner.folders["queries"]
    say("train", f"the {learner.name} on the queries of the train split")
    arguments = finetuning_part(learner.recipe)
    if "links" in options.learn_from:
        arguments["model"] = str(options.folder / learner.folders["links"])
    arguments |= {
        "dataset": options.dataset("train"),
        "negatives_run": str(_candidates(options)),
        "depth": DEPTH,
        **learner.finetuning,
        "max_steps": steps,
    }
    _publish(finetune(*_arguments(options, FINETUNING, name, arguments)))


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

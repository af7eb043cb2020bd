"""How many steps of training fit into the budget, decided once and kept."""

from __future__ import annotations

from typing import Any

from ...collections.judged_dataset import JudgedDataset
from ...errors import HarpError
from ...files.records import read_record, write_record
from ..steps import say
from .budget import in_words, measured_speed, training_data, training_steps
from .options import AdaptOptions

__all__ = ["DEPTH", "FEWEST_TRAIN_QUERIES", "make_plan", "trained_model"]

DEPTH = 50
"""How many results of each query are ranked."""
_PLAN = "plan.json"
FEWEST_TRAIN_QUERIES = 100
"""With fewer, the model learns from links alone."""
_SHARE_OF_QUERIES = 0.5
"""Of the time for training, where there are queries enough to learn from."""
_SHARE_OF_TRAINING = 0.9
"""The rest of the budget, after ranking, is kept for what is not foreseen."""


def make_plan(options: AdaptOptions, recipe: dict[str, Any], seconds_left: float) -> dict[str, Any]:
    """Decide the numbers of training steps, when this is first asked.

    Args:
        options: of the command.
        recipe: of the training on links.
        seconds_left: of the budget.

    Returns:
        The steps on ``links`` and on ``queries``, one of which may be 0, and what they were decided
        from.

    Raises:
        HarpError: the model is to learn from queries only, and there are too few.
    """
    from ...training.arguments import multiplies_in_bf16

    path = options.folder / _PLAN
    asked = {"budget": options.budget, "learn_from": options.learn_from, "training": recipe}
    if path.exists() and not options.overwrite:
        plan = read_record(path)
        if plan["asked"] == asked:
            return plan
    data = training_data(recipe)
    speed = measured_speed(data, options.model, recipe["max_length"], options.seed)
    ranking = DEPTH * sum(_query_count(options, split) for split in ("dev", "test")) / speed
    seconds = max((seconds_left - ranking) * _SHARE_OF_TRAINING, 0)
    queries = _query_count(options, "train") if "queries" in options.learn_from else 0
    share = _share_of_queries(options, queries)
    bf16 = multiplies_in_bf16(recipe.get("bf16"), recipe.get("use_cpu", False))

    def steps(share: float, groups: int) -> int:
        if not share:
            return 0
        return training_steps(seconds * share, speed, recipe, groups, bf16=bf16)

    plan = {
        "asked": asked,
        "pairs_per_second": speed,
        "links": steps(1 - share, len(data)),
        "queries": steps(share, queries),
    }
    say(
        "plan",
        f"{plan['links']:,} training steps on links, {plan['queries']:,} on {queries:,} queries, "
        f"about {in_words(seconds)}; then ranking, about {in_words(ranking)}",
    )
    write_record(path, plan)
    return plan


def _share_of_queries(options: AdaptOptions, queries: int) -> float:
    """The share of the time for training in which the model learns from queries."""
    learns_from_links = "links" in options.learn_from
    if queries >= FEWEST_TRAIN_QUERIES:
        return _SHARE_OF_QUERIES if learns_from_links else 1.0
    if learns_from_links:
        return 0.0
    raise HarpError(
        f"the train split has {queries} queries, and {FEWEST_TRAIN_QUERIES} are needed to learn "
        "from: add links to --learn-from"
    )


def _query_count(options: AdaptOptions, split: str) -> int:
    try:
        return len(JudgedDataset(options.dataset(split)).topics)
    except HarpError:
        if split == "train":
            return 0
        raise


def trained_model(options: AdaptOptions) -> str:
    """Name the folder of the cross-encoder that is trained last."""
    name = "queries" if read_record(options.folder / _PLAN)["queries"] else "links"
    return str(options.folder / name)

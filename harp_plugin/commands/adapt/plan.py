"""How many steps of training fit into the budget, decided once and kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ...collections.judged_dataset import JudgedDataset
from ...errors import HarpError
from ...files.records import read_record, write_record
from ...tasks import PreTrainingData
from ..steps import say
from .budget import (
    encoding_seconds,
    in_words,
    measured_speed,
    ranking_dtype,
    seconds_of_a_step,
    training_data,
    training_steps,
)
from .options import AdaptOptions
from .training import DEPTH, Learner

__all__ = ["FEWEST_TRAIN_QUERIES", "make_plan"]

logger = logging.getLogger(__name__)

_PLAN = "plan.json"
FEWEST_TRAIN_QUERIES = 100
"""With fewer, models learn from links alone."""
_SHARE_OF_QUERIES = 0.5
"""Of the time for training, where there are queries enough to learn from."""
_SHARE_OF_TRAINING = 0.9
"""The rest of the budget, after ranking, is kept for what is not foreseen."""
_SHARES = {"cross-encoder": 0.7, "encoder": 0.3}
"""Of the time for training, where both learn."""


def make_plan(
    options: AdaptOptions, learners: Sequence[Learner], seconds_left: float
) -> dict[str, int]:
    """Decide the numbers of training steps, when this is first asked.

    Args:
        options: of the command.
        learners: what is trained, the cross-encoder first.
        seconds_left: of the budget.

    Returns:
        The steps by the names of folders, each of which may be 0.

    Raises:
        HarpError: the models are to learn from queries only, and there are too few.
    """
    path = options.folder / _PLAN
    asked = {
        "budget": options.budget,
        "learn_from": options.learn_from,
        "training": {learner.name: learner.recipe for learner in learners},
    }
    if path.exists() and not options.overwrite:
        plan = read_record(path)
        if plan["asked"] == asked:
            return plan["steps"]
    first = learners[0].recipe
    data = {learner.name: training_data(learner.recipe) for learner in learners}
    speed = measured_speed(data[learners[0].name], options.model, first["max_length"], options.seed)
    ranking = _ranking_seconds(options, data[learners[0].name], first["max_length"])
    seconds = max((seconds_left - ranking) * _SHARE_OF_TRAINING, 0)
    seconds /= sum(_SHARES[learner.name] for learner in learners)
    queries = _query_count(options, "train") if "queries" in options.learn_from else 0
    shares = _shares_of_signals(options, queries)
    steps: dict[str, int] = {}
    takes = 0.0
    for learner in learners:
        groups = {"links": len(data[learner.name]), "queries": queries}
        of_a_step = seconds_of_a_step(speed, learner.recipe, bf16=_multiplies_in_bf16(learner))
        for signal, share in shares.items():
            time = seconds * _SHARES[learner.name] * share
            count = training_steps(time, of_a_step, learner.recipe, groups[signal]) if share else 0
            steps[learner.folders[signal]] = count
            takes += count * of_a_step
    say(
        "plan",
        f"training steps: {', '.join(f'{name} {count:,}' for name, count in steps.items())}, about "
        f"{in_words(takes)}; then ranking, about {in_words(ranking)}",
    )
    if takes + ranking > seconds_left:
        logger.warning(
            "training and ranking take longer than --budget %s allows: the fewest steps that make "
            "a model are taken",
            options.budget,
        )
    write_record(path, {"asked": asked, "pairs_per_second": speed, "steps": steps})
    return steps


def _ranking_seconds(options: AdaptOptions, data: PreTrainingData, max_length: int) -> float:
    """How long the cross-encoder takes for dev and test, and the cosine for all pages."""
    dtype = ranking_dtype()
    speed = measured_speed(data, options.model, max_length, options.seed, dtype)
    pairs = DEPTH * sum(_query_count(options, split) for split in ("dev", "test"))
    encoder = options.encoder or options.model
    return pairs / speed + encoding_seconds(options.dataset("test"), encoder, dtype)


def _multiplies_in_bf16(learner: Learner) -> bool:
    from ...training.arguments import multiplies_in_bf16

    return multiplies_in_bf16(learner.recipe.get("bf16"), learner.recipe.get("use_cpu", False))


def _shares_of_signals(options: AdaptOptions, queries: int) -> dict[str, float]:
    """The shares of the time in which a model learns from links, and from so many queries."""
    learns_from_links = "links" in options.learn_from
    if queries >= FEWEST_TRAIN_QUERIES:
        on_queries = _SHARE_OF_QUERIES if learns_from_links else 1.0
    elif learns_from_links:
        on_queries = 0.0
    else:
        raise HarpError(
            f"the train split has {queries} queries, and {FEWEST_TRAIN_QUERIES} are needed to "
            "learn from: add links to --learn-from"
        )
    return {"links": 1 - on_queries, "queries": on_queries}


def _query_count(options: AdaptOptions, split: str) -> int:
    try:
        return len(JudgedDataset(options.dataset(split)).topics)
    except HarpError:
        if split == "train":
            return 0
        raise

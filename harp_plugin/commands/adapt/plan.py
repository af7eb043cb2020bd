"""How many steps of training fit into the budget, decided once and kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ...collections.dataset import JudgedDataset
from ...errors import HarpError
from ...tasks import PreTrainingData
from ...work.records import read_record, write_record
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
_FEWEST_STEPS_OF_A_CROSS_ENCODER = 150
"""On links, and on queries. On the documentation of C++, 50 made one that ranks badly, 150 a good
one."""
_SHARES = {"cross-encoder": 0.7, "encoder": 0.3}
"""Of the time for training, where both learn."""


def make_plan(
    options: AdaptOptions, learners: Sequence[Learner], seconds_left: float
) -> dict[str, int]:
    """Decide the numbers of training steps, when this is first asked.

    Where there is too little time for a cross-encoder that helps, the encoder learns alone.

    Args:
        options: of the command.
        learners: what can be trained: the cross-encoder and the encoder.
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
        "train_encoder": options.train_encoder,
        "training": {learner.name: learner.recipe for learner in learners},
    }
    if path.exists() and not options.overwrite:
        plan = read_record(path)
        if plan["asked"] == asked:
            return plan["steps"]
    reranker, dense = learners
    max_length = reranker.recipe["max_length"]
    data = training_data(reranker.recipe)
    queries = _query_count(options, "train") if "queries" in options.learn_from else 0
    time = _Time(options, queries)
    encoding = encoding_seconds(
        options.dataset("test"), options.encoder or options.model, ranking_dtype()
    )
    ranking = encoding + _scoring_seconds(options, data, max_length)
    steps = time.steps([reranker, *[dense] * options.train_encoder], seconds_left - ranking)
    fewest = min(filter(None, (steps[folder] for folder in reranker.folders.values())))
    if fewest < _FEWEST_STEPS_OF_A_CROSS_ENCODER and not options.train_encoder:
        ranking = encoding
        steps = time.steps([dense], seconds_left - ranking)
        logger.warning(
            "--budget %s is too short for a cross-encoder that helps: the encoder learns alone",
            options.budget,
        )
    steps = {folder: 0 for each in learners for folder in each.folders.values()} | steps
    takes = sum(time.taken(learner, steps) for learner in learners)
    counts = ", ".join(f"{name} {count:,}" for name, count in steps.items() if count)
    say(
        "plan",
        f"training steps: {counts}, about {in_words(takes)}; then ranking, about "
        f"{in_words(ranking)}",
    )
    if takes + ranking > seconds_left:
        logger.warning(
            "training and ranking take longer than --budget %s allows: the fewest steps that make "
            "a model are taken",
            options.budget,
        )
    write_record(path, {"asked": asked, "pairs_per_second": time.speeds, "steps": steps})
    return steps


class _Time:
    """How many steps of training fit into a time.

    Args:
        options: of the command.
        queries: how many queries there are to learn from.

    Attributes:
        speeds: pairs of what each model learns from that are scored in a second.
    """

    def __init__(self, options: AdaptOptions, queries: int) -> None:
        self.speeds: dict[str, float] = {}
        self._options = options
        self._queries = queries
        self._shares = _shares_of_signals(options, queries)

    def steps(self, learners: Sequence[Learner], seconds: float) -> dict[str, int]:
        """Share a time between models and what they learn from; return steps by folders."""
        seconds = max(seconds * _SHARE_OF_TRAINING, 0)
        seconds /= sum(_SHARES[learner.name] for learner in learners)
        steps: dict[str, int] = {}
        for learner in learners:
            groups = {"links": len(training_data(learner.recipe)), "queries": self._queries}
            for signal, share in self._shares.items():
                time = seconds * _SHARES[learner.name] * share
                step, count = self._of_a_step(learner), groups[signal]
                fitting = training_steps(time, step, learner.recipe, count)
                steps[learner.folders[signal]] = fitting if share else 0
        return steps

    def taken(self, learner: Learner, steps: Mapping[str, int]) -> float:
        """Return the seconds that a model's steps take."""
        count = sum(steps[folder] for folder in learner.folders.values())
        return count * self._of_a_step(learner)

    def _of_a_step(self, learner: Learner) -> float:
        from ...training.arguments import multiplies_in_bf16

        recipe = learner.recipe
        if learner.name not in self.speeds:
            data, model = training_data(recipe), self._options.model
            self.speeds[learner.name] = measured_speed(
                data, model, recipe["max_length"], self._options.seed
            )
        in_bf16 = multiplies_in_bf16(recipe.get("bf16"), recipe.get("use_cpu", False))
        return seconds_of_a_step(self.speeds[learner.name], recipe, bf16=in_bf16)


def _scoring_seconds(options: AdaptOptions, data: PreTrainingData, max_length: int) -> float:
    """How long the cross-encoder takes for the results of the queries of dev and test."""
    speed = measured_speed(data, options.model, max_length, options.seed, ranking_dtype())
    pairs = DEPTH * sum(_query_count(options, split) for split in ("dev", "test"))
    return pairs / speed


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

"""How many steps of training fit into the budget, decided once and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...errors import HarpError
from ...tasks import PreTrainingData
from ...work.artifact import MANIFEST
from ...work.manifest import read_content
from ...work.records import read_record, write_record
from ..steps import say
from .budget import (
    encoder_reading,
    encoding_seconds,
    in_words,
    measured_speed,
    ranking_dtype,
    seconds_of_a_step,
    training_data,
    training_steps,
)
from .options import AdaptOptions
from .training import DEPTH, Learner, query_count, train_query_count

__all__ = ["FEWEST_TRAIN_QUERIES", "make_plan"]

_PLAN = "plan.json"
FEWEST_TRAIN_QUERIES = 100
"""With fewer, models learn from links alone."""
_SHARE_OF_QUERIES = 0.5
"""Of the time for training, where there are queries enough to learn from."""
_SHARE_OF_TRAINING = 0.9
"""The rest of the budget, after ranking, is kept for what is not foreseen."""
_LEAST_SECONDS = 300
"""With less of the budget left, the examples are not even built."""
_FEWEST_STEPS = 150
"""On links, and on queries. On the documentation of C++, 50 made a cross-encoder that ranks badly,
150 a good one."""
_SHARES = {"cross-encoder": 0.7, "encoder": 0.3}
"""Of the time for training, where both learn."""


def make_plan(
    options: AdaptOptions,
    learners: Sequence[Learner],
    seconds_left: float,
    build_examples: Callable[[], None],
) -> dict[str, int]:
    """Decide the numbers of training steps, when this is first asked.

    Args:
        options: of the command.
        learners: what can be trained: the cross-encoder and the encoder.
        seconds_left: of the budget.
        build_examples: builds what they learn from; it is called where there may be time to train.

    Returns:
        The steps by the names of folders; each is 0 where there is too little time for a
        cross-encoder that helps.

    Raises:
        HarpError: the models are to learn from queries only, and there are too few.
    """
    path = options.folder / _PLAN
    asked = {
        "budget": options.budget,
        "learn_from": options.learn_from,
        "train_encoder": options.train_encoder,
        "training": {learner.name: learner.recipe for learner in learners},
        "pages": read_content(options.folder / "build", "corpus", "graph", needed=False),
    }
    plan = read_record(path) if path.exists() else {"asked": {}, "steps": {}}
    if plan["asked"] == asked:
        return plan["steps"]
    steps = {folder: 0 for learner in learners for folder in learner.folders.values()}
    if seconds_left >= _LEAST_SECONDS:
        build_examples()
        steps |= _steps_that_fit(options, learners, seconds_left)
    if plan["asked"] | {"budget": options.budget} == asked:
        steps |= _finished_steps(options, plan["steps"], steps)
    if not any(steps.values()):
        left, budget = in_words(max(seconds_left, 0)), in_words(options.seconds)
        what = f"no model is trained in the {left} left of {budget}"
        say("plan", f"{what}: give a longer --budget")
    write_record(path, {"asked": asked, "steps": steps})
    return steps


def _finished_steps(
    options: AdaptOptions, before: Mapping[str, int], steps: Mapping[str, int]
) -> dict[str, int]:
    """Return the steps of finished models that another budget would train less."""
    return {
        folder: count
        for folder, count in before.items()
        if count > steps[folder] and (options.folder / folder / MANIFEST).is_file()
    }


def _steps_that_fit(
    options: AdaptOptions, learners: Sequence[Learner], seconds_left: float
) -> dict[str, int]:
    """Return the steps of the models that there is time to train."""
    reranker, dense = learners
    data = training_data(reranker.recipe)
    queries = train_query_count(options) if "queries" in options.learn_from else 0
    time = _Time(options, queries)
    ranking = _scoring_seconds(options, data, reranker.recipe["max_length"])
    if options.train_encoder:
        dataset = options.dataset("test")
        reading = encoder_reading(dataset, options.seconds)
        ranking += encoding_seconds(dataset, options.base_encoder, ranking_dtype(), **reading)
    trained = [reranker, *[dense] * options.train_encoder]
    if time.fitting_steps(trained, seconds_left - ranking) < _FEWEST_STEPS:
        return {}
    steps = time.steps(trained, seconds_left - ranking)
    takes = sum(time.taken(learner, steps) for learner in trained)
    counts = ", ".join(f"{name} {count:,}" for name, count in steps.items() if count)
    say(
        "plan",
        f"training steps: {counts}, about {in_words(takes)}; then ranking, about "
        f"{in_words(ranking)}",
    )
    return steps


class _Time:
    """How many steps of training fit into a time.

    Args:
        options: of the command.
        queries: how many queries there are to learn from.
    """

    def __init__(self, options: AdaptOptions, queries: int) -> None:
        self._speeds: dict[str, float] = {}
        self._options = options
        self._queries = queries
        self._shares = _shares_of_signals(options, queries)

    def fitting_steps(self, learners: Sequence[Learner], seconds: float) -> float:
        """Return how many steps the shortest part of the first model's training has time for."""
        least = min(filter(None, self._shares.values()))
        return self._seconds(learners, learners[0], seconds) * least / self._of_a_step(learners[0])

    def steps(self, learners: Sequence[Learner], seconds: float) -> dict[str, int]:
        """Share a time between models and what they learn from; return steps by folders."""
        steps: dict[str, int] = {}
        for learner in learners:
            groups = {"links": len(training_data(learner.recipe)), "queries": self._queries}
            time, step = self._seconds(learners, learner, seconds), self._of_a_step(learner)
            for signal, share in self._shares.items():
                steps[learner.folders[signal]] = training_steps(
                    time * share, step, learner.recipe, groups[signal]
                )
        return steps

    @staticmethod
    def _seconds(learners: Sequence[Learner], learner: Learner, seconds: float) -> float:
        """Return the part of a time that is one model's."""
        parts = sum(_SHARES[each.name] for each in learners)
        return max(seconds, 0) * _SHARE_OF_TRAINING * _SHARES[learner.name] / parts

    def taken(self, learner: Learner, steps: Mapping[str, int]) -> float:
        """Return the seconds that a model's steps take."""
        count = sum(steps[folder] for folder in learner.folders.values())
        return count * self._of_a_step(learner)

    def _of_a_step(self, learner: Learner) -> float:
        from ...training.arguments import multiplies_in_bf16

        recipe = learner.recipe
        if learner.name not in self._speeds:
            data, model = training_data(recipe), self._options.model
            self._speeds[learner.name] = measured_speed(
                data, model, recipe["max_length"], self._options.seed
            )
        in_bf16 = multiplies_in_bf16(recipe.get("bf16"), recipe.get("use_cpu", False))
        return seconds_of_a_step(self._speeds[learner.name], recipe, bf16=in_bf16)


def _scoring_seconds(options: AdaptOptions, data: PreTrainingData, max_length: int) -> float:
    """How long the cross-encoder takes for the results of the queries of dev and test."""
    speed = measured_speed(data, options.model, max_length, options.seed, ranking_dtype())
    pairs = DEPTH * sum(query_count(options, split) for split in ("dev", "test"))
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

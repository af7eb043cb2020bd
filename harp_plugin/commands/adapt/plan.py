"""How many steps of training fit into the budget, decided once and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tasks import NoPairError
from ...work.artifact import MANIFEST
from ...work.manifest import read_content
from ...work.records import read_record, write_record
from ..steps import in_words, say
from .budget import measured_speed, ranking_dtype, seconds_of_a_step, training_data, training_steps
from .options import AdaptOptions
from .training import DEPTH, FEWEST_TRAIN_QUERIES, query_count, train_query_count

__all__ = ["make_plan"]

_PLAN = "plan.json"
_SHARE_OF_QUERIES = 0.5
"""Of the time for training, where there are queries enough to learn from."""
_SHARE_OF_TRAINING = 0.9
"""The rest of the budget, after ranking, is kept for what is not foreseen."""
_LEAST_SECONDS = 300
"""With less of the budget left, the examples are not even built."""
_FEWEST_STEPS = 150
"""On links, and on queries. On the documentation of C++, 50 made a cross-encoder that ranks badly,
150 a good one."""


def make_plan(
    options: AdaptOptions,
    recipe: dict[str, Any],
    seconds_left: float,
    build_examples: Callable[[], None],
) -> dict[str, int]:
    """Decide the numbers of training steps, when this is first asked.

    Args:
        options: of the command.
        recipe: of the training on links.
        seconds_left: of the budget.
        build_examples: builds what it learns from; it is called where there may be time to train.

    Returns:
        The steps on links and on queries; each is 0 where there is too little time for a
        cross-encoder that helps.
    """
    path = options.folder / _PLAN
    asked = {
        "budget": options.budget,
        "training": recipe,
        "pages": read_content(options.folder / "build", "corpus", "graph", needed=False),
    }
    plan = read_record(path) if path.exists() else {"asked": {}, "steps": {}}
    if plan["asked"] == asked:
        return plan["steps"]
    steps, why_none = {"links": 0, "queries": 0}, "give a longer --budget"
    if seconds_left >= _LEAST_SECONDS:
        build_examples()
        fitting, why_none = _steps_that_fit(options, recipe, seconds_left)
        steps |= fitting
    if plan["asked"] | {"budget": options.budget} == asked:
        steps |= {  # finished parts that another budget would train less
            folder: count
            for folder, count in plan["steps"].items()
            if count > steps[folder] and (options.folder / folder / MANIFEST).is_file()
        }
    if not any(steps.values()):
        left, budget = in_words(max(seconds_left, 0)), in_words(options.seconds)
        what = f"no model is trained in the {left} left of {budget}"
        say("plan", f"{what}: {why_none}")
    write_record(path, {"asked": asked, "steps": steps})
    return steps


def _steps_that_fit(
    options: AdaptOptions, recipe: dict[str, Any], seconds_left: float
) -> tuple[dict[str, int], str]:
    """Return the steps that there is time for; none and the reason if they are too few."""
    from ...training.arguments import multiplies_in_bf16

    data, length = training_data(recipe), recipe["max_length"]
    queries = train_query_count(options)
    on_queries = _SHARE_OF_QUERIES if queries >= FEWEST_TRAIN_QUERIES else 0.0
    shares = {"links": 1 - on_queries, "queries": on_queries}
    pairs = DEPTH * sum(query_count(options, split) for split in ("dev", "test"))
    try:
        ranking = pairs / measured_speed(data, options.model, length, options.seed, ranking_dtype())
        speed = measured_speed(data, options.model, length, options.seed)
    except NoPairError as error:
        return {}, str(error)
    in_bf16 = multiplies_in_bf16(recipe.get("bf16"), recipe.get("use_cpu", False))
    of_a_step = seconds_of_a_step(speed, recipe, bf16=in_bf16)
    seconds = max(seconds_left - ranking, 0) * _SHARE_OF_TRAINING
    fewest = _FEWEST_STEPS * of_a_step / min(filter(None, shares.values()))
    if seconds < fewest:
        needed = in_words(fewest / _SHARE_OF_TRAINING + ranking)
        return {}, f"one that helps takes {needed} on this machine"
    groups = {"links": len(data), "queries": queries}
    steps = {
        signal: training_steps(seconds * share, of_a_step, recipe, groups[signal])
        for signal, share in shares.items()
    }
    counts = ", ".join(f"{name} {count:,}" for name, count in steps.items() if count)
    takes = in_words(sum(steps.values()) * of_a_step)
    say("plan", f"training steps: {counts}, about {takes}; then ranking, about {in_words(ranking)}")
    return steps, ""

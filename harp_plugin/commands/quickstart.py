"""`harp quickstart`: every step on the encyclopedia in the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..options import Count, Overwriting, Progress, Workers
from ..options_parser import Command, options_from, read_recipe
from .steps import options_of_every_step, output_folder, say

__all__ = ["RECIPES", "QuickstartOptions", "quickstart"]

RECIPES = ("quickstart", "evaluate-quickstart")


@dataclass
class QuickstartOptions(Workers, Progress, Overwriting):
    """Where the quickstart writes, and how long it trains.

    Attributes:
        output_dir: Folder for everything that it makes.
        max_steps: How many steps training takes (default: as the recipe says).
    """

    output_dir: str = "harp-output/quickstart"
    max_steps: Count | None = None


def quickstart(options: QuickstartOptions) -> None:
    """Build, inspect, train and evaluate; print the table and the report's path.

    Raises:
        HarpError: a part of the package is not installed, or the folder cannot be written, or it
            holds something that may not be replaced.
    """
    from ..evaluation import EvaluationOptions, evaluate
    from ..evaluation.training import train
    from ..inspection import InspectOptions, inspect
    from ..tasks import DrawOptions
    from ..training.arguments import PRETRAINING

    output = Path(options.output_dir)
    training, evaluation = (_located(read_recipe(name), options) for name in RECIPES)
    with output_folder(output):
        _build(training, options)
        say("inspect", "sample pairs of each task")
        inspection = InspectOptions(quiet=options.quiet, model_checks=False)
        report = inspect(training["build_dir"], inspection, DrawOptions())
        print(report)
        say("train", f"{training['model']} on anchor texts and the pages that they lead to")
        steps = {} if options.max_steps is None else {"max_steps": options.max_steps}
        arguments = options_from(training | steps, PRETRAINING, "quickstart")
        print(f"checkpoint: {train(*arguments)}")
        say("evaluate", "56 judged queries: BM25, cosine, the trained model, and their fusions")
        (evaluating,) = options_from(evaluation, [EvaluationOptions], "evaluate-quickstart")
        results = evaluate(evaluating)
    print(results)
    print(f"report of the ranking: {results.path.with_name('report.html')}")
    print(f"report of the pairs: {report.path}")


def _located(recipe: dict[str, Any], options: QuickstartOptions) -> dict[str, Any]:
    """Put a recipe's paths under the output folder, and add the options that each step has."""
    output = json.dumps(options.output_dir)[1:-1]
    text = json.dumps(recipe).replace("harp-output/quickstart", output)
    return json.loads(text) | options_of_every_step(options)


def _build(recipe: dict[str, Any], options: QuickstartOptions) -> None:
    from ..corpus.options import CorpusOptions
    from ..tasks.registry import HARP_TASKS
    from ..weights.options import WeightOptions
    from .build import BuildOptions, build, summary

    say("build", f"pages, links, term weights by {recipe['model']}, examples")
    source = Path(str(files("harp_plugin"))) / "data" / "encyclopedia.xml"
    building = BuildOptions(
        output_dir=recipe["build_dir"],
        tasks=[*HARP_TASKS, *recipe["tasks"]],
        negatives=["bm25"],
        workers=options.workers,
        **options_of_every_step(options),
    )
    corpus, weights = CorpusOptions(pages_per_shard=40), WeightOptions(model=recipe["model"])
    print(summary(build([source], building, corpus, weights)))


@Command("", QuickstartOptions, trains=True)
def command(options: QuickstartOptions) -> None:
    """The encyclopedia of information retrieval is in the package.

    This needs no network and takes minutes on two cores.
    """
    quickstart(options)

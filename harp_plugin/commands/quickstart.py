"""`harp quickstart`: every step on the encyclopedia in the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..options import Count, Overwriting, Progress, Workers, option
from ..options_parser import ABOUT, Command, read_recipe
from ..work.provenance import OverwriteRules
from .steps import output_folder, say, training_arguments

__all__ = ["RECIPES", "QuickstartOptions", "quickstart"]

RECIPES = ("quickstart", "evaluate-quickstart")


@dataclass
class QuickstartOptions(Workers, Progress, Overwriting):
    """Where the quickstart writes, and how long it trains."""

    output_dir: str = option("harp-output/quickstart", "Folder for everything that it makes.")
    max_steps: Count | None = option(
        None, "How many steps training takes (default: as the recipe says)."
    )


def quickstart(options: QuickstartOptions) -> None:
    """Build, inspect, train and evaluate; print the table and the report's path.

    Raises:
        HarpError: a part of the package is not installed, or the folder cannot be written, or it
            holds something that may not be replaced.
    """
    output = Path(options.output_dir)
    with output_folder(output):
        _quickstart(output, options)


def _quickstart(output: Path, options: QuickstartOptions) -> None:
    recipe = {name: _located(read_recipe(name), output) for name in RECIPES}
    build_dir, model = _build(recipe["quickstart"], options)
    say("inspect", "sample pairs of each task")
    report = _inspect(build_dir, options)
    say("train", f"{model} on anchor texts and the pages that they lead to")
    _train(recipe["quickstart"], output, options)
    say("evaluate", "56 judged queries: BM25, cosine, the trained model, and their fusions")
    results = _evaluate(recipe["evaluate-quickstart"], options)
    print(results)
    print(f"report of the ranking: {results.path.with_name('report.html')}")
    print(f"report of the pairs: {report}")


def _located(recipe: dict[str, Any], output: Path) -> dict[str, Any]:
    """Put a recipe's paths under the output folder."""
    text = json.dumps(recipe).replace("harp-output/quickstart", json.dumps(str(output))[1:-1])
    return json.loads(text)


def _build(recipe: dict[str, Any], options: QuickstartOptions) -> tuple[Path, str]:
    from ..corpus.options import CorpusOptions
    from ..tasks.registry import HARP_TASKS
    from ..weights.options import WeightOptions
    from .build import BuildOptions, build, summary

    model = recipe["model"]
    say("build", f"pages, links, term weights by {model}, examples")
    source = Path(str(files("harp_plugin"))) / "data" / "encyclopedia.xml"
    building = BuildOptions(
        output_dir=recipe["build_dir"],
        tasks=[*HARP_TASKS, *recipe["tasks"]],
        negatives=["bm25"],
        workers=options.workers,
        overwrite=options.overwrite,
        accept_other_versions=options.accept_other_versions,
        quiet=options.quiet,
    )
    corpus = CorpusOptions(pages_per_shard=40)
    print(summary(build([source], building, corpus, weights=WeightOptions(model=model))))
    return Path(recipe["build_dir"]), model


def _inspect(build_dir: Path, options: QuickstartOptions) -> Path:
    from ..inspection import InspectOptions, inspect
    from ..tasks import DrawOptions

    inspection = InspectOptions(quiet=options.quiet, model_checks=False)
    report = inspect(build_dir, inspection, DrawOptions())
    print(report)
    return report.path


def _train(recipe: dict[str, Any], output: Path, options: QuickstartOptions) -> None:
    from ..evaluation.training import train
    from ..training.arguments import PRETRAINING

    rules = OverwriteRules(options.overwrite, options.accept_other_versions)
    flags = [] if options.max_steps is None else ["--max-steps", str(options.max_steps)]
    flags += ["--quiet"] if options.quiet else []
    path = output / "quickstart.json"
    print(f"checkpoint: {train(*training_arguments(PRETRAINING, path, recipe, rules, flags))}")


def _evaluate(recipe: dict[str, Any], options: QuickstartOptions):
    from ..evaluation import EvaluationOptions, evaluate

    recipe.pop(ABOUT, None)
    recipe |= {
        "overwrite": options.overwrite,
        "keep": options.accept_other_versions,
        "quiet": options.quiet,
    }
    return evaluate(EvaluationOptions(**recipe))


@Command("", QuickstartOptions, trains=True)
def command(options: QuickstartOptions) -> None:
    """The encyclopedia of information retrieval is in the package.

    This needs no network and takes minutes on two cores.
    """
    quickstart(options)

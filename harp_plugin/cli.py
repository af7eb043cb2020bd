"""The command ``harp``: one thin sub-command per stage."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from ._version import __version__
from .errors import HarpError, one_line
from .failures import message_of
from .files.temporary import folder_of_workers
from .interrupts import INTERRUPTED, TERMINATED, interruptible

_USAGE = """\
usage: harp COMMAND [OPTION ...]

Pre-train rerankers on hyperlinks, and run them in PyTerrier.

commands:
  quickstart      all of the below on a small encyclopedia in the package
  build           sources -> corpus, link graph, term weights, examples
  inspect         look at what was built: counts and an HTML page of pairs
  train           pre-train by a recipe, through Tevatron's trainer
  finetune        train on judged queries by a recipe
  evaluate        first stage, rerankers, measures: a table and TREC runs
  cross-validate  fine-tune and measure by folds and numbers of queries
  rerank          TREC runs of any engine, reranked: streaming, resumable
  export          drawn pairs as Tevatron JSONL and Hugging Face dataset
  check           compare finished work with its checksums

`harp COMMAND --help` tells more. Exit status: 0 done, 2 an error that
you can mend, 130 interrupted by Ctrl-C, 143 by SIGTERM (run again to
go on; a second Ctrl-C ends at once)."""
_TRAINING = ("cross-validate", "finetune", "quickstart", "train")
_SAID = {
    INTERRUPTED: "interrupted; what is finished is kept, run again to go on",
    TERMINATED: "terminated; what is finished is kept, run again to go on",
}


def console() -> int:
    """Run the command of this process's arguments, which ends the process."""
    return main(is_console=True)


def main(argv: Sequence[str] | None = None, *, is_console: bool = False) -> int:
    """Run a command and return its exit status.

    Args:
        argv: the command and its arguments; this process's by default.
        is_console: whether the process ends with the command.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    if arguments[0] == "--version":
        print(f"harp {__version__}")
        return 0
    with interruptible(until_exit=is_console) as interruption:
        try:
            return _run(arguments)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (Exception, KeyboardInterrupt) as error:
            status = interruption.status
            if status is None and not isinstance(error, KeyboardInterrupt):
                return _failed(error)
            status = status or INTERRUPTED
            print(f"\nharp: {_SAID[status]}", file=sys.stderr)
            return status


def _run(arguments: list[str]) -> int:
    if any("\0" in argument for argument in arguments):
        raise HarpError("an argument holds a NUL character: no name of a file can")
    command = _command(arguments[0])
    with folder_of_workers() if arguments[0] in _TRAINING else nullcontext():
        return command(arguments[1:]) or 0


def _failed(error: Exception) -> int:
    """Tell an error of the user, the system or the input in one line; let any other be raised."""
    message = message_of(error)
    if message is None:
        raise error
    print(f"harp: error: {one_line(message)}", file=sys.stderr)
    return 2


def _show(result: object) -> None:
    """Print a result whose lines may hold names and texts of sources."""
    text = "\n".join(map(one_line, str(result).split("\n")))
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


class _OneLine(logging.Formatter):
    """Escapes control characters of messages, which may hold names and texts of sources."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return one_line(super().formatMessage(record))


def _command(name: str) -> Callable[[list[str]], int | None]:
    commands = {
        "build": _build,
        "check": _check,
        "cross-validate": _cross_validate,
        "evaluate": _evaluate,
        "export": _export,
        "finetune": _finetune,
        "inspect": _inspect,
        "quickstart": _quickstart,
        "rerank": _rerank,
        "train": _train,
    }
    if name not in commands:
        raise HarpError(f"unknown command {name!r}: known are {', '.join(commands)}")
    _calm()
    return commands[name]


def _calm() -> None:
    """Keep libraries' own notices and bars out of the way of ours."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    logging.getLogger("harp_plugin").setLevel(logging.INFO)


def _build(argv: list[str]) -> None:
    from .commands.build import BuildOptions, build, summary
    from .corpus.options import CorpusOptions
    from .engine import EngineOptions
    from .graph import GraphOptions
    from .options import OptionsParser
    from .weights.options import WeightOptions

    parser = OptionsParser(
        (BuildOptions, CorpusOptions, GraphOptions, WeightOptions, EngineOptions),
        prog="harp build",
        description="Read hyperlinked sources, resolve their links, weigh their terms and make "
        "the examples of the pre-training tasks. A finished stage is kept; an interrupted one "
        "goes on where it was.",
        arguments="SOURCE [SOURCE ...] --output-dir DIR ",
    )
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="file, folder or irds:COLLECTION"
    )
    parser.add_argument("--recipe", help="JSON file with any of these options")
    options = parser.read(argv, _recipe_of(argv))
    *stages, rest = options
    if stages[0].dry_run:
        from .commands.estimate import estimate, report

        _show(report(estimate(rest.sources, *stages[:-1]), Path(stages[0].output_dir)))
    else:
        _show(summary(build(rest.sources, *stages)))


def _inspect(argv: list[str]) -> None:
    from .inspection import InspectOptions, inspect
    from .options import OptionsParser
    from .tasks.options import DrawOptions

    parser = OptionsParser(
        (InspectOptions, DrawOptions),
        prog="harp inspect",
        description="Count what a build holds beside Table 1 of the HARP paper, and write an HTML "
        "page with sample pairs of each task.",
        arguments="DIR ",
    )
    parser.add_argument("directory", metavar="DIR", help="folder that `harp build` wrote")
    inspection, draw, rest = parser.read(argv)
    _show(inspect(rest.directory, inspection, draw))


def _train(argv: list[str]) -> None:
    from .options import OptionsParser
    from .training.arguments import SHOWN, HarpDataArguments, HarpModelArguments
    from .training.arguments import HarpTrainingArguments as TrainingArguments

    shown = None if "--help-all" in argv else SHOWN
    parser = OptionsParser(
        (HarpModelArguments, HarpDataArguments, TrainingArguments),
        prog="harp train",
        description="Pre-train a reranker by a recipe. All options of Tevatron's trainer (those of "
        "transformers' TrainingArguments) work in a recipe and as flags; --help-all shows them.",
        arguments="RECIPE ",
        shown=shown,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="JSON file, or the name of a recipe")
    parser.add_argument("--help-all", action="help", help="show every option")
    recipe = argv[0] if argv and not argv[0].startswith("-") else None
    *arguments, _rest = parser.read(argv, recipe)
    from .evaluation.training import train

    _show(f"checkpoint: {train(*arguments)}")


def _finetune(argv: list[str]) -> None:
    from .options import OptionsParser
    from .training.arguments import HarpModelArguments, HarpTrainingArguments
    from .training.judged_arguments import SHOWN, FinetuneDataArguments

    parser = OptionsParser(
        (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments),
        prog="harp finetune",
        description="Train a reranker on judged queries by a recipe: positives from qrels, hard "
        "negatives from a first-stage run, or both from Tevatron's JSON lines. Tevatron's training "
        "options work as in `harp train`; --help-all shows them.",
        arguments="RECIPE ",
        shown=None if "--help-all" in argv else SHOWN,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="JSON file, or the name of a recipe")
    parser.add_argument("--help-all", action="help", help="show every option")
    recipe = argv[0] if argv and not argv[0].startswith("-") else None
    *arguments, _rest = parser.read(argv, recipe)
    from .evaluation.training import finetune

    _show(f"checkpoint: {finetune(*arguments)}")


def _evaluate(argv: list[str]) -> None:
    from .evaluation import EvaluationOptions, evaluate
    from .options import OptionsParser

    parser = OptionsParser(
        (EvaluationOptions,),
        prog="harp evaluate",
        description="Rerank a first stage on an ir_datasets collection and measure it. Writes TREC "
        "runs and results.json.",
        arguments="RECIPE ",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="JSON file, or the name of a recipe")
    recipe = argv[0] if argv and not argv[0].startswith("-") else None
    options, _rest = parser.read(argv, recipe)
    _show(evaluate(options))


def _cross_validate(argv: list[str]) -> None:
    from .evaluation.cross_validation import CrossValidationOptions, cross_validate
    from .options import OptionsParser

    parser = OptionsParser(
        (CrossValidationOptions,),
        prog="harp cross-validate",
        description="Fine-tune each system on the other folds' queries, or on a few of them, and "
        "measure it on the fold held out. Writes TREC runs, tables, a plot and results.json; what "
        "is finished is kept, an interrupted cross-validation goes on.",
        arguments="RECIPE ",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="JSON file, or the name of a recipe")
    recipe = argv[0] if argv and not argv[0].startswith("-") else None
    options, _rest = parser.read(argv, recipe)
    results = cross_validate(options)
    _show(f"{results}\n\nplot: {results.path / 'plot.png'}")


def _rerank(argv: list[str]) -> None:
    from .evaluation.reranking.options import RerankOptions
    from .options import OptionsParser

    parser = OptionsParser(
        (RerankOptions,),
        prog="harp rerank",
        description="Rerank a TREC run of any engine, a few queries at a time. Whole queries are "
        "kept in OUTPUT.part; after an interruption, run again to go on.",
        arguments="RUN --dataset ID --model MODEL ",
    )
    parser.add_argument("run", metavar="RUN", help="TREC run, .gz too, or - for standard input")
    options, rest = parser.read(argv)
    from .evaluation.reranking.service import rerank

    output = rerank(rest.run, options)
    if output is not None:
        _show(f"run: {output}")


def _export(argv: list[str]) -> None:
    from .commands.export import ExportOptions, export
    from .options import OptionsParser
    from .tasks.options import DrawOptions

    parser = OptionsParser(
        (ExportOptions, DrawOptions),
        prog="harp export",
        description="Draw pairs from a build and write them as JSON lines that stock Tevatron and "
        "datasets.load_dataset read, with a data card.",
        arguments="DIR --output-dir DIR ",
    )
    parser.add_argument("directory", metavar="DIR", help="folder that `harp build` wrote")
    exporting, draw, rest = parser.read(argv)
    _show(f"dataset: {export(rest.directory, exporting, draw)}")


def _check(argv: list[str]) -> int:
    from .commands.check import CheckOptions, check
    from .options import OptionsParser

    parser = OptionsParser(
        (CheckOptions,),
        prog="harp check",
        description="Compare all files of builds, datasets, models, runs and indexes in a folder "
        "with their checksums. Prints a line for each damage, and changes nothing; the exit status "
        "is 2 if there is one.",
        arguments="DIR ",
    )
    parser.add_argument("directory", metavar="DIR", help="folder that a command wrote")
    options, rest = parser.read(argv)
    found = check(rest.directory, options)
    _show(found)
    return 2 if found.damages else 0


def _quickstart(argv: list[str]) -> None:
    from .commands.quickstart import QuickstartOptions, quickstart
    from .options import OptionsParser

    parser = OptionsParser(
        (QuickstartOptions,),
        prog="harp quickstart",
        description="The whole road on a small encyclopedia of information retrieval that is in "
        "the package: build, inspect, train, evaluate. No network; minutes on two cores.",
    )
    options, _rest = parser.read(argv)
    quickstart(options)


def _recipe_of(argv: list[str]) -> str | None:
    for place, argument in enumerate(argv):
        if argument == "--recipe" and place + 1 < len(argv):
            return argv[place + 1]
        if argument.startswith("--recipe="):
            return argument.partition("=")[2]
    return None


if __name__ == "__main__":
    sys.exit(console())

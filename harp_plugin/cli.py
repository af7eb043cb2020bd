"""The command ``harp``: one sub-command for each stage, listed in one table."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import HarpError, one_line
from .failures import user_message
from .interrupts import INTERRUPTED, TERMINATED, interruptible
from .processes import folder_of_workers

if TYPE_CHECKING:
    from .options_parser import OptionsParser

__all__ = ["console", "main", "parsers"]

_Read = Callable[..., tuple[Any, ...]]

_USAGE = """\
usage: harp COMMAND [OPTION ...]

Pre-train rerankers on hyperlinks, and run them in PyTerrier.

commands:
{commands}

`harp COMMAND --help` shows the options of a command. The exit status is 0
if all is done, 2 after an error that you can mend, 130 after Ctrl-C and
143 after SIGTERM. After Ctrl-C or SIGTERM, run the command again and it
continues. A second Ctrl-C ends the command at once."""
_SAID = {
    INTERRUPTED: "interrupted; what is finished is kept, run again to go on",
    TERMINATED: "terminated; what is finished is kept, run again to go on",
}


_RECIPE = {
    "metavar": "RECIPE",
    "nargs": "?",
    "help": "JSON or YAML file, or the name of a recipe of the package; flags can say all instead.",
}
_BUILD = {"metavar": "DIR", "help": "Folder that `harp build` wrote."}
_FOLDER = {"metavar": "DIR", "help": "Folder that a command wrote."}
_SOURCES = {"metavar": "SOURCE", "nargs": "*", "help": "File, folder or irds:COLLECTION to read."}
_RUN = {"metavar": "RUN", "help": "TREC run, which may end in .gz, or - for standard input."}
_DATASET = {"metavar": "DATASET", "help": "ir_datasets id, such as vaswani or harp:FOLDER."}
_COMMANDS: dict[str, _Command] = {}


class _Command:
    """A sub-command, and the decorator that adds its function to the table of commands.

    The function takes what reads its options, and returns its exit status where that may be
    another than 0. Its docstring is the help, with the entry in the list of commands as first line.

    Args:
        name: the command as typed.
        usage: the arguments that it needs.
        positional: the one of them that has no flag, as `add_argument` takes it.
        trains: whether it starts processes that load data for training.
    """

    run: Callable[[_Read], int | None]
    help: str

    def __init__(
        self,
        name: str,
        usage: str = "",
        positional: Any = None,
        *,
        trains: bool = False,
    ) -> None:
        self.name = name
        self.usage = f"{usage} " if usage else ""
        self.positional = positional
        self.trains = trains

    def __call__(self, run: Callable[[_Read], int | None]) -> None:
        self.run, self.help = run, cleandoc(run.__doc__ or "")
        _COMMANDS[self.name] = self

    def read(
        self, argv: list[str], *dataclasses: type, shown: frozenset[str] | None = None
    ) -> tuple[Any, ...]:
        """Read flags and recipe.

        Args:
            argv: the arguments after the name of the command.
            dataclasses: the options of the command.
            shown: names of the options that ``--help`` shows, where ``--help-all`` shows all.

        Returns:
            One object for each dataclass, then the argument without a flag, if there is one.

        Raises:
            HarpError: an argument or a key of the recipe is unknown or has a wrong value.
        """
        parser = self._parser(dataclasses, None if "--help-all" in argv else shown)
        if shown is not None:
            parser.add_argument("--help-all", action="help", help="Show every option and exit.")
        if self.positional is not None:
            parser.add_argument("positional", **self.positional)
        if self.positional is _RECIPE:
            recipe = argv[0] if argv and not argv[0].startswith("-") else None
        else:
            parser.add_argument("--recipe", help="JSON or YAML file with any of these options.")
            recipe = parser.value_of("--recipe", argv)
        *options, rest = parser.read(argv, recipe)
        return (*options, rest.positional) if self.positional else tuple(options)

    @property
    def parser(self) -> OptionsParser:
        """What reads the command's options."""
        try:
            self.run(_asked)
        except _Asked as asked:
            return self._parser(asked.dataclasses, asked.shown)
        raise AssertionError(f"harp {self.name} reads no options")

    def _parser(self, dataclasses: Sequence[Any], shown: frozenset[str] | None) -> OptionsParser:
        from .options_parser import OptionsParser

        return OptionsParser(dataclasses, f"harp {self.name}", self.help, self.usage, shown)


class _Asked(Exception):
    """Carries what a command's function asks for, out of it."""

    def __init__(self, dataclasses: tuple[type, ...], shown: frozenset[str] | None) -> None:
        self.dataclasses = dataclasses
        self.shown = shown


def _asked(*dataclasses: type, shown: frozenset[str] | None = None) -> Any:
    raise _Asked(dataclasses, shown)


@_Command("quickstart", trains=True)
def _quickstart(read: _Read) -> None:
    """Build, inspect, train and evaluate on a small encyclopedia.

    The encyclopedia of information retrieval is in the package. This needs no network and takes
    minutes on two cores.
    """
    from .commands.quickstart import QuickstartOptions, quickstart

    quickstart(*read(QuickstartOptions))


@_Command("adapt", "SOURCE [SOURCE ...] --output-dir DIR", _SOURCES, trains=True)
def _adapt(read: _Read) -> None:
    """Make a search pipeline of a corpus, and measure what it gains.

    Links train a cross-encoder. Queries that people wrote into the corpus (terms of an index,
    redirects, links that are held out) choose the weights of its fusion with BM25 and an encoder,
    and test it. A finished step is kept, and an interrupted one is continued.
    """
    from .commands.adapt import AdaptOptions, adapt
    from .corpus.options import CorpusOptions

    options, corpus, sources = read(AdaptOptions, CorpusOptions)
    results = adapt(sources, options, corpus)
    _show(f"{results}\n\nreport: {results.path.parent / 'report.html'}")


@_Command("build", "SOURCE [SOURCE ...] --output-dir DIR", _SOURCES)
def _build(read: _Read) -> None:
    """Make corpus, link graph, term weights and examples of sources.

    Sources are hyperlinked: their links are resolved, their terms are weighed, the examples of the
    pre-training tasks are made, and hard negatives are found if --negatives asks for them. A
    finished stage is kept, and an interrupted one is continued.
    """
    from .commands.build import BuildOptions, build, summary
    from .corpus.options import CorpusOptions
    from .graph import GraphOptions
    from .negatives.options import NegativeOptions
    from .weights.options import WeightOptions
    from .work.sql.engine import EngineOptions

    *options, sources = read(
        *(BuildOptions, CorpusOptions, GraphOptions, WeightOptions, EngineOptions),
        NegativeOptions,
    )
    _show(summary(build(sources, *options)))


@_Command("inspect", "DIR", _BUILD)
def _inspect(read: _Read) -> None:
    """Count what was built and show its pairs on an HTML page.

    The counts stand beside Table 1 of the HARP paper. The page has sample pairs of each task.
    """
    from .inspection import InspectOptions, inspect
    from .tasks.options import DrawOptions

    inspection, draw, directory = read(InspectOptions, DrawOptions)
    _show(inspect(directory, inspection, draw))


@_Command("train", "[RECIPE]", _RECIPE, trains=True)
def _train(read: _Read) -> None:
    """Pre-train a reranker by a recipe, through Tevatron's trainer.

    All options of Tevatron's trainer (those of transformers' TrainingArguments) work in a recipe
    and as flags; --help-all shows them.
    """
    from .training.arguments import PRETRAINING, SHOWN

    *options, _recipe = read(*PRETRAINING, shown=SHOWN)
    from .evaluation.training import train

    _show(f"checkpoint: {train(*options)}")


@_Command("finetune", "[RECIPE]", _RECIPE, trains=True)
def _finetune(read: _Read) -> None:
    """Train a reranker on judged queries by a recipe.

    Positives come from qrels and hard negatives from a first-stage run, or both from Tevatron's
    JSON lines. Tevatron's training options work as in `harp train`; --help-all shows them.
    """
    from .training.judged_arguments import FINETUNING, SHOWN

    *options, _recipe = read(*FINETUNING, shown=SHOWN)
    from .evaluation.training import finetune

    _show(f"checkpoint: {finetune(*options)}")


@_Command("evaluate", "[RECIPE]", _RECIPE)
def _evaluate(read: _Read) -> None:
    """Rerank a first stage, measure the rankings and print a table.

    Queries, documents and judgments are those of an ir_datasets collection. The command writes
    TREC runs and results.json.
    """
    from .evaluation import EvaluationOptions, evaluate

    options, _recipe = read(EvaluationOptions)
    _show(evaluate(options))


@_Command("cross-validate", "[RECIPE]", _RECIPE, trains=True)
def _cross_validate(read: _Read) -> None:
    """Fine-tune and measure by folds and numbers of queries.

    Each system is fine-tuned on the queries of the other folds, or on a few of them, and measured
    on the fold that is held out. The command writes TREC runs, tables, a plot and results.json.
    What is finished is kept, and an interrupted cross-validation is continued.
    """
    from .evaluation.cross_validation import CrossValidationOptions, cross_validate

    options, _recipe = read(CrossValidationOptions)
    results = cross_validate(options)
    _show(f"{results}\n\nplot: {results.path / 'plot.png'}")


@_Command("rerank", "RUN --dataset ID --model MODEL", _RUN)
def _rerank(read: _Read) -> None:
    """Rerank a TREC run of any engine, a few queries at a time.

    Whole queries are kept in OUTPUT.part. After an interruption, run the command again and it
    continues.
    """
    from .evaluation.reranking.options import RerankOptions

    options, run = read(RerankOptions)
    from .evaluation.reranking.service import rerank

    output = rerank(run, options)
    if output is not None:
        _show(f"run: {output}")


@_Command("export", "DIR --output-dir DIR", _BUILD)
def _export(read: _Read) -> None:
    """Draw pairs and write them for Tevatron and Hugging Face.

    Pairs are drawn from a build and written as JSON lines, which stock Tevatron and
    datasets.load_dataset read, with a data card.
    """
    from .commands.export import ExportOptions, export
    from .tasks.options import DrawOptions

    exporting, draw, directory = read(ExportOptions, DrawOptions)
    _show(f"dataset: {export(directory, exporting, draw)}")


@_Command("collect", "DIR --output-dir DIR", _BUILD)
def _collect(read: _Read) -> None:
    """Make judged queries from a build, as a test collection.

    Queries are index terms, redirects and held-out links. ir_datasets, PyTerrier and
    `harp evaluate` know the folder as harp:DIR/train, harp:DIR/dev and harp:DIR/test.
    """
    from .collections.known_items.options import QueryOptions
    from .commands.collect import CollectOptions, collect, summary
    from .work.sql.engine import EngineOptions

    options, queries, engine, directory = read(CollectOptions, QueryOptions, EngineOptions)
    folder = collect(directory, options, queries, engine)
    _show(f"{summary(folder)}\ncollection: harp:{folder}")


@_Command("index", "DATASET --model MODEL --output-dir DIR", _DATASET)
def _index(read: _Read) -> None:
    """Encode the documents of a dataset for a dense first stage.

    The folder is an index of pyterrier_dr. HarpRetriever searches it, and `harp evaluate` takes it
    as --first-stage dense:DIR. An interrupted command is continued.
    """
    from .commands.index import IndexOptions, index

    options, dataset = read(IndexOptions)
    _show(f"index: {index(dataset, options)}")


@_Command("check", "DIR", _FOLDER)
def _check(read: _Read) -> int:
    """Compare finished work with its checksums.

    All files of builds, datasets, models, runs and indexes in a folder are compared. The command
    prints a line for each damage and changes nothing. Its exit status is 2 if there is a damage.
    """
    from .commands.check import CheckOptions, check

    options, directory = read(CheckOptions)
    checked = check(directory, options)
    _show(checked)
    return 2 if checked.damages else 0


@_Command("schema")
def _schema(read: _Read) -> None:
    """Print the JSON schema of recipes, for editors.

    An editor that knows it completes the options of a recipe, in JSON or YAML, and checks them.
    """
    from .commands.reference import recipe_schema

    read()
    _show(json.dumps(recipe_schema(parsers()), indent=1, ensure_ascii=False))


def parsers() -> dict[str, OptionsParser]:
    """Return what reads the options of each command that has any, by its name."""
    every = {name: command.parser for name, command in _COMMANDS.items()}
    return {name: parser for name, parser in every.items() if parser.options}


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
    with interruptible(until_exit=is_console) as interruption:
        try:
            status = _run(arguments)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (Exception, KeyboardInterrupt) as error:
            if interruption.status is None and not isinstance(error, KeyboardInterrupt):
                return _failed(error)
            status = interruption.status or INTERRUPTED
            print(f"\nharp: {_SAID[status]}", file=sys.stderr)
            return status


def _usage() -> str:
    lines = (f"  {name:<14}  {command.help.splitlines()[0]}" for name, command in _COMMANDS.items())
    return _USAGE.format(commands="\n".join(lines))


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0
    if arguments[0] == "--version":
        print(f"harp {__version__}")
        return 0
    if any("\0" in argument for argument in arguments):
        raise HarpError("an argument holds a NUL character: no name of a file can")
    name, *argv = arguments
    if name not in _COMMANDS:
        raise HarpError(f"unknown command {name!r}: known are {', '.join(sorted(_COMMANDS))}")
    _calm()
    _leave_cores_to_others()
    command = _COMMANDS[name]
    folder = folder_of_workers() if command.trains else nullcontext()
    with folder:
        return command.run(partial(command.read, argv)) or 0


def _failed(error: Exception) -> int:
    """Tell an error of the user, the system or the input in one line; let any other be raised."""
    message = user_message(error)
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


def _calm() -> None:
    """Hold back the notices and progress bars of libraries, so that those of harp are seen."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    logging.getLogger("harp_plugin").setLevel(logging.INFO)


def _leave_cores_to_others() -> None:
    """Let a thread of torch that waits for another thread sleep early.

    GNU's OpenMP, which torch uses on Linux, lets a waiting thread check 300,000 times before it
    sleeps. Where another program computes on the same cores, the waiting thread then occupies the
    core that the other thread needs. `benchmarks/busy_core.py` measures what 1,000 times gain.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


if __name__ == "__main__":
    sys.exit(console())

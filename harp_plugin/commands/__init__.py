"""The commands of `harp`: a table, and one file each, which is imported when it is used."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from ..errors import HarpError, user_message

if TYPE_CHECKING:
    from ..options_parser import Command

__all__ = ["COMMANDS", "load", "stored_help"]

COMMANDS = {
    "quickstart": "Build, inspect, train and evaluate on a small encyclopedia.",
    "adapt": "Make a search pipeline of a corpus, and measure what it gains.",
    "search": "Search in a folder of `harp adapt`, once or at a prompt.",
    "serve": "Search in a folder of `harp adapt` on a page of this machine.",
    "build": "Make corpus, link graph, term weights and examples of sources.",
    "inspect": "Count what was built and show its pairs on an HTML page.",
    "train": "Pre-train a reranker by a recipe, through Tevatron's trainer.",
    "finetune": "Train a reranker on judged queries by a recipe.",
    "evaluate": "Rerank a first stage, measure the rankings and print a table.",
    "cross-validate": "Fine-tune and measure by folds and numbers of queries.",
    "rerank": "Rerank a TREC run of any engine, a few queries at a time.",
    "export": "Draw pairs and write them for Tevatron and Hugging Face.",
    "collect": "Make judged queries from a build, as a test collection.",
    "index": "Encode the documents of a dataset for a dense first stage.",
    "check": "Compare finished work with its checksums.",
    "schema": "Print the JSON schema of recipes, for editors.",
}
"""What each command does; it is the object ``command`` of the file of its name."""

_EXTRAS = {"train": "train", "finetune": "train", "evaluate": "pyterrier", "rerank": "pyterrier"}
_EXTRAS |= dict.fromkeys(("build", "inspect", "export", "check"), "build")
"""The extra of this package that a command needs; others need ``all``."""


def stored_help(name: str) -> str:
    """Read the help of a command from the package: its options would take seconds to import."""
    text = files("harp_plugin").joinpath("data", "help.json").read_text("utf-8")
    return json.loads(text)[name]


def load(name: str) -> Command:
    """Import a command.

    Raises:
        HarpError: a package that it needs is not installed.
    """
    try:
        return import_module(f"{__name__}.{name.replace('-', '_')}").command
    except ModuleNotFoundError as error:
        if user_message(error) is None:
            raise
        extra = f"harp-plugin[{_EXTRAS.get(name, 'all')}]"
        raise HarpError(f"harp {name} needs {error.name}: run `pip install '{extra}'`") from error

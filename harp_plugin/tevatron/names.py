"""Turn Tevatron's options of a training into those of `harp train`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from transformers import HfArgumentParser

from ..cli import main
from ..collections.datasets import PREFIX
from ..errors import HarpError, one_line
from ..options_parser import ABOUT, read_recipe
from ..training.tevatron import DataArguments, ModelArguments, RerankerArguments

__all__ = ["harp_arguments", "run"]

_NAMES = {
    "model_name_or_path": "model",
    "tokenizer_name": "tokenizer_name",
    **dict.fromkeys(("query_max_len", "q_max_len"), "max_query_length"),
    **dict.fromkeys(("passage_max_len", "p_max_len", "rerank_max_len"), "max_length"),
}
"""Our names of Tevatron's options."""
_SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which Tevatron's retriever counts among the tokens of a query."""
_GROUP_SIZES = ("train_group_size", "train_n_passages")
_OWN = ("dataset_name", "dataset_config", "temperature", "pooling", "normalize", *_GROUP_SIZES)
_WITHOUT_EFFECT = (
    *("attn_implementation", "cache_dir", "data_cache_dir", "dataset_cache_dir", "num_proc"),
    *("dataset_proc_num", "pad_to_multiple_of"),
)
"""Options that say where and how fast Tevatron works, which `harp train` decides itself."""


class _Parser(HfArgumentParser):
    """Tevatron's options, whose errors are one line."""

    def error(self, message: str) -> Any:
        raise HarpError(f"{message} (see --help)")


def run(kind: str, argv: Sequence[str] | None = None) -> int:
    """Train a model of a kind on a build, by Tevatron's options, and return the exit status.

    Args:
        kind: ``cross-encoder`` or ``bi-encoder``.
        argv: flags, or one JSON file; this process's by default.
    """
    try:
        arguments = harp_arguments(kind, sys.argv[1:] if argv is None else argv)
    except HarpError as error:
        print(f"harp: error: {one_line(str(error))}", file=sys.stderr)
        return 2
    return main(["train", *arguments])


def harp_arguments(kind: str, argv: Sequence[str]) -> list[str]:
    """Return the flags of `harp train` that stand for Tevatron's.

    Args:
        kind: ``cross-encoder`` or ``bi-encoder``.
        argv: flags of Tevatron's drivers and of `harp train`; or one JSON file of both.

    Raises:
        HarpError: the data set is not a build, or an option has no meaning for one.
    """
    is_reranker = kind == "cross-encoder"
    declared = RerankerArguments if is_reranker else (ModelArguments, DataArguments)
    defaults = {field.name: field.default for options in declared for field in fields(options)}
    given, rest = _read(declared, {"dataset_config": None, **defaults}, argv)
    translated = {"model_kind": kind, **_data(given)}
    for name, value in given.items():
        if own := _NAMES.get(name):
            is_of_query = own == "max_query_length" and not is_reranker
            translated[own] = int(value) - _SPECIAL_TOKENS if is_of_query else value
        elif name in _GROUP_SIZES:
            translated["negatives_per_group"] = int(value) - 1
        elif name not in (*_OWN, *_WITHOUT_EFFECT) and value != defaults[name]:
            raise HarpError(f"--{name} has no meaning for {PREFIX}BUILD: leave it out")
    if not is_reranker:
        translated |= {
            "pooling": given.get("pooling", "cls"),
            "normalize": given.get("normalize", False),
            "losses": {"contrastive": {"temperature": float(given.get("temperature", 1))}},
        }
    return [*_flags(translated), *rest]


def _data(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for a build and its tasks."""
    name = str(given.get("dataset_name", ""))
    if not name.startswith(PREFIX):
        raise HarpError(
            f"--dataset_name {name or 'is missing'}: write {PREFIX}BUILD with the folder that "
            "`harp build` wrote, or train on other data with Tevatron's own command"
        )
    tasks = [task for task in str(given.get("dataset_config", "")).split(",") if task]
    weights = {"tasks": {task.strip(): 1 for task in tasks}} if tasks else {}
    return {"build_dir": name.removeprefix(PREFIX), **weights}


def _read(
    declared: Sequence[type], names: Mapping[str, Any], argv: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of Tevatron's options that are given, and all other flags."""
    if len(argv) == 1 and argv[0].endswith(".json"):
        recipe = read_recipe(argv[0])
        recipe.pop(ABOUT, None)
        own = {name: value for name, value in recipe.items() if name in names}
        return own, _flags({name: v for name, v in recipe.items() if name not in names})
    parser = _Parser(
        declared,
        allow_abbrev=False,
        description="Tevatron's options; those of its training arguments and of `harp train` too.",
    )
    if not any(field.name == "dataset_config" for options in declared for field in fields(options)):
        parser.add_argument("--dataset_config", help="Tasks, such as rqp,qdm (Tevatron 0.1.0).")
    parser.set_defaults(**dict.fromkeys(names))
    found: Namespace
    found, rest = parser.parse_known_args(list(argv))
    return {name: value for name, value in vars(found).items() if value is not None}, rest


def _flags(values: Mapping[str, Any]) -> list[str]:
    """Write options as flags."""
    flags: list[str] = []
    for name, value in values.items():
        if value is None:
            continue
        flags.append(f"--{name}")
        if isinstance(value, list):
            flags += map(str, value)
        else:
            flags.append(json.dumps(value) if isinstance(value, dict | bool) else str(value))
    return flags

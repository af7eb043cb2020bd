"""What an evaluation is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import HarpError
from ..files.made_from import OverwriteRules, keep_option, overwrite_option
from ..limits import Limits, check_limits
from ..ranking.options import (
    SCORING_OPTIONS,
    check_scoring_options,
    names_of_part,
    scoring_option,
    with_present_names,
)

__all__ = [
    "FIRST_STAGE",
    "EvaluationOptions",
    "ExperimentOptions",
    "check_model_row",
    "file_stem",
    "read_mapping",
]

FIRST_STAGE = "first stage"
"""Name of the row of a first stage that is not BM25."""
_NOT_IN_SETTINGS = {
    *("output_dir", "index_dir", "quiet", "overwrite", "keep", "keep_checkpoints"),
    *(name for name, option in SCORING_OPTIONS.items() if not option.changes_scores),
}
"""Options that change no result."""
_LIMITS = {
    "depth": Limits(least=1, most=10**7),
    "bm25_k1": Limits(least=0, most=1e6),
    "bm25_b": Limits(least=0, most=1),
}
_MODEL_OPTIONS = names_of_part("scorer", only_if_changes_scores=True)
_ENSEMBLE_OPTIONS = names_of_part("ensemble")


@dataclass
class ExperimentOptions:
    """What a first stage, a table and its tests need; `evaluate` and `cross_validate` share them.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    dataset: str = field(
        metadata={"help": "ir_datasets id with queries and judgements, such as vaswani."}
    )
    first_stage: str = field(
        default="bm25",
        metadata={
            "help": "bm25 (PISA), the path of a TREC run (.gz too), or module:function that takes"
            " these options and returns a PyTerrier transformer."
        },
    )
    depth: int = field(
        default=100,
        metadata={"help": "How many results of the first stage are reranked and evaluated."},
    )
    fields: list[str] | None = scoring_option("fields")
    measures: list[str] = field(
        default_factory=lambda: ["nDCG@10", "RR@10", "AP"],
        metadata={"help": "Measures as ir_measures writes them."},
    )
    baseline: str | None = field(
        default=None,
        metadata={
            "help": "Row that paired t-tests compare with: the name of a reranker, or `first "
            "stage`; by default the first reranker where there are several, else the "
            "first stage."
        },
    )
    correction: str = field(
        default="none",
        metadata={
            "help": "How the p-values of a measure are corrected for the number of its tests: "
            "none or holm.",
            "choices": ["none", "holm"],
        },
    )
    output_dir: str = field(
        default="harp-output/evaluation",
        metadata={"help": "Folder for runs/*.run and results.json."},
    )
    index_dir: str | None = field(
        default=None,
        metadata={"help": "Folder for BM25 indexes; by default OUTPUT_DIR/index."},
    )
    bm25_k1: float = field(
        default=0.9, metadata={"help": "BM25: a larger number gives repeated words more weight."}
    )
    bm25_b: float = field(
        default=0.4, metadata={"help": "BM25: a larger number gives long documents less weight."}
    )
    batch_tokens: int | None = scoring_option("batch_tokens")
    device: str | None = scoring_option("device")
    dtype: str = scoring_option("dtype")
    overwrite: bool = overwrite_option()
    keep: bool = keep_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})

    def __post_init__(self) -> None:
        self.dataset = self.dataset.removeprefix("irds:")
        self.output_dir = str(self.output_dir)
        check_limits(self, _LIMITS)
        check_scoring_options({"batch_tokens": self.batch_tokens, "dtype": self.dtype})
        if not self.measures:
            raise HarpError("measures is empty: name one, such as nDCG@10")
        if self.correction not in ("none", "holm"):
            raise HarpError(f"unknown correction {self.correction!r}: name none or holm")

    def check_rows(self, kind: str) -> None:
        """Check that every row has a file of its own and that the baseline is a row.

        Args:
            kind: what the rows below the first are called, in errors.

        Raises:
            HarpError: two rows would share a file, or the baseline is not a row.
        """
        names = self.rows[1:]
        files = [file_stem(name) for name in (FIRST_STAGE, "bm25", *names)]
        if len(set(files)) < len(files):
            raise HarpError(
                f"{kind} {', '.join(names)}: two rows would share a file name with each"
                f" other, with bm25 or with {FIRST_STAGE!r}; name them otherwise"
            )
        if self.baseline not in (None, FIRST_STAGE, *self.rows):
            raise HarpError(f"unknown baseline {self.baseline!r}: rows are {', '.join(self.rows)}")

    @property
    def rules(self) -> OverwriteRules:
        """What may be replaced in the output folder."""
        return OverwriteRules(overwrite=self.overwrite, keep=self.keep)

    @property
    def settings(self) -> dict[str, Any]:
        """The options that decide the results."""
        options = asdict(self).items()
        return {name: value for name, value in options if name not in _NOT_IN_SETTINGS}

    @property
    def row_names(self) -> list[str]:
        """Names of the table's rows below the first stage's."""
        raise NotImplementedError

    @property
    def rows(self) -> list[str]:
        """Names of the table's rows, the first stage's at the head."""
        return ["BM25" if self.first_stage == "bm25" else FIRST_STAGE, *self.row_names]

    @property
    def reference(self) -> str:
        """The row that paired tests compare with."""
        if self.baseline in self.rows:
            return str(self.baseline)
        several = self.baseline is None and len(self.row_names) > 1
        return self.rows[1] if several else self.rows[0]


@dataclass
class EvaluationOptions(ExperimentOptions):
    """Options of `evaluate`, for flags or a JSON recipe.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    rerankers: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Rerankers by the name of their row: a model, a list of models (an ensemble),"
            " or an object with `model` and any of allow_untrained, max_length, dtype, seed, and"
            " of an ensemble's weights and score_normalisation. As a flag: the same in JSON."
        },
    )
    max_length: int | None = scoring_option(
        "max_length", help="How many tokens a pair has at most; by default what each model allows."
    )
    seed: int = scoring_option("seed")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scoring_options({"max_length": self.max_length, "seed": self.seed})
        self.rerankers = {
            name: check_model_row("reranker", name, row, _MODEL_OPTIONS)
            for name, row in read_mapping("rerankers", self.rerankers).items()
        }
        self.check_rows("rerankers")

    @property
    def row_names(self) -> list[str]:
        return list(self.systems)

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """Arguments of each reranker, by the name of its row."""
        assert isinstance(self.rerankers, dict)
        common = {"max_length": self.max_length, "dtype": self.dtype, "seed": self.seed}
        return {
            name: common | {key: value for key, value in row.items() if value is not None}
            for name, row in self.rerankers.items()
        }


def read_mapping(option: str, value: Any) -> dict[str, Any]:
    """Read an option that maps names to values: a mapping, or the same as JSON text.

    Raises:
        HarpError: it is neither.
    """
    if isinstance(value, str):
        try:
            return read_mapping(option, json.loads(value))
        except ValueError as error:
            raise HarpError(f"{option} is no JSON ({error}): {value!r:.60}") from None
    if not isinstance(value, dict | None):
        raise HarpError(f"{option} is {value!r:.60}: it must map names to values")
    return value or {}


def check_model_row(
    kind: str, name: str, row: Any, option_names: Collection[str]
) -> dict[str, Any]:
    """Check what an option says of one row: its model, or the models of its ensemble, and options.

    Args:
        kind: what such a row is called, in errors.
        name: of the row.
        row: a model, a list of models, or an object of ``model`` and options.
        option_names: of the options that such a row may have, besides those of an ensemble.

    Returns:
        The object of options, by their present names.

    Raises:
        HarpError: the row names no model, or has an option that is unknown or makes no sense.
    """
    options = {"model": row} if isinstance(row, str | list) else row
    model = options.get("model") if isinstance(options, dict) else None
    models = model if isinstance(model, list) else [model]
    if not models or not all(isinstance(member, str) for member in models):
        raise HarpError(f"{kind} {name!r} is {row!r:.60}: name its model")
    options = with_present_names(options, f"{kind} {name!r}: ")
    names = sorted({"model", *option_names, *_ENSEMBLE_OPTIONS})
    if unknown := sorted(options.keys() - names):
        raise HarpError(
            f"{kind} {name!r} has unknown {', '.join(unknown)}: known are {', '.join(names)}"
        )
    if not isinstance(model, list) and options.keys() & _ENSEMBLE_OPTIONS:
        both = " and ".join(_ENSEMBLE_OPTIONS)
        raise HarpError(f"{kind} {name!r} is one model: {both} need several")
    scoring = {key: value for key, value in options.items() if key in SCORING_OPTIONS}
    check_scoring_options(scoring, f"{kind} {name!r}: ", from_json=True)
    return options


def file_stem(row: str) -> str:
    """Write the name of a row as a file name, without its ending."""
    return re.sub(r"[^\w.+-]+", "-", row.lower()).strip("-.") or "unnamed"

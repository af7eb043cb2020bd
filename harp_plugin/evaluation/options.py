"""What an evaluation is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..limits import Limits, check_limits
from ..models.loading import COSINE
from ..options import flag
from ..ranking.options import (
    SCORING_OPTIONS,
    check_scoring_options,
    default_of,
    names_of_part,
    scoring_option,
)
from ..work.provenance import OverwriteRules, keep_option, overwrite_option
from .fusion_options import check_first_stages, check_fusions

__all__ = [
    "COSINE",
    "DENSE",
    "FIELDED_BM25",
    "FIRST_STAGE",
    "EvaluationOptions",
    "ExperimentOptions",
    "check_model_row",
    "file_stem",
    "is_cosine",
    "read_mapping",
]

FIRST_STAGE = "first stage"
"""Name of the row of a first stage that has no other name."""
FIELDED_BM25 = "fielded-bm25"
DENSE = "dense:"
"""How a first stage begins that searches an index of `harp index`; the folder follows."""
_FIRST_ROWS = {"bm25": "BM25", FIELDED_BM25: "fielded BM25"}
_NOT_IN_SETTINGS = {
    *("output_dir", "index_dir", "quiet", "overwrite", "keep", "keep_checkpoints", "report"),
    *(name for name, option in SCORING_OPTIONS.items() if not option.changes_scores),
}
"""Options that change no result."""
_LIMITS = {
    "depth": Limits(least=1, most=10**7),
    "bm25_k1": Limits(least=0, most=1e6),
    "bm25_b": Limits(least=0, most=1),
}
_MODEL_OPTIONS = [*names_of_part("scorer", only_if_changes_scores=True), *names_of_part("windows")]
_ENSEMBLE_OPTIONS = names_of_part("ensemble")


@dataclass
class ExperimentOptions:
    """What a first stage, a table and its tests need; `evaluate` and `cross_validate` share them.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    dataset: str = field(
        metadata={"help": "ir_datasets id with queries and judgments, such as vaswani."}
    )
    first_stage: str = field(
        default="bm25",
        metadata={
            "help": "bm25 (PISA), fielded-bm25 (over fields with weights), cosine:MODEL (of a "
            "sentence-transformers encoder), dense:FOLDER (what `harp index` made), the path of a "
            "TREC run (.gz too), or module:function that takes these options and returns a "
            "PyTerrier transformer."
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
    first_stages: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Further first stages by the name of their row, each written as first_stage "
            "is. Nothing reranks them. As a flag: JSON."
        },
    )
    fusions: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Fusions by the name of their row: a list of other rows, or an object with "
            "that list as `of` and any of weights (learn, rrf, or the weight of each row), "
            "normalization, candidates, measure and learn_on (a dataset). Learnt weights are "
            "never those of a query's own fold. As a flag: JSON."
        },
    )
    baseline: str | None = field(
        default=None,
        metadata={
            "help": "Row that paired t-tests compare with: the name of a row, or `first stage`; "
            "by default the first reranker where there are several and no fusion, else the "
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
        metadata={"help": "Folder for indexes of first stages; by default OUTPUT_DIR/index."},
    )
    bm25_k1: float = field(
        default=0.9, metadata={"help": "BM25: a larger number gives repeated words more weight."}
    )
    bm25_b: float = field(
        default=0.4, metadata={"help": "BM25: a larger number gives long documents less weight."}
    )
    field_weights: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "fielded-bm25: the weights of its fields; by default 1 for each of `fields`, or"
            ' for all fields with a text. As a flag: in JSON, such as {"title": 3, "text": 1}.'
        },
    )
    tune_on: str | None = field(
        default=None,
        metadata={
            "help": "fielded-bm25: ir_datasets id of other queries on the same documents, whose "
            "judgments choose weights, k1 and b, by the first of the measures."
        },
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
        self.tune_on = self.tune_on and self.tune_on.removeprefix("irds:")
        if self.field_weights is not None:
            self.field_weights = read_mapping("field_weights", self.field_weights)
        self.first_stages = check_first_stages(read_mapping("first_stages", self.first_stages))
        self._check_first_stages()
        check_limits(self, _LIMITS)
        check_scoring_options({"batch_tokens": self.batch_tokens, "dtype": self.dtype})
        if not self.measures:
            raise HarpError("measures is empty: name one, such as nDCG@10")
        if self.correction not in ("none", "holm"):
            raise HarpError(f"unknown correction {self.correction!r}: name none or holm")
        self.fusions = read_mapping("fusions", self.fusions)

    @property
    def index_folder(self) -> Path:
        """The folder for indexes."""
        return Path(self.index_dir or Path(self.output_dir) / "index")

    @property
    def cosine_model(self) -> str | None:
        """The encoder of the first stage ``cosine:MODEL``; None for another first stage."""
        if not is_cosine(self.first_stage):
            return None
        return self.first_stage.removeprefix(COSINE)

    def _check_first_stages(self) -> None:
        """Refuse options of a first stage that is not there, which would change nothing."""
        needed = {
            name: FIELDED_BM25 for name in ("field_weights", "tune_on") if getattr(self, name)
        }
        assert isinstance(self.first_stages, dict)
        present = {self.first_stage, *self.first_stages.values()}
        for name, stage in needed.items():
            if stage not in present:
                raise HarpError(
                    f"{flag(name)} needs --first-stage {stage}: give that, or leave {flag(name)} "
                    "out"
                )

    def check_rows(self, kind: str) -> None:
        """Check that every row has a file of its own, the fusions, and that the baseline is a row.

        Args:
            kind: what the rows below the first are called, in errors.

        Raises:
            HarpError: two rows would share a file, a fusion is at fault, or the baseline is not a
                row.
        """
        assert isinstance(self.fusions, dict)
        single_rows = [row for row in self.rows if row not in self.fusions]
        self.fusions = check_fusions(self.fusions, single_rows)
        names = self.rows[1:]
        first_rows = dict.fromkeys([FIRST_STAGE, *self._reserved, self.rows[0]])
        files = [file_stem(name) for name in (*first_rows, *names)]
        if len(set(files)) < len(files):
            raise HarpError(
                f"{kind} {', '.join(names)}: two rows would share a file name with each"
                f" other or with one of {', '.join(first_rows)}; name them otherwise"
            )
        if self.baseline not in (None, FIRST_STAGE, *self.rows):
            raise HarpError(f"unknown baseline {self.baseline!r}: rows are {', '.join(self.rows)}")

    @property
    def _reserved(self) -> list[str]:
        """The names of first stages that a row may not have, unless it is just that first stage."""
        assert isinstance(self.first_stages, dict)
        further = {row for row, name in self.first_stages.items() if name != self.first_stage}
        own = {row for row in further if _FIRST_ROWS.get(self.first_stages[row]) == row}
        return [row for row in _FIRST_ROWS.values() if row not in own]

    @property
    def rules(self) -> OverwriteRules:
        """What may be replaced in the output folder."""
        return OverwriteRules(self.overwrite, self.keep)

    @property
    def settings(self) -> dict[str, Any]:
        """The options that decide the results."""
        options = asdict(self)
        unused = {name for name in ("first_stages", "fusions") if not options[name]}
        if options.get("passages") == default_of("passages"):
            unused.add("passages")
        return {name: options[name] for name in options.keys() - _NOT_IN_SETTINGS - unused}

    @property
    def model_rows(self) -> list[str]:
        """Names of the table's rows whose models rerank the first stage."""
        raise NotImplementedError

    @property
    def rows(self) -> list[str]:
        """Names of the table's rows: first stages, rerankers, fusions."""
        kind = self.first_stage.partition(":")[0] + ":"
        default = {COSINE: "cosine", DENSE: "dense"}.get(kind, FIRST_STAGE)
        first = _FIRST_ROWS.get(self.first_stage, default)
        return [first, *(self.first_stages or ()), *self.model_rows, *(self.fusions or ())]

    @property
    def reference(self) -> str:
        """The row that paired tests compare with."""
        if self.baseline in self.rows:
            return str(self.baseline)
        several = self.baseline is None and len(self.model_rows) > 1 and not self.fusions
        return self.model_rows[0] if several else self.rows[0]


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
            " or an object with `model` and any of allow_untrained, max_length, dtype, seed,"
            " passages, passage_length, passage_stride, and of an ensemble's weights and"
            " score_normalization; cosine:MODEL for an encoder. As a flag: the same in JSON."
        },
    )
    max_length: int | None = scoring_option(
        "max_length", help="How many tokens a pair has at most; by default what each model allows."
    )
    passages: str = scoring_option("passages")
    seed: int = scoring_option("seed")
    report: bool = field(
        default=False,
        metadata={"help": "Write report.html too: table, bars, queries won and lost with texts."},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        own = ("max_length", "passages", "seed")
        check_scoring_options({name: getattr(self, name) for name in own})
        self.rerankers = {
            name: check_model_row("reranker", name, row, _MODEL_OPTIONS)
            for name, row in read_mapping("rerankers", self.rerankers).items()
        }
        self.check_rows("rerankers")

    @property
    def model_rows(self) -> list[str]:
        return list(self.systems)

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """Arguments of each reranker, by the name of its row."""
        assert isinstance(self.rerankers, dict)
        common = {"max_length": self.max_length, "dtype": self.dtype, "seed": self.seed}
        if self.passages != default_of("passages"):
            common["passages"] = self.passages
        return {
            name: row
            if is_cosine(row["model"])
            else common | {key: value for key, value in row.items() if value is not None}
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
    if (
        isinstance(model, str)
        and is_cosine(model)
        and (others := sorted(options.keys() - {"model"}))
    ):
        raise HarpError(
            f"{kind} {name!r} is the cosine of an encoder, which takes no {', '.join(others)}: "
            "leave it out"
        )
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


def is_cosine(model: str | list[str]) -> bool:
    """Whether a model is named as an encoder, whose cosine ranks."""
    return isinstance(model, str) and model.startswith(COSINE)


def file_stem(row: str) -> str:
    """Write the name of a row as a file name, without its ending."""
    return re.sub(r"[^\w.+-]+", "-", row.lower()).strip("-.") or "unnamed"

"""What an evaluation is made of."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import HarpError
from ..files.made_from import OverwriteRules, keep_option, overwrite_option
from ..limits import COUNT, PAIR, SEED, Limits, check_limits

FIRST_STAGE = "first stage"
OF_THE_START = {
    *("output_dir", "index_dir", "quiet", "overwrite", "keep", "keep_checkpoints"),
    *("batch_tokens", "device"),
}
"""Options that change no result; the last two change the last bits of scores, by rounding."""
ENSEMBLE_KEYS = {"weights", "normalisation"}
RERANKER_KEYS = {"model", "allow_untrained", "max_length", "dtype", "seed"} | ENSEMBLE_KEYS
KINDS: dict[str, tuple[type, str]] = {
    "allow_untrained": (bool, "true or false"),
    "max_length": (int, "a whole number"),
    "dtype": (str, "a text"),
    "seed": (int, "a whole number"),
    "weights": (list, "a list of numbers"),
    "normalisation": (str, "a text"),
}
"""What a row's options must be; null leaves each to its default."""
LIMITS = {
    "depth": Limits(least=1, most=10**7),
    "batch_tokens": COUNT,
    "bm25_k1": Limits(least=0, most=1e6),
    "bm25_b": Limits(least=0, most=1),
}
ROW_LIMITS = {"max_length": PAIR, "seed": SEED}
WEIGHT_LIMITS = {"weights": Limits(least=0, most=1e9)}


@dataclass
class ExperimentOptions:
    """What a first stage, a table and its tests need; `evaluate` and `cross_validate` share them.

    Raises:
        HarpError: a value has no sense; the message names the option.
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
    fields: list[str] | None = field(
        default=None,
        metadata={
            "help": "Document fields, joined by a space; by default the text that the dataset"
            " recommends."
        },
    )
    measures: list[str] = field(
        default_factory=lambda: ["nDCG@10", "RR@10", "AP"],
        metadata={"help": "Measures as ir_measures writes them."},
    )
    baseline: str | None = field(
        default=None,
        metadata={
            "help": "Row that paired t-tests compare with: a reranker's name or `first stage`; by"
            " default the first reranker where there are several, else the first stage."
        },
    )
    correction: str = field(
        default="none",
        metadata={
            "help": "Of the p-values of a measure for the number of its tests: none or holm.",
            "choices": ["none", "holm"],
        },
    )
    output_dir: str = field(
        default="harp-output/evaluation",
        metadata={"help": "Folder of runs/*.run and results.json."},
    )
    index_dir: str | None = field(
        default=None,
        metadata={"help": "Folder of BM25 indexes; by default OUTPUT_DIR/index."},
    )
    bm25_k1: float = field(
        default=0.9, metadata={"help": "BM25: how slowly repeated words saturate."}
    )
    bm25_b: float = field(
        default=0.4, metadata={"help": "BM25: how much long documents are discounted."}
    )
    batch_tokens: int | None = field(
        default=None, metadata={"help": "Tokens of a batch; by default what memory allows."}
    )
    device: str | None = field(
        default=None,
        metadata={"help": "Such as cpu or cuda:1; by default CUDA where there is one."},
    )
    dtype: str = field(
        default="float32", metadata={"help": "float32, bfloat16, float16, or int8 on a CPU."}
    )
    overwrite: bool = overwrite_option()
    keep: bool = keep_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})

    def __post_init__(self) -> None:
        self.dataset = self.dataset.removeprefix("irds:")
        self.output_dir = str(self.output_dir)
        check_limits(self, LIMITS)
        check_dtype(self.dtype)
        if not self.measures:
            raise HarpError("measures is empty: name one, such as nDCG@10")
        if self.correction not in ("none", "holm"):
            raise HarpError(f"unknown correction {self.correction!r}: name none or holm")

    def check_rows(self, kind: str) -> None:
        """Find that every row has a file of its own and that the baseline is a row.

        Args:
            kind: what the rows below the first are called, in errors.

        Raises:
            HarpError: either is not so.
        """
        names = self.rows[1:]
        files = [slug(name) for name in (FIRST_STAGE, "bm25", *names)]
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
        given = asdict(self).items()
        return {name: value for name, value in given if name not in OF_THE_START}

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
        HarpError: a value has no sense; the message names the option.
    """

    rerankers: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Rerankers by the name of their row: a model, a list of models (an ensemble),"
            " or an object with `model` and any of allow_untrained, max_length, dtype, seed, and"
            " of an ensemble's weights and normalisation. As a flag: the same in JSON."
        },
    )
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens of a pair; by default what each model allows."}
    )
    seed: int = field(default=0, metadata={"help": "Draws the weights of untrained heads."})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limits(self, ROW_LIMITS)
        given = by_name("rerankers", self.rerankers)
        self.rerankers = {name: _reranker(name, value) for name, value in given.items()}
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
            name: common | {key: value for key, value in given.items() if value is not None}
            for name, given in self.rerankers.items()
        }


def by_name(option: str, given: Any) -> dict[str, Any]:
    """Read an option that maps names to values, given as a mapping or as JSON text.

    Raises:
        HarpError: it is neither.
    """
    if isinstance(given, str):
        try:
            return by_name(option, json.loads(given))
        except ValueError as error:
            raise HarpError(f"{option} is no JSON ({error}): {given!r:.60}") from None
    if not isinstance(given, dict | None):
        raise HarpError(f"{option} is {given!r:.60}: it must map names to values")
    return given or {}


def check_model(kind: str, name: str, arguments: Any, known: set[str]) -> dict[str, Any]:
    """Find that a row names its model, or the models of its ensemble, and only known options.

    Args:
        kind: what such a row is called, in errors.
        name: of the row.
        arguments: what is given for it: a model, a list of models, or an object of options.
        known: names of those options.

    Returns:
        The object of options.

    Raises:
        HarpError: it does not.
    """
    given = {"model": arguments} if isinstance(arguments, str | list) else arguments
    model = given.get("model") if isinstance(given, dict) else None
    models = model if isinstance(model, list) else [model]
    if not models or not all(isinstance(one, str) for one in models):
        raise HarpError(f"{kind} {name!r} is {arguments!r:.60}: name its model")
    unknown = sorted(set(given) - known)
    if unknown:
        raise HarpError(
            f"{kind} {name!r} has unknown {', '.join(unknown)}:"
            f" known are {', '.join(sorted(known))}"
        )
    if not isinstance(model, list) and ENSEMBLE_KEYS & set(given):
        raise HarpError(f"{kind} {name!r} is one model: weights and normalisation need several")
    _check_values(f"{kind} {name!r}: ", given)
    return given


def _check_values(where: str, given: dict[str, Any]) -> None:
    for name, (kind, words) in KINDS.items():
        value = given.get(name)
        numbers = value if isinstance(value, list) else []
        fits = type(value) is kind and all(type(one) in (int, float) for one in numbers)
        if value is not None and not fits:
            raise HarpError(f"{where}{name} is {value!r:.60}: it must be {words}")
    limits = ROW_LIMITS | WEIGHT_LIMITS
    check_limits({name: given.get(name) for name in limits}, limits, where)
    if given.get("dtype") is not None:
        check_dtype(given["dtype"], where)


def check_dtype(dtype: str, where: str = "") -> None:
    """Find that a reranker's dtype is known.

    Raises:
        HarpError: it is not.
    """
    from ..ranking.loading import DTYPES  # it imports torch

    if dtype not in DTYPES:
        raise HarpError(f"{where}unknown dtype {dtype!r:.60}: choose one of {', '.join(DTYPES)}")


def _reranker(name: str, value: Any) -> dict[str, Any]:
    return check_model("reranker", name, value, RERANKER_KEYS)


def slug(name: str) -> str:
    """The name of a row as a file name."""
    return re.sub(r"[^\w.+-]+", "-", name.lower()).strip("-.") or "unnamed"

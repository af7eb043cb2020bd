"""What an evaluation is made of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import HarpError

FIRST_STAGE = "first stage"
RERANKER_KEYS = {"model", "allow_untrained", "max_length", "dtype", "seed"}


@dataclass
class EvaluationOptions:
    """Options of `evaluate`, for flags or a JSON recipe.

    Raises:
        HarpError: a value has no sense; the message names the option.
    """

    dataset: str = field(
        metadata={"help": "ir_datasets id with queries and judgements, such as vaswani."}
    )
    rerankers: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Rerankers by the name of their row: a model, or an object with `model` and any"
            " of allow_untrained, max_length, dtype, seed. As a flag: the same in JSON."
        },
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
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens of a pair; by default what each model allows."}
    )
    batch_tokens: int = field(
        default=8192, metadata={"help": "Tokens of a batch, padding included."}
    )
    device: str | None = field(
        default=None,
        metadata={"help": "Such as cpu or cuda:1; by default CUDA where there is one."},
    )
    dtype: str = field(
        default="float32", metadata={"help": "Of the weights: float32, bfloat16 or float16."}
    )
    seed: int = field(default=0, metadata={"help": "Draws the weights of untrained heads."})
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})

    def __post_init__(self) -> None:
        self.dataset = self.dataset.removeprefix("irds:")
        self.output_dir = str(self.output_dir)
        if self.depth < 1:
            raise HarpError(f"depth is {self.depth}: it must be at least 1")
        if not self.measures:
            raise HarpError("measures is empty: name one, such as nDCG@10")
        self.rerankers = _rerankers(self.rerankers)
        files = [slug(name) for name in (FIRST_STAGE, "bm25", *self.systems)]
        if len(set(files)) < len(files):
            raise HarpError(
                f"rerankers {', '.join(self.systems)}: two rows would share a file name with each"
                f" other, with bm25 or with {FIRST_STAGE!r}; name them otherwise"
            )
        if self.baseline not in (None, FIRST_STAGE, *self.rows):
            raise HarpError(f"unknown baseline {self.baseline!r}: rows are {', '.join(self.rows)}")

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """Arguments of each reranker, by the name of its row."""
        assert isinstance(self.rerankers, dict)
        common = {"max_length": self.max_length, "dtype": self.dtype, "seed": self.seed}
        return {name: common | given for name, given in self.rerankers.items()}

    @property
    def rows(self) -> list[str]:
        """Names of the table's rows, the first stage's at the head."""
        return ["BM25" if self.first_stage == "bm25" else FIRST_STAGE, *self.systems]

    @property
    def reference(self) -> str:
        """The row that paired tests compare with."""
        if self.baseline in self.rows:
            return str(self.baseline)
        several = self.baseline is None and len(self.systems) > 1
        return self.rows[1] if several else self.rows[0]


def _rerankers(given: dict[str, Any] | str | None) -> dict[str, dict[str, Any]]:
    if isinstance(given, str):
        try:
            return _rerankers(json.loads(given))
        except ValueError as error:
            raise HarpError(f"rerankers is no JSON ({error}): {given!r:.60}") from None
    if not isinstance(given, dict | None):
        raise HarpError(f"rerankers is {given!r:.60}: it must map names to models")
    return {name: _reranker(name, value) for name, value in (given or {}).items()}


def _reranker(name: str, value: Any) -> dict[str, Any]:
    arguments = {"model": value} if isinstance(value, str) else value
    if not isinstance(arguments, dict) or not isinstance(arguments.get("model"), str):
        raise HarpError(f"reranker {name!r} is {value!r:.60}: name its model")
    unknown = sorted(set(arguments) - RERANKER_KEYS)
    if unknown:
        raise HarpError(
            f"reranker {name!r} has unknown {', '.join(unknown)}:"
            f" known are {', '.join(sorted(RERANKER_KEYS))}"
        )
    return arguments


def slug(name: str) -> str:
    """The name of a row as a file name."""
    return re.sub(r"[^\w.+-]+", "-", name.lower()).strip("-.") or "unnamed"

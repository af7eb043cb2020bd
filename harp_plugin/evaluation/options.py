"""What an evaluation is made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from ..errors import HarpError
from ..models.loading import COSINE
from ..options import (
    Count,
    Fraction,
    Interval,
    Options,
    Overwriting,
    Progress,
    Seed,
    flag,
    option,
    option_types,
)
from ..ranking.options import (
    EnsembleOptions,
    MaxLength,
    ModelOptions,
    PassageOptions,
    ScoringOptions,
    WindowOptions,
)

__all__ = [
    "COSINE",
    "DENSE",
    "FIELDED_BM25",
    "FIRST_STAGE",
    "LEARN",
    "SAVED_PIPELINE",
    "SCORED_DOCUMENTS",
    "EvaluationOptions",
    "ExperimentOptions",
    "Fusion",
    "RerankOptions",
    "file_stem",
    "is_cosine",
    "model_row",
]

FIRST_STAGE = "first stage"
"""Name of the row of a first stage that has no other name."""
FIELDED_BM25 = "fielded-bm25"
DENSE = "dense:"
"""How a first stage begins that searches an index of `harp index`; the folder follows."""
SAVED_PIPELINE = "pipeline:"
"""How a first stage begins that `HarpPipeline.save` wrote; the folder follows."""
SCORED_DOCUMENTS = "scoreddocs"
"""The first stage that a dataset of ir_datasets brings along, such as the official top 100."""
LEARN = "learn"
"""The weights of a fusion that are learnt."""
_RRF = "rrf"
_OTHERS = (COSINE, DENSE, SAVED_PIPELINE, SCORED_DOCUMENTS)
_FIRST_ROWS = {"bm25": "BM25", FIELDED_BM25: "fielded BM25"}
_FIRST_ROWS |= {name: name.removesuffix(":") for name in _OTHERS}
_WITHOUT_EFFECT = {
    *("output_dir", "index_dir", "quiet", "overwrite", "accept_other_versions"),
    *("keep_checkpoints", "report", "device", "batch_tokens", "allow_functions"),
}
"""Options that change no result; some change the last bits of scores, by rounding."""


@dataclass(kw_only=True)
class Fusion(Options):
    """A row that fuses other rows.

    Attributes:
        of: The rows that are fused; the first is the one to fall back to.
        weights: learn, rrf, or the weight of each row.
        normalization: How the scores of a query are brought to one scale.
        candidates: Rank the documents of the first row, or of any.
        measure: By which weights are learned.
        train_dataset: Dataset from whose queries weights are learned.
    """

    of: list[str] = option([])
    weights: Literal["learn", "rrf"] | dict[str, float] = option(LEARN)
    normalization: Literal["zscore", "minmax", "rrf"] = "zscore"
    candidates: Literal["first", "union"] = "first"
    measure: str | None = None
    train_dataset: str | None = None

    @property
    def is_learnt(self) -> bool:
        """Whether the weights are learned."""
        return self.weights == LEARN

    @classmethod
    def from_row(cls, name: str, row: Any, rows: Collection[str]) -> Fusion:
        """Read an entry of the option ``fusions``.

        Args:
            name: of the row.
            row: a list of rows, or an object of options.
            rows: names of the rows that can be fused.

        Raises:
            HarpError: an option is unknown or makes no sense; the message names the fusion.
        """
        from ..options_parser import recipe_values  # it loads transformers

        where = f"fusion {name!r}"
        values = {"of": row} if isinstance(row, list) else row
        if not isinstance(values, dict):
            raise HarpError(f"{where} is {row!r:.60}: list the rows that it is made of, in `of`")
        given = {name: value for name, value in values.items() if value is not None}
        fusion = cls(**recipe_values(given, [cls], where))
        for part in fusion.of:
            if part not in rows:
                raise HarpError(f"{where}: {part!r:.60} is not a row: choose of {', '.join(rows)}")
        if len(fusion.of) < 2 or len(set(fusion.of)) < len(fusion.of):
            named = ", ".join(fusion.of) or "nothing"
            raise HarpError(f"{where} is of {named}: name two or more rows once")
        return fusion._with_weights(where, values)

    def _with_weights(self, where: str, values: Mapping[str, Any]) -> Fusion:
        if self.is_learnt:
            if self.measure:
                from ..ranking.ranking_measures import parse_measure  # it imports pandas

                parse_measure(self.measure)
            return self
        for name in ("measure", "train_dataset"):
            if getattr(self, name) is not None:
                raise HarpError(f"{where}: {name} is for weights that are learned: leave it out")
        if self.weights == _RRF:
            if values.get("normalization") not in (None, _RRF):
                raise HarpError(f"{where}: weights rrf need no normalization: leave it out")
            return replace(self, normalization="rrf", weights=dict.fromkeys(self.of, 1.0))
        from ..ranking.candidates import check_weights  # it imports pandas

        assert isinstance(self.weights, dict)
        try:
            return replace(self, weights=check_weights(self.of, self.weights))
        except HarpError as error:
            raise HarpError(f"{where}: {error}") from error


@dataclass(kw_only=True)
class ExperimentOptions(ScoringOptions, Overwriting, Progress):
    """What a first stage, a table and its tests need; `evaluate` and `cross_validate` share them.

    Attributes:
        dataset: ir_datasets id with queries and judgments, such as vaswani.
        first_stage: bm25 (PISA), fielded-bm25 (over fields with weights), cosine:MODEL (of a
            sentence-transformers encoder), dense:FOLDER (what `harp index` made), pipeline:FOLDER
            (a saved HarpPipeline), scoreddocs (what the dataset brings along), the path of a TREC
            run (.gz too), or with --allow-functions module:function, which takes these options and
            returns a PyTerrier transformer.
        allow_functions: Call a first stage that is module:function. No recipe can say this: a
            function may do anything.
        depth: How many results of the first stage are reranked and evaluated.
        measures: Measures as ir_measures writes them.
        first_stages: Further first stages by the name of their row, each written as first_stage is.
            Nothing reranks them. As a flag: JSON.
        fusions: Fusions by the name of their row: a list of other rows, or an object with that list
            as `of` and any of weights (learn, rrf, or the weight of each row), normalization,
            candidates, measure and train_dataset. Learnt weights are never those of a query's own
            fold. As a flag: JSON.
        baseline: Row that paired t-tests compare with: the name of a row, or `first stage`; by
            default the first reranker where there are several and no fusion, else the first stage.
        correction: How the p-values of a measure are corrected for the number of its tests: none or
            holm.
        output_dir: Folder for runs/*.run and results.json.
        index_dir: Folder for indexes of first stages; by default OUTPUT_DIR/index.
        bm25_k1: BM25: a larger number gives repeated words more weight.
        bm25_b: BM25: a larger number gives long documents less weight.
        field_weights: fielded-bm25: the weights of its fields; by default 1 for each of `fields`,
            or for all fields with a text. As a flag: in JSON, such as {"title": 3, "text": 1}.
        tuning_dataset: fielded-bm25: ir_datasets id of other queries on the same documents, whose
            judgments choose weights, k1 and b, by the first of the measures.
        tuning_queries: fielded-bm25: how many of those queries are read at most; by default all.
            They are drawn at random, the same ones in each run.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    only_flags = frozenset({"allow_functions"})

    dataset: str
    first_stage: str = "bm25"
    allow_functions: bool = False
    depth: Annotated[int, Interval(ge=1, le=10**7)] = 100
    measures: list[str] = option(["nDCG@10", "RR@10", "AP"])
    first_stages: dict[str, str] = option({})
    fusions: dict[str, Any] = option({})
    baseline: str | None = None
    correction: Literal["none", "holm"] = "none"
    output_dir: str = "harp-output/evaluation"
    index_dir: str | None = None
    bm25_k1: Annotated[float, Interval(ge=0, le=1e6)] = 0.9
    bm25_b: Fraction = 0.4
    field_weights: dict[str, Any] | None = None
    tuning_dataset: str | None = None
    tuning_queries: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dataset = self.dataset.removeprefix("irds:")
        self.tuning_dataset = self.tuning_dataset and self.tuning_dataset.removeprefix("irds:")
        if not self.measures:
            raise HarpError("--measures is empty: name one, such as nDCG@10")

    @property
    def fused_rows(self) -> dict[str, Fusion]:
        """The fusions, by row."""
        return {row: Fusion(**entry) for row, entry in self.fusions.items()}

    @property
    def index_folder(self) -> Path:
        """The folder for indexes."""
        return Path(self.index_dir or Path(self.output_dir) / "index")

    @property
    def run_paths(self) -> dict[str, Path]:
        """The file of each row's run."""
        folder = Path(self.output_dir) / "runs"
        return {row: folder / f"{file_stem(row)}.run" for row in self.rows}

    @property
    def settings(self) -> dict[str, Any]:
        """The options that decide the results."""
        return {k: value for k, value in asdict(self).items() if k not in _WITHOUT_EFFECT}

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that a record shows: all but those that only say what may be replaced."""
        left_out = asdict(Overwriting())
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @property
    def model_rows(self) -> list[str]:
        """Names of the table's rows whose models rerank the first stage."""
        raise NotImplementedError

    @property
    def rows(self) -> list[str]:
        """Names of the table's rows: first stages, rerankers, fusions."""
        kind, colon, _ = self.first_stage.partition(":")
        first = _FIRST_ROWS.get(kind + colon, FIRST_STAGE)
        return [first, *self.first_stages, *self.model_rows, *self.fusions]

    @property
    def reference(self) -> str:
        """The row that paired tests compare with."""
        if self.baseline in self.rows:
            return str(self.baseline)
        several = self.baseline is None and len(self.model_rows) > 1 and not self.fusions
        return self.model_rows[0] if several else self.rows[0]

    def check_rows(self, kind: str) -> None:
        """Check the rows of the table together, when the models' rows are read.

        Args:
            kind: what the models' rows are called, in errors.

        Raises:
            HarpError: two rows would share a file, a fusion is at fault, the baseline is not a row,
                or an option is of a first stage that is not there.
        """
        self._check_first_stages()
        single_rows = [row for row in self.rows if row not in self.fusions]
        self.fusions = {
            name: asdict(Fusion.from_row(name, row, single_rows))
            for name, row in self.fusions.items()
        }
        first, *names = self.rows
        first_rows = dict.fromkeys([FIRST_STAGE, first])
        files = [file_stem(name) for name in (*first_rows, *names)]
        if len(set(files)) < len(files):
            raise HarpError(
                f"{kind} {', '.join(names)}: two rows would share a file name with each"
                f" other or with one of {', '.join(first_rows)}; name them otherwise"
            )
        if self.baseline not in (None, FIRST_STAGE, *self.rows):
            raise HarpError(f"unknown baseline {self.baseline!r}: rows are {', '.join(self.rows)}")

    def _check_first_stages(self) -> None:
        """Refuse options of a first stage that is not there, which would change nothing."""
        if self.tuning_queries and not self.tuning_dataset:
            raise HarpError("--tuning-queries needs --tuning-dataset: name the dataset they are of")
        if FIELDED_BM25 in (self.first_stage, *self.first_stages.values()):
            return
        for name in ("field_weights", "tuning_dataset"):
            if getattr(self, name):
                raise HarpError(
                    f"{flag(name)} needs --first-stage {FIELDED_BM25}: give that, or leave "
                    f"{flag(name)} out"
                )


@dataclass(kw_only=True)
class EvaluationOptions(ExperimentOptions, PassageOptions):
    """What is reranked, and what is written of it.

    Attributes:
        rerankers: Rerankers by the name of their row: a model, a list of models (an ensemble), or
            an object with `model` and any of allow_untrained, max_length, dtype, seed, passages,
            passage_length, passage_stride, and of an ensemble's weights and score_normalization;
            cosine:MODEL for an encoder. As a flag: the same in JSON.
        max_length: How many tokens a pair has at most; by default as many as in
            the training of a model of harp, and as many as others allow.
        seed: Seed by which the weights of untrained heads are drawn.
        report: Write report.html too: table, bars, queries won and lost with texts.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    rerankers: dict[str, Any] = option({})
    max_length: MaxLength | None = None
    seed: Seed = 42
    report: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rerankers = {
            name: model_row(f"reranker {name!r}", row, ModelOptions)
            for name, row in self.rerankers.items()
        }
        self.check_rows("rerankers")

    @property
    def model_rows(self) -> list[str]:
        return list(self.rerankers)

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """Arguments of each reranker, by the name of its row."""
        names = [name for name in option_types(ModelOptions) if hasattr(self, name)]
        common = {name: getattr(self, name) for name in names}
        return {
            name: row | {"dtype": self.dtype} if is_cosine(row["model"]) else common | row
            for name, row in self.rerankers.items()
        }


def model_row(where: str, row: Any, declared: type[EnsembleOptions]) -> dict[str, Any]:
    """Read what an option says of one row: its model, or the models of its ensemble, and options.

    Args:
        where: what the row is called, in errors.
        row: a model, a list of models, or an object of ``model`` and options.
        declared: the options that such a row may have.

    Returns:
        The options that the row names.

    Raises:
        HarpError: the row names no model, or has an option that is unknown or makes no sense.
    """
    from ..options_parser import recipe_values

    options = {"model": row} if isinstance(row, str | list) else row
    if not isinstance(options, dict) or not options.get("model"):
        raise HarpError(f"{where} is {row!r:.60}: name its model")
    named = {name: value for name, value in options.items() if value is not None}
    options = recipe_values(named, [declared], where)
    model, others = options["model"], sorted(options.keys() - {"model"})
    if is_cosine(model) and others:
        raise HarpError(
            f"{where} is the cosine of an encoder, which takes no {', '.join(others)}: leave it out"
        )
    of_ensembles = option_types(EnsembleOptions)
    if isinstance(model, str) and options.keys() & of_ensembles:
        raise HarpError(f"{where} is one model: {' and '.join(of_ensembles)} need several")
    return options


def is_cosine(model: str | list[str]) -> bool:
    """Return whether a model is named as an encoder, whose cosine ranks."""
    return isinstance(model, str) and model.startswith(COSINE)


def file_stem(row: str) -> str:
    """Write the name of a row as a file name, without its ending."""
    return re.sub(r"[^\w.+-]+", "-", row.lower()).strip("-.") or "unnamed"


@dataclass(kw_only=True)
class RerankOptions(ScoringOptions, WindowOptions, Overwriting, Progress):
    """What is reranked, and where it is written.

    Attributes:
        dataset: ir_datasets id of the queries and documents, such as irds:vaswani.
        model: Reranker: a folder, a name on the Hugging Face hub, or package:NAME for a Python
            package that carries one.
        output: TREC run that is written: a name that ends in .gz is compressed, and - is standard
            output; by default RUN.reranked.run.gz in the folder of the run.
        depth: How many results of each query are reranked and kept; by default all.
        max_length: How many tokens a pair has at most; by default as many as in
            the training of a model of harp, and as many as others allow.
        device: Device that scores, such as cpu or cuda:1, or several; by default CUDA where there
            is one.
        tag: Name of the system, in the last column of the run.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    dataset: str
    model: str
    output: str | None = None
    depth: Count | None = None
    max_length: MaxLength | None = None
    device: list[str] | None = None  # type: ignore[assignment]
    tag: str = "harp"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.tag.split()) != 1:
            raise HarpError(f"--tag is {self.tag!r}: it must be one word")

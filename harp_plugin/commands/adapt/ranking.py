"""The systems of `harp adapt`, the table of what they gain, and the pipeline of them all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collections.dataset import Dataset, JudgedDataset
from ...work.artifact import Artifact, Provenance
from ...work.provenance import package_versions, scoring_versions
from ...work.records import read_record, write_record
from ..steps import options_of_every_step, say, tell
from .budget import encoder_reading, ranking_dtype
from .options import AdaptOptions
from .training import DEPTH, FEWEST_TRAIN_QUERIES, query_count, train_query_count

if TYPE_CHECKING:
    import pyterrier as pt

    from ...evaluation import Results
    from ...ranking.fusion_weights import Gain

__all__ = [
    "BY_RANKS",
    "FEWEST_QUERIES",
    "FIELD_WEIGHTS",
    "FIRST_STAGE",
    "FUSED",
    "LEARNED",
    "RERANKED",
    "Systems",
    "make_indexes",
]

FIRST_STAGE = "fielded BM25"
"""The row of BM25 over fields, tuned where there are queries for it."""
LEARNED = "learned ranking"
"""The row of the ranker that has learned from the train queries."""
RERANKED = "with cross-encoder"
"""The row of the fusion with the cross-encoder."""
FUSED = "fielded BM25 + cosine"
"""The row of the fusion without anything that has learned."""
BY_RANKS = f"{FUSED}, by ranks"
"""The row of the same, where there are too few queries to choose weights by."""
FIELD_WEIGHTS = {"title": 5.0, "headings": 1.0, "text": 0.25, "anchor_text": 0.5}
"""The weights of BM25 over fields where no queries tune it; they suit other manuals and sites."""
FEWEST_QUERIES = 25
"""With fewer judged queries, nothing is chosen or measured by them: ten of them would be test."""
_DENSE = "cosine"
_RERANKER = "cross-encoder"
_CANDIDATES = "union"
"""Of the fusions with the cosine: its results are not a subset of BM25's."""
_MEASURES = ["RR@10", "nDCG@10"]
_LEARNT_BY = "nDCG@10"
"""It varies less than RR@10 between queries, so that fewer of them show a gain."""
_FIELDS = ("title", "headings", "text")
"""Not anchor texts: a page whose links are held out has none, which would give it away."""
_LEARNED_LEVEL = 0.16
"""Of the test of the learned ranking: about the rule of one standard error.

No ranking that passed was significantly worse on test than BM25 over fields; at 5 %, dev, which has
few queries, refused a good one.
"""
_NAMED_FEATURES = 5
_TUNING_QUERIES = 500
"""More of them choose no better weights, and take minutes."""
_GAIN = "gain.json"
_LEAST_WEIGHT = 0.5
"""Of the cosine among the candidates of the ranker, next to 1 for BM25 over fields."""


@dataclass(frozen=True)
class Systems:
    """What ranks: BM25 over fields, the cosine, and what has learned so far.

    The cosine ranks all pages, not BM25's results alone: on a wiki, whose links say in other words
    what their page is about, it finds pages that BM25 does not.

    Attributes:
        options: of the command.
        ranker: folder of the learned ranking, which ranks in place of BM25; None if there is none,
            or if dev shows no sure gain.
        reranker: folder of the cross-encoder; None if there is none.
    """

    options: AdaptOptions
    ranker: Path | None = None
    reranker: str | None = None

    def evaluate(self) -> Results:
        """Rank the test queries by all systems, with weights from dev or from the other folds.

        The table replaces that of fewer systems. What those found is not searched for again.
        """
        from ...evaluation import EvaluationOptions, evaluate
        from ...evaluation.options import SAVED_PIPELINE
        from ...ranking import HarpPipeline

        options = self.options
        say("evaluate", f"{', '.join(self._rows)} and their fusion on the test queries")
        folders = {_DENSE: HarpPipeline(self._cosine).save(options.folder / _DENSE).parent}
        if self.ranker is not None:
            folders[LEARNED] = self.ranker
        if self.reranker is not None:
            reranked = HarpPipeline(self._reranked)
            folders[_RERANKER] = reranked.save(options.folder / _RERANKER).parent
        stages = {row: f"{SAVED_PIPELINE}{folder}" for row, folder in folders.items()}
        return evaluate(
            EvaluationOptions(
                dataset=options.dataset("test"),
                first_stage="fielded-bm25",
                tuning_dataset=self._tuning,
                tuning_queries=_TUNING_QUERIES if self._tuning else None,
                field_weights=None if self._tuning else FIELD_WEIGHTS,
                first_stages={"BM25": "bm25", **stages},
                fusions=self._fusions,
                depth=DEPTH,
                dtype=ranking_dtype(),
                measures=_MEASURES,
                baseline=FIRST_STAGE,
                correction="holm",
                report=True,
                output_dir=str(options.folder / "evaluation"),
                index_dir=str(options.folder / "index"),
                **options_of_every_step(options) | {"overwrite": True},
            )
        )

    def evaluate_own_queries(self, own: JudgedDataset, row: str) -> Results:
        """Rank the user's own queries by BM25 over fields and by the saved pipeline, named ``row``.

        `save` has to have been called. The measures are written to ``own-queries.json``.
        """
        from ...evaluation.results import Results, averages, groups_of_queries, paired_tests
        from ...ranking import HarpPipeline

        pipeline = HarpPipeline.load(self.options.folder).pipeline
        measured = self._measured({row: pipeline}, own, _MEASURES)
        path = self.options.folder / "own-queries.json"
        write_record(path, measured)
        title = f"{len(own.topics)} queries of {self.options.queries}, top {DEPTH}"
        groups = groups_of_queries(own.qrels)
        tests = paired_tests(measured, FIRST_STAGE, groups)
        means = averages(measured)
        return Results(title, path, FIRST_STAGE, measured, means, tests, groups=groups)

    def save(self) -> None:
        """Save all systems as a pipeline, with weights that dev or all queries have chosen.

        `evaluate` has to have been called where there are queries for it.
        """
        from ...ranking import HarpPipeline

        HarpPipeline(self._fusion).save(self.options.folder)

    def make_indexes(self) -> None:
        """Make the indexes that the pipeline needs, where `evaluate` has not made them."""
        say("index", "all pages, and their vectors")
        make_indexes(self._fusion, self.options.dataset("test"))

    def learn(self) -> Path | None:
        """Learn from the train queries to rank what BM25 over fields and the cosine find.

        `evaluate` has to have been called. The learned ranking has to rank the dev queries better
        than BM25 over fields, and no worse than the sum with the cosine; where there are none, the
        test queries.

        Returns:
            The folder of the pipeline; None if there are no train queries, or if a one-sided paired
            t-test is not sure of a gain.
        """
        from ...ranking import HarpPipeline
        from ...ranking.dense import WordSimilarity
        from ...ranking.fielded import LexicalFeatures
        from ...ranking.fusion import StageBefore
        from ...ranking.fusion_weights import Gain
        from ...ranking.learned import LearnedRanker

        folder = self.options.folder / "ranker"
        if not query_count(self.options, "train"):
            return None
        train = JudgedDataset(self.options.dataset("train"))
        dev = JudgedDataset(self._dev or self.options.dataset("test"))
        lexical = LexicalFeatures(self._bm25.index, fields=_FIELDS)
        words = WordSimilarity(self.options.cosine_encoder, dataset=self._cosine.dataset)
        features = StageBefore() ** lexical**self._cosine**words
        names = ["BM25 and cosine", *lexical.names, "cosine", "word similarity"]
        ranker = LearnedRanker(seed=self.options.seed, feature_names=names)
        pipeline = self._candidates % DEPTH >> features >> ranker
        made_from = Provenance(
            {
                "train": train.identity,
                "dev": dev.identity,
                "systems": self._chosen,
                "features": names,
                "encoder": self._cosine.encoder.fingerprint,
                "max_length": self._cosine.max_length,
                "max_passages": self._cosine.max_passages,
                "seed": self.options.seed,
            },
            scoring_versions() | package_versions("lightgbm", "numpy", "scipy"),
        )

        def fill(temporary: Path) -> None:
            say("learn", f"to rank, from {len(train.topics):,} queries of the train split")
            pipeline.fit(train.topics, train.qrels)
            HarpPipeline(pipeline).save(temporary)
            write_record(temporary / _GAIN, asdict(self._gain(pipeline, dev)))
            best = ranker.importances.nlargest(_NAMED_FEATURES)
            shares = (f"{name} ({share:.0%})" for name, share in best.items())
            tell(f"most important: {', '.join(shares)}")

        rules = replace(self.options.rules, overwrite=True)  # it takes a minute
        Artifact(folder, "ranker", made_from, rules).make(fill)
        gain = Gain(**read_record(folder / _GAIN))
        verdict = "it ranks from now on" if gain.is_sure else f"not surely more than {FUSED}"
        tell(
            f"on {len(dev.topics)} {'dev' if self._dev else 'test'} queries, it changes "
            f"{_LEARNT_BY} of {FIRST_STAGE} by {gain.mean:+.4f} "
            f"(standard error {gain.standard_error:.4f}): {verdict}"
        )
        return folder if gain.is_sure else None

    def _gain(self, pipeline: pt.Transformer, dev: JudgedDataset) -> Gain:
        """Measure what a pipeline gains over BM25 over fields on the dev queries.

        A gain is not sure where what ranks without the pipeline has more.
        """
        from ...ranking.fusion_weights import Gain

        systems = {FUSED: self._fusion, LEARNED: pipeline}
        measured = self._measured(systems, dev, [_LEARNT_BY])
        before, fused, after = (
            np.array(list(measured[row][_LEARNT_BY].values())) for row in (FIRST_STAGE, *systems)
        )
        gain = Gain.from_queries(after - before, _LEARNED_LEVEL)
        return replace(gain, is_sure=gain.is_sure and bool(after.mean() >= fused.mean()))

    def _measured(
        self, systems: dict[str, pt.Transformer], dataset: JudgedDataset, measures: list[str]
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Measure systems by row, and BM25 over fields, on the queries of a dataset."""
        from ...evaluation.results import measure_runs, parse_measures

        runs = {
            row: system.transform(dataset.topics)
            for row, system in {FIRST_STAGE: self._bm25, **systems}.items()
        }
        return measure_runs(runs, dataset.topics, dataset.qrels, parse_measures(measures))

    @cached_property
    def can_be_measured(self) -> bool:
        """Whether there are queries enough to choose by and to measure with."""
        judged = sum(query_count(self.options, split) for split in ("dev", "test"))
        return judged + train_query_count(self.options) >= FEWEST_QUERIES

    @cached_property
    def _dev(self) -> str | None:
        """The dataset that weights are learned from; None where folds of test are."""
        return self.options.dataset("dev") if query_count(self.options, "dev") else None

    @cached_property
    def _tuning(self) -> str | None:
        """The dataset that BM25 over fields is tuned on.

        Train, so that dev has not chosen the weights. Dev, where train has too few queries, or
        texts of links, which stand in its anchor texts.
        """
        has_train = train_query_count(self.options) >= FEWEST_TRAIN_QUERIES
        return self.options.dataset("train") if has_train else self._dev

    @property
    def _rows(self) -> list[str]:
        """What ranks: the learned ranking has BM25 and the cosine as its features."""
        return [
            FIRST_STAGE if self.ranker is None else LEARNED,
            *[_DENSE] * (self.ranker is None),
            *[_RERANKER] * (self.reranker is not None),
        ]

    @property
    def best_row(self) -> str:
        """The row of all systems."""
        if not self.can_be_measured:
            return BY_RANKS
        if self.reranker is not None:
            return RERANKED
        return FUSED if self.ranker is None else LEARNED

    @property
    def saved_row(self) -> str:
        """The row of the saved pipeline: that of fewer systems where no gain of others was sure."""
        weights = self._chosen["fusion"] if self.can_be_measured else {}
        used = [row for row, weight in weights.items() if weight]
        if len(used) == 1:
            return used[0]
        return FUSED if used == [FIRST_STAGE, _DENSE] else self.best_row

    @property
    def _fusions(self) -> dict[str, Any]:
        """The rows of fusions, whose weights are learned on dev."""
        of = {FUSED: [FIRST_STAGE, _DENSE]}
        if self.reranker is not None:
            of[RERANKED] = self._rows
        learnt = {"train_dataset": self._dev, "measure": _LEARNT_BY, "candidates": _CANDIDATES}
        return {row: {"of": systems, **learnt} for row, systems in of.items()}

    @property
    def _results(self) -> dict[str, Any]:
        """What `evaluate` has written; nothing where there were too few queries for it."""
        path = self.options.folder / "evaluation" / "results.json"
        if not self.can_be_measured or not path.exists():
            return {}
        return json.loads(path.read_text(encoding="utf-8"))

    @cached_property
    def _tuned(self) -> dict[str, Any]:
        """The arguments of BM25 over fields, which queries chose where there are enough of them."""
        tuned = self._results.get("first_stage", {"weights": FIELD_WEIGHTS})
        return {name: tuned[name] for name in ("weights", "k1", "b") if name in tuned}

    @cached_property
    def _chosen(self) -> dict[str, Any]:
        """The arguments of BM25 over fields and the weights of the fusion that queries chose."""
        weights = {LEARNED: 1.0}
        if self.best_row != LEARNED:
            learnt = self._results["fusions"][self.best_row]["learnt"]
            weights = learnt[0]["weights"] if self._dev else self._weights_from_all()
        return {"bm25": self._tuned, "fusion": weights}

    @cached_property
    def _bm25(self) -> Any:
        from ...ranking.fielded import FieldedBm25, FieldedIndex

        index = FieldedIndex(self.options.dataset("test"), self.options.folder / "index")
        return FieldedBm25(index, **self._tuned, num_results=DEPTH)

    @cached_property
    def _cosine(self) -> Any:
        from ...ranking.dense import DenseCosine

        dataset, index = self.options.dataset("test"), self.options.folder / "index"
        index.mkdir(exist_ok=True)
        return DenseCosine(
            self.options.cosine_encoder,
            dataset=dataset,
            index_dir=index,
            **encoder_reading(dataset, self.options.seconds),
            num_results=DEPTH,
            dtype=ranking_dtype(),
        )

    def _weights_from_all(self) -> dict[str, float]:
        """Learn the weights of the fusion from all queries; the table has those of folds."""
        from ...evaluation.options import file_stem
        from ...evaluation.runs import read_run
        from ...ranking.fusion_weights import learn_weights

        folder = self.options.folder / "evaluation" / "runs"
        paths = {row: folder / f"{file_stem(row)}.run" for row in self._rows}
        runs = {row: read_run(path) for row, path in paths.items()}
        qrels = JudgedDataset(self.options.dataset("test")).qrels
        learnt = learn_weights(runs, qrels, _LEARNT_BY, candidates=_CANDIDATES)
        tell(f"for the pipeline: {learnt}")
        return learnt.weights

    @property
    def _candidates(self) -> pt.Transformer:
        """What the ranker ranks: it learns by itself how far to trust the cosine.

        No weight is from test queries. Where texts of links teach, BM25 reads no anchor texts: it
        would find each of them, word by word, in its page.
        """
        from ...ranking import HarpFusion
        from ...ranking.fielded import FieldedBm25

        index, tuned = self._bm25.index, dict(self._tuned)
        if not train_query_count(self.options):
            tuned["weights"] = {**tuned["weights"], "anchor_text": 0.0}
        bm25 = FieldedBm25(index, **tuned, num_results=DEPTH)
        systems = {FIRST_STAGE: bm25, _DENSE: self._cosine}
        weight = max(self._chosen["fusion"][_DENSE], _LEAST_WEIGHT) if self._dev else 1.0
        weights = {FIRST_STAGE: 1.0, _DENSE: weight}
        return HarpFusion(systems, weights=weights, candidates=_CANDIDATES)

    @cached_property
    def _first(self) -> pt.Transformer:
        """What finds the pages: the learned ranking, or BM25 over fields."""
        from ...ranking import HarpPipeline

        return self._bm25 if self.ranker is None else HarpPipeline.load(self.ranker).pipeline

    @property
    def _reranked(self) -> pt.Transformer:
        """The cross-encoder, on all pages that it is fused with: others have no score of it."""
        from ...ranking import HarpReranker

        dataset = self.options.dataset("test")
        reranker = HarpReranker(self.reranker, dataset=dataset, dtype=ranking_dtype())
        return self._first >> reranker

    @cached_property
    def _fusion(self) -> pt.Transformer:
        from ...ranking import HarpFusion

        systems: dict[str, Any] = {self._rows[0]: self._first}
        if _DENSE in self._rows:
            systems[_DENSE] = self._cosine
        if self.reranker is not None:
            systems[_RERANKER] = self._reranked
        if len(systems) == 1:
            return self._first
        if not self.can_be_measured:
            return HarpFusion(systems, normalization="rrf", candidates=_CANDIDATES)
        return HarpFusion(systems, weights=self._chosen["fusion"], candidates=_CANDIDATES)


def make_indexes(pipeline: pt.Transformer, dataset: str) -> None:
    """Make the indexes that a pipeline needs, by a search for the title of a document."""
    _, title = next(Dataset(dataset, ["title"]).documents())
    pipeline.search(title)

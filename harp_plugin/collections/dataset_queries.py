"""Judged queries of an ir_datasets collection, their hard negatives from a first-stage run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence

from tqdm import tqdm

from ..errors import HarpError
from .dataset import Dataset
from .judged_queries import JudgedQueries, JudgedQuery, few_shot_order, read_query_ids
from .run import Run, run_lines

__all__ = ["DatasetQueries"]

_Labels = dict[str, int]
_CHECKED_DOCUMENTS = 100_000
_DOCUMENTS_AT_ONCE = 10_000


class DatasetQueries(JudgedQueries):
    """The queries of a dataset that have a relevant document and a negative.

    Positives have a label of at least ``min_label``. Negatives are the run's documents to
    ``depth`` that are not positives. Documents are read by id when they are drawn.

    Args:
        name: ir_datasets id.
        run: path of a TREC run, plain or ``.gz``; None takes the dataset's scoreddocs.
        teacher: path of a TREC run with a teacher's scores. Documents that it lacks are not drawn.
        fields: the document fields that make up a text, joined by a space; by default the text
            that the dataset itself recommends.
        min_label: lowest label of a relevant document.
        depth: how many of a query's best documents in the run are looked at.
        skip_top: how many of the best unjudged documents are left out, as they may be relevant.
        judged_negatives: take documents judged below ``min_label`` from outside the run as well,
            where the collection has them.
        queries: how many queries are drawn by the seed, None for all. Fewer nest in more.
        query_ids: file of the ids that may be taken, one a line.
        left_out: ids of queries that may not be taken.
        seed: of that draw.

    Raises:
        HarpError: the dataset, the run or the file of ids is at fault, or too few queries are left.
    """

    def __init__(
        self,
        name: str,
        *,
        run: str | None = None,
        teacher: str | None = None,
        fields: Sequence[str] | None = None,
        min_label: int = 1,
        depth: int = 100,
        skip_top: int = 0,
        judged_negatives: bool = False,
        queries: int | None = None,
        query_ids: str | None = None,
        left_out: Collection[str] = (),
        seed: int = 42,
    ) -> None:
        super().__init__(f"dataset {name}", teacher=teacher is not None)
        self._dataset = Dataset(name, fields)
        self.min_label, self.depth = min_label, depth
        self.skip_top, self.judged_negatives = skip_top, judged_negatives
        self._dataset.check("queries", "qrels")
        texts = self._dataset.queries()
        allowed = read_query_ids(query_ids, texts, self.source) - set(left_out)
        first_stage = self._first_stage(run, texts)
        self._teacher = None if teacher is None else self._read_run(teacher, texts, None)
        labels = self._labels(allowed)
        self.drops["without a judgment"] += len(allowed - labels.keys())
        self._digest = hashlib.sha256()
        order = few_shot_order(labels, seed) if queries else list(labels)
        chosen: dict[str, JudgedQuery] = {}
        for query in tqdm(order, "judged queries", unit="query", leave=False, disable=None):
            if len(chosen) == queries:
                break
            found = self._judge(query, texts[query], labels[query], first_stage)
            if isinstance(found, str):
                self.drops[found] += 1
            else:
                chosen[query] = found
        self.drops = +self.drops
        self._check_enough(len(chosen), queries)
        self._judged = [chosen[query] for query in texts if query in chosen]
        self._check_negatives()
        for judged in map(self.judged, range(len(self))):
            record = [judged.id, judged.positives, judged.negatives, judged.teacher_scores]
            self._digest.update(json.dumps(record).encode())
        self.fingerprint = self._digest.hexdigest()
        del self._digest  # it cannot be sent to another process

    def __len__(self) -> int:
        return len(self._judged)

    def judged(self, index: int) -> JudgedQuery:
        """Return the query at an index, its documents by id."""
        judged = self._judged[index]
        if self._teacher is None:
            return judged
        return judged._replace(teacher_scores=self._teacher.scores(judged.id))

    def texts(self, documents: Sequence[str]) -> list[str]:
        """Return the texts of documents, in their order.

        Raises:
            HarpError: a document is not in the dataset.
        """
        texts = self._dataset.texts(documents)
        return [texts[document] for document in documents]

    def _first_stage(self, run: str | None, queries: Collection[str]) -> Run:
        if run is not None:
            return self._read_run(run, queries, self.depth)
        if not self._dataset.has("scoreddocs"):
            raise HarpError(
                f"{self.source} has no scoreddocs: name a negatives_run to draw negatives from"
            )
        scored = self._dataset.scored_documents()
        return Run(scored, f"scoreddocs of {self._dataset.name}", self.depth)

    def _read_run(self, path: str, queries: Collection[str], depth: int | None) -> Run:
        return Run(run_lines(path, queries, self.source), f"run {path}", depth)

    def _labels(self, queries: Collection[str]) -> dict[str, _Labels]:
        """Return the labels of documents by query; of a document judged twice the higher one."""
        labels: dict[str, _Labels] = {}
        for query, document, label in self._dataset.judgments():
            if query in queries:
                by_document = labels.setdefault(query, {})
                by_document[document] = max(by_document.get(document, label), label)
        return labels

    def _judge(self, query: str, text: str, labels: _Labels, first_stage: Run) -> JudgedQuery | str:
        """Return the query with its documents, or the reason why it is left out."""
        relevant = sorted(id for id, label in labels.items() if label >= self.min_label)
        if not relevant:
            return f"without a document of label {self.min_label} or more"
        if query not in first_stage:
            return "not in the run"
        if not (negatives := self._negatives(labels, first_stage[query])):
            return "without a negative in the run"
        scores = None if self._teacher is None else self._teacher.scores(query)
        judged = JudgedQuery(query, text, relevant, negatives, teacher_scores=scores)
        if isinstance(scored := self._take_scored(judged), str):
            return scored
        texts = self._dataset.existing_texts(scored.positives)
        positives = [id for id in scored.positives if texts.get(id, "").strip()]
        if not positives:
            return "without a relevant document that has text"
        self._digest.update(json.dumps([query, text, *(texts[id] for id in positives)]).encode())
        return scored._replace(positives=positives, teacher_scores=None)

    def _negatives(self, labels: _Labels, ranked: Sequence[str]) -> list[str]:
        unjudged = [id for id in ranked if id not in labels]
        skipped = set(unjudged[: self.skip_top])
        not_relevant = {id for id, label in labels.items() if label < self.min_label}
        negatives = [
            id for id in ranked if id not in skipped and (id not in labels or id in not_relevant)
        ]
        if self.judged_negatives:
            negatives += sorted(self._dataset.existing_texts(not_relevant.difference(negatives)))
        return negatives

    def _check_negatives(self) -> None:
        """Check that the negatives are in the dataset; of very many, a fraction of them."""
        ids = list(dict.fromkeys(id for judged in self._judged for id in judged.negatives))
        ids = ids[:: -(-len(ids) // _CHECKED_DOCUMENTS)]
        starts = range(0, len(ids), _DOCUMENTS_AT_ONCE)
        for start in tqdm(starts, "candidates", leave=False, disable=len(starts) < 2 or None):
            self.texts(ids[start : start + _DOCUMENTS_AT_ONCE])

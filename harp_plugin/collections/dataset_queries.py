"""Judged queries of an ir_datasets collection, their hard negatives from a first-stage run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence

from tqdm import tqdm

from ..errors import HarpError
from .documents import Documents, reading
from .judged_queries import JudgedQuery, check_enough_queries
from .query_ids import few_shot_order, read_query_ids
from .run import TopDocuments
from .trec_run import Retrieved, run_lines

Labels = dict[str, int]
_LOOKED_UP = 100_000
_AT_ONCE = 10_000


class DatasetQueries:
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

    Attributes:
        drops: number of queries left out, by reason.
        fingerprint: changes with the queries, their candidates, their teacher's scores and the
            positives' texts.
        has_teacher_scores: whether there is a teacher.
        without_teacher_score: number of candidates left out because the teacher lacks them.

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
        self.name = name
        self._documents = Documents(name, fields)
        self.min_label, self.depth = min_label, depth
        self.skip_top, self.judged_negatives = skip_top, judged_negatives
        self.drops: Counter[str] = Counter()
        self._check(run)
        with reading(self.name):
            topics = {q.query_id: q.default_text() for q in self._documents.dataset.queries_iter()}
        wanted = read_query_ids(query_ids, topics, f"dataset {name}") - set(left_out)
        top = self._top(run, topics)
        self._teacher = None if teacher is None else self._run(teacher, topics, None)
        self.has_teacher_scores = teacher is not None
        self.without_teacher_score = 0
        found = self._candidates(topics, wanted, top, queries, seed)
        check_enough_queries(len(found), queries, self.drops, f"dataset {name}")
        self._judged = [found[query] for query in topics if query in found]
        self._look_up()
        self.fingerprint = self._fingerprint()

    def __len__(self) -> int:
        return len(self._judged)

    def judged(self, index: int) -> JudgedQuery:
        """The query at an index, its documents by id."""
        judged = self._judged[index]
        if self._teacher is None:
            return judged
        return judged._replace(teacher_scores=self._teacher.scores(judged.id))

    def texts(self, documents: Sequence[str]) -> list[str]:
        """The texts of some documents.

        Raises:
            HarpError: one is not in the collection.
        """
        found = self._documents.found(documents)
        if missing := [document for document in documents if document not in found]:
            raise HarpError(
                f"document {missing[0]!r} is not in dataset {self.name}: check that the run is of "
                "this collection"
            )
        return [found[document] for document in documents]

    def _look_up(self) -> None:
        """Find that the candidates are in the collection; of very many, an even share of them."""
        distinct = list(dict.fromkeys(id for judged in self._judged for id in judged.negatives))
        distinct = distinct[:: -(-len(distinct) // _LOOKED_UP)]
        starts = range(0, len(distinct), _AT_ONCE)
        for start in tqdm(starts, "candidates", leave=False, disable=len(starts) < 2 or None):
            self.texts(distinct[start : start + _AT_ONCE])

    def _candidates(
        self,
        topics: dict[str, str],
        wanted: set[str],
        top: TopDocuments,
        count: int | None,
        seed: int,
    ) -> dict[str, JudgedQuery]:
        labels = self._labels(wanted)
        self.drops["without a judgement"] += len(wanted - labels.keys())
        order = few_shot_order(labels, seed) if count else list(labels)
        self._digest = hashlib.sha256()
        found: dict[str, JudgedQuery] = {}
        for query in tqdm(order, "judged queries", unit="query", leave=False, disable=None):
            if len(found) == count:
                break
            reason, judged = self._candidate(query, topics[query], labels[query], top)
            if judged:
                found[query] = judged
            else:
                self.drops[reason] += 1
        self.drops = +self.drops
        return found

    def _candidate(
        self, query: str, text: str, labels: Labels, top: TopDocuments
    ) -> tuple[str, JudgedQuery | None]:
        relevant = sorted(doc for doc, label in labels.items() if label >= self.min_label)
        if not relevant:
            return f"without a document of label {self.min_label} or more", None
        if query not in top:
            return "not in the run", None
        if not (negatives := self._negatives(labels, top[query])):
            return "without a negative in the run", None
        relevant, negatives = self._scored(query, relevant), self._scored(query, negatives)
        if not relevant or not negatives:
            kind = "negative" if relevant else "relevant document"
            return f"without a {kind} that has a teacher score", None
        texts = self._documents.found(relevant)
        positives = [doc for doc in relevant if texts.get(doc, "").strip()]
        if not positives:
            return "without a relevant document that has text", None
        for part in (query, text, *(texts[doc] for doc in positives)):
            self._digest.update(f"{part}\x1f".encode("utf-8", "surrogatepass"))
        return "", JudgedQuery(query, text, positives, negatives)

    def _negatives(self, labels: Labels, ranked: list[str]) -> list[str]:
        unjudged = [doc for doc in ranked if doc not in labels]
        left_out = set(unjudged[: self.skip_top])
        taken = [
            doc
            for doc in ranked
            if doc not in left_out and labels.get(doc, self.min_label - 1) < self.min_label
        ]
        if self.judged_negatives:
            judged = {doc for doc, label in labels.items() if label < self.min_label}
            taken += sorted(self._documents.found(sorted(judged.difference(taken))))
        return taken

    def _scored(self, query: str, documents: list[str]) -> list[str]:
        if self._teacher is None:
            return documents
        known = self._teacher.scores(query)
        found = [document for document in documents if document in known]
        self.without_teacher_score += len(documents) - len(found)
        return found

    def _labels(self, wanted: set[str]) -> dict[str, Labels]:
        labels: dict[str, Labels] = {}
        with reading(self.name):
            for qrel in self._documents.dataset.qrels_iter():
                if qrel.query_id in wanted:
                    of_query = labels.setdefault(qrel.query_id, {})
                    known = of_query.get(qrel.doc_id, qrel.relevance)
                    of_query[qrel.doc_id] = max(known, qrel.relevance)
        return labels

    def _top(self, run: str | None, topics: dict[str, str]) -> TopDocuments:
        if run is not None:
            return self._run(run, topics, self.depth)
        with reading(self.name):
            scored = (Retrieved(*line[:3]) for line in self._documents.dataset.scoreddocs_iter())
            return TopDocuments(scored, self.depth, f"scoreddocs of {self.name}")

    def _run(self, path: str, topics: dict[str, str], depth: int | None) -> TopDocuments:
        lines = run_lines(path, topics, f"dataset {self.name}")
        return TopDocuments(lines, depth, f"run {path}")

    def _fingerprint(self) -> str:
        for index in range(len(self)):
            judged = self.judged(index)
            documents = [*judged.positives, "", *judged.negatives]
            known = judged.teacher_scores or {}
            scores = [repr(known[document]) for document in documents if document in known]
            for part in (judged.id, *documents, *scores):
                self._digest.update(f"{part}\x1f".encode("utf-8", "surrogatepass"))
        fingerprint = self._digest.hexdigest()
        del self._digest
        return fingerprint

    def _check(self, run: str | None) -> None:
        self._documents.check_judged()
        if run is None and not self._documents.dataset.has("scoreddocs"):
            raise HarpError(
                f"dataset {self.name} has no scoreddocs: name a negatives_run to draw "
                "negatives from"
            )

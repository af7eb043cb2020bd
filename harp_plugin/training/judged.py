"""Groups of judged documents for fine-tuning, drawn when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..collections.judged_queries import JudgedQueries, JudgedQuery
from ..errors import HarpError
from ..sampling import generator
from ..tasks import DocumentOrigin, Pair, PairGroup, QueryOrigin
from ..text import query_passage

__all__ = ["TASK", "JudgedGroups"]

TASK = "finetune"
"""The name that the groups have as a task, such as in log lines."""


@dataclass(frozen=True)
class JudgedGroups:
    """One group a query and epoch: one of its positives, several of its hard negatives.

    A group is a pure function of (seed, epoch, query): the same in any process or order. Documents
    are drawn uniformly, without replacement. A document without text is passed over, and so is a
    negative whose text is the positive's. The origins of the pairs hold the ids of the query and
    of the documents.

    Attributes:
        source: the judged queries.
        negatives_per_group: most negatives of a group; a query with fewer gives all that it has.
        seed: the seed of all draws.
        redraw_each_epoch: whether each epoch draws again; else every epoch has the same groups.
        passages: ``first`` for whole texts, of which the model reads the beginning; ``matching``
            for what `query_passage` finds in them.
    """

    source: JudgedQueries
    negatives_per_group: int = 7
    seed: int = 42
    redraw_each_epoch: bool = True
    passages: str = "first"

    def __len__(self) -> int:
        return len(self.source)

    @property
    def fingerprint(self) -> str:
        """Changes when what is drawn from does."""
        return self.source.fingerprint

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of queries and of what is left out, for the manifest."""
        left_out = {f"queries left out, {why}": n for why, n in sorted(self.source.drops.items())}
        if self.source.has_teacher_scores:
            left_out["documents left out, without a teacher score"] = (
                self.source.without_teacher_score
            )
        return {"queries": len(self), **left_out}

    def shortages(self) -> list[str]:
        """Write a sentence for each reason for which queries or documents are left out."""
        lines = self.source.drop_phrases()
        if count := self.source.without_teacher_score:
            lines.append(f"{count:,} document{'s' * (count > 1)} without a teacher score")
        return [f"left out: {line}" for line in lines]

    def label(self, index: int) -> str:
        """Name the query of the group at an index."""
        return f"query {self.source.judged(index).id}"

    def group(self, epoch: int, index: int) -> PairGroup:
        """Draw the group of a query.

        Raises:
            HarpError: none of the query's negatives has a text.
        """
        judged = self.source.judged(index)
        rng = generator(self.seed, TASK, epoch if self.redraw_each_epoch else 0, judged.id)
        (positive, text), *_ = self._draw(judged.positives, 1, rng)
        negatives = self._draw(judged.negatives, self.negatives_per_group, rng, other_than=text)
        if not negatives:
            raise HarpError(
                f"query {judged.id}: none of its {len(judged.negatives)} negatives has a text of "
                "its own: leave the query out"
            )
        drawn = [(positive, text), *negatives]
        first, *others = (
            _pair(judged, document, self._shown(judged, text)) for document, text in drawn
        )
        teacher = judged.teacher_scores
        scores = None if teacher is None else tuple(teacher[document] for document, _ in drawn)
        ids = judged.document_ids
        relevant = judged.positives if ids is None else map(ids.get, judged.positives)
        return PairGroup(TASK, first, tuple(others), scores, frozenset(filter(None, relevant)))

    def _shown(self, judged: JudgedQuery, text: str) -> str:
        return query_passage(judged.query, text) if self.passages == "matching" else text

    def _draw(
        self,
        documents: Sequence[str],
        count: int,
        rng: np.random.Generator,
        other_than: str | None = None,
    ) -> list[tuple[str, str]]:
        """Draw documents, with their texts."""
        order = rng.permutation(len(documents))
        drawn: list[tuple[str, str]] = []
        while len(order) and len(drawn) < count:
            places, order = np.split(order, [count - len(drawn)])
            tried = [documents[place] for place in places]
            drawn += [
                (document, text)
                for document, text in zip(tried, self.source.texts(tried), strict=True)
                if text.strip() and text != other_than
            ]
        return drawn


def _pair(judged: JudgedQuery, document: str, text: str) -> Pair:
    """Pair a query with a drawn document; where the two are swapped, no document has an id."""
    query = QueryOrigin(query_id=judged.id)
    if judged.swapped:
        return Pair(text, judged.query, query)
    ids = judged.document_ids
    origin = DocumentOrigin(document_id=document if ids is None else ids.get(document))
    return Pair(judged.query, text, query, origin)

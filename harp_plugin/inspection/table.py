"""Counts per task beside Table 1 of the HARP paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..tasks import PairGroup

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "PAPER",
    "PAPER_NOTE",
    "TOKENS_NOTE",
    "PaperRow",
    "TaskRow",
    "TokenCounter",
    "format_mean",
    "format_table",
    "most_frequent",
]

TOKENS_NOTE = "Tokens are wordpieces of {model}, without special tokens, nothing cut."
PAPER_NOTE = (
    "The paper's query lengths fit none of the three readings exactly: one anchor and "
    "Poisson words make 4.16 words on average, the paper prints 2.64 and 2.80."
)
_BATCH_SIZE = 1000


class PaperRow(NamedTuple):
    """A row of Table 1 of the HARP paper: pairs as printed, mean tokens."""

    pairs: str
    query: float
    document: float


PAPER = {
    "rqp": PaperRow("17.71M", 2.64, 90.48),
    "qdm": PaperRow("1.35M", 2.80, 81.17),
    "rdp": PaperRow("6.49M", 34.90, 85.86),
    "acm": PaperRow("12.64M", 4.55, 73.64),
}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of a build.

    Attributes:
        task: its name.
        examples: number of its examples in the build.
        pairs: number of pairs that were drawn for the means; each member of a group is one.
        query: mean tokens of their queries, None where nothing was drawn.
        document: mean tokens of their documents, None where nothing was drawn.
    """

    task: str
    examples: int
    pairs: int
    query: float | None
    document: float | None

    @property
    def paper(self) -> PaperRow | None:
        """The paper's row, if it has this task."""
        return PAPER.get(self.task)


class TokenCounter:
    """Counts the wordpieces of texts; each distinct text is counted once.

    Args:
        tokenizer: splits the texts.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._lengths: dict[str, int] = {}

    def row(self, task: str, examples: int, groups: Iterable[PairGroup]) -> TaskRow:
        """Count the pairs of a task and take their mean lengths."""
        queries: Counter[str] = Counter()
        documents: Counter[str] = Counter()
        for group in groups:
            queries.update(pair.query for pair in group.members)
            documents.update(pair.document for pair in group.members)
        means = self._mean(queries), self._mean(documents)
        return TaskRow(task, examples, queries.total(), *means)

    def _mean(self, texts: Counter[str]) -> float | None:
        new = [text for text in texts if text not in self._lengths]
        for start in range(0, len(new), _BATCH_SIZE):
            batch = new[start : start + _BATCH_SIZE]
            encoded = self._tokenizer(batch, add_special_tokens=False, verbose=False)
            self._lengths.update(zip(batch, map(len, encoded["input_ids"]), strict=True))
        if not texts:
            return None
        return sum(self._lengths[text] * count for text, count in texts.items()) / texts.total()


_COLUMNS = "{:<10}{:>12}{:>8}{:>9}{:>8}{:>10}{:>8}{:>10}"


def format_table(rows: Iterable[TaskRow]) -> str:
    """Write the rows as plain text, at most 80 columns wide."""
    lines = [
        _COLUMNS.format("", "", "pairs", "query", "tokens", "document", "tokens", "pairs"),
        _COLUMNS.format("task", "examples", "drawn", "here", "paper", "here", "paper", "in paper"),
    ]
    for row in rows:
        paper = row.paper
        cells = [
            format_mean(row.query),
            format_mean(paper and paper.query),
            format_mean(row.document),
            format_mean(paper and paper.document),
        ]
        pairs = paper.pairs if paper else "–"
        lines.append(
            _COLUMNS.format(row.task[:10], f"{row.examples:,}", f"{row.pairs:,}", *cells, pairs)
        )
    return "\n".join(line.rstrip() for line in lines)


def format_mean(mean: float | None) -> str:
    """Write a mean length as the paper prints it, or a dash if there is none."""
    return "–" if mean is None else f"{mean:.2f}"


def most_frequent(drops: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort reasons with their numbers, the most frequent first."""
    return sorted(drops.items(), key=lambda item: (-item[1], item[0]))

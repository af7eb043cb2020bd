"""Options of judged queries made from a corpus."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import HarpError
from ...options import flag
from .tables import KINDS

__all__ = ["QueryOptions"]


def _choice(subject: str) -> str:
    help_text = f"Whether to keep or drop {subject}."
    return field(default="drop", metadata={"help": help_text, "choices": ["keep", "drop"]})


@dataclass
class QueryOptions:
    """Which queries are made, and how they are split.

    Raises:
        HarpError: a number is out of its range, or a choice is unknown.
    """

    kinds: list[str] = field(
        default_factory=lambda: list(KINDS),
        metadata={
            "help": "Where queries come from: terms of an index that people wrote (index), titles "
            "of redirects (redirect), links that `harp build --held-out-links` holds out (link).",
            "choices": list(KINDS),
        },
    )
    max_queries: int | None = field(
        default=1000,
        metadata={"help": "The most queries of each kind in dev and in test."},
    )
    max_train_queries: int | None = field(
        default=1000, metadata={"help": "The most queries of each kind in train."}
    )
    min_train_queries: int = field(
        default=0,
        metadata={"help": "With fewer queries in train, there is no train, and dev takes them."},
    )
    train_share: float = field(default=0.2, metadata={"help": "Share of the queries in train."})
    dev_share: float = field(
        default=0.2, metadata={"help": "Share of the queries in dev; the rest is test."}
    )
    max_relevant: int = field(
        default=10,
        metadata={"help": "Queries with more relevant pages are dropped: they ask for a subject."},
    )
    identifiers: str = _choice("queries with a word that is no natural language, such as C4996")
    titles: str = _choice("queries that are the title of a relevant page")
    anchors: str = _choice("queries that are an anchor text of a relevant page in training")
    seed: int = field(default=42, metadata={"help": "Seed of the splits and of the draw."})

    def __post_init__(self) -> None:
        if not self.kinds or (unknown := [kind for kind in self.kinds if kind not in KINDS]):
            named = f" {unknown[0]}" if self.kinds else ""
            raise HarpError(f"--kinds{named}: give one or more of {', '.join(KINDS)}")
        for name in ("max_queries", "max_train_queries", "max_relevant"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give 1 or more")
        if self.min_train_queries < 0:
            raise HarpError(f"--min-train-queries {self.min_train_queries}: give 0 or more")
        for name in ("train_share", "dev_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give a share from 0 to 1")
        if not self.train_share + self.dev_share < 1:
            raise HarpError("--train-share and --dev-share leave no queries to test: give less")
        for name in ("identifiers", "titles", "anchors"):
            if getattr(self, name) not in ("keep", "drop"):
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give one of keep, drop")

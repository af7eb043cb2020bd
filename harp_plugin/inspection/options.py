"""The options of `harp inspect`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import HarpError

__all__ = ["InspectOptions"]


@dataclass
class InspectOptions:
    """How many groups of a build are drawn to judge it, and where the page goes.

    Raises:
        HarpError: a number is too small.
    """

    output: str | None = field(
        default=None, metadata={"help": "HTML page to write (default: inspect.html in DIR)."}
    )
    samples: int = field(
        default=12, metadata={"help": "How many groups of each task the page shows."}
    )
    seed: int = field(
        default=42,
        metadata={"help": "Seed of the draws; training draws the same groups with it."},
    )
    model: str | None = field(
        default=None,
        metadata={
            "help": "Model whose tokenizer counts tokens, and whose encoder checks the pairs "
            "(default: the one that weighed the terms)."
        },
    )
    table_groups: int = field(
        default=1000,
        metadata={
            "help": "Groups of each task that are drawn for the mean lengths and the audit; at "
            "most all that the task has."
        },
    )
    model_checks: bool = field(
        default=True,
        metadata={
            "help": "Run the checks that need an encoder: a model that sees the query or the "
            "document alone, and the cosine of both. They take most of the time."
        },
    )
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})

    def __post_init__(self) -> None:
        if self.samples < 0:
            raise HarpError(f"--samples {self.samples}: give 0 or more")
        if self.table_groups < 1:
            raise HarpError(f"--table-groups {self.table_groups}: give 1 or more")

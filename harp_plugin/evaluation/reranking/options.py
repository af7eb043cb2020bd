"""What reranking a run is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import HarpError
from ...limits import COUNT, check_limits
from ...ranking.options import SCORING_OPTIONS, check_scoring_options, scoring_option
from ...work.provenance import keep_option, overwrite_option

__all__ = ["RerankOptions"]


@dataclass
class RerankOptions:
    """Options of `rerank`, for flags.

    Raises:
        HarpError: a value makes no sense; the message names the option.
    """

    dataset: str = field(
        metadata={"help": "ir_datasets id of the queries and documents, such as irds:vaswani."}
    )
    model: str = field(
        metadata={
            "help": "Reranker: a folder, a name on the Hugging Face hub, or "
            "package:NAME for a Python package that carries one."
        }
    )
    output: str | None = field(
        default=None,
        metadata={
            "help": "TREC run that is written: a name that ends in .gz is compressed, and - is "
            "standard output; by default RUN.reranked.run.gz beside the run."
        },
    )
    depth: int | None = field(
        default=None,
        metadata={"help": "How many results of each query are reranked and kept; by default all."},
    )
    fields: list[str] | None = scoring_option("fields")
    passages: str = scoring_option("passages")
    passage_length: int | None = scoring_option("passage_length")
    passage_stride: int | None = scoring_option("passage_stride")
    max_length: int | None = scoring_option("max_length")
    batch_tokens: int | None = scoring_option("batch_tokens")
    device: list[str] | None = scoring_option(
        "device",
        help="Device that scores, such as cpu or cuda:1, or several; by default CUDA "
        "where there is one.",
    )
    dtype: str = scoring_option("dtype")
    tag: str = field(
        default="harp", metadata={"help": "Name of the system, in the last column of the run."}
    )
    overwrite: bool = overwrite_option("a run of harp")
    keep: bool = keep_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar."})

    def __post_init__(self) -> None:
        check_limits(self, {"depth": COUNT})
        values = vars(self)
        check_scoring_options({name: values[name] for name in SCORING_OPTIONS if name in values})
        if len(self.tag.split()) != 1:
            raise HarpError(f"tag is {self.tag!r}: it must be one word")

"""What reranking a run is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import HarpError
from ...files.made_from import keep_option, overwrite_option
from ...limits import COUNT, PAIR, check_limits

LIMITS = {
    **dict.fromkeys(("depth", "batch_tokens", "passage_length", "passage_stride"), COUNT),
    "max_length": PAIR,
}


@dataclass
class RerankOptions:
    """Options of `rerank`, for flags.

    Raises:
        HarpError: a value has no sense; the message names the option.
    """

    dataset: str = field(
        metadata={"help": "ir_datasets id of the queries and documents, such as irds:vaswani."}
    )
    model: str = field(metadata={"help": "Folder, hub name or package:NAME of the reranker."})
    output: str | None = field(
        default=None,
        metadata={
            "help": "TREC run to write, .gz to compress, - for standard output; by default"
            " RUN.reranked.run.gz beside the run."
        },
    )
    depth: int | None = field(
        default=None,
        metadata={"help": "How many results of each query are reranked and kept; by default all."},
    )
    fields: list[str] | None = field(
        default=None,
        metadata={
            "help": "Document fields, joined by a space; by default the text that the dataset"
            " recommends."
        },
    )
    passages: str = field(
        default="first",
        metadata={
            "help": "Of a document longer than the model's input: its beginning (first), or the"
            " max, the mean or the mean of the two best (top2) of its windows' scores.",
            "choices": ["first", "max", "mean", "top2"],
        },
    )
    passage_length: int | None = field(
        default=None,
        metadata={"help": "Tokens of a window; by default what fits beside the query."},
    )
    passage_stride: int | None = field(
        default=None,
        metadata={"help": "Tokens from one window to the next; by default half a window."},
    )
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens of a pair; by default what the model allows."}
    )
    batch_tokens: int | None = field(
        default=None, metadata={"help": "Tokens of a batch; by default what memory allows."}
    )
    device: list[str] | None = field(
        default=None,
        metadata={"help": "Such as cpu or cuda:1, or several; by default CUDA where there is one."},
    )
    dtype: str = field(
        default="float32",
        metadata={"help": "float32, bfloat16, float16, or int8 on a CPU."},
    )
    cache: str | None = field(
        default=None, metadata={"help": "Folder in which scores are kept across runs."}
    )
    tag: str = field(default="harp", metadata={"help": "Last column of the run."})
    overwrite: bool = overwrite_option("a run of ours")
    keep: bool = keep_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar."})

    def __post_init__(self) -> None:
        check_limits(self, LIMITS)
        if len(self.tag.split()) != 1:
            raise HarpError(f"tag is {self.tag!r}: it must be one word")

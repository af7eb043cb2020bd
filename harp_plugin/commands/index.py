"""`harp index`: the vectors of a dataset, for a dense first stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..limits import COUNT, check_limits
from ..work.provenance import OverwriteRules, keep_option, overwrite_option
from ..work.sharing import Share, rank_option, world_option

__all__ = ["IndexOptions", "index"]


@dataclass
class IndexOptions:
    """What encodes, and where the vectors are written."""

    output_dir: str = field(metadata={"help": "Folder for the index."})
    model: str = field(
        metadata={
            "help": "Encoder of sentence-transformers, or any base model: a folder, a name on the "
            "Hugging Face hub, or package:NAME."
        }
    )
    fields: list[str] | None = field(
        default=None,
        metadata={"help": "Fields of a document that are encoded (default: the dataset's text)."},
    )
    max_length: int | None = field(
        default=None,
        metadata={
            "help": "Most tokens of a document or a query, with special tokens; longer texts are "
            "cut (default: what the model's folder says)."
        },
    )
    dtype: str = field(
        default="float32",
        metadata={
            "help": "Type of the numbers that vectors are computed with. They are stored as "
            "float32.",
            "choices": ["float32", "bfloat16", "float16"],
        },
    )
    device: str | None = field(
        default=None,
        metadata={"help": "Device that encodes, such as cpu or cuda:1 (default: a GPU if any)."},
    )
    batch_size: int = field(
        default=16,
        metadata={"help": "How many texts are encoded at once where they must be padded."},
    )
    rank: int | None = rank_option("the encoding", "Without it,")
    world: int | None = world_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bar."})
    overwrite: bool = overwrite_option("an index")
    keep: bool = keep_option()

    def __post_init__(self) -> None:
        check_limits(self, {"batch_size": COUNT, "max_length": COUNT})
        _ = self.share

    @property
    def share(self) -> Share:
        """The share of this host in the encoding.

        Raises:
            HarpError: there is no such rank.
        """
        named = Share.of(self.rank, self.world)
        return named if self.rank is not None else Share.of_environment()


def index(dataset: str, options: IndexOptions) -> Path:
    """Encode all documents of a dataset, for `harp_plugin.HarpRetriever`.

    The folder is an index of pyterrier_dr: its ``FlexIndex`` opens it too. A finished index is kept
    as it is; one that was stopped or killed is continued. Hosts that see the folder share the work.

    Args:
        dataset: an ir_datasets id, ``harp:FOLDER`` among them.
        options: what encodes, and where the vectors are written.

    Returns:
        The folder.

    Raises:
        HarpError: the dataset or the model cannot be read, or the folder holds another index or
            other files.
    """
    from ..collections.dataset import Dataset
    from ..ranking.dense.encoder import Encoder
    from ..ranking.dense.flex import FlexFolder
    from ..ranking.windows import DocumentWindows

    documents = Dataset(dataset, options.fields)
    documents.check()
    encoder = Encoder(
        options.model,
        DocumentWindows(),
        device=options.device,
        dtype=options.dtype,
        batch_size=options.batch_size,
        normalize=None,
        max_length=options.max_length,
    )
    rules = OverwriteRules(options.overwrite, options.keep)
    folder = Path(options.output_dir)
    FlexFolder(
        folder, documents, encoder, rules=rules, quiet=options.quiet, share=options.share
    ).make()
    return folder

"""`harp index`: the vectors of a dataset, for a dense first stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import show
from ..options import Count, Device, Options, Overwriting, Progress, Ranks
from ..options_parser import Command

__all__ = ["IndexOptions", "index"]

_DATASET = {"metavar": "DATASET", "help": "ir_datasets id, such as vaswani or harp:FOLDER."}


@dataclass(kw_only=True)
class IndexOptions(Ranks, Device, Progress, Overwriting, Options):
    """What encodes, and where the vectors are written.

    Attributes:
        output_dir: Folder for the index.
        model: Encoder of sentence-transformers, or any base model: a folder, a name on the Hugging
            Face hub, or package:NAME.
        fields: Fields of a document that are encoded (default: the dataset's text).
        max_length: Most tokens of a document or a query, with special tokens; longer texts are cut
            (default: what the model's folder says).
        max_passages: Most passages of a document that have a vector, of which the best scores it;
            with 1, its beginning has one.
        dtype: Type of the numbers that vectors are computed with. They are stored as float32.
        batch_size: How many texts are encoded at once where they must be padded.
    """

    output_dir: str
    model: str
    fields: list[str] | None = None
    max_length: Count | None = None
    max_passages: Count = 1
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: Count = 16


def index(dataset: str, options: IndexOptions) -> Path:
    """Encode all documents of a dataset, for `harp_plugin.HarpRetriever`.

    The folder is an index of pyterrier_dr: its ``FlexIndex`` opens it too. A finished index is kept
    as it is; one that was stopped or killed is resumed. Of several
    machines that share the folder, each encodes its part, and the last one finishes the index.

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
    from ..ranking.dense.index import DenseIndex
    from ..ranking.texts import PassagesOf

    documents = Dataset(dataset, options.fields)
    documents.check()
    names = "device", "dtype", "batch_size", "max_length"
    settings: dict[str, Any] = {name: getattr(options, name) for name in names}
    encoder = Encoder(options.model, normalize=None, **settings)
    folder = Path(options.output_dir)
    DenseIndex(
        PassagesOf(documents, options.max_passages),
        folder,
        encoder,
        rules=options.rules,
        quiet=options.quiet,
        rank=options.rank or 0,
        world=options.world or 1,
    ).make()
    return folder


@Command("DATASET --model MODEL --output-dir DIR", IndexOptions, positional=_DATASET)
def command(options: IndexOptions, dataset: str) -> None:
    """The folder is an index of pyterrier_dr.

    HarpRetriever searches it, and `harp evaluate` takes it as --first-stage dense:DIR. An
    interrupted command is resumed.
    """
    show(f"index: {index(dataset, options)}")

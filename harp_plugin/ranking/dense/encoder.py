"""Vectors of texts, by an encoder of sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import HarpError
from ...models.loading import (
    check_model_folder,
    choose_device,
    model_errors,
    model_fingerprint,
    module_folders,
    resolve_model,
    without_notices,
)
from ...options import checked
from ...work.provenance import package_versions, scoring_versions
from ...work.thread_lock import thread_lock
from ..options import Dtype
from ..sharing import Shareable
from .vectors import LibraryVectors, TextVectors

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

__all__ = ["Encoder"]

_WEIGHTS = "model.safetensors", "pytorch_model.bin"


@dataclass(eq=False, repr=False)
class Encoder(Shareable):
    """An encoder with the pooling, the prompts and the longest input that its folder names.

    Any folder of sentence-transformers will do; one without ``modules.json`` gets the mean over all
    tokens. Texts are packed where the architecture and the pooling allow it; else
    sentence-transformers encodes them. Weights are loaded when the first text is encoded, from
    safetensors only, and no code of the model is run.

    Args:
        model: a folder, a hub name, or ``package:NAME``.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        batch_size: texts that are encoded at once where they are padded.
        normalize: whether vectors have the length 1; None for what the folder says.
        max_length: most tokens of a text, with special tokens and the prompt; None
            for what the folder says.

    Raises:
        HarpError: an argument makes no sense. Whether the encoder can read texts of ``max_length``
            is checked when it is loaded.
    """

    SETTINGS = ("dtype", "normalize", "max_length")
    """Names of the arguments that vectors depend on."""

    model: str
    _: KW_ONLY
    device: str | None = None
    dtype: str = "float32"
    batch_size: int = 16
    normalize: bool | None = True
    max_length: int | None = None

    def __post_init__(self) -> None:
        checked("dtype", Dtype, self.dtype)
        self.model = fspath(self.model)
        self._lock = thread_lock()

    @property
    def fingerprint(self) -> str:
        """A text that changes when the files of the model change."""
        return model_fingerprint(self.model)

    @property
    def settings(self) -> dict[str, Any]:
        """What vectors depend on, apart from the texts and the model's files."""
        return {name: getattr(self, name) for name in self.SETTINGS}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that vectors depend on."""
        return {**scoring_versions(), **package_versions("sentence-transformers")}

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Encode queries: float32 of shape (queries, dimensions)."""
        with self._lock:
            return self._loaded.queries(texts)

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Encode documents: float32 of shape (documents, dimensions)."""
        with self._lock:
            return self._loaded.documents(texts)

    @cached_property
    def _loaded(self) -> TextVectors | LibraryVectors:
        with self._lock:
            folder, device = Path(resolve_model(self.model)), choose_device(self.device)
            if folder.is_dir():
                check_model_folder(folder)
                _check_parts(folder)
            options = self.normalize, self.max_length
            packed = TextVectors.load(self.model, device, self.dtype, *options)
            if packed is not None:
                return packed
            return LibraryVectors(self._load(device), self.batch_size, *options)

    def _load(self, device: torch.device) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer

        with without_notices(), model_errors(self.model, "sentence-transformers encoder"):
            model = SentenceTransformer(
                resolve_model(self.model),
                device=str(device),
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": self.dtype},
            )
        if not getattr(model.tokenizer, "is_fast", False):
            raise HarpError(f"model {self.model} has no fast tokenizer: name another model")
        return model


def _check_parts(folder: Path) -> None:
    """Refuse modules with weights that are not safetensors."""
    safe, pickled = _WEIGHTS
    for part in module_folders(folder):
        if (part / pickled).exists() and not (part / safe).exists():
            raise HarpError(
                f"{part} has its weights in {pickled}, which may run code: save the model as "
                "safetensors"
            )

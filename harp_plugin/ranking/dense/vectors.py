"""Vectors of texts: by ourselves, or by sentence-transformers where an encoder needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...errors import HarpError
from ...models.devices import to_device
from ...models.loading import (
    load_pretrained,
    load_tokenizer,
    longest_input,
    resolve_model,
    without_notices,
)
from ...models.packing import can_pack, encode
from ...models.packing.encoder import PackedOrder, with_filler
from ...models.pairs import PackedPairs, TextTemplate
from ...models.pooling import DECODER, encoder_class, padded_vectors, pooled
from ...models.sentence_encoder import SentenceEncoderFiles
from ...models.tokenizing import tokenize
from ...options import MOST
from ..batches import BatchRunner
from ..loading import can_prepack, prepack

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["LibraryVectors", "TextVectors"]


class TextVectors(BatchRunner):
    """Vectors of texts, which are packed if the architecture allows it, and padded otherwise.

    Args:
        encoder: a base model on its device.
        tokenizer: a fast tokenizer.
        files: pooling, prompts and longest input of the encoder, and whether its vectors have the
            length 1.
        max_length: most tokens of a text, special tokens included; None for what the files say.

    Raises:
        HarpError: the encoder cannot read texts of ``max_length``.
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        files: SentenceEncoderFiles,
        max_length: int | None = None,
    ) -> None:
        super().__init__(encoder, batch_tokens=None)
        self._tokenizer = tokenizer
        self._longest = _longest(encoder, tokenizer, files.longest, max_length)
        self._files = files
        self._template = TextTemplate.from_tokenizer(tokenizer)

    @classmethod
    def load(
        cls,
        name: str,
        device: torch.device,
        dtype: str,
        normalize: bool | None,
        max_length: int | None,
    ) -> TextVectors | None:
        """Load an encoder; None where sentence-transformers is to run it.

        Args:
            name: name of the model, as in `harp_plugin.models.loading.resolve_model`.
            device: where it runs.
            dtype: of its weights.
            normalize: whether vectors have the length 1; None for what the folder says.
            max_length: most tokens of a text; None for what the folder says.

        Raises:
            HarpError: the encoder cannot read texts of ``max_length``.
        """
        try:
            files = SentenceEncoderFiles.read(resolve_model(name), None, normalize)
        except HarpError:
            return None
        if not files.is_plain:
            return None
        config, tokenizer = load_pretrained(AutoConfig, name), load_tokenizer(name)
        is_ours = can_pack(config) or files.pooling == DECODER
        if not is_ours or not tokenizer.is_fast:
            return None
        kind = encoder_class(config, files.pooling)
        with without_notices():
            encoder = load_pretrained(kind, name, dtype=getattr(torch, dtype))
        encoder = encoder.to(device).eval()
        if device.type == "cpu" and can_pack(config) and can_prepack(encoder.dtype):
            prepack(encoder)
        return cls(encoder, tokenizer, files, max_length)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Encode queries: float32 of shape (queries, dimensions)."""
        return self._encode(texts, self._files.prompts[0])

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Encode documents: float32 of shape (documents, dimensions)."""
        return self._encode(texts, self._files.prompts[1])

    def _encode(self, texts: Sequence[str], prompt: str) -> np.ndarray:
        most = self._longest - self._template.length
        parts = tokenize([prompt + text for text in texts], self._tokenizer, most)
        ids = [self._template.around(part) for part in parts]
        vectors = np.empty((len(ids), self.model.config.hidden_size), np.float32)
        for indices, outputs in self.run(self._batches(ids)):
            vectors[indices] = outputs
        return vectors

    def _batches(self, ids: Sequence[np.ndarray]) -> list[tuple[np.ndarray, PackedPairs]]:
        """Put texts of similar length into batches of about ``batch_tokens``."""
        lengths = np.array([len(text) for text in ids], dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        batch_of = (lengths[order].cumsum() - 1) // self.batch_tokens
        parts = np.split(order, np.flatnonzero(np.diff(batch_of)) + 1) if len(order) else []
        return [(part, _packed([ids[index] for index in part])) for part in parts]

    @torch.inference_mode()
    def _outputs(self, batch: PackedPairs) -> Tensor:
        ids, lengths = to_device(batch.ids, self.model.device), batch.lengths
        if self.is_packed:
            step = self._step
            ids, lengths, _ = with_filler(ids, lengths, None, longest=self.max_length, step=step)
            order = PackedOrder.from_lengths(ids, lengths, self.model.device)
            states = encode(self.model, order.packing, ids[order.source]).float()
            vectors = pooled(states, order.packing.lengths, self._files.pooling)[order.rank]
        else:
            vectors = padded_vectors(self.model, ids, lengths, self._files.pooling)
        if self._files.normalize:
            vectors = F.normalize(vectors, dim=1)
        return vectors[: len(batch.lengths)]


def _packed(ids: Sequence[np.ndarray]) -> PackedPairs:
    row = np.concatenate(ids)
    return PackedPairs(row, np.zeros_like(row), np.array([len(text) for text in ids]))


@dataclass(eq=False)
class LibraryVectors:
    """Vectors as sentence-transformers makes them, for any encoder of its.

    Args:
        model: the encoder.
        batch_size: texts that are encoded at once.
        normalize: whether vectors have the length 1; None for what the model's modules do.
        max_length: most tokens of a text; None for what the model says.

    Raises:
        HarpError: the encoder cannot read texts of ``max_length``.
    """

    model: SentenceTransformer
    batch_size: int
    normalize: bool | None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None:
            model, usual = self.model, self.model.max_seq_length
            longest = _longest(model.transformers_model, model.tokenizer, usual, self.max_length)
            model.max_seq_length = longest

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Encode queries: float32 of shape (queries, dimensions)."""
        return self._encode(self.model.encode_query, texts)

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Encode documents: float32 of shape (documents, dimensions)."""
        return self._encode(self.model.encode_document, texts)

    def _encode(self, encode, texts: Sequence[str]) -> np.ndarray:
        options = {"normalize_embeddings": bool(self.normalize), "show_progress_bar": False}
        try:
            vectors = encode(list(texts), batch_size=self.batch_size, **options)
        except KeyError as error:
            if error.args != ("sentence_embedding",):
                raise
            raise HarpError(
                "the encoder has no part Pooling, which makes one vector of a text: name another"
            ) from error
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), -1)


def _longest(
    encoder: PreTrainedModel | None,
    tokenizer: PreTrainedTokenizerBase,
    usual: int | None,
    asked: int | None,
) -> int:
    """Return the most tokens of a text: as many as are asked for, or what an encoder says."""
    of_tokenizer = min(tokenizer.model_max_length, MOST)
    most = (None if encoder is None else longest_input(encoder)) or of_tokenizer
    if asked is None:
        return min(usual or most, of_tokenizer, most)
    least = tokenizer.num_special_tokens_to_add() + 1
    if not least <= asked <= most:
        raise HarpError(f"max_length is {asked}: this encoder takes {least} to {most}")
    return asked

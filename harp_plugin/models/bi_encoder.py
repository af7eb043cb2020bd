"""A bi-encoder in training: it makes a vector of each text, and a pair's score is their product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from .in_batch import in_batch_documents
from .loading import load_pretrained, resolve_model
from .masking import TokenMasker
from .packing import packed_states
from .packing.encoder import with_filler
from .pairs import TextTemplate
from .pooling import encoder_class, padded_vectors, pooled
from .sentence_encoder import SentenceEncoderFiles
from .tokenizing import tokenize
from .trainable import (
    Batch,
    LossInputs,
    ModelDescription,
    TrainableModel,
    group_scores,
    load_with_new_weights,
    tied_names,
    without_pooler,
)

__all__ = ["BiEncoderBatches", "TrainableBiEncoder"]


@dataclass(frozen=True)
class BiEncoderBatches:
    """Packs the distinct texts of pairs one by one: ``[CLS] text [SEP]``, without padding.

    Attributes:
        tokenizer: a fast tokenizer.
        template: the special tokens around a text.
        max_length: most tokens of a text, special tokens included.
        prompts: texts before each query, and before each document.
    """

    tokenizer: PreTrainedTokenizerBase
    template: TextTemplate
    max_length: int
    prompts: tuple[str, str]

    def __call__(
        self,
        pairs: Sequence[tuple[str, str]],
        query_limits: Sequence[int | None],
        mask_keys: Sequence[tuple[int, ...]] | None,
    ) -> Batch:
        """Tokenize, cut and pack texts; the distinct queries come first.

        Returns:
            ``input_ids``, (tokens,); ``lengths``, the tokens of each text, an array that stays on
            the CPU, (texts,); ``query_rows`` and ``document_rows``, the text of each pair's query
            and document, (pairs,).
        """
        queries = [(query, limit) for (query, _), limit in zip(pairs, query_limits, strict=True)]
        query_ids, query_rows = self._distinct(queries, self.prompts[0])
        documents = [(document, None) for _, document in pairs]
        document_ids, document_rows = self._distinct(documents, self.prompts[1])
        texts = [*query_ids, *document_ids]
        return {
            "input_ids": torch.from_numpy(np.concatenate(texts)),
            "lengths": np.array([len(ids) for ids in texts]),
            "query_rows": torch.tensor(query_rows),
            "document_rows": torch.tensor(document_rows) + len(query_ids),
        }

    def _distinct(
        self, texts: Sequence[tuple[str, int | None]], prompt: str
    ) -> tuple[list[np.ndarray], list[int]]:
        """Return the token ids of each distinct text, and the index of each text among them."""
        indices = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        most = self.max_length - self.template.length
        ids = tokenize([prompt + text for text, _ in indices], self.tokenizer, most)
        cut = (part[:limit] for part, (_, limit) in zip(ids, indices, strict=True))
        return [self.template.around(part) for part in cut], [indices[text] for text in texts]


class TrainableBiEncoder(TrainableModel):
    """One encoder for queries and documents, as sentence-transformers has it.

    Besides the scores of each group's own pairs, losses can read those of a group's query with the
    documents of all other groups of the batch, of all processes (in-batch negatives), without those
    that may be relevant (see `in_batch_negatives`).

    With ``texts_at_once``, activations of so many texts are in memory, and those of the others are
    computed again in the backward pass: the gradients of a large batch in little memory, as
    GradCache has them (Gao et al. 2021).

    Args:
        encoder: a base model.
        files: its pooling, normalization, prompts and longest input.
        new_weights: names of the weights that were drawn at random because the checkpoint lacks
            them.
        texts_at_once: most texts whose activations are in memory in training; None for all.
    """

    files: SentenceEncoderFiles
    part = "encoder"
    cannot: ClassVar[Mapping[str, str]] = {
        "mlm_logits": "a bi-encoder predicts no masked tokens: leave out mlm"
    }
    inputs: ClassVar[tuple[str, ...]] = ("input_ids", "lengths")
    description: ClassVar[ModelDescription] = ModelDescription(
        tags=("sentence-transformers", "dense-retrieval", "information-retrieval", "harp"),
        pipeline_tag="sentence-similarity",
        template="model-card-bi-encoder.md",
        pretrained_title="A dense retriever trained on hyperlinks",
        finetuned_title="A dense retriever trained on judged queries",
    )

    def __init__(
        self,
        encoder: PreTrainedModel,
        files: SentenceEncoderFiles,
        new_weights: tuple[str, ...] = (),
        texts_at_once: int | None = None,
    ) -> None:
        super().__init__(encoder, new_weights)
        self.texts_at_once = texts_at_once
        self.encoder = encoder
        self.files = files
        self._tied = tied_names(self)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        seed: int = 42,
        attention_dropout: bool = False,
        pooling: str | None = None,
        normalize: bool | None = None,
        texts_at_once: int | None = None,
    ) -> TrainableBiEncoder:
        """Load an encoder of sentence-transformers, or any base model.

        Args:
            name: name of the model, as in `harp_plugin.models.loading.resolve_model`.
            seed: seed of the weights that the checkpoint lacks.
            attention_dropout: as in `load_with_new_weights`.
            pooling: ``cls``, ``mean``, ``last``, or ``decoder``, T5's state at the first token of
                its decoder; None for what the model's folder says, or ``mean`` where it says
                nothing.
            normalize: whether vectors have the length 1; None for what the folder says, or True.
            texts_at_once: most texts whose activations are in memory in training; None for all.

        Raises:
            HarpError: there is no such model, its files are damaged, weights of its base are
                missing, it has parts that are not trained here, or no decoder for the pooling.
        """
        files = SentenceEncoderFiles.read(resolve_model(name), pooling, normalize)
        if not files.is_plain:
            raise HarpError(
                f"model {name} makes vectors in a way that is not trained here (include_prompt, "
                "default_prompt_name, do_lower_case or the like): name another encoder"
            )
        kind = encoder_class(load_pretrained(AutoConfig, name), files.pooling)
        encoder, new_weights = load_with_new_weights(
            kind, name, seed, attention_dropout=attention_dropout
        )
        return cls(encoder, files, tuple(sorted(new_weights)), texts_at_once)

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> BiEncoderBatches:
        """Return an object that packs texts for this model.

        Raises:
            HarpError: the tokenizer is not a fast one.
        """
        template = TextTemplate.from_tokenizer(tokenizer)
        return BiEncoderBatches(tokenizer, template, max_length, self.files.prompts)

    def forward(self, input_ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Make a vector of each text, fp32, (texts, width).

        Args:
            input_ids: token ids of the texts, one text after the other, (tokens,).
            lengths: number of tokens of each text, on the CPU, (texts,).
        """
        if self.texts_at_once is None or not torch.is_grad_enabled():
            return self._vectors(input_ids, lengths)
        bounds = range(self.texts_at_once, len(lengths), self.texts_at_once)
        parts = np.split(lengths, bounds)
        ids_of_parts = input_ids.split([int(part.sum()) for part in parts])
        vectors = [
            checkpoint(self._vectors, *part, use_reentrant=False)
            for part in zip(ids_of_parts, parts, strict=True)
        ]
        return torch.cat(vectors)

    def _vectors(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Return the vectors of texts, (texts, width)."""
        if self.is_packed:
            vectors = pooled(self._packed(ids, lengths).float(), lengths, self.files.pooling)
        else:
            vectors = padded_vectors(self.encoder, ids, lengths, self.files.pooling)
        return F.normalize(vectors, dim=1) if self.files.normalize else vectors

    def _packed(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Return the last hidden states, (tokens, width)."""
        filled, sizes, _ = with_filler(ids, lengths, None, longest=self.max_length)
        return packed_states(self.encoder, filled, sizes)[: len(ids)]

    def loss_inputs(self, output: Tensor, batch: Mapping[str, Any]) -> LossInputs:
        """Return the scores by group, and those of each group with the documents of the batch."""
        queries, documents = output[batch["query_rows"]], output[batch["document_rows"]]
        inputs = group_scores((queries * documents).sum(dim=1), batch)
        first = batch["group_pairs"][:, 0]
        others, allowed = in_batch_documents(documents, batch["keys"])
        return replace(
            inputs,
            batch_scores=torch.cat([inputs.scores, queries[first] @ others.T], dim=1),
            batch_mask=torch.cat([inputs.mask, allowed], dim=1),
        )

    def trained(self, *, scored: bool, masked: bool) -> Iterator[nn.Parameter]:
        """Yield the weights that losses train (see `TrainableModel`)."""
        return without_pooler(self.encoder)

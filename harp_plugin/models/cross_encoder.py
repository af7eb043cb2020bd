"""A cross-encoder in training: it scores pairs and predicts masked tokens with one encoder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import register_dataclass
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..errors import HarpError
from .labels import relevant_label
from .loading import load_pretrained
from .masking import TokenMasker
from .packing import PackedClassifier, PassThroughEncoder
from .packing.classifier import outside_autocast, with_exact_head
from .packing.encoder import with_filler
from .pairs import PairEncoder
from .pooling import padded_inputs
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

__all__ = ["CrossEncoderBatches", "CrossEncoderOutput", "TrainableCrossEncoder"]

logger = logging.getLogger(__name__)

_RAW_SCORES = {"activation_fn": "torch.nn.modules.linear.Identity"}


@dataclass(frozen=True, slots=True)
class CrossEncoderOutput:
    """The output of one forward pass.

    It is not a tuple, because accelerate would copy its logits in fp32.

    Attributes:
        scores: relevance scores, fp32, (pairs,).
        mlm_logits: predictions at the masked tokens, in the type of the products, (masked,
            vocabulary), or None.
    """

    scores: Tensor
    mlm_logits: Tensor | None = None


register_dataclass(CrossEncoderOutput)  # so that processes find its tensors


@dataclass(frozen=True)
class CrossEncoderBatches:
    """Packs pairs for a cross-encoder: ``[CLS] query [SEP] document [SEP]``, without padding.

    Attributes:
        encoder: makes token ids of pairs.
        token_types: whether the model has token types.
        masker: draws the masks of the documents' tokens; None masks nothing.
    """

    encoder: PairEncoder
    token_types: bool
    masker: TokenMasker | None = None

    def __call__(
        self,
        pairs: Sequence[tuple[str, str]],
        query_limits: Sequence[int | None],
        mask_keys: Sequence[tuple[int, ...]] | None,
    ) -> Batch:
        """Tokenize, cut, pack and mask pairs.

        Returns:
            ``input_ids`` and, if the model has them, ``token_type_ids``, (tokens,); ``lengths``,
            the tokens of each pair, an array that stays on the CPU, (pairs,). With a masker also
            ``masked_positions``, the indices of the masked tokens, ``mlm_labels``, their ids before
            masking, and ``masked_pairs``, the pair of each masked token, all (masked,).
        """
        queries, documents = zip(*pairs, strict=True)
        tokens = self.encoder.encode(queries, documents, query_limits)
        packed = tokens.packed()
        batch: Batch = {"input_ids": torch.from_numpy(packed.ids), "lengths": packed.lengths}
        if self.token_types:
            batch["token_type_ids"] = torch.from_numpy(packed.types)
        if self.masker is None:
            return batch
        positions, labels, numbers = [], [], []
        ends = np.cumsum(packed.lengths)
        for pair, (start, stop) in enumerate(tokens.document_bounds.tolist()):
            row = packed.ids[ends[pair] - packed.lengths[pair] : ends[pair]]
            key = (int.from_bytes(row.tobytes()),) if mask_keys is None else mask_keys[pair]
            chosen, replaced = self.masker.draw(packed.ids[start:stop], *key)
            masked = start + chosen
            positions.append(masked)
            labels.append(packed.ids[masked])
            numbers.append(np.full(len(masked), pair))
            packed.ids[masked] = replaced
        return batch | {
            "masked_positions": torch.from_numpy(np.concatenate(positions)),
            "mlm_labels": torch.from_numpy(np.concatenate(labels)),
            "masked_pairs": torch.from_numpy(np.concatenate(numbers)),
        }


class TrainableCrossEncoder(TrainableModel):
    """A cross-encoder and a masked language model that share all weights except their heads.

    It works for every architecture that has both a sequence-classification and a
    masked-language-model class in transformers. One checkpoint holds the encoder and both heads:
    ``AutoModelForSequenceClassification`` and sentence-transformers' ``CrossEncoder`` load the
    scorer from it, and ``AutoModelForMaskedLM`` the language model. The language model's own base
    is removed: its head reads the cross-encoder's last hidden states, at the masked tokens only.

    Args:
        scorer: model for sequence classification with one label.
        language_model: model for masked language modeling of the same architecture.
        new_weights: names of the weights that were drawn at random because the checkpoint lacks
            them.
    """

    part = "scorer"
    cannot: ClassVar[Mapping[str, str]] = {
        "batch_scores": "a cross-encoder does not score the documents of other groups: set "
        "model_kind to bi-encoder, or take lce"
    }
    inputs: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "lengths",
        "token_type_ids",
        "masked_positions",
    )
    description: ClassVar[ModelDescription] = ModelDescription(
        tags=("cross-encoder", "information-retrieval", "reranker", "harp"),
        pipeline_tag="text-ranking",
        template="model-card.md",
        pretrained_title="A reranker pre-trained on hyperlinks",
        finetuned_title="A reranker trained on judged queries",
    )

    def __init__(
        self,
        scorer: PreTrainedModel,
        language_model: PreTrainedModel,
        new_weights: tuple[str, ...] = (),
    ) -> None:
        super().__init__(scorer, new_weights)
        prefix = scorer.base_model_prefix
        if not hasattr(scorer, prefix) or language_model.base_model_prefix != prefix:
            raise HarpError(
                f"{type(scorer).__name__} and {type(language_model).__name__} have no base model "
                "in common: choose a BERT-like encoder"
            )
        _share_modules(scorer, language_model)
        setattr(language_model, prefix, PassThroughEncoder())
        self.scorer = scorer
        self.language_model = language_model
        self._tied = tied_names(self)

    @classmethod
    def load(
        cls, name: str, *, seed: int = 42, attention_dropout: bool = False
    ) -> TrainableCrossEncoder:
        """Load a checkpoint that has either head, both heads, or neither.

        Of a head with two labels, the score is the logit of the relevant one minus the other, as
        in ranking. Heads that the checkpoint lacks are drawn at random, the same for the same seed,
        and the log names them; so is a head with more labels.

        Args:
            name: name of the model, as in `harp_plugin.models.loading.resolve_model`.
            seed: seed of the heads that the checkpoint lacks.
            attention_dropout: as in `load_with_new_weights`.

        Raises:
            HarpError: there is no such model, its files are damaged, weights of its base are
                missing, or its architecture lacks one of the two heads.
        """
        scorer, new_in_scorer = load_with_new_weights(
            AutoModelForSequenceClassification,
            name,
            seed,
            attention_dropout=attention_dropout,
            num_labels=1,
        )
        new_in_scorer -= _start_from_two_labels(scorer, new_in_scorer, name)
        language_model, new_in_language_model = load_with_new_weights(
            AutoModelForMaskedLM, name, seed
        )
        scorer.config.sentence_transformers = dict(_RAW_SCORES)
        new_weights = tuple(sorted(new_in_scorer | new_in_language_model))
        if new_weights:
            parts = ", ".join(sorted({weight.partition(".")[0] for weight in new_weights}))
            logger.info(
                "%s lacks fitting weights of %s: drawn at random, with seed %d", name, parts, seed
            )
        return cls(scorer, language_model, new_weights)

    @property
    def heads(self) -> tuple[nn.Module, ...]:
        """The language model, whose base only passes hidden states through."""
        return (self.language_model,)

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> CrossEncoderBatches:
        """Return an object that packs pairs for this model.

        Raises:
            HarpError: the tokenizer cannot encode pairs.
        """
        has_types = getattr(self.config, "type_vocab_size", 0) > 1
        token_types = has_types and "token_type_ids" in tokenizer.model_input_names
        return CrossEncoderBatches(PairEncoder(tokenizer, max_length), token_types, masker)

    def loss_inputs(self, output: CrossEncoderOutput, batch: Mapping[str, Any]) -> LossInputs:
        """Return the scores by group, and the predictions at the masked tokens."""
        inputs = group_scores(output.scores, batch)
        return replace(inputs, mlm_logits=output.mlm_logits, mlm_labels=batch.get("mlm_labels"))

    def forward(
        self,
        input_ids: Tensor,
        lengths: np.ndarray,
        token_type_ids: Tensor | None = None,
        masked_positions: Tensor | None = None,
    ) -> CrossEncoderOutput:
        """Score pairs, and predict their masked tokens, in one pass of the encoder.

        Under autocast the encoder and the head of the language model multiply in 16 bits, and the
        head that scores in the type of its weights.

        Args:
            input_ids: token ids of the pairs, one pair after the other, (tokens,).
            lengths: number of tokens of each pair, on the CPU, (pairs,).
            token_type_ids: the type of each token, for models that have types, (tokens,).
            masked_positions: indices of the masked tokens, (masked,).
        """
        score = self._score_packed if self.is_packed else self._score_padded
        scores, hidden = score(input_ids, lengths, token_type_ids, masked_positions)
        if hidden is None:
            return CrossEncoderOutput(scores=scores.float())
        predict: Callable[..., Any] = self.language_model
        if not torch.is_autocast_enabled(hidden.device.type):
            predict = partial(outside_autocast, self.language_model)
        logits = predict(inputs_embeds=hidden[None]).logits[0]
        return CrossEncoderOutput(scores=scores.float(), mlm_logits=logits)

    def _score_packed(
        self, ids: Tensor, lengths: np.ndarray, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the scores, and the last hidden states at the masked tokens, (masked, width)."""
        filled = with_filler(ids, lengths, types, longest=self.max_length)
        output = PackedClassifier(self.scorer)(*filled, masked)
        return output.logits[: len(lengths), 0], output.hidden

    def _score_padded(
        self, ids: Tensor, lengths: np.ndarray, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the same as `_score_packed`, by a forward pass over padded pairs."""
        padding = self.config.pad_token_id or 0
        inputs, positions = padded_inputs(ids, lengths, types, padding)
        scorer = with_exact_head(self.scorer)
        output = scorer(output_hidden_states=masked is not None, **inputs)
        hidden = None
        if masked is not None:
            states = output.hidden_states[-1]
            if states.shape[:2] != inputs["input_ids"].shape:  # Funnel
                kind = type(self.scorer).__name__
                raise HarpError(f"{kind} gives no state of each token: leave out the loss mlm")
            hidden = states.flatten(0, 1)[positions[masked]]
        return output.logits[:, 0], hidden

    def trained(self, *, scored: bool, masked: bool) -> Iterator[nn.Parameter]:
        """Yield the weights that losses train (see `TrainableModel`)."""
        yield from without_pooler(self.scorer.base_model)
        if scored:
            yield from self.scorer.parameters()
        if masked:
            yield from self.language_model.parameters()


def _start_from_two_labels(scorer: PreTrainedModel, new_weights: set[str], name: str) -> set[str]:
    """Let a score be the difference of two logits, if the checkpoint's head gives two.

    Returns:
        The names of the weights that are in the checkpoint, for two labels.

    Raises:
        HarpError: both labels say that a text is relevant, or both that it is not.
    """
    config = load_pretrained(AutoConfig, name)
    kinds = config.architectures or []
    if config.num_labels != 2 or not any("SequenceClassification" in kind for kind in kinds):
        return set()
    both, lacking = load_with_new_weights(AutoModelForSequenceClassification, name, seed=0)
    relevant = relevant_label(config)
    for weight in new_weights - lacking:
        of_labels = both.get_parameter(weight).detach()
        difference = of_labels[relevant] - of_labels[1 - relevant]
        scorer.get_parameter(weight).data.copy_(difference)
    return new_weights - lacking


def _share_modules(scorer: PreTrainedModel, language_model: PreTrainedModel) -> None:
    """Let both models use the same base, and the same module wherever both have the same name."""
    for name, part in scorer.named_children():
        other = getattr(language_model, name, None)
        if other is None or not list(other.parameters()):
            continue
        if name != scorer.base_model_prefix and _weight_shapes(part) != _weight_shapes(other):
            raise HarpError(
                f"{type(scorer).__name__} and {type(language_model).__name__} use the name {name} "
                "for different parts: one checkpoint cannot hold both"
            )
        setattr(language_model, name, part)
    language_model.tie_weights()


def _weight_shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in module.state_dict().items()}

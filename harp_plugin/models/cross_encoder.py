"""A cross-encoder in training: one encoder, a relevance score for each pair, masked tokens."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import ModelOutput

from ..errors import HarpError
from .loading import load_pretrained, longest_input, without_notices
from .masking import TokenMasker
from .packing import GivenHiddenStates, PackedClassifier, can_pack
from .pairs import PackedPairs, PairEncoder, TokenPairs
from .trainable import Batch, BatchSize, LossInputs, ModelDescription, in_groups, laid_out

__all__ = ["CrossEncoderBatches", "CrossEncoderOutput", "CrossEncoderWork", "TrainableCrossEncoder"]

logger = logging.getLogger(__name__)

_WEIGHTS = "model.safetensors"
_RAW_SCORES = {"activation_fn": "torch.nn.modules.linear.Identity"}
_SCORER = "scorer."


@dataclass
class CrossEncoderOutput(ModelOutput):
    """What one forward pass gives.

    Attributes:
        scores: relevance scores, fp32, (pairs,).
        mlm_logits: predictions at the masked tokens, fp32, (masked, vocabulary), or None.
    """

    scores: Tensor | None = None
    mlm_logits: Tensor | None = None


class CrossEncoderBatches:
    """Packs pairs for a cross-encoder: ``[CLS] query [SEP] document [SEP]``, one behind the other.

    Args:
        tokenizer: a fast tokenizer.
        max_length: most tokens of a pair, special tokens included.
        token_types: whether the model has token types.
        masker: draws the masks of the documents' tokens; None masks nothing.

    Raises:
        HarpError: the tokenizer cannot encode pairs.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
        *,
        token_types: bool,
        masker: TokenMasker | None = None,
    ) -> None:
        self._encoder = PairEncoder(tokenizer, max_length)
        self._token_types = token_types
        self._masker = masker

    def __call__(
        self,
        pairs: Sequence[tuple[str, str]],
        query_limits: Sequence[int | None],
        mask_keys: Sequence[tuple[int, ...]] | None,
    ) -> Batch:
        """Tokenise, cut, pack and mask.

        Returns:
            ``input_ids`` and, where the model has them, ``token_type_ids``, (tokens,); ``lengths``,
            tokens of each pair, an array that stays on the CPU, (pairs,); with a masker
            ``masked_positions``, indices into the tokens, ``mlm_labels``, the ids that were there,
            and ``masked_pairs``, the pair of each, all (masked,).
        """
        queries, documents = zip(*pairs, strict=True)
        tokens = self._encoder.encode(queries, documents, query_limits)
        packed = tokens.packed()
        masks = {} if self._masker is None else _mask(packed, tokens, self._masker, mask_keys)
        batch: Batch = {"input_ids": torch.from_numpy(packed.ids), "lengths": packed.lengths}
        if self._token_types:
            batch["token_type_ids"] = torch.from_numpy(packed.types)
        return batch | masks


def _mask(
    packed: PackedPairs,
    tokens: TokenPairs,
    masker: TokenMasker,
    keys: Sequence[tuple[int, ...]] | None,
) -> Batch:
    """Mask ``packed.ids`` in place; return the positions and what was there."""
    positions, labels, pairs = [], [], []
    ends = np.cumsum(packed.lengths)
    for pair, (start, stop) in enumerate(tokens.document_bounds.tolist()):
        row = packed.ids[ends[pair] - packed.lengths[pair] : ends[pair]]
        key = (int.from_bytes(row.tobytes()),) if keys is None else keys[pair]
        chosen, shown = masker.draw(packed.ids[start:stop], *key)
        places = start + chosen
        positions.append(places)
        labels.append(packed.ids[places])
        pairs.append(np.full(len(places), pair))
        packed.ids[places] = shown
    return {
        "masked_positions": torch.from_numpy(np.concatenate(positions)),
        "mlm_labels": torch.from_numpy(np.concatenate(labels)),
        "masked_pairs": torch.from_numpy(np.concatenate(pairs)),
    }


@dataclass(frozen=True)
class CrossEncoderWork:
    """What a training step multiplies and adds, by the PaLM paper (Chowdhery et al. 2022, app. B).

    A step costs 6 flops for each weight of a matrix product and each row that it multiplies: two
    forward, four backward; embeddings are looked up and cost nothing. Rows are the tokens for the
    encoder, the pairs for pooler and scoring head, the masked tokens for the language model's head.
    Attention adds 12 · layers · hidden · T for each token of a pair of T tokens. Padding does not
    count, nor does what gradient checkpointing computes again. Local attention is counted as if
    it were global.

    Attributes:
        encoder: weights that multiply every token.
        scoring_head: weights that multiply every pair.
        language_head: weights that multiply every masked token.
        attention: layers · hidden size.
    """

    encoder: int
    scoring_head: int
    language_head: int
    attention: int

    def flops(self, size: BatchSize) -> float:
        """Return the floating-point operations of a step over a batch of this size."""
        rows = self.encoder * size.tokens + self.scoring_head * size.pairs
        rows += self.language_head * size.masked
        return 6 * rows + 12 * self.attention * size.squares


class TrainableCrossEncoder(nn.Module):
    """A cross-encoder and a masked language model that share every weight but their heads.

    It works for every architecture that has both a sequence-classification and a
    masked-language-model class in transformers. The language model's own base is taken out: its
    head reads the cross-encoder's last hidden states, at the masked tokens only.

    Args:
        scorer: model for sequence classification with one label.
        language_model: model for masked language modelling of the same architecture.
        new_weights: names of the weights that were drawn because the checkpoint lacks them.

    Attributes:
        is_packed: whether pairs lie one behind the other in a pass, without padding; at first
            wherever the architecture allows it (see `harp_plugin.models.packing.PACKED`).
    """

    # The trainer hands over the counts of the whole global batch, and does not divide again.
    accepts_loss_kwargs = True
    main_input_name = "input_ids"
    inputs: ClassVar[tuple[str, ...]] = (
        *("input_ids", "lengths", "token_type_ids", "masked_positions"),
    )
    description: ClassVar[ModelDescription] = ModelDescription(
        name="cross-encoder",
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
        super().__init__()
        prefix = scorer.base_model_prefix
        if not hasattr(scorer, prefix) or language_model.base_model_prefix != prefix:
            raise HarpError(
                f"{type(scorer).__name__} and {type(language_model).__name__} have no base model "
                "in common: choose a BERT-like encoder"
            )
        _share_modules(scorer, language_model)
        setattr(language_model, prefix, GivenHiddenStates())
        self.scorer = scorer
        self.language_model = language_model
        self.new_weights = new_weights
        self.is_packed = can_pack(scorer.config)
        self._tied = _tied_names(self)

    @classmethod
    def load(cls, name: str, *, seed: int = 42) -> TrainableCrossEncoder:
        """Load a checkpoint of either head, of both, or of a base model alone.

        Heads that the checkpoint lacks are drawn, the same for the same seed, and the log names
        them.

        Args:
            name: as in `harp_plugin.models.loading.resolve_model`.
            seed: draws the heads that the checkpoint lacks.

        Raises:
            HarpError: there is no such model, its files are damaged, weights of its base are
                missing, or its architecture lacks one of the two heads.
        """
        scorer, new_in_scorer = _load(AutoModelForSequenceClassification, name, seed, num_labels=1)
        language_model, new_in_language_model = _load(AutoModelForMaskedLM, name, seed)
        scorer.config.sentence_transformers = dict(_RAW_SCORES)
        new_weights = tuple(sorted(new_in_scorer | new_in_language_model))
        if new_weights:
            parts = ", ".join(sorted({weight.partition(".")[0] for weight in new_weights}))
            logger.info("%s lacks weights of %s: drawn anew, seed %d", name, parts, seed)
        return cls(scorer, language_model, new_weights)

    @property
    def config(self):
        """Configuration of the cross-encoder, as it is saved."""
        return self.scorer.config

    @property
    def has_token_types(self) -> bool:
        """Whether the model tells query and document apart by token types."""
        return getattr(self.config, "type_vocab_size", 0) > 1

    @property
    def max_length(self) -> int | None:
        """Most tokens that the model reads, None where it sets no limit."""
        return longest_input(self.scorer)

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> CrossEncoderBatches:
        """Return what packs pairs for this model.

        Raises:
            HarpError: the tokenizer cannot encode pairs.
        """
        token_types = self.has_token_types and "token_type_ids" in tokenizer.model_input_names
        return CrossEncoderBatches(tokenizer, max_length, token_types=token_types, masker=masker)

    def size_of(self, batch: Mapping[str, Any]) -> BatchSize:
        """Return how much a batch holds."""
        lengths = batch["lengths"]
        return BatchSize(
            tokens=int(lengths.sum()),
            squares=int((lengths * lengths).sum()),
            pairs=len(lengths),
            masked=len(batch.get("mlm_labels", ())),
        )

    def work(self) -> CrossEncoderWork:
        """Count the weights of matrix products; to be asked before processes shard the model."""
        base = getattr(self.scorer, self.scorer.base_model_prefix)
        encoder = _product_weights(base, leave_out="pooler")
        layers = getattr(self.config, "num_hidden_layers", 0)
        return CrossEncoderWork(
            encoder,
            _product_weights(self.scorer) - encoder,
            _product_weights(self.language_model),
            layers * getattr(self.config, "hidden_size", 0),
        )

    def loss_inputs(self, output: CrossEncoderOutput, batch: Mapping[str, Any]) -> LossInputs:
        """Return scores by group, and predictions at the masked tokens."""
        assert output.scores is not None
        scores, mask = in_groups(output.scores, batch["group_sizes"])
        teacher = batch.get("teacher_scores")
        return LossInputs(
            scores,
            mask,
            mlm_logits=output.mlm_logits,
            mlm_labels=batch.get("mlm_labels"),
            teacher_scores=None if teacher is None else laid_out(teacher, mask),
        )

    def forward(
        self,
        input_ids: Tensor,
        lengths: np.ndarray,
        token_type_ids: Tensor | None = None,
        masked_positions: Tensor | None = None,
    ) -> CrossEncoderOutput:
        """Score pairs, and predict their masked tokens, in one pass of the encoder.

        Args:
            input_ids: tokens of the pairs, one pair behind the other, (tokens,).
            lengths: tokens of each pair, on the CPU, (pairs,).
            token_type_ids: of each token, for models that have them, (tokens,).
            masked_positions: indices into the tokens, (masked,).
        """
        score = self._packed if self.is_packed else self._padded
        scores, hidden = score(input_ids, lengths, token_type_ids, masked_positions)
        if hidden is None:
            return CrossEncoderOutput(scores=scores.float())
        logits = self.language_model(inputs_embeds=hidden[None]).logits[0]
        return CrossEncoderOutput(scores=scores.float(), mlm_logits=logits.float())

    @torch.compiler.disable(recursive=False)
    def _packed(
        self, ids: Tensor, lengths: np.ndarray, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return scores, and last hidden states at the masked tokens, (masked, width)."""
        output = PackedClassifier(self.scorer)(ids, lengths, types, masked)
        return output.logits[:, 0], output.hidden

    def _padded(
        self, ids: Tensor, lengths: np.ndarray, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the same by a padded pass."""
        sizes = torch.as_tensor(lengths, device=ids.device)
        attended = torch.arange(int(sizes.max()), device=ids.device) < sizes[:, None]
        padding = self.config.pad_token_id or 0
        inputs = {"input_ids": torch.full_like(attended, padding, dtype=ids.dtype)}
        inputs["input_ids"] = inputs["input_ids"].masked_scatter(attended, ids)
        if types is not None:
            inputs["token_type_ids"] = laid_out(types, attended)
        output = self.scorer(
            attention_mask=attended.long(), output_hidden_states=masked is not None, **inputs
        )
        hidden = None if masked is None else output.hidden_states[-1][attended][masked]
        return output.logits[:, 0], hidden

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Recompute activations in the backward pass, as transformers' models do."""
        self.scorer.activation_checkpointing_enable(**options)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """`activation_checkpointing_enable` by its older name."""
        self.scorer.gradient_checkpointing_enable(**options)

    def untrained(self, *, scored: bool, masked: bool) -> tuple[str, ...]:
        """Return names of new weights that stay as they were drawn.

        Args:
            scored: whether a loss trains the scorer's head.
            masked: whether a loss trains the language model's head.
        """
        trained = {
            *(self.scorer.state_dict() if scored else ()),
            *(self.language_model.state_dict() if masked else ()),
        }
        return tuple(name for name in self.new_weights if name not in trained)

    def save(
        self,
        folder: str | Path,
        state_dict: dict[str, Tensor] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        """Write one plain Hugging Face checkpoint that holds the encoder and both heads.

        ``AutoModelForSequenceClassification`` and sentence-transformers' ``CrossEncoder`` load the
        scorer from it, ``AutoModelForMaskedLM`` the language model, each with its trained head.

        Args:
            folder: where to write ``config.json`` and ``model.safetensors``.
            state_dict: this model's gathered weights, where the model itself is sharded.
            leave_out: names of weights that are not written, such as an untrained head's: what
                loads the checkpoint then knows that it lacks them.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            _plain(name): weight.detach().contiguous()
            for name, weight in (state_dict or self.state_dict()).items()
            if name not in self._tied and _plain(name) not in leave_out
        }
        save_file(weights, folder / _WEIGHTS, metadata={"format": "pt"})
        self.config.architectures = [type(self.scorer).__name__]
        self.config.save_pretrained(folder)

    def load_weights(self, folder: str | Path, left_out: Collection[str] = ()) -> None:
        """Read the weights of a checkpoint that `save` wrote for a model of the same shape.

        Args:
            folder: the checkpoint.
            left_out: what `save` left out; those weights stay as they are.

        Raises:
            HarpError: the file is missing, damaged, or of another model.
        """
        path = Path(folder) / _WEIGHTS
        try:
            stored = load_file(path)
            weights = {
                name: stored[_plain(name)]
                for name in self.state_dict()
                if name not in self._tied and _plain(name) not in left_out
            }
            self.load_state_dict(weights, strict=False)
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise HarpError(f"cannot go on from {path}: {reason}") from error

    def ranking_model(self, weights: Mapping[str, Tensor] | None = None) -> PreTrainedModel:
        """Return the model for sequence classification.

        Args:
            weights: gathered weights of this model, where processes shard it: then a copy of the
                part is made of them.
        """
        if weights is None:
            return self.scorer
        copy = AutoModelForSequenceClassification.from_config(self.config, dtype=torch.float32)
        copy.load_state_dict(
            {
                name.removeprefix(_SCORER): weight
                for name, weight in weights.items()
                if name.startswith(_SCORER)
            }
        )
        return copy


def _load(auto_class, name: str, seed: int, **options) -> tuple[PreTrainedModel, set[str]]:
    """Load a model in fp32 with the names of its weights that had to be drawn anew."""
    with torch.random.fork_rng(), without_notices():
        torch.manual_seed(seed)
        model, info = load_pretrained(
            auto_class,
            name,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **options,
        )
    new_weights = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    base = f"{model.base_model_prefix}."
    lacking = sorted(key for key in new_weights if key.startswith(base) and "pooler" not in key)
    if lacking:
        raise HarpError(
            f"model {name} lacks {len(lacking)} weights of its base, such as {lacking[0]}: "
            "name a complete checkpoint"
        )
    return model, new_weights


def _share_modules(scorer: PreTrainedModel, language_model: PreTrainedModel) -> None:
    """Give both models the same base, and any part that both keep under one name."""
    for name, part in scorer.named_children():
        other = getattr(language_model, name, None)
        if other is None or not list(other.parameters()):
            continue
        if name != scorer.base_model_prefix and _shapes(part) != _shapes(other):
            raise HarpError(
                f"{type(scorer).__name__} and {type(language_model).__name__} use the name {name} "
                "for different parts: one checkpoint cannot hold both"
            )
        setattr(language_model, name, part)
    language_model.tie_weights()


def _shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in module.state_dict().items()}


def _tied_names(model: nn.Module) -> frozenset[str]:
    seen: set[int] = set()
    tied: set[str] = set()
    for name, weight in model.named_parameters(remove_duplicate=False):
        tied.update({name} if id(weight) in seen else ())
        seen.add(id(weight))
    return frozenset(tied)


def _plain(name: str) -> str:
    return name.partition(".")[2]


def _product_weights(module: nn.Module, leave_out: str = "\n") -> int:
    """Count the weights of a module's matrix products."""
    return sum(
        part.weight.numel()
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and leave_out not in name
    )

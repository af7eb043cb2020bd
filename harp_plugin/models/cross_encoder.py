"""The joint model: one encoder, a relevance score for each pair, and a masked language model."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)
from transformers.utils import ModelOutput

from ..errors import HarpError
from .loading import load_pretrained, longest_input, without_notices
from .packing import GivenHiddenStates, PackedClassifier, can_pack

logger = logging.getLogger(__name__)

WEIGHTS = "model.safetensors"
RAW_SCORES = {"activation_fn": "torch.nn.modules.linear.Identity"}


@dataclass
class JointOutput(ModelOutput):
    """What one forward pass gives.

    Attributes:
        scores: relevance scores, fp32, (pairs,).
        mlm_logits: predictions at the masked tokens, fp32, (masked, vocabulary), or None.
    """

    scores: Tensor | None = None
    mlm_logits: Tensor | None = None


class JointModel(nn.Module):
    """A cross-encoder and a masked language model that share every weight but their heads.

    Works for every architecture that has both a sequence-classification and a masked-language-model
    class in transformers. The language model's own base is taken out: its head reads the
    cross-encoder's last hidden states, at the masked tokens only.

    Args:
        scorer: model for sequence classification with one label.
        language_model: model for masked language modelling of the same architecture.
        fresh: names of the weights that were not in the loaded checkpoint.

    Attributes:
        is_packed: whether pairs lie one behind the other in a pass, without padding; at first
            wherever the architecture allows it (see `harp_plugin.models.packing.PACKED`).
    """

    # The trainer hands over the counts of the whole global batch, and does not divide again.
    accepts_loss_kwargs = True
    main_input_name = "input_ids"

    def __init__(
        self, scorer: PreTrainedModel, language_model: PreTrainedModel, fresh: tuple[str, ...] = ()
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
        self.fresh = fresh
        self.is_packed = can_pack(scorer.config)
        self._tied = _tied_names(self)

    @classmethod
    def load(cls, name: str, *, seed: int = 42) -> JointModel:
        """Load a checkpoint of either head, of both, or of a base model alone.

        Heads that it lacks are drawn anew, the same for the same seed, and named in the log.

        Args:
            name: as in `harp_plugin.models.loading.resolve_model`.
            seed: seed of fresh weights.

        Raises:
            HarpError: there is no such model, its files are damaged, weights of its base are
                missing, or its architecture lacks one of the two heads.
        """
        scorer, scorer_fresh = _load(AutoModelForSequenceClassification, name, seed, num_labels=1)
        language_model, lm_fresh = _load(AutoModelForMaskedLM, name, seed)
        scorer.config.sentence_transformers = dict(RAW_SCORES)
        fresh = tuple(sorted(scorer_fresh | lm_fresh))
        if fresh:
            parts = ", ".join(sorted({weight.partition(".")[0] for weight in fresh}))
            logger.info("%s lacks weights of %s: drawn anew, seed %d", name, parts, seed)
        return cls(scorer, language_model, fresh)

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

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        masked_positions: Tensor | None = None,
    ) -> JointOutput:
        """Score pairs, and predict their masked tokens, in one pass of the encoder.

        Args:
            input_ids: (pairs, length).
            attention_mask: (pairs, length).
            token_type_ids: (pairs, length), for models that have them.
            masked_positions: indices into the flattened (pairs × length) tokens, (masked,).
        """
        of_pairs = self._packed if self.is_packed else self._padded
        scores, hidden = of_pairs(input_ids, attention_mask, token_type_ids, masked_positions)
        if hidden is None:
            return JointOutput(scores=scores.float())
        logits = self.language_model(inputs_embeds=hidden[None]).logits[0]
        return JointOutput(scores=scores.float(), mlm_logits=logits.float())

    @torch.compiler.disable(recursive=False)
    def _packed(
        self, ids: Tensor, mask: Tensor, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Scores, and last hidden states at the masked tokens, (masked, width)."""
        inside = mask.bool()
        places = None if masked is None else (inside.flatten().cumsum(0) - 1)[masked]
        types = None if types is None else types[inside]
        found = PackedClassifier(self.scorer)(ids[inside], inside.sum(1).cpu(), types, places)
        return found.logits[:, 0], found.hidden

    def _padded(
        self, ids: Tensor, mask: Tensor, types: Tensor | None, masked: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The same of a padded pass."""
        inputs = {} if types is None else {"token_type_ids": types}
        found = self.scorer(
            ids, attention_mask=mask, output_hidden_states=masked is not None, **inputs
        )
        hidden = None if masked is None else found.hidden_states[-1].flatten(0, 1)[masked]
        return found.logits[:, 0], hidden

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Recompute activations in the backward pass, as transformers' models do."""
        self.scorer.activation_checkpointing_enable(**options)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """`activation_checkpointing_enable` by its older name."""
        self.scorer.gradient_checkpointing_enable(**options)

    def untrained(self, *, scored: bool, masked: bool) -> tuple[str, ...]:
        """Names of fresh weights that stay as they were drawn.

        Args:
            scored: whether a loss trains the scorer's head.
            masked: whether a loss trains the language model's head.
        """
        trained = {
            *(self.scorer.state_dict() if scored else ()),
            *(self.language_model.state_dict() if masked else ()),
        }
        return tuple(name for name in self.fresh if name not in trained)

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
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
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
        path = Path(folder) / WEIGHTS
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
    fresh = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    base = f"{model.base_model_prefix}."
    lacking = sorted(key for key in fresh if key.startswith(base) and "pooler" not in key)
    if lacking:
        raise HarpError(
            f"model {name} lacks {len(lacking)} weights of its base, such as {lacking[0]}: "
            "name a complete checkpoint"
        )
    return model, fresh


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

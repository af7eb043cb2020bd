"""The joint model: one encoder, a relevance score for each pair, and a masked language model."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import ModelOutput
from transformers.utils import logging as transformers_logging

from ..errors import HarpError
from ..models import load_pretrained, longest_input

logger = logging.getLogger(__name__)

WEIGHTS = "model.safetensors"
_PART_TOKENS = 1024
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


class GivenHiddenStates(nn.Module):
    """Stands where a language model has its encoder; hands on hidden states that it is given."""

    def forward(self, *_: object, inputs_embeds: Tensor, **__: object) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


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
        is_split: whether a batch on a CPU may be split into parts. It must not where processes
            shard the model, for they wait for each other in every part.
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
        self.is_split = True
        self._tied = _tied_names(self)

    @classmethod
    def load(cls, name: str, *, seed: int = 42) -> JointModel:
        """Load a checkpoint of either head, of both, or of a base model alone.

        Heads that it lacks are drawn anew, the same for the same seed, and named in the log.

        Args:
            name: as in `harp_plugin.models.resolve_model`.
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

        On a CPU the pass goes part by part, pairs of like length together, so that little is
        computed for padding.

        Args:
            input_ids: (pairs, length).
            attention_mask: (pairs, length).
            token_type_ids: (pairs, length), for models that have them.
            masked_positions: indices into the flattened (pairs × length) tokens, (masked,).
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        whole = not self.is_split or input_ids.device.type != "cpu"
        parts = [torch.arange(len(input_ids))] if whole else _by_length(attention_mask)
        scores, masked, places = [], [], []
        for rows in parts:
            width = input_ids.shape[1] if whole else int(attention_mask[rows].sum(1).max())
            part = inputs if whole else {name: x[rows, :width] for name, x in inputs.items()}
            output = self.scorer(**part, output_hidden_states=masked_positions is not None)
            scores.append(output.logits[:, 0].float())
            if masked_positions is not None:
                found = _positions(masked_positions, input_ids.shape[1], rows)
                masked.append(output.hidden_states[-1][found.row, found.column])
                places.append(found.place)
        in_order = torch.cat(scores)[torch.cat(parts).argsort().to(input_ids.device)]
        if masked_positions is None:
            return JointOutput(scores=in_order)
        hidden = torch.cat(masked)[torch.cat(places).argsort()]
        logits = self.language_model(inputs_embeds=hidden[None]).logits[0]
        return JointOutput(scores=in_order, mlm_logits=logits.float())

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


class _Positions(NamedTuple):
    """Tokens of some rows: row among these, column, and place among all that were asked for."""

    row: Tensor
    column: Tensor
    place: Tensor


def _positions(flattened: Tensor, width: int, rows: Tensor) -> _Positions:
    """Those of the flattened (pairs × width) positions that lie in some rows."""
    among = torch.full((int(rows.max()) + 1,), -1, device=flattened.device)
    among[rows.to(flattened.device)] = torch.arange(len(rows), device=flattened.device)
    row = (flattened // width).clamp(max=len(among))
    inside = torch.cat([among, among.new_full((1,), -1)])[row]
    place = (inside >= 0).nonzero()[:, 0]
    return _Positions(inside[place], flattened[place] % width, place)


def _by_length(attention_mask: Tensor) -> list[Tensor]:
    """Rows of like length, in parts of about `_PART_TOKENS` tokens, the longest first."""
    lengths = attention_mask.sum(1)
    parts: list[list[int]] = []
    width = 0
    for row in lengths.argsort(descending=True, stable=True).tolist():
        if not parts or (len(parts[-1]) + 1) * width > _PART_TOKENS:
            parts.append([])
            width = int(lengths[row])
        parts[-1].append(row)
    return [torch.tensor(part) for part in parts]


def _load(auto_class, name: str, seed: int, **options) -> tuple[PreTrainedModel, set[str]]:
    """Load a model in fp32 with the names of its weights that had to be drawn anew."""
    with torch.random.fork_rng(), _quiet():
        torch.manual_seed(seed)
        try:
            model, info = load_pretrained(
                auto_class,
                name,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                **options,
            )
        except SafetensorError as error:
            raise HarpError(f"cannot load model {name}: damaged weights ({error})") from error
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from warning of heads that a checkpoint rightly lacks."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()

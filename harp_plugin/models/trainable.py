"""The protocol of a model that can be trained, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError, folded
from .loading import WEIGHTS, check_base, load_pretrained, longest_input, without_notices
from .masking import TokenMasker
from .packing import can_pack
from .sentence_encoder import SentenceEncoderFiles

__all__ = [
    "Batch",
    "GroupKeys",
    "LossInputs",
    "ModelDescription",
    "PairBatches",
    "TrainableModel",
    "group_scores",
    "load_with_new_weights",
    "tied_names",
    "without_pooler",
]

Batch = dict[str, Any]
"""Tensors by name, and NumPy arrays, which stay on the CPU."""
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
"""Names of the dropout of attention weights in configurations."""


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Numbers that tell which queries and documents of a batch are the same.

    All are arrays of int64 that stay on the CPU.

    Attributes:
        queries: a number of each group's query, (groups,).
        documents: a number of the text of each pair's document, and one of the page or the judged
            document that it is from, (pairs, 2).
        relevant: what is not a negative of a group's query: the group's place in the batch and a
            number as in ``documents``, (any, 2).
        sizes: number of members of each group, (groups,).
    """

    queries: np.ndarray
    documents: np.ndarray
    relevant: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, slots=True)
class LossInputs:
    """The values of a model that losses read. A loss takes the fields that its parameters name.

    A model of another kind may have further values: add a field here, whose default is None.

    Attributes:
        scores: relevance scores, fp32, (groups, members); the positive is in column 0.
        mask: True where a group has a member, bool, (groups, members).
        mlm_logits: predictions at the masked tokens, in the type of the products, (masked,
            vocabulary), or None.
        mlm_labels: true ids of the masked tokens, int64, (masked,), or None.
        teacher_scores: scores of a teacher, fp32, (groups, members), or None.
        batch_scores: scores of a group's own pairs, and of its query with the documents of the
            whole batch, fp32, (groups, members + documents), or None.
        batch_mask: True for the group's own pairs and for the documents that are negatives of it,
            bool, (groups, members + documents), or None.
    """

    scores: Tensor
    mask: Tensor
    mlm_logits: Tensor | None = None
    mlm_labels: Tensor | None = None
    teacher_scores: Tensor | None = None
    batch_scores: Tensor | None = None
    batch_mask: Tensor | None = None


PairBatches = Callable[
    [Sequence[tuple[str, str]], Sequence[int | None], Sequence[tuple[int, ...]] | None], Batch
]
"""Turns texts into the part of a batch that the model reads.

It takes query and document of each pair; the most tokens of each query, None for no limit except
the pair's; and numbers that the masks of each pair depend on, None to let them depend on the pair's
tokens. It returns the model's inputs by name. If tokens are masked, also ``mlm_labels``, their ids
before masking, and ``masked_pairs``, the pair of each masked token, both (masked,).
"""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What the model card says about every model of one kind.

    Attributes:
        tags: tags of the card on the hub.
        pipeline_tag: the hub's name for the task that a trained model does.
        template: file name of the card's text in the folder ``data`` of the package.
        pretrained_title: title of a model that was pre-trained on hyperlinks.
        finetuned_title: title of a model that was trained on judged queries.
    """

    tags: tuple[str, ...]
    pipeline_tag: str
    template: str
    pretrained_title: str
    finetuned_title: str


class TrainableModel(nn.Module):
    """A model that `harp_plugin.training` can train.

    Each kind of model is one class in one file. The class decides how its batches are made, which
    values its losses read, how it is saved and what its card says. The trainer, losses, meters,
    cards and validation know this class only.

    Args:
        ranking: the model of transformers that ranks.
        new_weights: names of the weights that were drawn at random because the checkpoint lacks
            them.

    Attributes:
        description: what the model card says about this kind of model.
        cannot: fields of `LossInputs` that this kind of model does not have, each with the reason
            and what a recipe should do instead.
        inputs: names of the entries of a batch that `forward` takes.
        part: name of the attribute that holds the model that ranks.
        files: how an encoder makes vectors of texts; None for a model that reads pairs.
        is_packed: whether texts follow each other in a forward pass, without padding. At first it
            is True if the architecture allows it (see `harp_plugin.models.packing.PACKED`).
    """

    description: ClassVar[ModelDescription]
    cannot: ClassVar[Mapping[str, str]]
    inputs: ClassVar[tuple[str, ...]]
    part: ClassVar[str]
    _tied: frozenset[str]
    files: SentenceEncoderFiles | None = None

    def __init__(self, ranking: PreTrainedModel, new_weights: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.new_weights = new_weights
        self.is_packed = can_pack(ranking.config)

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> PairBatches:
        """Return an object that makes this model's part of a batch.

        Args:
            tokenizer: a fast tokenizer.
            max_length: most tokens of a pair, special tokens included.
            masker: draws the masks of the documents' tokens; None masks nothing.
        """
        raise NotImplementedError

    def loss_inputs(self, output: Any, batch: Mapping[str, Any]) -> LossInputs:
        """Return the values that losses read, from the output of `forward` and from the batch.

        Besides what `batches` made, the batch has ``group_pairs``, the pair of each member of each
        group, and -1 where a group has no member, (groups, members); ``keys``, a `GroupKeys`; and,
        if the data have them, ``teacher_scores``, (pairs,).
        """
        raise NotImplementedError

    def trained(self, *, scored: bool, masked: bool) -> Iterator[nn.Parameter]:
        """Yield the weights that losses train.

        Args:
            scored: whether a loss reads relevance scores.
            masked: whether a loss reads predictions at masked tokens.
        """
        raise NotImplementedError

    def untrained(self, **read: bool) -> list[str]:
        """Return the names of the weights that no loss trains, each by all of its names.

        Args:
            read: what losses read, as in `trained`.
        """
        trained = set(map(id, self.trained(**read)))
        weights = self.named_parameters(remove_duplicate=False)
        return [name for name, weight in weights if id(weight) not in trained]

    def untrained_new(self, **read: bool) -> tuple[str, ...]:
        """Return the names, in a file, of the new weights that no loss trains.

        Args:
            read: what losses read, as in `trained`.
        """
        untrained = {name.partition(".")[2] for name in self.untrained(**read)}
        return tuple(name for name in self.new_weights if name in untrained)

    def ranking_model(self, weights: Mapping[str, Tensor] | None = None) -> PreTrainedModel:
        """Return the part of the model that ranks.

        Args:
            weights: the gathered weights, if processes shard the model; the part is then a copy.
        """
        part = getattr(self, self.part)
        if weights is None:
            return part
        prefix = f"{self.part}."
        copy = type(part)(deepcopy(part.config))
        names = [name for name in weights if name.startswith(prefix)]
        copy.load_state_dict({name.removeprefix(prefix): weights[name] for name in names})
        return copy

    def save(
        self,
        folder: str | Path,
        state_dict: dict[str, Tensor] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        """Write a plain Hugging Face checkpoint; sentence-transformers loads an encoder as it is.

        Args:
            folder: where to write ``config.json`` and ``model.safetensors``, and the `files` of an
                encoder.
            state_dict: the gathered weights of this model, if processes shard it.
            leave_out: names of weights that are not written, such as those of an untrained head, so
                that a program that loads the checkpoint can see that it lacks them.
        """
        weights = state_dict or self.state_dict()
        written = {
            file_name: weights[name].detach().contiguous()
            for name, file_name in self._names_in_file(weights, leave_out)
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        save_file(written, Path(folder) / WEIGHTS, metadata={"format": "pt"})
        self.config.architectures = [type(self.ranking_model()).__name__]
        self.config.save_pretrained(folder)
        if self.files is not None:
            self.files.write(Path(folder), width=self.config.hidden_size, longest=self.max_length)

    def load_weights(self, folder: str | Path, left_out: Collection[str] = ()) -> None:
        """Read the weights of a checkpoint that `save` wrote; those that it left out stay.

        Raises:
            HarpError: the file is missing, damaged, or of another model.
        """
        path = Path(folder) / WEIGHTS
        try:
            stored = load_file(path)
            names = self._names_in_file(self.state_dict(), left_out)
            self.load_state_dict({name: stored[each] for name, each in names}, strict=False)
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            raise HarpError(f"{path} cannot be loaded: {folded(error)}") from error

    def _names_in_file(
        self, weights: Iterable[str], left_out: Collection[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield names of weights, each with its name in a file, where no part comes before it.

        A weight that has two names is in the file under the first one.
        """
        for name in weights:
            file_name = name.partition(".")[2]
            if name not in self._tied and file_name not in left_out:
                yield name, file_name

    @property
    def config(self) -> Any:
        """The configuration of the model that ranks, as it is saved."""
        return self.ranking_model().config

    @property
    def max_length(self) -> int | None:
        """The most tokens that the model reads; None if it sets no limit."""
        return longest_input(self.ranking_model())

    @property
    def heads(self) -> tuple[nn.Module, ...]:
        """The parts that can be compiled besides the layers of the encoder."""
        return ()

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Recompute activations in the backward pass, as transformers' models do."""
        self.ranking_model().activation_checkpointing_enable(**options)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Do the same as `activation_checkpointing_enable`, under its older name."""
        self.ranking_model().gradient_checkpointing_enable(**options)


def load_with_new_weights(
    auto_class, name: str, seed: int, *, attention_dropout: bool = False, **options: Any
) -> tuple[PreTrainedModel, set[str]]:
    """Load a model in fp32, and return also the names of the weights that were drawn at random.

    Args:
        auto_class: a class of transformers such as ``AutoModel``.
        name: name of the model, as in `harp_plugin.models.loading.resolve_model`.
        seed: seed of the weights that the checkpoint lacks.
        attention_dropout: whether a model that can be packed drops attention weights in training,
            as its configuration says. The configuration stays as it is.
        options: further arguments of ``from_pretrained``.

    Raises:
        HarpError: the model cannot be loaded, or weights of its base are missing.
    """
    config = load_pretrained(AutoConfig, name)
    dropout: dict[str, float] = {}
    if can_pack(config) and not attention_dropout:
        dropout = {key: getattr(config, key) for key in _ATTENTION_DROPOUT if hasattr(config, key)}
    with torch.random.fork_rng(), without_notices():
        torch.manual_seed(seed)
        model, info = load_pretrained(
            auto_class,
            name,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **options,
            **dict.fromkeys(dropout, 0.0),
        )
    for key, fraction in dropout.items():
        setattr(model.config, key, fraction)
    new_weights = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    is_base = model.base_model is model
    base = "" if is_base else f"{model.base_model_prefix}."
    check_base(name, [key for key in new_weights if key.startswith(base)])
    return model, new_weights


def without_pooler(encoder: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the weights of an encoder that its last hidden states depend on."""
    for name, weight in encoder.named_parameters():
        if not name.startswith("pooler."):
            yield weight


def tied_names(model: nn.Module) -> frozenset[str]:
    """Return the names of weights that a module also has under an earlier name."""
    every = dict(model.named_parameters(remove_duplicate=False))
    return frozenset(every.keys() - dict(model.named_parameters()))


def group_scores(scores: Tensor, batch: Mapping[str, Any]) -> LossInputs:
    """Arrange the scores of adjacent members in one row for each group, and a teacher's as well.

    Args:
        scores: (pairs,).
        batch: with ``group_pairs`` and, if the data have them, ``teacher_scores``.
    """
    pairs = batch["group_pairs"]
    mask, teacher = pairs >= 0, batch.get("teacher_scores")

    def by_group(values: Tensor) -> Tensor:
        return torch.where(mask, values[pairs.clamp(min=0)], 0)

    return LossInputs(
        by_group(scores), mask, teacher_scores=None if teacher is None else by_group(teacher)
    )

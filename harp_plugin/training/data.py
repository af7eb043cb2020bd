"""From pair groups to batches: dataset, sampler and collator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler
from transformers import BatchEncoding, PreTrainedTokenizerBase

from ..errors import HarpError
from ..sampling import generator
from ..tasks import TASKS, PairGroup
from .masking import TokenMasker

Batch = dict[str, Tensor]


class PairGroups(Protocol):
    """A source of training examples, such as `harp_plugin.tasks.PreTrainingData`."""

    def __len__(self) -> int:
        """Groups in one epoch."""

    def group(self, epoch: int, index: int) -> PairGroup:
        """The group at an index of an epoch: always the same for the same arguments."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pair group with its place in the run, from which its masks are drawn."""

    epoch: int
    index: int
    group: PairGroup


class GroupDataset(Dataset[Example]):
    """Pair groups by their number in the run: ``epoch * len(groups) + index``.

    The number alone says what is read, so workers and processes need no state of their own.
    """

    def __init__(self, groups: PairGroups) -> None:
        self.groups = groups

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, number: int) -> Example:
        epoch, index = divmod(number, len(self.groups))
        return Example(epoch, index, self.groups.group(epoch, index))


class EpochSampler(Sampler[int]):
    """Numbers of an epoch's groups in an order shuffled by (seed, epoch).

    Args:
        size: groups in one epoch.
        seed: seed of the order.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        start = self.epoch * self.size
        order = generator(self.seed, "shuffle", self.epoch)
        for index in order.permutation(self.size):
            yield start + int(index)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration gives."""
        self.epoch = epoch


@dataclass
class PairCollator:
    """Makes one batch of all members of all groups: ``[CLS] query [SEP] document [SEP]``.

    The document is truncated. A query of more than its task's limit is cut first, so that a long
    sentence never leaves its document without a token. A group's members are adjacent,
    the positive first.

    Attributes:
        tokenizer: a fast tokenizer.
        tasks: all task names; a group's task is given as its index here.
        token_types: whether the model has token types.
        max_length: most tokens of a pair, special tokens included.
        max_query_length: most tokens of a query, as `query_limits` reads it.
        masker: draws the masks of the documents' tokens; None masks nothing.
        fresh_masks: whether masks are drawn anew each epoch; else a pair has its masks for good.
    """

    tokenizer: PreTrainedTokenizerBase
    tasks: Sequence[str]
    token_types: bool
    max_length: int = 512
    max_query_length: int | Mapping[str, int] | None = None
    masker: TokenMasker | None = None
    fresh_masks: bool = True

    def __post_init__(self) -> None:
        if not self.tokenizer.is_fast:
            raise HarpError(
                f"{type(self.tokenizer).__name__} gives no character offsets: choose a model with "
                "a fast tokenizer"
            )
        self.limits = query_limits(self.max_query_length, self.tasks, self.max_length)

    def __call__(self, examples: Sequence[Example]) -> Batch:
        """Tokenise, mask and pad.

        Returns:
            ``input_ids``, ``attention_mask`` and, where the model has them, ``token_type_ids``,
            each (pairs, length); ``group_sizes`` and ``group_tasks``, (groups,), and
            ``group_places``, epoch and index of each, (groups, 2); where the groups have them
            ``teacher_scores``, fp32, (pairs,); with a masker ``masked_positions``, indices into
            the flattened (pairs × length) tokens, ``mlm_labels``, the ids that were there, and
            ``masked_groups``, the group of each in the batch, all (masked,).
        """
        groups = [example.group for example in examples]
        encoding = self._encode(groups)
        batch: Batch = dict(encoding)
        batch["group_sizes"] = torch.tensor([len(group.members) for group in groups])
        batch["group_tasks"] = torch.tensor([self.tasks.index(group.task) for group in groups])
        batch["group_places"] = torch.tensor([(each.epoch, each.index) for each in examples])
        teacher = [group.teacher_scores for group in groups if group.teacher_scores is not None]
        if len(teacher) == len(groups):
            scores = [score for of_group in teacher for score in of_group]
            batch["teacher_scores"] = torch.tensor(scores, dtype=torch.float32)
        if self.masker is not None:
            batch |= self._mask(encoding, examples, self.masker)
        return batch

    def _encode(self, groups: Sequence[PairGroup]) -> BatchEncoding:
        pairs = [pair for group in groups for pair in group.members]
        limits = [self.limits[group.task] for group in groups for _ in group.members]
        return self.tokenizer(
            self._cut([pair.query for pair in pairs], limits),
            [pair.document for pair in pairs],
            truncation="only_second",
            max_length=self.max_length,
            padding="longest",
            padding_side="right",
            return_token_type_ids=self.token_types,
            return_tensors="pt",
        )

    def _cut(self, queries: list[str], limits: list[int]) -> list[str]:
        encoding = self.tokenizer(
            queries,
            add_special_tokens=False,
            truncation=True,
            max_length=max(limits),
            return_offsets_mapping=True,
        )
        return [
            query[: offsets[limit - 1][1]] if len(offsets) >= limit else query
            for query, limit, offsets in zip(
                queries, limits, encoding["offset_mapping"], strict=True
            )
        ]

    def _mask(
        self, encoding: BatchEncoding, examples: Sequence[Example], masker: TokenMasker
    ) -> Batch:
        """Mask ``input_ids`` in place; give the positions and what was there."""
        ids = encoding["input_ids"].numpy()
        attended = encoding["attention_mask"].numpy() == 1
        positions, labels, of_groups = [], [], []
        row = 0
        for number, example in enumerate(examples):
            for member in range(len(example.group.members)):
                key: tuple[int, ...] = (example.epoch, example.index, member)
                if not self.fresh_masks:
                    key = (int.from_bytes(ids[row, attended[row]].tobytes()),)
                document = np.flatnonzero([side == 1 for side in encoding.sequence_ids(row)])
                chosen, shown = masker.draw(ids[row, document], *key)
                places = document[chosen]
                positions.append(row * ids.shape[1] + places)
                labels.append(ids[row, places])
                of_groups.append(np.full(len(places), number))
                ids[row, places] = shown
                row += 1
        return {
            "masked_positions": torch.from_numpy(np.concatenate(positions)),
            "mlm_labels": torch.from_numpy(np.concatenate(labels)),
            "masked_groups": torch.from_numpy(np.concatenate(of_groups)),
        }


def query_limits(given: object, tasks: Sequence[str], max_length: int) -> dict[str, int]:
    """Most tokens of a query, by task.

    Args:
        given: a number for all tasks, or numbers by task name. A task that is not named, and each
            one if this is None, has half of max_length. Any registered task may be named, so that
            a recipe stands when a task is taken out of its mixture.
        tasks: the tasks of the run.
        max_length: most tokens of a pair, special tokens included.

    Raises:
        HarpError: a name is no task's, or a number is below 1 or leaves its document no room.
    """
    named = given if isinstance(given, Mapping) else {}
    for task in named.keys() - set(tasks):
        TASKS[task]
    for_all = max_length // 2 if given is None or given is named else given
    limits = {**dict.fromkeys(tasks, for_all), **named}
    for task, limit in limits.items():
        if type(limit) is not int or not 0 < limit <= max_length - 8:
            raise HarpError(
                f"max_query_length is {limit!r} for {task}: a max_length of {max_length} leaves "
                f"room for a document with 1 to {max_length - 8}; change either"
            )
    return limits

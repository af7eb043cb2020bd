"""Turn pair groups into batches: dataset, sampler and collator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from ..errors import HarpError
from ..models.trainable import Batch, GroupKeys, PairBatches
from ..sampling import generator, stable_id
from ..tasks import TASKS, DocumentOrigin, Pair, PairGroup

__all__ = [
    "EpochSampler",
    "Example",
    "GroupCollator",
    "GroupDataset",
    "PairGroups",
    "TaughtGroups",
    "Teacher",
    "groups_per_batch",
    "query_limits",
    "split_batches",
]

_SAMPLED_GROUPS = 256


class PairGroups(Protocol):
    """A source of training examples, such as `harp_plugin.tasks.PreTrainingData`."""

    def __len__(self) -> int:
        """Return the number of groups in one epoch."""

    def group(self, epoch: int, index: int) -> PairGroup:
        """Return the group at an index of an epoch, the same group for the same arguments."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pair group with its epoch and index, which its masks depend on."""

    epoch: int
    index: int
    group: PairGroup


class GroupDataset(Dataset[Example]):
    """Pair groups by their number in the run, which is ``epoch * len(groups) + index``.

    The number alone determines the group, so workers and processes need no state of their own.
    """

    def __init__(self, groups: PairGroups) -> None:
        self.groups = groups

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, number: int) -> Example:
        epoch, index = divmod(number, len(self.groups))
        return Example(epoch, index, self.groups.group(epoch, index))


class EpochSampler(Sampler[int]):
    """Yields the numbers of the groups of an epoch in random order, which (seed, epoch) determines.

    Args:
        size: number of groups in one epoch.
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
        """Set the epoch of the next iteration."""
        self.epoch = epoch


@dataclass
class GroupCollator:
    """Makes one batch of all members of all groups; the members of a group are adjacent.

    The model makes its part of the batch (see `harp_plugin.models.trainable`), and the collator
    adds what describes the groups.

    Attributes:
        batches: makes the model's part.
        tasks: names of all tasks; a batch has the index of each group's task in them.
        query_limits: most tokens of a query by task, as `query_limits` reads them; None, and a task
            that is left out, sets no limit except the pair's.
        new_masks: whether each epoch draws new masks; otherwise a pair has the same masks in all
            epochs.
    """

    batches: PairBatches
    tasks: Sequence[str]
    query_limits: Mapping[str, int | None] = field(default_factory=dict)
    new_masks: bool = True

    def __call__(self, examples: Sequence[Example]) -> Batch:
        """Make a batch.

        Returns:
            What the model reads; ``group_pairs``, the pair of each member, -1 where a group has
            none, (groups, members); ``group_tasks``, (groups,); ``group_places``, epoch and index
            of each group, (groups, 2); ``keys``, a `GroupKeys`; if the groups have them,
            ``teacher_scores``, fp32, (pairs,); if tokens are masked, ``masked_groups``, the index
            in the batch of each masked token's group, (masked,).
        """
        groups = [example.group for example in examples]
        pairs = [(pair.query, pair.document) for group in groups for pair in group.members]
        limits = [self.query_limits.get(group.task) for group in groups for _ in group.members]
        mask_keys = [
            (example.epoch, example.index, member)
            for example in examples
            for member in range(len(example.group.members))
        ]
        batch = self.batches(pairs, limits, mask_keys if self.new_masks else None)
        batch["keys"] = keys = _keys(groups)
        batch["group_pairs"] = torch.from_numpy(_pairs_of_groups(keys.sizes))
        batch["group_tasks"] = torch.tensor([self.tasks.index(group.task) for group in groups])
        batch["group_places"] = torch.tensor(
            [(example.epoch, example.index) for example in examples]
        )
        teacher = [group.teacher_scores for group in groups if group.teacher_scores is not None]
        if len(teacher) == len(groups):
            scores = [score for group_scores in teacher for score in group_scores]
            batch["teacher_scores"] = torch.tensor(scores, dtype=torch.float32)
        if "masked_pairs" in batch:
            group_of_pair = torch.from_numpy(np.repeat(np.arange(len(groups)), keys.sizes))
            batch["masked_groups"] = group_of_pair[batch.pop("masked_pairs")]
        return batch


def _pairs_of_groups(sizes: np.ndarray) -> np.ndarray:
    """Return the index of each group's members among adjacent pairs, -1 for none."""
    members = np.arange(sizes.max())
    pairs = (np.cumsum(sizes) - sizes)[:, None] + members
    return np.where(members < sizes[:, None], pairs, -1)


def _keys(groups: Sequence[PairGroup]) -> GroupKeys:
    """Number the queries and documents of a batch, and what may be relevant to each query."""
    relevant = [
        (place, key)
        for place, group in enumerate(groups)
        for key in (*map(_source_key, group.relevant), *_document_keys(group.positive))
    ]
    return GroupKeys(
        np.array([stable_id("query", group.positive.query) for group in groups]),
        np.array([_document_keys(pair) for group in groups for pair in group.members]),
        np.array(relevant),
        np.array([len(group.members) for group in groups]),
    )


def _document_keys(pair: Pair) -> tuple[int, int]:
    """Return a number of a document's text, and one of its source, the same where it has none."""
    text = stable_id("text", pair.document)
    origin = pair.document_origin or DocumentOrigin()
    source = origin.page if origin.document_id is None else origin.document_id
    return text, text if source is None else _source_key(source)


def _source_key(source: int | str) -> int:
    return stable_id("document" if isinstance(source, str) else "page", source)


def query_limits(option: object, tasks: Sequence[str], max_length: int) -> dict[str, int | None]:
    """Return the most tokens of a query by task; None for a task without a limit.

    Args:
        option: a number for all tasks, or numbers by name of the task. A task that is not named has
            no limit of its own, nor has any task if the option is None: then pairs are cut as
            `harp_plugin.models.pairs.cut_sizes` says. Each registered task may be named, so that a
            recipe stays valid when a task is removed from its mixture.
        tasks: the tasks of the run.
        max_length: most tokens of what the model reads at once, special tokens included.

    Raises:
        HarpError: a name is not the name of a task, or a number is below 1 or above
            ``max_length``.
    """
    by_task = option if isinstance(option, Mapping) else {}
    for task in by_task.keys() - set(tasks):
        TASKS[task]
    for_all = None if option is by_task else option
    limits = {**dict.fromkeys(tasks, for_all), **by_task}
    for task, limit in limits.items():
        if limit is not None and (type(limit) is not int or not 0 < limit <= max_length):
            raise HarpError(
                f"max_query_length is {limit!r} for {task}: with a max_length of {max_length} it "
                f"must be from 1 to {max_length}"
            )
    return limits


def groups_per_batch(dataset: GroupDataset, collator: GroupCollator, tokens: int) -> int:
    """Return how many groups have about ``tokens`` tokens, by the mean of a sample of groups."""
    numbers = np.linspace(0, len(dataset) - 1, min(len(dataset), _SAMPLED_GROUPS), dtype=np.int64)
    lengths = collator([dataset[number] for number in numbers.tolist()])["lengths"]
    return max(1, round(tokens * len(numbers) / int(lengths.sum())))


def split_batches(size: int, processes: int, batch_size: int) -> list[list[list[int]]]:
    """Split the numbers below ``size`` into batches for each process.

    Each process has the same number of batches and no batch is empty, because processes that shard
    a model wait for each other in every batch.
    """
    steps = min(math.ceil(size / (processes * batch_size)), size // processes)
    batches = [part.tolist() for part in np.array_split(np.arange(size), processes * steps)]
    return [batches[process::processes] for process in range(processes)]


Teacher = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Scores queries and documents, pair by pair: float32 of shape (pairs,)."""


class TaughtGroups:
    """Pair groups of which a teacher scores each member when a group is drawn.

    Args:
        groups: the pair groups.
        teacher: scores their pairs.
    """

    def __init__(self, groups: PairGroups, teacher: Teacher) -> None:
        self._groups = groups
        self._teacher = teacher

    def __getattr__(self, name: str) -> Any:
        """Return what else the groups have, such as their fingerprint and their counts."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._groups, name)

    def __len__(self) -> int:
        return len(self._groups)

    def group(self, epoch: int, index: int) -> PairGroup:
        """Return the group at an index of an epoch, with the teacher's scores."""
        group = self._groups.group(epoch, index)
        scores = self._teacher(*zip(*((p.query, p.document) for p in group.members), strict=True))
        return replace(group, teacher_scores=tuple(scores.tolist()))

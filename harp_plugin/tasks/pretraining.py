"""Pairs drawn from a finished build, when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import HarpError
from ..sampling import generator
from ..work.manifest import read_content, read_manifest
from ..work.mapped import verify_tables
from ..work.records import json_hash
from .groups import PairGroup
from .options import DrawOptions
from .registry import TASKS, needed_stages
from .source import BuildSource
from .terms import stop_words_hash

__all__ = ["DrawnGroup", "NoPairError", "PreTrainingData"]

_TRIES = 100
_MOST_REPEATS = 10


class NoPairError(HarpError):
    """No example of a task gives a pair, such as where all pages are alike."""


class DrawnGroup(NamedTuple):
    """A group, and the example that it was drawn from.

    Attributes:
        group: the group.
        example: id of its example.
        skipped: ids of the examples that were tried before and gave no group.
    """

    group: PairGroup
    example: int
    skipped: tuple[int, ...]


class PreTrainingData:
    """Groups of a mixture of tasks, drawn again in each epoch.

    A group is a pure function of (seed, epoch, index): the same in any process or order.

    Args:
        directory: a folder written by ``harp build``.
        tasks: weight of each task in the mixture; a weight of 0 leaves it out.
        seed: the seed of all draws.
        draw: how pairs are drawn; its ``mixing`` is ``uniform`` (weights as given) or
            ``proportional`` (weights times the number of groups).
        groups_per_epoch: None for the number of groups of all tasks together.

    Raises:
        HarpError: a task is unknown, the build lacks it, it has no example, or no task is left.
    """

    def __init__(
        self,
        directory: str | Path,
        tasks: Mapping[str, float],
        *,
        seed: int = 42,
        draw: DrawOptions | None = None,
        groups_per_epoch: int | None = None,
    ) -> None:
        self.tasks = {name: float(weight) for name, weight in tasks.items() if weight}
        if not self.tasks or min(self.tasks.values()) < 0:
            raise HarpError(f"tasks {dict(tasks)}: give at least one a weight above 0, none below")
        for name in self.tasks:
            TASKS[name]
        self.draw_options = draw or DrawOptions()
        self.seed = seed
        self.directory = Path(directory)
        BuildSource.check(self.directory, list(self.tasks))
        read_content(self.directory, *self._stages)
        verify_tables(self.directory, self._stages)
        self._drawers = {name: TASKS[name]() for name in self.tasks}
        self.examples = {name: len(ids) for name, ids in self._ids.items()}
        empty = [name for name, count in self.examples.items() if not count]
        if empty:
            raise HarpError(
                f"{directory} has no examples of {', '.join(empty)}: leave the task out of the "
                "recipe, or build from a larger corpus"
            )
        self._length = groups_per_epoch or sum(self.groups.values())
        self._plan: tuple[int, np.ndarray, np.ndarray] | None = None

    def __getstate__(self):
        left_out = ("source", "_ids", "_plan")
        kept = {name: v for name, v in self.__dict__.items() if name not in left_out}
        return kept | {"_plan": None}

    @cached_property
    def source(self) -> BuildSource:
        """The build's texts, anchors and weights."""
        return BuildSource(self.directory, list(self.tasks))

    @cached_property
    def _ids(self) -> dict[str, np.ndarray]:
        """Ids of the examples that each task draws from, ascending."""
        tables, options = self.source.examples, self.draw_options
        return {
            name: task.select(tables[name], options, self.source)
            if hasattr(task, "select")
            else tables[name].ids
            for name, task in self._drawers.items()
        }

    def __len__(self) -> int:
        return self._length

    @property
    def groups(self) -> dict[str, int]:
        """Number of groups that each task gives in one round over its examples."""
        return {name: n * self._per_example(name) for name, n in self.examples.items()}

    def _per_example(self, name: str) -> int:
        return getattr(TASKS[name], "groups_per_example", 1)

    @property
    def _stages(self) -> tuple[str, ...]:
        """The stages that draws read."""
        return needed_stages(self.tasks, self.draw_options)

    @property
    def fingerprint(self) -> str:
        """Changes when the content of the build or of the stop list does."""
        contents = read_content(self.directory, *self._stages)
        stopped = stop_words_hash(self.draw_options.stop_words)
        return json_hash([contents, stopped])[:32]

    @property
    def counts(self) -> dict[str, int]:
        """What the build holds, for a manifest."""
        rows = read_manifest(self.directory / "corpus")["rows"]
        counts = {name: rows[name] for name in ("pages", "links")}
        return counts | {f"examples of {name}": count for name, count in self.examples.items()}

    def shortages(self) -> list[str]:
        """One sentence for each task that yields too little for its fraction of an epoch."""
        sentences = []
        for name, fraction in self.shares.items():
            wanted, available = round(fraction * len(self)), self.groups[name]
            if wanted > _MOST_REPEATS * available:
                sentences.append(
                    f"{name} has {available:,} groups to draw, its part of an epoch is "
                    f"{wanted:,}: each is drawn {wanted / available:.0f} times; lower its weight, "
                    "or take mixing proportional"
                )
        return sentences

    @property
    def shares(self) -> dict[str, float]:
        """Fraction of each task in the mixture."""
        weights = dict(self.tasks)
        if self.draw_options.mixing == "proportional":
            weights = {name: weight * self.groups[name] for name, weight in weights.items()}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def group(self, epoch: int, index: int) -> PairGroup:
        """Draw group ``index`` of an epoch.

        Raises:
            NoPairError: a task gives nothing in 100 consecutive examples.
        """
        drawn = self.drawn(epoch, index)
        if drawn is None:
            name = list(self.tasks)[self._slots(epoch)[0][index]]
            raise NoPairError(f"task {name} gives no pair in {_TRIES} examples: run `harp inspect`")
        return drawn.group

    def drawn(self, epoch: int, index: int) -> DrawnGroup | None:
        """Draw group ``index`` of an epoch as `group` does; None where 100 examples give none."""
        skipped: list[int] = []
        for example, group in self.attempts(epoch, index):
            if group is not None:
                return DrawnGroup(group, example, tuple(skipped))
            skipped.append(example)
        return None

    def attempts(self, epoch: int, index: int) -> Iterator[tuple[int, PairGroup | None]]:
        """Draw from the example of group ``index``, then from others at random; at most 100.

        Yields:
            An example's id, and its group or None where it gives none. The first group that is
            not None is the one that `group` returns.
        """
        tasks, ranks = self._slots(epoch)
        name = list(self.tasks)[tasks[index]]
        for attempt in range(_TRIES):
            yield self._draw(name, epoch, int(ranks[index]), attempt)

    def _draw(self, name: str, epoch: int, rank: int, attempt: int) -> tuple[int, PairGroup | None]:
        count = self.examples[name]
        round, place = divmod(rank, count)
        if attempt:
            place = int(generator(self.seed, "instead", name, epoch, rank, attempt).integers(count))
        example = int(self._ids[name][self._order(name, epoch, round)[place]])
        fixed = (0, round % self._per_example(name))
        key = (epoch, round) if self.draw_options.redraw_each_epoch else fixed
        rng = generator(self.seed, name, *key, example, *([rank, attempt] if attempt else []))
        group = self._drawers[name].draw(example, rng, self.source, self.draw_options)
        return example, group

    def _slots(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Plan an epoch: for every index its task, and its rank among the task's groups."""
        if self._plan is None or self._plan[0] != epoch:
            chances = list(self.shares.values())
            rng = generator(self.seed, "mixing", epoch)
            tasks = rng.choice(len(chances), size=len(self), p=chances).astype(np.int8)
            ranks = np.empty(len(self), dtype=np.int64)
            for task in range(len(chances)):
                chosen = np.flatnonzero(tasks == task)
                ranks[chosen] = np.arange(len(chosen))
            self._plan = (epoch, tasks, ranks)
            self._orders: dict[tuple[str, int], np.ndarray] = {}
        return self._plan[1], self._plan[2]

    def _order(self, name: str, epoch: int, round: int) -> np.ndarray:
        if (name, round) not in self._orders:
            rng = generator(self.seed, "order", name, epoch, round)
            self._orders[name, round] = rng.permutation(self.examples[name])
        return self._orders[name, round]

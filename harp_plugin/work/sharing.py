"""Several hosts share the shards of a stage, in a folder that all of them see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeVar

from ..errors import HarpError

__all__ = ["ALONE", "Share", "rank_option", "world_option"]

_ENVIRONMENT = (
    (
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        "SLURM_ARRAY_TASK_MIN",
        "SLURM_ARRAY_TASK_STEP",
    ),
    ("SLURM_PROCID", "SLURM_NTASKS", None, None),
    ("RANK", "WORLD_SIZE", None, None),
)
"""Where Slurm and torchrun write the rank, the number of hosts, the lowest rank and the step."""

T = TypeVar("T")


class Share(NamedTuple):
    """The share of one host in a work of several.

    A host works on its own shards first, and then on those that the others have not finished. So it
    needs no word of theirs, and where one of them dies, its shards are made all the same. Two hosts
    may make the same shard at the end; it has the same bytes.

    Attributes:
        rank: of this host, from 0.
        world: how many hosts there are.
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def of(cls, rank: int | None, world: int | None) -> Share:
        """Check a share that options name.

        Raises:
            HarpError: only one of the two is named, or there is no such rank.
        """
        if (rank is None) != (world is None):
            raise HarpError("--rank and --world belong together: name both, or neither")
        if rank is None or world is None:
            return cls()
        if not 0 <= rank < world:
            raise HarpError(f"--rank {rank} --world {world}: name a rank from 0 to {world - 1}")
        return cls(rank, world)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Share:
        """Read the share of this task of a Slurm array, of `srun` or of `torchrun`.

        In an array of some numbers only, such as ``3,7``, two tasks may get the same rank. Both
        work then, and no shard is left out.
        """
        for names in _ENVIRONMENT:
            numbers = [environment.get(name or "", "0") for name in names]
            if all(number.isdecimal() for number in numbers) and int(numbers[1]) > 1:
                task, world, lowest, step = map(int, numbers)
                return cls((task - lowest) // max(step, 1) % world, world)
        return cls()

    def order(self, shards: Sequence[T]) -> list[T]:
        """Put this host's own shards first, and then the others', each from its end."""
        ranks = [(self.rank + step) % self.world for step in range(self.world)]
        own, *others = (shards[rank :: self.world] for rank in ranks)
        return [*own, *(shard for part in others for shard in reversed(part))]

    def unfinished(self, stage: Any, shards: Mapping[str, T]) -> Iterator[T]:
        """Give the shards in order, by name; those that are finished by then are left out."""
        for name in self.order(list(shards)):
            if not stage.shard_done(name):
                yield shards[name]

    def start(self, stage: Any) -> None:
        """Start a stage, or join it.

        Raises:
            HarpError: as `Stage.start` does.
        """
        stage.start(with_others=self.world > 1)

    def finish(self, stage: Any, **more: Any) -> dict[str, Any]:
        """Finish a stage, unless another host has done so; return its manifest."""
        if self.world > 1 and stage.is_whole:
            return stage.manifest
        return stage.finish(**more)


ALONE = Share()
"""The share of the only host."""


def rank_option(work: str, when: str) -> Any:
    """Make the option ``--rank``.

    Args:
        work: what hosts share.
        when: when the variables of Slurm and torchrun are read.
    """
    text = (
        f"Rank of this host among those that share {work}, from 0. {when} Slurm's and torchrun's "
        "variables are read."
    )
    return field(default=None, metadata={"help": text})


def world_option() -> Any:
    """Make the option ``--world``."""
    return field(default=None, metadata={"help": "How many hosts share the work; with --rank."})

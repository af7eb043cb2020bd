"""A stage of a build: one object says what it reads, what decides its result, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from ..errors import HarpError
from .manifest import read_content, read_manifest
from .map_shards import map_shards
from .processes import S
from .provenance import OverwriteRules
from .sql.engine import EngineOptions
from .stage import Stage

__all__ = ["BuildRequest", "BuildStage", "StageOptions", "finish_shards", "part_name", "parts_of"]

T = TypeVar("T")


@dataclass(frozen=True)
class BuildRequest:
    """What a build is asked to do, and what it may use of the machine.

    Attributes:
        directory: the folder of the build.
        options: objects of dataclasses; a stage reads those of its own dataclasses.
        sources: what the corpus is read from.
        workers: the number of processes, or of threads of an engine; the bytes are the same for
            any.
        device: where models compute, such as ``cpu`` or ``cuda:1``; ``cuda`` is all GPUs, and None
            takes GPUs where there are any.
        quiet: whether to show no progress bars.
        rules: what may be done with other work in the folder.
        output: the folder of the stage, where it is not in that of the build.
        rank, world: the number of this host, from 0, and of all hosts that share the folder; a
            host makes every ``world``-th shard of a stage that can be shared.
    """

    directory: Path
    options: tuple[Any, ...] = ()
    sources: Sequence[str | Path] = ()
    workers: int = 1
    device: str | None = None
    quiet: bool = True
    rules: OverwriteRules = field(default_factory=OverwriteRules)
    output: Path | None = None
    rank: int = 0
    world: int = 1

    def of(self, kind: type[T]) -> T:
        """Return the options of a dataclass, which are its defaults where there are none."""
        return next((options for options in self.options if isinstance(options, kind)), None) or (
            kind()
        )

    @property
    def worker_device(self) -> str | None:
        """Where models compute in workers; those of Spark use CPUs, whatever this host has.

        Raises:
            HarpError: the device is not a CPU, and the engine is Spark.
        """
        if not self.engine.is_spark:
            return self.device
        if self.device not in (None, "cpu"):
            raise HarpError(
                f"--device {self.device}: Spark computes on CPUs; for GPUs, build the stages "
                "before with Spark, and then weights and model_negatives by hosts with --rank and "
                "--world"
            )
        return "cpu"

    @property
    def engine(self) -> EngineOptions:
        """The engine and its memory."""
        return self.of(EngineOptions)


class StageOptions(NamedTuple):
    """All that decides the result of a stage, apart from the stages that it needs.

    Attributes:
        recorded: options, as the manifest lists them; JSON types.
        inputs: fingerprints of what else is read, by name.
        packages: distributions whose versions decide the bytes.
        equivalents: other options whose finished result is taken as well.
    """

    recorded: Mapping[str, Any]
    inputs: Mapping[str, str] = {}
    packages: tuple[str, ...] = ()
    equivalents: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class BuildStage:
    """A stage of a build.

    Called with the folder of a build and options, it runs unless it is finished.

    Attributes:
        name: of the stage, and of its folder.
        needs: the stages whose tables it reads.
        options: tells what decides the result; it raises `HarpError` where a model or the like is
            missing.
        run: writes the shards of a started stage. It returns further entries of the manifest, or
            None where other hosts have not finished their shards yet.
        check: finds what is missing before hours of work, beyond what ``options`` finds.
        clean: removes what the stage keeps outside of its folder until it is finished.
        temporary: tables that are removed when the stage is finished.
        others: names of files that it writes next to the shards, and that may be edited later.
        can_be_shared: whether several hosts can work on its shards.
    """

    name: str
    needs: tuple[str, ...]
    options: Callable[[BuildRequest], StageOptions]
    run: Callable[[Stage, BuildRequest], Mapping[str, Any] | None]
    check: Callable[[BuildRequest], object] = lambda request: None
    clean: Callable[[BuildRequest], None] = lambda request: None
    temporary: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    can_be_shared: bool = False

    def __call__(self, directory: str | Path, *options: Any, **machine: Any) -> dict[str, Any]:
        """Run the stage as `build` does.

        Args:
            directory: the folder of the build.
            options: as in `BuildRequest`.
            machine: further attributes of a `BuildRequest`.
        """
        return self.build(BuildRequest(Path(directory), options, **machine))

    def build(self, request: BuildRequest) -> dict[str, Any]:
        """Run the stage, unless it is finished.

        Returns:
            The manifest of the stage; it is empty where other hosts have shards to finish.

        Raises:
            HarpError: an earlier stage is unfinished or damaged, a model or the like is missing,
                nothing comes out, or the folder holds other work or other files.
        """
        read_content(request.directory, *self.needs)
        stage = self.stage(request)
        if not stage.is_finished():
            with_others = request.world > 1
            stage.start(with_others=with_others)
            if (more := self.run(stage, request)) is None:
                return {}
            stage.finish(with_others=with_others, **more)
        self.clean(request)
        return read_manifest(stage.folder)

    def stage(self, request: BuildRequest, *, unknown: Sequence[str] = ()) -> Stage:
        """Return the stage in its folder, not started.

        Args:
            request: what the build is asked to do.
            unknown: needed stages that will run first, so that their content is not known yet;
                that of an unfinished stage is not known either.
        """
        made = self.options(request)
        content = read_content(request.directory, *self.needs, needed=False)
        content |= dict.fromkeys(name for name in unknown if name in content)
        stages = [
            Stage(
                request.output or request.directory / self.name,
                recorded,
                {**content, **made.inputs},
                made.packages,
                rules=request.rules,
                kind=self.name,
                others=self.others,
                temporary=self.temporary,
            )
            for recorded in (made.recorded, *made.equivalents)
        ]
        return next((stage for stage in stages if stage.is_whole), stages[0])


def part_name(ids: np.ndarray) -> str:
    """Return the name of the file of a part of many ids, without its ending."""
    return f"from-{ids[0] if len(ids) else 0:019d}"


def parts_of(ids: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """Cut ids into parts of at most so many, by their names; one is empty if there is no id."""
    parts = (ids[first : first + size] for first in range(0, max(1, len(ids)), size))
    return {part_name(part): part for part in parts}


def finish_shards(
    stage: Stage,
    request: BuildRequest,
    fn: Callable[[S], object],
    shards: Mapping[str, S],
    *,
    workers: int = 1,
    engine: EngineOptions | None = None,
    begin: Callable[[], object] | None = None,
) -> bool:
    """Apply ``fn`` to the shards of this host that the stage has not finished; see `map_shards`.

    Args:
        stage: a started stage.
        request: says which host of how many this is.
        fn: a picklable function, which finishes a shard.
        shards: all shards of the stage by their names, whichever host they are for.
        workers, engine, begin: as `map_shards` takes them.

    Returns:
        Whether the stage has finished all shards, those of other hosts included.
    """
    own = list(shards)[request.rank :: request.world]
    unfinished = [name for name in own if not stage.shard_done(name)]
    with tqdm(total=len(own), unit="shard", desc=stage.kind, disable=request.quiet) as bar:
        bar.update(len(own) - len(unfinished))
        left = (shards[name] for name in unfinished)
        for _ in map_shards(fn, left, engine, min(workers, len(unfinished)), begin):
            bar.update()
    return all(map(stage.shard_done, shards))

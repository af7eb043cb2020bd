"""Time, memory and disk of the link graph and of all tasks' examples on a synthetic wiki.

    python benchmarks/link_graph.py --pages 1000000 --links 10000000 --memory 4GB --workers 2
    python benchmarks/link_graph.py --pages 1000000 --links 10000000 --engine spark
    python benchmarks/link_graph.py --pages 100000 --links 1000000 --engine spark --shuffle

Writes the wiki's tables once under ``--directory``, then prints one row of a table. A run with
``--compare DIR`` also says whether every Parquet file has the same bytes as the run kept in DIR.
``--shuffle`` prints what Spark's tasks read, and what they exchange with each other.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import resource
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
from synthetic_wiki import Wiki, write_tables

from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.tasks import HARP_TASKS
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.work.sql.engine import EngineOptions

_GIGABYTE = 1e9
_HEAD = (
    "| engine | pages | links | --memory | minutes of graph (CPU) | of examples (CPU) "
    "| peak RSS of graph, GB | of examples | disk, GB |"
)


class Watch(threading.Thread):
    """Samples memory of this process and all its children, and the size of a folder.

    Attributes:
        memory: peak resident bytes of the tree; pages that processes share count for each.
        disk: peak bytes under the folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.memory = self.disk = 0
        self.stopped = threading.Event()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped.set()
        self.join()

    def run(self) -> None:
        """Sample ten times a second until stopped."""
        me = psutil.Process()
        while not self.stopped.wait(0.1):
            self.memory = max(self.memory, sum(map(_resident, [me, *me.children(recursive=True)])))
            self.disk = max(self.disk, _size(self.folder))


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _size(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(parent, name).stat().st_blocks * 512
    return size


def _processor_seconds() -> float:
    """Processor time of the children that have ended, user and system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def log_events(folder: Path) -> None:
    """Have each Spark that is started from now on write its events to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = {"enabled": "true", "compress": "false", "rolling.enabled": "false"}
    settings["dir"] = folder.resolve().as_uri()
    lines = [f"spark.eventLog.{name} {value}\n" for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    os.environ["SPARK_CONF_DIR"] = str(folder.resolve())


def exchanged(folder: Path) -> dict[str, float]:
    """Sum up what the tasks of all Sparks read, exchanged and spilled, in bytes, and their time."""
    sums = dict.fromkeys(("read", "shuffled", "spilled to disk", "processor seconds"), 0.0)
    for log in folder.glob("local-*"):
        for line in log.read_text(encoding="utf-8").splitlines():
            metrics = json.loads(line).get("Task Metrics")
            if metrics:
                sums["read"] += metrics["Input Metrics"]["Bytes Read"]
                sums["shuffled"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                sums["spilled to disk"] += metrics["Disk Bytes Spilled"]
                sums["processor seconds"] += metrics["Executor CPU Time"] / 1e9
    return sums


def same_bytes(one: Path, two: Path) -> list[str]:
    """Names of Parquet files that differ or stand in one folder only."""
    names = {str(p.relative_to(f)) for f in (one, two) for p in f.rglob("*.parquet")}
    compared = filecmp.cmpfiles(one, two, sorted(names), shallow=False)
    return sorted(compared[1] + compared[2])


def main() -> None:
    """Read the flags, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--spark-master", default="local[*]")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--min-words", type=int, default=0)
    parser.add_argument("--directory", type=Path, default=Path("harp-output/link-graph"))
    parser.add_argument("--shuffle", action="store_true", help="of Spark")
    parser.add_argument("--compare", type=Path, help="a run's folder under --directory")
    found = parser.parse_args()
    wiki = Wiki(found.pages, found.links, found.pages // 5)
    tables = found.directory / f"wiki-{wiki.pages}-{wiki.links}"
    began = time.perf_counter()
    write_tables(wiki, tables, quiet=True)
    print(f"wiki written in {time.perf_counter() - began:.0f} s", flush=True)
    output = found.directory / f"{tables.name}-{found.engine}-{found.memory}-{found.workers}"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    (output / "corpus").symlink_to((tables / "corpus").resolve())
    events = found.directory / "events"
    if found.shuffle:
        log_events(events)
    engine = EngineOptions(found.memory, found.engine, found.spark_master)
    times, processor, peaks = [], [], []
    for name in ("graph", "examples"):
        began, spent = time.perf_counter(), _processor_seconds()
        with Watch(output) as watch:
            if name == "graph":
                options = GraphOptions(min_words=found.min_words)
                manifest = build_graph(output, options, engine, workers=found.workers)
            else:
                examples = ExampleOptions(tasks=list(HARP_TASKS))
                manifest = build_examples(output, examples, engine, workers=found.workers)
        times.append((time.perf_counter() - began) / 60)
        processor.append((_processor_seconds() - spent) / 60)
        peaks.append(watch)
        print(name, manifest["rows"], manifest["drops"], manifest.get("counts", ""), flush=True)
    disk = max(watch.disk for watch in peaks) / _GIGABYTE
    row = [found.engine, f"{wiki.pages:,}", f"{wiki.links:,}", found.memory]
    row += [f"{t:.2f} ({p:.2f})" for t, p in zip(times, processor, strict=True)]
    row += [f"{watch.memory / _GIGABYTE:.2f}" for watch in peaks]
    print(_HEAD)
    print(f"| {' | '.join(row)} | {disk:.2f} |")
    if found.shuffle:
        for name, total in exchanged(events).items():
            print(f"{name}: {total:,.0f}, {total / wiki.links:,.3f} for each link")
    if found.compare:
        different = same_bytes(output, found.compare)
        print("different: " + ", ".join(different) if different else "the same bytes")


if __name__ == "__main__":
    main()

"""What several hosts cost on one machine: the same work by one process, by hosts, and by Spark.

    python benchmarks/several_machines.py SOURCE DIR --hosts 1 2 4 --stage weights
    python benchmarks/several_machines.py SOURCE DIR --engines duckdb spark
    python benchmarks/several_machines.py SOURCE DIR --engines duckdb cluster killed --memory 4GB

The first builds corpus and graph once, then has each number of "hosts" make the stage: processes
with a rank each, which share the cores. One host has as many workers as there are cores. With
``--stage index`` they share the encoding of the pages of ``--dataset``. With ``--store URL`` each
host has a folder of its own, and they meet in an object store only. The second makes the whole
build (`anchor` with BM25 negatives, and HARP's four tasks with ``--model``) with each engine:
``cluster`` is Spark on a standalone cluster of a master and two workers on this machine, and
``killed`` is the same with a worker killed and replaced in each stage. Each row says whether the
bytes are those of the first.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from spark_cluster import Cluster, killing_workers

from harp_plugin.work.store_copies import StoreCopy
from harp_plugin.work.store_paths import COPIES

HARP = (sys.executable, "-m", "harp_plugin.cli")


def main() -> None:
    """Run what is asked, and print a row for each run."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    runs = _with_hosts(options) if options.hosts else _with_engines(options)
    print("| run | seconds | beside the first | bytes |\n|---|---|---|---|")
    first: tuple[Path, float] | None = None
    for name, folder, seconds in runs:
        first = first or (folder, seconds)
        same = "the same" if _files_agree(first[0], folder) else "OTHERS"
        print(f"| {name} | {seconds:.1f} | {seconds / first[1]:.2f} | {same} |", flush=True)


def _with_hosts(options: argparse.Namespace):
    """Make one stage by several numbers of hosts."""
    for hosts in options.hosts:
        output = f"{options.store or options.folder}/hosts-{hosts}"
        if not options.store:
            shutil.rmtree(output, ignore_errors=True)
        if options.stage != "index":
            _run(_build(options, output, "--stages", "corpus", "graph"))
        workers = max(1, options.cores // hosts)
        lines = [_share(options, output, rank, hosts, workers) for rank in range(hosts)]
        seconds = _run(
            *lines,
            threads=workers if options.stage == "index" else 1,
            copies=options.folder / f"copies-{hosts}",
        )
        result = _result(options, output, hosts)
        result = result if options.stage == "index" else result / options.stage
        yield f"{hosts} hosts, {workers} workers each", result, seconds


def _result(options: argparse.Namespace, output: str, hosts: int) -> Path:
    """Return the folder that hosts have made, fetched from the store if it is there."""
    if not options.store:
        return Path(output)
    os.environ[COPIES] = str(options.folder / f"result-{hosts}")
    copy = StoreCopy(output)
    copy.pull()
    return copy.path


def _share(
    options: argparse.Namespace, folder: str, rank: int, hosts: int, workers: int
) -> list[str]:
    share = ["--rank", str(rank), "--world", str(hosts)] if hosts > 1 else []
    if options.stage == "index":
        line = [*HARP, "index", options.dataset, "--model", options.model]
        return [*line, "--output-dir", folder, "--quiet", *share]
    stages = ["--stages", options.stage, "--workers", str(workers)]
    return [*_build(options, folder, *stages), *share]


def _with_engines(options: argparse.Namespace):
    """Make the whole build by several engines."""
    tasks = ["anchor", *(["rqp", "qdm", "rdp", "acm"] if options.model else [])]
    for engine in options.engines:
        folder = options.folder / engine
        shutil.rmtree(folder, ignore_errors=True)
        line = _build(options, str(folder), "--tasks", *tasks, "--negatives", "bm25")
        line += ["--workers", str(options.cores), "--memory", options.memory]
        if engine in ("duckdb", "spark"):
            line += ["--engine", engine, "--spark-master", options.spark_master]
            yield engine, folder, _run(line)
        else:
            yield _with_cluster(options, engine, folder, line)


def _with_cluster(options: argparse.Namespace, name: str, folder: Path, line: list[str]):
    """Make the whole build on a standalone cluster; kill workers if the name asks for it."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    place = options.folder / f"{name}-cluster"
    place.mkdir(exist_ok=True)
    cluster = Cluster(place, memory=options.memory.removesuffix("B").lower())
    line = [*line, "--engine", "spark", "--spark-master", cluster.url]
    try:
        if name == "cluster":
            return name, folder, _run(line)
        with killing_workers(folder, cluster) as killed:
            seconds = _run(line)
        return f"cluster, a worker killed in {', '.join(killed)}", folder, seconds
    finally:
        cluster.end()


def _build(options: argparse.Namespace, folder: str, *more: str) -> list[str]:
    line = [*HARP, "build", str(options.source), "--output-dir", folder, "--quiet"]
    if options.model:
        line += ["--model", options.model]
    return [*line, "--pages-per-shard", str(options.pages_per_shard), *more]


def _run(*lines: list[str], threads: int = 1, copies: Path | None = None) -> float:
    """Run commands at the same time; return the seconds until the last has ended.

    Each has a folder of its own, below ``copies``, for what it copies from a store.
    """
    started = time.monotonic()
    running = []
    for number, line in enumerate(lines):
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        if copies is not None:
            environment[COPIES] = str(copies / f"host-{number}")
        running.append(subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL))
    codes = [process.wait() for process in running]
    if any(codes):
        sys.exit("a run failed")
    return time.monotonic() - started


def _files_agree(one: Path, two: Path) -> bool:
    """Compare the files of stages, apart from locks and the copies that readers make."""
    names = [
        {
            path.relative_to(folder)
            for path in folder.rglob("*")
            if path.is_file() and ".lock" not in path.name and "mapped" not in path.parts
        }
        for folder in (one, two)
    ]
    different = filecmp.cmpfiles(one, two, map(str, names[0]), shallow=False)[1:]
    return names[0] == names[1] and not any(different)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path, help="such as simplewiki.xml.bz2")
    parser.add_argument("folder", type=Path, metavar="DIR", help="for the builds")
    parser.add_argument("--hosts", type=int, nargs="+", default=[], help="such as 1 2 4")
    parser.add_argument("--store", help="URL of a new folder, such as s3://bucket/hosts")
    parser.add_argument("--stage", default="weights", choices=["weights", "index"])
    engines = ["duckdb", "spark", "cluster", "killed"]
    parser.add_argument("--engines", nargs="+", default=engines[:2], choices=engines)
    parser.add_argument("--memory", default="4GB", help="of DuckDB, or of each worker of Spark")
    parser.add_argument("--spark-master", default="local[*]")
    parser.add_argument("--model", help="weighs or encodes; without it, no stage of weights")
    parser.add_argument("--dataset", default="vaswani", help="that --stage index encodes")
    parser.add_argument("--pages-per-shard", type=int, default=100)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    main()

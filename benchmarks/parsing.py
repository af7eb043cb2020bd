"""Speed of reading MediaWiki dumps, compared with mwparserfromhell alone.

    python benchmarks/parsing.py DUMP.xml.bz2 --megabytes 200

Repeats a dump until its wikitext has the asked size, then reads the same uncompressed file by each,
all processes of a command on one core of the machine (Linux), two workers on two:

- ``mwparserfromhell.parse`` of every page's wikitext, alone, in one process;
- the reader ``mediawiki`` alone, in one process: sections of text with their links, in memory;
- the corpus stage of ``harp build`` with one and with two workers, as a command: this one also
  splits sentences, resolves offsets, and writes Parquet.

Prints seconds of wall clock and of processor, and MB of wikitext a second. ``--profile`` adds where
the corpus stage spends its time in one process.
"""

from __future__ import annotations

import argparse
import bz2
import cProfile
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree.ElementTree import fromstring

END = b"</mediawiki>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump, size = repeated(options.dump, folder / "dump.xml", options.megabytes)
        print(f"{size / 1e6:.0f} MB of wikitext in {dump.stat().st_size / 1e6:.0f} MB of XML")
        build = [sys.executable, "-m", "harp_plugin.cli", "build", str(dump), "--quiet"]
        build += ["--stages", "corpus", "--output-dir"]
        one, two = [*build, str(folder / "1")], [*build, str(folder / "2")]
        runs: dict[str, tuple[int, Callable[[], None]]] = {
            "mwparserfromhell alone": (1, lambda: parse_only(dump)),
            "harp's reader alone": (1, lambda: read_only(dump)),
            "harp build, 1 worker": (1, lambda: command([*one, "--workers", "1"])),
            "harp build, 2 workers": (2, lambda: command([*two, "--workers", "2"])),
        }
        for label, (cores, run) in runs.items():
            wall, processor = timed(run, cores)
            print(
                f"{label:<24} {wall:>7.1f} s  processor {processor:>7.1f} s  "
                f"{size / 1e6 / wall:>6.2f} MB/s",
                flush=True,
            )
        if options.profile:
            profile(dump, folder / "profiled")


def repeated(source: Path, target: Path, megabytes: float) -> tuple[Path, int]:
    """Write the pages of a dump again and again, under new titles; return characters too."""
    data = source.read_bytes()
    whole = bz2.decompress(data) if data.startswith(b"BZh") else data
    head, mark, rest = whole.partition(b"<page>")
    pages = mark + rest.rpartition(END)[0]
    size = sum(len(text) for text in wikitexts(source_pages(pages)))
    written = 0
    with target.open("wb") as file:
        file.write(head)
        while written < megabytes * 1e6:
            file.write(pages.replace(b"<title>", b"<title>%d " % written))
            written += size
        file.write(END)
    return target, written


def source_pages(data: bytes) -> Iterator[bytes]:
    for part in data.split(b"<page>")[1:]:
        yield b"<page>" + part[: part.index(b"</page>") + 7]


def wikitexts(pages: Iterator[bytes]) -> Iterator[str]:
    for page in pages:
        element = fromstring(page)
        if element.findtext("ns") == "0" and element.find("redirect") is None:
            yield element.findtext("revision/text") or ""


def parse_only(dump: Path) -> None:
    import mwparserfromhell

    with dump.open("rb") as file:
        for text in wikitexts(page_stream(file)):
            mwparserfromhell.parse(text, skip_style_tags=True)


def read_only(dump: Path) -> None:
    from harp_plugin.corpus.readers import READERS, Source

    reader = READERS["mediawiki"]()
    for record in reader.records(Source(dump.name, dump)):
        for _ in reader.parse(record):
            pass


def page_stream(file) -> Iterator[bytes]:
    page: list[bytes] = []
    for line in file:
        if b"<page>" in line:
            page = [b"<page>"]
        elif b"</page>" in line:
            yield b"".join([*page, b"</page>"])
        else:
            page.append(line)


def command(line: list[str]) -> None:
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def timed(run: Callable[[], None], cores: int) -> tuple[float, float]:
    """Seconds of wall clock, and of processor in this process and its children."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:cores])
    before, started = used(), time.perf_counter()
    run()
    seconds = time.perf_counter() - started, used() - before
    os.sched_setaffinity(0, allowed)
    return seconds


def used() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def profile(dump: Path, output: Path) -> None:
    from harp_plugin.corpus.build import build_corpus
    from harp_plugin.corpus.options import CorpusOptions

    profiler = cProfile.Profile()
    profiler.runcall(build_corpus, output, CorpusOptions(), sources=[dump])
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()

"""Speed of reading HTML or Markdown, beside what other libraries offer.

    python benchmarks/html_pages.py /usr/share/doc/postgresql-doc-15/html --pages 300
    python benchmarks/html_pages.py cpp-docs/docs --reader markdown --pages 1000

Reads the same pages, drawn at random, by each in one process, and prints pages a second. HTML:

- the ``html`` reader: sections, boilerplate by region, and links with exact offsets;
- Resiliparse's ``extract_plain_text`` with ``main_content``: text only, no places of links;
- Trafilatura's ``extract`` with links, as Markdown;
- Beautiful Soup on lxml: text and links of the whole page, boilerplate and all.

Markdown:

- the ``markdown`` reader: sections, links with exact offsets, front matter, index terms;
- markdown-it-py alone: ``parse`` to tokens, and ``render`` to HTML.

``--profile`` adds where the reader spends its time.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harp_plugin.corpus.readers import READERS, Reader, sources


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", choices=list(EXTRACTORS), default="html")
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    reader = READERS[options.reader]()
    found = [source for source in sources(options.folder) if reader.recognizes(source)]
    drawn = random.Random(0).sample(found, min(options.pages, len(found)))
    records = [record for source in drawn for record in reader.records(source)]
    records = [record for record in records if hasattr(record, "data")]
    print(f"{len(records)} pages, {sum(len(r.data) for r in records) / 1e6:.1f} MB")
    read = partial(parse, reader)
    extractors = {f"{options.reader} reader": read} | EXTRACTORS[options.reader]()
    for label, extract in extractors.items():
        start = time.process_time()
        for record in records:
            extract(record)
        seconds = time.process_time() - start
        print(f"{label:<28} {len(records) / seconds:>7.0f} pages/s", flush=True)
    if options.profile:
        profile = cProfile.Profile()
        for record in records:
            profile.runcall(read, record)
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)


def parse(reader: Reader, record) -> None:
    list(reader.parse(record))


def of_markdown() -> dict[str, Callable]:
    """The library by which the reader parses, alone."""
    from markdown_it import MarkdownIt

    library = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return {
        "markdown-it-py, parse": lambda r: library.parse(r.data.decode()),
        "markdown-it-py, render": lambda r: library.render(r.data.decode()),
    }


def of_html() -> dict[str, Callable]:
    """The extractors that are installed."""
    known: dict[str, Callable] = {}
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree

        text = partial(extract_plain_text, main_content=True)
        known["Resiliparse, text only"] = lambda r: text(HTMLTree.parse_from_bytes(r.data))
    except ImportError:
        pass
    try:
        from trafilatura import extract

        known["Trafilatura"] = lambda r: extract(r.data, include_links=True)
    except ImportError:
        pass
    try:
        from bs4 import BeautifulSoup

        def soup(record) -> None:
            tree = BeautifulSoup(record.data, "lxml")
            tree.get_text()
            [(a.get("href"), a.get_text()) for a in tree.find_all("a")]

        known["Beautiful Soup"] = soup
    except ImportError:
        pass
    return known


EXTRACTORS = {"html": of_html, "markdown": of_markdown}

if __name__ == "__main__":
    main()

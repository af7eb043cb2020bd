"""Fuzzes every reader of files with atheris, which follows the branches that an input takes.

    pip install atheris
    python tests/fuzz_readers.py SEEDS -max_total_time=1200 -timeout=20 -rss_limit_mb=2048

SEEDS is a folder; it is filled with a small valid source of each format where it is empty. The
first byte of an input says which reader takes the rest. Whatever is read, nothing but a HarpError
may be raised, and every link must stand at its place. The arguments are libFuzzer's: it stops with
a traceback and the input at the first failure, hang, or excess of memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harp_plugin", "mwparserfromhell", "json", "xml"]):
    from harp_plugin.corpus.pages import Dropped, Page
    from harp_plugin.corpus.readers import READERS, Source
    from harp_plugin.corpus.sentences import linked_sentences
    from harp_plugin.errors import HarpError

sys.path.insert(0, str(Path(__file__).parent))
from seeds import SEEDS

NAMES = sorted(set(SEEDS) & set(READERS))
PATH = Path(tempfile.mkdtemp()) / "input"


def read(data: bytes) -> None:
    """Read one input to its end."""
    if not data:
        return
    PATH.write_bytes(data[1:])
    reader = READERS[NAMES[data[0] % len(NAMES)]]()
    source = Source("input", PATH)
    try:
        reader.recognises(source)
        for record in reader.records(source):
            for item in [record] if isinstance(record, Dropped) else reader.parse(record):
                if isinstance(item, Page):
                    check(item)
    except HarpError as error:
        assert "\n" not in str(error), str(error)


def check(page: Page) -> None:
    assert isinstance(page.lead, str)
    for section in page.sections:
        text = section.body.text
        for sentence in linked_sentences(
            section.body, page.language, Counter(), split=page.split, debris=page.debris
        ):
            for link in sentence.links:
                assert sentence.text[link.start : link.end] == link.anchor
        for link in section.body.links:
            assert text[link.start : link.end] == link.anchor


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        for number, name in enumerate(NAMES):
            for count, seed in enumerate(SEEDS[name]):
                (folder / f"{name}-{count}").write_bytes(bytes([number]) + seed)
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

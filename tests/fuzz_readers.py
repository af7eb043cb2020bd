"""Fuzzes a reader of files with atheris, which follows the branches that an input takes.

    pip install atheris
    python tests/fuzz_readers.py READER FOLDER -max_total_time=300 -timeout=20 -rss_limit_mb=2048

READER is the name of one, or ``wikitext`` (one page), ``containers`` (compressed files of any
format) or ``multistream`` (an index and the streams, both before compression). FOLDER keeps the
inputs; it is filled with small valid ones where it is empty. Whatever is read, nothing but a
HarpError of one line may be raised, every link must stand at its place, and the tables must take
the rows. The other arguments are libFuzzer's: it stops with a traceback and the input at the first
failure, hang, or excess of memory.
"""

from __future__ import annotations

import bz2
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["harp_plugin", "mwparserfromhell", "json", "tarfile"]):
    from harp_plugin.corpus.readers import READERS, Source, choose_reader
    from harp_plugin.corpus.tables import TABLES, table_rows
    from harp_plugin.corpus.wikitext import Site, parse_page
    from harp_plugin.errors import HarpError

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from seeds import CONTAINERS, JSON_TOKENS, SEEDS, STREAMS, TOKENS, WIKITEXT

PATH = Path(tempfile.mkdtemp()) / "input"
_SEPARATOR = b"\n---\n"


def read(name: str, data: bytes) -> None:
    """Read a source to its end."""
    PATH.write_bytes(data)
    source = Source("input", PATH)
    try:
        if name == "auto":
            name = choose_reader(source)
        reader = READERS[name]()
        reader.recognizes(source)
        for rows, _ in table_rows(reader, reader.records(source)):
            check(rows)
    except HarpError as error:
        assert "\n" not in str(error), str(error)


def read_wikitext(data: bytes) -> None:
    class Pages:
        def parse(self, record):
            yield parse_page("Page", record, Site())

    text = data.decode("utf-8", "replace")
    for rows, _ in table_rows(Pages(), [text]):
        check(rows)


def read_multistream(data: bytes) -> None:
    index, *streams = data.split(_SEPARATOR)
    offsets, packed = [], b""
    for stream in streams:
        offsets.append(len(packed))
        packed += bz2.compress(stream)
    for offset in offsets[1:]:
        index = index.replace(b"%d", b"%d" % offset, 1)
    global PATH
    PATH = PATH.with_name("a-multistream.xml.bz2")
    PATH.with_name("a-multistream-index.txt").write_bytes(index)
    read("mediawiki", packed)


def check(rows: dict[str, list[dict]]) -> None:
    sentences = {row["id"]: row["text"] for row in rows["sentences"]}
    for link in rows["links"]:
        anchor = sentences[link["sentence"]][link["start"] : link["end"]]
        assert anchor and anchor == link["anchor"]
    for name, schema in TABLES.items():
        pa.RecordBatch.from_pylist(rows[name], schema=schema)


def seeds(name: str) -> list[bytes]:
    if name == "wikitext":
        return [WIKITEXT.encode()]
    if name == "containers":
        return CONTAINERS
    if name == "multistream":
        return [_SEPARATOR.join([STREAMS[0], *STREAMS[1]])]
    return SEEDS[name]


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        for number, seed in enumerate(seeds(name)):
            (folder / f"seed-{number}").write_bytes(seed)
    words = PATH.with_name("words")
    tokens = (token.encode() for token in TOKENS.get(name, JSON_TOKENS) if token)
    quoted = ("".join(f"\\x{byte:02x}" for byte in token) for token in tokens)
    words.write_text("".join(f'"{token}"\n' for token in quoted))
    targets = {
        "wikitext": read_wikitext,
        "multistream": read_multistream,
        "containers": lambda data: read("auto", data),
    }
    target = targets.get(name, lambda data: read(name, data))
    atheris.Setup([sys.argv[0], *sys.argv[2:], f"-dict={words}"], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

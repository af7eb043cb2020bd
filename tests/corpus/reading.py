"""Reads sources for tests, as `harp build` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from harp_plugin.corpus.pages import Dropped, Item
from harp_plugin.corpus.readers import READERS, choose_reader, sources


def read(path: str | Path, reader: str = "auto") -> Iterator[Item]:
    """All items of a file, a folder or a collection."""
    for source in sources(path):
        found = READERS[choose_reader(source, reader)]()
        for record in found.records(source):
            yield from [record] if isinstance(record, Dropped) else found.parse(record)


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts into files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read_bytes(data: bytes, name: str, reader: str = "auto") -> list[Item]:
    """All items of a file with this content and name."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return list(read(path, reader))

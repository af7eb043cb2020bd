"""Files, folders and compressions as readers see them."""

import bz2
import errno
import gzip
import lzma
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from dumps import dump_xml, page_xml, write_dump
from reading import read, read_bytes

from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.corpus.readers import Source, mediawiki, source, sources
from harp_plugin.errors import HarpError

PAGES = {f"Page {n}": f"A [[page {n + 1}]] of {n}." for n in range(25)}


def keys(items):
    return [item.key for item in items if isinstance(item, Page)]


@pytest.mark.parametrize(
    "compress", [bytes, bz2.compress, gzip.compress, lzma.compress, pa.Codec("zstd").compress]
)
def test_compressions(compress):
    data = compress(dump_xml(PAGES).encode())
    assert keys(read_bytes(bytes(data), "any-name")) == list(PAGES)


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress])
def test_concatenated_streams(compress):
    data = dump_xml(PAGES).encode()
    cut = len(data) // 3
    assert keys(read_bytes(compress(data[:cut]) + compress(data[cut:]), "x")) == list(PAGES)


def test_a_folder_is_its_files(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/2.xml", "a.xml", ".hidden.xml", "x-multistream-index.txt"):
        write_dump(tmp_path / name, PAGES)
    assert [found.name for found in sources(tmp_path)] == ["a.xml", "b/2.xml"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(HarpError, match="no file in"):
        sources(tmp_path / "empty")


@pytest.mark.parametrize("closed", ["pages", "pages/sub", "pages/.git"])
def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch, closed):
    """Its pages are not left out; a hidden folder is passed over. Root may read all folders."""
    (tmp_path / "pages" / "sub").mkdir(parents=True)
    (tmp_path / "pages" / ".git").mkdir()
    write_dump(tmp_path / "pages" / "a.xml", PAGES)
    scandir, folder = os.scandir, str(tmp_path / closed)

    def limited(path):
        if os.fspath(path) == folder:
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", limited)
    if closed == "pages/.git":
        assert [file.name for file in sources(tmp_path / "pages")] == ["a.xml"]
        return
    with pytest.raises(HarpError, match=rf"folder {folder} cannot be read .*: change its perm"):
        sources(tmp_path / "pages")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "a.xml")

    write_dump(tmp_path / "a.xml", PAGES)
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(HarpError, match=r"a\.xml may not be read: change its permissions"):
        next(Source("a.xml", tmp_path / "a.xml").lines())


def test_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_RECORD", 10)
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\n\n" + b"x" * 95 + b"\nlast of 9")
    found = list(Source("lines.txt", path).lines())
    assert found == [(1, b"one\n"), Dropped("line over 64 MiB"), (4, b"last of 9")]


def test_a_page_that_is_too_long(tmp_path, monkeypatch):
    """It is dropped and the next ones are found, wherever the blocks end."""
    pages = {"A": "[[B]]", "Long": "x" * 5000, "B": "[[A]]", "Longer": "y" * 9000, "C": "[[A]]"}
    path = write_dump(tmp_path / "d.xml", pages)
    monkeypatch.setattr(mediawiki, "MAX_RECORD", 3000)
    for block in (7, 100, 1000, 2900):
        monkeypatch.setattr(mediawiki, "_BLOCK", block)
        items = list(read(path))
        assert keys(items) == ["A", "B", "C"]
        assert Counter(map(type, items))[Dropped] == 2


def multistream(folder, pages, each=10, name="wiki-multistream", compress=bz2.compress):
    """Write a dump in streams of some pages each, and its index."""
    head, _, _ = dump_xml({}).partition("</mediawiki>")
    data = bz2.compress(head.encode())
    index = []
    items = list(pages.items())
    for first in range(0, len(items), each):
        some = items[first : first + each]
        index += [f"{len(data)}:{n}:{title}\n" for n, (title, _) in enumerate(some, first)]
        data += bz2.compress("".join(page_xml(*page) for page in some).encode())
    path = folder / f"{name}.xml.bz2"
    path.write_bytes(data + bz2.compress(b"</mediawiki>"))
    listed = path.with_name(f"{name}-index.txt.bz2")
    listed.write_bytes(bz2.compress("".join(index).encode()))
    return path, listed


def test_multistream(tmp_path):
    path, index = multistream(tmp_path, PAGES)
    records = list(mediawiki.MediaWikiReader().records(Source(path.name, path)))
    assert [record.pages for record in records] == [10, 10, 5]
    assert keys(read(path)) == list(PAGES) == keys(read(tmp_path))
    index.with_suffix("").write_bytes(bz2.decompress(index.read_bytes()))
    index.unlink()
    assert keys(read(path)) == list(PAGES)
    index.with_suffix("").unlink()
    assert keys(read(path)) == list(PAGES)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"no:index\n", "is not the index of a multistream dump"),
        (b"7:1:A\n", "does not fit"),
        (b"999999:1:A\n", "does not fit"),
    ],
)
def test_a_wrong_index(tmp_path, index, message):
    path, listed = multistream(tmp_path, PAGES)
    listed.write_bytes(bz2.compress(index))
    with pytest.raises(HarpError, match=message):
        list(read(path))


def test_a_damaged_stream(tmp_path):
    path, _ = multistream(
        tmp_path, {f"P{n}": random.Random(n).randbytes(9000).hex() for n in PAGES}
    )
    data = bytearray(path.read_bytes())
    data[-300:-280] = bytes(20)
    path.write_bytes(data)
    with pytest.raises(HarpError, match=r"wiki-multistream\.xml\.bz2, byte \d+: .*"):
        list(read(path))

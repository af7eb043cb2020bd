"""Input that is made to hang, to fill the memory, or to break what reads it.

What the fuzzer (``tests/fuzz_readers.py``) found is here, too.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from builds import read_table
from dumps import dump_xml, page_xml, write_dump
from hypothesis import given
from hypothesis import strategies as st
from reading import read, read_bytes
from seeds import CONTAINERS, SEEDS

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.markup import Link, LinkedText
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.corpus.readers import READERS
from harp_plugin.corpus.sentences import linked_sentences
from harp_plugin.corpus.tables import TABLES, table_rows
from harp_plugin.corpus.wikitext import Site, parse_page
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph

MANY = 10**5
GIB = 1 << 30
TOO_LONG = Dropped("page of over four million characters")


def tables(items) -> dict[str, pa.RecordBatch]:
    """What the corpus stage would write of the items."""

    class Given:
        def parse(self, record):
            yield record

    ((rows, _),) = table_rows(Given(), items)
    return {
        name: pa.RecordBatch.from_pylist(rows[name], schema=schema)
        for name, schema in TABLES.items()
    }


@given(st.data())
def test_damaged_sources_of_every_format(data):
    """Pieces are lost, doubled, or replaced by junk."""
    name = data.draw(st.sampled_from(sorted(SEEDS)))
    source = data.draw(st.sampled_from(SEEDS[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(source)))
        end = start + data.draw(st.integers(0, 40))
        junk = data.draw(st.binary(max_size=9) | st.just(source[start:end] * 2))
        source = source[:start] + junk + source[end:]
    try:
        tables(read_bytes(source, "x", name))
    except HarpError as error:
        assert "\n" not in str(error)


@given(st.sampled_from(CONTAINERS), st.binary(max_size=9), st.integers(0), st.integers(0, 40))
def test_damaged_compressions(packed, junk, start, size):
    start %= len(packed)
    try:
        tables(read_bytes(packed[:start] + junk + packed[start + size :], "x"))
    except HarpError as error:
        assert "\n" not in str(error)


@pytest.mark.integration
@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_one_byte_of_a_compressed_source_is_damaged(name, compress):
    rng = random.Random(name)
    told = 0
    for _ in range(80):
        packed = bytearray(compress(rng.choice(SEEDS[name])))
        packed[rng.randrange(len(packed))] ^= rng.randrange(1, 256)
        try:
            tables(read_bytes(bytes(packed), "x", name))
        except HarpError as error:
            assert str(error).startswith("x") and "\n" not in str(error)
            told += 1
    assert told > 60


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress])
@pytest.mark.parametrize("damage", [b"", b"junk and more", "header"])
def test_damage_between_compressed_streams(compress, damage):
    """The standard library takes it for the end of the file."""
    packed = compress(SEEDS["kilt"][0])
    data = packed + (b"XX" + packed[2:] if damage == "header" else damage)
    if damage:
        with pytest.raises(HarpError, match="cannot be read"):
            read_bytes(data, "x")
    else:
        assert len(read_bytes(data + bytes(40_000) + packed, "x")) == 2


def archive(*headers: tarfile.TarInfo) -> bytes:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as writer:
        for header in headers:
            writer.addfile(header, io.BytesIO(SEEDS["wikimedia-enterprise"][0]))
    return tar.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.size = kind, len(SEEDS["wikimedia-enterprise"][0])
    return header


def test_archives_tell_of_damage():
    """The standard library takes a damaged header for the end of the archive."""
    data = archive(member("a.ndjson"), member("b.ndjson"))
    assert len(read_bytes(data, "x")) == 8
    for broken in (data.replace(b"b.ndjson", b"c.ndjson"), data[: data.index(b"b.ndjson")]):
        with pytest.raises(HarpError, match=r"^x, a\.ndjson: the archive is damaged"):
            read_bytes(broken, "x")
    for kind in (tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE):
        with pytest.raises(HarpError, match=r"^x, a\.ndjson: the archive is damaged"):
            read_bytes(archive(member("a.ndjson"), member("b.ndjson", kind)), "x")


@pytest.mark.parametrize(
    "index", [b"", b"99999999999999999999999999:1:A\n", b"-9:1:A\n", b"1e3:1:A"]
)
def test_indexes_that_are_none(tmp_path, index):
    path = tmp_path / "a-multistream.xml.bz2"
    path.write_bytes(bz2.compress(dump_xml({"A": "[[B]]"}).encode()))
    (tmp_path / "a-multistream-index.txt").write_bytes(index)
    with pytest.raises(HarpError, match=r"a-multistream-index\.txt"):
        list(read(path))


def test_a_trail_of_nothing():
    """Found by fuzzing: the trail of a link that was inside of one without a target."""
    page = parse_page("P", "[[#a|:n [[b<nowiki/>]]]]s [[c]]", Site())
    assert [link.anchor for link in page.sections[0].body.links] == ["c"]


def test_half_surrogate_pairs():
    for half in (b"\\ud800", "\ud800".encode("utf-8", "surrogatepass")):
        (line,) = SEEDS["kilt"]
        try:
            tables(read_bytes(line.replace(b"fruit.", half), "x", "kilt"))
        except HarpError as error:
            assert "x, line 1" in str(error) and not half.startswith(b"\\")
    utf_16 = json.dumps({"sentence": "\ud800"}).encode("utf-16-le")
    with pytest.raises(HarpError, match=r"^x, line 1"):
        read_bytes(utf_16, "x", "harp-anchors")


@pytest.mark.parametrize("reader", ["mediawiki", "html", "kilt", "warc"])
def test_nul_bytes(reader):
    data = SEEDS[reader][0]
    for place in range(0, len(data), 97):
        try:
            tables(read_bytes(data[:place] + b"\0" + data[place:], "x", reader))
        except HarpError as error:
            assert "\n" not in str(error)


def test_a_title_of_a_megabyte():
    title = "T" * (1 << 20)
    (page,) = read_bytes(dump_xml({title: f"[[{title}]]"}).encode(), "x")
    assert page.key == title
    assert tables([page])["links"]["target"].to_pylist() == [title]


def test_names_of_files_that_are_no_text(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    html = SEEDS["html"][0]
    for name in (b"a\xff.html", b"b\n.html"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(html)
    manifest = build_corpus(tmp_path, CorpusOptions(), sources=[folder], quiet=True)
    assert manifest["rows"]["pages"] == 2
    keys = set(read_table(tmp_path / "corpus" / "pages")["key"].to_pylist())
    assert keys == {"a\ufffd.html", "b\ufffd.html"}


def test_a_picture_in_a_folder_of_markdown_whose_name_is_no_text(tmp_path):
    """As in archives of long ago."""
    (tmp_path / "in").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/in/caf\xe9.png")).write_bytes(b"\x89PNG\0")
    (tmp_path / "in" / "a.md").write_text("# A\n\nSee [b](b.md).")
    (tmp_path / "in" / "b.md").write_text("# B\n\nSee [a](a.md).")
    manifest = build_corpus(tmp_path, CorpusOptions(), sources=[tmp_path / "in"], quiet=True)
    assert manifest["rows"]["pages"] == manifest["rows"]["links"] == 2


def test_what_is_no_file(tmp_path):
    pipe, empty, folder = tmp_path / "pipe", tmp_path / "empty", tmp_path / "folder"
    os.mkfifo(pipe)
    empty.touch()
    folder.mkdir()
    (folder / "broken").symlink_to(tmp_path / "absent")
    (folder / "itself").symlink_to(folder)
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe")
    for named in (pipe, empty, folder, folder / "broken", folder / "circle"):
        with pytest.raises(HarpError, match=str(named)):
            list(read(named))
    write_dump(folder / "d.xml", {"A": "[[B]]"})
    assert [page.key for page in read(folder)] == ["A"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write_dump(tmp_path / "d.xml", {"A": "[[B]]"})
    path.chmod(0)
    with pytest.raises(HarpError, match=r"d\.xml cannot be read"):
        list(read(path))


FEW = 2 * 10**4
NESTED = {
    "{{": 1,
    "[[": 1,
    "[[a|": 1,
    "''[[a|''": 1,
    "<div>": 1,
    "{|\n": 1,
    ":;": 1,
    "{{lang|a|": 1,
    "<ref>": 1,
    "[[A]]. ": FEW,
    "[[a]] b ": FEW,
    "\n== See also ==\n[[a]]": 0,
    '[[a]] ("« ': FEW,
}


@pytest.mark.integration
@pytest.mark.parametrize("mark", NESTED)
def test_marks_by_the_ten_thousand(mark):
    page = parse_page("P", mark * (MANY if NESTED[mark] == 1 else FEW) + " [[z]].", Site())
    found = tables([page])
    sections = len(page.sections)
    assert found["links"].num_rows <= NESTED[mark] + 1 and sections >= 1
    assert found["links"].num_rows + sum(page.drops.values()) + len(page.see_also) >= 1 or (
        mark in ("{{", "{|\n", "<ref>", "{{lang|a|", ":;")
    )


def test_nesting_of_json():
    for opening in (b"[", b'{"a":'):
        with pytest.raises(HarpError, match="nested too deeply"):
            read_bytes(opening * MANY, "x", "kilt")


def test_nesting_of_xml():
    page = page_xml("A", "[[b]]").encode()
    deep = page.replace(b"<ns>", b"<a>" * MANY + b"</a>" * MANY + b"<ns>")
    assert len(read_bytes(dump_xml({}).encode().replace(b"</med", deep + b"</med"), "x")) == 1
    wide = page.replace(b"<ns>", b"<a/>" * (1 << 20) + b"<ns>")
    assert read_bytes(dump_xml({}).encode().replace(b"</med", wide + b"</med"), "x") == [
        Dropped("page of over a million XML tags")
    ]


def test_sentences_of_long_lines_are_those_of_short_ones():
    """The splitter is given a long line in pieces; a link over the end of a sentence joins two."""
    text = " ".join(f"An apple of {n} is a fruit." for n in range(2000))
    within = [Link(*at.span(), at[0], "T") for at in re.finditer(r"apple of \d+", text)]
    over = [Link(*at.span(), at[0], "U") for at in re.finditer(r"\d+9 is a fruit\. An", text)]
    for links in (within, within + over):
        found = list(linked_sentences(LinkedText(text, links), "en", Counter()))
        assert sum(len(sentence.links) for sentence in found) == len(links)
        assert len(found) == 2000 - len(links) + len(within)
        for sentence in found:
            assert sentence.text.startswith("An apple") and sentence.text.endswith("fruit.")
            for link in sentence.links:
                assert sentence.text[link.start : link.end] == link.anchor


def test_parts_of_a_shard_that_is_far_larger_than_it_was_packed(tmp_path, monkeypatch):
    pages = {f"P{n}": f"[[a]] {n}" for n in range(20)}
    whole = tmp_path / "whole"
    source = write_dump(tmp_path / "d.xml", pages)
    build_corpus(whole, CorpusOptions(), sources=[source], quiet=True)
    monkeypatch.setattr("harp_plugin.corpus.tables._PART_SIZE", 1000)
    manifest = build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    assert manifest["rows"]["pages"] == manifest["rows"]["links"] == 20
    assert len(list((tmp_path / "corpus" / "pages").iterdir())) > 1
    for name in TABLES:
        one, many = (read_table(at / "corpus" / name) for at in (whole, tmp_path))
        assert sorted(map(str, one.to_pylist())) == sorted(map(str, many.to_pylist()))


@pytest.mark.integration
@pytest.mark.parametrize("loop", [True, False])
def test_redirects_by_the_thousand(tmp_path, loop):
    words = "word " * 100
    ends = {f"R{n}": f"R{n + 1}" for n in range(2000)}
    ends["R2000"] = "R0" if loop else "A"
    pages = {"A": f"[[B]] {words}", "B": f"[[A]] and [[R5]] and [[R1999]] {words}"}
    write_dump(tmp_path / "d.xml", pages, ends)
    build_corpus(tmp_path, CorpusOptions(), sources=[tmp_path / "d.xml"], quiet=True)
    drops = build_graph(tmp_path, GraphOptions())["drops"]
    (reason,) = (reason for reason in drops if "in a loop" in reason)
    assert drops[reason] == (2001 if loop else 2001 - 16)
    assert len(read_table(tmp_path / "graph" / "anchors")) == (2 if loop else 3)


READ = """
import json, sys
from collections import Counter
from pathlib import Path
from harp_plugin.corpus.tables import table_rows
from harp_plugin.corpus.readers import READERS, Source
from harp_plugin.errors import HarpError
reader, path = READERS[sys.argv[1]](), Path(sys.argv[2])
counts = Counter()
try:
    for record in reader.records(Source(path.name, path)):
        for rows, drops in table_rows(reader, [record]):
            counts.update(pages=len(rows["pages"]), **+drops)
except HarpError as error:
    counts = str(error)
(peak,) = [line for line in Path("/proc/self/status").open() if line.startswith("VmHWM")]
print(json.dumps([counts, int(peak.split()[1]) >> 10]))
"""


def read_elsewhere(reader: str, path: Path) -> tuple[dict[str, int] | str, int]:
    """Pages and drops, or the error, and the peak of memory in MiB."""
    command = [sys.executable, "-c", READ, reader, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counts, peak = json.loads(done.stdout)
    return counts, peak


MOST_MEMORY = 700


def inflating(
    path: Path, compress: Callable[[bytes], bytes], *parts: bytes, filler: bytes = b"a"
) -> Path:
    """A file of the parts with a GiB of filler between each two."""
    between = compress(filler * (1 << 24)) * (GIB >> 24)
    path.write_bytes(between.join(compress(part) for part in parts))
    return path


def zstandard(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "compress"),
    [
        ("kilt", gzip.compress),
        ("clueweb22", bz2.compress),
        ("harp-anchors", lzma.compress),
        ("wikimedia-enterprise", zstandard),
    ],
)
def test_a_line_of_a_gigabyte(tmp_path, reader, compress):
    line = SEEDS[reader][0]
    path = inflating(tmp_path / "x", compress, line + b"{", b"\n" + line)
    counts, peak = read_elsewhere(reader, path)
    each = len([page for page in read_bytes(line, "x", reader) if isinstance(page, Page)])
    assert counts["pages"] == 2 * each and counts["line over 64 MiB"] == 1
    assert peak < MOST_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("compress", [bz2.compress, zstandard])
def test_a_dump_with_a_page_of_a_gigabyte(tmp_path, compress):
    dump = dump_xml({"A": "[[B]]", "Bomb": "CUT", "C": "[[A]]"}).encode()
    path = inflating(tmp_path / "x", compress, *dump.split(b"CUT"))
    counts, peak = read_elsewhere("mediawiki", path)
    assert counts == {"pages": 2, "page over 64 MiB": 1} and peak < MOST_MEMORY


@pytest.mark.slow
def test_a_stream_of_a_multistream_dump_that_inflates(tmp_path):
    path = tmp_path / "a-multistream.xml.bz2"
    head, page = dump_xml({}).encode().partition(b"</mediawiki>")[0], page_xml("A", "CUT").encode()
    packed, bomb = bz2.compress(head), page.replace(b"CUT", b"a" * (1 << 28))
    path.write_bytes(packed + bz2.compress(bomb))
    (tmp_path / "a-multistream-index.txt").write_text(f"{len(packed)}:1:A\n")
    del bomb
    message, peak = read_elsewhere("mediawiki", path)
    assert "a stream is over 64 MiB" in message and peak < MOST_MEMORY


@pytest.mark.slow
def test_many_streams_in_one_place_of_an_index(tmp_path):
    path = tmp_path / "a-multistream.xml.bz2"
    packed = bz2.compress(dump_xml({}).encode().partition(b"</mediawiki>")[0])
    path.write_bytes(
        packed + bz2.compress(page_xml("A", "[[B]]").encode()) + bz2.compress(b"") * MANY
    )
    (tmp_path / "a-multistream-index.txt").write_text(f"{len(packed)}:1:A\n")
    assert read_elsewhere("mediawiki", path)[0] == {"pages": 1}


@pytest.mark.slow
def test_wikitext_of_sixty_megabytes(tmp_path):
    path = write_dump(tmp_path / "x.xml", {"A": "[[a]] " * 10**7, "B": "[[A]]"})
    counts, peak = read_elsewhere("mediawiki", path)
    assert counts == {"pages": 1, TOO_LONG.reason: 1} and peak < MOST_MEMORY


@pytest.mark.slow
def test_responses_that_inflate(tmp_path):
    def response(body: bytes, codings: str) -> bytes:
        http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {codings}\r\n\r\n"
        block = http.encode() + body
        head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/\r\n"
        head += f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
        return head.encode() + block + b"\r\n\r\n"

    packer = zlib.compressobj()
    bomb = b"".join([*(packer.compress(bytes(1 << 24)) for _ in range(64)), packer.flush()])
    path = tmp_path / "x.warc"
    path.write_bytes(response(bomb, "deflate") + response(b"<p>a", ",".join(["gzip"] * 999)))
    counts, peak = read_elsewhere("warc", path)
    assert counts == {"pages": 0, "page over 8 MiB": 1, "page that cannot be decompressed": 1}
    assert peak < MOST_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("head", [b"WARC/1.0\r\nWARC-Type: ", b"WARC/1.0\r\n"])
def test_a_header_of_a_record_of_a_gigabyte(tmp_path, head):
    path = inflating(tmp_path / "x.warc.gz", gzip.compress, head, b"\r\n\r\n")
    assert read_elsewhere("warc", path)[1] < MOST_MEMORY


@pytest.mark.slow
def test_a_file_of_html_of_a_gigabyte(tmp_path):
    path = inflating(tmp_path / "x.html.gz", gzip.compress, b"<p>", b"</p>")
    counts, peak = read_elsewhere("html", path)
    assert counts == {"pages": 0, "page over 8 MiB": 1} and peak < MOST_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_member_of_an_archive_of_a_gigabyte(tmp_path, kind):
    big = tarfile.TarInfo("big.ndjson")
    big.type, big.size = kind, GIB
    first = archive(member("a.ndjson"))
    first = first[: first.rindex(b"}") + 512 & ~511]
    head = first + big.tobuf(tarfile.GNU_FORMAT)
    path = inflating(tmp_path / "x.tar.gz", gzip.compress, head, archive(member("b.ndjson")))
    counts, peak = read_elsewhere("wikimedia-enterprise", path)
    assert peak < MOST_MEMORY
    if kind == tarfile.REGTYPE:
        assert counts["pages"] == 4 and counts["line over 64 MiB"] == 1
    else:
        assert "over 1 MiB" in counts


@pytest.mark.slow
def test_a_sentence_of_ten_megabytes_and_many_links(tmp_path):
    (line,) = SEEDS["harp-anchors"]
    fields = json.loads(line)
    fields["sentence"] = "apple " * 1_700_000
    fields["tokenized_sentence"] = fields["sentence"].split()
    (anchors,) = fields["anchors"]
    fields["anchors"] = [[{**anchors[0], "pos": [85 * n, 0]} for n in range(MANY // 5)]]
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(fields) + "\n")
    counts, peak = read_elsewhere("harp-anchors", path)
    assert counts["pages"] == MANY // 5 + 1 and peak < 3 * MOST_MEMORY


@pytest.mark.integration
def test_a_folder_of_good_and_hostile_files(tmp_path):
    """What is damaged stops the build with a line and leaves nothing; the rest is counted."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    words = "word " * 100
    good = {"A": f"An [[B]] {words}", "B": f"A [[A]] {words}", "C": "{{" * 999 + "[[A]]"}
    write_dump(folder / "good.xml", good, {"L": "M", "M": "L"})
    (folder / "nested.html").write_bytes(b"<div>" * MANY + b"x")
    (folder / "empty").touch()
    (folder / "noise").write_bytes(random.Random(0).randbytes(9999))
    (folder / "broken").symlink_to("absent")
    os.mkfifo(folder / "pipe")
    (folder / "bad.warc").write_bytes(SEEDS["warc"][0][:-30])
    options = BuildOptions(output_dir=str(out), stages=["corpus", "graph"], workers=1, quiet=True)
    with pytest.raises(HarpError, match=r"^bad\.warc, byte \d+: .*") as caught:
        build([folder], options)
    assert "\n" not in str(caught.value)
    assert not [path for name in ("manifest.json", "*.harp-tmp") for path in out.rglob(name)]
    (folder / "bad.warc").write_bytes(SEEDS["warc"][0])
    manifests = build([folder], options)
    drops = manifests["corpus"]["drops"]
    assert drops["file of unknown format"] == 2
    assert drops["page of elements nested over 1,000 deep"] == 1
    assert manifests["graph"]["rows"]["anchors"] == 2
    assert manifests["graph"]["drops"]["redirect in a loop or through more than 16 others"] == 2


def test_every_reader_of_files_has_seeds():
    assert set(SEEDS) == set(READERS) - {"irds"}
    for name, sources in SEEDS.items():
        for source in sources:
            assert any(isinstance(item, Page) for item in read_bytes(source, "x", name))

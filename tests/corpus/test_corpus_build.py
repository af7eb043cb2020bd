"""The corpus stage: its tables, and what it says to damaged input."""

import bz2
import gc
import gzip
import lzma
import random

import pytest
from builds import read_table
from dumps import dump_xml, write_dump

from harp_plugin.corpus.build import _fewer_collections, build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError

PAGES = {
    "Apple": "An '''apple''' is a [[fruit]]. No link. It grows on [[tree]]s.\n"
    "== See also ==\n[[Pear]]",
    "Pear": "A [[Fruit|sweet fruit]]. {{x}}",
}


def build(source, directory, **options):
    return build_corpus(directory, CorpusOptions(**options), sources=[source], quiet=True)


def test_tables(tmp_path):
    source = write_dump(tmp_path / "d.xml.bz2", PAGES, {"Apples": "Apple"})
    manifest = build(source, tmp_path / "out")
    folder = tmp_path / "out" / "corpus"
    pages = {row["key"]: row for row in read_table(folder / "pages").to_pylist()}
    sentences = {row["id"]: row for row in read_table(folder / "sentences").to_pylist()}
    links = read_table(folder / "links").to_pylist()
    assert pages["Apple"]["lead"] == "An apple is a fruit. No link. It grows on trees."
    assert pages["Apple"]["words"] == 11 and pages["Apple"]["see_also"] == ["Pear"]
    texts = {row["text"]: row["page"] for row in sentences.values()}
    assert texts == {
        "An apple is a fruit.": pages["Apple"]["id"],
        "It grows on trees.": pages["Apple"]["id"],
        "A sweet fruit.": pages["Pear"]["id"],
    }
    found = {(sentences[r["sentence"]]["text"], r["anchor"], r["target"]) for r in links}
    assert found == {
        ("An apple is a fruit.", "fruit", "Fruit"),
        ("It grows on trees.", "trees", "Tree"),
        ("A sweet fruit.", "sweet fruit", "Fruit"),
    }
    for row in links:
        text = sentences[row["sentence"]]["text"]
        assert text[row["start"] : row["end"]] == row["anchor"]
    assert read_table(folder / "redirects").to_pylist() == [{"source": "Apples", "target": "Apple"}]
    rows = {"index_terms": 0, "links": 3, "pages": 2, "redirects": 1, "sections": 2, "sentences": 3}
    assert manifest["rows"] == rows


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress, bytes])
def test_compressions_give_the_same_tables(tmp_path, compress):
    plain = dump_xml(PAGES).encode()
    (tmp_path / "d").write_bytes(compress(plain))
    assert build(tmp_path / "d", tmp_path / "out")["rows"]["pages"] == 2


def test_several_sources_in_shards(tmp_path):
    one = write_dump(tmp_path / "one.xml", {f"P{n}": f"[[x]] {n}" for n in range(5)})
    two = write_dump(tmp_path / "two.xml", {"Q": "[[y]]"})
    options = CorpusOptions(pages_per_shard=2)
    manifest = build_corpus(tmp_path / "out", options, sources=[one, two], quiet=True)
    shards = sorted(path.name for path in (tmp_path / "out/corpus/pages").iterdir())
    assert shards == [f"part-{name}.parquet" for name in
        ("000-00000", "000-00001", "000-00002", "001-00000")]  # fmt: skip
    assert manifest["rows"]["pages"] == manifest["rows"]["links"] == 6


@pytest.mark.parametrize("named", ["folders", "files"])
def test_files_of_the_same_name_are_refused(tmp_path, named):
    """Pages are named by their paths, so that one would take the place of the other."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "README.md").write_text(f"# {folder.name}\n\nSome words.")
    sources = folders if named == "folders" else [folder / "README.md" for folder in folders]
    with pytest.raises(HarpError, match=r"README.md is in two sources, .*: name one folder"):
        build_corpus(tmp_path / "out", CorpusOptions(), sources=sources, quiet=True)
    (tmp_path / "both").mkdir()
    for folder in folders:
        folder.rename(tmp_path / "both" / folder.name)
    assert build(tmp_path / "both", tmp_path / "out")["rows"]["pages"] == 2


def test_only_what_is_missing_is_read_again(tmp_path):
    source = write_dump(tmp_path / "d.xml", {f"P{n}": f"[[x]] {n}" for n in range(6)})
    whole = build(source, tmp_path, pages_per_shard=2)
    folder = tmp_path / "corpus"
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*.parquet")}
    (folder / "manifest.json").unlink()
    (folder / "shards" / "000-00001.json").unlink()
    assert build(source, tmp_path, pages_per_shard=2) == whole
    changed = {path.name for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert changed == {"part-000-00001.parquet"}


@pytest.fixture(scope="module")
def long_dump():
    draw = random.Random(0)
    pages = {
        f"P{n}": " ".join(str(draw.random()) for _ in range(100)) + " [[x]]." for n in range(120)
    }
    return dump_xml(pages)


def broken(kind, whole: str) -> bytes:
    data = whole.encode()
    half = len(data) // 2
    packed = {"bz2": bz2.compress, "gz": gzip.compress, "xz": lzma.compress}
    form, _, how = kind.partition(" ")
    if how == "cut":
        packed = packed[form](data)
        return packed[: len(packed) * 3 // 4]
    if how == "damaged":
        packed = packed[form](data)
        middle = len(packed) * 3 // 4
        return packed[:middle] + bytes(200) + packed[middle + 200 :]
    return {
        "text": b"Just a text about apples.\n" * 99,
        "empty": b"",
        "random": random.Random(1).randbytes(100_000),
        "half": data[:half],
        "utf8": data[:half] + b"\xff\xfe" + data[half:],
        "entity": data[:half] + b"&unknown;" + data[half:],
        "nothing": dump_xml({}).encode(),
        "root": b"<mediawiki></mediawiki>",
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [f"{form} {how}" for form in ("bz2", "gz", "xz") for how in ("cut", "damaged")]
    + ["text", "empty", "random", "half", "utf8", "entity", "nothing", "root"],
)
def test_damaged_input_is_named_and_leaves_nothing_whole(tmp_path, long_dump, kind):
    source = tmp_path / "dump.xml"
    source.write_bytes(broken(kind, long_dump))
    for _ in range(2):  # a second run must not take the first one's shards for whole
        with pytest.raises(HarpError) as caught:
            build(source, tmp_path / "out", pages_per_shard=20)
        message = str(caught.value)
        assert "dump.xml" in message and "\n" not in message and len(message) < 400
        assert not list(tmp_path.rglob("manifest.json"))
    source.write_text(long_dump)
    assert build(source, tmp_path / "out", pages_per_shard=20)["rows"]["pages"] == 120
    assert not list(tmp_path.rglob("*.harp-tmp"))


def test_a_folder_of_other_formats_is_told_how_to_convert_it(tmp_path):
    for name in ("a.rst", "b.rst"):
        (tmp_path / name).write_text("Title\n=====\n")
    with pytest.raises(HarpError, match=r"neither .*a\.rst nor .*Sphinx and Asciidoctor"):
        build(tmp_path, tmp_path / "out")


def test_missing_file(tmp_path):
    with pytest.raises(HarpError, match=r"no source at .*absent\.xml"):
        build(tmp_path / "absent.xml", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("reader", ["mediawiki", "harp-anchors"])
def test_named_reader_on_another_format(tmp_path, reader):
    source = tmp_path / "wrong.txt"
    source.write_text("neither\n")
    with pytest.raises(HarpError, match=r"^wrong\.txt"):
        build(source, tmp_path / "out", reader=reader)


def test_damaged_json_lines(tmp_path):
    line = b'{"sentence": "a", "tokenized_sentence": ["a"], "anchors": []}\n'
    noise = random.Random(0)
    lines = b"".join(line.replace(b'"a"', b'"%x"' % noise.getrandbits(600)) for _ in range(2000))
    for compress in (bz2.compress, gzip.compress, lzma.compress):
        packed = compress(lines)
        middle = len(packed) * 3 // 4
        source = tmp_path / "a.jsonl"
        for data in (packed[:middle], packed[:middle] + bytes(99) + packed[middle + 99 :]):
            source.write_bytes(data)
            with pytest.raises(HarpError, match=r"a\.jsonl"):
                build(source, tmp_path / "out")


def test_the_garbage_collector_runs_as_before_afterwards():
    before = gc.get_threshold()
    with pytest.raises(HarpError), _fewer_collections():
        assert gc.get_threshold()[0] > before[0]
        raise HarpError("damaged")
    assert gc.get_threshold() == before

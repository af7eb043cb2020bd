"""ClueWeb22's JSON records, written by hand after the code that reads them."""

import gzip
import json

import pytest
from reading import read, read_bytes

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Dropped
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph

APPLE, PEAR = "clueweb22-en0000-00-00001", "clueweb22-en0000-00-00002"
HASH = "34F41FC98C9F2271C5B1E53C365AD1A1"
FRUITS = "https://www.fruits.co.uk/all"


def text(key, url, words):
    return {
        "URL": url,
        "URL-hash": HASH,
        "Language": "en",
        "ClueWeb22-ID": key,
        "Clean-Text": words,
    }


def links(key, url, *anchors, name="anchors"):
    return {"url": url, "urlhash": HASH, "language": "en", "ClueWeb22-ID": key, name: anchors}


def anchor(url, words, flag="0", key=None):
    return [url, HASH, words, flag, "en", key]


INLINK = links(
    APPLE,
    "https://apple.org/",
    anchor(FRUITS, "the\n\n  apple "),
    anchor("https://b.github.io/x", "Apples", ""),
    anchor(FRUITS, "Apple", "1", PEAR),
    anchor(FRUITS, " \n"),
    anchor("https://apple.org/", "back"),
    anchor(FRUITS, "apple again")[:5],
)


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_text():
    first, second = read_bytes(
        lines(text(APPLE, "https://www.apple.org/a", "Apple\nA fruit.\n"), text(PEAR, "", " ")),
        "en0000-00.json",
    )
    assert (first.key, first.lead, first.domain) == (APPLE, "Apple\nA fruit.", "apple.org")
    assert first.word_count == 3 and second == Dropped("page without text")


def test_inlinks():
    """One page for each page that links, with its domain; header and footer apart."""
    empty, own, first, second = read_bytes(b"\n" + lines(INLINK), "en0000-00.json")
    assert (empty, own) == (Dropped("empty anchor text"), Dropped("link to its own page"))
    assert first.key == f"{FRUITS} -> {APPLE}" and first.domain == "fruits.co.uk"
    assert first.lead == "" and first.word_count is None and not first.split
    assert [(s.region, s.body.text) for s in first.sections] == [
        (None, "the apple\napple again"),
        ("header", "Apple"),
    ]
    assert {link.target for section in first.sections for link in section.body.links} == {APPLE}
    assert second.domain == "b.github.io" and second.sections[0].body.text == "Apples"


def test_outlinks_give_the_same_page_as_inlinks():
    outlink = links(
        PEAR,
        FRUITS,
        anchor("https://apple.org/", "the apple", key=APPLE),
        anchor("https://gone.org/", "gone"),
        anchor("https://apple.org/", "apple again", key=APPLE),
        anchor("https://apple.org/", "Apple", "2", APPLE),
        name="outlinks",
    )
    gone, page = read_bytes(lines(outlink), "en0000-00.json")
    assert gone == Dropped("link out of ClueWeb22")
    assert page == read_bytes(lines(INLINK), "en0000-00.json")[2]


def test_build(tmp_path):
    """What `harp build txt/ inlink/` does."""
    for folder, record in (
        ("txt", text(APPLE, "https://apple.org/", "An apple is a fruit.")),
        ("inlink", INLINK),
    ):
        path = tmp_path / folder / "en" / "en00" / "en0000-00.json.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(lines(record)))
    out = tmp_path / "out"
    build_corpus(out, CorpusOptions(), sources=[tmp_path / "txt", tmp_path / "inlink"], quiet=True)
    manifest = build_graph(out, GraphOptions(min_words=1))
    assert manifest["rows"]["anchors"] == 3
    assert manifest["drops"] == {"link in a header, footer or navigation": 1}


@pytest.mark.parametrize(
    "bad",
    [
        {"ClueWeb22-ID": APPLE},
        text(7, "u", "words"),
        text(APPLE, "u", None),
        text("", "u", "words"),
        links(APPLE, "u", "anchor"),
        links(APPLE, "u", ["url", HASH]),
        links(APPLE, "u", anchor("url", 7)),
        links(APPLE, "u", anchor(7, "words")),
        links(APPLE, "u", anchor("url", "words", key=7), name="outlinks"),
        links(APPLE, "u", name="anchors") | {"anchors": {}},
    ],
)
def test_a_bad_record_is_named(bad):
    with pytest.raises(HarpError, match=r"^x\.json, line 2: no record of ClueWeb22"):
        read_bytes(lines(text(APPLE, "u", "x"), bad), "x.json")


def test_a_folder_is_told_by_its_files(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(lines(INLINK)))
    assert len(list(read(tmp_path))) == 4

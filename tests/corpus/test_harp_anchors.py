"""The HARP authors' JSON lines: the sample of their code, and lines written by hand."""

import json
from collections import Counter

import pytest
from reading import read_bytes

from harp_plugin.corpus.readers import HarpAnchorsReader, Source, choose_reader
from harp_plugin.corpus.readers.json_lines import Record
from harp_plugin.errors import HarpError


def line(sentence, *anchors, tokens=None):
    nested = [[{"text": t, "pos": pos, "passage": p}] for t, pos, p in anchors]
    fields = {"sentence": sentence, "tokenized_sentence": tokens or sentence.split()}
    return json.dumps({**fields, "anchors": nested}).encode()


def read(data):
    return read_bytes(data, "demo.jsonl")


def test_the_sample(shared_data):
    """95 sentences; an anchor's place is known from its tokens, its target from its passage."""
    path = shared_data / "wiki" / "anchors-demo.jsonl"
    source = Source(path.name, path)
    assert choose_reader(source) == "harp-anchors"
    reader = HarpAnchorsReader()
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    written = found = near = 0
    records = list(reader.records(source))
    assert len(records) == len(lines) == 95
    for record, fields in zip(records, lines, strict=True):
        *passages, sentence = reader.parse(record)
        text = sentence.sections[0].body.text
        keys = {passage.key: passage.lead for passage in passages}
        anchors = [anchor for nested in fields["anchors"] for anchor in nested]
        expected = Counter((anchor["text"].lower(), anchor["passage"]) for anchor in anchors)
        links = sentence.sections[0].body.links
        got = Counter((text[k.start : k.end].lower(), keys[k.target]) for k in links)
        assert text == fields["sentence"] and not got - expected
        for link in links:
            assert text[link.start : link.end] == link.anchor
            tokens_before = len(text[: link.start].split())
            starts = [a["pos"][0] for a in anchors if a["text"].lower() == link.anchor.lower()]
            near += tokens_before in starts
        assert sentence.drops.total() == (expected - got).total()
        written += len(anchors)
        found += len(links)
    # Two anchors of one edited line stand eight tokens behind their positions.
    assert (written, found, near) == (100, 98, 96)


def test_repeated_words_are_told_apart_by_position():
    first, *_, sentence = read(line("a b a b.", ("a", [2, 1], "P one"), ("b", [1, 9], "P two")))
    spans = [(link.start, link.end) for link in sentence.sections[0].body.links]
    assert spans == [(4, 5), (2, 3)]
    assert first.lead == "P one" and first.word_count is None
    assert sentence.key == "demo.jsonl:1"


def test_case_and_lines_leave_the_offsets_exact():
    """The lower-case form of İ has two characters."""
    *_, sentence = read(line("İn the\nBig dog.", ("THE BIG", [1, 2], "P")))
    body = sentence.sections[0].body
    assert body.text == "İn the Big dog." and (body.links[0].start, body.links[0].end) == (3, 10)
    assert body.links[0].anchor == "the Big"


@pytest.mark.parametrize(
    "anchor", [("x", [1, 1], "P"), ("a", [9, 1], "P"), ("", [0, 1], "P"), ("a", [1, 1], "P")]
)
def test_an_anchor_that_is_not_there_is_counted(anchor):
    (sentence,) = read(line("a b c", anchor))
    assert sentence.drops == {"anchor text not at its place": 1}
    assert not sentence.sections[0].body.links


@pytest.mark.parametrize(
    "bad",
    [
        b"not json",
        b"[1, 2]",
        b'{"sentence": "a"}',
        b'{"sentence": "\xff", "tokenized_sentence": [], "anchors": []}',
        b'{"sentence": "a", "tokenized_sentence": ["a"], "anchors": [["a"]]}',
        b'{"sentence": "a", "tokenized_sentence": ["a"], "anchors": [[{"text": "a"}]]}',
        b'{"sentence": "a", "tokenized_sentence": ["a"], "anchors": 3}',
    ],
)
def test_a_bad_line_is_named(bad):
    with pytest.raises(HarpError, match=r"^demo\.jsonl, line 3: .*$"):
        list(read(line("a b", ("a", [0, 1], "P")) + b"\n\n" + bad + b"\n"))


def test_only_linked_pages_are_documents(tmp_path):
    record = {
        "sentence": "See the dog.",
        "tokenized_sentence": ["See", "the", "dog."],
        "anchors": [[{"text": "dog", "pos": [2, 2], "passage": "A dog is an animal."}]],
    }
    pages = list(HarpAnchorsReader().parse(Record("corpus.jsonl", 1, json.dumps(record).encode())))
    assert [page.lead for page in pages] == ["A dog is an animal.", ""]
    assert [page.word_count for page in pages] == [None, None]

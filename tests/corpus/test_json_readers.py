"""Readers of JSON lines on broken values: a HarpError that names the line, or pages in order."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp_plugin.corpus.pages import Page
from harp_plugin.corpus.readers import READERS, Source, choose_reader
from harp_plugin.corpus.readers.json_lines import Record
from harp_plugin.corpus.sentences import linked_sentences
from harp_plugin.errors import HarpError

ANCHOR = ["https://a.org/x", "HASH", "words", "1", "en", "clueweb22-en0000-00-00002"]
RECORDS = {
    "kilt": {
        "wikipedia_id": "7",
        "wikipedia_title": "Apple",
        "text": ["Apple\n", "An apple is a fruit.\n", "Section::::See also.\n", "BULLET::::- A\n"],
        "anchors": [
            {"paragraph_id": 1, "text": "fruit", "href": "Fruit", "start": 14, "end": 19},
            {"paragraph_id": 1, "text": "apple", "href": "Apple", "start": 3, "end": 8},
            {"paragraph_id": 3, "text": "A", "href": "A", "start": 12, "end": 13},
        ],
    },
    "clueweb22": {"url": "u", "ClueWeb22-ID": "clueweb22-en0000-00-00001", "anchors": [ANCHOR]},
    "harp-anchors": {
        "sentence": "See the İ dog, a b.",
        "tokenized_sentence": ["See", "the", "İ", "dog,", "a", "b."],
        "anchors": [[{"text": "DOG", "pos": [3, 3], "passage": "A dog is."}]],
    },
}
OTHERS = [
    ("clueweb22", {"URL": "http://a.org", "ClueWeb22-ID": "i", "Clean-Text": "A fruit."}),
    ("clueweb22", {"url": "u", "ClueWeb22-ID": "i", "outlinks": [ANCHOR, ANCHOR[:5]]}),
]
CASES = [*RECORDS.items(), *OTHERS]
TEXTS = st.text(st.characters() | st.sampled_from("\ud800\udc00\n\r\u2028\x00&<>[]{}'%#:"))
PIECES = ["Section::::", "BULLET::::-"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**30, -(2**63), 1, 2])
    | st.floats()
    | TEXTS
    | st.lists(st.sampled_from(PIECES) | TEXTS).map("".join),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def places(value, path=()):
    """Paths to all values inside a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def without(value, path):
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


def check(reader, data):
    """Parse, as `harp build` would; whatever comes out can be written."""
    try:
        items = list(READERS[reader]().parse(Record("file", 3, data)))
    except HarpError as error:
        assert re.fullmatch(r"file, line 3: [^\n]+", str(error))
        return
    for page in (item for item in items if isinstance(item, Page)):
        assert page.key
        texts = [page.key, page.title, page.lead, page.domain or "", *page.see_also]
        for section in page.sections:
            body, sentences = section.body, 0
            texts += [section.title, body.text]
            assert -128 <= section.level < 128
            assert body.links == sorted(body.links, key=lambda link: link.start)
            for link in body.links:
                texts.append(link.target)
                assert (
                    0 <= link.start < link.end and body.text[link.start : link.end] == link.anchor
                )
                assert "\n" not in link.anchor and link.target
            for sentence in linked_sentences(
                body, page.language if page.split else None, page.drops, page.debris
            ):
                sentences += len(sentence.links)
                for link in sentence.links:
                    assert sentence.text[link.start : link.end] == link.anchor
            lost = page.drops["sentence with left-over markup"]
            assert sentences == len(body.links) or lost
        assert "\ufffd".join(texts).encode()


@pytest.mark.parametrize(("reader", "record"), CASES)
def test_the_record_itself_is_read(reader, record, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(record))
    if reader != "kilt" or "id" not in record:
        assert choose_reader(Source("file.json", path)) == reader
    items = list(READERS[reader]().parse(Record("file", 3, json.dumps(record).encode())))
    assert any(isinstance(item, Page) for item in items)


@pytest.mark.integration
@given(st.sampled_from(CASES), st.data())
def test_values_of_any_kind(case, data):
    reader, record = case
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(record))))
        if path and data.draw(st.booleans()):
            new = data.draw(JSON)
            record = replaced(record, path, new)
        elif path:
            record = without(record, path)
    check(reader, json.dumps(record).encode())


@given(st.sampled_from(CASES), st.data())
def test_bytes_of_any_kind(case, data):
    reader, record = case
    line = bytearray(json.dumps(record, ensure_ascii=data.draw(st.booleans())).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(line)))
        line[start : start + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    check(reader, bytes(line))


@pytest.mark.parametrize("reader", RECORDS)
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting(reader, opening):
    with pytest.raises(HarpError, match=r"^file, line 3: nested too deeply"):
        list(READERS[reader]().parse(Record("file", 3, opening.encode() * 100_000)))


def test_half_a_surrogate_pair():
    record = RECORDS["kilt"] | {"wikipedia_title": "Apple \ud83d"}
    (page,) = READERS["kilt"]().parse(Record("file", 3, json.dumps(record).encode()))
    assert page.title == "Apple \ufffd"

"""Halves of surrogate pairs in a source: each becomes U+FFFD, and links stay at their places."""

import json
import random
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest
from dumps import dump_xml
from reading import read_bytes
from seeds import SEEDS

from harp_plugin.corpus.readers import READERS, Source
from harp_plugin.corpus.tables import TABLES, table_rows
from harp_plugin.errors import HarpError
from harp_plugin.text import without_surrogates

JSON_READERS = ("kilt", "wikimedia-enterprise", "clueweb22", "harp-anchors")
IN_A_TEXT = re.compile(rb'(?<=": ")(?=[^"])|(?<=": \[")(?=[^"])|(?<=[a-z]) (?=[a-z])')


class Given:
    def parse(self, record):
        yield record


def rows_of(items):
    """The rows of the items, which the tables take and whose links stand at their places."""
    ((rows, _),) = table_rows(Given(), items)
    for name, schema in TABLES.items():
        pa.RecordBatch.from_pylist(rows[name], schema=schema)
    sentences = {row["id"]: row["text"] for row in rows["sentences"]}
    for link in rows["links"]:
        assert sentences[link["sentence"]][link["start"] : link["end"]] == link["anchor"]
    return rows


SOURCES = [(name, seed) for name in JSON_READERS for seed in SEEDS[name] if seed[:1] == b"{"]


@pytest.mark.parametrize(("name", "seed"), SOURCES, ids=[name for name, _ in SOURCES])
def test_every_reader_of_json(name, seed):
    whole, replaced = rows_of(read_bytes(seed, "x", name)), 0
    places = [found.start() for found in IN_A_TEXT.finditer(seed)]
    for place in random.Random(0).sample(places, min(40, len(places))):
        for half in (b"\\ud800", b"\\uDFFF\\ud801"):
            try:
                rows = rows_of(read_bytes(seed[:place] + half + seed[place:], "x", name))
            except HarpError:  # such as an id that must be a number
                continue
            replaced += "\ufffd" in str(rows) and len(rows["pages"]) == len(whole["pages"])
    assert replaced >= 2


def test_documents_of_ir_datasets(monkeypatch):
    document = SimpleNamespace(doc_id="d\ud800", title="", default_text=lambda: "a \udfff b")
    dataset = SimpleNamespace(has_docs=lambda: True, docs_iter=lambda: iter([document]))
    monkeypatch.setattr("ir_datasets.load", lambda _name: dataset)
    reader = READERS["irds"]()
    [record] = reader.records(Source("irds:odd"))
    [page] = rows_of(reader.parse(record))["pages"]
    assert (page["key"], page["lead"]) == ("d\ufffd", "a \ufffd b")


def test_entities_of_wikitext():
    dump = dump_xml({"A": "An &#xD800; or &#55296; is [[B|b&#xDFFF;]]."}).encode()
    rows = rows_of(read_bytes(dump, "x"))
    assert [row["text"] for row in rows["sentences"]] == ["An \ufffd or \ufffd is b\ufffd."]


def test_length_is_kept():
    text = "a\ud800b\udfff\ud83d\ude00😀"
    replaced = without_surrogates(text)
    assert len(replaced) == len(text) and replaced == "a\ufffdb\ufffd\ufffd\ufffd😀"
    assert json.loads('"\\ud83d\\ude00"') == "😀" == without_surrogates("😀")

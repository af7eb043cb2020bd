"""Collections of ir_datasets, read by its own machinery from local files."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from reading import read

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Dropped
from harp_plugin.corpus.readers import Source, choose_reader, sources
from harp_plugin.corpus.readers.irds import IrDatasetsReader
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.sampling import stable_id

DOCUMENTS = "\n".join(
    f"<DOC>\n<DOCNO>{number}</DOCNO>\n<TEXT>\nhttps://{title}.org/\n{title}\n{body}\n</TEXT>\n</DOC>"
    for number, title, body in [
        ("D1", "Apples", "Apples are fruits.\nThey grow on trees."),
        ("D2", "Pears", "Pears are fruits, too."),
        ("D3", "Nothing", ""),
    ]
)
ANCHORS = [
    {"id": "D1", "anchors": ["fruit", "the  apple\n page", " ", "fruit"]},
    {"id": "D2", "anchors": ["fruit"]},
    {"id": "D9", "anchors": ["gone"]},
]


@pytest.fixture
def register():
    """Registers collections of ir_datasets, for one test."""
    import ir_datasets
    from ir_datasets.datasets.base import Dataset

    names = []

    def add(name, *handlers):
        names.append(name)
        ir_datasets.registry.register(name, Dataset(*handlers))
        return f"irds:{name}"

    yield add
    for name in names:
        del ir_datasets.registry._registered[name]


@pytest.fixture
def msmarco(tmp_path, register):
    """A tiny MS MARCO: documents, and a collection of anchor texts."""
    from ir_datasets.datasets.msmarco_document import MsMarcoAnchorTextDocs, MsMarcoTrecDocs
    from ir_datasets.util import LocalDownload

    documents, anchors = tmp_path / "docs.trec", tmp_path / "anchors.json"
    documents.write_text(DOCUMENTS + "\n")
    anchors.write_text("\n".join(map(json.dumps, ANCHORS)))
    return (
        register("tiny-marco", MsMarcoTrecDocs(LocalDownload(documents))),
        register("tiny-marco/anchor-text", MsMarcoAnchorTextDocs(LocalDownload(anchors), 3)),
    )


def test_documents(msmarco):
    first, second, third = read(msmarco[0])
    assert (first.key, first.title) == ("D1", "Apples")
    assert first.lead == "Apples are fruits.\nThey grow on trees." and first.word_count == 7
    assert second.key == "D2" and third == Dropped("page without text")


def test_anchor_texts(msmarco):
    first, second, gone = read(msmarco[1])
    assert first.key == "irds:tiny-marco/anchor-text:D1"
    assert first.lead == "" and first.word_count is None and not first.split
    body = first.sections[0].body
    assert body.text == "fruit\nthe apple page\nfruit"
    assert [(body.text[k.start : k.end], k.target) for k in body.links] == [
        ("fruit", "D1"),
        ("the apple page", "D1"),
        ("fruit", "D1"),
    ]
    assert first.drops == {"empty anchor text": 1}
    assert second.sections[0].body.text == "fruit" and gone.sections[0].body.text == "gone"


def rows(folder: Path) -> list[dict]:
    return pq.read_table(folder).to_pylist()


@pytest.mark.integration
def test_anchor_texts_lead_to_their_documents(msmarco, tmp_path):
    """What `harp build irds:msmarco-document irds:msmarco-document/anchor-text` does."""
    out = tmp_path / "build"
    manifest = build_corpus(out, CorpusOptions(), sources=msmarco, quiet=True)
    assert manifest["drops"] == {"page without text": 1, "empty anchor text": 1}
    graph = build_graph(out, GraphOptions(min_words=1))
    pages = {stable_id("page", key): key for key in ("D1", "D2")}
    found = sorted((row["normalized"], pages[row["page"]]) for row in rows(out / "graph/anchors"))
    assert found == [("fruit", "D1"), ("fruit", "D1"), ("fruit", "D2"), ("the apple page", "D1")]
    documents = {pages[row["id"]]: row["in_links"] for row in rows(out / "graph/documents")}
    assert documents == {"D1": 3, "D2": 1}
    assert graph["drops"] == {"link to a missing page": 1}


@pytest.mark.parametrize(
    ("name", "count", "empty", "start"),
    [
        ("vaswani", 11_429, 0, "compact memories have flexible capacities"),
        ("cranfield", 1_400, 2, "experimental investigation of the aerodynamics"),
    ],
)
def test_collections_that_know_no_links(irds_home, name, count, empty, start):
    items = list(read(f"irds:{name}"))
    assert len(items) == count
    assert items.count(Dropped("page without text")) == empty
    assert items[0].key == "1" and items[0].lead.startswith(start)


def test_the_reader_is_told_by_the_name():
    (source,) = sources("irds:msmarco-document/anchor-text")
    assert choose_reader(source) == "irds"


def test_collections_that_cannot_be_read(register, tmp_path):
    from ir_datasets.datasets.msmarco_document import MsMarcoAnchorTextDocs
    from ir_datasets.util import LocalDownload

    gone = register("tiny-gone", MsMarcoAnchorTextDocs(LocalDownload(tmp_path / "gone"), 3))
    with pytest.raises(HarpError, match=r"^irds:tiny-gone cannot be read \(FileNotFound.*fetch"):
        list(read(gone))
    with pytest.raises(HarpError, match=r"no collection 'vaswany': did you mean irds:vaswani\?"):
        list(read("irds:vaswany"))
    with pytest.raises(HarpError, match=r"^irds:tiny-empty has no documents"):
        list(read(register("tiny-empty")))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(HarpError, match="is a file"):
        list(IrDatasetsReader().records(Source("file", file)))


def test_a_bad_document_is_named(register, tmp_path):
    from ir_datasets.datasets.msmarco_document import MsMarcoAnchorTextDocs
    from ir_datasets.util import LocalDownload

    file = tmp_path / "anchors.json"
    file.write_text('{"id": "D1", "anchors": ["a"]}\n{"id": 7, "anchors": ["a"]}\n')
    name = register("tiny-bad", MsMarcoAnchorTextDocs(LocalDownload(file), 2))
    with pytest.raises(HarpError, match=r"^irds:tiny-bad, document 2: no document with text"):
        list(read(name))

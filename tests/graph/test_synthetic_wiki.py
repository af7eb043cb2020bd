"""Synthetic wikis: the dump and the tables are one wiki, and it has what a wiki has."""

import bz2
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from builds import read_table
from synthetic import synthetic_wiki
from synthetic_wiki import Wiki, titles, write_dump, write_tables

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph

UNWRITTEN = ("language", "kind", "title_anchors", "lead_words", "lead_bands")
"""Columns of the pages that the generator leaves out."""
NAMED = ("pages", "sentences", "links", "redirects", "sections")
WIKI = Wiki(pages=150, links=1500, redirects=40, seed=3)


def corpus_rows(folder):
    """All tables with keys and texts in place of ids, in one order."""
    pages, sentences, links, redirects, sections = (
        read_table(folder / "corpus" / name).to_pylist() for name in NAMED
    )
    keys = {page["id"]: page["key"] for page in pages}
    texts = {s["id"]: (keys[s["page"]], s["text"]) for s in sentences}
    spans = ("start", "end", "anchor", "normalized", "target", "region")
    for section in sections:
        section["page"] = keys[section["page"]]
        del section["id"]
    for page in pages:
        page["see_also"] = list(dict.fromkeys(page["see_also"]))
        for name in ("id", *UNWRITTEN):
            del page[name]
    return {
        "pages": sorted(pages, key=lambda page: page["key"]),
        "sentences": sorted(texts.values()),
        "links": sorted(
            ((*texts[link["sentence"]], *(link[name] for name in spans)) for link in links),
            key=str,
        ),
        "redirects": sorted(tuple(row.values()) for row in redirects),
        "sections": sorted(sections, key=lambda row: (row["page"], row["place"])),
    }


def graph_rows(folder):
    """The graph with keys in place of ids."""
    manifest = build_graph(folder, GraphOptions(min_words=100))
    keys = {p["id"]: p["key"] for p in read_table(folder / "corpus" / "pages").to_pylist()}
    tables = {}
    for name in ("anchors", "documents", "see_also", "anchor_texts"):
        rows = read_table(folder / "graph" / name).to_pylist()
        for row in rows:
            if name == "documents":
                row["id"] = keys[row["id"]]
            elif name == "anchor_texts":
                row["targets"] = sorted(keys[page] for page in row["targets"])
            else:
                row.pop("id", None)
                row.pop("sentence", None)
                row |= {end: keys[row[end]] for end in ("source", "page", "target") if end in row}
        tables[name] = sorted(str(row) for row in rows)
    return tables, manifest["drops"], manifest["counts"]


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roads")
    write_tables(WIKI, folder / "tables", quiet=True)
    write_dump(WIKI, folder / "wiki.xml.bz2", quiet=True)
    build_corpus(folder / "dump", CorpusOptions(), sources=[folder / "wiki.xml.bz2"], quiet=True)
    return folder / "tables", folder / "dump"


def test_both_roads_give_the_same_tables(roads):
    tables, dump = map(corpus_rows, roads)
    for name in NAMED:
        assert tables[name] == dump[name]
    assert [len(tables[name]) for name in ("pages", "links", "redirects")] == [150, 1500, 40]


@pytest.mark.integration
def test_both_roads_give_the_same_graph(roads):
    (tables, drops, counts), dump = map(graph_rows, roads)
    assert (tables, drops, counts) == dump
    assert counts["anchors in repeated sentences"] > 0
    assert counts["texts of several pages"] > 0
    assert drops["link to a missing page"] > 20


def test_spans_are_exact(roads):
    folder = roads[0] / "corpus"
    texts = {row["id"]: row["text"] for row in read_table(folder / "sentences").to_pylist()}
    for link in read_table(folder / "links").to_pylist():
        assert texts[link["sentence"]][link["start"] : link["end"]] == link["anchor"]


@pytest.mark.slow
@pytest.mark.integration
def test_a_larger_wiki(tmp_path):
    """Zipfian in-links, every kind of redirect, and distinct ids over several chunks."""
    wiki = Wiki(pages=45_000, links=100_000, redirects=9_000)
    write_tables(wiki, tmp_path, quiet=True)
    corpus = tmp_path / "corpus"
    for name in ("pages", "sentences", "links"):
        ids = read_table(corpus / name, ["id"])["id"].to_pylist()
        assert len(set(ids)) == len(ids) and min(ids) >= 0
    keys = read_table(corpus / "pages", ["key"])["key"].to_pylist()
    assert len(set(keys)) == 45_000
    frequent = Counter(read_table(corpus / "links", ["target"])["target"].to_pylist())
    (_, first), (_, second), *_, (_, tenth) = frequent.most_common(10)
    assert 1.5 < first / second < 2.1 and 6 < first / tenth < 14  # 1/log2(2..11) by construction
    drops = build_graph(tmp_path, GraphOptions(min_words=0))["drops"]
    for reason in ("to itself", "to a missing page", "in a loop or through more than 16 others"):
        assert drops[f"redirect {reason}"] > 1


@pytest.mark.integration
def test_the_seed_is_all_that_matters(tmp_path):
    code = f"""
import sys; sys.path[:0] = {[str(Path(synthetic_wiki.__file__).parent), *filter(None, sys.path)]!r}
from pathlib import Path
from synthetic_wiki import *
write_dump(Wiki(60, 400, 10, seed=1), Path(sys.argv[1]), quiet=True)
"""
    write_dump(Wiki(60, 400, 10, seed=1), tmp_path / "a.xml", quiet=True)
    write_dump(Wiki(60, 400, 10, seed=2), tmp_path / "c.xml", quiet=True)
    command = [sys.executable, "-c", code, str(tmp_path / "b.xml")]
    hashes = "7" if os.environ.get("PYTHONHASHSEED") != "7" else "8"
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": hashes})
    one, again, other = ((tmp_path / f"{name}.xml").read_bytes() for name in "abc")
    assert one == again != other


def test_multistream(tmp_path):
    """Each stream is a bzip2 file of its own, and the index tells where it starts."""
    wiki = replace(WIKI, pages=230, redirects=10)
    write_dump(wiki, tmp_path / "w-multistream.xml.bz2", quiet=True)
    write_dump(wiki, tmp_path / "w.xml", quiet=True)
    whole = (tmp_path / "w-multistream.xml.bz2").read_bytes()
    assert bz2.decompress(whole) == (tmp_path / "w.xml").read_bytes()
    index = bz2.decompress((tmp_path / "w-multistream-index.txt.bz2").read_bytes())
    lines = index.decode().splitlines()
    assert len(lines) == 240
    streams = {}
    for line in lines:
        offset, number, title = line.split(":")
        streams.setdefault(int(offset), []).append(f"<title>{title}</title><ns>0</ns><id>{number}<")
    assert [len(pages) for pages in streams.values()] == [100, 100, 40]
    for offset, pages in streams.items():
        text = bz2.BZ2Decompressor().decompress(whole[offset:]).decode()
        assert text.count("<page>") == len(pages) and all(page in text for page in pages)


def test_titles_are_distinct():
    import numpy as np

    assert len(set(titles(np.arange(300_000)).to_pylist())) == 300_000

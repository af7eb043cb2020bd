"""A finished build written by hand: every text and every attention weight is chosen here."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from orchard_wiki import TASKS as STRUCTURE_TASKS
from orchard_wiki import Orchard, write_orchard

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.tables import TABLES as CORPUS
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.tasks.source import BuildSource
from harp_plugin.weights.weighed_texts import TABLES as WEIGHTS
from harp_plugin.work.parquet import write_table
from harp_plugin.work.stage import Stage

HEADS = 4
TASKS = ["rqp", "qdm", "rdp", "acm"]

LEADS = {
    "APPLE": ("Apple is the sweet fruit of an apple tree", [8, 2, 2, 16, 4, 1, 1, 16, 6]),
    "TREE": ("Trees grow wood slowly", [16, 8, 24, 4]),
    "FRUIT": ("Fruit holds seeds", [32, 8, 16]),
    "RECORDS": ("Records published music", [8, 8, 32]),
    "CIDER": ("Cider ferments juice", [24, 8, 16]),
    "IRON": ("Iron rusts", [32, 16]),
    "SALT": ("Salt dissolves", [16, 16]),
    "GOLD": ("Gold shines", [8, 16]),
    **{f"SPOT{n}": (f"Spot number{n}", [8, 8]) for n in range(12)},
}
"""Leads, and [CLS]'s weight of each word in 64ths (exact in float16)."""

SENTENCES: list[tuple[str, list[int], list[tuple[str, str, list[int]]]]] = [
    # Text; [CLS]'s weights; anchors in order: text, page, weights seen from the anchor.
    (
        "The old Apple tree bears red apple fruit quickly",
        [4, 2, 16, 8, 4, 4, 2, 12, 4],
        [
            ("Apple", "APPLE", [8, 4, 8, 16, 2, 1, 4, 12, 1]),
            ("tree", "TREE", [2, 2, 2, 24, 8, 2, 2, 2, 16]),
            ("fruit", "FRUIT", [1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ],
    ),
    (
        "Apple music apple pages",
        [8, 2, 16, 16],
        [
            ("Apple", "RECORDS", [8, 16, 8, 8]),
            ("apple", "RECORDS", [16, 8, 8, 8]),
            ("pages", "CIDER", [4, 4, 4, 4]),
        ],
    ),
    ("Sweet apple", [8, 8], [("apple", "APPLE", [16, 8])]),
    ("Sour apple", [8, 8], [("apple", "APPLE", [16, 8])]),
    ("Apple juice", [8, 8], [("Apple", "CIDER", [16, 8])]),
    ("Left right", [16, 16], [("Left", "TREE", [8, 8]), ("right", "FRUIT", [8, 8])]),
    (
        "Big red barn iron",
        [8, 8, 8, 20],
        [("Big red barn", "TREE", [8, 8, 8, 8]), ("iron", "IRON", [8, 8, 8, 8])],
    ),
    ("Zero iron", [0, 16], [("Zero", "GOLD", [8, 8]), ("iron", "IRON", [8, 8])]),
    *((f"Far spot {n}", [8, 8, 8], [("spot", f"SPOT{n}", [8, 8, 8])]) for n in range(12)),
]


DROPPED_LINKS = {0: ["SALT"], 24: ["APPLE"]}
"""Pages that a sentence links to by links that a filter drops."""

LAYER_BEFORE = {(0, 1): 14}
"""[CLS]'s weight of anchors by the layer before the last, in 64ths, where it is not the last's."""

ON_PAGES: dict[int, tuple[str, str, list[int], list[tuple[str, str, list[int]]]]] = {
    # As SENTENCES, with the page that each stands on.
    20: ("APPLE", "Sweet Cider barrels rest", [8] * 4, [("Cider", "CIDER", [8, 8, 24, 32])]),
    21: ("APPLE", "Green tree leaves fall", [8] * 4, [("Green tree", "TREE", [8, 8, 8, 8])]),
    22: ("APPLE", "Our own orchard", [8] * 3, [("orchard", "APPLE", [8, 8, 8])]),
    23: ("APPLE", "Loud apple songs", [8] * 3, [("apple", "RECORDS", [8, 8, 8])]),
    24: ("APPLE", "Raw ore smelts", [8] * 3, [("ore", "IRON", [8, 8, 8])]),
    25: (
        "APPLE",
        "Salt preserves bread fish meat cheese butter",
        [8] * 7,
        [("Salt", "SALT", [8, 8, 8, 8, 8, 8, 8])],
    ),
    26: ("IRON", "Rusty fruits taste metal", [8] * 4, [("fruits", "APPLE", [8, 8, 8, 8])]),
    27: ("IRON", "Coins shine bright yellow", [8] * 4, [("Coins", "GOLD", [8, 8, 8, 8])]),
}


def text_id(text: str) -> int:
    """The id of an anchor text: its letters as a number."""
    return int.from_bytes(text.lower().encode()[:6], "big")


def link_tables(anchors, dropped) -> dict[str, list[dict]]:
    """The tables of the link graph that list anchors by page and by text."""
    on_pages, texts = [], []
    for page in sorted({a["source"] for a in anchors} | {a["page"] for a in anchors}):
        standing = [a for a in anchors if a["source"] == page]
        targets = sorted({a["page"] for a in standing})
        links = {"anchors": sorted(a["id"] for a in standing), "targets": targets}
        sources = sorted({a["source"] for a in anchors if a["page"] == page})
        linked = sorted({*targets, *dropped.get(page, ())})
        on_pages.append({"id": page, **links, "linked": linked, "sources": sources})
    for text in sorted({a["text_id"] for a in anchors}):
        group = sorted((a["page"], a["id"]) for a in anchors if a["text_id"] == text)
        texts.append({"id": text, "targets": sorted({page for page, _ in group}), "group": group})
    ambiguous = [
        {
            "id": text["id"],
            "pages": text["targets"],
            "counts": [sum(p == page for p, _ in text["group"]) for page in text["targets"]],
            "anchors": [anchor for _, anchor in text["group"]],
            "anchor_pages": [page for page, _ in text["group"]],
        }
        for text in texts
        if len(text["targets"]) >= 2
    ]
    listed = [{"id": text["id"], "targets": text["targets"]} for text in texts]
    return {"page_links": on_pages, "anchor_texts": listed, "ambiguous_texts": ambiguous}


@dataclass
class HandBuild:
    """The folder, and the ids of what it holds."""

    directory: Path
    pages: dict[str, int] = field(default_factory=dict)
    anchors: dict[tuple[int, int], int] = field(default_factory=dict)

    @staticmethod
    def sentence(number: int) -> int:
        return 1000 + number

    def lead(self, name: str) -> str:
        return LEADS[name][0]


def spans(text):
    return [match.span() for match in re.finditer(r"\w+", text)]


def commit(folder: Path, schemas, tables, **more) -> None:
    stage = Stage(folder, {}, {})
    stage.start()
    files = {}
    for name, rows in tables.items():
        schema = schemas[name] if schemas else pa.Table.from_pylist(rows).schema
        batch = pa.RecordBatch.from_pylist(rows, schema=schema)
        files[name] = write_table(folder / name / "part-0.parquet", schema, [batch])
    rows = {name: file.rows for name, file in files.items()}
    stage.finish_shard("part-0", rows, {}, files.values())
    stage.finish(**more)


def text_row(id, text, weights):
    starts, ends = zip(*spans(text), strict=True)
    assert len(starts) == len(weights)
    return {"id": id, "starts": starts, "ends": ends, "weights": [w / 64 for w in weights]}


def write_hand_build(
    directory: Path,
    beyond: frozenset[tuple[int, int]] = frozenset(),
    more=None,
    schemas=WEIGHTS,
    layer_before=LAYER_BEFORE,
    in_links=None,
    dropped_links=None,
):
    """Write all four stages; anchors ``beyond`` the model's limit get no weights."""
    sentences = {number: ("", *row) for number, row in enumerate(SENTENCES)} | (more or {})
    build = HandBuild(directory)
    corpus = {"pages": [], "sentences": []}
    graph = {"anchors": [], "sentence_anchors": [], "documents": []}
    weights = {"sentence_weights": [], "page_weights": [], "anchor_weights": []}
    for number, (name, (lead, row)) in enumerate(LEADS.items()):
        id = build.pages[name] = 10 + number
        page = {"id": id, "key": name, "title": name, "lead": lead, "words": 200}
        corpus["pages"].append({**page, "sections": [], "see_also": []})
        graph["documents"].append({"id": id})
        weights["page_weights"].append(text_row(id, lead, row))
    dropped: dict[int, list[int]] = {}
    for number, (on, text, row, anchors) in sentences.items():
        sentence, standing = build.sentence(number), build.pages.get(on, 99)
        also = [build.pages[name] for name in (dropped_links or {}).get(number, ())]
        dropped.setdefault(standing, []).extend(also)
        corpus["sentences"].append({"id": sentence, "page": standing, "text": text})
        weights["sentence_weights"].append(text_row(sentence, text, row))
        ids, targets, position = [], [], 0
        for place, (anchor, page, seen) in enumerate(anchors):
            position = text.index(anchor, position)
            end = position + len(anchor)
            id = build.anchors[number, place] = 10_000 + 10 * number + place
            ids.append(id)
            targets.append(build.pages[page])
            where = {"id": id, "sentence": sentence, "start": position, "end": end}
            named = {"normalized": anchor.lower(), "text_id": text_id(anchor)}
            graph["anchors"].append(
                {**where, **named, "page": build.pages[page], "source": standing}
            )
            if (number, place) not in beyond:
                inside = [a < end and b > where["start"] for a, b in spans(text)]
                last = sum(w for w, held in zip(row, inside, strict=True) if held)
                before = layer_before.get((number, place), last) / 64
                seen_row = {"id": id, "weights": [w / 64 for w in seen], "layer_before": before}
                weights["anchor_weights"].append(seen_row)
            position = end
        group = {"id": sentence, "anchors": ids, "pages": targets, "targets": len(set(targets))}
        graph["sentence_anchors"].append({**group, "linked": sorted({*targets, *also})})
    counts = Counter(anchor["page"] for anchor in graph["anchors"])
    for row in graph["documents"]:
        row["in_links"] = (in_links or counts)[row["id"]]
    graph |= link_tables(graph["anchors"], dropped)
    commit(directory / "corpus", CORPUS, corpus)
    commit(directory / "graph", None, graph)
    for row in weights["anchor_weights"]:
        for name in row.keys() - set(schemas["anchor_weights"].names):
            del row[name]
    commit(directory / "weights", schemas, weights, heads=HEADS)
    build_examples(directory, ExampleOptions(tasks=[*TASKS, "anchor"]))
    return build


@pytest.fixture(scope="session")
def hand_build(tmp_path_factory) -> HandBuild:
    return write_hand_build(tmp_path_factory.mktemp("hand-build"))


@pytest.fixture(scope="session")
def source(hand_build) -> BuildSource:
    return BuildSource(hand_build.directory, TASKS)


@pytest.fixture(scope="session")
def cut_build(tmp_path_factory) -> HandBuild:
    """The same with anchors that lie beyond the model's limit: one of three, and all but one."""
    beyond = frozenset({(0, 2), (5, 1), (2, 0)})
    return write_hand_build(tmp_path_factory.mktemp("cut-build"), beyond)


@pytest.fixture(scope="session")
def tied_build(tmp_path_factory) -> HandBuild:
    """The same where no sentence has weighed anchors of two pages but the one of the tie."""
    beyond = frozenset({(0, 0), (0, 1), (1, 2), (6, 0), (7, 0)})
    return write_hand_build(tmp_path_factory.mktemp("tied-build"), beyond)


@pytest.fixture
def write_build(tmp_path):
    """Writes a build of its own for a test, and opens it."""

    def write(**options):
        build = write_hand_build(tmp_path / "own-build", **options)
        return build, BuildSource(build.directory, TASKS)

    return write


@pytest.fixture(scope="session")
def linked_build(tmp_path_factory) -> HandBuild:
    """The same with sentences that stand on pages which others link to."""
    folder = tmp_path_factory.mktemp("linked-build")
    return write_hand_build(folder, more=ON_PAGES, dropped_links=DROPPED_LINKS)


@pytest.fixture(scope="session")
def linked_source(linked_build) -> BuildSource:
    return BuildSource(linked_build.directory, TASKS)


@pytest.fixture(scope="session")
def searched_build(tmp_path_factory) -> HandBuild:
    """The same, with the pages that a search found for the text `apple` and for sentence 0."""
    build = write_hand_build(tmp_path_factory.mktemp("searched-build"))
    ranked = ["APPLE", "TREE", "CIDER", "SALT", "IRON", "RECORDS", "GOLD"]
    pages = [build.pages[name] for name in ranked]
    commit(
        build.directory / "bm25_negatives",
        None,
        {
            "anchor_texts": [{"id": text_id("apple"), "pages": pages}],
            "sentences": [{"id": build.sentence(0), "pages": pages}],
        },
    )
    return build


@pytest.fixture(scope="session")
def orchard(tmp_path_factory) -> Orchard:
    """A small wiki of sections, for the tasks that need no weights; a search found six pages."""
    build = write_orchard(tmp_path_factory.mktemp("orchard"))
    found = [build.pages[name] for name in ("Alpha", "Beta", "Gamma", "Epsilon", "Twin", "Kappa")]
    rows = [{"id": build.pages[name], "pages": found} for name in ("Alpha", "Beta", "Gamma")]
    commit(build.directory / "bm25_negatives", None, {"pages": rows})
    return build


@pytest.fixture(scope="session")
def wiki_build(core150_source, shared_folder) -> Path:
    """150 real articles, searched by BM25, for the tasks that need no weights."""

    def fill(folder: Path) -> None:
        tasks = [*STRUCTURE_TASKS, "anchor"]
        options = BuildOptions(str(folder), tasks=tasks, negatives=["bm25"], workers=1, quiet=True)
        build([core150_source], options)

    return shared_folder("wiki-150-searched", fill)

"""Sections as passages: what the tasks on a page's structure have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..corpus.tree import Node, Tree

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "LEAST_WORDS",
    "distinct_sections",
    "document_sections",
    "draw_item",
    "draw_items",
    "draw_page",
    "long_sections",
]

Item = TypeVar("Item")
LEAST_WORDS = 20
"""A section with fewer words is no passage (Wikiformer's code; ICT, BFS and WLP take it over)."""


def document_sections(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Select the sections of the pages that may be a document, each once."""
    sections = graph["sections"].semi_join(graph["documents"], [("page", "id")])
    columns = ("page", "place", "parent", "depth", "words", "sentences", "others")
    return sections.group_by("id").aggregate(**{name: sections[name].min() for name in columns})


def long_sections(tree: Tree) -> list[Node]:
    """List the sections below the lead that are long enough, in reading order."""
    return [node for node in tree.nodes[1:] if tree.words[node.place] >= LEAST_WORDS]


def distinct_sections(sections: Iterable[Node]) -> list[Node]:
    """Sort sections by their texts; of sections with the same text, keep the first."""
    by_text: dict[str, Node] = {}
    for section in sections:
        by_text.setdefault(section.text, section)
    return [by_text[text] for text in sorted(by_text)]


def draw_items(rng: np.random.Generator, items: Sequence[Item], most: int | None) -> list[Item]:
    """Draw at most ``most`` items without replacement, all where it is None, in random order."""
    return [items[number] for number in rng.permutation(len(items))[:most]]


def draw_item(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """Draw an item uniformly."""
    return items[int(rng.integers(len(items)))]


def draw_page(rng: np.random.Generator, pages: np.ndarray, excluded: set[int]) -> int | None:
    """Draw a page uniformly from those that are not excluded; None where all are."""
    if len(pages) <= 4 * len(excluded):
        pages = pages[~np.isin(pages, list(excluded))]
        return int(rng.choice(pages)) if len(pages) else None
    while True:
        page = int(pages[rng.integers(len(pages))])
        if page not in excluded:
            return page

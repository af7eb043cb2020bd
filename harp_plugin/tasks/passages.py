"""Sections as passages: what tasks on a page's structure have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..corpus.tree import Tree

if TYPE_CHECKING:
    import ibis.expr.types as ir

T = TypeVar("T")
LEAST_WORDS = 20
"""A section with fewer words is no passage (Wikiformer's code; taken over for ICT, BFS, WLP)."""


def document_sections(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Sections of the pages that may be a document, each once."""
    sections = graph["sections"].semi_join(graph["documents"], [("page", "id")])
    columns = ("page", "place", "parent", "depth", "words", "sentences", "others")
    return sections.group_by("id").aggregate(**{name: sections[name].min() for name in columns})


def passages(tree: Tree) -> list[str]:
    """Texts of the sections below the lead that are long enough, in reading order."""
    return [node.text for node in tree.nodes[1:] if tree.words[node.place] >= LEAST_WORDS]


def some(rng: np.random.Generator, items: Sequence[T], most: int | None) -> list[T]:
    """Draw at most so many items, without replacement, in random order."""
    return [items[number] for number in rng.permutation(len(items))[:most]]


def one(rng: np.random.Generator, items: Sequence[T]) -> T:
    """Draw one item."""
    return items[int(rng.integers(len(items)))]


def draw_page(rng: np.random.Generator, pages: np.ndarray, excluded: set[int]) -> int | None:
    """Draw a page uniformly from those not excluded; None where all are."""
    if len(pages) <= 4 * len(excluded):
        pages = pages[~np.isin(pages, list(excluded))]
        return int(rng.choice(pages)) if len(pages) else None
    while True:
        page = int(pages[rng.integers(len(pages))])
        if page not in excluded:
            return page

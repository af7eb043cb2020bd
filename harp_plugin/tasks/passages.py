"""Sections as passages: what the tasks on a page's structure have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..corpus.tree import Node, Tree
from .groups import PairGroup, pair_group
from .queries import Query, section_pair
from .source import BuildSource

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "LEAST_WORDS",
    "cut_sentence",
    "distinct_sections",
    "document_sections",
    "draw_item",
    "draw_items",
    "draw_page",
    "long_passages",
    "long_sections",
    "passage_group",
    "passages",
]

Item = TypeVar("Item")
LEAST_WORDS = 20
"""A section with fewer words is not a passage (Wikiformer's code; the other tasks take it over)."""


def document_sections(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Select the sections of the pages that may be a document, each once."""
    sections = graph["sections"].semi_join(graph["documents"], [("page", "id")])
    columns = ("page", "place", "parent", "depth", "words", "sentences", "others")
    return sections.group_by("id").aggregate(**{name: sections[name].min() for name in columns})


def long_sections(tree: Tree) -> list[Node]:
    """List the sections below the lead that are long enough, in reading order."""
    return [node for node in tree.nodes[1:] if tree.has_words(node.place, LEAST_WORDS)]


def passages(source: BuildSource, page: int) -> list[Node]:
    """List the lead of a page and its long enough sections, in reading order."""
    tree = source.tree(page)
    return [tree.nodes[0]._replace(text=source.lead(page)), *long_sections(tree)]


def long_passages(source: BuildSource, page: int) -> list[Node]:
    """List the lead of a page, where it is long enough, and its long enough sections."""
    tree = source.tree(page)
    return [node for node in tree.nodes[:1] if tree.has_words(0, LEAST_WORDS)] + long_sections(tree)


def cut_sentence(
    rng: np.random.Generator, source: BuildSource, page: int, passages: list[Node]
) -> tuple[int, str, Node] | None:
    """Draw a sentence from the first passage that has two; the page, it, and the others."""
    for passage in passages:
        sentences = source.split_into_sentences(page, passage.text)
        if len(sentences) >= 2:
            query = sentences.pop(int(rng.integers(len(sentences))))
            return page, query, passage._replace(text=" ".join(sentences))
    return None


def passage_group(
    task: str, query: Query, pages: Sequence[int], rng: np.random.Generator, source: BuildSource
) -> PairGroup | None:
    """Group a query with a drawn passage of each page, the positive first; None without others."""
    pairs = (section_pair(query, page, draw_item(rng, passages(source, page))) for page in pages)
    return pair_group(task, pairs)


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

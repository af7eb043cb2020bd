"""A page as a tree of sections (Wikiformer, "Wiki Structure Tree")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from ..text import WORD, words

__all__ = ["Node", "Tree", "joined_sections", "section_tree", "tree_of_rows"]


class Node(NamedTuple):
    """A section of a page, or the root, which stands for the whole page.

    Attributes:
        place: its number in reading order; 0 for the root.
        parent: the place of the section that contains it; None for the root.
        depth: the number of nodes above it; 0 for the root.
        title: its heading; for the root, the title of the page.
        text: the text between its heading and the next heading; for the root, the lead.
        boilerplate: whether it is a list of references, links or the like.
    """

    place: int
    parent: int | None
    depth: int
    title: str
    text: str
    boilerplate: bool = False


@dataclass(frozen=True)
class Tree:
    """The sections of one page.

    Attributes:
        nodes: the root and then the sections in reading order.
    """

    nodes: tuple[Node, ...]

    @cached_property
    def words(self) -> list[int]:
        """The number of words in the text of each node, without the sections inside it.

        Boilerplate counts as having none: no task takes it as a passage.
        """
        return [0 if node.boilerplate else len(words(node.text)) for node in self.nodes]

    def has_words(self, place: int, least: int = 1) -> bool:
        """Return whether the text of a node has so many words; only as many of them are read."""
        node = self.nodes[place]
        first = islice(WORD.finditer(node.text), least)
        return not node.boilerplate and sum(1 for _ in first) == least

    @property
    def text(self) -> str:
        """The headings and texts of all sections, line by line, without boilerplate."""
        return joined_sections((n.title, n.text, n.boilerplate) for n in self.nodes)

    def article(self, enough: float = math.inf) -> str:
        """Join the texts of the first sections that have ``enough`` words, without boilerplate."""
        texts: list[str] = []
        length = 0
        for node in self.nodes:
            if length >= enough:
                break
            if node.text and not node.boilerplate:
                texts.append(node.text)
                length += len(node.text.split())
        return "\n".join(texts)

    def path(self, place: int) -> list[str]:
        """Return the titles from the root down to a node."""
        return [self.nodes[step].title for step in (*self.ancestors(place), place)]

    def ancestors(self, place: int) -> list[int]:
        """Return the places of the nodes above a node, the root first."""
        parent = self.nodes[place].parent
        return [] if parent is None else [*self.ancestors(parent), parent]

    def children(self, place: int) -> list[Node]:
        """Return the nodes directly below a node."""
        return [node for node in self.nodes if node.parent == place]

    def others(self, place: int) -> list[Node]:
        """Return the sections with a text that are neither this node nor above it."""
        path = {0, place, *self.ancestors(place)}
        return [n for n in self.nodes if n.place not in path and self.has_words(n.place)]


def joined_sections(sections: Iterable[tuple[str, str, bool]]) -> str:
    """Join headings and texts, line by line.

    Args:
        sections: the heading, the text and whether it is boilerplate, which is left out.
    """
    kept = ((title, text) for title, text, boilerplate in sections if not boilerplate)
    return "\n".join(part for section in kept for part in section if part)


def tree_of_rows(title: str, rows: Iterable[Mapping[str, Any]]) -> Tree:
    """Make the tree of a page from its title and the column ``sections`` of the table ``pages``."""
    names = ("level", "title", "text", "boilerplate")
    return section_tree(title, (tuple(row[name] for name in names) for row in rows))


def section_tree(title: str, sections: Iterable[tuple[int, str, str, bool]]) -> Tree:
    """Make the tree of a page.

    The parent of a section is the nearest section before it that has a lower level, even where
    levels between the two are missing.

    Args:
        title: the title of the page.
        sections: the level, heading and text of each section, and whether it is boilerplate. A lead
            has level 1 and no heading.
    """
    nodes = [Node(0, None, 0, title, "")]
    open_nodes: list[tuple[int, Node]] = [(0, nodes[0])]
    for number, (level, heading, text, boilerplate) in enumerate(sections):
        if number == 0 and level == 1 and not heading:
            nodes[0] = nodes[0]._replace(text=text)
            continue
        while len(open_nodes) > 1 and open_nodes[-1][0] >= level:
            open_nodes.pop()
        parent = open_nodes[-1][1]
        node = Node(len(nodes), parent.place, parent.depth + 1, heading, text, boilerplate)
        nodes.append(node)
        open_nodes.append((level, node))
    return Tree(tuple(nodes))

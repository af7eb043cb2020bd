"""A page as a tree of sections (Wikiformer, "Wiki Structure Tree")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..text import words


class Node(NamedTuple):
    """A section, or the whole page's root.

    Attributes:
        place: its number in reading order; the root is 0.
        parent: the place of the section that it stands in; None for the root.
        depth: sections it stands in; the root's is 0.
        title: its heading; the root's is the page's title.
        text: what stands under the heading and above the next; the root's is the lead.
    """

    place: int
    parent: int | None
    depth: int
    title: str
    text: str


@dataclass(frozen=True)
class Tree:
    """The sections of one page.

    Attributes:
        nodes: in reading order, the root first.
    """

    nodes: tuple[Node, ...]

    @cached_property
    def words(self) -> list[int]:
        """Number of words in each node's own text."""
        return [len(words(node.text)) for node in self.nodes]

    def path(self, place: int) -> list[str]:
        """Titles from the root down to a node."""
        return [self.nodes[each].title for each in (*self.ancestors(place), place)]

    def ancestors(self, place: int) -> list[int]:
        """Places of the nodes above a node, the root first."""
        parent = self.nodes[place].parent
        return [] if parent is None else [*self.ancestors(parent), parent]

    def children(self, place: int) -> list[Node]:
        """The nodes right below a node."""
        return [node for node in self.nodes if node.parent == place]

    def others(self, place: int) -> list[Node]:
        """Sections with a text that are neither the node nor above it."""
        own = {0, place, *self.ancestors(place)}
        return [n for n in self.nodes if n.place not in own and self.words[n.place]]


def section_tree(title: str, sections: Iterable[tuple[int, str, str]]) -> Tree:
    """Make a page's tree.

    A section stands in the nearest one before it whose level is lower, whatever levels are left
    out between the two.

    Args:
        title: of the page.
        sections: level, heading and text of each; a lead has level 1 and no heading.
    """
    nodes = [Node(0, None, 0, title, "")]
    above: list[tuple[int, Node]] = [(0, nodes[0])]
    for number, (level, heading, text) in enumerate(sections):
        if number == 0 and level == 1 and not heading:
            nodes[0] = nodes[0]._replace(text=text)
            continue
        while len(above) > 1 and above[-1][0] >= level:
            above.pop()
        parent = above[-1][1]
        node = Node(len(nodes), parent.place, parent.depth + 1, heading, text)
        nodes.append(node)
        above.append((level, node))
    return Tree(tuple(nodes))

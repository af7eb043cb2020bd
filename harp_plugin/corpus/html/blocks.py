"""Walks an HTML tree and writes its blocks: headings and paragraphs, with their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from ..markup import LinkedText
from ..word_lists import NAMES
from .document import walk
from .lines import LineWriter, WordCount
from .rules import HEADINGS, TABS, Attributes, HtmlRules

__all__ = ["Block", "BlockWriter"]

_LISTS = frozenset(NAMES["kinds_of_elements"]["lists"])
_BLOCKS = _LISTS | frozenset(NAMES["kinds_of_elements"]["blocks"])
_BREAKS = frozenset({"br", "hr"})
_CELLS = frozenset({"td", "th"})
_BETWEEN_CELLS = " | "
_TABLE_HEADS = frozenset({"caption", "th", "thead"})
_DESCRIPTIONS = frozenset(NAMES["signs"]["descriptions"])
_PARTS = frozenset({"article", "main", "section"})
_NOTE = "a note"


@dataclass(slots=True)
class Block:
    """A line of a page: a heading or a paragraph.

    Attributes:
        body: its text and links.
        heading: the level of the heading; 0 for a paragraph.
        region: the kind of boilerplate that contains it; None for content.
        menu: whether it, or a list that contains it, consists almost entirely of links.
    """

    body: LinkedText
    heading: int = 0
    region: str | None = None
    menu: bool = False


class BlockWriter:
    """Walks an HTML tree and writes its blocks.

    Args:
        rules: the rules for this kind of HTML.
        drops: the counter of reasons.

    Attributes:
        blocks: the blocks written so far.
        main: the range of the blocks of the main part of the page: its first, and behind its last.
    """

    def __init__(self, rules: HtmlRules, drops: Counter[str]) -> None:
        self.rules = rules
        self.drops = drops
        self.blocks: list[Block] = []
        self.main: tuple[int, int] | None = None
        self._line = LineWriter(drops, rules.drop_reason)
        self._words = self._linked = self._links = 0
        self._heading, self._title = 0, ""
        self._region: str | None = None
        self._parts = self._boxes = self._descriptions = 0
        self._omitted: str | None = None
        # By open table: whether it has a head, and whether it holds headings or tables.
        self._tables: list[set[str]] = []
        self._menus: list[tuple[int, int]] = []
        self._data_tables: list[tuple[int, int]] = []

    def walk(self, root: LexborNode) -> list[Block]:
        """Write the blocks below an element and return them."""
        leaving: list[Callable[[], None] | None] = []
        for node, is_start in walk(root):
            if is_start:
                leaving.append(self._enter(node, node.tag or "-"))
            elif (leave := leaving.pop()) is not None:
                leave()
        self._end_line()
        self._mark_blocks()
        return self.blocks

    def _enter(self, node: LexborNode, tag: str) -> Callable[[], None] | None:
        """Write a node and return the function to call at its end, if there is one."""
        if tag == "-text":
            if self._omitted is None:
                self._line.write(node.text_content or "")
            return None
        if tag[0] == "-":
            return None
        attributes = node.attributes
        if self._omitted is not None:
            if tag in ("a", "area") and attributes.get("href"):
                self.drops[f"link in {self._omitted}"] += 1
            return None
        if tag in _TABLE_HEADS and self._tables:
            self._tables[-1].add("head")
        omitted = self.rules.omitted(tag, attributes)
        is_heading = tag == "button" and self._heading and node.text().strip() == self._title
        if omitted is not None and not is_heading:
            return self._omit(omitted, tag, attributes)
        if tag == "a":
            has_target = attributes.get("href") is not None
            opened = has_target and self._line.open_link(self.rules.target(attributes))
            return self._line.close_link if opened else None
        if tag in HEADINGS:
            return self._open_heading(node, HEADINGS[tag])
        if tag in _CELLS and self.rules.keeps_tables:
            self._separate_cell(node)
            return None
        if tag in _BLOCKS:
            return self._open_block(node, tag, attributes)
        if tag in _BREAKS:
            self._end_line()
        elif tag == "img":
            self._line.space()
        return None

    def _omit(self, name: str, tag: str, attributes: Attributes) -> Callable[[], None]:
        if tag in ("pre", "table"):
            self._end_line()
        self.drops[f"link in {name}"] += tag == "a" and bool(attributes.get("href"))
        self._line.space(needed=name != _NOTE)
        self._omitted = name

        def leave() -> None:
            self._omitted = None

        return leave

    def _open_heading(self, node: LexborNode, level: int) -> Callable[[], None] | None:
        if self._heading:
            return None
        self._end_line()
        if self._boxes:
            return self._end_line
        for table in self._tables[-1:]:
            table.add("structure")
        self._heading, self._title = level, node.text().strip()

        def leave() -> None:
            self._write_block()
            self._heading = 0

        return leave

    def _separate_cell(self, node: LexborNode) -> None:
        """Separate a cell from the cells before it; a row is a line."""
        if not self._line.is_empty and (node.text() or "").strip():
            self._line.write(_BETWEEN_CELLS)

    def _open_block(self, node: LexborNode, tag: str, attributes: Attributes) -> Callable[[], None]:
        self._end_line()
        region = self._region
        is_main = tag == "main" or attributes.get("role") == "main"
        is_panel = region == TABS and attributes.get("role") == "tabpanel"
        if region is None or is_main or is_panel:
            self._region = self.rules.region(node, attributes, within=self._parts > 0)
        is_part, is_box = is_main or tag in _PARTS, self.rules.is_box(attributes)
        self._parts += is_part
        self._boxes += is_box
        leave_list = self._open_list(tag, attributes)
        first = len(self.blocks)

        def leave() -> None:
            self._end_line()
            if leave_list is not None:
                leave_list()
            if is_main and self.main is None:
                self.main = first, len(self.blocks)
            self._region = region
            self._parts -= is_part
            self._boxes -= is_box

        return leave

    def _open_list(self, tag: str, attributes: Attributes) -> Callable[[], None] | None:
        if tag not in _LISTS:
            return None
        classes = (attributes.get("class") or "").split() if tag == "dl" else ()
        describes = not _DESCRIPTIONS.isdisjoint(classes)
        self._descriptions += describes
        if tag == "table":
            for table in self._tables[-1:]:
                table.add("structure")
            self._tables.append(set())
        first = len(self.blocks)
        words, linked, links = self._words, self._linked, self._links

        def leave() -> None:
            span = first, len(self.blocks)
            table = self._tables.pop() if tag == "table" else set()
            is_data = table == {"head"} and self._region is None
            if is_data and not self.rules.keeps_tables:
                self._data_tables.append(span)
            size = WordCount(self._words - words, self._linked - linked, self._links - links)
            if size.is_menu and "structure" not in table and not self._descriptions:
                self._menus.append(span)
            self._descriptions -= describes

        return leave

    def _end_line(self) -> None:
        """End the current line; in a heading, write a space instead."""
        if self._heading:
            self._line.space()
        else:
            self._write_block()

    def _write_block(self) -> None:
        line = self._line.end()
        if line is None:
            return
        body, count = line
        self._words += count.words
        self._linked += count.linked
        self._links += count.links
        menu = count.is_menu and not self._heading
        region = "navigation" if self._region == TABS else self._region
        self.blocks.append(Block(body, self._heading, region, menu))

    def _mark_blocks(self) -> None:
        """Mark the blocks in lists of links, and empty the blocks in tables of data."""
        end = 0
        for first, last in sorted(self._menus, key=lambda span: (span[0], -span[1])):
            for block in self.blocks[max(first, end) : last]:
                block.menu = True
            end = max(end, last)
        for first, last in self._data_tables:
            for block in self.blocks[first:last]:
                self.drops["link in a table"] += len(block.body.links)
                block.body = LinkedText("", [])

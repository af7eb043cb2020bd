"""The tables of the corpus stage, and the rows of a page in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from ..sampling import stable_id
from ..text import normalize_anchor, title_anchors, words
from ..work.parquet import schema_of
from .boilerplate import REFERENCES, boilerplate_sections, kind_of_page, set_hatnotes_apart
from .markup import Link
from .near_duplicates import bands
from .pages import Dropped, IndexTerm, Page, Redirect
from .readers import Reader
from .scripts import WITHOUT_SPACES, is_without_spaces
from .sentences import linked_sentences, split_sentences
from .tree import Tree, section_tree

__all__ = ["SECTION", "TABLES", "table_rows"]

Row = dict[str, Any]


SECTION = pa.struct(list(schema_of("level int8, title string, text string, boilerplate bool")))
"""The type of a section in the table ``pages``."""
TABLES: dict[str, pa.Schema] = {
    "pages": schema_of(
        "id int64, key string, title string, lead string, words int32, sections section[], "
        "see_also string[], domain string, language string, kind string, title_anchors string[], "
        "lead_words int32, lead_bands int64[]",
        section=SECTION,
    ),
    "sentences": schema_of("id int64, page int64, text string"),
    "links": schema_of(
        "id int64, sentence int64, start int32, end int32, anchor string, normalized string, "
        "text_id int64, target string, region string"
    ),
    "sections": schema_of(
        "id int64, page int64, place int32, parent int32, depth int32, words int32, "
        "sentences int32, others int32, boilerplate bool"
    ),
    "redirects": schema_of("source string, target string"),
    "index_terms": schema_of("term string, target string"),
}
"""The schemas of the tables by name."""
_Part = tuple[dict[str, list[Row]], Counter[str]]
"""The rows of each table, and how many records and links were dropped, by reason."""
_PART_SIZE = 128 << 20
_ROW_SIZE = 128


def table_rows(reader: Reader, records: Iterable[Any]) -> Iterator[_Part]:
    """Parse records into rows.

    They give one part, or several if the rows are far larger than the compressed records.

    Yields:
        The rows of each table, and how many records and links were dropped, by reason.
    """
    (rows, drops), size = _empty_part(), 0
    for record in records:
        for item in [record] if isinstance(record, Dropped) else reader.parse(record):
            if size >= _PART_SIZE:
                yield rows, drops
                (rows, drops), size = _empty_part(), 0
            if isinstance(item, Dropped):
                drops[item.reason] += 1
            elif isinstance(item, Redirect):
                rows["redirects"].append({"source": item.source, "target": item.target})
                size += _ROW_SIZE
            elif isinstance(item, IndexTerm):
                rows["index_terms"].append({"term": item.term, "target": item.target})
                size += _ROW_SIZE
            elif is_without_spaces([section.body.text for section in item.sections]):
                drops[WITHOUT_SPACES] += 1
            else:
                size += _add_page(item, rows, drops)
    yield rows, drops


def _empty_part() -> _Part:
    return {name: [] for name in TABLES}, Counter()


def _add_page(page: Page, rows: dict[str, list[Row]], drops: Counter[str]) -> int:
    """Add the rows of a page and return their rough size in bytes."""
    page_id = stable_id("page", page.key)
    if page.split:
        set_hatnotes_apart(page)
    drops.update(page.drops)
    marks = boilerplate_sections(page.sections, is_web=page.is_web)
    _add_content(page_id, page, marks, rows)
    language, number, links = page.language if page.split else None, 0, 0
    for section, boilerplate in zip(page.sections, marks, strict=True):
        region = section.region or (REFERENCES if boilerplate else None)
        for sentence in linked_sentences(section.body, language, drops, page.debris):
            sentence_id = stable_id("sentence", page_id, number, sentence.text)
            number += 1
            links += len(sentence.links)
            rows["sentences"].append({"id": sentence_id, "page": page_id, "text": sentence.text})
            rows["links"] += [_link_row(sentence_id, link, region) for link in sentence.links]
    return sum(len(s.body.text) for s in page.sections) + _ROW_SIZE * (links + number)


def _add_content(page_id: int, page: Page, marks: list[bool], rows: dict[str, list[Row]]) -> None:
    """Add the rows of a page itself and of its sections, without left-over markup."""
    clean = partial(page.debris.sub, "") if page.debris else str
    sections = [
        (section.level, section.title, clean(section.body.text), boilerplate)
        for section, boilerplate in zip(page.sections, marks, strict=True)
        if section.region is None
    ]
    tree = section_tree(page.title, sections)
    lead, language = clean(page.lead), page.language if page.split else None
    lead_words = words(lead)
    rows["pages"].append(
        {
            "id": page_id,
            "key": page.key,
            "title": page.title,
            "lead": lead,
            "words": sum(tree.words) if page.whole else None,
            "sections": [dict(zip(SECTION.names, section, strict=True)) for section in sections],
            "see_also": page.see_also,
            "domain": page.domain,
            "language": language,
            "kind": kind_of_page(page.title, page.language, page.kind),
            "title_anchors": title_anchors(page.title),
            "lead_words": len(lead_words),
            "lead_bands": bands(lead_words),
        }
    )
    rows["sections"] += _section_rows(page_id, tree, language)


def _link_row(sentence_id: int, link: Link, region: str | None) -> Row:
    normalized = normalize_anchor(link.anchor)
    return {
        "id": stable_id("anchor", sentence_id, link.start, link.end),
        "sentence": sentence_id,
        **link._asdict(),
        "normalized": normalized,
        "text_id": stable_id("anchor text", normalized),
        "region": region,
    }


def _section_rows(page_id: int, tree: Tree, language: str | None) -> Iterator[Row]:
    """Give the rows of the nodes of a page's tree.

    The column ``others`` is the number of sections that `Tree.others` returns.

    Args:
        page_id: the id of the page.
        tree: its tree.
        language: the language code for the sentence splitter; None where each line is one sentence.
    """
    has_text = [
        node.place > 0 and count > 0 for node, count in zip(tree.nodes, tree.words, strict=True)
    ]
    total, on_path = sum(has_text), list[int]()
    for node in tree.nodes:
        above = 0 if node.parent is None else on_path[node.parent]
        on_path.append(has_text[node.place] + above)
        yield {
            "id": stable_id("section", page_id, node.place),
            "page": page_id,
            "place": node.place,
            "parent": node.parent,
            "depth": node.depth,
            "words": tree.words[node.place],
            "sentences": len(split_sentences(node.text, language)),
            "others": total - on_path[-1],
            "boilerplate": node.boilerplate,
        }

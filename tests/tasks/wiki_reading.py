"""What a build's tables allow to be drawn, in plain Python and from texts, links and keys alone."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import pairwise, permutations
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import sentencex

from harp_plugin.text import WORD

MODEL_WORDS = 1024


class Section(NamedTuple):
    """A section, or a page's lead; ``path`` has the places from the lead's down to its own."""

    title: str
    text: str
    path: tuple[int, ...]
    boilerplate: bool = False

    @property
    def words(self) -> int:
        return 0 if self.boilerplate else len(WORD.findall(self.text))


class Group(NamedTuple):
    """A positive pair, and the documents (of RWI the queries) that may stand beside it."""

    query: str
    document: str
    negatives: frozenset[str]


class WikiReading:
    """Pages by title; the documents are those of the link graph."""

    def __init__(self, directory: Path) -> None:
        self.tables = {
            name: pq.read_table(directory / stage / name).to_pylist()
            for stage, names in {
                "corpus": ("pages", "sentences", "links", "redirects"),
                "graph": ("documents", "anchors"),
            }.items()
            for name in names
        }
        self.rows = {row["title"]: row for row in self.tables["pages"]}
        self.titles = {row["id"]: title for title, row in self.rows.items()}
        self.documents = {self.titles[row["id"]] for row in self.tables["documents"]}
        self.sections = {title: sections_of(row) for title, row in self.rows.items()}

    def lead(self, title: str) -> str:
        return self.rows[title]["lead"]

    def sentences(self, text: str) -> list[str]:
        found = [s.strip() for line in text.split("\n") for s in sentencex.segment("en", line)]
        return [sentence for sentence in found if sentence]

    def passages(self, title: str) -> list[str]:
        return self._passages[title]

    @cached_property
    def _passages(self) -> dict[str, list[str]]:
        return {
            title: [s.text for s in sections[1:] if s.words >= 20]
            for title, sections in self.sections.items()
        }

    def others(self, title: str, places: tuple[int, ...]) -> list[str]:
        """Titles of sections with a text, but for some."""
        numbered = list(enumerate(self.sections[title]))[1:]
        return [s.title for place, s in numbered if s.words and place not in places]

    @cached_property
    def moved(self) -> dict[str, str]:
        return {row["source"]: row["target"] for row in self.tables["redirects"]}

    @cached_property
    def keys(self) -> dict[str, str]:
        return {row["key"]: title for title, row in self.rows.items()}

    def resolved(self, key: str) -> str | None:
        keys = self.keys
        while key in self.moved and key not in keys:
            key = self.moved[key]
        return keys.get(key)

    @cached_property
    def linked(self) -> dict[str, set[str]]:
        """Pages that each page links to, from boilerplate too."""
        return self._targets(self.tables["links"])

    @cached_property
    def anchored(self) -> dict[str, set[str]]:
        """Pages that each page links to in its text, but for pages that the graph leaves out."""
        found = self._targets([row for row in self.tables["links"] if row["region"] is None])
        sources = {self.titles[row["source"]] for row in self.tables["anchors"]}
        return {title: targets if title in sources else set() for title, targets in found.items()}

    def _targets(self, links) -> dict[str, set[str]]:
        page = {row["id"]: self.titles[row["page"]] for row in self.tables["sentences"]}
        resolved = {key: self.resolved(key) for key in {row["target"] for row in links}}
        found = {title: set() for title in self.rows}
        for row in links:
            if resolved[row["target"]] is not None:
                found[page[row["sentence"]]].add(resolved[row["target"]])
        return {title: targets - {title} for title, targets in found.items()}

    @cached_property
    def with_links(self) -> set[str]:
        return set().union(*self.anchored.values())

    def no_link(self, title: str) -> set[str]:
        """Documents that do not link to a page and that it does not link to."""
        linking = {source for source, targets in self.linked.items() if title in targets}
        return self.documents - self.linked[title] - linking - {title}

    @cached_property
    def neighbors(self) -> dict[str, tuple[set[str], set[str]]]:
        """Documents with links both ways, and with a link one way, of each document."""
        found = {}
        for title in self.documents:
            to = self.anchored[title] & self.documents
            back = {source for source in self.documents if title in self.anchored[source]}
            one_way = {page for page in to if title not in self.linked[page]}
            found[title] = to & back, one_way | (back - self.linked[title])
        return found

    def beside(self, title: str) -> set[str]:
        """Documents that a page links to that links to this one, too."""
        lists = [targets for targets in self.anchored.values() if title in targets]
        return (set().union(*lists) & self.documents) - {title}

    @cached_property
    def related(self) -> dict[str, set[str]]:
        """Documents under each document's see-also heading."""
        return {
            title: {self.resolved(key) for key in self.rows[title]["see_also"]}.intersection(
                self.documents - {title}
            )
            for title in self.documents
        }

    def article(self, title: str) -> str:
        """A page's text, by sections up to as many words as a model reads."""
        texts: list[str] = []
        for section in self.sections[title]:
            if section.boilerplate or not section.text:
                continue
            if sum(len(text.split()) for text in texts) < MODEL_WORDS:
                texts.append(section.text)
        return "\n".join(texts)

    # The examples of each task: the page's title, and a section's place where it is one.

    def srr_examples(self) -> set[tuple[str, int]]:
        found = Counter(
            (title, section.path[-2])
            for title in self.documents
            for section in self.sections[title]
            if section.words >= 20 and len(section.path) > 1
        )
        return {parent for parent, children in found.items() if children >= 2}

    def rwi_examples(self) -> set[tuple[str, int]]:
        return {
            (title, place)
            for title in self.documents
            for place, section in list(enumerate(self.sections[title]))[1:]
            if section.words and len(self.others(title, section.path)) >= len(section.path) - 1
        }

    def ati_examples(self) -> set[tuple[str]]:
        return {(t,) for t in self.documents if any(s.words for s in self.sections[t][1:])}

    def ltm_examples(self) -> set[tuple[str]]:
        return {(title,) for title, targets in self.related.items() if targets}

    def ict_examples(self) -> set[tuple[str, int]]:
        return {
            (title, place)
            for title in self.documents
            for place, section in enumerate(self.sections[title])
            if section.words >= 20 and len(self.sentences(section.text)) >= 2
        }

    def crop_examples(self) -> set[tuple[str, int]]:
        return {
            (title, place)
            for title in self.documents
            for place, section in enumerate(self.sections[title])
            if section.words >= 20
        }

    def bfs_examples(self) -> set[tuple[str]]:
        return {(title,) for title in self.documents if self.passages(title)}

    @cached_property
    def with_two_texts(self) -> set[str]:
        return {title for title in self.documents if len(self.long_texts(title)) >= 2}

    def codoc_examples(self) -> set[tuple[str]]:
        return {(title,) for title in self.with_two_texts}

    def wlp_examples(self) -> set[tuple[str]]:
        return {(t,) for source in self.documents for t in self.anchored[source] & self.documents}

    def hlp_examples(self) -> set[tuple[str]]:
        return {(t,) for t in self.documents if self.neighbors[t][0] or self.beside(t)}

    def php_examples(self) -> set[tuple[str]]:
        return {(title,) for title in self.documents if any(self.neighbors[title])}

    def prop_examples(self) -> set[tuple[str]]:
        return {(title,) for title in self.documents}

    # The groups that may be drawn from an example.

    def srr(self, title: str, place: int) -> list[Group]:
        sections = self.sections[title]
        beside = [s for s in sections if s.path[-2:-1] == (place,) and s.words >= 20]
        return [
            Group(
                " ".join([title, *(sections[n].title for n in s.path[1:])]),
                s.text,
                frozenset(other.text for other in beside) - {s.text},
            )
            for s in beside
        ]

    def rwi(self, title: str, place: int) -> list[Group]:
        """The negatives are queries: the title and others in every order."""
        section = self.sections[title][place]
        path = [self.sections[title][n].title for n in section.path[1:]]
        others = self.others(title, section.path)
        orders = {" ".join([title, *order]) for order in permutations(others, len(path))}
        query = " ".join([title, *path])
        return [Group(query, section.text, frozenset(orders - {query}))]

    def ati(self, title: str) -> list[Group]:
        below = {s.text for s in self.sections[title][1:] if s.words}
        return [Group(title, self.lead(title), frozenset(below - {self.lead(title)}))]

    def ltm(self, title: str) -> list[Group]:
        never = {title} | self.linked[title] | self.related[title]
        negatives = frozenset(self.article(t) for t in self.documents - never)
        query = self.article(title)
        return [Group(query, self.article(t), negatives) for t in sorted(self.related[title])]

    def ict(self, title: str, place: int) -> list[Group]:
        pages = self.no_link(title)
        others = frozenset(
            rest for (page, _), rests in self.rests.items() for rest in rests if page in pages
        )
        sentences = self.sentences(self.sections[title][place].text)
        rests = self.rests[title, place]
        return [Group(*pair, others) for pair in zip(sentences, rests, strict=True)]

    @cached_property
    def rests(self) -> dict[tuple[str, int], list[str]]:
        """What is left of each example of ICT without each of its sentences."""
        found = {}
        for title, place in self.ict_examples():
            s = self.sentences(self.sections[title][place].text)
            found[title, place] = [" ".join(s[:n] + s[n + 1 :]) for n in range(len(s))]
        return found

    def crops(self, title: str, place: int, dropped: frozenset[str]) -> set[str]:
        """Two to twelve words of a sentence, as they stand or without some words."""
        found = set()
        for sentence in self.sentences(self.sections[title][place].text):
            words = WORD.findall(sentence.lower())
            for size in range(2, 13):
                for start in range(max(len(words) - size, 0) + 1):
                    crop = words[start : start + size]
                    found |= {" ".join(crop), " ".join(w for w in crop if w not in dropped)}
        return found - {""}

    def bfs(self, title: str) -> list[Group]:
        others = {passage for page in self.no_link(title) for passage in self.passages(page)}
        return self._for_sentences_of_the_lead(title, self.passages(title), others)

    def long_texts(self, title: str) -> list[str]:
        """The lead and the sections that have twenty words."""
        return [s.text for s in self.sections[title] if s.words >= 20]

    def codoc(self, title: str) -> list[Group]:
        pages = self.no_link(title) & self.with_two_texts
        others = frozenset(text for page in pages for text in self.long_texts(page))
        pairs = permutations(set(self.long_texts(title)), 2)
        return [Group(query, document, others) for query, document in pairs]

    def texts(self, pages: set[str]) -> set[str]:
        """Leads and long enough sections."""
        return {text for page in pages for text in [self.lead(page), *self.passages(page)]}

    def wlp(self, title: str) -> list[Group]:
        linking = {source for source in self.documents if title in self.anchored[source]}
        others = self.texts(self.no_link(title))
        return self._for_sentences_of_the_lead(title, self.texts(linking), others)

    def hlp(self, title: str) -> list[Group]:
        beside = self.beside(title)
        others = frozenset(self.texts(self.no_link(title) & self.with_links - beside))
        related = self.texts(self.neighbors[title][0] | beside)
        return [Group(q, d, others) for q in self.texts({title}) for d in related]

    def php(self, title: str) -> list[Group]:
        """A positive of each grade, with the texts of the next lower grade."""
        grades = [pages for pages in self.neighbors[title] if pages] + [self.no_link(title)]
        texts = [frozenset(self.texts(pages)) for pages in grades]
        return [
            Group(query, document, worse)
            for query in self.texts({title})
            for better, worse in pairwise(texts)
            for document in better
        ]

    def _for_sentences_of_the_lead(self, title, positives, others) -> list[Group]:
        negatives = frozenset(others)
        return [
            Group(query, positive, negatives)
            for query in self.sentences(self.lead(title))
            for positive in positives
        ]


def sections_of(row) -> list[Section]:
    """A page's sections, the lead first; a section stands in the nearest above of a lower level."""
    found = [Section(row["title"], row["lead"], (0,))]
    levels = [0]
    for section in row["sections"]:
        if section["level"] == 1 and not section["title"]:
            continue
        above = [n for n, level in enumerate(levels) if level < section["level"]]
        path = (*found[above[-1]].path, len(found))
        found.append(Section(section["title"], section["text"], path, section["boilerplate"]))
        levels.append(section["level"])
    return found

"""Reads what an inspection page shows, as a person would."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Shown:
    """One sample: what stands in it, by kind, in reading order."""

    task: str
    index: int
    origins: list[str] = field(default_factory=list)
    underlined: list[list[str]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    queries: list[list[str]] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


class PageReader(HTMLParser):
    """Collects the samples of a page, and the names of all its tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.samples: list[Shown] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._open: list[tuple[str, set[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        values = dict(attrs)
        classes = set((values.get("class") or "").split())
        if tag == "article":
            self.samples.append(Shown(values["data-task"], int(values["data-index"])))
        elif self.samples and "shown" in classes:
            inside = self._inside("member")
            (self.samples[-1].documents if inside else self.samples[-1].origins).append("")
            self.samples[-1].underlined.append([])
        elif self.samples and "query" in classes:
            self.samples[-1].queries.append([])
        if tag not in ("meta", "br"):
            self._open.append((tag, classes))

    def handle_endtag(self, tag):
        while self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not self._inside("article"):
            return
        sample, (tag, classes) = self.samples[-1], self._open[-1]
        if self._inside("shown") and tag == "small":
            sample.targets.append(data)
        elif self._inside("shown"):
            texts = sample.documents if self._inside("member") else sample.origins
            texts[-1] += data
            if "mark" in classes:
                sample.underlined[-1].append(data.lower())
        elif "mark" in classes:
            sample.underlined[-1].append(data.lower())
        elif "sign" in classes:
            sample.signs.append(data)
        elif self._inside("query") and data.strip():
            sample.queries[-1].append(data)
        elif "title" in classes and data.strip():
            sample.titles.append(data.strip())

    def _inside(self, name: str) -> bool:
        return any(name == tag or name in classes for tag, classes in self._open)

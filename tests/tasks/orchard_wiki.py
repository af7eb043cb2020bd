"""A small wiki whose sections, links and words are chosen so that every draw can be worked out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
from dumps import write_dump

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.graph import GraphOptions
from harp_plugin.sampling import generator
from harp_plugin.tasks import TASKS as TASKS_BY_NAME
from harp_plugin.tasks import DrawOptions, PairGroup
from harp_plugin.tasks.source import BuildSource

TASKS = ["prop", "srr", "rwi", "ati", "ltm", "ict", "bfs", "wlp", "codoc"]
TASKS += ["hlp", "php", "crop"]


def sentence(name: str, number: int) -> str:
    """Ten words."""
    return f"{name} number {number} has a few plain words to it."


def prose(name: str, sentences: int = 2) -> str:
    return " ".join(sentence(name, number) for number in range(1, sentences + 1))


def one_word_short(name: str) -> str:
    """Nineteen words."""
    return prose(name).removesuffix(" it.") + "."


LEADS = {
    "Alpha": "Apple apple apple and a pear. The plum is a fruit. A fig falls, an apple too.",
    "Beta": "Pear and pear, plum or fig. No apple.",
    "Gamma": "Grape wine of a grape. Is it sweet?",
    "Delta": "The pear.",
    "Epsilon": "A fig and a plum.",
    "Zeta": prose("Zeta", 3),
    "Theta": " ".join(["apple"] * 52 + ["pear"] * 46 + ["plum"] * 45 + ["fig"] * 46),
    "Iota": " ".join(["Quince"] * 10 + ["grape"] * 7),
    "Kappa": "Nothing but the and of.",
    "Twin": "A twin.",
    "Deep": "A well.",
    "Echo": "Echo says so.",
}
"""As shown; `apple` stands 57 times, `pear` 50, `plum` 48, `fig` 49, `quince` 10, `grape` 9."""

LONG = ["One", "OneA", "OneB", "Two", "Three", "Four", "Five", "Six"]
"""Alpha's sections of twenty words or more."""
TITLED = [*LONG, "OneC", "Under"]
"""Alpha's sections with a text."""
TEXTS = {name: prose(name, 3 if name == "One" else 2) for name in LONG}
TEXTS |= {"OneC": one_word_short("OneC"), "Under": "Five words stand under here."}

BODIES = {
    "Alpha": f"""
== One ==
{TEXTS["One"]}
=== OneA ===
{TEXTS["OneA"]}
=== OneB ===
{TEXTS["OneB"]}
=== OneC ===
{TEXTS["OneC"]}
== Two ==
{TEXTS["Two"].replace("words", "[[Beta|words]]", 1)}
== Three ==
{TEXTS["Three"].replace("words", "[[Gamma|words]]").replace("plain", "[[Old Delta|plain]]", 1)}
== Four ==
{TEXTS["Four"].replace("few", "[[Headless|few]]", 1)}
== Five ==
{TEXTS["Five"]}
== Six ==
{TEXTS["Six"]}
== Void ==
=== Under ===
{TEXTS["Under"]}
== See also ==
* [[Beta]]
* [[Old Delta]]
* [[Zeta]]
* [[Headless]]
* [[Alpha]]
* [[Lost]]
""",
    "Beta": f"\n== BetaOne ==\n{prose('BetaOne')}\n== BetaTwo ==\n{prose('[[Alpha]]')}",
    "Gamma": f"\n== GammaOne ==\n{prose('GammaOne')}",
    "Epsilon": f"""
== EpsilonOne ==
{prose("EpsilonOne").replace("few", "[[Beta|few]]", 1).replace("plain", "[[Kappa|plain]]", 1)}
== EpsilonTwo ==
Short.
""",
    "Twin": f"\n== Left ==\n{prose('Same')}\n== Right ==\n{prose('Same')}",
    "Deep": "\n== First ==\nWater.\n=== Second ===\nStones.\n==== Third ====\nMud.",
    "Echo": "\n== Again ==\nEcho says so.",
}
PAGES = {title: lead + BODIES.get(title, "") for title, lead in LEADS.items()}
PAGES["Headless"] = f"== Head ==\n{prose('Head')}\n== Tail ==\n{prose('[[Alpha|Tail]]')}"
REDIRECTS = {"Old Delta": "Delta"}


@dataclass
class Orchard:
    """The finished build."""

    directory: Path

    @cached_property
    def source(self) -> BuildSource:
        return BuildSource(self.directory, TASKS)

    @cached_property
    def pages(self) -> dict[str, int]:
        """Ids by title."""
        rows = pq.read_table(self.directory / "corpus" / "pages", columns=["id", "title"])
        return {row["title"]: row["id"] for row in rows.to_pylist()}

    def examples(self, task: str) -> dict[tuple[str, ...], int]:
        """Ids by title and, where an example is a section, its heading."""
        titles = {id: title for title, id in self.pages.items()}
        rows = pq.read_table(self.directory / "examples" / task).to_pylist()
        found = {}
        for row in rows:
            if "place" in row:
                node = self.source.tree(row["page"]).nodes[row["place"]]
                name = (titles[row["page"]], *([node.title] if node.place else []))
            else:
                name = (titles[row["id"]],)
            assert name not in found
            found[name] = row["id"]
        return found


def write_orchard(folder: Path) -> Orchard:
    source = write_dump(folder / "orchard.xml", PAGES, REDIRECTS)
    options = BuildOptions(output_dir=str(folder / "build"), tasks=TASKS, workers=1, quiet=True)
    build([source], options, GraphOptions(min_words=0))
    return Orchard(folder / "build")


def draws(
    source: BuildSource, task: str, example: int, count: int, **options
) -> list[PairGroup | None]:
    """Groups drawn from one example, each with a generator of its own; None where it gives none."""
    chosen, drawer = DrawOptions(**options), TASKS_BY_NAME[task]()
    return [
        drawer.draw(example, generator("test", task, number), source, chosen)
        for number in range(count)
    ]

"""No task draws a text or a link from sections of references, or from hatnotes."""

import pytest
from dumps import write_dump
from orchard_wiki import draws, prose

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.graph import GraphOptions
from harp_plugin.tasks.source import BuildSource

TASKS = ["srr", "rwi", "ati", "ltm", "ict", "bfs", "wlp", "codoc", "hlp", "php", "anchor"]
FOURS = [["Ant", "Bee", "Cat", "Dog"], ["Elk", "Fox", "Gnu", "Hen"]]
"""Pages of the same four link to each other, if only from boilerplate."""


def article(name, names):
    others = [other for other in names if other != name]
    links = " ".join(f"Forbidden [[{other}]] words." for other in others)
    return f"""\
:''Forbidden hatnote, see [[{others[0]}]].''
{prose(f"{name} lead")} It knows the [[{others[1]}]].
== One ==
{prose(f"{name} one")}
=== Further reading ===
{prose("Forbidden")} {links}
==== Deep ====
{prose("Forbidden")}
=== Inner ===
{prose(f"{name} inner")}
=== Outer ===
{prose(f"{name} outer")}
== See also ==
* [[{others[2]}]]
== Two ==
{prose(f"{name} two")}
== References ==
{prose("Forbidden")} {links}
=== Books ===
{prose("Forbidden")}
"""


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("animals")
    pages = {name: article(name, names) for names in FOURS for name in names}
    source = write_dump(folder / "animals.xml", pages)
    options = BuildOptions(output_dir=str(folder / "build"), tasks=TASKS, workers=1, quiet=True)
    build([source], options, GraphOptions(min_words=0))
    return BuildSource(folder / "build", TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_nothing_is_drawn_from_boilerplate(animals, task):
    groups = [
        group
        for example in animals.examples[task].ids.tolist()
        for group in draws(animals, task, example, 20)
        if group is not None
    ]
    texts = {
        text for group in groups for pair in group.members for text in (pair.query, pair.document)
    }
    assert len(texts) >= 4
    for word in ("Forbidden", "Further reading", "Deep", "References", "Books"):
        assert [text for text in texts if word in text] == []


def test_places_stay(animals):
    """The places in the tables are those of the trees, the marked sections among them."""
    for row in animals.examples["rwi"].ids.tolist():
        table = animals.examples["rwi"]
        tree = animals.tree(table.get(row, "page"))
        node = tree.nodes[table.get(row, "place")]
        assert node.title in {"One", "Inner", "Outer", "Two"}
    assert [(node.title, node.boilerplate) for node in tree.nodes[1:]] == [
        ("One", False),
        ("Further reading", True),
        ("Deep", True),
        ("Inner", False),
        ("Outer", False),
        ("Two", False),
        ("References", True),
        ("Books", True),
    ]

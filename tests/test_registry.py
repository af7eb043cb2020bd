"""Registries, and entry points of a distribution that is really installed (on a path)."""

import sys

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.registry import Registry


@pytest.fixture
def fruits():
    registry = Registry("harp_plugin.tests.fruits", "fruit")
    registry.register("apple")("an apple")
    registry.register("pear")("a pear")
    return registry


def test_decorator(fruits):
    @fruits.register("quince")
    def quince():
        return "a quince"

    assert fruits["quince"] is quince and quince() == "a quince"
    assert list(fruits) == ["apple", "pear", "quince"] and len(fruits) == 3
    assert "pear" in fruits and "plum" not in fruits


def test_a_name_is_given_once(fruits):
    assert fruits.register("apple")(fruits["apple"]) == "an apple"
    with pytest.raises(HarpError, match="fruit 'apple' is registered twice"):
        fruits.register("apple")("another")
    assert fruits["apple"] == "an apple"


def test_items_given_at_the_start():
    registry = Registry("harp_plugin.tests.fruits", "fruit", {"apple": "an apple"})
    registry.register("pear")("a pear")
    assert dict(registry) == {"apple": "an apple", "pear": "a pear"}


def test_an_item_is_removed_and_its_name_is_free_again(fruits):
    fruits.unregister("apple")
    assert list(fruits) == ["pear"] and "apple" not in fruits
    with pytest.raises(HarpError, match=r"^unknown fruit 'apple': known are pear$"):
        fruits["apple"]
    with pytest.raises(HarpError, match=r"^unknown fruit 'apple': known are pear$"):
        fruits.unregister("apple")
    fruits.register("apple")("another apple")
    assert fruits["apple"] == "another apple"


def test_unknown_name(fruits):
    with pytest.raises(HarpError, match=r"^unknown fruit 'aple': did you mean 'apple'\?.*pear$"):
        fruits["aple"]
    with pytest.raises(HarpError, match=r"^unknown fruit 'zzz': known are apple, pear$"):
        fruits["zzz"]


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """A distribution with two entry points; one must never be loaded."""
    (tmp_path / "orchard.py").write_text("class Plum:\n    sweet = True\n")
    info = tmp_path / "orchard-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[harp_plugin.tests.fruits]\nplum = orchard:Plum\nbroken = no_such_module:X\n"
        "apple = no_such_module:Y\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("orchard", None)


def test_entry_points(fruits, other_package):
    assert list(fruits) == ["apple", "pear", "plum", "broken"]
    assert "orchard" not in sys.modules  # listed, not loaded
    assert fruits["plum"].sweet and fruits["plum"] is sys.modules["orchard"].Plum
    assert fruits["apple"] == "an apple"  # our own wins
    with pytest.raises(HarpError, match=r"did you mean 'plum'\?"):
        fruits["plumm"]


def test_entry_points_that_cannot_be_loaded(fruits, other_package):
    (other_package / "rotten.py").write_text("raise ValueError('worms')\n")
    points = other_package / "orchard-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text() + "rotten = rotten:X\nnothing = orchard:Nothing\n")
    for name, said in {
        "broken": "no_such_module",
        "rotten": "ValueError: worms",
        "nothing": "Nothing",
    }.items():
        with pytest.raises(HarpError, match=f"^fruit '{name}' of orchard .*{said}"):
            fruits[name]
    assert "rotten" in list(fruits) and fruits["plum"].sweet
    with pytest.raises(HarpError, match=r"known are .*rotten"):
        fruits["zzz"]


def test_a_broken_reader_stops_only_those_who_ask_for_it(tmp_path, monkeypatch):
    from dumps import write_dump

    from harp_plugin.corpus.readers import choose_reader, sources

    info = tmp_path / "orchard-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[harp_plugin.readers]\ncrate = no_such_module:X\n")
    monkeypatch.syspath_prepend(tmp_path)
    (dump,) = sources(write_dump(tmp_path / "d.xml", {"A": "[[B]]"}))
    assert choose_reader(dump) == "mediawiki"
    with pytest.raises(HarpError, match=r"^reader 'crate' of orchard"):
        choose_reader(dump, "crate")
    (tmp_path / "words.txt").write_text("hello")
    (words,) = sources(tmp_path / "words.txt")
    with pytest.raises(HarpError, match=r"in no known format: .*reader 'crate' of orchard"):
        choose_reader(words)


def test_the_four_tasks_and_two_readers_are_there():
    from harp_plugin.corpus.readers import READERS
    from harp_plugin.tasks import TASKS

    assert {"rqp", "qdm", "rdp", "acm"} <= set(TASKS)
    assert {"mediawiki", "harp-anchors"} <= set(READERS)
    with pytest.raises(HarpError, match="unknown task 'rdq': did you mean"):
        TASKS["rdq"]

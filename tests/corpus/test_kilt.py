"""KILT's articles: one worked by hand, as a file and through ir_datasets' own machinery."""

import json
from collections import Counter

import pytest
from reading import read, read_bytes

from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.errors import HarpError

TEXT = [
    "Apple\n",
    "An apple is the fruit of an apple  tree (\u200e) or Malus.\n",
    "Section::::History.\n",
    "Section::::History.:Where: the start?:Asia.\n",
    "From Kazakhstan, appleseeds went west: pearplum.\n",
    "Section::::See also.\n",
    "BULLET::::- Pear\n",
    "BULLET::::2. Johnny Appleseed, a nurseryman\n",
]


def anchor(paragraph, text, href, start=None):
    if start is None:
        start = TEXT[paragraph].index(text)
    end = start + len(text)
    return {"paragraph_id": paragraph, "text": text, "href": href, "start": start, "end": end}


ANCHORS = [
    anchor(1, "fruit", "Fruit"),
    anchor(1, "Malus", "malus%23Species"),
    anchor(1, "apple  tree", "AT%26amp%3BT"),
    anchor(4, "Kazakhstan", "H%C3%A9bert"),
    anchor(4, "apple", "apple", 17),  # its trail is "seeds"
    anchor(4, "pear", "Pear", 39),
    anchor(4, "plum", "Plum"),  # no trail of pear
    anchor(6, "Pear", "Pear"),
    anchor(7, "Johnny Appleseed", "Johnny%20Appleseed"),
]


def article(anchors=ANCHORS, title="Apple", **others):
    fields = {
        "_id": "18978754",
        "wikipedia_id": "18978754",
        "wikipedia_title": title,
        "text": TEXT,
        "anchors": anchors,
        "categories": "Apples,Fruits",
        "history": {"revid": 1, "timestamp": "2019", "parentid": 2, "pageid": 3, "url": "u"},
        "wikidata_info": {"wikidata_id": "Q89"},
    }
    return json.dumps(fields | others).encode() + b"\n"


def drops_of(*anchors):
    (page,) = read_bytes(article(list(anchors)), "kilt.json")
    return page, +page.drops


def test_article():
    (page,) = read_bytes(article(), "kilt_knowledgesource.json")
    assert (page.key, page.title, page.see_also) == ("Apple", "Apple", ["Pear", "Johnny Appleseed"])
    assert [(s.level, s.title, s.body.text) for s in page.sections] == [
        (1, "", "An apple is the fruit of an apple tree or Malus."),
        (2, "History", ""),
        (4, "Asia", "From Kazakhstan, appleseeds went west: pearplum."),
    ]
    lead, _, asia = (
        [(k.start, k.end, k.anchor, k.target) for k in s.body.links] for s in page.sections
    )
    assert lead == [
        (16, 21, "fruit", "Fruit"),
        (28, 38, "apple tree", "AT&T"),
        (42, 47, "Malus", "Malus"),
    ]
    assert asia == [
        (5, 15, "Kazakhstan", "Hébert"),
        (17, 27, "appleseeds", "Apple"),
        (39, 43, "pear", "Pear"),
        (43, 47, "plum", "Plum"),
    ]
    assert not +page.drops


def test_an_anchor_near_its_place_is_put_there():
    page, drops = drops_of(anchor(1, "fruit", "Fruit", 20))
    assert page.sections[0].body.links[0].start == 16 and not drops


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (anchor(1, "apple", "Apple", 0), "anchor text not at its place"),  # one of two
        (anchor(1, "kiwi", "Kiwi", 3), "anchor text not at its place"),
        (anchor(1, " ", "Kiwi", 2), "anchor text not at its place"),
        (anchor(1, "fruit", "Fruit", -40), "anchor text not at its place"),
        (anchor(1, "fruit", "Fruit", 10**30), "anchor text not at its place"),
        (anchor(1, "fruit", "Fruit", 16) | {"paragraph_id": 99}, "anchor text not at its place"),
        (anchor(1, "\u200e", "Fruit"), "empty anchor text"),
        (anchor(1, "fruit", "%23History"), "link inside the page"),
        (anchor(1, "fruit", "http%3A//x.org"), "link to another site"),
        (anchor(2, "History", "History"), "link in a heading"),
        (anchor(0, "Apple", "Apple"), "link in a heading"),
    ],
)
def test_an_anchor_that_cannot_be_used_is_counted(bad, reason):
    page, drops = drops_of(bad)
    assert drops == {reason: 1}
    assert not any(section.body.links for section in page.sections)


def test_page_without_title():
    assert read_bytes(article(title=" "), "kilt.json") == [Dropped("page without title")]


def test_overlapping_anchors():
    page, drops = drops_of(anchor(1, "an apple  tree", "Tree"), anchor(1, "tree", "Tree"))
    assert [link.anchor for link in page.sections[0].body.links] == ["an apple tree"]
    assert drops == {"link inside a link": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"wikipedia_title": None},
        {"text": "An apple"},
        {"text": [1]},
        {"anchors": [["fruit"]]},
        {"anchors": [{"text": "fruit"}]},
        {"anchors": [anchor(1, "fruit", "Fruit") | {"start": "16"}]},
    ],
)
def test_a_bad_line_is_named(change):
    with pytest.raises(HarpError, match=r"^kilt\.json, line 2: no article of KILT"):
        read_bytes(article() + article(**change), "kilt.json")


@pytest.fixture
def registered(tmp_path):
    """A collection of ir_datasets over a file, by its own class for KILT."""
    import ir_datasets
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.datasets.kilt import KiltDocs
    from ir_datasets.util import LocalDownload

    path = tmp_path / "kilt_knowledgesource.json"
    path.write_bytes(article() + article([], "Pear", wikidata_info={}))
    name = "kilt-of-the-tests"
    ir_datasets.registry.register(name, Dataset(KiltDocs(LocalDownload(path))))
    yield path, f"irds:{name}"
    del ir_datasets.registry._registered[name]


def test_through_ir_datasets(registered):
    path, name = registered
    pages = list(read(name))
    assert pages == list(read(path))
    assert Counter(type(page) for page in pages) == {Page: 2}

"""Small inputs of the shape that people report: each stands for a kind of what went wrong."""

from pathlib import Path

import pytest
from reading import read

from harp_plugin.corpus.pages import Dropped, IndexTerm, Page, Redirect


@pytest.fixture(scope="session")
def faults(shared_data) -> Path:
    folder = shared_data / "faults"
    if not folder.is_dir():
        pytest.skip(f"no faults at {folder}")
    return folder


class Corpus:
    """The pages of a folder, their texts, and their links as the link graph resolves them."""

    def __init__(self, folder: Path) -> None:
        self.items = list(read(folder))
        self.pages = {item.key: item for item in self.items if isinstance(item, Page)}
        self.redirects = {i.source: i.target for i in self.items if isinstance(i, Redirect)}
        self.dropped = [item.reason for item in self.items if isinstance(item, Dropped)]

    def text(self, key: str) -> str:
        return "\n".join(
            line for s in self.pages[key].content for line in (s.title, s.body.text) if line
        )

    def lines(self, key: str) -> list[str]:
        return self.text(key).split("\n")

    def links(self, key: str) -> list[tuple[str, str | None]]:
        links = [link for section in self.pages[key].sections for link in section.body.links]
        targets = (self.redirects.get(link.target, link.target) for link in links)
        return [
            (link.anchor, target if target in self.pages else None)
            for link, target in zip(links, targets, strict=True)
        ]

    def drops(self, key: str) -> str:
        return " ".join(+self.pages[key].drops)


def test_address_case(faults):
    corpus = Corpus(faults / "address-case")
    assert corpus.links("guide/_index.md") == [("page resources", "methods/Resources.md")]


def test_hugo_ref(faults):
    corpus = Corpus(faults / "hugo-ref")
    assert corpus.links("docs/A.md") == [
        ("its neighbour", "docs/B.md"),
        ("the deep one", "docs/Deep.md"),
    ]
    assert corpus.links("docs/B.md") == [("the first", "docs/A.md"), ("a", "docs/A.md")]


def test_docusaurus_root(faults):
    corpus = Corpus(faults / "docusaurus-root")
    assert corpus.links("docs/api/api.md") == [
        ("queries", "docs/queries/about.md"),
        ("the guide", "docs/guide.mdx"),
    ]
    assert corpus.links("docs/start.md") == [("the introduction", "docs/intro.md")]


def test_docusaurus_address(faults):
    corpus = Corpus(faults / "docusaurus-address")
    folder = "docs/01-setup"
    assert corpus.links(f"{folder}/03-first-steps.md") == [
        ("the installation", f"{folder}/02-install.md"),
        ("configure it", f"{folder}/04-config.md"),
    ]
    assert corpus.links(f"{folder}/04-config.md") == [
        ("first steps", f"{folder}/03-first-steps.md")
    ]


def test_liquid(faults):
    corpus = Corpus(faults / "liquid")
    assert corpus.links("index.md") == [
        ("how it is installed", "install.md"),
        ("how it is set up", "setup.md"),
        ("a prefix", "install.md"),
        ("its short form", "install.md"),
        ("a tag", "install.md"),
    ]
    assert "(#12)" in corpus.text("index.md") and "{{" not in corpus.text("index.md")
    assert "template" in corpus.drops("index.md")


def test_hugo_code(faults):
    corpus = Corpus(faults / "hugo-code")
    assert corpus.links("a.md") == []
    assert corpus.lines("a.md") == [
        "A menu is a list of entries in the configuration of the site.",
        "The weight orders the entries, and the lowest one comes first.",
        "That is all about menus.",
    ]


def test_mdx(faults):
    corpus = Corpus(faults / "mdx")
    assert corpus.lines("a.mdx") == [
        "A colour has a name. These are some of them:",
        "aliceblue",
        "antiquewhite",
        "On Linux, names are case sensitive.",
        "On Windows they are not.",
        "There are systems. Read the second page too.",
    ]
    assert corpus.links("a.mdx") == [("case sensitive", "b.mdx"), ("the second page", "b.mdx")]
    assert "Swatch" in corpus.drops("a.mdx") and "expression" in corpus.drops("a.mdx")


def test_mkdocs_include(faults):
    corpus = Corpus(faults / "mkdocs-include")
    text = corpus.text("index.md")
    assert text.count("Never run this command") == 2 and text.count("First part") == 1
    assert text.count("Second part of the snippet.") == 3
    assert not any(mark in text for mark in ("8<", "{*", "{!", "tutorial", '"'))
    assert set(corpus.links("index.md")) == {("the other page", "page.md")}
    assert any("include" in reason for reason in corpus.dropped)


def test_obsidian(faults):
    corpus = Corpus(faults / "obsidian")
    (cafe,) = (key for key in corpus.pages if key.startswith("Caf"))
    second = "folder/Second.md"
    assert sorted(corpus.links("Home.md")) == sorted(
        [
            ("Café notes", cafe),
            ("the same", cafe),
            *((anchor, second) for anchor in ("the second", "./folder/Second", "part", "a block")),
            ("in a table", second),
            ("Second", second),
        ]
    )
    text = corpus.text("Home.md")
    assert "private" not in text and "several lines" not in text and "%%" not in text
    assert corpus.links(second) == [("Home", "Home.md"), ("2nd", second)]
    assert "^ab12" not in corpus.text(second)


def test_second_level_title(faults):
    corpus = Corpus(faults / "second-level-title")
    slices, references = (corpus.pages[f"ch04-{name}.md"] for name in ("03-slices", "02"))
    assert slices.title == "The Slice Type" and references.title == "References"
    assert [section.title for section in slices.content] == ["", "String Slices", "Summary"]
    assert "Rules" in corpus.text("ch04-02.md")
    assert "one rule" in references.lead


def test_genindex(faults):
    corpus = Corpus(faults / "genindex")
    terms = [item for item in corpus.items if isinstance(item, IndexTerm)]
    assert len(terms) == 5200 and "X_<LANG>_7" in {item.term for item in terms}


def test_wikitext(faults):
    corpus = Corpus(faults / "wikitext/dump.xml")
    convert, quote = corpus.text("Convert"), corpus.text("Quote")
    assert "The canal is 1,300 miles long and 2 to 3 m deep; at 40 °C it dries up." in convert
    assert "I met Nihongo on the road to Convert, and he was singing." in quote
    assert "A second text by Ill." in quote
    nihongo, ill = corpus.text("Nihongo"), corpus.text("Ill")
    assert (
        "The Women's League (女子リーグ, Joshi Rīgu), known as the Second League (リーグ),"
        in nihongo
    )
    assert "vieux and alt" in nihongo and "c. 1990" in nihongo
    assert (
        "The builder was Karl Muster, a friend of Eva Beispiel, born in the city of quotes" in ill
    )
    assert ("the city of quotes", "Quote") in corpus.links("Ill") and "H2O and H2O and x2" in ill
    assert corpus.links("Subpages")[:2] == [
        ("/First chapter", "Subpages/First chapter"),
        ("the second", "Subpages/Second chapter"),
    ]
    assert [target for _, target in corpus.links("Subpages/First chapter")] == [
        "Subpages/Second chapter",
        "Subpages",
    ]


def test_myst(faults):
    corpus = Corpus(faults / "myst")
    assert corpus.lines("index.md") == [
        "Back up your files before the upgrade, as the guide says.",
        "Never skip a version.",
        "See Guide or the guide, the introduction and bundle.",
        "Introduction",
    ]
    assert corpus.links("index.md") == [
        ("the guide", "guide.md"),
        ("Guide", "guide.md"),
        ("the guide", "guide.md"),
    ]


def test_admonition(faults):
    text = Corpus(faults / "admonition").text("a.md")
    for words in (
        *("Never call a hook twice", "Compatibility with version two", "Read this before an up"),
        *("How it was before", "A title of Obsidian", "More about hooks", "Python"),
    ):
        assert words in text
    assert ":::" not in text and "[" not in text

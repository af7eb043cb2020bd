"""Pages as trees, against a second, naive parse of the same wikitext."""

import difflib
import re
from collections import Counter

import mwparserfromhell
import pyarrow.parquet as pq
import pytest
from dumps import write_dump
from wikitexts import INTERLANGUAGE, wikitexts

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.tree import section_tree
from harp_plugin.tasks.source import BuildSource

HEADING = re.compile(r"^(=+)\s*(.*?)\s*\1\s*$")
LETTERS = re.compile(r"[^\W\d_]+")
SEE_ALSO = {"see also", "related pages", "other pages"}


def naive_tree(title, wikitext):
    """Parent, heading and lines of each section, by lines and a stack; the page itself first."""
    nodes = [(None, title, [])]
    open_sections = [(0, 0)]
    for line in wikitext.split("\n"):
        heading = HEADING.match(line)
        if heading is None:
            nodes[-1][2].append(line)
            continue
        level = len(heading[1])
        while len(open_sections) > 1 and open_sections[-1][0] >= level:
            open_sections.pop()
        nodes.append((open_sections[-1][1], heading[2], []))
        open_sections.append((level, len(nodes) - 1))
    return nodes


def path(nodes, place):
    parent, title, _ = nodes[place]
    return [title] if parent is None else [*path(nodes, parent), title]


def shown(wikitext):
    return " ".join(mwparserfromhell.parse(wikitext).strip_code().split())


def expected_tree(title, wikitext):
    """The naive tree without its see-also sections, which the reader keeps as links only."""
    nodes = [(p, shown(t) if p is not None else t, x) for p, t, x in naive_tree(title, wikitext)]
    left_out = {n for n, (_, heading, _) in enumerate(nodes) if heading.lower() in SEE_ALSO}
    assert not any(parent in left_out for parent, *_ in nodes)
    kept = [number for number in range(len(nodes)) if number not in left_out]
    place = {number: new for new, number in enumerate(kept)}
    return [(place.get(nodes[n][0]), *nodes[n][1:]) for n in kept], len(left_out)


def built(source, folder):
    """The build's trees by title, and the rows of its table of pages."""
    build_corpus(folder, CorpusOptions(), sources=[source], quiet=True)
    rows = pq.read_table(folder / "corpus" / "pages").to_pylist()
    reader = BuildSource(folder, [])
    return {row["title"]: (reader.tree(row["id"]), row) for row in rows}


@pytest.mark.parametrize(
    ("file", "pages", "nodes", "left_out"),
    [
        ("simplewiki-core150.xml.bz2", 150, 666, 39),
        pytest.param("simplewiki-20100814-999.xml.bz2", 999, 5111, 244, marks=pytest.mark.slow),
    ],
)
def test_every_article_of_a_wiki(shared_data, tmp_path, file, pages, nodes, left_out):
    """Paths, children and headings of all sections are equal, and all but 0.1 % of the words.

    Hatnotes are stored apart, by their sentences with links. The words that differ are of three
    kinds, where `strip_code` shows what no reader of the page sees: bare addresses, the target of a
    link in three brackets, and the name of a tag.
    """
    source = shared_data / "wiki" / file
    trees = built(source, tmp_path)
    hatnotes = words_of_hatnotes(tmp_path)
    seen, differences = Counter(), []
    for title, wikitext in wikitexts(source):
        (tree, row), wikitext = trees.pop(title), INTERLANGUAGE.sub("", wikitext)
        expected, see_also = expected_tree(title, wikitext)
        seen.update(pages=1, nodes=len(tree.nodes), see_also=see_also)
        assert [node.parent for node in tree.nodes] == [parent for parent, *_ in expected]
        assert [node.title for node in tree.nodes] == [heading for _, heading, _ in expected]
        sections = [(s["title"], s["text"]) for s in row["sections"]]
        assert sections[0] == ("", row["lead"])
        assert [(n.title, n.text) for n in tree.nodes] == [(title, row["lead"]), *sections[1:]]
        for node in tree.nodes:
            assert tree.path(node.place) == path(expected, node.place)
            children = [child.place for child in tree.children(node.place)]
            assert children == [n for n, (up, *_) in enumerate(expected) if up == node.place]
            assert node.depth == len(path(expected, node.place)) - 1
            words = LETTERS.findall(shown("\n".join(expected[node.place][2])))
            seen["words"] += len(words)
            for expected_words, found in differing(words, LETTERS.findall(node.text)):
                runs = (expected_words[start : start + 3] for start in range(len(expected_words)))
                if found or not any(" ".join(run) in hatnotes for run in runs if len(run) == 3):
                    differences.append((expected_words, found))
    assert not trees
    assert (seen["pages"], seen["nodes"], seen["see_also"]) == (pages, nodes, left_out)
    kinds = Counter(map(kind_of_difference, differences))
    assert kinds["one title in another language behind a word"] <= 2
    assert kinds["hatnote without a link"] <= 20
    left_apart = {"hatnote without a link", "one title in another language behind a word"}
    assert set(kinds) - left_apart <= {"address", "link in three brackets", "tag"}, kinds
    rest = [each for each in differences if kind_of_difference(each) not in left_apart]
    assert sum(max(map(len, each)) for each in rest) < 0.001 * seen["words"]


def words_of_hatnotes(folder):
    """The words of all sentences in hatnotes, page by page."""
    links = pq.read_table(folder / "corpus" / "links").to_pylist()
    inside = {link["sentence"] for link in links if link["region"] == "hatnote"}
    sentences = pq.read_table(folder / "corpus" / "sentences").to_pylist()
    texts = " ".join(row["text"] for row in sentences if row["id"] in inside)
    return " ".join(LETTERS.findall(texts))


def differing(expected, found):
    if expected == found:
        return []
    matcher = difflib.SequenceMatcher(None, expected, found, autojunk=False)
    return [
        (expected[a:b], found[c:d]) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"
    ]


def kind_of_difference(difference):
    expected, found = difference
    if "http" in expected:
        return "address"
    if {"Wikipedia", "Citing", "sources"} <= set(expected):
        return "link in three brackets"
    if found[:1] in (["Expressmwl"], ["differenceace"]):
        return "one title in another language behind a word"
    if not found and {"see", "See", "article"} & set(expected):
        return "hatnote without a link"
    return "tag" if expected in (["ref"], ["proof", "The"]) else (*expected, "/", *found)


def test_levels_by_hand():
    """A section stands in the nearest one before it whose level is lower."""
    sections = [
        (1, "", "Lead."),
        (3, "A", "Deep first."),
        (2, "B", "Two."),
        (4, "C", "A level left out."),
        (3, "D", ""),
        (4, "E", "Below D."),
        (2, "B", "The same heading."),
        (1, "F", "As high as a page."),
        (2, "G", "Below F."),
    ]
    tree = section_tree("Page", [(*section, False) for section in sections])
    assert [node.parent for node in tree.nodes] == [None, 0, 0, 2, 2, 4, 0, 0, 7]
    assert [node.depth for node in tree.nodes] == [0, 1, 1, 2, 2, 3, 1, 1, 2]
    assert tree.nodes[0].text == "Lead." and tree.nodes[0].title == "Page"
    assert tree.path(5) == ["Page", "B", "D", "E"] and tree.path(0) == ["Page"]
    assert [node.title for node in tree.children(0)] == ["A", "B", "B", "F"]
    assert tree.children(5) == []
    assert tree.ancestors(5) == [0, 2, 4]
    assert tree.words == [1, 2, 1, 4, 0, 2, 3, 5, 2]
    for least in (1, 2, 3, 6):
        enough = [tree.has_words(node.place, least) for node in tree.nodes]
        assert enough == [count >= least for count in tree.words]
    # Neither the node, nor above it, nor without a text.
    assert [node.title for node in tree.others(5)] == ["A", "C", "B", "F", "G"]
    assert [node.title for node in tree.others(2)] == ["A", "C", "E", "B", "F", "G"]
    assert [node.title for node in tree.others(0)] == ["A", "B", "C", "E", "B", "F", "G"]


@pytest.mark.parametrize("sections", [[], [(2, "A", "One.")], [(1, "Heading", "One.")]])
def test_a_page_without_a_lead(sections):
    tree = section_tree("Page", [(*section, False) for section in sections])
    assert tree.nodes[0].text == "" and len(tree.nodes) == len(sections) + 1
    assert all(node.parent == 0 for node in tree.nodes[1:])


def test_sections_table(tmp_path):
    """Words, sentences and the number of other titled sections, counted by hand."""
    wikitext = (
        "A lead. Of two [[sentence]]s.\n== One ==\nFour words are here.\n=== Two ===\n\n"
        "=== Three ===\nIt's one. And two.\nAnd three, too.\n== Four ==\nEnd."
    )
    source = write_dump(tmp_path / "d.xml", {"Page": wikitext})
    build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    rows = pq.read_table(tmp_path / "corpus" / "sections").to_pylist()
    assert len({row.pop("id") for row in rows}) == 5
    assert len({row.pop("page") for row in rows}) == 1
    columns = ("place", "parent", "depth", "words", "sentences", "others")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, None, 0, 5, 2, 3),
        (1, 0, 1, 4, 1, 2),
        (2, 1, 2, 0, 0, 2),
        (3, 1, 2, 7, 3, 1),
        (4, 0, 1, 1, 1, 2),
    ]


def test_a_see_also_section_with_sections_of_its_own(tmp_path):
    """It is left out; what stands in it must not be taken for a part of the section before."""
    wikitext = (
        "A [[lead]].\n== One ==\nText.\n== See also ==\n* [[B]]\n=== More ===\n* [[C]]\n"
        "== Two ==\nText."
    )
    trees = built(write_dump(tmp_path / "d.xml", {"Page": wikitext}), tmp_path)
    tree, row = trees["Page"]
    assert row["see_also"][0] == "B"
    assert ["Page", "One", "More"] not in [tree.path(node.place) for node in tree.nodes]
    assert tree.children(1) == []

"""WikiExtractor's output: lines written by hand, and what it makes of the real dumps."""

import bz2
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from reading import read, read_bytes
from wikitexts import wikitexts

from harp_plugin.corpus.markup import Link
from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.errors import HarpError
from harp_plugin.text import normalize_anchor, normalize_title

URL = "https://en.wikipedia.org/wiki?curid=7"


def line(text, title="Apple"):
    fields = {"id": "7", "revid": "1", "url": URL, "title": title, "text": text}
    return json.dumps(fields).encode() + b"\n"


def document(text, title="Apple"):
    return f'<doc id="7" url="{URL}" title="{title}">\n{title}\n\n{text}\n\n</doc>\n'.encode()


def page_of(text, title="Apple"):
    """The page, which is the same from both formats."""
    (page,) = read_bytes(line(text, title), "wiki_00")
    assert read_bytes(document(text, title), "wiki_00") == [page]
    return page


def escaped(href, text):
    return f'&lt;a href="{href}"&gt;{text}&lt;/a&gt;'


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("Pear", "Pear"),
        ("pear%20tree", "Pear tree"),
        ("Pear%23In_art", "Pear"),
        ("AT%26amp%3BT", "AT&T"),  # & in the wikitext, escaped in the dump
        ("AT%26amp%3Bamp%3BT", "AT&T"),  # &amp; in the wikitext
        ("C%252B%252B", "C++"),  # C%2B%2B in the wikitext
        ("100%25", "100%"),
        ("O%26amp%3B%2339%3BNeill", "O'Neill"),
        ("%C3%A9tienne", "Étienne"),
        ("%3APear", "Pear"),
        ("CSI%3A%20Miami", "CSI: Miami"),
        ("%5BPear", None),
        ("//example.org", None),
        ("http%3A//example.org/Pear", None),
        ("mailto%3Aa%40example.org", None),
        ("wikt%3Apear", None),
        ("w%3APear", None),
        ("Category%3APears", None),
        ("%23History", None),
    ],
)
def test_targets(href, target):
    page = page_of(f"A {escaped(href, 'pear')} &amp;amp; tree.")
    body = page.sections[0].body
    assert body.text == "A pear &amp; tree."
    assert body.links == ([Link(2, 6, "pear", target)] if target else [])
    assert page.drops.total() == (target is None)


def test_letters_that_trail_a_link_belong_to_it():
    page = page_of(f"Two {escaped('pear', 'pear')}s, {escaped('plum', 'Plum')}Tree.")
    assert [link.anchor for link in page.sections[0].body.links] == ["pears", "Plum"]


def test_spaces_and_unseen_characters_leave_the_offsets_exact():
    link = escaped("pear", " ripe\u00a0 pear\u200e ")
    page = page_of(f"A\u200e  ( ) &lt; {link}  b.")
    body = page.sections[0].body
    assert body.text == "A < ripe pear b." and body.links == [Link(4, 13, "ripe pear", "Pear")]


def test_links_in_links():
    """In a link to another site only the inner one is a link; else only the outer one."""
    inner = f"a {escaped('Pear', 'pear')}"
    page = page_of(f"{escaped('http%3A//x', inner)} and {escaped('Plum', inner)}.")
    assert [link.anchor for link in page.sections[0].body.links] == ["pear", "a pear"]
    assert +page.drops == {"link to another site": 1, "link inside a link": 1}


def test_anchors_without_an_end_or_a_text():
    broken = escaped("Pear", "pear").removesuffix("&lt;/a&gt;")
    page = page_of(f"A {broken} &lt;/a&gt;&lt;/a&gt; {escaped('Plum', ' ')}\n{broken}")
    assert [link.anchor for link in page.sections[0].body.links] == ["pear"]
    assert {k for k, n in page.drops.items() if n} == {"empty anchor text", "link without an end"}


def test_titles_are_short_lines_that_end_as_titles_do():
    lead = "The apple is a fruit of many and very different colors.\n"
    page = page_of(lead + "History.\nOrigins.\nOld.\u00a0It is.\nWhy eat it?\nIt is good.")
    assert [(s.level, s.title, s.body.text) for s in page.sections] == [
        (1, "", lead.strip()),
        (2, "History", ""),
        (2, "Origins", "Old. It is."),
        (2, "Why eat it?", "It is good."),
    ]


def test_see_also_in_prose():
    page = page_of(f"An apple.\nSee also.\n{escaped('Pear', 'pear')} and {escaped('Plum', 'p')}.")
    assert page.see_also == ["Pear", "Plum"] and len(page.sections) == 1


def test_titles_levels_and_lists_with_html():
    text = (
        "An apple.\n<h2>Kinds</h2>\n<h3>Red</h3>\nKinds.\nRed.\n<ul>\n"
        f"<li> A {escaped('Pear', 'pear')}.</li>\n</ul>\nShort.\n<h2>See also</h2>\n"
        f"<ol>\n<li>{escaped('Plum', 'plum')}</<li>\n</ol>"
    )
    page = page_of(text)
    assert [(s.level, s.title, s.body.text) for s in page.sections] == [
        (1, "", "An apple."),
        (2, "Kinds", ""),
        (3, "Red", "A pear.\nShort."),
    ]
    assert page.see_also == ["Plum"]


def test_title_with_marks_and_language():
    page = page_of("Text.", title='The "AT&amp;T" <i>')
    assert (page.key, page.title, page.language) == ('The "AT&T" <i>',) * 2 + ("en",)
    (page,) = read_bytes(line("x").replace(b"en.wiki", b"ltg.wiki"), "wiki_00")
    assert page.language == "ltg"


def test_older_versions():
    """Version 2 repeats the title in JSON too, escapes quotes, and does not quote targets."""
    (page,) = read_bytes(
        line("Apple\n\nA &lt;a href=&quot;ripe pear&quot;&gt;pear&lt;/a&gt;."), "wiki_00"
    )
    assert page.lead == "A pear." and page.sections[0].body.links[0].target == "Ripe pear"


def test_page_without_title_or_text():
    assert read_bytes(document("A.", title="#"), "x") == [Dropped("page without title")]
    assert (
        read_bytes(document(""), "x") == read_bytes(line(""), "x") == [Dropped("page without text")]
    )


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (document("A.").removesuffix(b"</doc>\n"), "line 1: <doc> has no end"),
        (document("A.").removesuffix(b"</doc>\n") + document("B."), "line 1: <doc> has no end"),
        (document("A.") + b"text\n", "line 7: text outside of <doc>"),
        (document("A.") + document("B.").replace(b" url", b" uri"), "line 7: no article"),
        (document("A.") + document("\xff").decode().encode("latin-1"), "line 7: no article"),
        (line("A.") + line("A.")[:-9], "line 2: no article"),
        (line("A.") + line("A.").replace(b'"text"', b'"words"'), "line 2: no article"),
        (line("A.") + line("A.").replace(b'"A."', b'["A."]'), "line 2: no article"),
        (line("A.") + b"[" * 100_000, "line 2: nested too deeply"),
    ],
)
def test_a_bad_article_is_named(data, place):
    with pytest.raises(HarpError, match=f"^wiki_00, {place}"):
        read_bytes(data, "wiki_00")


# Below: the installed WikiExtractor on the real dumps, held against our reader of the dumps.

_LINK = re.compile(r"\[\[\s*([^\[\]|]+?)\s*(?:\||\]\])")
_NEW_LINE = re.compile(r">(?=<(?:sitename|base|/siteinfo|revision|id|text|/revision)\b)")
_TEMPLATES = '<namespaces>\n<namespace key="10">Template</namespace>\n</namespaces>\n'
# Why WikiExtractor does not give a link.
COLON = "title with a colon"  # its prefix is taken for a namespace
LIST = "in a list"  # lines that start with * # ; are left out
TEMPLATE = "in a template"  # all are left out, also those that show their own words (`lang`)
ELEMENT = "in an element"  # <small>, <div>, <li>; and all of a line that starts with }
_REASONS = (COLON, LIST, TEMPLATE, ELEMENT)
STYLE = "other anchor text"  # italics become quotation marks, a space before a full stop goes
# Why only WikiExtractor gives a link.
GLUED = "with a list of languages behind it"  # which our reader cuts off
HEADING = "in a heading"  # its titles are text, ours have no links
QUOTES = "with unbalanced quotes"  # which our reader loses and counts


def extracted(dump, folder, *options):
    """Runs WikiExtractor; it needs one tag a line, and a namespace of templates, to find pages."""
    command = shutil.which("wikiextractor", path=Path(sys.executable).parent)
    if command is None:
        pytest.skip("wikiextractor is not installed: pip install wikiextractor")
    with bz2.open(dump, "rt", encoding="utf-8") as file:
        xml = _NEW_LINE.sub(">\n", file.read())
    if "<namespace " not in xml:
        xml = xml.replace("</siteinfo>", f"{_TEMPLATES}</siteinfo>", 1)
    plain = folder / "dump.xml"
    plain.write_text(xml)
    arguments = ["--links", "--no-templates", "--quiet", "--processes", "1", *options]
    subprocess.run([command, plain, *arguments, "-o", folder / "out"], check=True)
    return folder / "out"


def links(path):
    """The links of every page, each at its place."""
    found = {}
    for page in read(path):
        if isinstance(page, Page):
            bodies = [section.body for section in page.sections]
            found[page.key] = Counter((k.target, k.anchor) for body in bodies for k in body.links)
            for body in bodies:
                for link in body.links:
                    assert body.text[link.start : link.end] == link.anchor
    return found


def reasons(text):
    """Why WikiExtractor leaves out links: by target, one reason for each that it should lose."""
    found: dict[str, list[str]] = {}
    for match in _LINK.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        line = text[start : (text.find("\n", match.end()) + 1 or len(text) + 1) - 1]
        before = text[: match.start()]
        reason = None
        if ":" in match[1]:
            reason = COLON
        elif line.lstrip()[:1] in ("*", "#", ";"):
            reason = LIST
        elif before.count("{{") > before.count("}}") or "{{" in text[match.end() :][:20]:
            reason = TEMPLATE
        elif re.search(r"<(?:small|div|li)\b|^\s*\}", line):
            reason = ELEMENT
        if reason:
            found.setdefault(normalize_title(match[1]), []).append(reason)
    return found


def differences(ours, theirs, text):
    """Counts of the links that only one reader has by reason, and those without a reason."""
    counts: Counter[str] = Counter()
    rest = []
    known, gained = reasons(text), theirs - ours
    for target, anchor in sorted((ours - theirs).elements()):
        others = [other for other in gained if other[0] == target and gained[other]]
        styled = [other for other in others if plain(other[1]) == plain(anchor)]
        glued = [o for o in others if re.fullmatch(re.escape(anchor) + "[a-z]{2,3}", o[1])]
        reason = STYLE if styled else GLUED if glued else None
        if reason is None and known.get(target):
            known[target].sort(key=_REASONS.index, reverse=True)
            reason = known[target].pop()
        gained.subtract(styled[:1] or glued[:1] or (others[:1] if reason == TEMPLATE else []))
        if reason:
            counts[reason] += 1
        else:
            rest.append((target, anchor))
    headings = re.findall(r"^=+(.*)=+\s*$", text, re.MULTILINE)
    places = {HEADING: targets(headings)}
    for target, anchor in sorted((+gained).elements()):
        found = [reason for reason, inside in places.items() if target in inside]
        found += [QUOTES] if target.startswith("''") else []
        if found:
            counts[found[0]] += 1
        else:
            rest.append((target, anchor))
    return counts, rest


def targets(texts):
    return {normalize_title(match[1]) for text in texts for match in _LINK.finditer(text)}


def plain(anchor):
    return normalize_anchor(re.sub(r'[\s"]', "", anchor))


@pytest.mark.integration
@pytest.mark.parametrize("options", [("--json",), ("--compress",)], ids=["json", "doc"])
@pytest.mark.parametrize(
    ("name", "total", "expected"),
    [
        (
            "simplewiki-20100814-999.xml.bz2",
            (35_542, 30_883),
            {LIST: 4_691, COLON: 4, STYLE: 7, HEADING: 35, QUOTES: 1, GLUED: 1},
        ),
        (
            "ltgwiki-pages-articles.xml.bz2",
            (5_604, 3_250),
            {LIST: 2_347, COLON: 6, ELEMENT: 2, STYLE: 2, HEADING: 1},
        ),
        (
            "enwiki-p10p30302-shortened.xml.bz2",
            (22_056, 18_929),
            {LIST: 3_063, COLON: 40, TEMPLATE: 22, ELEMENT: 3, STYLE: 41},
        ),
    ],
)
def test_the_same_links_as_from_the_dump(shared_data, tmp_path, name, total, expected, options):
    """Every link that only one of the readers has is explained; counts may move by a few."""
    dump = shared_data / "wiki" / name
    texts = {normalize_title(title): text for title, text in wikitexts(dump)}
    ours = links(dump)
    theirs = links(extracted(dump, tmp_path, *options))
    assert set(theirs) <= set(ours)
    counts: Counter[str] = Counter()
    unexplained = []
    for key, found in ours.items():
        found, rest = differences(found, theirs.get(key, Counter()), texts[key])
        counts += found
        unexplained += [(key, *link) for link in rest]
    assert not unexplained
    both = [sum(map(Counter.total, found.values())) for found in (ours, theirs)]
    assert both == pytest.approx(total, rel=0.01)
    assert dict(counts) == pytest.approx(expected, abs=5)

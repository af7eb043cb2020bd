"""HTML becomes sections: the lead, the tree, boilerplate, and exact links."""

from collections import Counter

import lxml.etree
import pytest

from harp_plugin.corpus.html import WebRules, decode, read_document, read_page
from harp_plugin.corpus.pages import Dropped, Page
from harp_plugin.corpus.urls import WebAddress

PROSE = "Some words that are long enough to be a paragraph."
LEAD = f"{PROSE} Together with others like them, they are enough to be a lead."


def page_of(html: str) -> Page:
    document = read_document(html)
    assert not isinstance(document, Dropped)
    return read_page("http://a.b/", document, WebRules(WebAddress("http://a.b/", document.base)))


def outline(page: Page) -> list[tuple[int, str, str]]:
    return [(section.level, section.title, section.body.text) for section in page.content]


def links(page: Page, region: str | None = None) -> list[tuple[str, str]]:
    return [
        (link.anchor, link.target.removeprefix("http://a.b/"))
        for section in page.sections
        if section.region == region
        for link in section.body.links
    ]


def test_sections_under_the_title_heading():
    page = page_of(
        f"<title>Cats - A site</title><p>Skip</p><h1>Cats</h1>A <b>cat</b>.<p>{LEAD}\n"
        "<h2>Food</h2><p>Fish.<h3>Dry</h3><p>Bits.<h2>Sleep</h2><p>Long."
    )
    assert page.title == "Cats"
    assert outline(page) == [
        (1, "", f"A cat.\n{LEAD}"),
        (2, "Food", "Fish."),
        (3, "Dry", "Bits."),
        (2, "Sleep", "Long."),
    ]


def test_title_among_equals_is_what_the_head_says():
    page = page_of(f"<title>SELECT</title><h2>SELECT</h2><p>{LEAD}<h2>Notes</h2><p>None.")
    assert page.title == "SELECT"
    assert outline(page) == [(1, "", LEAD), (2, "Notes", "None.")]


@pytest.mark.parametrize(
    ("head", "level", "title"),
    [
        ("Queries — Django documentation", 1, "Queries"),
        ("Queries — Django documentation", 2, "Queries"),  # as in blogs
        ("django.db — Django documentation", 1, "Source code for django.db"),
        ("Django documentation", 1, "Django documentation"),
        ("Queries", 2, "Queries"),
        ("Django documentation | Queries", 2, "Queries"),
        ("Queries — Django documentation", 2, "Django documentation"),
    ],
)
def test_the_name_of_a_site_is_not_the_title(head, level, title):
    """Sphinx's theme of Django has it above each page, as a heading that leads to the start."""
    own = title if title != "Django documentation" else "What it is"
    page = page_of(
        f"<title>{head}</title><div><h1><a href=/start>Django documentation</a></h1><a href=x>X</a>"
        f"</div><h{level}>{own}</h{level}><p>{LEAD}<h{level + 1}>More</h{level + 1}><p>a"
    )
    assert page.title == title and page.lead.endswith(LEAD)
    if title == own:
        assert outline(page) == [(1, "", LEAD), (2, "More", "a")]


@pytest.mark.parametrize(
    ("head", "first", "second", "title"),
    [
        ("Mutex Methods", "Small. Fast. Reliable.", "Mutex Methods", "Mutex Methods"),
        ("git-fsck(1)", "Name", "Git", "git-fsck(1)"),
        ("Cats and dogs", "Pets", "Cats", "Cats and dogs"),
        ("Cats - dogs", "Cats - dogs", "Cats", "Cats - dogs"),
        ("Cats", "Cats - dogs", "Cats", "Cats - dogs"),
    ],
)
def test_a_slogan_is_not_the_title(head, first, second, title):
    page = page_of(f"<title>{head}</title><h1>{first}</h1>Hello.<h1>{second}</h1><p>{LEAD}")
    assert page.title == title


def test_a_section_is_not_the_title():
    """As in pages of git, whose title stands in a header."""
    sections = "".join(f"<h2>{name}</h2><p>{name}" for name in ("NAME", "GIT", "USE"))
    page = page_of(f"<title>git-fsck(1)</title><div id=header><h1>fsck</h1></div>{sections}")
    assert page.title == "git-fsck(1)"
    start = "<title>Install - My site</title><h1><a href=/y>Install</a></h1>Short.<h1>Use</h1>"
    assert page_of(f"{start}<p>{LEAD}").title == "Install"


def test_a_table_of_contents_above_the_title():
    """As in pages of Qt."""
    contents = "".join(f"<li><a href='#{n}'>Public Function {n}</a>" for n in range(30))
    page = page_of(
        f"<title>Foo Class | Qt 5</title><h3>Contents</h3><ul>{contents}</ul><h1>Foo Class</h1>"
        f"<p>{LEAD}<h2>Properties</h2><p>bar"
    )
    assert page.title == "Foo Class"
    assert outline(page) == [(1, "", LEAD), (2, "Properties", "bar")]


def test_a_heading_far_below_another_is_not_the_title():
    page = page_of(f"<title>Cats</title><h1>Pets</h1><p>{LEAD}<h1>Cats</h1><p>They purr.")
    assert page.title == "Cats" and page.lead.startswith(PROSE)


def test_text_before_the_first_heading_is_the_lead():
    page = page_of(f"<title>X</title><p>{LEAD}<h2>One</h2><p>1<h2>Two</h2><p>2")
    assert (page.title, page.lead) == ("X", LEAD)
    assert [title for _, title, _ in outline(page)] == ["", "One", "Two"]


def test_without_a_lead_the_first_section_with_text_is_it():
    page = page_of(f"<h1>T</h1><h2>None</h2><h2>First</h2><p>{LEAD}<h2>Second</h2><p>b")
    assert outline(page) == [(1, "", LEAD), (2, "None", ""), (2, "First", ""), (2, "Second", "b")]


def test_a_lead_of_less_than_twenty_words_goes_on_with_the_next_sections():
    page = page_of(
        "<h1>LOCK</h1><p>LOCK — lock a <a href=t>table</a><h2>Synopsis</h2><pre>LOCK t</pre>"
        "<p>LOCK name<h2>Description</h2><p>It <a href=w>waits</a> for rows, one two three four"
        " five six seven eight nine ten.<h3>Modes</h3><p>Many.<h2>Notes</h2><p>None."
    )
    assert outline(page) == [
        (1, "", page.lead),
        (2, "Synopsis", ""),
        (2, "Description", ""),
        (3, "Modes", "Many."),
        (2, "Notes", "None."),
    ]
    assert page.lead.split("\n")[:2] == ["LOCK — lock a table", "LOCK name"]
    assert links(page) == [("table", "t"), ("waits", "w")]
    for link in page.sections[0].body.links:
        assert page.lead[link.start : link.end] == link.anchor


@pytest.mark.parametrize(("count", "goes_on"), [(19, True), (20, False)])
def test_how_short_a_lead_goes_on(count, goes_on):
    page = page_of(f"<h1>T</h1><p>{'word ' * count}<h2>S</h2><p>more")
    assert page.lead.endswith("\nmore") == goes_on


def test_headings_of_notes_head_no_sections():
    page = page_of(f"<h1>T</h1>{LEAD}<div class='note'><h3>Note</h3><p>b</div><p>c<h2>S</h2>d")
    assert outline(page) == [(1, "", f"{LEAD}\nNote\nb\nc"), (2, "S", "d")]


def test_links_are_exact():
    page = page_of(
        "<base href='/c/'><p>See <a href=d> the\n <b>big</b>&nbsp;one </a>, or"
        " <a href='../e'>E</a>."
    )
    (section,) = page.sections
    assert section.body.text == "See the big one , or E."
    assert links(page) == [("the big one", "c/d"), ("E", "e")]
    for link in section.body.links:
        assert section.body.text[link.start : link.end] == link.anchor


def test_a_link_over_lines_ends_with_the_first():
    page = page_of(f"<p>{PROSE}</p><a href=d><div>Title</div><div>Teaser of it.</div></a>")
    assert links(page) == [] and links(page, "navigation") == [("Title", "d")]
    page = page_of(f"<p>{PROSE} <a href=d>one<br>two</a> three")
    assert page.lead == f"{PROSE} one\ntwo three"
    assert links(page) == [("one", "d")]


def test_dropped_links():
    page = page_of(
        f"<h1>T<a href=p>x</a><a class=headerlink href='#t'>¶</a></h1><p>{PROSE} <a href='#s'>s</a>"
        "<a href=mailto:x>m</a><a href=i><img alt=i></a><a name=n>n</a><a href='http://['>b</a>"
        "<pre><a href=c>c</a></pre><button><a href=f>f</a></button><p hidden><a href=h>h</a></p>"
        "<table><tr><th>x<td><a href=t>t</a></table><template><a href=z>z</a></template>"
        "<figure><figcaption><a href=g>g</a></figcaption></figure><noscript><a href=o>o</a>"
    )
    assert page.title == "Tx"
    assert outline(page) == [(1, "", f"{PROSE} sm nb")]
    assert page.drops == Counter(
        {
            "link in a heading": 1,
            "link inside the page": 2,
            "link to no page (mailto, javascript, ...)": 1,
            "empty anchor text": 1,
            "link with a broken address": 1,
            "link in code": 1,
            "link in a form": 1,
            "link in hidden text": 1,
            "link in a table": 1,
            "link in a caption": 1,
            "link in text for browsers without scripts": 1,
        }
    )


def test_signs_are_no_anchors():
    page = page_of(
        f"<p>{PROSE} (Tom Lane) <a href='http://git.b/1'>§</a> <a href='http://git.b/2'>§</a></p>"
        "<p>The <a href=f>&lt;-&gt;</a> operator and <a href=c>C</a><a href=d>¶</a>next."
    )
    assert page.lead == f"{PROSE} (Tom Lane)\nThe <-> operator and Cnext."
    assert links(page) == [("C", "c")]
    assert page.drops == {"anchor text without a word": 4}


@pytest.mark.parametrize(
    "anchor",
    [
        *("Section 5.14", "Chapter 20", "Appendix E.21", "Table 9.7", "Step C", "Part IV", "§ 5"),
        *("Sections 5.1", "fig. 3", "Example 43.1.", "Equation (2)", "Kapitel 3", "Abschnitt 4.2"),
        *("Tableau 1", "Capítulo 2", "Sección 3"),
    ],
)
def test_numbers_of_sections_are_no_anchors_inside_of_a_site(anchor):
    page = page_of(
        f"<p>{PROSE} See <a href=x>{anchor}</a> or <a href='http://c.d/'>{anchor}</a>,"
        f" <a href=y>{anchor} on locks</a>."
    )
    assert links(page) == [(anchor, "http://c.d/"), (f"{anchor} on locks", "y")]
    assert page.drops == {"anchor text that is a number (Section 5.1)": 1}
    assert f"See {anchor} or" in page.lead


@pytest.mark.parametrize(
    "anchor",
    ["PostgreSQL 15", "RFC 4122", "1987", "Section", "Part of it", "Table civil", "C", "中"],
)
def test_names_with_numbers_are_anchors(anchor):
    assert links(page_of(f"<p>{PROSE} See <a href=x>{anchor}</a>.")) == [(anchor, "x")]


@pytest.mark.parametrize(
    ("block", "region"),
    [
        ("<nav>{}</nav>", "navigation"),
        ("<div role=navigation>{}</div>", "navigation"),
        ("<div class='top-navbar'>{}</div>", "navigation"),
        ("<td id=mainMenu>{}</td>", "navigation"),
        ("<div class='no-menu'>{}</div>", None),
        ("<ol class=breadcrumbs>{}</ol>", "navigation"),
        ("<header>{}</header>", "header"),
        ("<div id='site-header'>{}</div>", "header"),
        ("<footer>{}</footer>", "footer"),
        ("<p class=copyright>{}</p>", "footer"),
        ("<aside>{}</aside>", "aside"),
        ("<div class=sphinxsidebar>{}</div>", "aside"),
        ("<article><header>{}</header></article>", None),
        ("<div class='entry-header'>{}</div>", None),
        ("<div class='content with-sidebar'>{}</div>", None),
        ("<p>{}</p>", None),
    ],
)
def test_regions(block, region):
    inner = "Words around <a href=x>a link</a> in a sentence."
    page = page_of(f"<table><tr><td><p>{PROSE}</table>" + block.format(inner))
    if block.startswith("<td"):
        page = page_of(f"<p>{PROSE}<table><tr>{block.format(inner)}</table>")
    assert links(page, region) == [("a link", "x")]
    assert (inner[:12] in page.lead) == (region is None)


@pytest.mark.parametrize(
    "start",
    [
        "<section id=cookies><h2>Cookies<a class=headerlink href=#cookies>¶</a>",  # Sphinx
        "<section id=s-related><span id=related></span><h2>Related",  # Django's manual
        "<div class=section id=footer><h2>Footer",  # Docutils
        "<section id=the-menu-bar class=level2 data-number=1.2><h2><span>1.2</span> The menu bar",
        "<div class=chapter-level-extent id=Menus><div class=nav-panel></div><h2>3 Menus",
    ],
)
def test_an_id_that_is_made_of_the_heading_names_no_boilerplate(start):
    page = page_of(f"<h1>T</h1><p>{LEAD}{start}</h2><p>It is.")
    assert outline(page)[1][2] == "It is."
    other = start.replace("<h2>", "<h2>Other ")
    assert outline(page_of(f"<h1>T</h1><p>{LEAD}{other}</h2><p>It is.")) == [(1, "", LEAD)]


def test_the_id_of_a_term_names_no_boilerplate():
    page = page_of(
        f"<p>{PROSE}<dl><dt id=term-sidebar>sidebar<dd id=menu-item>It stands aside.</dl>"
    )
    assert page.lead == f"{PROSE}\nsidebar\nIt stands aside."


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("<aside class='admonition note'><p>{}</aside>", PROSE),
        ("<aside class='starlight-aside starlight-aside--tip'><h3>{}</h3></aside>", PROSE),
        ("<aside class=topic><p>{}</aside>", PROSE),
        ("<aside class='admonition cookie'><p>{}</aside>", ""),
        # Docusaurus and sphinx-tabs
        (
            "<div class='tabs-container tabList_c'><ul class=tabs role=tablist><li>npm</ul>"
            "<div role=tabpanel><p>{}</div></div>",
            PROSE,
        ),
        (
            "<div class='sphinx-tabs docutils'><div role=tablist><button>npm</button></div>"
            "<div class=sphinx-tabs-panel role=tabpanel><p>{}</div></div>",
            PROSE,
        ),
        ("<div class=tabs><p>{}</div>", ""),
        ("<nav class=tabs><div role=tabpanel><p>{}</div></nav>", ""),
        ("<div class='menu tabs'><div role=tabpanel><p>{}</div></div>", ""),
    ],
)
def test_boxes_and_tabs_hold_content(block, text):
    assert page_of(f"<p>{LEAD}{block.format(PROSE)}").lead == f"{LEAD}\n{text}".strip()


def test_all_outside_of_the_main_part_is_boilerplate():
    page = page_of(f"<p>a <a href=x>x</a><main><p>{PROSE}</main><div>b <a href=y>y</a>")
    assert page.lead == PROSE
    assert (links(page, "header"), links(page, "footer")) == ([("x", "x")], [("y", "y")])


def test_blocks_of_links_are_navigation_and_sentences_are_not():
    menu = "".join(f"<li><a href={n}>item {n}</a>" for n in range(5))
    page = page_of(f"<p>{PROSE} See <a href=p>p</a>.<ul>{menu}</ul><p><a href=q>q</a> | ")
    assert links(page) == [("p", "p")]
    assert len(links(page, "navigation")) == 6
    index = "".join(f"<dt>some entry {n}, <a href={n}>A page of it {n}</a>" for n in range(10))
    assert links(page_of(f"<p>{PROSE}<dl>{index}<dt>entry: see another entry</dl>")) == []
    described = "".join(f"<li><a href={n}>item {n}</a> does this and that." for n in range(5))
    assert len(links(page_of(f"<p>{PROSE}<ul>{described}</ul>"))) == 5


def test_links_to_types_make_no_menu_of_a_description():
    """As Sphinx describes a function."""
    fields = "".join(
        f"<li><p><strong>x{n}</strong> (<a href=int>int</a>) – number {n}" for n in range(12)
    )
    described = (
        "<dl class='py function'><dt class='sig sig-object py' id=m.run>run(x)<dd><p>It runs."
        f"<dl class='field-list simple'><dt class=field-odd>Parameters<dd><ul class=simple>{fields}"
    )
    lines = ["run(x)", "It runs.", "Parameters", *(f"x{n} (int) – number {n}" for n in range(12))]
    assert page_of(f"<p>{LEAD}{described}").lead.split("\n") == [LEAD, *lines]


def test_see_also():
    page = page_of("<h1>T</h1>a<h2>See also</h2><ul><li><a href=x>X</a><li><a href=y>Y</a></ul>")
    assert page.see_also == ["http://a.b/x", "http://a.b/y"]
    assert outline(page) == [(1, "", "a")]


def test_layout_tables_are_read_by_cells():
    page = page_of(f"<table><tr><td><p>{PROSE}<td>Other <a href=x>x</a> cell.</table>")
    assert page.lead == f"{PROSE}\nOther x cell."


@pytest.mark.parametrize("inner", ["<h2>About</h2>", "<table><tr><td>About</table>"])
def test_a_menu_in_a_layout_table_does_not_swallow_the_page(inner):
    """As in the manual of libxslt."""
    menu = "".join(f"<li><a href={n}>item {n}</a>" for n in range(12))
    page = page_of(f"<table><tr><td><ul>{menu}</ul><td>{inner}<p>{LEAD}</table>")
    assert page.lead.endswith(LEAD)
    assert len(links(page, "navigation")) == 12
    rows = "".join(f"<tr><td><a href={n}>item {n}</a><td>some words" for n in range(12))
    assert len(links(page_of(f"<p>{LEAD}<table>{rows}</table>"), "navigation")) == 12


def test_code_parts_a_paragraph():
    assert page_of("<p>For example: <code>f()</code> or<pre>f(1)</pre>which is.").lead == (
        "For example: f() or\nwhich is."
    )


def test_language():
    german = (
        "Wer am Morgen früh aufsteht, hört im Wald die Vögel singen und sieht, wie der Nebel über"
        " den Wiesen liegt. Später am Tag kommen die Leute aus der Stadt, gehen mit ihren Hunden"
        " spazieren oder setzen sich auf eine Bank und lesen. Am Abend wird es wieder still, und"
        " nur der Wind bewegt noch die Blätter der alten Bäume am Ufer."
    )
    japanese = (
        "朝早く起きると、森で鳥が鳴いているのが聞こえる。昼になると町から人が来て、犬と散歩したり、"
        "ベンチに座って本を読んだりする。夕方になるとまた静かになり、岸辺の古い木の葉だけが風に揺れ"
        "ている。この村には三百年前から続く小さな寺があり、毎年秋には祭りが開かれる。"
    ) * 3
    assert page_of(f"<p>{german}").language == "de"
    assert page_of(f"<p>{japanese}").language == "ja"
    assert page_of(f"<html lang=pt-BR><p>{german}").language == "pt"
    assert page_of("<p>Ja.").language == "en"


def test_head():
    document = read_document(
        "<title> a\n b </title><base href=x><link rel=Canonical href=c>"
        "<meta http-equiv=refresh content='3; URL=\"next.html\"'>"
    )
    assert (document.title, document.base, document.canonical) == ("a b", "x", "c")
    assert document.refresh == "next.html"
    assert read_document("<meta http-equiv=refresh content='300; url=x'>").refresh is None
    assert read_document("<meta http-equiv=refresh content=5>").refresh is None


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        ("é ß".encode(), None),
        ("é ß".encode(), "latin-1"),
        ("\ufeffé ß".encode(), None),
        ("é ß".encode("latin-1"), "ISO-8859-1"),
        ("<meta charset=iso-8859-1>é ß".encode("latin-1"), None),
        ("é ß".encode("cp1252"), "no such encoding"),
        ("\ufeffé ß".encode("utf-16-le"), None),
    ],
)
def test_encodings(data, declared):
    assert decode(data, declared).endswith("é ß")


@pytest.mark.parametrize("declared", [None, "utf-8", "latin-1"])
def test_a_broken_byte_leaves_utf8(declared):
    data = "<meta charset=utf-8>naïve é ß".encode()
    assert decode(data + b"\xff", declared).endswith("naïve é ß\ufffd")
    assert decode(data[:-1], declared).endswith("naïve é \ufffd")  # cut off


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Übung für Ärzte", "cp1252"),
        ("Привет", "cp1251"),
        ("ウィキペディア", "cp932"),
        ("联通", "gbk"),
    ],
)
def test_what_is_no_utf8_is_not_taken_for_it(text, encoding):
    assert decode(text.encode(encoding), encoding) == text


@pytest.mark.parametrize("empty", ["<script src='x.js' />", "<title/>", "<textarea rows='2'/>"])
def test_what_xhtml_closes_at_once_does_not_swallow_the_page(empty):
    """The text is that which lxml reads, as XML."""
    script = "<script>if (a &lt; b) document.write('<b/>')</script>"
    xhtml = (
        "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'xhtml1-strict.dtd'>"
        f"<html><head>{script}{empty}</head><body><div>{empty}<p>{PROSE}</p></div></body></html>"
    )
    assert lxml.etree.fromstring(xhtml).findtext(".//p") == PROSE
    assert page_of(xhtml).lead == PROSE
    assert page_of(xhtml[xhtml.index("<html>") :]).lead == ""


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<div>" * 100_000, "page of elements nested over 1,000 deep"),
        ("<ul><li>" * 100_000, "page of elements nested over 1,000 deep"),
        ("<table><tr><td>" * 30_000, "page of elements nested over 1,000 deep"),
        (
            "<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">",
            "page with a tag of over 4,000 attributes",
        ),
        ('<a b="' * 100_000, "page with a tag of over 4,000 attributes"),
        ("<p>" * 2_000_000, "page of over 1,000,000 tags"),
    ],
)
def test_pages_that_would_take_too_long_are_dropped(html, reason):
    assert read_document(html) == Dropped(reason)


@pytest.mark.parametrize(
    "row",
    [
        '<td><a href="a#<LANG>">&lt;LANG&gt;</a></td>',
        "<td>List<String> and <T></td>",
        "<td title='</td><i>'><x-y><Z>word</td>",
        "<td><!-- <div> --><textarea><div></textarea></td>",
    ],
)
def test_signs_and_stray_tags_are_no_nesting(row):
    assert not isinstance(read_document(f"<table><tr>{row}</tr></table>" * 12_000), Dropped)


def test_pages_of_doxygen():
    page = page_of(
        "<head><title>My Project: Foo Class Reference</title></head><div class=header><div "
        "class=headertitle><div class=title>Foo Class Reference</div></div></div><div>"
        "<p>A foo is used here.<div class=fragment><div class=line>int x;</div></div><p>More.</div>"
    )
    assert (page.title, page.lead) == ("Foo Class Reference", "A foo is used here.\nMore.")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("f(x)<a href=m><span class=viewcode-link>[source]</span></a> is here.", "f(x) is here."),
        (
            "A<sup class=reference>[1]</sup> b<sup class='x noprint'>[?]</sup> c.",
            "A b c.",
        ),
        ("A.<div class=ace_editor>x = 1</div><p class=programlisting>y</p>", "A."),
        ("<table><tr><td class=blob-num>1<td class=blob-code>x</table><p>A.", "A."),
        ("<span class=since>1.0</span> A <a class=src href=s>Source</a>.", "A ."),
        ("<p>A.<div><span class=since>1.0</span> · <a class=src href=s>Source</a></div>", "A."),
        ("<label>Linux</label><p>A.", "A."),
        ("<h2>History<span class=mw-editsection>[edit]</span></h2><p>A.", "A."),
        ("<article><p>A.<footer class=theme-doc-footer>Edit</footer></article>", "A.\nEdit"),
        ("<article><p>A.<div class=prev-next-footer><p>Next</div></article>", "A."),
        ("<div class=wy-nav-content-wrap><div role=main><p>A.</div></div>", "A."),
        ("<div class=wy-grid-for-nav><p>A.</div>", "A."),
    ],
)
def test_parts_of_generated_pages(html, text):
    sections = (section for section in page_of(html).sections if not section.region)
    assert "\n".join(filter(None, (section.body.text for section in sections))) == text


@pytest.mark.parametrize(
    "mark",
    [
        "<a href='#fn1' class='footnote-ref' role='doc-noteref'><sup>1</sup></a>",  # Pandoc
        "<sup id='fnref:1'><a class='footnote-ref' href='#fn:1'>1</a></sup>",  # Python-Markdown
        "<sup><a href='#user-content-fn-1' data-footnote-ref>1</a></sup>",  # GitHub
        " <a class='footnote-reference brackets' href='#id2'>[1]</a>",  # Docutils
        "<sup class=footnote>[<a class=footnote href='#_footnotedef_1'>1</a>]</sup>",  # Asciidoctor
        " <a href='#fnref1' class=footnote-back role=doc-backlink>\u21a9\ufe0e</a>",
        "<a href='#fnref1'>\u21a9\ufe0f</a>",
    ],
)
def test_marks_of_footnotes_are_no_text(mark):
    page = page_of(f"<p>A word{mark}, and another{mark} one{mark}.")
    assert page.lead == "A word, and another one."
    assert sum(page.drops.values()) == 3


def test_a_heading_that_leads_back_to_the_contents_is_text():
    """As Docutils writes it."""
    heading = "<h2><a class=toc-backref href='#id2' role=doc-backlink>Design</a></h2>"
    assert outline(page_of(f"<h1>T</h1><p>{LEAD}{heading}<p>a"))[1] == (2, "Design", "a")


@pytest.mark.parametrize(
    "inside",
    [
        "<button class=accordion-button type=button>How do I pay?</button>",
        "How do I pay?<button>Copy</button>",
        "<button>+</button>How do I pay?",
    ],
)
def test_a_button_is_text_where_it_is_the_whole_heading(inside):
    page = page_of(f"<h1>FAQ</h1><p>{LEAD}<h2>{inside}</h2><p>With money.<button>Send</button>")
    assert outline(page) == [(1, "", LEAD), (2, "How do I pay?", "With money.")]


def test_groups_of_doxygen_are_no_part_of_the_title():
    title = "ns::Foo Class Reference<div class=ingroups><a href=g>Group</a></div>"
    page = page_of(
        f"<div class=header><div class=headertitle><div class=title>{title}</div></div></div>"
        "<p>A foo is."
    )
    assert (page.title, page.lead) == ("ns::Foo Class Reference", "A foo is.")


@pytest.mark.parametrize(
    "html",
    [
        "<p><span>a</p>" * 12_000,
        f"<table>{'<tr><td><div>a</td></tr>' * 6_000}</table>",
        f"<dl>{'<dt><span>a<dd>' * 12_000}</dl>",
        f"<ul>{'<li><span>a</li>' * 6_000}</ul>",
        "<h3>a" * 11_000,
        f"<script>{'<div>' * 20_000}</script>a",
    ],
)
def test_what_the_parser_closes_is_no_nesting(html):
    assert not isinstance(read_document(html), Dropped)


@pytest.mark.parametrize(
    "html",
    [
        ("<div>" * 9_997 + "<textarea>x</textarea>") * 10,
        "<i>a</i>" * 20_000 + "<div>" * 20_000,
        "<svg><g>" * 40_000,
        ("<select>" + "<div>" * 9_998) * 10,
        "<template>" + "<div>" * 40_000,
    ],
)
def test_nesting_behind_other_elements(html):
    assert read_document(html) == Dropped("page of elements nested over 1,000 deep")


@pytest.mark.parametrize("tag", ["b", "i", "font", "p", "li", "a href=x"])
def test_elements_that_nobody_closes_are_no_nesting(tag):
    page = page_of(f"<{tag}>word " * 20_000)
    assert sum(section.body.text.count("word") for section in page.sections) == 20_000


def test_deep_but_legal():
    assert page_of("<div>" * 900 + "deep").lead == "deep"


def test_too_long():
    assert read_document("x" * (9 << 20)) == Dropped("page over 8 MiB")

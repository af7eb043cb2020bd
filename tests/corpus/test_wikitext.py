"""What a reader of the page sees, written by hand for each case."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp_plugin.corpus.wikitext import DEBRIS, Site, parse_page


def lead(wikitext):
    """The lead's text and its links as (anchor, target), offsets checked."""
    page = parse_page("Page", wikitext, Site())
    body = page.sections[0].body
    for link in body.links:
        assert body.text[link.start : link.end] == link.anchor
    return body.text, [(link.anchor, link.target) for link in body.links], +page.drops


CASES = {
    "plain": ("An [[apple]].", "An apple.", [("apple", "Apple")]),
    "pipe": ("An [[Apple|old fruit]].", "An old fruit.", [("old fruit", "Apple")]),
    "trail": ("Two [[bus]]es.", "Two buses.", [("buses", "Bus")]),
    "trail of a pipe": ("[[Bus|coach]]es", "coaches", [("coaches", "Bus")]),
    "trail ends at a capital": ("[[foo]]barBAZ", "foobarBAZ", [("foobar", "Foo")]),
    "no trail after a capital": ("[[foo]]Bar", "fooBar", [("foo", "Foo")]),
    "trail with accents": ("[[été]]és", "étéés", [("étéés", "Été")]),
    "nowiki ends a trail": ("[[bus]]<nowiki />es", "buses", [("bus", "Bus")]),
    "fragment": ("[[Apple#Pests|pests]]", "pests", [("pests", "Apple")]),
    "fragment in the page": ("[[#Pests|pests]]", "pests", []),
    "underscores": ("[[New_York|city]]", "city", [("city", "New York")]),
    "leading colon": ("[[:Apple]]", "Apple", [("Apple", "Apple")]),
    "colon in a title": ("[[Alien: Covenant]]", "Alien: Covenant", [("Alien: Covenant",) * 2]),
    "short prefix in a title": ("[[CSI: Miami]] on", "CSI: Miami on", [("CSI: Miami",) * 2]),
    "short prefix, no space": ("[[Re:Zero]] on", "Re:Zero on", [("Re:Zero",) * 2]),
    "interlanguage": ("A[[fr:Pomme]] b", "A b", []),
    "shown interwiki": ("[[:fr:Pomme]] and [[wikt:apple|apple]]", "fr:Pomme and apple", []),
    "namespace": ("[[Wikipedia:Stub|stub]] [[User:X|X]]", "stub X", []),
    "templates of lists and books": (
        "{{columns-list|colwidth=9em|\n* An [[ant]] is small\n* A [[bee]]}}\n"
        "The Book of Hawai{{okina}}i. A. {{ISBN|0-19}}.",
        "An ant is small\nA bee\nThe Book of Hawaiʻi. A. ISBN 0-19.",
        [("ant", "Ant"), ("bee", "Bee")],
    ),
    "poem": (
        "He said:<poem>\nRoses are [[red]],<ref>x</ref>\n''violets'' {{lang|fr|bleu}}\n</poem>So.",
        "He said:\nRoses are red,\nviolets bleu\nSo.",
        [("red", "Red")],
    ),
    "variants": (
        "-{T|zh-hans:a;zh-hant:b}-\n[[电子|-{zh-hans:电子; zh-hant:電子}-]]和"
        "-{zh-cn:软件;zh-tw:軟體}-和-{硬件}-。",
        "电子和软件和硬件。",
        [("电子", "电子")],
    ),
    "braces of chemists": ("The acid 2-{4-[b]phenyl}-c", "The acid 2-{4-[b]phenyl}-c", []),
    "category": ("A.[[Category:Fruit|x]] [[category: Food]]", "A.", []),
    "category shown": ("[[:Category:Fruit]] b", "Category:Fruit b", []),
    "file": ("[[File:A.jpg|thumb|200px|An [[apple]] {{x}}]]A [[b]].", "A b.", [("b", "B")]),
    "image": ("[[image:A.jpg|left]]A.", "A.", []),
    "two links": ("[[a]], [[b|c]] [[d]]", "a, c d", [("a", "A"), ("c", "B"), ("d", "D")]),
    "link twice": ("[[a]] [[a]]", "a a", [("a", "A"), ("a", "A")]),
    "bold": (
        "'''An''' ''[[Apple|old]] ''[[fruit]]",
        "An old fruit",
        [("old", "Apple"), ("fruit", "Fruit")],
    ),
    "bold within": ("[[Apple|'''old''' ''fruit'']]", "old fruit", [("old fruit", "Apple")]),
    "five quotes": ("'''''Both''''' [[a]]", "Both a", [("a", "A")]),
    "possessive": ("[[Newton]]'s law", "Newton's law", [("Newton", "Newton")]),
    "italic possessive": ("''[[Hamlet]]'''s plot", "Hamlet's plot", [("Hamlet", "Hamlet")]),
    "bold possessive": ("'''dog'''s [[a]]", "dogs a", [("a", "A")]),
    "possessive after a space": ("''a ''' b [[c]]", "a ' b c", [("c", "C")]),
    "italic one-letter word": ("''x 'y'''s [[c]]", "x 'y's c", [("c", "C")]),
    "one-letter word first": ("''ab''' c l'''été [[d]]''' e", "ab c l'été d e", [("d", "D")]),
    "rock 'n' roll": ("[[Rock 'n' roll]]", "Rock 'n' roll", [("Rock 'n' roll",) * 2]),
    "entities": ("[[R&amp;B]]&nbsp;&ndash; x &lt; y", "R&B – x < y", [("R&B", "R&B")]),
    "numeric entity": ("caf&#233; &#x41;", "café A", []),
    "template": ("A {{cite|[[b]]|c={{d}}}} e.", "A e.", []),
    "template joins": ("A{{fact}}, b", "A, b", []),
    "language template": ("({{lang|fr|[[pomme]]}})", "(pomme)", [("pomme", "Pomme")]),
    "emptied brackets": ("Apple ({{IPA-fr|x}}; {{y}}) is", "Apple is", []),
    "brackets kept": ("Apple ({{IPA-fr|x}}, [[fruit]])", "Apple (fruit)", [("fruit", "Fruit")]),
    "reference": ("A.<ref name=x>Not [[b]].</ref> C<ref name=x /> d.", "A. C d.", []),
    "comment": ("A<!-- [[b]] --> c", "A c", []),
    "tags": ("<b>A</b> <span class='x'>[[b]]</span><br/>c", "A b\nc", [("b", "B")]),
    "math": ("A\n: <math>x_{[[y]]}</math>\nb", "A\nb", []),
    "gallery": ("A\n<gallery>\nFile:A.jpg|[[b]]\n</gallery>\nc", "A\nc", []),
    "nowiki": ("A <nowiki>'''b'''</nowiki>", "A b", []),
    "external": ("[http://a.org An [[x]]] b http://c.org", "An x b", [("x", "X")]),
    "table": ('A\n{| class="x"\n|-\n! [[b]]\n| c\n|}\nd', "A\nd", []),
    "table in a table": ("A\n{|\n|\n{|\n| b\n|}\n|}\nd", "A\nd", []),
    "list": ("* [[a]] x\n* b\n# c\n: d", "a x\nb\nc\nd", [("a", "A")]),
    "break in a link": ("[[Apple|old\nfruit]] c", "old fruit c", [("old fruit", "Apple")]),
    "br in a link": ("[[Apple|old<br />fruit]]", "old fruit", [("old fruit", "Apple")]),
    "spaces in a link": ("a [[Apple| old  fruit ]] c", "a old fruit c", [("old fruit", "Apple")]),
    "link in brackets": ("A.[[[Wikipedia:Citing|proof]]] b", "A.proof b", []),
    "magic words": ("__NOTOC__A __TOC__ b", "A b", []),
    "invisible": ("a\u200bb \u200e[[c]]\u200f", "ab c", [("c", "C")]),
    "empty anchor": ("a [[Apple| ]] b", "a b", []),
    "files of other wikis": ("A [[Bild:B.jpg|mini|an [[b]]]]c[[画像:D.png]] e", "A c e", []),
    "escaped tags": (
        "&lt;b&gt;, [[a|v&lt;int&gt; x]], <code>&lt;p></code>&#60;p> <nowiki><i>&lt;/i></nowiki>",
        "<b>, v<int> x, <p><p> <i></i>",
        [("v<int> x", "A")],
    ),
    "blocks": (
        "<p>a</p><p>[[b]]</p>c<ul><li>d</li><li>e</li></ul>f<div>[[g]]</div>h<p>i",
        "a\nb\nc\nd\ne\nf\ng\nh i",
        [("b", "B"), ("g", "G")],
    ),
    "quotation": ("A:<blockquote>B.</blockquote>C", "A:\nB.\nC", []),
    "unclosed link": ("An [[apple is [[red]].", "An [[apple is red.", [("red", "Red")]),
    "unclosed template": ("A {{b [[c]] d.", "A {{b c d.", [("c", "C")]),
    "unclosed quotes": ("A '''b [[c]] d.", "A b c d.", [("c", "C")]),
    "unclosed tag": ("A <b>b [[c]] d.", "A b c d.", [("c", "C")]),
    "closing only": ("A </b> b [[c]]}} d.", "A b c}} d.", [("c", "C")]),
}


@pytest.mark.parametrize("name", CASES)
def test_text_and_links(name):
    wikitext, text, links = CASES[name]
    assert lead(wikitext)[:2] == (text, links)


@pytest.mark.parametrize(
    ("wikitext", "drops"),
    [
        ("[[File:A.jpg|[[b]]]] [[Category:C]]", {"file or category": 2}),
        ("[[fr:Pomme]] [[:de:Apfel]] [[wikt:a|b]]", {"link to another wiki": 3}),
        ("[[Talk:A]] [[Help:B|c]]", {"link to another namespace": 2}),
        ("[[#History]]", {"link inside the page": 1}),
        ("[[A|]] [[B|<!-- -->]]", {"empty anchor text": 2}),
        ("[[A|b {{lang|fr|[[C]]}} d]]", {"link inside a link": 1}),
    ],
)
def test_every_drop_has_its_reason(wikitext, drops):
    assert lead(wikitext)[2] == drops


def test_sections_and_see_also():
    page = parse_page(
        "fruit",
        "Lead [[a]].\n== One ==\nx [[b]].\n=== ''Two'' ===\ny\n"
        "== See also ==\n* [[c|d]]\n* [[e]]\n* [[c]]\n== External links ==\nz",
        Site(),
    )
    assert (page.key, page.title, page.lead) == ("Fruit", "fruit", "Lead a.")
    assert [(s.level, s.title, s.body.text) for s in page.sections] == [
        (1, "", "Lead a."),
        (2, "One", "x b."),
        (3, "Two", "y"),
        (2, "External links", "z"),
    ]
    assert page.see_also == ["C", "E"]
    assert page.word_count == 2 + 2 + 1 + 1


PIECES = st.sampled_from(
    ["[[", "]]", "|", "'''", "''", "{{", "}}", "<ref>", "</ref>", "<b>", "{|", "|}", "\n", "== ",
     "<p>", "</p>", "<nowiki>", "</nowiki>", "&lt;", "a", "B c", " ", "[", "]", "File:",
     "&amp;", "<!--", "-->", "[[Apple]]", "[[Pear|old pear]]"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_offsets_are_exact_in_any_markup(wikitext):
    for section in parse_page("Page", wikitext, Site()).sections:
        text, links = section.body.text, section.body.links
        for link in links:
            assert link.anchor and text[link.start : link.end] == link.anchor
            assert "\n" not in link.anchor and link.anchor == link.anchor.strip()
            assert not DEBRIS.search(link.target)
        spans = [(link.start, link.end) for link in links]
        assert all(one[1] <= two[0] for one, two in pairwise(spans))


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{convert|1300|mi|km}}", "1,300 miles"),
        ("{{Convert|2|to|3|m|ft|abbr=on}}", "2 to 3 m"),
        ("{{convert|1|ft|m}}", "1 foot"),
        ("{{convert|12|ft|adj=on}}", "12-foot"),
        ("{{cvt|-40|C|F}}", "-40 °C"),
        ("{{convert|3+1/2|unheard|x}}", "3+1/2 unheard"),
        ("{{nihongo|'''[[a|A]]'''|ア|extra=x}}", "A (ア)"),
        ("{{lang-fr|''mot''}}", "mot"),
        ("{{ill|A b|fr|C|lt=D}}", "D"),
        ("{{val|6.241|e=18|u=m}}", "6.241 × 1018 m"),
        ("{{frac|1|2|3}}", "1 2/3"),
        ("{{as of|2014|lc=y}}", "as of 2014"),
        ("{{nowrap|{{frac|2}} {{convert|2|km}}}}", "1/2 2 kilometres"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{transl|ar|ALA|Allāh}} {{transl|ar|ilāh}} {{script|Grek|xyz}}", "Allāh ilāh xyz"),
        ("said (pronounced {{IPA|[x]}}, {{IPA|fr|y}})", "said (pronounced [x], y)"),
        ("{{harvtxt|A|2000}} {{harvtxt|A|B|1999|p=1}}", "A (2000) A & B (1999)"),
        ("{{convert|434|ft|6|in|m}}", "434 feet 6 inches"),
        ("{{convert|1|st|1|lb|kg}} {{cvt|9|lb|8|oz}}", "1 stone 1 pound 9 lb 8 oz"),
        ("{{convert|5|ft|1|in|adj=on}} {{convert|1|mi|7|yd|m|abbr=on}}", "5-foot-1-inch 1 mi 7 yd"),
        ("{{convert|2|yd|1|ft|to|3|yd|2|ft}}", "2 yards 1 foot"),
        ("5{{e|6}} 5{{x10^|6}} 5{{′}} 6{{″}}", "5 × 106 5 × 106 5′ 6″"),
        ("{{gaps|1|234|567}} {{±|1}}", "1234567 ±1"),
        ("{{as of|2010|5|3|lc=y}} {{as of|2010|alt=in May}}", "as of 2010 in May"),
        ("{{bibleverse|1|John|3:16}} {{bibleverse||John|3:16}}", "1 John 3:16 John 3:16"),
        ("{{url|a.b|c}} {{mono|d}} {{key|e}}", "c d e"),
    ],
)
def test_inline_templates(template, shown):
    assert lead(f"One is {template} here.")[0] == f"One is {shown} here."


def test_a_sentence_with_a_hole_is_dropped_and_counted():
    text, links, drops = lead(
        "An [[b]] is here. It is {{unheard|of}} and [[c]].\nD [[e]]{{note 1}} [[f]]."
    )
    assert (text, [anchor for anchor, _ in links]) == ("An b is here. \nD e f.", ["b", "e", "f"])
    assert drops["sentence in which a template that is not known left a hole"] == 1
    assert lead("A. {{box}} B ({{x}}) c.{{y}} {{z}}")[0] == "A. B c."


@pytest.mark.parametrize(
    "sentence",
    [
        "The value of <math>x</math> is less than this.",
        "A formula <chem>H2O</chem> is here.",
        "Call <syntaxhighlight lang=c inline>x</syntaxhighlight> and <score>y</score>.",
        "If so, <math>x</math> is less.",
        "A b (pronounced {{IPAc-en|x}}) is here.",
        "For this, see {{harv|A|2000}}.",
        "It weighs 5{{unheard|6}} kg.",
        "{{company|A}} is a good one.",
        "{{company|A}}, a good one, is here.",
        "{{company|A}}'s are good.",
        "Here Mr. {{unheard}} is.",
        "It is high ({{formatnum: 3003}} m).",
        "'''{{PAGENAME}}''' is a town.",
        "[[A|{{unheard}}]] is a town.",
    ],
)
def test_a_hole_in_a_sentence(sentence):
    assert lead(f"One.\n{sentence}\nTwo.")[0].split() == ["One.", "Two."]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("{{box}}'''a''' is", "a is"),
        ("{{box}}\na is", "a is"),
        ("{{box}} A is", "A is"),
        ("A (b, 1, {{c}}, {{d}}) is", "A (b, 1,, ) is"),
        ("A ({{b}}, born here) is", "A (born here) is"),
        ("In 2000{{efn-x|a}} b<ref>c</ref> is{{ar icon}} d", "In 2000 b is d"),
        ("In {{flagicon|A}} [[a]] it is {{anchor|b}}b", "In a it is b"),
        ("A <gallery>b</gallery> c <ref>d</ref> e", "A c e"),
        ("A.{{who?}} {{clarification needed}} b {{when?}} {{pron-en|c}} d", "A. b d"),
    ],
)
def test_no_hole(wikitext, text):
    assert lead(wikitext)[0] == text


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("A", "[[/B]]", "A/B"),
        ("A", "[[/B/]]", "A/B"),
        ("A/B", "[[../C#d|e]]", "A/C"),
        ("A/B/C", "[[../../]]", "A"),
        ("A/B", "[[../]]", "A"),
        ("A", "[[A/B]]", "A/B"),
    ],
)
def test_subpages(page, link, target):
    (found,) = parse_page(page, f"See {link}.", Site()).sections[0].body.links
    assert found.target == target

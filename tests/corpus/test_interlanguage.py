"""Lists of titles in other languages, as the articles of a real dump end with them."""

import pytest
from wikitexts import wikitexts

from harp_plugin.corpus.wikitext import Site, parse_page
from harp_plugin.corpus.wikitext.lines import INTERLANGUAGE, without_interlanguage

ENDS = {
    "on a line": ("An acid.\n\n", "arz:حمضnew:अम्ल\n"),
    "one title": ("An acid.\n\n", "kaa:Leonard Euler"),
    "two letters": ("An acid.\n", "fr:Acide"),
    "behind a link": ("* [[Alkali]]", "new:अम्लpnb:تیزاب"),
    "behind a full stop": ("It is music.", "arz:انتونين دفوراك"),
    "behind a word": ("* river tours", "krc:Амазонкаmwl:Riu Amazonas"),
    "behind a word, with Latin titles": ("a general", "ace:Leumoeml:Bàmwl:Baca"),
    "with spaces": ("An age.\n\n", "eml:Egétt antîg arz:مصر القديمهmwl:Antigo Eigito"),
    "behind a space": ("[[Digestive system]]", " new:कवं"),
    "names with commas": ("Text.\n", "mhr:Гог, Винсент ванpnb:ونسنٹ فان گوگ"),
}


@pytest.mark.parametrize(("text", "titles"), ENDS.values(), ids=ENDS)
def test_a_list_goes(text, titles):
    assert without_interlanguage(text + titles) == text.rstrip()
    page = parse_page("Page", text + titles, Site())
    assert page.drops[INTERLANGUAGE] == 1
    assert page.lead == parse_page("Page", text, Site()).lead


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "It is an Interface:Title",
        "See http://en.example.org:80",
        "The rule is: nobody",
        "What is new: a roof",
        "Ten to one is 10:1, as:b",
        "arz:حمض\nThe end.",
        "new:अम्ल [[link]]",
        "The new:Title",
        "A psalm (Psalm 23:4)",
        "[[Commons:Category:X]]",
        "en:" + "A sentence that is far too long for a title, " * 4,
        "| image=a.jpg\n}}",
    ],
)
def test_text_stays(text):
    assert without_interlanguage(text) == text


def test_every_article_of_a_real_dump(shared_data):
    """Of 150 articles 145 end with a list; what goes holds the converter's twelve codes only."""
    codes = ("ace", "arz", "ckb", "eml", "kaa", "krc", "mhr", "mwl", "new", "pcd", "pnb", "pnt")
    count = 0
    for _, wikitext in wikitexts(shared_data / "wiki" / "simplewiki-core150.xml.bz2"):
        left = without_interlanguage(wikitext)
        if left != wikitext:
            gone = wikitext[len(left) :].strip()
            assert gone.startswith(tuple(f"{code}:" for code in codes)) and "\n" not in gone
            count += 1
    assert count == 145


def test_articles_without_lists(shared_data):
    for _, wikitext in wikitexts(shared_data / "wiki" / "enwiki-p10p30302-shortened.xml.bz2"):
        assert without_interlanguage(wikitext) == wikitext


@pytest.mark.timeout(30)
def test_time_grows_with_the_length_alone():
    for text in ("\n" * 800_000, "a" * 800_000, "arz:" * 400_000, "a:b" * 400_000, "[x " * 400_000):
        without_interlanguage(text)

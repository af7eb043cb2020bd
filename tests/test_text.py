"""Titles by MediaWiki's rules (MediaWikiTitleCodec, ucfirst), anchors by hand."""

import pytest

from harp_plugin.text import normalise_anchor, normalise_title, words


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("apple", "Apple"),
        ("Apple pie", "Apple pie"),
        ("apple_pie", "Apple pie"),
        ("__apple__ _pie__", "Apple pie"),
        ("  apple \t pie ", "Apple pie"),
        ("apple\u00a0pie", "Apple pie"),
        ("apple\u3000pie", "Apple pie"),
        (":apple", "Apple"),
        (": apple", "Apple"),
        ("apple#History", "Apple"),
        ("apple_#History of", "Apple"),
        ("#History", ""),
        ("", ""),
        ("R&amp;B", "R&B"),
        ("AT&T", "AT&T"),
        ("Rock&reggae", "Rock&reggae"),  # MediaWiki asks for the semicolon: no ® here
        ("caf&eacute;", "Café"),
        ("&#233;t&#xE9;", "Été"),
        ("C%2B%2B", "C++"),
        ("Latvie%C5%A1u", "Latviešu"),
        ("50%", "50%"),
        ("100%FF", "100%FF"),  # not UTF-8
        ("\u200eapple\u200f", "Apple"),
        ("\u202aapple\u202c", "Apple"),
        ("e\u0301te\u0301", "Été"),  # NFC
        ("éclair", "Éclair"),
        ("ßeta", "ßeta"),  # PHP's ucfirst leaves what would become two letters
        ("iPod", "IPod"),
        ("ещё", "Ещё"),
        ("東京", "東京"),
        ("2001: a space odyssey", "2001: a space odyssey"),
    ],
)
def test_title(written, title):
    assert normalise_title(written) == title
    assert normalise_title(title) == title


def test_title_of_a_case_sensitive_wiki():
    assert normalise_title("apple_pie", first_letter=False) == "apple pie"


@pytest.mark.parametrize(
    ("written", "anchor"),
    [
        ("Apple", "apple"),
        ("  The  Apple ", "the apple"),
        ("“Apple”,", "apple"),
        ("C++", "c"),
        ("++", "++"),
        ("ﬁsh", "fish"),
        ("ＡＢＣ", "abc"),
        ("U.S.", "u.s"),
        ("", ""),
    ],
)
def test_anchor(written, anchor):
    assert normalise_anchor(written) == anchor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a test_case", ["It's", "a", "test", "case"]),
        ("rock ’n’ roll, 1990s", ["rock", "n", "roll", "1990s"]),
        ("naïve 東京 été", ["naïve", "東京", "été"]),
        ("... --- !", []),
        ("O’Neil-Smith", ["O’Neil", "Smith"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected

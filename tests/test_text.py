"""Titles by MediaWiki's rules (MediaWikiTitleCodec, ucfirst), anchors by hand, words by Unicode."""

import bz2
import re
import unicodedata
from itertools import groupby

import pytest
import regex

from harp_plugin.text import WORD, normalize_anchor, normalize_title, words


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
    assert normalize_title(written) == title
    assert normalize_title(title) == title


def test_title_of_a_case_sensitive_wiki():
    assert normalize_title("apple_pie", first_letter=False) == "apple pie"


@pytest.mark.parametrize(
    ("written", "anchor"),
    [
        ("Apple", "apple"),
        ("  The  Apple ", "the apple"),
        ("“Apple”,", "apple"),
        ("C++", "c++"),
        ("“C++”,", "c++"),
        ("C+", "c"),
        ("F#.", "f#"),
        ("3#", "3"),
        ("(.NET)", ".net"),
        ("...net", "net"),
        ("++", "++"),
        ("ﬁsh", "fish"),
        ("ＡＢＣ", "abc"),
        ("U.S.", "u.s"),
        ("(हिन्दी)", "हिन्दी"),  # ends with a vowel sign
        ("«كِتَابٌ»", "كِتَابٌ"),
        ("", ""),
    ],
)
def test_anchor(written, anchor):
    assert normalize_anchor(written) == anchor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a test_case", ["It's", "a", "test", "case"]),
        ("rock ’n’ roll, 1990s", ["rock", "n", "roll", "1990s"]),
        ("... --- !", []),
        ("O’Neil-Smith", ["O’Neil", "Smith"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


NFD = unicodedata.normalize("NFD", "Tiếng Việt ở Huế")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("தமிழ் மொழி, 12", ["தமிழ்", "மொழி", "12"]),
        ("قَرَأَ الوَلَدُ كِتَابًا.", ["قَرَأَ", "الوَلَدُ", "كِتَابًا"]),
        ("בְּרֵאשִׁית בָּרָא", ["בְּרֵאשִׁית", "בָּרָא"]),
        (NFD, NFD.split()),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("ශ්\u200dරී ලංකා", ["ශ්\u200dරී", "ලංකා"]),
        ("Donau\u00addampf\u00adschiff", ["Donau\u00addampf\u00adschiff"]),
        ("1990s’ 3½ m² Ⅻ", ["1990s", "3½", "m²", "Ⅻ"]),
        ("한국어 위키", ["한국어", "위키"]),
        ("it's '90s rock'n'roll'", ["it's", "90s", "rock'n'roll"]),
    ],
)
def test_words_of_scripts_with_spaces(text, expected):
    """The same words as by Unicode's rules for word boundaries (UAX #29)."""
    assert words(text) == expected
    if "½" not in text:  # UAX #29 counts fractions and exponents among the symbols
        assert words_of_unicode(text) == expected


def words_of_unicode(text):
    """What stands between the word boundaries of UAX #29, if it holds a letter or a digit."""
    parts = regex.split(r"\b", text, flags=regex.VERSION1 | regex.WORD)
    return [part for part in parts if regex.search(r"[\p{L}\p{N}]", part)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("naïve 東京 été", ["naïve", "東", "京", "été"]),
        ("東京タワーへ行く", ["東", "京", "タワー", "へ", "行", "く"]),
        ("iPhone手机2台", ["iPhone", "手", "机", "2", "台"]),
        ("(Thai: ที่นี่ ๒๕)", ["Thai", "ที่", "นี่", "๒๕"]),
        ("ລາວ ខ្មែរ", ["ລ", "າ", "ວ", "ខ្", "មែ", "រ"]),
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
    ],
)
def test_each_letter_is_a_word_in_scripts_without_spaces(text, expected):
    """A letter with its marks, so that a clause is never one word; a run of Katakana is one."""
    assert words(text) == expected


@pytest.mark.parametrize("text", ["❤️", "\u0301\u0301", ".\u0301.", "_-'’", ""])
def test_no_word_without_a_letter_or_digit(text):
    assert words(text) == []


def words_by_category(text):
    """Runs of the categories L, M and N, by the interpreter's own tables; joiners inside them."""

    def belongs(place):
        if unicodedata.category(text[place])[0] in "LMN":
            return True
        inside = 0 < place < len(text) - 1 and text[place] in "'’\u00ad\u200c\u200d"
        return inside and all(
            unicodedata.category(text[near])[0] in "LMN" for near in (place - 1, place + 1)
        )

    runs = groupby(range(len(text)), key=belongs)
    return ["".join(text[place] for place in run) for inside, run in runs if inside]


@pytest.mark.parametrize("file", ["simplewiki-core150.xml.bz2", "ltgwiki-pages-articles.xml.bz2"])
def test_words_of_real_text(shared_data, file):
    """Words of two dumps equal the runs of the categories; scripts without spaces are left out."""
    text = bz2.decompress((shared_data / "wiki" / file).read_bytes())[: 1 << 20].decode(
        errors="ignore"
    )
    text = regex.sub(r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]+", " ", text)
    expected = [run for run in words_by_category(text) if re.search(r"[^\W_]", run)]
    assert len(expected) > 50_000
    assert words(text) == expected


@pytest.mark.timeout(30)
def test_time_grows_with_the_length_alone():
    for text in ("\u0301" * 800_000, "'" * 800_000, "a'" * 400_000, "ก\u0e31" * 400_000):
        assert sum(match.end() - match.start() for match in WORD.finditer(text)) <= len(text)
        normalize_anchor(text)

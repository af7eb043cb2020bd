"""What PISA reads of texts."""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import pytest
import snowballstemmer

from harp_plugin.ranking.terms import ANALYSIS, plain, terms

LANGUAGES = {
    "arabic": "الكتاب كتاب والكتب المدرسة مدرسة",
    "armenian": "քաղաք քաղաքներ աշխատանք աշխատանքները ծառ",
    "greek": "βιβλίο βιβλία ΒΙΒΛΊΟ σελίδες σελιδα",
    "hindi": "किताबें किताब किताबों पृष्ठ",
    "russian": "Яблоко яблоками ёлка ЕЛКИ поисковый поисковая",
    "tamil": "புத்தகங்கள் புத்தகம் பக்கம்",
}


def same(found, expected):
    """Whether equal words stand at the same places of both."""
    assert len(found) == len(expected)
    assert len({*zip(found, expected, strict=True)}) == len({*found}) == len({*expected})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Łódź Ærø œuvre", "Lodz AEro oeuvre"),
        ("\u0662\u0660\u0662\u0664 1\ufe0f\u20e3 \u2764\ufe0f", "2024 1  "),
        ("a\u2260b", "a b"),
        ("1 \U0001ccf0 2", "1   2"),
        ("plain text 1", "plain text 1"),
        ("Spärck ﬁ é e\u0301 Å", "Sparck fi e e A"),
        ("a\0b → c", "a b   c"),
        ("\ud83d!", " !"),
        ("soft\u00adware x² ½ Straße", "software x2 1 2 Strasse"),
    ],
)
def test_plain_text(text, expected):
    assert plain(text) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_other_alphabets_are_stemmed(language):
    words = LANGUAGES[language].split()
    stemmer = snowballstemmer.stemmer(language)
    same(terms(LANGUAGES[language]), stemmer.stemWords([word.lower() for word in words]))
    assert len({*terms(LANGUAGES[language])}) < len(words)


@pytest.mark.parametrize(
    "text",
    ["全文検索エンジン", "ひらがなとカタカナ", "データベース", "검색엔진", "ภาษาไทย", "搜索引擎"],
)
def test_pairs_of_letters_are_words_where_no_spaces_are_written(text):
    letters = ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"] if text[0] == "ภ" else text
    same(terms(text), [*pairwise(letters)])


def test_a_letter_alone_is_a_word():
    same(terms("字 漢字 字"), ["字", "漢字", "字"])


def test_a_word_of_two_scripts_is_cut_between_them():
    assert terms("Kubernetesでは") == [*terms("Kubernetes"), *terms("では")]
    assert terms("Привет2") == [*terms("привет"), "2"]
    assert terms("café日本") == [*terms("cafe"), *terms("日本")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Росси\u0301я", "Россия"),
        ("שָׁלוֹם", "שלום"),
        ("Μαΐου", "ΜΑΪΟΥ"),
        ("πρωτεΐνη", "ΠΡΩΤΕΪΝΗ"),
        ("ἀρχή", "αρχή"),
        ("क्\u200dष", "क्ष"),
        ("葛\U000e0100", "葛"),
        ("naïve\ufe0f", "naive"),
        ("й", "и\u0306"),
        ("´слово´", "слово"),
        ("пʼять", "п'ять"),
        ("Ħamrun", "hamrun"),
        ("کتاب\u200cها", "کتاب ها"),
        ("F\u20d7", "F"),
    ],
)
def test_forms_of_one_word(one, other):
    assert terms(one) == terms(other) and terms(one)


def test_threads_share_no_stemmer():
    words = [f"{''.join(letters)}ами" for letters in product("бвгджзклмн", repeat=4)]
    expected = {word: snowballstemmer.stemmer("russian").stemWord(word) for word in words}
    texts = [" ".join(words[n::4]) for n in range(4)] * 2
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(terms, texts))
    finally:
        sys.setswitchinterval(interval)
    for text, of_text in zip(texts, found, strict=True):
        same(of_text, [expected[word] for word in text.split()])


def test_half_width_and_full_width_letters_are_the_same():
    assert terms("ﾃﾞｰﾀ ＡＢＣ") == terms("データ ABC")


def test_long_words_are_short_and_stay_apart():
    found = terms("я" * 10_000 + " " + "日本" * 1000)
    assert len({*found}) == 3 and max(map(len, found)) < 400


def test_indexes_of_other_terms_have_another_name():
    """Where this fails, `terms` or a stemmer has changed: ANALYSIS needs another number."""
    texts = [*LANGUAGES.values(), "Naïve Łódź don't U.S.A. C++ 日本語 한국어 ภาษาไทย ½ כתב"]
    digest = hashlib.sha256(" ".join(terms(" ".join(texts))).encode()).hexdigest()
    assert (ANALYSIS["analysis"], digest[:16]) == (2, "b1b9f5b4b353c648")


@pytest.mark.parametrize(
    "text", ["க்" * 200_000, "a" * 200_000, "é" * 200_000, "aé" * 100_000, "日" * 200_000]
)
def test_time_grows_with_the_length_alone(text):
    assert plain(text)

"""What PISA reads of texts."""

import pytest

from harp_plugin.ranking.terms import plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text 1", "plain text 1"),
        ("Spärck ﬁ é e\u0301 Å", "Sparck fi e e A"),
        ("a\0b 日 c", "a b   c"),
        ("\ud83d!", " !"),
    ],
)
def test_plain_text(text, expected):
    assert plain(text) == expected

"""Earlier work is used, replaced or refused by what it was made from."""

from pathlib import Path

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.work.provenance import MadeFrom, OverwriteRules

WORK = Path("work")
STORED = MadeFrom({"a": 1, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "abc"})
NEITHER = OverwriteRules()
OVERWRITE = OverwriteRules(overwrite=True)
KEEP = OverwriteRules(keep=True)
SAME = MadeFrom({"a": 1, "b": (1, 2)}, {"numpy": "2.0"}, {"dump.xml": "abc"})
OTHER_SETTINGS = MadeFrom({"a": 2, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "abc"})
OTHER_INPUTS = MadeFrom({"a": 1, "b": [1, 2]}, {"numpy": "2.0"}, {"dump.xml": "def"})
OTHER_VERSIONS = MadeFrom({"a": 1, "b": [1, 2]}, {"numpy": "2.1"}, {"dump.xml": "abc"})


@pytest.mark.parametrize("rules", [NEITHER, OVERWRITE, KEEP])
def test_same_work_is_used(rules):
    assert SAME.can_use(WORK, STORED, rules)


@pytest.mark.parametrize(
    ("made_from", "rules", "used"),
    [
        (OTHER_SETTINGS, OVERWRITE, False),
        (OTHER_INPUTS, OVERWRITE, False),
        (OTHER_VERSIONS, OVERWRITE, False),
        (OTHER_VERSIONS, KEEP, True),
        (OTHER_VERSIONS, OverwriteRules(overwrite=True, keep=True), True),
    ],
)
def test_rules_decide(made_from, rules, used):
    assert made_from.can_use(WORK, STORED, rules) is used


@pytest.mark.parametrize(
    ("made_from", "rules", "message"),
    [
        (OTHER_SETTINGS, NEITHER, r"work was made from other settings \(a: 1 then, 2 now\)"),
        (OTHER_SETTINGS, KEEP, r"name another --output-dir, or give --overwrite to replace it"),
        (OTHER_INPUTS, NEITHER, r"content of dump\.xml: abc then, def now"),
        (OTHER_VERSIONS, NEITHER, r"other package versions \(numpy: 2\.0 then, 2\.1 now\).*--keep"),
    ],
)
def test_refusals_name_what_differs(made_from, rules, message):
    with pytest.raises(HarpError, match=message):
        made_from.can_use(WORK, STORED, rules)


def test_an_input_that_is_not_known_yet_is_no_difference():
    assert MadeFrom(STORED.settings, STORED.versions, {"dump.xml": None}).can_use(
        WORK, STORED, NEITHER
    )


def test_at_most_three_differences_are_named():
    many = MadeFrom(dict.fromkeys("abcde", 1), {})
    assert many.difference(MadeFrom({"a": "x" * 99}, {})) == (
        f"a: {'x' * 57}... then, 1 now, b: nothing then, 1 now, c: nothing then, 1 now, and 2 more"
    )

"""A small valid source of each format, to start mutations from."""

from __future__ import annotations

import bz2
import json

from dumps import dump_xml

_WIKITEXT = (
    "{{Infobox|a={{b|c}}}} '''Apple''' is a [[fruit]] of a [[tree|trees]]s.<ref>x</ref> "
    "[[File:a.jpg|thumb|An [[apple]]]]\n== See also ==\n* [[Pear]]\n=== x ===\n{| a\n|-\n| b\n|}\n"
    "<div>[http://a.b c] &amp; &lt; <nowiki>[[x]]</nowiki></div> [[:Category:y]] {{lang|fr|mot}}"
)
_ANCHORS = {
    "sentence": "The apple is a fruit.",
    "tokenized_sentence": ["The", "apple", "is", "a", "fruit."],
    "anchors": [[{"text": "apple", "pos": [1, 1], "passage": "An apple."}]],
}
_DUMP = dump_xml({"Apple": _WIKITEXT, "B": "[[Apple]]"}, {"C": "B"}).encode()

SEEDS: dict[str, list[bytes]] = {
    "mediawiki": [_DUMP, bz2.compress(_DUMP)],
    "harp-anchors": [json.dumps(_ANCHORS).encode() + b"\n"],
}

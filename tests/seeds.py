"""Small valid sources of each format, to start mutations from, and the words of the formats."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zlib

import pyarrow as pa
from dumps import dump_xml, page_xml

WIKITEXT = (
    "{{Infobox|a={{b|c}}}} '''Apple''' is a [[fruit]] of a [[tree|trees]]s.<ref>x</ref> "
    "[[File:a.jpg|thumb|An [[apple]]]]\n== See also ==\n* [[Pear]]\n=== x ===\n{| a\n|-\n| b\n|}\n"
    "<div>[http://a.b c] &amp; &lt; <nowiki>[[x]]</nowiki></div> [[:Category:y]] {{lang|fr|mot}}"
)
HTML = (
    '<!DOCTYPE html><html lang="en"><head><title>Apple - A site</title><base href="/a/">'
    '<link rel="canonical" href="/apple"></head><body><nav><a href="/">Home</a></nav><main>'
    '<h1>Apple</h1><p>An <b>apple</b> is a <a href="fruit.html#x">fruit</a> &amp; of a <a '
    'href="http://b.org/t?u=v">tree</a>.</p><h2>Use</h2><ul><li><a href="pie">Pie</a> and more of '
    "it</li></ul><table><tr><th>a<td>b</table><pre>x</pre><img src=a></main><footer>F</footer>"
)
MARKDOWN = """---
title: Apple
keywords: [apples, "apple trees"]
aliases: [/old/apple/, Pomum]
---
# Apple

An *apple* is a [fruit](fruit.md#x) of a [tree][t] &amp; `code`.\\
See <xref:System.String> and ![x](a.png).

> [!NOTE]
> A [note](../x/).

| Name | Use |
|---|---|
| [Pie](pie.md) | A pie | b |

## See also

- [Pear](/pear)

```text
[x](y)
```

[t]: /a/tree "T"
"""
_PARSOID = (
    '<html><head><base href="//en.wikipedia.org/wiki/"/></head><body lang="en"><section><p>An '
    '<b>apple</b> ( , ) is a <a rel="mw:WikiLink" href="./Fruit_(food)?x=1#y">fruit</a><sup class='
    '"mw-ref" typeof="mw:Extension/ref"><a href="./Apple#c">[1]</a></sup>.</p></section><section>'
    '<h2>See also</h2><ul><li><a rel="mw:WikiLink" href="./Pear">Pear</a></ul></section></body>'
)
_CLUEWEB = {"ClueWeb22-ID": "clueweb22-en0000-00-00001", "Language": "en"}
_ANCHOR = ["http://b.co.uk/x", "34F4", "the apple", "0", "en", "clueweb22-en0000-00-00002"]


def _lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _tar(mode: str, **members: bytes) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name.replace("_", "."))
            member.size = len(content)
            member.pax_headers = {"comment": "é"}
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def _warc(block: bytes, kind: str = "response", media: str = "application/http") -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://www.a.co.uk/a\r\n"
    head += f"Content-Type: {media}\r\nContent-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def _response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", *headers]
    return _warc("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


_DUMP = dump_xml({"Apple": WIKITEXT, "B": "[[Apple]]"}, {"C": "B"}).encode()
_ARTICLE = {
    "name": "Apple tree",
    "identifier": 7,
    "namespace": {"identifier": 0},
    "in_language": {"identifier": "en"},
    "is_part_of": {"identifier": "enwiki"},
    "article_body": {"html": _PARSOID},
    "redirects": [{"name": "apple trees"}],
}
_ENTERPRISE = _lines(_ARTICLE, {**_ARTICLE, "name": "B"})
_WARC = b"".join(
    [
        _warc(b"software: x\r\n", "warcinfo", "application/warc-fields"),
        _response(HTML.encode()),
        _response(b"", "301 Moved", "Location: ../c?d#e"),
        _response(zlib.compress(HTML.encode()), "200 OK", "Content-Encoding: deflate"),
        _response(b"5\r\n<p>ab\r\n0\r\n\r\n", "200 OK", "Transfer-Encoding: chunked"),
        _warc(HTML.encode(), "resource", "text/html"),
    ]
)

SEEDS: dict[str, list[bytes]] = {
    "mediawiki": [_DUMP],
    "markdown": [
        MARKDOWN.encode(),
        MARKDOWN.encode("utf-16"),
        b"+++\ntitle = 'Apple'\n+++\nAn apple.",
    ],
    "html": [HTML.encode(), HTML.encode("utf-16"), _PARSOID.encode()],
    "warc": [_WARC, gzip.compress(_WARC)],
    "wikimedia-enterprise": [_ENTERPRISE, _tar("w", a_ndjson=_ENTERPRISE, README=b"x")],
    "kilt": [
        _lines(
            {
                "wikipedia_id": "7",
                "wikipedia_title": "Apple",
                "text": [
                    *("Apple\n", "An apple (\u200e) is a fruit.\n"),
                    *("Section::::See also.\n", "BULLET::::- Pear\n"),
                ],
                "anchors": [
                    {"paragraph_id": 1, "text": "fruit", "href": "fruit%23x", "start": 20},
                    {"paragraph_id": 3, "text": "Pear", "href": "Pear", "start": 13},
                ],
            }
        )
    ],
    "clueweb22": [
        _lines({**_CLUEWEB, "URL": "http://a.org/", "Clean-Text": "Apple\nA fruit.\n"}),
        _lines({**_CLUEWEB, "url": "http://a.org/", "anchors": [_ANCHOR, _ANCHOR[:5]]}),
        _lines({**_CLUEWEB, "url": "http://a.org/", "outlinks": [_ANCHOR]}),
    ],
    "harp-anchors": [
        _lines(
            {
                "sentence": "The apple is a fruit.",
                "tokenized_sentence": ["The", "apple", "is", "a", "fruit."],
                "anchors": [[{"text": "apple", "pos": [1, 1], "passage": "An apple."}]],
            }
        )
    ],
}
"""Sources by reader."""

CONTAINERS: list[bytes] = [
    gzip.compress(_DUMP),
    bz2.compress(_DUMP),
    bz2.compress(_DUMP[:99]) + bz2.compress(_DUMP[99:]),
    lzma.compress(_DUMP),
    pa.Codec("zstd").compress(_DUMP, asbytes=True),
    _tar("w:gz", a_ndjson=_ENTERPRISE),
]
"""The same in each compression."""

_STREAM = page_xml("A", WIKITEXT).encode()
_HEAD = _DUMP[: _DUMP.index(b"<page>")]
STREAMS: tuple[bytes, list[bytes]] = (b"%d:1:A\n%d:2:B\n", [_HEAD, _STREAM, _STREAM])
"""A multistream dump before its compression: the index, and the streams."""

_WIKITEXT_TOKENS = (
    "[[ ]] {{ }} {{{ }}} {| |} |- ''' '' == <ref> </ref> <nowiki> </nowiki> <!-- --> [http:// <br> "
    "<div> </div> &amp; #REDIRECT File: Category: fr: | {{lang| __TOC__ -{ }- \n* \n: \n; \n=="
)
_XML_TOKENS = (
    "<page> </page> <title> <ns> <redirect <revision> <text> </mediawiki> <siteinfo> <namespace "
    "&amp; &#0; ]]> <![CDATA[ <!-- [[ ]] {{"
)
_HTML_TOKENS = (
    "<a href= <p> <div> </div> <table> <th> <td> <h1> <h2> <nav> <main> <base <link <meta <svg> "
    "http-equiv=refresh rel=canonical <template> <math> <script> <frameset> <plaintext> <select> "
    "class=infobox &nbsp; <!-- role=main </p>"
)
_MARKDOWN_TOKENS = (
    "[ ]( ) ][ ]: [[ ]] ![ [! ``` ~~~ ` ** _ ~~ > # ## --- +++ === | |---| - 1. <a> </a> <div> "
    "<!-- &amp; \\ xref: <xref: [!NOTE] [!INCLUDE[x](y)] ::: !!! ???\n title: aliases: [^1] "
    "{{< \t \n\n \n- "
)
_WARC_TOKENS = (
    "WARC/1.0\r\n Content-Length: WARC-Type: response revisit Content-Encoding: gzip br zstd "
    "chunked deflate Transfer-Encoding: HTTP/1.1 Location: charset= \r\n\r\n"
)
_JSON_TOKENS = r'\ud800 \udc00 [[ {" ": null true -1 1e999 NaN [] {} <a &lt; &gt; %26 Section:::: '
TOKENS: dict[str, list[str]] = {
    "wikitext": _WIKITEXT_TOKENS.split(" "),
    "multistream": _XML_TOKENS.split(" "),
    "mediawiki": _XML_TOKENS.split(" "),
    "html": _HTML_TOKENS.split(" "),
    "markdown": _MARKDOWN_TOKENS.split(" "),
    "warc": _WARC_TOKENS.split(" "),
}
"""Words of the formats; of the others, those of `JSON_TOKENS`."""
JSON_TOKENS = _JSON_TOKENS.split(" ")

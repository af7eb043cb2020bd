"""The wikitexts in a dump, read by ElementTree alone."""

import bz2
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

INTERLANGUAGE = re.compile(
    r"(?:arz|pnb|mwl|new|krc|ckb|ace|kaa|mhr|eml|pcd|pnt):[^\s\[\]:][^\n\[\]]*\s*\Z"
)
"""A list of titles in other languages at the end of a wikitext of these dumps."""


def wikitexts(path: Path) -> Iterator[tuple[str, str]]:
    """Titles and texts of a dump's articles that are no redirects."""
    with bz2.open(path) as file:
        root = ElementTree.parse(file).getroot()
    for page in root.iter():
        if page.tag.endswith("}page"):
            found = {element.tag.rpartition("}")[2]: element for element in page.iter()}
            if found["ns"].text == "0" and "redirect" not in found:
                yield found["title"].text or "", found["text"].text or ""

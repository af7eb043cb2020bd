"""The filter of links within a site, on web pages that a crawler stored."""

import pytest
from builds import read_table

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph

pytestmark = pytest.mark.integration

LINKS = {
    "http://www.fruit.co.uk/apple": ["http://fruit.co.uk/pear", "http://tree.co.uk/"],
    "http://fruit.co.uk/pear": ["http://www.fruit.co.uk/apple"],
    "http://tree.co.uk/": ["http://fruit.co.uk/pear", "http://wood.tree.co.uk/oak"],
    "http://wood.tree.co.uk/oak": ["http://tree.co.uk/"],
}
INSIDE, ACROSS = 4, 2


def record(address: str, targets: list[str]) -> bytes:
    links = " and ".join(f"<a href='{target}'>the page of {target}</a>" for target in targets)
    body = f"<title>{address}</title><p>This page leads to {links} of this crawl.</p>"
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}".encode()
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {address}\r\n"
    head += f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


@pytest.fixture
def crawl(tmp_path):
    """Makes the corpus of some pages of the crawl."""

    def make(addresses):
        path = tmp_path / "crawl.warc"
        path.write_bytes(b"".join(record(address, LINKS[address]) for address in addresses))
        build_corpus(tmp_path, CorpusOptions(), sources=[path], quiet=True)
        return tmp_path

    return make


def test_links_of_two_sites(crawl, caplog):
    folder = crawl(LINKS)
    manifest = build_graph(folder, GraphOptions(min_words=0, same_site_links="drop"))
    assert manifest["drops"] == {"link between two pages of one site": INSIDE}
    assert manifest["counts"]["sites"] == 2
    assert len(read_table(folder / "graph" / "anchors")) == ACROSS
    assert not caplog.records


def test_a_corpus_of_one_site_keeps_its_links_and_says_so(crawl, caplog):
    folder = crawl(list(LINKS)[:2])
    manifest = build_graph(folder, GraphOptions(min_words=0, same_site_links="drop"))
    assert "link between two pages of one site" not in manifest["drops"]
    assert len(read_table(folder / "graph" / "anchors")) == 2
    assert "--same-site-links drop drops nothing: all pages are of one site" in caplog.text

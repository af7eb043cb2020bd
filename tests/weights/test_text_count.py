"""The bar of the weights is moved text by text, by any number of workers."""

import io
import time

import pytest
from dumps import write_dump
from tqdm import tqdm

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.weights import build as weights
from harp_plugin.weights.options import WeightOptions
from harp_plugin.weights.progress import TextCount, count_texts, shown, take_place

PAGES = {
    "Apple": "The apple grows on a [[tree]]. Apple, apple! The [[fruit]] of it isn't red.",
    "Tree": "A tree is a plant. The [[apple]] is its [[fruit]].",
    "Fruit": "Sweet, as an [[Apple|apple fruit]] of a [[tree]] is; [[nowhere]].",
}


def test_a_bar_follows_the_count():
    count = TextCount(2)
    bar = tqdm(total=100, initial=10, file=io.StringIO())
    with bar, shown(count, bar):
        take_place(count.counts, count.places)
        count_texts(5)
        end = time.monotonic() + 20
        while bar.n < 15 and time.monotonic() < end:
            time.sleep(0.05)
        assert bar.n == 15
        take_place(count.counts, count.places)
        count_texts(7)
    count_texts(1000)  # nobody counts any more
    assert bar.n == bar.total == 22 and list(count.counts) == [5, 7]


@pytest.mark.integration
@pytest.mark.parametrize("workers", [1, 2])
def test_every_text_is_counted(workers, tiny_bert, tmp_path, monkeypatch):
    bars = []

    def watched(*args, **options):
        bars.append(tqdm(*args, **options, file=io.StringIO()))
        return bars[-1]

    monkeypatch.setattr(weights, "tqdm", watched)
    source = write_dump(tmp_path / "d.xml", PAGES)
    build_corpus(tmp_path / "out", CorpusOptions(pages_per_shard=1), sources=[source], quiet=True)
    build_graph(tmp_path / "out", GraphOptions(min_words=0, min_lead_words=0))
    options = WeightOptions(model=str(tiny_bert))
    rows = weights.build_weights(tmp_path / "out", options, device="cpu", workers=workers)["rows"]
    (bar,) = bars
    assert bar.unit == "text"
    assert bar.n == rows["sentence_weights"] + rows["page_weights"] > 3

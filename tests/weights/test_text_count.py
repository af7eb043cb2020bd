"""What the workers that weigh share: a count of texts in one bar, and one thread each."""

import io
import time

import pytest
import torch
from dumps import write_dump
from tqdm import tqdm

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.weights import build as weights
from harp_plugin.weights.options import WeightOptions
from harp_plugin.weights.workers import count_texts, counted_in, one_thread

PAGES = {
    "Apple": "The apple grows on a [[tree]]. Apple, apple! The [[fruit]] of it isn't red.",
    "Tree": "A tree is a plant. The [[apple]] is its [[fruit]].",
    "Fruit": "Sweet, as an [[Apple|apple fruit]] of a [[tree]] is; [[nowhere]].",
}


def test_a_bar_follows_the_count():
    bar = tqdm(total=100, initial=10, file=io.StringIO())
    with bar, counted_in(bar) as count:
        count_texts(5)
        end = time.monotonic() + 20
        while bar.n < 15 and time.monotonic() < end:
            time.sleep(0.05)
        assert bar.n == count.value == 15
        count_texts(7)
    count_texts(1000)  # nobody counts any more
    assert bar.n == bar.total == 22 == count.value


def test_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.integration
@pytest.mark.parametrize("workers", [1, 2])
def test_every_text_is_counted(workers, tiny_bert, tmp_path, monkeypatch):
    bars = []

    def watched(*args, **options):
        bars.append(tqdm(*args, **options, file=io.StringIO()))
        return bars[-1]

    monkeypatch.setattr("harp_plugin.weights.build.tqdm", watched)
    source = write_dump(tmp_path / "d.xml", PAGES)
    build_corpus(tmp_path / "out", CorpusOptions(pages_per_shard=1), sources=[source], quiet=True)
    build_graph(tmp_path / "out", GraphOptions(min_words=0, min_lead_words=0))
    options = WeightOptions(model=str(tiny_bert))
    machine = {"device": "cpu", "workers": workers, "quiet": False}
    rows = weights.build_weights(tmp_path / "out", options, **machine)["rows"]
    (bar,) = bars
    assert bar.unit == "text"
    assert bar.n == rows["sentence_weights"] + rows["page_weights"] > 3

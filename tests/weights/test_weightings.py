"""The language model and the contrast as stages: their tables by loops, their resuming."""

import shutil
from collections import Counter, defaultdict
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from by_text import weigh
from test_contrast import contrast_by_loops

from harp_plugin.commands.build import BuildOptions, build
from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.inspection import InspectOptions, inspect
from harp_plugin.sampling import linear
from harp_plugin.tasks import DrawOptions, PreTrainingData
from harp_plugin.tasks.build import build_examples
from harp_plugin.tasks.registry import ExampleOptions
from harp_plugin.tasks.source import BuildSource
from harp_plugin.text import words
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.build import build_weights
from harp_plugin.weights.options import WeightOptions
from harp_plugin.work.mapped import open_table
from harp_plugin.work.provenance import OverwriteRules
from harp_plugin.work.stage import Stage

pytestmark = pytest.mark.integration

PAGES = {
    "Apple": "The apple grows on a [[tree]]. Apple, apple! The [[fruit]] of it isn't red.",
    "Tree": "A tree is a plant. The [[apple]] is its [[fruit]].",
    "Fruit": "Sweet, as an [[Apple|apple fruit]] of a [[tree]] is; [[nowhere]].",
    "Alone": "Nothing leads to quokkas here. Quokkas eat [[fruit]].",
    "Blank": "[[Fruit]]",
}


def copied(linked, tmp_path):
    for stage in ("corpus", "graph"):
        shutil.copytree(linked / stage, tmp_path / stage)
    return tmp_path


def split(text):
    return [word.lower() for word in words(text)]


def collection_of(directory):
    """Leads of the documents that a link leads to."""
    pages, documents = (
        open_table(directory, "corpus", "pages"),
        open_table(directory, "graph", "documents"),
    )
    linked = [id for id in documents.ids.tolist() if documents.get(id, "in_links") > 0]
    return {id: pages.get(id, "lead") for id in linked}


def merged(text, starts, ends, weights):
    found = defaultdict(float)
    for start, end, weight in zip(starts, ends, weights.astype(float), strict=True):
        found[text[start:end].lower()] += weight
    return dict(found)


def texts_and_rows(directory):
    """Every text that was weighed, and each of its rows, words merged."""
    for name, table, column in (
        ("page_weights", "pages", "lead"),
        ("sentence_weights", "sentences", "text"),
    ):
        weights, texts = (
            open_table(directory, "weights", name),
            open_table(directory, "corpus", table),
        )
        for id in weights.ids.tolist():
            row = [weights.array(id, part) for part in ("starts", "ends", "weights")]
            yield name, id, texts.get(id, column), merged(texts.get(id, column), *row)


@pytest.mark.parametrize(("background", "mu"), [("occurrences", None), ("documents", 4.0)])
def test_language_model_by_loops(linked, tmp_path, background, mu):
    directory = copied(linked, tmp_path)
    # No model is needed, and none is looked for.
    options = WeightOptions(
        model="/nowhere/model", weighting="language-model", background=background, dirichlet_mu=mu
    )
    manifest = build_weights(directory, options, quiet=True)
    leads = collection_of(directory)
    counts = Counter()
    for lead in leads.values():
        counts.update(set(split(lead)) if background == "documents" else split(lead))
    sizes = [len(split(lead)) for lead in leads.values()]
    used = sum(sizes) / len(sizes) if mu is None else mu
    assert manifest["collection"] == {
        "texts": len(leads),
        "words": sum(sizes),
        "dirichlet_mu": pytest.approx(used),
    }
    assert manifest["heads"] == 1 and "model" not in manifest["inputs"]
    assert manifest["rows"]["collection"] == len(counts) and manifest["drops"] == {}
    assert manifest["rows"]["page_weights"] == len(leads) == 3
    seen = Counter()
    for name, _, text, found in texts_and_rows(directory):
        words = split(text)
        model = {
            w: (words.count(w) + used * counts[w] / counts.total()) / (len(words) + used)
            for w in words
        }
        total = sum(model.values())
        assert found == pytest.approx({w: p / total for w, p in model.items()}, rel=2e-3)
        seen[name] += 1
    assert seen == {name: manifest["rows"][name] for name in seen} and len(seen) == 2


def test_language_model_of_anchors_and_drawing(linked, tmp_path, tiny_bert):
    """An anchor's row is its sentence's; drawing by plain normalization gives P(w|D)."""
    directory = copied(linked, tmp_path)
    output = BuildOptions(
        output_dir=str(directory),
        stages=["weights", "examples"],
        tasks=["rqp", "rdp"],
        workers=1,
        quiet=True,
    )
    build([], output, WeightOptions(model="/nowhere", weighting="language-model"))
    rows, anchors, sentences = (
        open_table(directory, stage, table)
        for stage, table in (
            ("weights", "anchor_weights"),
            ("graph", "anchors"),
            ("weights", "sentence_weights"),
        )
    )
    assert len(rows) == len(anchors)
    for id in rows.ids.tolist():
        expected = sentences.array(anchors.get(id, "sentence"), "weights")
        assert rows.array(id, "weights").tolist() == expected.tolist()
    source = BuildSource(directory, ["rqp"])
    options = DrawOptions(normalization="linear", stop_words="none")
    (anchor,) = (
        source.anchor(id)
        for id in rows.ids.tolist()
        if split(source.sentence(source.anchor(id).sentence)) == ["quokkas", "eat", "fruit"]
    )
    terms = source.sentence_terms(anchor, options)
    chances = dict(zip(terms.words, linear(terms.weights), strict=True))
    # No lead of the collection holds these two: (1 + 0) / (|D| + μ) each.
    assert chances["quokkas"] == pytest.approx(chances["eat"]) and chances["fruit"] > chances["eat"]
    data = PreTrainingData(directory, {"rqp": 1}, draw=options)
    assert data.group(0, 0).positive.query
    report = inspect(directory, InspectOptions(model=str(tiny_bert)), options)
    page = report.path.read_text("utf-8")
    assert "terms weighed by a language model" in page
    assert "shaded: the text&#39;s language model" in page and "attention of" not in page


@pytest.mark.parametrize("random_distribution", ["mean", "pooled"])
def test_contrast_by_loops(linked, tmp_path, tiny_bert, random_distribution):
    directory = copied(linked, tmp_path)
    options = WeightOptions(
        model=str(tiny_bert), weighting="contrastive", random_distribution=random_distribution
    )
    manifest = build_weights(directory, options, device="cpu", quiet=True)
    assert manifest["heads"] == 2 and manifest["settings"]["saturation"] == 0.01
    attention = AttentionWeigher(str(tiny_bert), device="cpu")
    leads = collection_of(directory)
    mass = defaultdict(float)
    for lead in leads.values():
        saturated = contrast_by_loops(split(lead), weigh(attention, [lead])[0].cls, lambda w: 1.0)
        if random_distribution == "pooled":
            summed = defaultdict(float)
            for word, value in zip(split(lead), weigh(attention, [lead])[0].cls, strict=True):
                summed[word] += value
            saturated = {word: value / (value + 0.01) for word, value in summed.items()}
        for word, value in saturated.items():
            mass[word] += value / len(leads)
    total = sum(mass.values())
    if random_distribution == "mean":
        assert total == pytest.approx(1)
    rarest = min(mass.values())

    def bits(word):
        return -np.log2(mass.get(word, rarest) / total)

    for _, _, text, found in texts_and_rows(directory):
        weighed = weigh(attention, [text])[0]
        expected = contrast_by_loops(split(text), weighed.cls, bits)
        assert found == pytest.approx(expected, rel=2e-3)
    rows, anchors, sentences, texts = (
        open_table(directory, stage, table)
        for stage, table in (
            ("weights", "anchor_weights"),
            ("graph", "anchors"),
            ("corpus", "sentences"),
            ("weights", "sentence_weights"),
        )
    )
    for id in rows.ids.tolist():
        sentence = anchors.get(id, "sentence")
        text = sentences.get(sentence, "text")
        span = anchors.get(id, "start"), anchors.get(id, "end")
        row = weigh(attention, [text], [[span]])[0].anchors[0]
        places = [texts.array(sentence, name) for name in ("starts", "ends")]
        found = merged(text, *places, rows.array(id, "weights"))
        assert found == pytest.approx(contrast_by_loops(split(text), row, bits), rel=2e-3)


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["language-model", "contrastive"])
def test_interrupted_after_every_step(linked, tmp_path, tiny_bert, monkeypatch, weighting):
    """The same bytes as undisturbed, and no shard done twice."""
    options = WeightOptions(model=str(tiny_bert), weighting=weighting)
    whole = copied(linked, tmp_path / "whole")
    manifest = build_weights(whole, options, device="cpu", quiet=True)
    broken, done = copied(linked, tmp_path / "broken"), []
    finish_shard = Stage.finish_shard

    def interrupt(stage, name, *counts):
        finish_shard(stage, name, *counts)
        done.append(name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "finish_shard", interrupt)
    for _ in range(20):
        with suppress(KeyboardInterrupt):
            assert build_weights(broken, options, device="cpu", quiet=True) == manifest
            break
    # Three shards are counted and three written; the sums are made in a process of their own.
    assert len(done) == len(set(done)) == 6
    assert tree(whole / "weights") == tree(broken / "weights")
    assert not (whole / "weights" / "counted").exists()


def test_finished_work_is_kept_and_left_overs_go(linked, tmp_path):
    directory = copied(linked, tmp_path)
    options = WeightOptions(weighting="language-model")
    first = build_weights(directory, options, quiet=True)
    before = tree(directory / "weights")
    (directory / "weights" / "counted").mkdir()
    assert build_weights(directory, options, quiet=True) == first
    assert tree(directory / "weights") == before
    assert not (directory / "weights" / "counted").exists()
    other = WeightOptions(weighting="language-model", dirichlet_mu=7.0)
    rules = OverwriteRules(overwrite=True)
    again = build_weights(directory, other, quiet=True, rules=rules)
    assert again["collection"]["dirichlet_mu"] == 7


@pytest.mark.slow
def test_two_workers_contrast_to_the_same_bytes(tiny_bert, tmp_path):
    """Words are counted first; then pairs are drawn by the contrast."""
    source = Path(str(files("harp_plugin"))) / "data" / "encyclopedia.xml"
    build_corpus(tmp_path / "one", CorpusOptions(pages_per_shard=40), sources=[source], quiet=True)
    build_graph(tmp_path / "one", GraphOptions(min_words=0))
    copied(tmp_path / "one", tmp_path / "two")
    options = WeightOptions(model=str(tiny_bert), weighting="contrastive")
    for name, workers in (("one", 1), ("two", 2)):
        build_weights(tmp_path / name, options, device="cpu", workers=workers, quiet=True)
    assert tree(tmp_path / "one" / "weights") == tree(tmp_path / "two" / "weights")
    build_examples(tmp_path / "one", ExampleOptions())
    tasks = {"rqp": 1, "qdm": 1, "rdp": 1, "acm": 1}
    data = PreTrainingData(tmp_path / "one", tasks, draw=DrawOptions(normalization="linear"))
    for index in range(40):
        group = data.group(0, index)
        assert group.positive.query and group.negatives[0].document

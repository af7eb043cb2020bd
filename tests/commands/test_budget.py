"""How long `harp adapt` may take."""

from __future__ import annotations

import json

import pytest

from harp_plugin.commands.adapt import plan
from harp_plugin.commands.adapt.budget import (
    encoder_reading,
    in_words,
    seconds_in,
    seconds_of_a_step,
    training_steps,
)
from harp_plugin.commands.adapt.options import AdaptOptions
from harp_plugin.commands.adapt.training import Learner, finetuning_part
from harp_plugin.errors import HarpError

RECIPE = {"per_device_train_batch_size": 16, "negatives_per_group": 3}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        ("45s", 45),
        ("0.5h", 1800),
    ],
)
def test_durations(text, seconds):
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 days", "0m", "-1h", "1m2h"])
def test_what_is_no_duration(text):
    with pytest.raises(HarpError, match=r"--budget .* give one such as 2h"):
        seconds_in(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(20, "20 s"), (60, "1 min"), (3599, "1 h"), (5400, "1 h 30 min"), (7200, "2 h")],
)
def test_words(seconds, words):
    assert in_words(seconds) == words


def test_own_queries_need_judgments(tmp_path):
    (tmp_path / "q.tsv").write_text("a\tb\n")
    queries = str(tmp_path / "q.tsv")
    with pytest.raises(HarpError, match="--queries and their judgments --qrels together"):
        AdaptOptions(output_dir="out", queries=queries)
    with pytest.raises(HarpError, match=r"there is no file .*none of your own queries"):
        AdaptOptions(output_dir="out", queries=queries, qrels=str(tmp_path / "none"))


def test_steps():
    """In 800 s, 80,000 pairs are scored, so 20,000 are trained on: 312 steps of 64."""
    of_a_step = seconds_of_a_step(100, RECIPE, bf16=False)
    assert of_a_step == pytest.approx(2.56)
    assert training_steps(800, of_a_step, RECIPE, groups=10_000) == 312
    assert training_steps(1, of_a_step, RECIPE, groups=10_000) == 0
    assert training_steps(1e6, of_a_step, RECIPE, groups=1600) == 20 * 100
    assert 1.5 * seconds_of_a_step(100, RECIPE, bf16=True) < of_a_step
    taught = RECIPE | {"teacher": "cosine:encoder"}
    assert seconds_of_a_step(100, taught, bf16=False) == pytest.approx(3.2)


@pytest.mark.parametrize(
    ("documents", "words", "minutes", "reading"),
    [
        (1000, 80, 5, (128, 64)),
        (1000, 1000, 5, (128, 8)),
        (1000, 1000, 15, (128, 64)),
        (9732, 80, 5, (64, 1)),
        (9732, 1000, 15, (128, 2)),
        (10**5, 80, 5, (32, 1)),
    ],
)
def test_less_of_a_document_is_read_where_a_budget_is_short(
    documents, words, minutes, reading, tmp_path
):
    """Of 5 minutes and 1,000 documents 187 s are for 1,100,000 tokens.

    A document of 1,000 words has 14 passages of 112 tokens: 8 of each of 1,000 documents are
    896,000 tokens, and all of them 1,568,000.
    """
    page = {"title": "", "text": "word " * words, "anchor_text": ""}
    lines = (json.dumps({"doc_id": str(n), **page}) + "\n" for n in range(documents))
    (tmp_path / "documents.jsonl").write_text("".join(lines))
    found = encoder_reading(f"harp:{tmp_path}", 60 * minutes)
    assert found == dict(zip(("max_length", "max_passages"), reading, strict=True))


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Plans for a cross-encoder and an encoder; 100 of their pairs are scored in a second."""
    recipe = RECIPE | {"max_length": 32, "bf16": False}
    folders = {"links": "links", "queries": "queries"}
    learners = [
        Learner("cross-encoder", recipe, folders),
        Learner("encoder", {**recipe, "of": "encoder"}, {n: f"encoder-{n}" for n in folders}),
    ]
    speeds = {"encoder": 100.0}
    monkeypatch.setattr(plan, "measured_speed", lambda data, *_: speeds.get(data[-1], 100.0))
    monkeypatch.setattr(plan, "encoding_seconds", lambda *_: 200.0)
    monkeypatch.setattr(plan, "encoder_reading", lambda *_: {})
    monkeypatch.setattr(plan, "training_data", lambda r: [0] * 9_999 + [r.get("of")])
    monkeypatch.setattr(plan, "query_count", lambda *_: 100)
    monkeypatch.setattr(plan, "train_query_count", lambda _: 8000)

    def make(seconds, train_encoder=True, speed_of_encoder=100.0, build_examples=lambda: None):
        speeds["encoder"] = speed_of_encoder
        options = AdaptOptions(output_dir=str(tmp_path), train_encoder=train_encoder)
        return plan.make_plan(options, learners, seconds, build_examples)

    return make


def test_a_plan(planned, capsys):
    """Scoring 200 queries of 50 pairs takes 100 s, the cosine's vectors take 200 s.

    Nine tenths of the other 3,210 s are for training.
    A step takes 2.56 s. The cross-encoder has 2,022 s and the encoder 867 s, half of it for
    queries.
    """
    found = planned(3510)
    assert found == {"links": 394, "queries": 394, "encoder-links": 169, "encoder-queries": 169}
    assert "about 48 min; then ranking, about 5 min" in capsys.readouterr().out
    assert planned(10**6) == found


def test_each_model_has_the_speed_of_its_own_texts(planned):
    found = planned(3510, speed_of_encoder=50.0)
    assert found == {"links": 394, "queries": 394, "encoder-links": 84, "encoder-queries": 84}


def test_a_plan_for_too_little_time(planned, capsys):
    """1,100 s leave 800 for training: 98 steps of 2.56 s, too few for a cross-encoder."""
    found = planned(1100)
    assert set(found.values()) == {0}
    assert "no model is trained in the 18 min left of 2 h" in capsys.readouterr().out
    assert planned(10**6) == found


def test_each_part_of_the_training_needs_its_steps(planned, monkeypatch):
    """Of 1,701 s for the cross-encoder a fifth is for queries: 132 steps of 2.56 s."""
    monkeypatch.setattr(plan, "_SHARE_OF_QUERIES", 0.2)
    assert set(planned(3000).values()) == {0}


def test_examples_are_built_where_there_is_time(planned, tmp_path):
    built = []
    planned(299, build_examples=lambda: built.append(299))
    (tmp_path / "plan.json").unlink()
    planned(3510, build_examples=lambda: built.append(3510))
    planned(3510, build_examples=lambda: built.append("again"))
    assert built == [3510]


def test_a_plan_for_one_model(planned):
    """Scoring takes 100 s; of 3,410 s nine tenths are for training, half of them for queries."""
    assert planned(3510, train_encoder=False) == {
        **{"links": 599, "queries": 599},
        **{"encoder-links": 0, "encoder-queries": 0},
    }


def test_training_on_queries_takes_the_options_that_it_has():
    """Options of drawing pairs from links, whichever a recipe names, are left out."""
    recipe = {"preset": "paper", "mixing": "uniform", "tasks": {"rqp": 1}, "about": "words"}
    shared = {"learning_rate": 1e-4, "max_length": 64, "negatives_per_group": 3}
    losses = {"losses": {"lce": 1, "kl": 1}}
    assert finetuning_part(recipe | shared | losses) == shared | {"losses": {"lce": 1}}

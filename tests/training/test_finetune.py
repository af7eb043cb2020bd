"""`harp finetune`: options, wrong ones, and real runs to a checkpoint that ranks."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from harp_plugin import HarpReranker
from harp_plugin.cli import main
from harp_plugin.collections import registration
from harp_plugin.collections.run import run_lines
from harp_plugin.errors import HarpError
from harp_plugin.options_parser import OptionsParser, read_recipe
from harp_plugin.training.arguments import HarpModelArguments, HarpTrainingArguments
from harp_plugin.training.finetune import SHOWN, FinetuneDataArguments

from .judged_data import write_run

pytestmark = pytest.mark.integration

OPTIONS = (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments)


def encyclopedia_run(path, depth=20):
    """The pages with most words of the query."""
    import ir_datasets

    registration.register()
    dataset = ir_datasets.load("harp-encyclopedia")
    pages = {page.doc_id: page.default_text().lower().split() for page in dataset.docs_iter()}
    lines = []
    for query in dataset.queries_iter():
        words = set(query.text.lower().split())
        scores = {id: sum(word in words for word in text) for id, text in pages.items()}
        best = sorted(scores, key=lambda id: -scores[id])[:depth]
        lines += [(query.query_id, id, float(scores[id])) for id in best]
    return write_run(path, lines)


@pytest.fixture(scope="module")
def words_run(tmp_path_factory):
    return encyclopedia_run(tmp_path_factory.mktemp("runs") / "words.run.gz")


@pytest.fixture
def recipe(tiny_bert, words_run, tmp_path):
    """Writes a recipe of four steps on the encyclopedia, changed as asked."""
    run = str(shutil.copy(words_run, tmp_path))

    def write(**changes):
        options = {
            "model": str(tiny_bert),
            "dataset": "harp-encyclopedia",
            "negatives_run": run,
            "negatives_per_group": 3,
            "max_length": 48,
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 8,
            "max_steps": 4,
            "learning_rate": 1e-3,
            "logging_steps": 2,
            "save_strategy": "no",
            "use_cpu": True,
            "disable_tqdm": True,
            **changes,
        }
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps({k: v for k, v in options.items() if v is not None}))
        return str(path)

    return write


def test_a_fine_tuned_checkpoint_ranks(recipe, tiny_bert, tmp_path, capsys):
    assert main(["finetune", recipe(), "--fields", "title", "text"]) == 0
    out = tmp_path / "out"
    assert capsys.readouterr().out == f"checkpoint: {out}\n"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["losses"] == {"lce": 1.0} and manifest["steps"] == 4
    assert manifest["settings"]["groups_per_epoch"] > 40 and len(manifest["settings"]["data"]) == 64
    assert {"loss/lce", "finetune/accuracy", "finetune/loss"} <= manifest["metrics"].keys()
    name = "bert.encoder.layer.0.output.dense.weight"
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny_bert, out))
    assert not before[name].equal(after[name])
    rows = [("1", "anchor text", str(n), text) for n, text in enumerate(("An anchor.", "A page."))]
    pairs = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
    tuned, untuned = (HarpReranker(str(folder)).transform(pairs) for folder in (out, tiny_bert))
    assert sorted(tuned["rank"]) == [0, 1] and tuned["score"].nunique() == 2
    assert set(tuned["score"]).isdisjoint(untuned["score"])


@pytest.mark.parametrize("losses", [{"bce": 1}, {"ranknet": 1}, {"hinge": 1, "mlm": 0.5}])
def test_every_loss_fine_tunes(losses, recipe, tmp_path):
    assert main(["finetune", recipe(losses=losses, queries=10, max_steps=2)]) == 0
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    assert {f"loss/{name}" for name in losses} <= log[-1].keys()
    total = sum(weight * log[-1][f"loss/{name}"] for name, weight in losses.items())
    assert log[-1]["loss"] == pytest.approx(total, rel=0.02)


def test_same_bits_for_any_workers_and_another_run_is_another_recipe(recipe, tmp_path, capsys):
    folders = [tmp_path / "one", tmp_path / "two"]
    for workers, folder in enumerate(folders):
        flags = ["--output_dir", str(folder), "--dataloader_num_workers", str(2 * workers)]
        assert main(["finetune", recipe(), *flags]) == 0
    first, second = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == second
    path = recipe()
    encyclopedia_run(tmp_path / "words.run.gz", depth=10)
    assert main(["finetune", path, "--output_dir", str(folders[0])]) == 2
    assert "one was made from other settings (data: " in capsys.readouterr().err


def test_loss_falls_on_few_queries(recipe, tmp_path):
    settings = {
        "queries": 5,
        "per_device_train_batch_size": 5,
        "max_steps": 50,
        "redraw_each_epoch": False,
    }
    assert main(["finetune", recipe(**settings, learning_rate=1e-2)]) == 0
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    assert log[-1]["loss"] < 0.5 * log[0]["loss"]
    assert log[-1]["finetune/accuracy"] > 0.9


@pytest.fixture
def teacher(recipe, tmp_path):
    """A run of small scores for the relevant documents and every second one of the first stage."""
    from ir_datasets import load

    run_file = json.loads(Path(recipe()).read_text())["negatives_run"]
    pairs = [line[:2] for line in run_lines(run_file)][::2]
    pairs += [(qrel.query_id, qrel.doc_id) for qrel in load("harp-encyclopedia").qrels_iter()]
    lines = [(*pair, number % 5 / 2) for number, pair in enumerate(dict.fromkeys(pairs))]
    return write_run(tmp_path / "teacher.run", lines)


@pytest.mark.parametrize("loss", ["margin_mse", "kl"])
def test_learning_from_a_teachers_run(loss, recipe, teacher, tmp_path):
    assert main(["finetune", recipe(teacher_run=teacher, losses={loss: 1, "lce": 0.1})]) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {f"loss/{loss}", "loss/lce"} <= manifest["metrics"].keys()
    assert manifest["counts"]["documents left out, without a teacher score"] > 100
    assert manifest["counts"]["queries"] == manifest["settings"]["groups_per_epoch"]


def test_learning_from_the_scores_of_json_lines(recipe, tmp_path):
    row = {
        "query": "what?",
        "positive_passages": [{"title": "", "text": "this", "score": 3}],
        "negative_passages": [{"title": "not", "text": f"that {n}", "score": n} for n in range(9)],
    }
    (tmp_path / "a.jsonl").write_text((json.dumps(row) + "\n") * 8)
    changes = {"dataset": None, "negatives_run": None, "train_file": [str(tmp_path / "a.jsonl")]}
    assert main(["finetune", recipe(**changes, losses={"kl": 1, "margin_mse": 0.1})]) == 0
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    assert {"loss/kl", "loss/margin_mse"} <= log[-1].keys()


def test_json_lines_without_scores_teach_nothing(recipe, tmp_path, capsys):
    passages = [{"title": "", "text": "this"}]
    row = {"query": "what?", "positive_passages": passages, "negative_passages": [{"text": "that"}]}
    (tmp_path / "a.jsonl").write_text((json.dumps(row) + "\n") * 8)
    changes = {"dataset": None, "negatives_run": None, "train_file": [str(tmp_path / "a.jsonl")]}
    assert main(["finetune", recipe(**changes, losses={"kl": 1})]) == 2
    expected = (
        "no query to learn from: 8 queries without a relevant document that has a teacher score"
    )
    assert expected in capsys.readouterr().err


def test_learning_from_json_lines(recipe, tmp_path):
    row = {
        "query": "what?",
        "positive_passages": [{"title": "", "text": "this"}],
        "negative_passages": [{"title": "not", "text": f"that {n}"} for n in range(9)],
    }
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text((json.dumps(row) + "\n") * 4)
    path = recipe(dataset=None, negatives_run=None, train_file=[str(file) for file in files])
    assert main(["finetune", path]) == 0
    assert (
        json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]["groups_per_epoch"]
        == 8
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": None, "negatives_run": None}, "name either a dataset or a train_file"),
        ({"train_file": ["x.jsonl"]}, "name either a dataset or a train_file"),
        ({"dataset": None, "train_file": ["x.jsonl"]}, "negatives_run needs a dataset"),
        ({"negatives_per_group": 0}, "negatives_per_group is 0: it must be at least 1"),
        ({"queries": 0}, "queries is 0: it must be at least 1"),
        ({"depth": 0}, "depth is 0: it must be at least 1"),
        ({"skip_top": -1}, "skip_top is -1: it must be at least 0"),
        ({"fields": []}, "fields is empty"),
        ({"negatives_run": "no.run"}, "cannot read run no.run: No such file"),
        ({"query_ids": "no.txt"}, "cannot read query_ids no.txt: [Errno 2] No such file"),
        ({"fields": ["body"]}, "no text field 'body': they have doc_id, title, text"),
        ({"losses": {"lec": 1}}, "unknown loss 'lec': did you mean 'lce'?"),
        ({"losses": {"lce": -1}}, "'lce' has weight -1"),
        ({"max_query_length": 400}, "max_query_length is 400"),
        ({"dataset": "vaswany"}, "unknown dataset 'vaswany'"),
        ({"negatives_run": None}, "has no scoreddocs: name a negatives_run"),
        ({"queries": 1000}, "of 1000 queries to learn from"),
        ({"losses": {"kl": 1}}, "losses: 'kl' reads a teacher's scores: give a teacher_run"),
        ({"teacher_run": "t.run"}, "teacher_run is read by no loss: add kl or margin_mse"),
        (
            {"teacher_run": "t.run", "losses": {"kl": 1}},
            "cannot read run t.run: No such file",
        ),
        (
            {
                "dataset": None,
                "negatives_run": None,
                "train_file": ["x.jsonl"],
                "teacher_run": "t.run",
            },
            "teacher_run needs a dataset",
        ),
        ({"tasks": {"rqp": 1}}, "unknown key 'tasks'"),
        ({"per_device_train_batch_size": 500}, "fewer than one batch of 500"),
    ],
)
def test_wrong_recipes_are_one_line(changes, message, recipe, tmp_path, capsys):
    assert main(["finetune", recipe(**changes)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("harp: error: ") and error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out").exists()


def test_help_shows_what_a_newcomer_needs():
    names = {name for options in OPTIONS for name in options.__dataclass_fields__}
    assert names >= SHOWN and len(SHOWN) <= 30


def options_of(name):
    parser = OptionsParser(OPTIONS, "harp finetune", "")
    return parser.read(["--bf16", "false"], name)[:3]


def test_the_papers_recipe():
    _, data, training = options_of("finetune-msmarco-document")
    data.check()
    assert data.losses == {"bce": 1} and data.fields == ["title", "url", "body"]
    assert (training.num_train_epochs, training.learning_rate) == (2, 1e-5)
    assert training.warmup_steps == 0.1 and data.max_length == 512
    pairs = training.per_device_train_batch_size * (1 + data.negatives_per_group)
    assert pairs * training.gradient_accumulation_steps == 128


def test_the_recipe_of_vaswani_learns_from_the_run_that_the_evaluation_writes():
    _, data, training = options_of("finetune-vaswani")
    data.check()
    evaluation = read_recipe("evaluate-vaswani")
    assert data.dataset == evaluation["dataset"]
    assert data.negatives_run == f"{evaluation['output_dir']}/runs/bm25.run"
    assert data.depth <= evaluation["depth"] and data.max_length == evaluation["max_length"]
    assert training.per_device_train_batch_size <= (data.queries or 93)


def test_an_irds_prefix_is_allowed():
    assert FinetuneDataArguments(dataset="irds:vaswani").dataset == "vaswani"
    with pytest.raises(HarpError, match="losses is not JSON"):
        FinetuneDataArguments(losses='{"lce"')

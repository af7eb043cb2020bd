"""Training with its ranking measured: for Python and from the command line."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from harp_plugin.cli import main
from harp_plugin.evaluation import EvaluationOptions, evaluate
from harp_plugin.evaluation import training as train
from harp_plugin.options_parser import OptionsParser
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)
from harp_plugin.training.finetune import FinetuneDataArguments

pytestmark = pytest.mark.integration

NAME = "harp-encyclopedia"


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """BM25's top of the encyclopedia."""
    folder = tmp_path_factory.mktemp("bm25")
    evaluate(EvaluationOptions(dataset=NAME, depth=8, output_dir=str(folder), quiet=True))
    return str(folder / "runs" / "bm25.run")


@pytest.fixture
def recipe(tiny_bert, run_file, tmp_path):
    """Writes a recipe of four steps that validates every two of them, changed as asked."""

    def write(**changes):
        options = {
            "model": str(tiny_bert),
            "output_dir": str(tmp_path / "out"),
            "max_length": 48,
            "per_device_train_batch_size": 8,
            "max_steps": 4,
            "learning_rate": 1e-3,
            "warmup_ratio": 0,
            "logging_steps": 2,
            "save_steps": 2,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "validation_dataset": NAME,
            "validation_run": run_file,
            "validation_queries": 6,
            "validation_depth": 8,
            "load_best_model_at_end": True,
            "use_cpu": True,
            "disable_tqdm": True,
            **changes,
        }
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps(options))
        return str(path)

    return write


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


@pytest.mark.parametrize(("held_out", "fewer"), [(True, 6), (False, 0)])
def test_queries_that_validate_are_not_learnt_from(held_out, fewer, recipe, run_file, tmp_path):
    learning = {"dataset": NAME, "negatives_run": run_file, "negatives_per_group": 3}
    parser = OptionsParser(
        (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments), "harp finetune", ""
    )
    path = recipe(**learning, validation_held_out=held_out)
    model_args, data_args, training_args, _ = parser.read([], path)
    everything = len(data_args.groups(42))
    out = train.finetune(model_args, data_args, training_args)
    assert manifest_of(out)["settings"]["groups_per_epoch"] == everything - fewer
    assert manifest_of(out)["metrics"].keys() >= {"eval_nDCG@10", "eval_RR@10", "loss/lce"}


def test_what_was_validated_is_what_the_checkpoint_ranks(recipe, run_file, tmp_path):
    learning = {"dataset": NAME, "negatives_run": run_file, "validation_queries": 1000}
    path = recipe(**learning, validation_held_out=False, validation_measures=["AP", "nDCG@10"])
    assert main(["finetune", path]) == 0
    evaluation = EvaluationOptions(
        dataset=NAME,
        first_stage=run_file,
        depth=8,
        rerankers={"tuned": str(tmp_path / "out")},
        measures=["AP", "nDCG@10"],
        max_length=48,
        output_dir=str(tmp_path / "evaluation"),
        quiet=True,
    )
    means = evaluate(evaluation).means["tuned"]
    metrics = manifest_of(tmp_path / "out")["metrics"]
    assert metrics["eval_AP"] == pytest.approx(means["AP"], abs=1e-9)
    assert metrics["eval_nDCG@10"] == pytest.approx(means["nDCG@10"], abs=1e-9)


def test_a_bi_encoder_is_validated_as_its_cosine_reranks(
    recipe, encyclopedia_build, run_file, tmp_path
):
    dense = {"model_kind": "bi-encoder", "tasks": {"rqp": 1}, "losses": {"contrastive": 1}}
    path = recipe(
        build_dir=str(encyclopedia_build), validation_queries=1000, learning_rate=1e-2, **dense
    )
    assert main(["train", path]) == 0
    evaluation = EvaluationOptions(
        dataset=NAME,
        first_stage=run_file,
        depth=8,
        rerankers={"trained": f"cosine:{tmp_path / 'out'}"},
        output_dir=str(tmp_path / "evaluation"),
        quiet=True,
    )
    means = evaluate(evaluation).means["trained"]
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    found = {line["step"]: line["eval_nDCG@10"] for line in log if "eval_nDCG@10" in line}
    assert list(found) == [2, 4]
    assert max(found.values()) == pytest.approx(means["nDCG@10"], abs=1e-9)


def test_pre_training_validates_too_and_on_pairs_of_another_build(
    recipe, encyclopedia_build, tmp_path
):
    build = str(encyclopedia_build)
    path = recipe(build_dir=build, validation_build_dir=build, validation_groups=20)
    parser = OptionsParser(
        (HarpModelArguments, HarpDataArguments, HarpTrainingArguments), "harp train", ""
    )
    out = train.train(*parser.read([], path)[:3])
    log = json.loads((out / "training_log.json").read_text())
    found = [line for line in log if "eval_nDCG@10" in line]
    assert [line["step"] for line in found] == [2, 4]
    assert {"eval_loss", "eval_loss/mlm", "eval_rqp/accuracy"} <= found[0].keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation_dataset": "vaswany"}, "unknown dataset 'vaswany'"),
        ({"validation_build_dir": "x"}, "validation_build_dir is for pre-training"),
        ({"validation_measures": ["nDGC"]}, "unknown measure 'nDGC'"),
    ],
)
def test_wrong_recipes_are_one_line(changes, message, recipe, run_file, tmp_path, capsys):
    path = recipe(dataset=NAME, negatives_run=run_file, **changes)
    assert main(["finetune", path]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


ENCYCLOPEDIA = Path(str(files("harp_plugin"))) / "data" / "encyclopedia.xml"
DOCUMENT = Path(__file__).parents[2] / "docs" / "training.md"
OPTIONS = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)


@pytest.fixture
def documented(tmp_path):
    """The recipes of the documentation: watched, taught, of a bi-encoder, and what shards a run."""
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    watched, losses, taught, encoder, sharded = map(json.loads, blocks)
    path = tmp_path / "documented.json"

    def write(recipe=watched | losses, **changes):
        path.write_text(json.dumps(recipe | changes))
        return str(path)

    return write, {"taught": taught, "encoder": encoder, "sharded": sharded}


def test_the_documented_sharding_is_understood(documented):
    write, recipes = documented
    path = write(**recipes["sharded"])
    training_args = OptionsParser(OPTIONS, "harp train", "").read(["--use_cpu"], path)[2]
    assert training_args.fsdp_plugin_args["transformer_cls_names_to_wrap"] == "BertLayer"


def test_the_documented_run(documented, encyclopedia_build, tiny_bert, tmp_path):
    write, _ = documented
    flags = ["--model", str(tiny_bert), "--build_dir", str(encyclopedia_build)]
    flags += [
        "--output_dir",
        str(tmp_path / "out"),
        "--max_steps",
        "3",
        "--validation_queries",
        "4",
    ]
    flags += ["--eval_steps", "1", "--save_steps", "1", "--use_cpu", "--report_to", "none"]
    assert main(["train", write(), *flags]) == 0
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    found = [line["step"] for line in log if "eval_nDCG@10" in line]
    assert found == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """The encyclopedia with what the documented recipes draw from."""
    folder = tmp_path_factory.mktemp("documented") / "build"
    flags = ["--tasks", "anchor", "crop", "--negatives", "bm25", "--workers", "1", "--quiet"]
    assert main(["build", str(ENCYCLOPEDIA), "--output-dir", str(folder), *flags]) == 0
    return folder


@pytest.mark.parametrize(
    ("name", "loss", "made"),
    [
        pytest.param("taught", "kl", "config.json", marks=pytest.mark.slow),
        ("encoder", "contrastive", "modules.json"),
    ],
)
def test_the_documented_recipe_trains(name, loss, made, documented, build, tiny_bert, tmp_path):
    write, recipes = documented
    out = tmp_path / "out"
    flags = ["--model", str(tiny_bert), "--build_dir", str(build), "--output_dir", str(out)]
    flags += ["--max_steps", "2", "--logging_steps", "1", "--use_cpu", "--report_to", "none"]
    assert main(["train", write(recipes[name]), *flags]) == 0
    log = json.loads((out / "training_log.json").read_text())
    assert f"loss/{loss}" in log[0]
    assert (out / made).is_file()

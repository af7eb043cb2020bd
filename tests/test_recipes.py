"""Recipes and flags become options; the package's own recipes are sound."""

import json
import re
import shlex
from dataclasses import dataclass, field, fields
from pathlib import Path

import ir_datasets
import pytest
import torch
from tevatron.arguments import DenseTrainingArguments, ModelArguments
from transformers import get_scheduler

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.options_parser import (
    ABOUT,
    OptionsParser,
    options_from,
    read_recipe,
    recipe_names,
)
from harp_plugin.tasks import HARP_TASKS, TASKS
from harp_plugin.tasks.terms import stop_words
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)
from harp_plugin.training.finetune import FinetuneDataArguments
from harp_plugin.training.losses import LOSSES
from harp_plugin.training.recipe import recipe as recipe_of


@dataclass
class Options:
    number: int = field(metadata={"help": "A number."})
    words: list[str] = field(default_factory=list, metadata={"help": "Words."})
    color: str = field(default="red", metadata={"help": "c", "choices": ["red", "blue"]})
    loud: bool = field(default=False, metadata={"help": "Noise."})


def read(tmp_path, recipe, *argv):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(recipe))
    return OptionsParser((Options,), "harp test", "").read(argv, str(path))[0]


def test_a_flag_wins_over_the_recipe_and_the_recipe_over_the_default(tmp_path):
    assert read(tmp_path, {"number": 1, "loud": True}) == Options(1, [], "red", True)
    assert read(tmp_path, {"number": 1, "color": "blue"}, "--number", "2") == Options(2, [], "blue")


def test_a_remark_is_allowed(tmp_path):
    assert read(tmp_path, {"about": "why", "number": 1}).number == 1


@pytest.mark.parametrize(
    "recipe",
    [
        {"number": "many"},
        {"number": 1.5},
        {"number": True},
        {"number": 1, "words": "one"},
        {"number": 1, "color": "green"},
        {"number": 1, "louder": True},
        {},
        [1],
    ],
)
def test_wrong_recipes(tmp_path, recipe):
    with pytest.raises(HarpError):
        read(tmp_path, recipe)


YAML = """\
# A remark.
about: why
number: 1e0
words: [no, "2001-01-01"]
loud: true
"""


@pytest.mark.parametrize("ending", [".yaml", ".yml", ".YAML"])
def test_a_recipe_may_be_yaml(tmp_path, ending):
    path = tmp_path / f"recipe{ending}"
    path.write_text(YAML)
    options = OptionsParser((Options,), "harp test", "").read([], str(path))[0]
    assert options == Options(1, ["no", "2001-01-01"], "red", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("number: 1\nnumber: 2", "duplicate key"),
        ("words: [a\nnumber: 1", "line 2"),
        ("color: 2001-01-01", "quotation marks"),
        ("number: .nan", "not a finite number"),
        ("- number", "one object of options"),
        ("", "one object of options"),
        ("color: !!python/object:os.system x", "constructor"),
        ("color: &a [*a]", "is not a recipe"),
        ("color: \t@", "is not a recipe"),
        ("color: 'a\x00b'", "is not a recipe"),
    ],
)
def test_wrong_yaml_is_an_error_that_says_where(tmp_path, text, said):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(HarpError, match=said):
        read_recipe(str(path))


def test_unknown_recipe_lists_those_there_are():
    with pytest.raises(HarpError, match="quickstart"):
        read_recipe("no-such-recipe")
    with pytest.raises(HarpError, match=r"no recipe tral/anchor: did you mean trial/anchor\?"):
        read_recipe("tral/anchor")


def test_a_recipe_after_a_flag_is_refused(capsys):
    """It would be left out in silence."""
    assert main(["evaluate", "--dataset", "vaswani", "evaluate-vaswani"]) == 2
    assert "evaluate-vaswani stands after a flag: write the recipe" in capsys.readouterr().err


def test_a_recipe_of_the_package_is_found_with_any_folder_before_its_name():
    every = "trial/anchor", "recipes/trial/anchor.json", "/elsewhere/recipes/trial/anchor"
    assert {read_recipe(name)["output_dir"] for name in every} == {"harp-output/trial/anchor"}
    assert read_recipe("recipes/quickstart") == read_recipe("quickstart")
    with pytest.raises(HarpError, match="no recipe anchor"):
        read_recipe("anchor")  # there are others of that name


def recipes(start):
    return [name for name in recipe_names() if name.startswith(start)]


OTHERS = ("cross-validate-", "evaluate-", "finetune-")
TRAINING = [name for name in recipes("") if not name.startswith(OTHERS)]
WIKIPEDIA = [name for name in TRAINING if "-bert-base-wikipedia" in name]
HARP = "harp-bert-base-wikipedia"
WIKIFORMER = "wikiformer-bert-base-wikipedia"
WIKIFORMER_TASKS = ("srr", "rwi", "ati", "ltm")
TRAINING_OPTIONS = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)


@pytest.mark.parametrize("name", ["quickstart", "adapt"])
def test_options_made_in_python_are_those_that_a_command_reads(name):
    recipe = read_recipe(name) | {"bf16": False}
    ours = options_from(recipe, TRAINING_OPTIONS, name)
    for made, read in zip(ours, train_options(name), strict=True):
        assert made == read
    with pytest.raises(HarpError, match=r"^here: unknown key 'max_step': did you mean max_steps"):
        options_from({"max_step": 1}, TRAINING_OPTIONS, "here")


def train_options(name, *flags):
    """The three dataclasses that `harp train` reads; `--bf16` asks for a GPU."""
    parser = OptionsParser(TRAINING_OPTIONS, "harp train", "")
    return parser.read(["--bf16", "false", *flags], name)[:3]


@pytest.mark.parametrize("name", TRAINING)
def test_training_recipes_parse(name):
    model, data, training = train_options(name)
    data.check()
    recipe = read_recipe(name)
    assert len(recipe.pop(ABOUT)) > 20
    assert data.task_weights == recipe["tasks"] and set(recipe["tasks"]) <= set(TASKS)
    losses = {
        n: v.get("weight", 1) if isinstance(v, dict) else v for n, v in recipe["losses"].items()
    }
    assert data.weighted_sum().weights == losses and set(losses) <= set(LOSSES)
    for key, value in recipe.items():
        owner = next(options for options in (training, data, model) if hasattr(options, key))
        if key not in ("bf16", "report_to"):
            assert getattr(owner, key) == value, key


@pytest.mark.parametrize("name", TRAINING)
def test_training_recipes_are_flat_and_keyed_as_tevatrons(name):
    recipe = read_recipe(name)
    nested = {key for key, value in recipe.items() if isinstance(value, dict | list)}
    assert nested <= {
        "tasks",
        "losses",
        "document_fields",
        "max_query_length",
        "lr_scheduler_kwargs",
    }
    ours = {field.name for kind in TRAINING_OPTIONS[:2] for field in fields(kind)}
    theirs = {
        option.name
        for arguments in (ModelArguments, DenseTrainingArguments)
        for option in fields(arguments)
    }
    assert recipe.keys() - ours <= theirs | {ABOUT}
    assert {"model", "per_device_train_batch_size", "learning_rate"} <= recipe.keys()


@pytest.mark.parametrize("name", WIKIPEDIA)
def test_recipes_of_the_papers_share_model_corpus_and_length(name):
    recipe = read_recipe(name)
    assert recipe["model"] == "bert-base-uncased"
    assert recipe["build_dir"] == "harp-output/enwiki"
    assert recipe["output_dir"] == f"harp-output/{name}"
    assert recipe["max_length"] == 512 and recipe["warmup_ratio"] == 0.1 and recipe["seed"] == 42
    assert recipe.get("mlm_probability", 0.15) == 0.15


def difference(name, parent):
    """What a recipe changes, but for its remark and its output; the keys must be the same."""
    ours, theirs = read_recipe(name), read_recipe(parent)
    assert ours.keys() == theirs.keys() and ours["output_dir"] != theirs["output_dir"]
    changed = {key: value for key, value in ours.items() if value != theirs[key]}
    return {key: changed[key] for key in changed.keys() - {"about", "output_dir"}}


PAPER = {"preset": "paper", "max_length": 512, "attention_dropout": True}
OF_PAPERS = {
    HARP: PAPER
    | {
        "stop_words": "inquery-stop-words.txt",
        "per_device_train_batch_size": 128,
        "learning_rate": 1e-4,
        "num_train_epochs": 10,
        "mlm_probability": 0.15,
    },
    "prop-bert-base-wikipedia": PAPER
    | {
        "stop_words": "inquery-stop-words.txt",
        "per_device_train_batch_size": 128,
        "learning_rate": 2e-5,
        "warmup_ratio": 0.1,
        "lr_scheduler_type": "linear",
    },
    WIKIFORMER: PAPER
    | {
        "losses": {"lce": 1},
        "learning_rate": 1e-5,
        "warmup_ratio": 0.1,
        "max_query_length": {"srr": 30, "rwi": 30, "ati": 30, "ltm": 255},
    },
    "anchor-dr-t5-clueweb22": {
        "preset": "paper",
        "losses": {"contrastive": {"temperature": 1}},
        "per_device_train_batch_size": 128,
        "learning_rate": 1e-5,
        "num_train_epochs": 1,
    },
    "finetune-msmarco-document": {
        "losses": {"bce": 1},
        "max_length": 512,
        "attention_dropout": True,
        "per_device_train_batch_size": 16,
        "negatives_per_group": 7,
        "learning_rate": 1e-5,
        "num_train_epochs": 2,
        "warmup_ratio": 0.1,
        "fields": ["title", "url", "body"],
    },
}
"""What the papers say of their settings, by the recipe that has them, read from the papers."""
CLAIM = re.compile(r"as in (its|the) paper|the paper's fine-tuning|Table [45] of", re.IGNORECASE)


@pytest.mark.parametrize("name", recipes(""))
def test_who_claims_a_paper_has_its_settings(name):
    recipe = read_recipe(name)
    parent = name.partition("-without-")[0]
    if CLAIM.search(recipe.get(ABOUT, "")) is None:
        assert name not in OF_PAPERS
    else:
        said = OF_PAPERS[parent]
        assert {key: recipe[key] for key in said} == said


def test_a_missing_stop_list_of_a_paper_is_named():
    with pytest.raises(HarpError, match=r"stop list inquery-stop-words\.txt cannot be read"):
        stop_words(read_recipe(HARP)["stop_words"])


def test_our_own_settings_of_harp_have_their_recipe():
    ours, theirs = read_recipe(f"{HARP}-default"), read_recipe(HARP)
    assert theirs.keys() - ours.keys() == {"stop_words"}
    changed = {key for key in ours if ours[key] != theirs[key]}
    assert changed == {"about", "output_dir", "preset"} and ours["preset"] == "default"


ABLATIONS = [
    *((HARP, HARP_TASKS, task) for task in HARP_TASKS),
    *((WIKIFORMER, WIKIFORMER_TASKS, task) for task in WIKIFORMER_TASKS),
]


@pytest.mark.parametrize(("parent", "tasks", "without"), ABLATIONS)
def test_each_row_of_the_ablations_lacks_one_task(parent, tasks, without):
    assert read_recipe(parent)["tasks"] == dict.fromkeys(tasks, 1)
    rest = {task: 1 for task in tasks if task != without}
    assert difference(f"{parent}-without-{without}", parent) == {"tasks": rest}


def test_no_other_ablations_than_the_papers_rows():
    names = {f"{parent}-without-{task}" for parent, _, task in ABLATIONS}
    assert {n for n in WIKIPEDIA if "-without-" in n} == names | {f"{HARP}-without-mlm"}
    assert difference(f"{HARP}-without-mlm", HARP) == {"losses": {"hinge": 1}}


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("ict", {"tasks": {"ict": 1}}),
        ("bfs", {"tasks": {"bfs": 1}}),
        ("wlp", {"tasks": {"wlp": 1}}),
        ("mlm", {"losses": {"mlm": 1}}),
    ],
)
def test_baselines_differ_from_harp_in_one_thing(method, change):
    assert difference(f"{method}-bert-base-wikipedia", HARP) == change


def test_settings_of_the_papers():
    model, data, anchor_dr = train_options("anchor-dr-t5-clueweb22")
    assert (anchor_dr.learning_rate, anchor_dr.per_device_train_batch_size) == (1e-5, 128)
    assert anchor_dr.num_train_epochs == 1 and (model.pooling, model.normalize) == (
        "decoder",
        False,
    )
    assert (data.anchors_per_page, data.query_like_share, data.negatives) == (5, 0.25, "bm25")
    _, _, harp = train_options(HARP)
    assert (harp.learning_rate, harp.per_device_train_batch_size) == (1e-4, 128)
    assert harp.num_train_epochs == 10
    _, data, prop = train_options("prop-bert-base-wikipedia")
    assert (prop.learning_rate, prop.per_device_train_batch_size) == (2e-5, 128)
    assert 100_000 <= prop.max_steps <= 300_000 and prop.lr_scheduler_type == "linear"
    assert data.task_weights == {"prop": 1} and data.losses == {"hinge": 1, "mlm": 1}
    _, data, _ = train_options(WIKIFORMER)
    assert data.losses == {"lce": 1}
    assert data.query_limits == {"srr": 30, "rwi": 30, "ati": 30, "ltm": 255}


def test_wikiformers_learning_rate_halves_after_50000_steps():
    _, _, training = train_options(WIKIFORMER)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], training.learning_rate)
    with pytest.warns(UserWarning, match="num_stable_steps will be used"):
        schedule = get_scheduler(
            training.lr_scheduler_type,
            optimizer,
            training.get_warmup_steps(training.max_steps),
            training.max_steps,
            training.lr_scheduler_kwargs,
        )
    rate = [1e-5 * schedule.lr_lambdas[0](step) for step in range(training.max_steps)]
    assert rate[10_000:50_000] == [1e-5] * 40_000 and rate[50_000:] == [5e-6] * 50_000
    assert rate[:10_000] == sorted(rate[:10_000]) and rate[9_999] < 1e-5


COMPARED = {
    "harp": (),
    **{task: ("--tasks", json.dumps({task: 1})) for task in ("prop", "ict", "bfs", "wlp")},
    "wikiformer": (
        *("--tasks", json.dumps(dict.fromkeys(WIKIFORMER_TASKS, 1))),
        *("--losses", '{"lce": 1}'),
    ),
    "mlm": ("--losses", '{"mlm": 1}'),
}


@pytest.mark.parametrize("method", COMPARED)
def test_flags_make_one_recipe_seven_methods(method):
    name, flags = "compare-simplewiki", COMPARED[method]
    about = read_recipe(name)["about"]
    output = f"harp-output/compare/{method}"
    assert method in about and all(f"'{flag}'" in about for flag in flags[1::2] if "," in flag)
    parent = recipe_of(*train_options(name))
    changed = train_options(name, *flags, "--output_dir", output)
    ours = recipe_of(*changed)
    assert ours.keys() == parent.keys() and changed[2].output_dir == output
    differing = {f"--{key}" for key in ours if ours[key] != parent[key]}
    assert differing == {flag for flag in flags if flag.startswith("--")}
    rows = read_recipe("evaluate-compare-vaswani")["rerankers"]
    row = rows[method]
    assert (row if isinstance(row, str) else row["model"]) == output


@pytest.mark.parametrize("name", recipes("evaluate-"))
def test_evaluation_recipes_parse(name):
    options, _ = OptionsParser((EvaluationOptions,), "harp evaluate", "").read([], name)
    assert options.systems or options.first_stages
    dataset = ir_datasets.load(options.dataset)
    assert set(options.fields or ()) <= set(dataset.docs_cls()._fields)
    assert dataset.has_docs() and dataset.has_queries() and dataset.has_qrels()
    assert options.first_stage != "scoreddocs" or dataset.has_scoreddocs()


@pytest.mark.parametrize("name", recipes("cross-validate-"))
def test_cross_validation_recipes_parse(name):
    parser = OptionsParser((CrossValidationOptions,), "harp cross-validate", "")
    options, _ = parser.read([], name)
    expected = {"not pre-trained": [5, 10, 20, None], "BERT": [None]}
    assert options.query_counts == expected[options.reference]
    dataset = ir_datasets.load(options.dataset)
    assert dataset.has_qrels() and set(options.fields or ()) <= set(dataset.docs_cls()._fields)
    parser = OptionsParser(PARSERS["finetune"], "harp finetune", "")
    given = options.finetuning_of(options.model_rows[-1])
    losses = given.pop("losses")
    flags = [text for key, value in given.items() for text in (f"--{key}", str(value))]
    flags += ["--losses", json.dumps(losses), "--dataset", options.dataset, "--use_cpu"]
    model, data, _training, _ = parser.read(["--model", "any", *flags])
    assert model.attention_dropout == (options.dataset not in ("cranfield", "vaswani"))
    data.check()


PAPERS = (Path(__file__).parent.parent / "docs" / "papers.md").read_text()
PARSERS = {
    "train": (HarpModelArguments, HarpDataArguments, HarpTrainingArguments),
    "finetune": (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments),
    "evaluate": (EvaluationOptions,),
    "cross-validate": (CrossValidationOptions,),
}
COMMANDS = re.findall(rf"`harp ((?:{'|'.join(PARSERS)}) [^`]+)`", PAPERS)


@pytest.mark.parametrize("line", COMMANDS)
def test_each_row_of_a_paper_has_a_command_that_parses(line):
    command, name, *flags = shlex.split(line)
    on_cpu = ["--use_cpu"] * (command in ("train", "finetune"))
    *_, recipe = OptionsParser(PARSERS[command], f"harp {command}", "").read(
        [*flags, *on_cpu], name
    )
    assert recipe is not None


def test_every_recipe_of_a_paper_is_a_row():
    named = {shlex.split(line)[1] for line in COMMANDS}
    of_papers = {*OF_PAPERS, *(n for n in WIKIPEDIA if "-without-" in n)}
    assert of_papers <= named
    for name in ("evaluate-beir", "evaluate-trec-covid-round2", "cross-validate-robust04"):
        assert name in named


def test_the_finetuning_recipe_says_what_it_needs():
    assert "harp finetune" in read_recipe("finetune-msmarco-document")["about"]

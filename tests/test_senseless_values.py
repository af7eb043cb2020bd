"""Numbers of the right type but without sense: one line that names the option, before any work."""

import json

import pytest
from training.judged_data import register, write_run

from harp_plugin.cli import main
from harp_plugin.errors import HarpError
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.cross_validation import CrossValidationOptions
from harp_plugin.evaluation.options import RerankOptions
from harp_plugin.options import flag
from harp_plugin.options_parser import OptionsParser
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)
from harp_plugin.training.finetune import FinetuneDataArguments

HUGE = 2**62
COUNTS = (-1, 0, HUGE)


def of(values):
    """Each name with each of its values."""
    return [(name, value) for name, given in values.items() for value in given]


def of_training(**changes):
    return HarpTrainingArguments(**{"output_dir": "out", "use_cpu": True} | changes)


SENSELESS = {
    **dict.fromkeys(("learning_rate", "weight_decay", "adam_epsilon"), (-1, -1e-9, 1e300)),
    **dict.fromkeys(("adam_beta1", "adam_beta2", "warmup_ratio"), (-0.1, 1, 5, 1e300)),
    **dict.fromkeys(("max_grad_norm", "eval_delay"), (-1,)),
    "num_train_epochs": (-1, 0, 1e300),
    "max_steps": (-2, 0, HUGE),
    "warmup_steps": (-1, 1e300),
    "seed": (-1, 2**32, HUGE),
    "save_total_limit": (-2,),
    "dataloader_num_workers": (-1, HUGE),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size"), COUNTS),
    **dict.fromkeys(("gradient_accumulation_steps", "dataloader_prefetch_factor"), COUNTS),
    **dict.fromkeys(("ddp_timeout", "ddp_bucket_cap_mb"), COUNTS),
    **dict.fromkeys(("logging_steps", "save_steps"), (-1, 0)),
    "eval_steps": (-1,),
    **dict.fromkeys(("validation_depth", "validation_queries", "validation_groups"), COUNTS),
    **dict.fromkeys(("label_smoothing_factor", "neftune_noise_alpha"), (0.1, 5)),
    "data_seed": (0, 7),
    "train_sampling_strategy": ("group_by_length", "sequential"),
    "debug": ("underflow_overflow", "tpu_metrics_debug", ["tpu_metrics_debug"]),
}


@pytest.mark.parametrize(("name", "value"), of(SENSELESS))
def test_training(name, value):
    with pytest.raises(HarpError, match=f"^({flag(name)}|{name}) "):
        of_training(**{name: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"save_strategy": "steps", "save_steps": 0.25},
        {"logging_steps": 0.1},
        {"max_steps": -1, "num_train_epochs": 0.5},
        {"seed": 0},
        {"learning_rate": 0},
        {"warmup_steps": 0.05},
        {"warmup_steps": 500},
        {"save_total_limit": 0},
        {"save_total_limit": -1},
        {"max_grad_norm": 0},
        {"max_grad_norm": 1e300},
        {"adam_beta1": 0},
        {"report_to": None},
        {"data_seed": None, "train_sampling_strategy": "random"},
    ],
)
def test_what_users_do_on_purpose(changes):
    of_training(**changes)


def test_a_best_checkpoint_needs_evaluations():
    with pytest.raises(HarpError, match="nothing is evaluated: set eval_strategy"):
        of_training(load_best_model_at_end=True, save_strategy="no")


@pytest.mark.parametrize(
    ("name", "value"),
    of(
        {
            "groups_per_epoch": COUNTS,
            "max_length": (-1, 0, 8, HUGE),
            "mlm_probability": (-1, 0, 1, 5, 1e300),
        }
    ),
)
def test_pre_training_data(name, value):
    with pytest.raises(HarpError, match=f"^{flag(name)} is "):
        HarpDataArguments(build_dir="built", **{name: value}).check()


@pytest.mark.parametrize(
    ("name", "value"),
    of(
        {
            **dict.fromkeys(("negatives_per_group", "depth", "queries"), COUNTS),
            "skip_top": (-1, HUGE),
            "max_length": (-1, 0, 8, HUGE),
            "mlm_probability": (-1, 0, 1, 5),
        }
    ),
)
def test_fine_tuning_data(name, value):
    with pytest.raises(HarpError, match=f"^{flag(name)} is "):
        FinetuneDataArguments(dataset="vaswani", **{name: value}).check()


OF_EXPERIMENTS = {
    **dict.fromkeys(("depth", "batch_tokens"), COUNTS),
    "bm25_k1": (-1, 1e300),
    "bm25_b": (-1, 1.5, 1e300),
    "seed": (-1, HUGE),
}


@pytest.mark.parametrize(
    ("name", "value"), of(OF_EXPERIMENTS | {"max_length": (-1, 0, HUGE), "seed": (-1, HUGE)})
)
def test_evaluations(name, value):
    with pytest.raises(HarpError, match=f"^{flag(name)} is "):
        EvaluationOptions(dataset="vaswani", **{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": -1}, "reranker 'a': max_length is -1: it must be at least 4"),
        ({"max_length": "x"}, "reranker 'a': max_length is 'x': it must be a whole number"),
        ({"seed": True}, "reranker 'a': seed is True: it must be a whole number"),
        ({"dtype": []}, r"reranker 'a': dtype is \[\]: it must be one of float32"),
        ({"dtype": "float3"}, "reranker 'a': dtype is 'float3': it must be one of"),
        ({"allow_untrained": "no"}, "reranker 'a': allow_untrained is 'no': it must be true"),
        ({"model": ["m", "n"], "weights": ["1", 2]}, "reranker 'a': weights is"),
        ({"model": ["m", "n"], "weights": [1e308] * 2}, "reranker 'a': weights is .1e.308"),
        ({"model": ["m", "n"], "score_normalization": 3}, "reranker 'a': score_normalization is 3"),
    ],
)
def test_rerankers(options, message):
    with pytest.raises(HarpError, match=message):
        EvaluationOptions(dataset="vaswani", rerankers={"a": {"model": "m"} | options})


def test_a_rerankers_null_is_the_default():
    given = {"a": {"model": "m", "seed": None, "max_length": None}}
    systems = EvaluationOptions(dataset="vaswani", rerankers=given, seed=5).systems
    assert systems["a"]["seed"] == 5


@pytest.mark.parametrize(
    ("name", "value"),
    of(OF_EXPERIMENTS | {"folds": (-1, 0, 1, HUGE), "min_steps": (-1, HUGE), "seeds": ([1, -1],)}),
)
def test_cross_validations(name, value):
    with pytest.raises(HarpError, match=f"^({flag(name)}|{name}) "):
        CrossValidationOptions(dataset="vaswani", systems={"a": "m"}, **{name: value})


@pytest.mark.parametrize("name", ["depth", "batch_tokens", "passage_length", "max_length"])
@pytest.mark.parametrize("value", COUNTS)
def test_reranking(name, value):
    with pytest.raises(HarpError, match=f"^{flag(name)} is "):
        RerankOptions(dataset="vaswani", model="m", **{name: value})


OPTIONS = (HarpModelArguments, HarpDataArguments, HarpTrainingArguments)


@pytest.mark.parametrize(
    "given",
    [
        {"fsdp": True, "fsdp_config": {"transformer_layer_cls_to_wrap": ["BertLayer"]}},
        {"fsdp": False},
        {"fsdp": "full_shard"},
        {"fsdp": ["full_shard", "auto_wrap"], "fsdp_config": {"min_num_params": 10}},
        {"fsdp_config": {"version": 2}},
        {"debug": ""},
        {"debug": []},
        {"report_to": None},
        {"report_to": "none"},
        {"report_to": ["tensorboard"]},
        {"lr_scheduler_kwargs": {"num_cycles": 2}},
        {"lr_scheduler_kwargs": '{"num_cycles": 2}'},
        {"optim_args": "betas=0.9"},
        {"optim_target_modules": ["a", "b"]},
        {"optim_target_modules": "all-linear"},
        {"accelerator_config": {"split_batches": False}},
        {"accelerator_config": '{"split_batches": false}'},
        {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}},
        {"activation_checkpointing_kwargs": '{"use_reentrant": false}'},
        {"torch_compile": False, "torch_compile_mode": None},
        {"include_num_input_tokens_seen": True},
        {"include_num_input_tokens_seen": "non_padding"},
        {"trackio_static_space_id": False},
        {"trackio_static_space_id": "me/space"},
        {"liger_kernel_config": {"rope": True}},
        {"label_names": ["a"]},
        {"ddp_find_unused_parameters": False},
        {"eval_steps": None, "save_total_limit": None},
    ],
    ids=str,
)
def test_values_wider_than_their_annotation(given, tmp_path):
    recipe = tmp_path / "recipe.json"
    required = {"model": "m", "build_dir": "built", "output_dir": "out"}
    recipe.write_text(json.dumps({"use_cpu": True, "report_to": "none"} | required | given))
    OptionsParser(OPTIONS, "harp train", "").read([], str(recipe))


def test_what_training_arguments_write_is_read(tmp_path):
    recipe, unread = tmp_path / "recipe.json", {"accelerator_config", "parallelism_config"}
    parser = OptionsParser(OPTIONS, "harp train", "")
    written = of_training().to_dict()
    known = {
        name: value for name, value in written.items() if name in parser._types.keys() - unread
    }
    required = {"model": "m", "build_dir": "built"}
    recipe.write_text(json.dumps(required | known))
    assert parser.read([], str(recipe))[2].learning_rate == 5e-5


@pytest.fixture
def judged(tmp_path):
    folder = tmp_path / "judged"
    folder.mkdir()
    return register(folder), write_run(folder / "first.run")


@pytest.fixture
def fails(tmp_path, capsys):
    """Runs a command by a recipe and gives the one line that it ends in."""

    def run(command, **recipe):
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps(recipe))
        assert main([command, str(path)]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("harp: error: ")
        return error

    return run


@pytest.mark.integration
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optim_args": "foo"}, "training options do not make sense: not enough values"),
        ({"report_to": ["nothing"]}, "training options do not make sense: nothing is not supp"),
        ({"lr_scheduler_kwargs": {"nonsense": 1}}, "unexpected keyword argument 'nonsense'"),
        ({"torch_compile_backend": "nonsense"}, "'NONSENSE' is not a valid DynamoBackend"),
        ({"learning_rate": 1e30, "max_steps": 3}, "the loss is not finite at step 3"),
        (
            {"learning_rate": 1e10, "weight_decay": 1e30},
            "after the last step the weights are no longer finite",
        ),
        ({"adam_epsilon": 0, "logging_steps": 10**6}, "the loss is not finite at step 2"),
    ],
)
def test_fine_tuning_by_a_recipe(changes, message, judged, tiny_bert, fails, tmp_path):
    dataset, run = judged
    given = {
        **{"model": str(tiny_bert), "dataset": dataset, "negatives_run": run},
        **{"output_dir": str(tmp_path / "out"), "max_length": 48, "max_steps": 2},
        **{"per_device_train_batch_size": 4, "save_strategy": "no", "warmup_ratio": 0.4},
        **{"use_cpu": True, "disable_tqdm": True, "report_to": "none"},
    }
    assert message in fails("finetune", **given | changes)
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"finetuning": {"learning_rate": -1}}, "finetuning: learning_rate is -1: it must be"),
        ({"finetuning": {"depth": 0}}, "finetuning: depth is 0: it must be at least 1"),
        ({"grid": {"weight_decay": [0, -1]}, "folds": 3}, "finetuning: weight_decay is -1"),
    ],
)
def test_a_cross_validation_checks_fine_tuning_first(changes, message, judged, fails, tmp_path):
    given = {"dataset": judged[0], "systems": {"a": "no-such-model"}, "first_stage": "bm25"}
    given["output_dir"] = str(tmp_path / "out")
    assert message in fails("cross-validate", **given | changes)
    assert not (tmp_path / "out" / "index").exists()

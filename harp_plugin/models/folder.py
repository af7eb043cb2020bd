"""Check the folder of a model before anything in it is loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ..errors import HarpError
from ..work.hashes import changed_file
from ..work.records import read_record

__all__ = [
    "MANIFEST",
    "MODEL_FILES",
    "PIPELINE",
    "POOLING",
    "WEIGHTS",
    "check_config",
    "check_model_folder",
    "has_vocabulary",
    "is_model_file",
    "listed_files",
    "read_config",
    "shapes_of",
    "tokenizer_class_of",
    "verify_manifest",
]

PIPELINE = "harp_pipeline.json"
"""File name of a saved pipeline, which may lie beside a model and is no part of it."""
MANIFEST = "harp_manifest.json"
"""Name of the file that lists the files of a trained model with their hashes."""
MODEL_FILES = (".json", ".txt", ".model", ".safetensors")
"""Endings of the names of files that are read when a model is loaded."""
WEIGHTS = "model.safetensors"
"""Name of the file with the weights of a model."""
POOLING = "1_Pooling"
"""Folder in an encoder's folder that says how vectors are made of a text's tokens."""
_PARTS = ("", POOLING)
_INDEX = f"{WEIGHTS}.index.json"
_VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken")
_PICKLES = ("pytorch_model*.bin", "*.pt", "*.ckpt")
_ATTENTIONS = (None, "eager", "sdpa")
_MOST_BYTES_OF_CONFIG = 1 << 24
_LEAST_LAYERS_ALLOWED = 200
_MOST_COUNTED = 100_000
_LARGEST_SIZE = 10**8
_LAYERS = frozenset(
    {
        *("num_hidden_layers", "num_layers", "n_layers", "n_layer"),
        *("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers"),
        *("num_hidden_groups", "inner_group_num"),
    }
)
_COUNTS = frozenset(
    {
        *("num_attention_heads", "num_key_value_heads", "num_heads", "n_heads", "n_head"),
        *("encoder_attention_heads", "decoder_attention_heads", "type_vocab_size", "num_labels"),
        *("num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts"),
        *("num_shared_experts", "moe_num_experts"),
    }
)
_SIZES = frozenset(
    {
        *("hidden_size", "d_model", "dim", "emb_dim", "n_embd", "embedding_size", "embed_dim"),
        *("intermediate_size", "hidden_dim", "d_ff", "d_inner", "n_inner", "ffn_dim"),
        *("encoder_ffn_dim", "decoder_ffn_dim", "moe_intermediate_size", "head_dim", "d_kv"),
        *("vocab_size", "n_words", "n_token", "max_position_embeddings", "n_positions", "n_ctx"),
    }
)


def check_model_folder(folder: Path, *, weights: bool) -> None:
    """Check that a model's folder can be read, and that its files are as training wrote them.

    No weight is loaded, and no code of the model is run.

    Args:
        folder: a folder with a ``config.json``.
        weights: whether the weights are checked too.

    Raises:
        HarpError: a file is not a regular file, is damaged or is missing, the configuration is not
            possible, or a file does not have the hash that ``harp_manifest.json`` lists.
    """
    _check_kinds(folder)
    config = read_config(folder)
    check_config(config, str(folder))
    verify_manifest(folder, weights=weights)
    tensors = len(shapes_of(folder)) if weights else _MOST_COUNTED
    _check_counts(config, tensors, folder / "config.json")


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json``.

    Raises:
        HarpError: the file cannot be read, or it is not a JSON object.
    """
    path = folder / "config.json"
    try:
        if path.stat().st_size > _MOST_BYTES_OF_CONFIG:
            raise HarpError(f"{path} is too large for a configuration: name another model")
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise HarpError(
            f"cannot load model {folder}, damaged {path.name}: {type(error).__name__}; restore it"
        ) from error
    if not isinstance(config, dict):
        raise HarpError(f"cannot load model {folder}: {path.name} is not a JSON object; restore it")
    return config


def check_config(config: Mapping[str, Any], name: str) -> None:
    """Check that a configuration needs no other package and no code from elsewhere.

    Args:
        config: the content of ``config.json``.
        name: name of the model, for errors.

    Raises:
        HarpError: it needs other packages or code.
    """
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


def tokenizer_class_of(folder: Path) -> str | None:
    """Return the class that ``tokenizer_config.json`` names; None if it names no class.

    Raises:
        HarpError: the file cannot be read, or the name is not a string.
    """
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return None
    try:
        name = json.loads(path.read_bytes()).get("tokenizer_class")
    except (OSError, ValueError, RecursionError, AttributeError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__}): restore it") from error
    if not isinstance(name, str | None):
        raise HarpError(f"{path}: tokenizer_class is not a string: restore the file")
    return name


def has_vocabulary(folder: Path) -> bool:
    """Return whether a folder has a file with the vocabulary of a tokenizer."""
    return any(file.is_file() for pattern in _VOCABULARIES for file in folder.glob(pattern))


def shapes_of(folder: Path) -> dict[str, list[int]]:
    """Return the shape of each stored tensor, from the headers of the safetensors files.

    Raises:
        HarpError: there are no such files, one is damaged, or the index names a file in another
            folder.
    """
    shapes: dict[str, list[int]] = {}
    for path in _weight_files(folder):
        try:
            with safe_open(path, "pt") as file:
                for tensor in file.keys():  # noqa: SIM118
                    shapes[tensor] = file.get_slice(tensor).get_shape()
        except (OSError, SafetensorError, ValueError) as error:
            raise HarpError(
                f"cannot load model {folder}, damaged {path.name}: {str(error)[:120]}; restore it"
            ) from error
    return shapes


def listed_files(folder: Path) -> dict[str, Any]:
    """Return the files that the manifest of a folder lists, by their names.

    Raises:
        HarpError: the manifest is damaged, or it lists no files.
    """
    files = read_record(folder / MANIFEST).get("files")
    if not isinstance(files, dict) or not all(map(_is_description, files.values())):
        raise HarpError(f"{folder / MANIFEST} lists no files")
    return files


def verify_manifest(folder: Path, *, weights: bool) -> None:
    """Check that the files of a model are as training wrote them, if it has a manifest.

    Args:
        folder: the folder of the model.
        weights: whether the weights are checked too.

    Raises:
        HarpError: a file is missing or has other content, or the manifest is damaged.
    """
    path = folder / MANIFEST
    if not path.exists():
        return
    try:
        files = {
            name: entry
            for name, entry in listed_files(folder).items()
            if is_model_file(name) and (weights or not name.endswith(".safetensors"))
        }
        reason = changed_file(folder, files)
    except OSError as error:
        reason = f"a file of {folder} cannot be read ({error.strerror})"
    except HarpError as error:
        reason = str(error)
    if reason:
        raise HarpError(
            f"{reason}: restore it; if you changed this model on purpose, delete {path}"
        )


def is_model_file(name: str) -> bool:
    """Return whether a file is read when its model is loaded.

    Args:
        name: path of the file in the folder of the model.
    """
    folder, _, file = name.rpartition("/")
    own = file.startswith(("harp_", "training_", "trainer_"))
    return name.endswith(MODEL_FILES) and folder in _PARTS and not own


def _is_description(entry: Any) -> bool:
    return isinstance(entry, dict) and {"size", "sha256"} <= entry.keys()


def _check_kinds(folder: Path) -> None:
    """Check that all files are regular ones, and that the folder has no adapter.

    A reader would wait for a pipe or a device without end; an adapter would load another model.
    """
    if (folder / "adapter_config.json").exists():
        raise HarpError(
            f"{folder} holds an adapter: merge it into its model and name the merged model"
        )
    for path in sorted(folder.iterdir()):
        is_special = path.exists() and not path.is_file() and not path.is_dir()
        if is_special or (is_model_file(path.name) and not path.is_file()):
            raise HarpError(f"{path} is not a regular file: restore it, or name another model")


def _weight_files(folder: Path) -> list[Path]:
    """Return the files with the weights of a model."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / _INDEX
    if not index.is_file():
        pickled = any(True for pattern in _PICKLES for _ in folder.glob(pattern))
        reason = "pickled weights can run code" if pickled else "it has no weights"
        raise HarpError(f"cannot load model {folder}, no {WEIGHTS}: {reason}; name another model")
    try:
        names = set(json.loads(index.read_bytes())["weight_map"].values())
        paths = [folder / name for name in sorted(names)]
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise HarpError(
            f"cannot load model {folder}, damaged {index.name}: {type(error).__name__}; restore it"
        ) from error
    for name, path in zip(sorted(names), paths, strict=True):
        if Path(name).name != name or not path.is_file() or path.suffix != ".safetensors":
            raise HarpError(
                f"{index} names {name[:120]!r}, which is not a file of weights in this folder"
            )
    return paths


def _check_counts(config: Mapping[str, Any], tensors: int, path: Path) -> None:
    """Check that the numbers in a configuration are possible.

    Each layer has at least one tensor, so a model cannot have more layers than tensors.
    """
    most_layers = max(tensors, _LEAST_LAYERS_ALLOWED)
    limits = {
        **dict.fromkeys(_LAYERS, most_layers),
        **dict.fromkeys(_COUNTS, _MOST_COUNTED),
        **dict.fromkeys(_SIZES, _LARGEST_SIZE),
    }
    for key, value in _leaves(config):
        if key not in limits or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not 0 <= value <= limits[key]:
            raise HarpError(
                f"{path}: {key} is {str(value)[:20]}, which is not possible: restore it"
            )


def _leaves(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys with their values, also those of nested objects."""
    waiting = [config]
    while waiting:
        for key, value in waiting.pop().items():
            if isinstance(value, Mapping):
                waiting.append(value)
            else:
                yield str(key), value

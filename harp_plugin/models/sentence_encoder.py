"""The small files by which sentence-transformers knows an encoder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..work.writing import write_text
from .loading import POOLING
from .pooling import DECODER, POOLINGS

__all__ = ["SentenceEncoderFiles", "has_default_prompt"]

Settings = dict[str, Any]
_MODULES = "modules.json"
_PACKAGE = "sentence_transformers.models"
_SETTINGS = "config_sentence_transformers.json"
_INPUT = "sentence_bert_config.json"
_USUAL: dict[str, list[Any]] = {
    "do_lower_case": [None, False],
    "transformer_task": ["feature-extraction"],
    "module_output_name": ["token_embeddings"],
}
"""Settings of the input with which a text's tokens alone make its vector."""


@dataclass(frozen=True)
class SentenceEncoderFiles:
    """What the folder of an encoder says about its vectors.

    Attributes:
        pooling: ``cls``, ``mean``, ``last``, or ``decoder``, which sentence-transformers lacks.
        normalize: whether vectors have the length 1.
        prompts: texts before each query, and before each document.
        longest: most tokens of a text, special tokens included; None if the folder says nothing.
        is_plain: whether nothing else in the folder changes vectors, such as prompts that are left
            out of the pooling, or a text that is put into lower case before its tokens are found.
    """

    pooling: str
    normalize: bool
    prompts: tuple[str, str] = ("", "")
    longest: int | None = None
    is_plain: bool = True

    @classmethod
    def read(cls, name: str, pooling: str | None, normalize: bool | None) -> SentenceEncoderFiles:
        """Read the files of a folder; a folder without them has mean pooling, and length 1.

        Args:
            name: the folder, or the name of a model on the hub.
            pooling: instead of the folder's.
            normalize: instead of the folder's.

        Raises:
            HarpError: the pooling is unknown, a file is damaged, or the encoder has parts that are
                not trained here.
        """
        poolings = *POOLINGS, DECODER
        if pooling is not None and pooling not in poolings:
            raise HarpError(f"pooling is {pooling!r:.40}: give one of {', '.join(poolings)}")
        modules = _read(name, _MODULES)
        kinds = [_kind(str(module["type"])) for module in modules or []]
        if unknown := set(kinds) - {"Transformer", "Pooling", "Normalize"}:
            raise HarpError(
                f"model {name} has a part {min(unknown)}, which is not trained here: name an "
                "encoder of Transformer, Pooling and Normalize"
            )
        of_pooling: Settings = {}
        if modules and "Pooling" not in kinds:
            raise HarpError(
                f"model {name} has no part Pooling: name an encoder that makes one vector of a text"
            )
        if modules:
            path = modules[kinds.index("Pooling")]["path"]
            of_pooling = _read(name, f"{path}/config.json") or {}
            pooling = pooling or _pooling(name, of_pooling)
            normalize = "Normalize" in kinds if normalize is None else normalize
        settings: Settings = _read(name, _SETTINGS) or {}
        inputs: Settings = _read(name, _INPUT) or {}
        if (_read(name, "tokenizer_config.json") or {}).get("do_lower_case"):
            inputs.pop("do_lower_case", None)  # the tokenizer does it
        prompts: Settings = settings.get("prompts") or {}
        return cls(
            pooling or "mean",
            True if normalize is None else normalize,
            (prompts.get("query") or "", prompts.get("document") or ""),
            inputs.get("max_seq_length"),
            is_plain=_is_plain(inputs, of_pooling, settings),
        )

    def write(self, folder: Path, *, width: int, longest: int | None) -> None:
        """Write the files. With ``decoder``, sentence-transformers refuses the folder.

        Args:
            folder: where the encoder is saved.
            width: dimensions of a vector.
            longest: most tokens that the model reads; None if it sets no limit.
        """
        modules = [("Transformer", ""), ("Pooling", POOLING)]
        modules += [("Normalize", "2_Normalize")] if self.normalize else []
        _write(
            folder / _MODULES,
            [
                {"idx": index, "name": str(index), "path": path, "type": f"{_PACKAGE}.{kind}"}
                for index, (kind, path) in enumerate(modules)
            ],
        )
        modes: Settings = {name: kind == self.pooling for kind, name in POOLINGS.items()}
        modes = {"pooling_mode": DECODER} if self.pooling == DECODER else modes
        (folder / POOLING).mkdir(exist_ok=True)
        _write(folder / POOLING / "config.json", {"word_embedding_dimension": width, **modes})
        prompts = dict(zip(("query", "document"), self.prompts, strict=True))
        similarity = "cosine" if self.normalize else "dot"
        _write(folder / _SETTINGS, {"prompts": prompts, "similarity_fn_name": similarity})
        most = self.longest or longest
        _write(folder / _INPUT, {"max_seq_length": most, "do_lower_case": False})


def has_default_prompt(name: str) -> bool:
    """Return whether sentence-transformers puts a text before others, where none is asked for."""
    return bool((_read(name, _SETTINGS) or {}).get("default_prompt_name"))


def _is_plain(inputs: Settings, pooling: Settings, settings: Settings) -> bool:
    differing = {name for name, value in inputs.items() if value not in _USUAL.get(name, [None])}
    if differing - {"max_seq_length", "modality_config", "unpad_inputs"}:
        return False
    return bool(pooling.get("include_prompt", True)) and not settings.get("default_prompt_name")


def _kind(type: str) -> str:
    """Return the class of a module of sentence-transformers, or the whole name of another."""
    return type.rpartition(".")[2] if type.startswith("sentence_transformers.") else type


def _pooling(name: str, settings: Settings) -> str:
    """Return the pooling of an encoder.

    Raises:
        HarpError: it is none of `POOLINGS`.
    """
    mode = settings.get("pooling_mode")
    if mode == DECODER:
        return DECODER
    chosen = [
        kind
        for kind, option in POOLINGS.items()
        if settings.get(option) or mode in (kind, option.removeprefix("pooling_mode_"))
    ]
    if len(chosen) != 1:
        raise HarpError(
            f"model {name} has a pooling that is not trained here: name one by pooling, "
            f"{', '.join(POOLINGS)}"
        )
    return chosen[0]


def _read(name: str, file: str) -> Any:
    """Read a file of a model; None if the model has no such file."""
    from transformers.utils import cached_file

    path = cached_file(
        name,
        file,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )
    if path is None:
        return None
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__}): restore it") from error


def _write(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")

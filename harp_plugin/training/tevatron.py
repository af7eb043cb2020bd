"""Import the trainer and the training arguments of the Tevatron that is installed.

No other module imports Tevatron. Release 0.1.0 on the package index is for dense retrieval and has
``tevatron.trainer.DenseTrainer`` and ``tevatron.arguments``. The main branch has
``tevatron.reranker``, and its training arguments are in ``tevatron.retriever.arguments``. Some
parts of them do not work with our models, with several processes or with transformers 5. These
modules replace them:

- Both: ``compute_loss`` and ``_save`` expect a Tevatron model (and in 0.1.0 fewer arguments), and
  neither version can resume or evaluate a model of ours: see `harp_plugin.training.trainer`.
- 0.1.0: ``_prepare_inputs`` expects (query, passage) tuples, ``get_train_dataloader`` gives every
  process the same batches, and ``training_step`` divides the loss: see
  `harp_plugin.training.trainer`.
- 0.1.0: ``DenseTrainer.__init__`` asks torch.distributed for its size if ``negatives_x_device`` is
  set, even if torch.distributed is not initialized; transformers no longer reads ``warmup_ratio``:
  see `harp_plugin.training.arguments`.
- 0.1.0 tokenizes with ``encode_plus``, which transformers 5 does not have. The main branch joins
  query and passage without a separator and drops token types. See `harp_plugin.training.data`,
  which has its own dataset and collator, and `harp_plugin.models.pairs`, which makes token ids.
- Main branch: ``RerankerModel`` assumes that every batch is full, and needs flash attention: see
  `harp_plugin.models.cross_encoder`.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import HarpError

__all__ = [
    "IS_MAIN",
    "DataArguments",
    "ModelArguments",
    "RerankerArguments",
    "TevatronTrainer",
    "TevatronTrainingArguments",
]

_INSTALL = "run `pip install 'harp-plugin[train]'`"

if find_spec("tevatron") is None:
    raise HarpError(f"tevatron is not installed: {_INSTALL}")
IS_MAIN = find_spec("tevatron.reranker") is not None
"""Whether the installed Tevatron is the main branch."""
if not IS_MAIN and find_spec("tevatron.trainer") is None:
    raise HarpError(
        "the installed tevatron has neither tevatron.trainer nor tevatron.reranker: "
        "install the release with `pip install tevatron==0.1.0`"
    )

try:
    if IS_MAIN:
        from tevatron.reranker import arguments as _reranker
        from tevatron.reranker.trainer import RerankerTrainer as TevatronTrainer
        from tevatron.retriever.arguments import (
            DataArguments,
            ModelArguments,
            TevatronTrainingArguments,
        )

        RerankerArguments = (_reranker.ModelArguments, _reranker.DataArguments)
    else:
        from tevatron.arguments import DataArguments, ModelArguments
        from tevatron.arguments import DenseTrainingArguments as TevatronTrainingArguments
        from tevatron.trainer import DenseTrainer as TevatronTrainer

        RerankerArguments = (ModelArguments, DataArguments)
except ModuleNotFoundError as error:
    raise HarpError(
        f"tevatron needs the package {error.name}, which is not installed: "
        f"run `pip install {(error.name or '').partition('.')[0]}`"
    ) from error
except ImportError as error:
    raise HarpError(f"tevatron cannot be imported ({error}): {_INSTALL}") from error

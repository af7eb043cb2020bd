"""The one place that knows which Tevatron is installed.

Release 0.1.0 on the package index is for dense retrieval and has ``tevatron.trainer.DenseTrainer``
and ``tevatron.arguments``; the main branch has ``tevatron.reranker``, and training arguments in
``tevatron.retriever.arguments``. What of them does not fit a joint model, several processes or
transformers 5, and where that is covered:

- Both: `compute_loss` and `_save` expect a Tevatron model (and 0.1.0's fewer arguments); neither
  can resume or evaluate one of ours: `trainer.HarpTrainer`.
- 0.1.0: `_prepare_inputs` expects (query, passage) tuples, and `get_train_dataloader` gives every
  process the same batches: `trainer.HarpTrainer`.
- 0.1.0: ``DenseTrainer.__init__`` asks torch.distributed for its size when ``negatives_x_device``
  is set, initialised or not; ``warmup_ratio`` is no longer read by transformers: `arguments`.
- 0.1.0 tokenises with ``encode_plus``, which is gone; main joins query and passage without a
  separator and drops token types: `data` brings its own dataset and collator.
- main: ``RerankerModel`` takes every batch to be full, and loads with flash attention: `model`.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import HarpError

INSTALL = "run `pip install 'harp-plugin[train]'`"

if find_spec("tevatron") is None:
    raise HarpError(f"tevatron is not installed: {INSTALL}")
IS_MAIN = find_spec("tevatron.reranker") is not None
if not IS_MAIN and find_spec("tevatron.trainer") is None:
    raise HarpError(
        "the installed tevatron has neither tevatron.trainer nor tevatron.reranker: "
        "install the release with `pip install tevatron==0.1.0`"
    )

try:
    if IS_MAIN:
        from tevatron.reranker.trainer import RerankerTrainer as TevatronTrainer
        from tevatron.retriever.arguments import TevatronTrainingArguments
    else:
        from tevatron.arguments import DenseTrainingArguments as TevatronTrainingArguments
        from tevatron.trainer import DenseTrainer as TevatronTrainer
except ModuleNotFoundError as error:
    raise HarpError(
        f"tevatron needs the package {error.name}, which is not installed: "
        f"run `pip install {(error.name or '').partition('.')[0]}`"
    ) from error
except ImportError as error:
    raise HarpError(f"tevatron cannot be imported ({error}): {INSTALL}") from error

__all__ = ["IS_MAIN", "TevatronTrainer", "TevatronTrainingArguments"]

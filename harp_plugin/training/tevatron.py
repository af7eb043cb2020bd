"""The one place that knows which Tevatron is installed.

Release 0.1.0 on the package index has ``tevatron.trainer.DenseTrainer`` and ``tevatron.arguments``.
What of it no longer fits transformers 5, and where that is covered:

- ``DenseTrainer`` overrides `_prepare_inputs`, `compute_loss`, `get_train_dataloader` and `_save`
  for (query, passage) tuples, older signatures and one process: see `trainer.HarpTrainer`.
- ``DenseTrainer.__init__`` asks torch.distributed for its size when ``negatives_x_device`` is set,
  initialised or not, and ``warmup_ratio`` is no longer read by transformers: see `arguments`.
- ``tevatron.data`` and ``tevatron.datasets`` tokenise with ``encode_plus``, which is gone: `data`
  brings its own dataset and collator.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import HarpError

INSTALL = "run `pip install 'harp-plugin[train]'`"

if find_spec("tevatron") is None:
    raise HarpError(f"tevatron is not installed: {INSTALL}")
if find_spec("tevatron.trainer") is None or find_spec("tevatron.arguments") is None:
    raise HarpError(
        "the installed tevatron has no tevatron.trainer and tevatron.arguments: "
        "install the release with `pip install tevatron==0.1.0`"
    )

try:
    from tevatron.arguments import DenseTrainingArguments
    from tevatron.trainer import DenseTrainer
except ImportError as error:
    raise HarpError(f"tevatron cannot be imported ({error}): {INSTALL}") from error

__all__ = ["DenseTrainer", "DenseTrainingArguments"]

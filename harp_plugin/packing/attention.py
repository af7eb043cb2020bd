"""Attention within each of many texts that lie one behind the other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


class Kernel(NamedTuple):
    """A function for packed texts on CUDA, as torch and flash-attn offer it.

    Attributes:
        function: takes queries, keys, values, and the bounds and the longest of both sides.
        scale: its name for the scale of the scores.
        dropout: its name for the dropout of attention, None where it has none.
    """

    function: Callable[..., Any]
    scale: str
    dropout: str | None


@dataclass(slots=True)
class Packing:
    """Where the texts lie in a row of tokens.

    Attributes:
        lengths: of the texts, ascending, each at least 1.
        starts: first token of each text.
        text: of each token, on the device.
        positions: of each token in its text, on the device.
        bounds: ``starts`` with the end, int32, on the device.
        masks: of windows, by length.
    """

    lengths: np.ndarray
    starts: np.ndarray
    text: Tensor
    positions: Tensor
    bounds: Tensor
    masks: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @classmethod
    @torch.compiler.disable
    def of(cls, lengths: np.ndarray, device: torch.device, **more: Any) -> Packing:
        """Lay out texts of these lengths, ascending."""
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        text = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(bounds[-1]) - bounds[text]
        return cls(
            lengths,
            bounds[:-1],
            torch.from_numpy(text).to(device),
            torch.from_numpy(positions).to(device),
            torch.from_numpy(bounds.astype(np.int32)).to(device),
            **more,
        )

    @torch.compiler.disable
    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        window: int | None,
        dropout: float = 0.0,
    ) -> Tensor:
        """Attention within each text; all of shape (tokens, heads, width).

        Args:
            query: of each token.
            key: of each token.
            value: of each token.
            scale: of the scores.
            window: tokens this far apart or farther do not see each other; None for no such limit.
            dropout: share of the attention that is dropped.
        """
        states = (query, key, value)
        if not query.is_cuda:
            return self.by_length(*states, scale, window, dropout)
        if query.dtype in (torch.bfloat16, torch.float16) and _is_recent(query.device):
            for kernel in kernels():
                if not dropout or kernel.dropout:
                    return self.by_kernel(kernel, *states, scale, window, dropout)
        if window is None:
            return self.by_jagged(*states, scale, dropout)
        return self.by_length(*states, scale, window, dropout)

    def by_kernel(self, kernel: Kernel, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """All texts at once, by a kernel that takes bounds of texts."""
        longest = int(self.lengths[-1])
        options: dict[str, Any] = {kernel.scale: scale}
        if dropout and kernel.dropout:
            options[kernel.dropout] = dropout
        return kernel.function(
            query.contiguous(),
            key.contiguous(),
            value.contiguous(),
            self.bounds,
            self.bounds,
            longest,
            longest,
            window_size=(-1, -1) if window is None else (window - 1, window - 1),
            **options,
        )

    def by_jagged(self, query, key, value, scale, dropout=0.0) -> Tensor:
        """All texts at once, by torch's attention over jagged tensors: any precision, no window."""
        offsets = self.bounds.long()
        queries, keys, values = (
            torch.nested.nested_tensor_from_jagged(
                states.contiguous(),
                offsets,
                min_seqlen=int(self.lengths[0]),
                max_seqlen=int(self.lengths[-1]),
            ).transpose(1, 2)
            for states in (query, key, value)
        )
        found = scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, scale=scale)
        return found.transpose(1, 2).values()

    def by_length(self, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """Texts of the same length together, in any precision."""
        out = []
        for start, length, count in self._groups():
            place = slice(start, start + length * count)
            queries, keys, values = (
                part[place].reshape(count, length, *part.shape[1:]).transpose(1, 2)
                for part in (query, key, value)
            )
            mask = self.mask(length, window, query.device)
            found = scaled_dot_product_attention(queries, keys, values, mask, dropout, scale=scale)
            out.append(found.transpose(1, 2).reshape(length * count, *value.shape[1:]))
        return torch.cat(out)

    def _groups(self) -> list[tuple[int, int, int]]:
        """Start, length and number of the texts of each length."""
        lengths, first, counts = np.unique(self.lengths, return_index=True, return_counts=True)
        groups = zip(self.starts[first].tolist(), lengths.tolist(), counts.tolist(), strict=True)
        return list(groups)

    def mask(self, length: int, window: int | None, device) -> Tensor | None:
        """Which tokens see which, where that is not all: those less than ``window`` apart."""
        if window is None or length <= window:
            return None
        if (length, window) not in self.masks:
            places = torch.arange(length, device=device)
            self.masks[length, window] = (places[:, None] - places).abs() < window
        return self.masks[length, window]


@cache
def kernels() -> list[Kernel]:
    """What is installed, best first: torch >= 2.11's own, which drops nothing, and flash-attn's."""
    found = []
    with suppress(ImportError):
        from torch.nn.attention.varlen import varlen_attn

        if "window_size" in signature(varlen_attn).parameters:
            found.append(Kernel(varlen_attn, "scale", None))
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        found.append(Kernel(flash_attn_varlen_func, "softmax_scale", "dropout_p"))
    return found


@cache
def _is_recent(device: torch.device) -> bool:
    """Whether flash attention runs on this GPU: from Ampere on."""
    return torch.cuda.get_device_capability(device) >= (8, 0)

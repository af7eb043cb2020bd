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

from .products import attend_by_products, multiplies_bfloat16


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
            query: of each token, or of the first token of each text alone.
            key: of each token.
            value: of each token.
            scale: of the scores.
            window: tokens this far apart or farther do not see each other; None for no such limit.
            dropout: share of the attention that is dropped.
        """
        states = (query, key, value)
        if not query.is_cuda:
            return self._without_kernel(*states, scale, window, dropout)
        if query.dtype in (torch.bfloat16, torch.float16) and _is_recent(query.device):
            for kernel in kernels():
                if not dropout or kernel.dropout:
                    return self.by_kernel(kernel, *states, scale, window, dropout)
        if window is None:
            return self.by_jagged(*states, scale, dropout)
        return self.by_length(*states, scale, window, dropout)

    def _without_kernel(self, query, key, value, scale, window, dropout) -> Tensor:
        if window is None and not dropout and not torch.is_grad_enabled():
            if self._are_first(query):
                return self.by_text(query, key, value, scale)
            is_bfloat16 = query.device.type == "cpu" and query.dtype == torch.bfloat16
            if is_bfloat16 and multiplies_bfloat16():
                return attend_by_products(query, key, value, self.lengths, scale)
        return self.by_length(query, key, value, scale, window, dropout)

    def by_kernel(self, kernel: Kernel, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """All texts at once, by a kernel that takes bounds of texts."""
        options: dict[str, Any] = {kernel.scale: scale}
        if dropout and kernel.dropout:
            options[kernel.dropout] = dropout
        longest = int(self.lengths[-1])
        of_tokens = (self.bounds, longest)
        bounds, most = (self._first_alone, 1) if self._are_first(query) else of_tokens
        return kernel.function(
            query.contiguous(),
            key.contiguous(),
            value.contiguous(),
            bounds,
            self.bounds,
            most,
            longest,
            window_size=(-1, -1) if window is None else (window - 1, window - 1),
            **options,
        )

    def by_jagged(self, query, key, value, scale, dropout=0.0) -> Tensor:
        """All texts at once, by torch's attention over jagged tensors: any precision, no window."""
        shortest, longest = int(self.lengths[0]), int(self.lengths[-1])
        of_tokens = (self.bounds, shortest, longest)
        of_queries = (self._first_alone, 1, 1) if self._are_first(query) else of_tokens
        queries, keys, values = (
            torch.nested.nested_tensor_from_jagged(
                states.contiguous(), bounds.long(), min_seqlen=fewest, max_seqlen=most
            ).transpose(1, 2)
            for states, (bounds, fewest, most) in zip(
                (query, key, value), (of_queries, of_tokens, of_tokens), strict=True
            )
        )
        found = scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, scale=scale)
        return found.transpose(1, 2).values()

    def by_length(self, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """Texts of the same length together, in any precision."""
        first, out = self._are_first(query), []
        for texts, tokens, length in self._groups():
            queries, keys, values = (
                part[texts if first and part is query else tokens]
                .unflatten(0, (texts.stop - texts.start, -1))
                .transpose(1, 2)
                for part in (query, key, value)
            )
            mask = self.mask(length, window, query.device)
            if first and mask is not None:
                mask = mask[:1]
            found = scaled_dot_product_attention(queries, keys, values, mask, dropout, scale=scale)
            out.append(found.transpose(1, 2).flatten(0, 1))
        return torch.cat(out)

    def by_text(self, query, key, value, scale) -> Tensor:
        """Of first tokens alone: one query for each text, so no matrices of scores."""
        scores = (query[self.text] * key).sum(-1, dtype=torch.float32) * scale
        padded = scores.new_full((len(query), int(self.lengths[-1]), scores.shape[1]), -torch.inf)
        padded[self.text, self.positions] = scores
        weights = padded.softmax(1)[self.text, self.positions]
        found = query.new_zeros(query.shape, dtype=torch.float32)
        found.index_add_(0, self.text, weights[..., None] * value)
        return found.to(value.dtype)

    def _are_first(self, query: Tensor) -> bool:
        """Whether these are the queries of first tokens alone."""
        return len(query) < len(self.text)

    @property
    def _first_alone(self) -> Tensor:
        """``bounds`` of one token a text."""
        return torch.arange(
            len(self.lengths) + 1, dtype=self.bounds.dtype, device=self.bounds.device
        )

    def _groups(self) -> list[tuple[slice, slice, int]]:
        """Texts of each length, their tokens, and that length."""
        lengths, first, counts = np.unique(self.lengths, return_index=True, return_counts=True)
        starts = self.starts[first]
        return [
            (slice(text, text + count), slice(start, start + length * count), length)
            for text, start, length, count in zip(
                first.tolist(), starts.tolist(), lengths.tolist(), counts.tolist(), strict=True
            )
        ]

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

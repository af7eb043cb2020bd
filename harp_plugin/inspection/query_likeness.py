"""Anchor texts by how much they look like queries, as Anchor-DR's classifier scores them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..tasks import DrawOptions
from ..work.manifest import MANIFEST
from ..work.mapped import open_table

__all__ = ["LikenessSamples", "likeness_samples"]

_TEXTS = 10
_PAPERS_SHARE = 0.25


class LikenessSamples(NamedTuple):
    """Some anchor texts with their scores, the highest first.

    Attributes:
        share: of the distinct anchor texts that counts as the best: the one that pairs are drawn
            from, or the paper's quarter where pairs are drawn from all.
        best: the texts of the highest scores.
        around: those around the lowest score of the best share.
        worst: the texts of the lowest scores.
    """

    share: float
    best: list[tuple[str, float]]
    around: list[tuple[str, float]]
    worst: list[tuple[str, float]]


def likeness_samples(directory: Path, draw: DrawOptions) -> LikenessSamples | None:
    """Take anchor texts from the stage ``query_likeness``; None where the build has no such stage.

    Args:
        directory: the folder of the build.
        draw: how pairs are drawn.

    Raises:
        HarpError: the stage is damaged.
    """
    if not (directory / "query_likeness" / MANIFEST).is_file():
        return None
    share = draw.query_like_share
    share = share if share < 1 else _PAPERS_SHARE
    table = open_table(directory, "query_likeness", "anchor_texts", verify=True)
    scores = table.take(table.rows(table.ids), "score").to_numpy(zero_copy_only=False)
    order = np.argsort(-scores, kind="stable")
    cut = int(np.ceil(share * len(order)))
    texts = open_table(directory, "graph", "anchor_texts", ["id", "normalized"], verify=True)

    def chosen(first: int) -> list[tuple[str, float]]:
        start = min(max(first, 0), max(len(order) - _TEXTS, 0))
        places = order[start : start + _TEXTS]
        names = texts.take(texts.rows(table.ids[places]), "normalized").to_pylist()
        return list(zip(names, scores[places].tolist(), strict=True))

    return LikenessSamples(share, chosen(0), chosen(cut - _TEXTS // 2), chosen(len(order) - _TEXTS))

"""What the options ``fusions`` and ``first_stages`` say of a row of the table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import HarpError
from ..ranking.candidates import CANDIDATES, NORMALISATIONS, check_weights

__all__ = ["LEARN", "check_first_stages", "check_fusions"]

LEARN = "learn"
"""The weights of a fusion that are learnt."""
_RRF = "rrf"
_TEXTS = ("measure", "learn_on")
_NAMES = ("of", "weights", "normalization", "candidates", *_TEXTS)


def check_first_stages(first_stages: Mapping[str, Any]) -> dict[str, str]:
    """Check the further first stages: each is written as ``first_stage`` is.

    Raises:
        HarpError: one is no text.
    """
    for name, value in first_stages.items():
        if not isinstance(value, str):
            raise HarpError(
                f"first stage {name!r} is {value!r:.60}: name bm25, a run or module:function"
            )
    return dict(first_stages)


def check_fusions(fusions: Mapping[str, Any], rows: Collection[str]) -> dict[str, dict[str, Any]]:
    """Check the fusions, and write out what they leave unsaid.

    Args:
        fusions: by the names of their rows: a list of rows, or an object of ``of`` (such a list)
            and any of ``weights``, ``normalization``, ``candidates``, ``measure``, ``learn_on``.
        rows: names of the rows that can be fused.

    Returns:
        The objects, by the same names, with every entry; ``weights`` is ``learn`` or maps each row
        of ``of`` to its weight.

    Raises:
        HarpError: an entry is unknown or makes no sense; the message names the fusion.
    """
    return {name: _fusion(f"fusion {name!r}", row, rows) for name, row in fusions.items()}


def _fusion(where: str, row: Any, rows: Collection[str]) -> dict[str, Any]:
    given = {"of": row} if isinstance(row, list) else row
    if not isinstance(given, dict) or not isinstance(given.get("of"), list):
        raise HarpError(f"{where} is {row!r:.60}: list the rows that it is made of, in `of`")
    if unknown := sorted(given.keys() - set(_NAMES)):
        known = ", ".join(_NAMES)
        raise HarpError(f"{where} has unknown {', '.join(unknown)}: known are {known}")
    of = given["of"]
    for name in of:
        if name not in rows:
            raise HarpError(f"{where}: {name!r:.60} is no row: choose of {', '.join(rows)}")
    if len(of) < 2 or len(set(of)) < len(of):
        raise HarpError(f"{where} is of {', '.join(of) or 'nothing'}: name two or more rows once")
    fusion: dict[str, Any] = {"normalization": "zscore", "candidates": "first", "weights": LEARN}
    fusion |= dict.fromkeys(_TEXTS) | {k: v for k, v in given.items() if v is not None}
    if fusion["weights"] == _RRF:
        if given.get("normalization") not in (None, _RRF):
            raise HarpError(f"{where}: weights rrf need no normalization: leave it out")
        fusion |= {"normalization": _RRF, "weights": dict.fromkeys(of, 1.0)}
    _check_choices(where, fusion)
    _check_weights(where, fusion)
    return fusion


def _check_choices(where: str, fusion: dict[str, Any]) -> None:
    for name, choices in (("normalization", NORMALISATIONS), ("candidates", CANDIDATES)):
        if fusion[name] not in choices:
            known = ", ".join(choices)
            raise HarpError(f"{where}: unknown {name} {fusion[name]!r:.60}: choose one of {known}")
    for name in _TEXTS:
        if not isinstance(fusion[name], str | None):
            raise HarpError(f"{where}: {name} is {fusion[name]!r:.60}: it must be a text")
        if fusion[name] is not None and fusion["weights"] != LEARN:
            raise HarpError(f"{where}: {name} is for weights that are learnt: leave it out")


def _check_weights(where: str, fusion: dict[str, Any]) -> None:
    weights = fusion["weights"]
    if weights == LEARN:
        return
    if not isinstance(weights, dict) or not all(
        type(weight) in (int, float) for weight in weights.values()
    ):
        raise HarpError(
            f"{where}: weights are {weights!r:.60}: say learn or rrf, or give each row a number"
        )
    try:
        fusion["weights"] = check_weights(fusion["of"], weights)
    except HarpError as error:
        raise HarpError(f"{where}: {error}") from error

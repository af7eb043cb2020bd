"""Limits how many values a group has, before they are collected into a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["lowest", "with_lists"]

_PARTS = 64


def lowest(pairs: ir.Table, group: str, value: str, most: int) -> ir.Table:
    """Return, for every group, at most ``most`` rows: those of the lowest values.

    As ids are hashes, the lowest ids are a random sample. The limit applies in two steps, so that
    even the largest group fits into memory.

    Args:
        pairs: a table whose column ``value`` has distinct integers within a group.
        group: the name of the column that makes the groups.
        value: the name of the column of integers.
        most: the limit.

    Columns: those of ``pairs``.
    """
    import ibis

    by_part = ibis.window(group_by=[pairs[group], pairs[value] % _PARTS], order_by=pairs[value])
    parts = pairs.mutate(rank=ibis.row_number().over(by_part))
    parts = parts.filter(parts["rank"] < most).select(pairs.columns)
    ranked = parts.mutate(rank=ibis.row_number().over(ibis.window(group_by=group, order_by=value)))
    return ranked.filter(ranked["rank"] < most).select(pairs.columns)


def with_lists(rows: ir.Table, listed: Mapping[str, ir.Table]) -> ir.Table:
    """Collect the values that belong to each id into lists, ascending; empty where there is none.

    Args:
        rows: a table with distinct ids in its column ``id``.
        listed: by the name of the column to add, pairs of an id and a value: ``of``, ``value``.

    Columns: id, and those that are added.
    """
    import ibis

    none = ibis.literal([], type="array<int64>")
    for name, pairs in listed.items():
        lists = pairs.group_by("of").aggregate(**{name: pairs["value"].collect()})
        rows = rows.left_join(lists, [("id", "of")]).drop("of")
    return rows.select("id", **{name: rows[name].fill_null(none).sort() for name in listed})

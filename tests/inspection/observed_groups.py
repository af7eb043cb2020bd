"""Groups that are written by hand, as the audit sees them."""

from __future__ import annotations

from harp_plugin.inspection.groups import AuditedGroups, Observation
from harp_plugin.tasks import Pair, PairGroup

__all__ = ["grouped", "observed"]

STOPPED = frozenset({"the", "of"})


def observed(*members: tuple[str, str], **links) -> Observation:
    """A group of (query, document), the positive first, and what the link graph says of it."""
    pairs = [Pair(*member) for member in members]
    nothing = (None,) * len(pairs)
    links = {"in_links": nothing, "occurrences": nothing} | links
    return Observation(PairGroup("some", pairs[0], tuple(pairs[1:])), **links)


def grouped(observations, task: str = "some", **fields) -> AuditedGroups:
    """Groups of a task."""
    return AuditedGroups(task, list(observations), seed=1, stopped=STOPPED, **fields)

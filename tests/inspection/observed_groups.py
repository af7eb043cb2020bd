"""Groups that are written by hand, as the audit sees them."""

from __future__ import annotations

from harp_plugin.inspection.observations import Observation
from harp_plugin.sampling import stable_id
from harp_plugin.tasks import Pair, PairGroup

__all__ = ["observed"]

STOPPED = frozenset({"the", "of"})


def observed(*members: tuple[str, str], **known) -> Observation:
    """A group of (query, document), the positive first, and what is known of it."""
    pairs = [Pair(*member) for member in members]
    nothing = (None,) * len(pairs)
    facts = {
        "pages": nothing,
        "titles": nothing,
        "places": nothing,
        "units": tuple(stable_id(pair.document) for pair in pairs),
        "linked": None,
        "anchors": (),
        "in_links": nothing,
        "occurrences": nothing,
        "layers_agree": None,
        "boilerplate": nothing,
        "ranks": ((),) * len({pair.query for pair in pairs}),
        "stopped": STOPPED,
    }
    return Observation(PairGroup("some", pairs[0], tuple(pairs[1:])), **(facts | known))

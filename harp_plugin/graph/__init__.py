"""Stage 2: links become a resolved link graph.

Pure Ibis expressions without I/O, and the stage that runs them. Texts were normalised when they
were read; here are only equality, integers, windows and lists.
"""

from .anchor_texts import ambiguous_anchors
from .build import build_graph
from .functional import FUNCTIONAL_ANCHORS
from .options import GraphOptions

__all__ = ["FUNCTIONAL_ANCHORS", "GraphOptions", "ambiguous_anchors", "build_graph"]

"""Stage 2 of a build: links become a resolved link graph.

The stage runs Ibis expressions, which do no input or output. All texts were normalized when they
were read, so that the expressions need only equality, integers, windows and lists.
"""

from .build import build_graph
from .functional import FUNCTIONAL_ANCHORS
from .options import GraphOptions

__all__ = ["FUNCTIONAL_ANCHORS", "GraphOptions", "build_graph"]

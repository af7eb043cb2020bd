"""`harp adapt`: from a hyperlinked corpus to a search pipeline, and to a table of what it gains."""

from .options import SIGNALS, AdaptOptions
from .ranking import FUSION
from .run import adapt

__all__ = ["FUSION", "SIGNALS", "AdaptOptions", "adapt"]

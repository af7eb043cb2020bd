"""Texts one behind the other in one row of tokens, so that nothing is computed for padding."""

from .attention import Packing
from .classifier import GivenHiddenStates, Packed, PackedClassifier, without_encoder
from .encoder import PACKED, can_pack, encode, prepare

__all__ = [
    "PACKED",
    "GivenHiddenStates",
    "Packed",
    "PackedClassifier",
    "Packing",
    "can_pack",
    "encode",
    "prepare",
    "without_encoder",
]

"""Run models over texts that follow each other in one row of tokens, without padding."""

from .attention import Packing
from .classifier import PackedClassifier, PackedOutput, PassThroughEncoder, without_encoder
from .encoder import PACKED, can_pack, compiled_layers, encode, packed_states, prepare

__all__ = [
    "PACKED",
    "PackedClassifier",
    "PackedOutput",
    "Packing",
    "PassThroughEncoder",
    "can_pack",
    "compiled_layers",
    "encode",
    "packed_states",
    "prepare",
    "without_encoder",
]

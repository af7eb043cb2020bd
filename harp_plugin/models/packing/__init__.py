"""Run models over texts that follow each other in one row of tokens, without padding."""

from .attention import Packing
from .classifier import (
    PackedClassifier,
    PackedEncoder,
    PackedOutput,
    PassThroughEncoder,
    without_encoder,
)
from .encoder import PACKED, can_pack, encode, prepare

__all__ = [
    "PACKED",
    "PackedClassifier",
    "PackedEncoder",
    "PackedOutput",
    "Packing",
    "PassThroughEncoder",
    "can_pack",
    "encode",
    "prepare",
    "without_encoder",
]

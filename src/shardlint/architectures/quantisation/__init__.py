"""Quantisation as a property of rows: what a checkpoint says of its method, and what that makes of every row."""

from shardlint.architectures.quantisation.applying import quantised
from shardlint.architectures.quantisation.checkpoint import least_bits, quantisation_of, quantization_config

__all__ = ["least_bits", "quantisation_of", "quantised", "quantization_config"]

"""Weights with which a check sees little: freshly initialised ones make attention flat and hide errors in it."""

from __future__ import annotations

import torch
from torch import nn

_INITIAL_STD = 0.02
_FEWEST = 4


def blind_spots(module: nn.Module) -> list[str]:
    """A note where the linear layers look untrained: all weights with one small standard deviation, all biases zero."""
    layers = [part for part in module.modules() if isinstance(part, nn.Linear) and part.weight.numel() >= 64]
    if len(layers) < _FEWEST or not all(_looks_initial(layer) for layer in layers):
        return []
    note = "the weights look freshly initialised (standard deviation 0.02, biases zero): small errors may not show"
    return [f"{note}; check again with trained weights"]


def _looks_initial(layer: nn.Linear) -> bool:
    bias = layer.bias
    if bias is not None and bool(bias.detach().any()):
        return False
    spread = float(layer.weight.detach().to(torch.float32).std())
    return abs(spread - _INITIAL_STD) < 0.15 * _INITIAL_STD

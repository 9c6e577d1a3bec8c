"""How long the tables of a model are: where they end, so may the sizes that it takes."""

from __future__ import annotations

from torch import nn

_OWNERS_OF_FEATURES = (nn.Linear, nn.Bilinear, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.RNNBase)
_OF_FEATURES = ("weight", "bias", "running_")
"""How the names of tensors begin that have a number for each feature or channel."""


def table_lengths(module: nn.Module, *, least_axes: int = 1) -> list[int]:
    """Lengths of what may be indexed or cut by position: embeddings, buffers, parameters other than those of layers.

    `least_axes` leaves out those with fewer axes: many of them are features, too.
    """
    found: set[int] = set()
    for part in module.modules():
        left_out = _OF_FEATURES if _holds_features(part) else ()
        own = (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False))
        tables = [tensor for name, tensor in own if not name.startswith(left_out) and tensor.dim() >= least_axes]
        found |= {length for tensor in tables for length in tensor.shape if length > 1}
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            found.add(part.num_embeddings)
    return sorted(found)


def _holds_features(part: nn.Module) -> bool:
    """Layers with a weight for each feature or channel, of torch or of others that are built like them."""
    return (
        isinstance(part, (*_OWNERS_OF_FEATURES, nn.Embedding, nn.EmbeddingBag))
        or hasattr(part, "kernel_size")
        or all(hasattr(part, name) for name in ("num_features", "running_mean"))
    )

"""How long the tables of a model are: where they end, so may the sizes that it takes."""

from __future__ import annotations

from torch import nn

_OWNERS_OF_FEATURES = (nn.Linear, nn.Bilinear, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.RNNBase)


def table_lengths(module: nn.Module, *, least_axes: int = 1) -> list[int]:
    """Lengths of what may be indexed or cut by position: embeddings, buffers, parameters that belong to no usual layer.

    `least_axes` leaves out those with fewer axes: many of them are features, too.
    """
    found: set[int] = set()
    for part in module.modules():
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            found.add(part.num_embeddings)
        elif not _holds_features(part):
            own = (*part.parameters(recurse=False), *part.buffers(recurse=False))
            found |= {length for tensor in own if tensor.dim() >= least_axes for length in tensor.shape if length > 1}
    return sorted(found)


def _holds_features(part: nn.Module) -> bool:
    """Layers with a weight for each feature or channel, of torch or of others that are built like them."""
    return (
        isinstance(part, _OWNERS_OF_FEATURES)
        or hasattr(part, "kernel_size")
        or all(hasattr(part, name) for name in ("num_features", "running_mean"))
    )

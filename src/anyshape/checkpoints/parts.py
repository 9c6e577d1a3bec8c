"""One file of a checkpoint's export: a module, what may vary in it, and calls of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

Call = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """What `export` needs to know for one file."""

    name: str
    """Of the file, without suffix and as optimum calls it: `decoder_model_merged`."""
    module: nn.Module
    make_call: Callable[..., Call]
    """Keywords for the module at these sizes of the dims; the caller seeds the random numbers."""
    dims: Mapping[str, str | Sequence[str]]
    example: Mapping[str, int]
    """Dim -> a size at which the model runs."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def make_inputs(self, **sizes: int) -> dict[str, Any]:
        """The call in the form that `export` takes."""
        return {"args": (), "kwargs": self.make_call(**{**self.example, **sizes})}

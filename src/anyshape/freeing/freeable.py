"""Which dim of a static file could be asked for: read off its inputs, since a look must neither run nor expand it."""

from __future__ import annotations

from dataclasses import dataclass

from anyshape.errors import DeclarationError
from anyshape.freeing.wanted import declare_free
from anyshape.onnxfile.interface import Interface
from anyshape.sizes.spelling import spelled


@dataclass(frozen=True)
class Freeable:
    """A dim that is a number in a file."""

    dim: str
    size: int
    axes: tuple[str, ...]
    """`axis 0 of `x``."""

    def __str__(self) -> str:
        axes = ", ".join(self.axes)
        verb = spelled("anyshape.make_dynamic", "anyshape make-dynamic")
        return f"{self.dim} is {self.size} ({axes}): `{verb}` frees it, or says what pins it"


def find_freeable(interface: Interface) -> Freeable | None:
    """The batch of a static file; None where it is dynamic, or has none."""
    try:
        declaration = declare_free(interface, None)
    except DeclarationError:
        return None
    if declaration.kept:
        return None
    [(dim, size)] = declaration.sizes.items()
    axes = tuple(f"axis {row.index(dim)} of `{name}`" for name, row in declaration.wanted.items())
    return Freeable(dim, size, axes)

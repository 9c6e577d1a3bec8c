"""Which dims of a static file could be free, and which constants pin them: asked of the engine, nothing written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import onnx

from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.freeing.wanted import Declaration, declare_free
from anyshape.onnxfile.interface import Interface
from anyshape.onnxfile.untrusted import external_files
from anyshape.sizes import budgets


@dataclass(frozen=True)
class Freeable:
    """A dim that is a number in a file, and what became of the attempt to free it."""

    dim: str
    axes: tuple[str, ...]
    """`axis 0 of `x``."""
    rewrites: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    pinned: str = ""
    """Why it cannot be free; empty where it can."""
    constants: int = 0
    """How many nodes hold it to its size."""

    def __str__(self) -> str:
        where = f"{self.dim} ({', '.join(self.axes)})"
        if self.pinned:
            return f"{where} cannot be freed: {self.pinned}"
        count = f"{self.constants} constant{'s' if self.constants != 1 else ''}"
        if not self.constants:
            return f"{where}; no constant pins it"
        return f"{where}; {count} pin{'s' if self.constants == 1 else ''} it"


def find_freeable(path: Path, model: onnx.ModelProto, interface: Interface) -> Freeable | None:
    """Whether the batch of a static file could be free; None where the file is dynamic, large, or does not run."""
    declaration = _batch_of(interface) if _is_small(path, model, interface) else None
    if declaration is None:
        return None
    try:
        import onnx_ir as ir

        from anyshape.freeing.engine import free
        from anyshape.freeing.records import PinnedError
    except ModuleNotFoundError:  # without a runtime, nothing can be tried
        return None
    (dim,) = declaration.sizes
    axes = tuple(f"axis {row.index(dim)} of `{name}`" for name, row in declaration.wanted.items())
    try:
        loaded = ir.load(path)
    except Exception:  # noqa: BLE001  a file is data: what protobuf reads, the graph need not take
        return None
    try:
        freed = free(loaded, declaration.wanted, folder=path.parent)
    except PinnedError as error:
        return Freeable(dim, axes, pinned=str(error))
    except AnyshapeError:
        return None
    rewrites = tuple(
        f"{one.operator} `{one.node}`: {one.what.replace(' became ', ' would become ')}" for one in freed.rewrites
    )
    limits = tuple(f"{one.dim} <= {one.most}: {one.why}" for one in freed.bounds)
    return Freeable(dim, axes, rewrites, limits, constants=len({one.node for one in freed.rewrites}))


def _batch_of(interface: Interface) -> Declaration | None:
    try:
        declaration = declare_free(interface, None)
    except DeclarationError:
        return None
    return None if declaration.kept else declaration


def _is_small(path: Path, model: onnx.ModelProto, interface: Interface) -> bool:
    size = path.stat().st_size + sum(external_files(model, path).values())
    sizes = [[axis for axis in port.axes or () if isinstance(axis, int)] for port in interface.inputs]
    volume = sum(math.prod(shape) for shape in sizes)
    return (
        size <= budgets.MOST_BYTES_TO_FREE_ON_INSPECTION
        and len(model.graph.node) <= budgets.MOST_NODES_TO_FREE_ON_INSPECTION
        and volume <= budgets.MOST_ELEMENTS_TO_FREE_ON_INSPECTION
    )

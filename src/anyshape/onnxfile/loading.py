"""Reading a file that somebody else made: data, not to be trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import onnx

from anyshape.errors import DeclarationError


def load_checked(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """The graph without its weights; a sentence for what is no model, or whose data would be read from elsewhere."""
    path = Path(path)
    if not path.is_file():
        raise DeclarationError(f"there is no file `{path}`")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # noqa: BLE001  whatever the parser raises, the file is no model
        raise DeclarationError(f"`{path}` is not an ONNX file: {(str(error).splitlines() or [''])[0]}") from None
    if not model.HasField("graph"):
        raise DeclarationError(f"`{path}` is not an ONNX file: it has no graph")
    refuse_data_elsewhere(model, path)
    return model


def refuse_data_elsewhere(model: onnx.ModelProto, path: Path) -> None:
    """External data must lie in the model's own folder, links followed."""
    folder = path.resolve().parent
    for tensor in _tensors(model.graph):
        for entry in tensor.external_data:
            if entry.key != "location":
                continue
            target = (folder / entry.value).resolve()
            if os.path.isabs(entry.value) or not target.is_relative_to(folder):
                raise DeclarationError(
                    f"`{path.name}` keeps `{tensor.name}` in `{entry.value}`, outside its own folder: refused"
                )
            if not target.is_file():
                raise DeclarationError(f"`{path.name}` keeps `{tensor.name}` in `{entry.value}`, which does not exist")


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for inner in attribute.graphs:
                yield from _tensors(inner)

"""Reading a file that somebody else made: data, not to be trusted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from anyshape.errors import DeclarationError, first_line
from anyshape.onnxfile.destination import refuse_no_text
from anyshape.onnxfile.graph import ProtoGraph, graphs_within, proto_graphs
from anyshape.onnxfile.growth_limits import refuse_endless_growth
from anyshape.sizes import budgets


def load_checked(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """The graph without its weights; a sentence for what is no model, or whose data would be read from elsewhere."""
    path = Path(path)
    if not _is_file(path):
        raise DeclarationError(f"there is no file `{path}`")
    refuse_no_text(path)
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # noqa: BLE001  whatever the parser raises, the file is no model
        raise DeclarationError(f"`{path}` is not an ONNX file: {first_line(error)}") from None
    if not model.HasField("graph"):
        raise DeclarationError(f"`{path}` is not an ONNX file: it has no graph")
    refuse_endless_growth(model, path.name)
    if any(isinstance(name, bytes) for name in _names_for_users(model.graph)):  # what protobuf cannot decode
        raise DeclarationError(f"`{path}` is not an ONNX file: the name of an input, an output or a dim is no UTF-8")
    refuse_data_elsewhere(model, path)
    return model


def _names_for_users(graph: onnx.GraphProto) -> Iterator[object]:
    for port in (*graph.input, *graph.output):
        yield port.name
        yield from (dim.dim_param for dim in port.type.tensor_type.shape.dim)


def refuse_data_elsewhere(model: onnx.ModelProto, path: Path) -> None:
    """External data must lie in the model's own folder; links may lead to where the model itself is linked from."""
    for tensor in stored_tensors(model.graph, *model.functions):
        for entry in tensor.external_data:
            if entry.key != "location":
                continue
            kept = f"`{path.name}` keeps `{tensor.name}` in `{entry.value}`"
            target = _target_inside(path, entry.value)
            if target is None:
                raise DeclarationError(f"{kept}, outside its own folder: refused")
            if not _is_file(target):
                raise DeclarationError(f"{kept}, which does not exist")
            if any(len(number) > budgets.LONGEST_OFFSET for number in _offset_and_length(tensor)):
                raise DeclarationError(f"{kept}, at a place of more than {budgets.LONGEST_OFFSET} digits: refused")
            if missing := _bytes_missing(tensor, target):
                raise DeclarationError(f"{kept}, which is {missing} bytes too short for it")


def external_files(model: onnx.ModelProto, path: Path) -> dict[str, int]:
    """The files that hold the weights of a model which passed the checks above, with their bytes."""
    tensors = (tensor for graph in proto_graphs(model) for tensor in graph.initializer)
    names = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return {name: (path.parent / name).stat().st_size for name in sorted(names)}


def _offset_and_length(tensor: onnx.TensorProto) -> tuple[str, str]:
    """As digits; what is no number is the runtime's business."""
    found = {one.key: one.value for one in tensor.external_data if one.value.isascii() and one.value.isdecimal()}
    return found.get("offset", "0"), found.get("length", "0")


def _bytes_missing(tensor: onnx.TensorProto, target: Path) -> int:
    """By how much a file ends before the tensor that it should hold."""
    return max(0, sum(map(int, _offset_and_length(tensor))) - target.stat().st_size)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _target_inside(model: Path, location: str) -> Path | None:
    """Where a location leads, links followed; None for what lies elsewhere, or leads nowhere."""
    named = Path(location)
    if named.is_absolute() or ".." in named.parts:
        return None
    try:
        target = (model.parent / named).resolve()
        homes = (model.parent.resolve(), model.resolve().parent)
    except (OSError, RuntimeError, ValueError):  # a link to itself, a null byte
        return None
    return target if any(target.is_relative_to(home) for home in homes) else None


def stored_tensors(*graphs: ProtoGraph) -> Iterator[onnx.TensorProto]:
    """Every tensor that a file stores: weights, attributes, and those of inner graphs and functions."""
    for graph in graphs_within(*graphs):
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
            yield from _tensors_of_sparse(graph.sparse_initializer)
    yield from attribute_tensors(*graphs)


def attribute_tensors(*graphs: ProtoGraph) -> Iterator[onnx.TensorProto]:
    """Those of attributes alone, whose names mean nothing."""
    for attribute in (one for graph in graphs_within(*graphs) for node in graph.node for one in node.attribute):
        yield from ((attribute.t,) if attribute.HasField("t") else ())
        yield from attribute.tensors
        yield from _tensors_of_sparse((attribute.sparse_tensor, *attribute.sparse_tensors))


def _tensors_of_sparse(sparse: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)

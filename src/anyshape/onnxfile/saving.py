"""Writing a file so that a failure, an exception, Ctrl-C or a kill leaves what was there before, or the new, whole.

A model is written into a temporary folder beside its target and checked there; how it gets to its place is told in
`placement.py`. Weights are streamed from where they lie in memory, into a file beside the model or behind the graph in
the model itself: nothing copies them on the way. A file of weights is named after the model and what it holds, so that
those of the old model and of the new one stand side by side until the model is replaced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from anyshape.errors import SavingError
from anyshape.onnxfile.destination import folder_made
from anyshape.onnxfile.placement import data_name, digest_of, place_model, require_room, told_in_a_sentence
from anyshape.onnxfile.temporary_folders import remove_left, temporary_folder
from anyshape.sizes import budgets

# ---- a stage, and what leads to and from it


@contextlib.contextmanager
def staged(destination: Path | None) -> Iterator[Stage]:
    """A temporary folder beside the destination, gone afterwards whatever happens; those of the killed go before."""
    parent = None if destination is None else destination.parent
    with contextlib.ExitStack() as stack:
        with told_in_a_sentence(destination):
            stack.enter_context(folder_made(parent))
            told = remove_left(parent) if parent is not None else ()
            remove_left()  # of the system's own folder nobody needs to hear
            folder = stack.enter_context(temporary_folder(parent))
        stage = Stage(folder / ("model.onnx" if destination is None else destination.name), destination, [*told])
        try:
            yield stage
        except SavingError:
            raise
        except Exception as error:
            if not folder.exists():  # whatever was said about the file that vanished with it
                raise SavingError(_VANISHED.format(folder.parent)) from error
            raise
        if not folder.exists():
            raise SavingError(_VANISHED.format(folder.parent))


_VANISHED = "the folder `{}` was removed meanwhile, or what was in it: nothing was written"


@dataclass(frozen=True)
class Stage:
    """A temporary folder that holds the model under its final name."""

    path: Path
    destination: Path | None
    notes: list[str] = field(default_factory=list)
    """What was removed on the way, or left."""
    _weights: list[ExternalWeights] = field(default_factory=list)
    """What an earlier `write` put beside the model; a list, since a frozen stage remembers it from write to write."""

    def write(self, model: ir.Model, *, external_data: bool | None = None) -> None:
        """Write a model here; the weights that it shares with the one before are not written again."""
        known = self._weights.pop() if self._weights else ExternalWeights(self.path)
        with told_in_a_sentence(self.destination):
            if _goes_beside(model, external_data):
                self._weights.append(known)
                known.save(model, self.path)
            else:
                known.remove()
                save_inline(model, self.path)

    def commit(self) -> None:
        """Put the files in their final place; the old ones stay if anything goes wrong."""
        if self.destination is not None:
            data = self._weights[0].path if self._weights else None
            with told_in_a_sentence(self.destination):
                self.notes.extend(place_model(self.path, data, self.destination))


# ---- a model with its weights, beside it or inside


def write_model(model: ir.Model, path: Path, *, external_data: bool | None = None) -> None:
    """Write a model; weights go beside it when asked for, or by themselves when they are large."""
    if _goes_beside(model, external_data):
        ExternalWeights(path).save(model, path)
    else:
        save_inline(model, path)


def _goes_beside(model: ir.Model, external_data: bool | None) -> bool:
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    return bool(weights) and (external_data if external_data is not None else weights > budgets.EXTERNAL_FROM_BYTES)


def _is_large(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.nbytes > budgets.BESIDE_THE_MODEL_FROM_BYTES


@contextlib.contextmanager
def _putting_back(values: list[ir.Value]) -> Iterator[None]:
    """Afterwards the model holds its weights in memory again: the file may move."""
    kept = [value.const_value for value in values]
    try:
        yield
    finally:
        for value, tensor in zip(values, kept, strict=True):
            value.const_value = tensor


# ---- beside the model: streamed to their file once; what shares memory shares its place in the file, too


@dataclass
class ExternalWeights:
    """The weights in one data file, which a model that is written again with the same weights keeps as it is.

    It is written again when its contract is known.
    """

    model: Path
    """The file that they are written beside."""
    path: Path | None = None
    """Their own file, named after what it holds; None before it is written."""
    _stored: list[Any] = field(default_factory=list)
    """As they are in memory, kept alive: an identity must not be given twice."""
    _places: dict[int, ir.ExternalTensor] = field(default_factory=dict)

    def save(self, model: ir.Model, path: Path) -> None:
        """Write the model, and its weights where they are others than those in the file."""
        values = [value for graph in model.graphs() for value in graph.initializers.values() if _is_large(value)]
        tensors = [value.const_value for value in values]
        if not self._holds_all(tensors):
            self._write_data(tensors)
        with _putting_back(values):
            for value in values:
                value.const_value = self._places[id(value.const_value)]
            ir.save(model, path)

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.path = None

    def _holds_all(self, tensors: list[Any]) -> bool:
        same = len(tensors) == len(self._stored) and all(a is b for a, b in zip(tensors, self._stored, strict=True))
        return same and self.path is not None and self.path.exists()

    def _write_data(self, tensors: list[Any]) -> None:
        """Those that lie inside of another one's memory are not written, but pointed to."""
        whole, inside = _own_and_shared({id(tensor): tensor for tensor in tensors})
        self.remove()  # two of them need not find room
        require_room(self.model.parent, sum(tensor.nbytes for tensor in whole.values()))
        self.path = unnamed = self.model.with_name(data_name(self.model.name, ""))
        written = ir.external_data.convert_tensors_to_external(list(whole.values()), unnamed.parent, unnamed.name)
        if unnamed.stat().st_size < max(((one.offset or 0) + (one.length or 0) for one in written), default=0):
            raise OSError("the system dropped the end of it without a word")
        self.path = unnamed.replace(self.model.with_name(data_name(self.model.name, digest_of(unnamed))))
        placed = [
            _place_in(self.path, one.offset or 0, tensor) for one, tensor in zip(written, whole.values(), strict=True)
        ]
        self._places = dict(zip(whole, placed, strict=True))
        for key, (tensor, other, shift) in inside.items():
            self._places[key] = _place_in(self.path, (self._places[id(other)].offset or 0) + shift, tensor)
        self._stored = tensors


@dataclass(frozen=True)
class _Memory:
    """Where a tensor lies in memory: a device and a run of bytes."""

    device: str
    start: int
    end: int

    def holds(self, other: _Memory) -> bool:
        return self.device == other.device and self.start <= other.start and other.end <= self.end


def _own_and_shared(tensors: dict[int, Any]) -> tuple[dict[int, Any], dict[int, tuple[Any, Any, int]]]:
    """Tensors with memory of their own; and those in another's memory, with it and the place inside."""
    inside: dict[int, tuple[Any, Any, int]] = {}
    last: tuple[Any, _Memory] | None = None
    known = [(tensor, memory) for tensor in tensors.values() if (memory := _memory_of(tensor)) is not None]
    for tensor, memory in sorted(known, key=lambda row: (row[1].device, row[1].start, -row[1].end)):
        if last is not None and last[1].holds(memory):
            inside[id(tensor)] = (tensor, last[0], memory.start - last[1].start)
        else:
            last = (tensor, memory)
    return {key: tensor for key, tensor in tensors.items() if key not in inside}, inside


def _memory_of(tensor: Any) -> _Memory | None:
    """Where a tensor of torch lies, if in one piece; None for all others."""
    raw: Any = getattr(tensor, "raw", None)
    if not hasattr(raw, "data_ptr") or not raw.is_contiguous() or raw.nbytes != tensor.nbytes:
        return None
    return _Memory(str(raw.device), raw.data_ptr(), raw.data_ptr() + raw.nbytes)


def _place_in(path: Path, offset: int, tensor: Any) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        path.name, offset, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=tensor.name, base_dir=path.parent
    )


# ---- inside: protobuf would copy weights three times on the way to the file
#
# In a protobuf message fields may stand in any order, and each says how long it is. So the model is encoded without its
# weights, and these follow at the end of its graph.

_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


def save_inline(model: ir.Model, path: Path) -> None:
    """Write the model with all weights in it."""
    values = [
        value for value in model.graph.initializers.values() if _is_large(value) and _has_bytes(value.const_value)
    ]
    tensors = {str(value.name): value.const_value for value in values if value.const_value is not None}
    weights = sum(tensor.nbytes for tensor in tensors.values())
    require_room(path.parent, weights)
    if tensors and weights <= budgets.MOST_BYTES_INLINE:
        proto = _proto_without(model, values)
        graph = proto.graph.SerializeToString()
        if weights + len(graph) <= budgets.MOST_BYTES_INLINE - budgets.ROOM_FOR_THE_REST:
            proto.ClearField("graph")
            with path.open("wb") as file:
                file.write(proto.SerializeToString())
                _write_graph(file, graph, tensors)
            return
    ir.save(model, path)  # which says what is wrong with too many bytes


def _has_bytes(tensor: object) -> bool:
    """Texts have none of their own, and weights in another file stay there."""
    return not isinstance(tensor, ir.StringTensor | ir.ExternalTensor)


def _proto_without(model: ir.Model, values: list[ir.Value]) -> onnx.ModelProto:
    """The model without these weights."""
    nothing = ir.tensor([0])
    with _putting_back(values):
        for value in values:
            value.const_value = nothing
        proto = ir.to_proto(model)
    names = {value.name for value in values}
    rest = [one for one in proto.graph.initializer if one.name not in names]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(rest)
    return proto


def _write_graph(file: BinaryIO, graph: bytes, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    """The rest of a graph, and the weights behind it."""
    heads = {name: _tensor_head(name, tensor) for name, tensor in tensors.items()}
    lengths = {name: len(head) + tensors[name].nbytes for name, head in heads.items()}
    whole = len(graph) + sum(len(_field_start(_INITIALIZER, length)) + length for length in lengths.values())
    file.write(_field_start(_GRAPH, whole) + graph)
    for name, tensor in tensors.items():
        data = tensor.tobytes()
        if len(data) != tensor.nbytes:
            raise ValueError(f"{name} says that it has {tensor.nbytes} bytes, and has {len(data)}")
        file.write(_field_start(_INITIALIZER, lengths[name]) + heads[name])
        file.write(data)


def _tensor_head(name: str, tensor: ir.TensorProtocol) -> bytes:
    """A tensor up to its data."""
    proto = onnx.TensorProto(name=name, data_type=tensor.dtype.value, dims=tensor.shape.numpy())
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    proto.metadata_props.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in tensor.metadata_props.items())
    return bytes(proto.SerializeToString()) + _field_start(_RAW_DATA, tensor.nbytes)


def _field_start(field: int, length: int) -> bytes:
    """What stands before the bytes of a field: its number, that it has a length, and the length."""
    return _varint(field << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    """Seven bits in each byte, the lowest first; the eighth says that more follow."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])

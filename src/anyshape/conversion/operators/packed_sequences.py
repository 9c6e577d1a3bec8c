"""Packed sequences keep their padded form in reach, so that layers run over it with the lengths beside.

Recognised: `pack_padded_sequence`, `pad_packed_sequence`, `pack_sequence`, `pad_sequence`, and recurrent layers that
are given a packed sequence. Torch loops over rows and lengths, and asks for values where only sizes are known. What is
put there are operators: their results have the shapes that torch's have, unknown where the lengths decide. Whoever uses
`.data` or `.batch_sizes` gets just what torch gives. What torch checks about lengths is checked where the module runs
in PyTorch, at every size.

In ONNX they are padded sequences with their lengths beside, packed only where somebody looks. A value that holds packed
data remembers what it was packed from, so that a layer and the padding afterwards start from there; nodes that packed
in vain are unused and dropped. Packed data of another origin (`PackedSequence(layer(packed.data), packed.batch_sizes)`)
are padded again.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial, reduce
from types import CodeType
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn
from torch.nn.utils.rnn import PackedSequence, invert_permutation

from anyshape.conversion.operators.onnx_words import INT64, op, rank
from anyshape.conversion.operators.recurrent import (
    NAMESPACE,
    STATES,
    Layers,
    layer_called,
    layers_in_onnx,
    running_rows,
    tell_of_layer,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, all_patched, is_known, know
from anyshape.conversion.speed.operator_table import define
from anyshape.source import live_code
from anyshape.torchkit.patches import patched
from anyshape.torchkit.private_names import attribute, lookup

# ---- what is recognised


@contextlib.contextmanager
def _functions_answered(answers: Mapping[str, Answer]) -> Iterator[None]:
    """Inside, functions of `torch.nn.utils.rnn` are answered by others.

    They are imported into the user's modules and kept under names that nobody can list, so their code is exchanged,
    not their names.
    """
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            elsewhere = f"_anyshape_{name}"
            stack.enter_context(patched(rnn, elsewhere, answer))
            stack.enter_context(live_code.running([(getattr(rnn, name), _code_that_calls(elsewhere))]))
        yield


def _code_that_calls(name: str) -> CodeType:
    """The code of a function that passes its arguments on to a global of this name."""

    def elsewhere(*args: Any, **kwargs: Any) -> Any:
        return _named_later(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821

    return elsewhere.__code__.replace(co_names=(name,))


def _forward_for_packed(dense: Callable[..., Any], packed: Callable[..., Any]) -> Callable[..., Any]:
    """A layer that is given a packed sequence calls `packed`, which may decline with NotImplemented."""

    def forward(self: Any, input: Any, hx: Any = None) -> Any:  # noqa: A002  torch's name for it
        if isinstance(input, PackedSequence):
            attribute(self, "torch.nn.RNNBase._update_flat_weights", lambda: None)()
            result = packed(self, input, hx)
            if result is not NotImplemented:
                return result
        return dense(self, input, hx)

    return forward


# ---- what stands in a trace, and its shapes

_BATCH = "_anyshape_batch"
"""How `batch_sizes` of a sequence that was packed here remembers its number of rows."""


def _shapes_of_packed(data: Tensor, _l: Tensor, _s: Any, _u: Any, _f: bool) -> tuple[Tensor, Tensor]:
    context = torch.library.get_ctx()
    rows, steps = context.new_dynamic_size(min=1), context.new_dynamic_size(min=1)
    return data.new_empty((rows, *data.shape[2:])), data.new_empty((steps,), dtype=torch.int64)


def _shapes_of_padded(
    data: Tensor, batch_sizes: Tensor, _s: Any, _u: Any, batch: Any, batch_first: bool, _value: float, total: Any
) -> tuple[Tensor, Tensor]:  # fmt: skip
    steps = batch_sizes.shape[0] if total is None else total
    lead = (batch, steps) if batch_first else (steps, batch)
    return data.new_empty((*lead, *data.shape[1:])), data.new_empty((batch,), dtype=torch.int64)


define(
    f"{NAMESPACE}::pack",
    "(Tensor input, Tensor lengths, Tensor? sorted_indices, Tensor? unsorted_indices, bool batch_first)"
    " -> (Tensor, Tensor)",
    _shapes_of_packed,
)
define(
    f"{NAMESPACE}::pad",
    "(Tensor data, Tensor batch_sizes, Tensor? sorted_indices, Tensor? unsorted_indices, SymInt batch,"
    " bool batch_first, float padding_value, SymInt? total_length) -> (Tensor, Tensor)",
    _shapes_of_padded,
)


# ---- the repair


def _pack(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True  # noqa: A002
) -> PackedSequence:  # fmt: skip
    lengths = lengths.tensor if isinstance(lengths, Unread) else lengths
    # as_tensor would make numbers of sizes
    lengths = lengths.to(torch.int64) if isinstance(lengths, Tensor) else torch.tensor(lengths, dtype=torch.int64)
    order = None if enforce_sorted else torch.sort(lengths, descending=True)[1]
    back = invert_permutation(order)
    data, batch_sizes = getattr(torch.ops, NAMESPACE).pack(input, lengths, order, back, batch_first)
    know(batch_sizes.shape[0] <= input.shape[1 if batch_first else 0])
    setattr(batch_sizes, _BATCH, input.shape[0 if batch_first else 1])
    return PackedSequence(data, batch_sizes, order, back)


def _pad(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> Any:  # fmt: skip
    if total_length is not None:
        know(sequence.batch_sizes.shape[0] <= total_length)
    return getattr(torch.ops, NAMESPACE).pad(
        sequence.data, sequence.batch_sizes, sequence.sorted_indices, sequence.unsorted_indices,
        _batch_of(sequence), batch_first, padding_value, total_length,
    )  # fmt: skip


def _pack_list(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    return _pack(_pad_list(sequences), [one.shape[0] for one in sequences], enforce_sorted=enforce_sorted)


def _pad_list(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:  # fmt: skip
    """Each is filled up to the longest, whose length may be unknown."""
    rows = tuple(sequences)
    steps = reduce(torch.sym_max, [row.shape[0] for row in rows])
    filled = []
    for row in rows:
        missing = steps - row.shape[0]
        last = (0, missing) if padding_side == "right" else (missing, 0)
        filled.append(nn.functional.pad(row, (*(0, 0) * (row.dim() - 1), *last), value=padding_value))
    return torch.stack(filled, dim=0 if batch_first else 1)


def _batch_of(sequence: PackedSequence) -> Any:
    """The number of rows: known from how it was packed, or else the first of the batch sizes."""
    if sequence.unsorted_indices is not None:
        return sequence.unsorted_indices.shape[0]
    known = getattr(sequence.batch_sizes, _BATCH, None)
    return sequence.batch_sizes[0].item() if known is None else known


def _forward_over_packed(used: Used, module: nn.RNNBase, sequence: PackedSequence, states: Any) -> Any:
    """What the layers' own `forward` does with a packed sequence; the states are in the order of the user's rows."""
    if module.training and module.dropout:
        return NotImplemented
    data, batch_sizes, order, back = sequence
    if (order is None) != (back is None):
        return NotImplemented
    weights: list[Any] = list(attribute(module, "torch.nn.RNNBase._flat_weights", module.parameters()))
    cells = module.num_layers * (2 if module.bidirectional else 1)
    if states is None:
        states = _zero_states(module, sequence, cells)
    elif module.mode == "LSTM":
        states = tuple(_states_of_rows(state, sequence) for state in states)
    else:
        states = _states_of_rows(states, sequence)
    name = module.mode.lower()
    tell_of_layer(used, name, weights, module.bias, cells)
    shape = (weights, module.mode, module.bias, module.num_layers, module.bidirectional)
    output, *ends = layer_called("packed", name, (data, batch_sizes, order, back), states, *shape)
    return PackedSequence(output, batch_sizes, order, back), tuple(ends) if name == "lstm" else ends[0]


def _states_of_rows(state: Tensor, sequence: PackedSequence) -> Tensor:
    """The states of the rows that there are: torch picks them by their numbers where it sorts, and takes no others."""
    batch = _batch_of(sequence)
    if sequence.sorted_indices is None:
        know(state.shape[1] == batch)
    return state if is_known(state.shape[1] == batch) else state[:, :batch]


def _zero_states(module: nn.RNNBase, sequence: PackedSequence, cells: int) -> Any:
    zeros = partial(torch.zeros, dtype=sequence.data.dtype, device=sequence.data.device)
    batch = _batch_of(sequence)
    hidden = zeros((cells, batch, module.proj_size or module.hidden_size))
    return (hidden, zeros((cells, batch, module.hidden_size))) if module.mode == "LSTM" else hidden


_ANSWERS: dict[str, Answer] = {
    "pack_padded_sequence": _pack,
    "pad_packed_sequence": _pad,
    "pack_sequence": _pack_list,
    "pad_sequence": _pad_list,
}


@contextlib.contextmanager
def _packed_by_operators(used: Used) -> Iterator[None]:
    forward = partial(_forward_over_packed, used)
    layers = ((layer, "forward", _forward_for_packed(layer.forward, forward)) for layer in (nn.RNN, nn.LSTM, nn.GRU))
    with _functions_answered(_ANSWERS), all_patched(layers):
        yield


PACKED_SEQUENCES = Repair("packed sequences", _packed_by_operators, always=True)

# ---- lengths that reach packing as a list or an array of numpy

# Torch would read them one by one, which pins the batch. What `lengths.tolist()` gives here still is the tensor:
# packing takes it as it is, since the same numbers are in it; whoever does anything else reads them, as before.

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Unread(Sequence[Any]):
    """The numbers of a tensor that nobody has read yet.

    It is no list on purpose: what looks into lists without asking them would find nothing.
    """

    def __init__(self, tensor: Tensor, read: Callable[[], Any], used: Used) -> None:
        self._tensor, self._read, self._used = tensor, read, used

    @property
    def tensor(self) -> Tensor:
        self._used("pack_padded_sequence: lengths stay a tensor")
        return self._tensor

    def __len__(self) -> int:
        return len(self._read())

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._read(), name)


def _read_when_needed(used: Used, read: Callable[..., Any]) -> Answer:
    def answer(tensor: Tensor, **options: Any) -> Any:
        is_lengths = tensor.dim() == 1 and tensor.dtype in _WHOLE and not isinstance(tensor.shape[0], int)
        return Unread(tensor, partial(read, tensor, **options), used) if is_lengths else read(tensor, **options)

    return answer


_TRACED_TENSORS = (
    "torch._subclasses.fake_tensor.FakeTensor",
    "torch._subclasses.functional_tensor.FunctionalTensor",
)


def _lengths_unread(used: Used) -> AbstractContextManager[None]:
    owners = filter(None, map(lookup, _TRACED_TENSORS))
    places = itertools.product(owners, ("tolist", "numpy"))
    return all_patched((*place, _read_when_needed(used, getattr(*place))) for place in places)


LISTED_LENGTHS = Repair("listed lengths", _lengths_unread)

# ---- ONNX

_MEMORY = "anyshape.packed_from"


@dataclass(frozen=True)
class Padded:
    """A padded sequence (time, batch, ...) and its lengths; `order` sorts its rows by length, longest first."""

    sequence: ir.Value
    lengths: ir.Value
    order: ir.Value | None
    back: ir.Value | None
    batch_sizes: ir.Value | None = None


def _onnx_pack(
    sequence: ir.Value, lengths: ir.Value, order: ir.Value | None, back: ir.Value | None, batch_first: bool
) -> tuple[ir.Value, ir.Value]:
    if batch_first:
        sequence = op.Transpose(sequence, perm=[1, 0, *range(2, rank(sequence))])
    padded = Padded(sequence, lengths, order, back)
    batch_sizes = _batch_sizes(padded)
    return _packed_data(padded, batch_sizes), batch_sizes


def _batch_sizes(padded: Padded) -> Any:
    """How many rows have a first step, how many a second, as far as the longest row."""
    running = running_rows(padded.lengths, op.ReduceMax(padded.lengths, keepdims=0))
    return op.ReduceSum(op.Cast(running, to=INT64), [1], keepdims=0)


def _packed_data(padded: Padded, batch_sizes: ir.Value) -> Any:
    """The packed data: the steps that there are, time by time, the longest rows first."""
    ordered = _in_order(padded, None, None)
    shape = op.Shape(ordered.sequence)
    running = running_rows(ordered.lengths, op.Squeeze(op.Slice(shape, [0], [1])))
    flat = op.Reshape(ordered.sequence, op.Concat(op.Constant(value_ints=[-1]), op.Slice(shape, [2], [2**31]), axis=0))
    data = op.Compress(flat, op.Reshape(running, [-1]), axis=0)
    data.meta[_MEMORY] = replace(padded, batch_sizes=batch_sizes)
    return data


def _in_order(padded: Padded, order: ir.Value | None, back: ir.Value | None) -> Padded:
    """The same with its rows in the order of another sequence: sorted, where `order` and `back` are None."""
    if padded.back is back:
        return padded
    if padded.order is not None:
        padded = _with_rows(padded, padded.order, None, None)
    return padded if back is None else _with_rows(padded, back, order, back)


def _with_rows(padded: Padded, rows: ir.Value, order: ir.Value | None, back: ir.Value | None) -> Padded:
    return Padded(op.Gather(padded.sequence, rows, axis=1), op.Gather(padded.lengths, rows, axis=0), order, back)


def _padded_form(data: ir.Value, batch_sizes: ir.Value, order: ir.Value | None, back: ir.Value | None) -> Padded:
    """What the data were packed from, with its rows in the order that `order` belongs to."""
    known = data.meta.get(_MEMORY)
    if known is None or known.batch_sizes is not batch_sizes:
        known = _padded_again(data, batch_sizes)
    return _in_order(known, order, back)


def _padded_again(data: ir.Value, batch_sizes: ir.Value) -> Padded:
    """Step t of row b lies at place `(sum of earlier batch sizes) + b`; places that a row lacks hold anything."""
    rows = op.Range(0, op.Squeeze(op.Slice(batch_sizes, [0], [1])), 1)
    places = op.Add(op.Unsqueeze(op.CumSum(batch_sizes, 0, exclusive=1), [1]), op.Unsqueeze(rows, [0]))
    last = op.Sub(op.Shape(data, start=0, end=1), [1])
    there = op.Less(op.Unsqueeze(rows, [0]), op.Unsqueeze(batch_sizes, [1]))
    lengths = op.ReduceSum(op.Cast(there, to=INT64), [0], keepdims=0)
    return Padded(op.Gather(data, op.Min(places, last), axis=0), lengths, None, None)


def _onnx_pad(
    data: ir.Value, batch_sizes: ir.Value, order: ir.Value | None, back: ir.Value | None, _batch: Any,
    batch_first: bool, padding_value: float, total_length: Any,
) -> tuple[ir.Value, ir.Value]:  # fmt: skip
    padded = _padded_form(data, batch_sizes, order, back)
    steps = op.ReduceMax(padded.lengths, keepdims=0) if total_length is None else op.Reshape(total_length, [])
    return _padded_with(padded, steps, data, padding_value, batch_first=batch_first), padded.lengths


def _padded_with(padded: Padded, steps: ir.Value, data: ir.Value, padding_value: float, *, batch_first: bool) -> Any:
    """As many steps as wanted, with the padding value behind each row's last."""
    others = list(range(1, rank(data)))
    last = op.Sub(op.Shape(padded.sequence, start=0, end=1), [1])
    sequence = op.Gather(padded.sequence, op.Min(op.Range(0, steps, 1), last), axis=0)
    running = running_rows(padded.lengths, steps)
    if batch_first:
        sequence = op.Transpose(sequence, perm=[1, 0, *(axis + 1 for axis in others)])
        running = op.Transpose(running, perm=[1, 0])
    if others:
        running = op.Unsqueeze(running, [axis + 1 for axis in others])
    return op.Where(running, sequence, op.Cast(padding_value, to=data.dtype))


def _onnx_layers(begin: slice, *args: Any) -> tuple[ir.Value, ...]:
    data, batch_sizes, order, back = args[: begin.start]
    padded = _padded_form(data, batch_sizes, order, back)
    output, *ends = layers_in_onnx(padded.sequence, padded.lengths, args[begin], Layers(*args[begin.stop :]))
    return _packed_data(replace(padded, sequence=output), batch_sizes), *ends


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    f"{NAMESPACE}::pack": _onnx_pack,
    f"{NAMESPACE}::pad": _onnx_pad,
    **{f"{NAMESPACE}::{name}": partial(_onnx_layers, STATES[name]) for name in ("packed", "packed_lstm")},
}

"""Packed sequences keep their padded form in reach, so that layers run over it with the lengths beside.

Recognised: `pack_padded_sequence`, `pad_packed_sequence`, `pack_sequence`, `pad_sequence`, and recurrent layers that
are given a packed sequence. Torch loops over rows and lengths, and asks for values where only sizes are known. What is
put there are operators: their results have the shapes that torch's have, unknown where the lengths decide.
`conversion/operators/packed_sequences_packed.py` runs the layers over the padded form; whoever uses `.data` or `.batch_sizes` gets
just what torch gives. What torch checks about lengths is checked where the module runs in PyTorch, at every size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, invert_permutation

from anyshape.conversion.operators import recurrent
from anyshape.conversion.operators.packed_sequences_lengths import Unread
from anyshape.conversion.operators.recurrent_recurrent import NAMESPACE, layer, tell
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.custom_operators import register_fake

_BATCH = "_anyshape_batch"
"""How `batch_sizes` of a sequence that was packed here remembers its number of rows."""


def _shape_of_packed(data: Tensor, _l: Tensor, _s: Any, _u: Any, _f: bool) -> tuple[Tensor, Tensor]:
    context = torch.library.get_ctx()
    rows, steps = context.new_dynamic_size(min=1), context.new_dynamic_size(min=1)
    return data.new_empty((rows, *data.shape[2:])), data.new_empty((steps,), dtype=torch.int64)


def _shape_of_padded(
    data: Tensor, batch_sizes: Tensor, _s: Any, _u: Any, batch: Any, batch_first: bool, _value: float, total: Any
) -> tuple[Tensor, Tensor]:  # fmt: skip
    steps = batch_sizes.shape[0] if total is None else total
    lead = (batch, steps) if batch_first else (steps, batch)
    return data.new_empty((*lead, *data.shape[1:])), data.new_empty((batch,), dtype=torch.int64)


torch.library.define(
    f"{NAMESPACE}::pack",
    "(Tensor input, Tensor lengths, Tensor? sorted_indices, Tensor? unsorted_indices, bool batch_first)"
    " -> (Tensor, Tensor)",
)
register_fake(f"{NAMESPACE}::pack", _shape_of_packed)
torch.library.define(
    f"{NAMESPACE}::pad",
    "(Tensor data, Tensor batch_sizes, Tensor? sorted_indices, Tensor? unsorted_indices, SymInt batch,"
    " bool batch_first, float padding_value, SymInt? total_length) -> (Tensor, Tensor)",
)
register_fake(f"{NAMESPACE}::pad", _shape_of_padded)


def _pack(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True  # noqa: A002
) -> PackedSequence:  # fmt: skip
    lengths = lengths.tensor if isinstance(lengths, Unread) else lengths
    # as_tensor would make numbers of sizes
    lengths = lengths.to(torch.int64) if isinstance(lengths, Tensor) else torch.tensor(lengths, dtype=torch.int64)
    order = None if enforce_sorted else torch.sort(lengths, descending=True)[1]
    back = invert_permutation(order)
    data, batch_sizes = getattr(torch.ops, NAMESPACE).pack(input, lengths, order, back, batch_first)
    recurrent.know(batch_sizes.shape[0] <= input.shape[1 if batch_first else 0])
    setattr(batch_sizes, _BATCH, input.shape[0 if batch_first else 1])
    return PackedSequence(data, batch_sizes, order, back)


def _pad(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> Any:  # fmt: skip
    if total_length is not None:
        recurrent.know(sequence.batch_sizes.shape[0] <= total_length)
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


def _forward(used: Used, module: nn.RNNBase, sequence: PackedSequence, states: Any) -> Any:
    """What the layers' own `forward` does with a packed sequence; the states are in the order of the user's rows."""
    if module.training and module.dropout:
        return NotImplemented
    data, batch_sizes, order, back = sequence
    if (order is None) != (back is None):
        return NotImplemented
    weights, cells = recurrent.flat_weights(module), module.num_layers * (2 if module.bidirectional else 1)
    if states is None:
        states = _zeros(module, sequence, cells)
    elif module.mode == "LSTM":
        states = tuple(_rows_of(state, sequence) for state in states)
    else:
        states = _rows_of(states, sequence)
    name = module.mode.lower()
    tell(used, name, weights, module.bias, cells)
    shape = (weights, module.mode, module.bias, module.num_layers, module.bidirectional)
    output, *ends = layer("packed", name, (data, batch_sizes, order, back), states, *shape)
    return PackedSequence(output, batch_sizes, order, back), tuple(ends) if name == "lstm" else ends[0]


def _rows_of(state: Tensor, sequence: PackedSequence) -> Tensor:
    """The states of the rows that there are: torch picks them by their numbers where it sorts, and takes no others."""
    batch = _batch_of(sequence)
    if sequence.sorted_indices is None:
        recurrent.know(state.shape[1] == batch)
    return state if recurrent.is_known(state.shape[1] == batch) else state[:, :batch]


def _zeros(module: nn.RNNBase, sequence: PackedSequence, cells: int) -> Any:
    zeros = partial(torch.zeros, dtype=sequence.data.dtype, device=sequence.data.device)
    batch = _batch_of(sequence)
    hidden = zeros((cells, batch, module.proj_size or module.hidden_size))
    return (hidden, zeros((cells, batch, module.hidden_size))) if module.mode == "LSTM" else hidden


_ANSWERS: dict[str, Callable[..., Any]] = {
    "pack_padded_sequence": _pack,
    "pad_packed_sequence": _pad,
    "pack_sequence": _pack_list,
    "pad_sequence": _pad_list,
}


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with recurrent.sequences_answered(_ANSWERS), recurrent.packed_layers_answered(partial(_forward, used)):
        yield


PACKED_SEQUENCES = Repair("packed sequences", _apply, always=True)

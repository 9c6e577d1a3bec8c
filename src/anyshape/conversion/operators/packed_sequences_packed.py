"""Packed sequences in ONNX: padded sequences with their lengths beside, packed only where somebody looks.

The operators are those of `conversion/operators/packed_sequences.py`. A value that holds packed data remembers what it was packed
from, so that a layer and the padding afterwards start from there; nodes that packed in vain are unused and dropped.
Packed data of another origin (`PackedSequence(layer(packed.data), packed.batch_sizes)`) are padded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.recurrent_recurrent_x import run_layers

_MEMORY = "anyshape.packed_from"


@dataclass(frozen=True)
class Padded:
    """A padded sequence (time, batch, ...) and its lengths; `order` sorts its rows by length, longest first."""

    sequence: ir.Value
    lengths: ir.Value
    order: ir.Value | None
    back: ir.Value | None
    batch_sizes: ir.Value | None = None


def _pack(
    sequence: ir.Value, lengths: ir.Value, order: ir.Value | None, back: ir.Value | None, batch_first: bool
) -> tuple[ir.Value, ir.Value]:
    if batch_first:
        others = range(2, len(sequence.shape))  # type: ignore[arg-type]
        sequence = op.Transpose(sequence, perm=[1, 0, *others])
    padded = Padded(sequence, lengths, order, back)
    batch_sizes = _batch_sizes(padded)
    return _remembering(padded, batch_sizes), batch_sizes


def _batch_sizes(padded: Padded) -> Any:
    """How many rows have a first step, how many a second, as far as the longest row."""
    running = _running(padded.lengths, op.ReduceMax(padded.lengths, keepdims=0))
    return op.ReduceSum(op.Cast(running, to=ir.DataType.INT64), [1], keepdims=0)


def _running(lengths: ir.Value, steps: ir.Value) -> Any:
    """(time, batch): whether the row has such a step, for so many steps."""
    return op.Less(op.Unsqueeze(op.Range(0, steps, 1), [1]), op.Unsqueeze(lengths, [0]))


def _remembering(padded: Padded, batch_sizes: ir.Value) -> Any:
    """The packed data: the steps that there are, time by time, the longest rows first."""
    ordered = _in_order(padded, None, None)
    shape = op.Shape(ordered.sequence)
    running = _running(ordered.lengths, op.Squeeze(op.Slice(shape, [0], [1])))
    flat = op.Reshape(ordered.sequence, op.Concat(op.Constant(value_ints=[-1]), op.Slice(shape, [2], [2**31]), axis=0))
    data = op.Compress(flat, op.Reshape(running, [-1]), axis=0)
    data.meta[_MEMORY] = Padded(padded.sequence, padded.lengths, padded.order, padded.back, batch_sizes)
    return data


def _in_order(padded: Padded, order: ir.Value | None, back: ir.Value | None) -> Padded:
    """The same with its rows in the order of another sequence: sorted, where `order` and `back` are None."""
    if padded.back is back:
        return padded
    if padded.order is not None:
        padded = _permuted(padded, padded.order, None, None)
    return padded if back is None else _permuted(padded, back, order, back)


def _permuted(padded: Padded, rows: ir.Value, order: ir.Value | None, back: ir.Value | None) -> Padded:
    return Padded(op.Gather(padded.sequence, rows, axis=1), op.Gather(padded.lengths, rows, axis=0), order, back)


def _padded(data: ir.Value, batch_sizes: ir.Value, order: ir.Value | None, back: ir.Value | None) -> Padded:
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
    lengths = op.ReduceSum(op.Cast(there, to=ir.DataType.INT64), [0], keepdims=0)
    return Padded(op.Gather(data, op.Min(places, last), axis=0), lengths, None, None)


def _pad(
    data: ir.Value, batch_sizes: ir.Value, order: ir.Value | None, back: ir.Value | None, _batch: Any,
    batch_first: bool, padding_value: float, total_length: Any,
) -> tuple[ir.Value, ir.Value]:  # fmt: skip
    padded = _padded(data, batch_sizes, order, back)
    steps = op.ReduceMax(padded.lengths, keepdims=0) if total_length is None else op.Reshape(total_length, [])
    return _filled(padded, steps, data, padding_value, batch_first=batch_first), padded.lengths


def _filled(padded: Padded, steps: ir.Value, data: ir.Value, padding_value: float, *, batch_first: bool) -> Any:
    """As many steps as wanted, with the padding value behind each row's last."""
    others = list(range(1, len(data.shape)))  # type: ignore[arg-type]
    last = op.Sub(op.Shape(padded.sequence, start=0, end=1), [1])
    sequence = op.Gather(padded.sequence, op.Min(op.Range(0, steps, 1), last), axis=0)
    running = _running(padded.lengths, steps)
    if batch_first:
        sequence = op.Transpose(sequence, perm=[1, 0, *(axis + 1 for axis in others)])
        running = op.Transpose(running, perm=[1, 0])
    if others:
        running = op.Unsqueeze(running, [axis + 1 for axis in others])
    return op.Where(running, sequence, op.Cast(padding_value, to=data.dtype))


def _packed(
    data: ir.Value, batch_sizes: ir.Value, order: ir.Value | None, back: ir.Value | None, h: ir.Value, weights: Any,
    mode: str, has_biases: bool, num_layers: int, bidirectional: bool, *, c: ir.Value | None = None,
) -> tuple[ir.Value, ...]:  # fmt: skip
    padded = _padded(data, batch_sizes, order, back)
    output, *ends = run_layers(
        mode, padded.sequence, padded.lengths, [h] if c is None else [h, c], weights, has_biases=has_biases,
        num_layers=num_layers, bidirectional=bidirectional,
    )  # fmt: skip
    return _remembering(Padded(output, padded.lengths, padded.order, padded.back), batch_sizes), *ends


def _packed_lstm(
    data: ir.Value, batch_sizes: ir.Value, order: Any, back: Any, h: ir.Value, c: ir.Value, *rest: Any
) -> tuple[ir.Value, ...]:
    return _packed(data, batch_sizes, order, back, h, *rest, c=c)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_recurrent::pack": _pack,
    "anyshape_recurrent::pad": _pad,
    "anyshape_recurrent::packed": _packed,
    "anyshape_recurrent::packed_lstm": _packed_lstm,
}

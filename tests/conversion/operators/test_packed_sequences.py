"""Packed sequences export as they are, whatever is done with them while they are packed."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import anyshape
from anyshape.conversion.operators.packed_sequences import PACKED_SEQUENCES
from anyshape.conversion.operators.repair import applied
from tests.running import is_right

SIZES = [(4, 6), (1, 1), (1, 9), (7, 1), (5, 12)]
DIMS = {"x": "batch seq 4", "lengths": "batch"}


def rows(batch: int, seq: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch * 100 + seq)
    return torch.randn(batch, seq, 4, generator=generator), torch.randint(1, seq + 1, (batch,), generator=generator)


def sorted_rows(batch: int, seq: int) -> tuple[Tensor, ...]:
    x, lengths = rows(batch, seq)
    return x, lengths.sort(descending=True).values


def exported(model: nn.Module, path: Path, make: Any = rows, strategy: str = "torch.export") -> Counter:
    """The operators of a file that is right at all sizes."""
    result = anyshape.export(
        model.eval(), make_inputs=lambda batch, seq: make(batch, seq), f=path, dims=DIMS, quick=True
    )
    assert result.attempts[-1].strategy == strategy
    assert [sizes for sizes in SIZES if not is_right(path, model, make(*sizes))] == []
    return Counter(node.op_type for node in onnx.load(path).graph.node)


class Padded(nn.Module):
    """Packs, runs two kinds of layers, and pads again; all that comes out is an output."""

    def __init__(self, total: Any, *, is_sorted: bool) -> None:
        super().__init__()
        self.pack = partial(pack_padded_sequence, enforce_sorted=is_sorted, batch_first=True)
        self.total = total
        self.lstm = nn.LSTM(4, 3, 2, bidirectional=True)
        self.gru = nn.GRU(6, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        state = x[:, 0].unsqueeze(0)
        encoded, states = self.lstm(self.pack(x, lengths))
        encoded, last = self.gru(encoded, state)
        total = x.size(1) if self.total == "seq" else self.total
        return *pad_packed_sequence(encoded, total_length=total, padding_value=0.25), states, last


@pytest.mark.parametrize(("total", "is_sorted"), [(None, False), ("seq", True), (20, False)])
def test_layers_run_over_the_padded_form(total: Any, is_sorted: bool, tmp_path: Path) -> None:
    make = sorted_rows if is_sorted else rows
    operators = exported(Padded(total, is_sorted=is_sorted), tmp_path / "model.onnx", make)
    assert (operators["LSTM"], operators["GRU"]) == (2, 1)
    assert operators["Compress"] == operators["TopK"] == operators["Loop"] == 0


class WhilePacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)
        self.rnn = nn.RNN(5, 3, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        packed = packed._replace(data=self.linear(packed.data).relu())
        encoded, last = self.rnn(packed)
        return encoded.data, encoded.batch_sizes, last, pad_packed_sequence(encoded)


def test_data_and_batch_sizes_are_what_torch_gives(tmp_path: Path) -> None:
    operators = exported(WhilePacked(), tmp_path / "model.onnx", sorted_rows)
    assert operators["Compress"] == 2


class OwnForward(nn.LSTM):
    """A layer that unpacks by itself and calls the operator with sorted states."""

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        data, batch_sizes, order, back = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        state = x[:, 0, :3].unsqueeze(0).index_select(1, order)
        weights = list(self.parameters())
        output, hidden, memory = torch.lstm(
            data, batch_sizes, (state, state), weights, True, 1, 0.0, self.training, False
        )
        padded, _ = pad_packed_sequence(PackedSequence(output, batch_sizes, order, back), batch_first=True)
        return padded, hidden.index_select(1, back), memory.index_select(1, back)


def test_rows_in_sorted_order(tmp_path: Path) -> None:
    exported(OwnForward(4, 3), tmp_path / "model.onnx")


class Tagger(nn.LSTM):
    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        encoded, (last, _) = super().forward(rnn.pack_padded_sequence(x, lengths, True, False))
        return rnn.pad_packed_sequence(encoded, True, total_length=x.size(1))[0], last[-1]


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(
            {"taggers": nn.ModuleList([Tagger(4, 4), Tagger(4, 4, proj_size=2, bidirectional=True)])}
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        once, last = self.parts["taggers"][0](x, lengths)
        twice, other = self.parts["taggers"][1](once, lengths)
        return twice * x[:, :, :1], torch.cat([last, other], dim=1)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stack = Stack()

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        return self.stack(x, lengths)


def test_subclasses_deep_inside_with_and_without_an_operator(tmp_path: Path) -> None:
    operators = exported(Outer(), tmp_path / "model.onnx")
    assert (operators["LSTM"], operators["Scan"]) == (1, 2)


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        first = x[0]
        packed = rnn.pack_sequence([first, first[1:], x[:, 0]], enforce_sorted=False)
        left = rnn.pad_sequence([first, x[:, 0]], batch_first=True, padding_value=2.0, padding_side="left")
        return self.gru(packed)[1], left, lengths


def test_sequences_of_different_lengths_are_packed_and_padded(tmp_path: Path) -> None:
    path, model = tmp_path / "model.onnx", Listed().eval()
    anyshape.export(model, rows(4, 6), path, dims=DIMS, sizes={"seq": "2.."}, quick=True)
    assert [sizes for sizes in [(4, 6), (1, 2), (3, 11), (9, 2)] if not is_right(path, model, rows(*sizes))] == []


class AsList(nn.Module):
    def __init__(self, read: str) -> None:
        super().__init__()
        self.read = read
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        read = getattr(lengths.cpu(), self.read)()
        packed = pack_padded_sequence(x, read, batch_first=True, enforce_sorted=False)
        return self.gru(packed)[1]


@pytest.mark.parametrize("read", ["tolist", "numpy"])
def test_lengths_that_are_read_stay_a_tensor(read: str, tmp_path: Path) -> None:
    exported(AsList(read), tmp_path / "model.onnx", strategy="torch.export with repairs")


class ReadOtherwise(AsList):
    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        return x[:, : max(lengths.tolist())]


def test_lengths_that_are_read_otherwise_are_no_reason_to_guess() -> None:
    with pytest.raises(anyshape.ExportError):
        anyshape.export(ReadOtherwise("tolist").eval(), make_inputs=rows, dims=DIMS, quick=True)


def test_functions_are_as_before_even_after_an_error() -> None:
    packed = pack_padded_sequence(*sorted_rows(3, 5), batch_first=True)
    codes = [getattr(rnn, name).__code__ for name in rnn.__all__ if name != "PackedSequence"]
    names, forward = set(vars(rnn)), nn.GRU.forward
    with pytest.raises(ZeroDivisionError), applied([PACKED_SEQUENCES]):
        assert pad_packed_sequence.__code__ not in codes
        raise ZeroDivisionError
    assert [getattr(rnn, name).__code__ for name in rnn.__all__ if name != "PackedSequence"] == codes
    assert (set(vars(rnn)), nn.GRU.forward) == (names, forward)
    assert pad_packed_sequence(packed)[0].shape[1] == 3

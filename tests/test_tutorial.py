"""Three examples from an introduction, with `torch.onnx.export` replaced by `anyshape.export` and nothing else."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape
from tests.running import is_right


class Dense(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, classes)

    def forward(self, x):
        return self.linear(x)


class LastStep(nn.Module):
    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(width, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, classes)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.linear(states[:, -1, :])


class SameShape(nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        columns = x.shape[1]
        return x.view(rows, columns)


BATCH = {"input": {0: "batch_size"}, "output": {0: "batch_size"}}
BATCH_AND_LENGTH = {"input": {0: "batch_size", 1: "sequence_length"}, "output": {0: "batch_size"}}
EXAMPLES = {
    "linear": (lambda: Dense(10, 5), (3, 10), BATCH),
    "rnn": (lambda: LastStep(10, 20, 5), (3, 5, 10), BATCH_AND_LENGTH),
    "reshape": (SameShape, (3, 10), BATCH),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_the_introduction_is_right_at_every_size(name: str, tmp_path: Path) -> None:
    make, shape, dynamic_axes = EXAMPLES[name]
    torch.manual_seed(0)
    model, path = make(), tmp_path / "model.onnx"
    result = anyshape.export(
        model, torch.randn(*shape), path, input_names=["input"], output_names=["output"], dynamic_axes=dynamic_axes
    )
    assert result.verdict == "checked"
    assert result.inputs[0].axes == tuple(dynamic_axes["input"].get(axis, size) for axis, size in enumerate(shape))
    assert result.outputs[0].axes[0] == "batch_size"
    lengths = (1, 2, 7, 40) if len(shape) == 3 else (None,)
    for batch, length in itertools.product((1, 2, 3, 11), lengths):
        sizes = (batch, *([length] if length else []), 10)
        assert is_right(path, _renamed(model), (torch.randn(*sizes),))


def _renamed(model: nn.Module) -> nn.Module:
    """The file's input is called `input`, and so must the leaf be for the comparison."""

    class Renamed(nn.Module):
        def forward(self, input):  # noqa: A002
            return model(input)

    return Renamed()

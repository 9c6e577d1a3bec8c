"""Numbers that the file computes from sizes are Python's, to the last bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import fx, nn

from anyshape.conversion.operators.numbers import exact_number, gather
from tests.conversion.functions import exported

NUMBERS = {
    "scaled": lambda n: int(n * 0.7),
    "rounded": lambda n: round(n / 2),
    "up": lambda n: -(-n // 3),
    "remainder of a fraction": lambda n: int(n % 0.3 * 100),
    "floor of a fraction": lambda n: int(n // 0.1),
    "root": lambda n: math.isqrt(n),
    "up to a part": lambda n: math.ceil(n * 0.3),
    "there and back": lambda n: int(n / 3 * 3),
    "cube root": lambda n: int(n ** (1 / 3)),
    "digits in base three": lambda n: int(math.log(n, 3)),
    "digits": lambda n: int(math.log10(n)),
    "by logarithm and back": lambda n: int(math.exp(math.log(n))),
    "steps of a fraction": lambda n: torch.arange(0, 1, 1 / n).shape[0],
}


class Filled(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.number = NUMBERS[name]

    def forward(self, *tensors: torch.Tensor) -> Any:
        return torch.zeros(1, dtype=torch.int64) + self.number(tensors[0].shape[0])


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_a_size_is_pythons_at_every_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(Filled(name), lambda n: (torch.randn(n, 2),), ["n 2"], {"n": 10}, path)
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    sizes = range(1, 300)
    found = [session.run(None, {given.name: torch.zeros(n, 2).numpy()})[0].item() for n in sizes]
    assert found == [NUMBERS[name](n) for n in sizes]


def test_a_chain_through_a_float_becomes_one_node() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_zeros(torch.sym_int(x.shape[0] * 0.5 + 1))

    n = torch.export.Dim("n", min=2, max=100)
    program = torch.export.export(Scaled(), (torch.randn(6),), dynamic_shapes=({0: n},))
    gather(program.graph_module)
    (node,) = (node for node in program.graph.nodes if node.target is exact_number)
    name, (added, scaled, one) = node.args[0]
    assert (name, added, one) == ("trunc", "add", 1)
    assert scaled[0] == "mul"
    assert scaled[1][0] == "float"
    assert isinstance(scaled[1][1], fx.Node)
    assert scaled[2] == 0.5


@pytest.mark.parametrize(
    ("name", "spread"),
    {
        "a step by the size": lambda x: torch.arange(0, 1, 1 / x.shape[0]),
        "an end by the size": lambda x: torch.arange(x.shape[0] * 0.1),
        "both ends": lambda x: torch.arange(-x.shape[0] * 0.3, x.shape[0] * 0.7, 0.1),
        "in double": lambda x: torch.arange(0, x.shape[0], 0.3, dtype=torch.float64),
        "downwards": lambda x: torch.arange(x.shape[0] / 3, -0.5, -0.25),
    }.items(),
)
def test_a_range_of_fractions_is_torchs(name: str, spread: Any, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    exported(spread, lambda n: (torch.randn(n, 2),), ["n 2"], {"n": 10}, path)
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    for n in range(1, 200):
        (got,) = session.run(None, {given.name: torch.zeros(n, 2).numpy()})
        want = spread(torch.zeros(n, 2)).numpy()
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        # torch adds several lanes to one rounded number
        assert abs(got - want).max(initial=0) <= 2 * np.finfo(want.dtype).eps * abs(want).max(initial=1)

"""Sizes for an example: those that the failing line speaks of are found, whatever it is that fails."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from anyshape.cli.example_sizes import SizeSearch
from anyshape.sizes.notation import SizeRange
from tests.cli.project import run


def found(model, *dims: str, width: int = 8, **ranges: SizeRange) -> dict[str, int] | None:
    """The first sizes at which a model runs on one tensor with these dims, and a last axis of numbers."""

    def error_at(sizes):
        try:
            model(torch.ones(*sizes.values(), width))
        except Exception as error:  # noqa: BLE001  whatever the model raises
            return error
        return None

    lengths = [size for weight in getattr(model, "parameters", list)() for size in weight.shape]
    return SizeSearch({dim: ranges.get(dim, SizeRange()) for dim in dims}, [width], lengths).first_that_runs(error_at)


def hidden(x: Tensor) -> Tensor:
    first = x.reshape(2, 2, 16)
    return first.sum() + x.reshape(
        8,
        8,
    )


def one_after_the_other(x: Tensor) -> Tensor:
    assert x.shape[0] == 19
    assert x.shape[1] == 23
    return x


class Headed(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(36, 4)

    def forward(self, x):
        return self.head(x.flatten(1))


def test_small_and_different_sizes_come_first():
    assert found(lambda x: x + 1, "batch", "seq") == {"batch": 3, "seq": 4}
    assert found(lambda x: nn.functional.conv1d(x.mT, torch.ones(1, 8, 9)), "batch", "seq") == {"batch": 16, "seq": 17}


def test_a_number_in_the_failing_line_is_a_size():
    assert found(lambda x: x.reshape(2, 8), "batch") == {"batch": 2}
    assert found(lambda x: x.reshape(2, 24), "batch") == {"batch": 6}
    assert found(lambda x: x.view(2, 4), "batch", "seq", width=1) == {"batch": 2, "seq": 4}


def test_a_failure_may_show_further_lines():
    assert found(hidden, "batch") == {"batch": 8}
    assert found(one_after_the_other, "batch", "seq") == {"batch": 19, "seq": 23}


def test_dims_that_must_agree_and_lengths_of_the_model_are_found():
    assert found(lambda x: x @ x.mT.mT if x.shape[0] == x.shape[1] else x.nothing, "a", "b", width=1) is not None
    assert found(Headed(), "batch", "h", "w", width=1) == {"batch": 3, "h": 6, "w": 6}


def test_declared_sizes_are_kept():
    assert found(lambda x: x.reshape(2, 8), "batch", batch=SizeRange(3, 9)) is None
    assert found(lambda x: x.reshape(2, 32), "batch", batch=SizeRange(4, 9)) == {"batch": 8}


@pytest.mark.parametrize("shape", ["2, 8", "2, 4, 8"])
def test_diagnose_finds_the_number_where_the_example_was_not_given(tmp_path, shape):
    (tmp_path / "pinned.py").write_text(
        f"from torch import nn\nclass M(nn.Module):\n    def forward(self, x):\n        return x.reshape({shape}) + 1\n"
    )
    result = run("diagnose", tmp_path / "pinned.py:M", "--input", "x: float32[batch, 8]", "--quiet", "--concise")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].endswith("pinned.py:4:16: error[pinned-dim]: `batch` cannot vary")

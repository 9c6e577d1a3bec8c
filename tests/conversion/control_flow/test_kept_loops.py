"""While loops are kept, code without a varying size runs as ever; afterwards everything is as before."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.kept_loops import rewritten
from tests.conversion.control_flow.keeping import traced


def _nothing(sentence: str, suspects: Any = ()) -> None:
    raise AssertionError(sentence)


class Everyday(nn.Module):
    """Loops in all forms over things of a plain length."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.__secret = 2

    def pairs(self) -> Any:
        for number in range(self.__secret):
            yield number, number + 1

    def found(self, wanted: int) -> Any:
        for place, value in enumerate([5, 7, 9]):
            if value == wanted:
                break
        else:
            return None
        return place, value

    def early(self, values: list[int]) -> Any:
        for value in values:
            for other in reversed(values):
                if value + other == 5:
                    return value, other
                if other == 2:
                    continue
        return None

    def lists(self) -> Any:
        squares = [number * number for number in range(4) if number]
        nested = [[row * column for column in range(2)] for row in range(3)]
        lazy = (number for number in iter([1, 2]))
        return squares, nested, next(lazy), sum(lazy), len(squares), list(zip(squares, "ab")), tuple(range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for frame in x.unbind(1):
            raise RuntimeError(f"no {frame.shape}")
        return x


def _told(model: Everyday) -> Any:
    x = torch.ones(2, 3)
    return (
        list(model.pairs()), model.found(7), model.found(1), model.early([1, 2, 3]), model.early([9]), model.lists(),
        model(x).tolist(),
    )  # fmt: skip


def test_loops_over_plain_things_run_as_ever() -> None:
    model = Everyday()
    before = _told(model)
    with rewritten(model, _nothing):
        assert Everyday.forward.__code__.co_names != ("layers",)
        assert _told(model) == before


def test_an_exception_keeps_its_place_in_the_text() -> None:
    model = Wrong()
    with rewritten(model, _nothing), pytest.raises(RuntimeError) as raised:
        model(torch.ones(2, 3))
    assert raised.traceback[-1].lineno == Wrong.forward.__code__.co_firstlineno + 1


@pytest.mark.parametrize("model", [Everyday().eval(), Wrong().eval()], ids=lambda model: type(model).__name__)
def test_everything_is_as_before_afterwards(model: nn.Module) -> None:
    functions = [function for function in vars(type(model)).values() if hasattr(function, "__code__")]
    before = [function.__code__ for function in functions], dir(builtins), torch.stack, Tensor.unbind
    state = {name: value.clone() for name, value in model.state_dict().items()}
    attributes, hooks = dict(vars(model)), len(model._forward_hooks)
    with contextlib.suppress(RuntimeError):
        traced(model, torch.ones(2, 3, 3))
    after = [function.__code__ for function in functions], dir(builtins), torch.stack, Tensor.unbind
    assert all(left is right for left, right in zip(before[0], after[0]))
    assert before[1:] == after[1:]
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in state.items())
    assert vars(model) == attributes
    assert len(model._forward_hooks) == hooks

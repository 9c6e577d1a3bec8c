"""A run is recorded with its places, and its results are what they are without a record."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from anyshape.sizes import budgets
from anyshape.torchkit import recorder


def _model(x: Tensor) -> Tensor:
    y = x * 2
    y += 1
    if y.sum() > 0:
        y = y.softmax(dim=1)
    return y.T


def test_every_call_has_its_place_and_its_maker() -> None:
    track = recorder.track_calls(lambda: _model(torch.ones(2, 3)))
    names = [call.name for call in track.calls]
    assert [name for name in names if not name.startswith("__")] == ["ones", "mul", "add_", "sum", "gt", "softmax", "T"]
    product, written = (next(call for call in track.calls if call.name == name) for name in ("mul", "add_"))
    assert track.maker_of(product.results[0]) is product
    assert written.results[0] is product.results[0]
    assert product.span is not None
    assert product.span.function == "_model"
    assert track.maker_of(torch.ones(1)) is None


def test_a_call_that_fails_is_not_running_any_more() -> None:
    track = recorder.CallTrack()
    mode = recorder.CallRecorder(track)
    with mode, pytest.raises(RuntimeError):
        torch.ones(2).reshape(3)
    assert mode.running == []
    assert [call.name for call in track.calls] == ["ones"]


def test_values_are_copies_and_writes_name_what_they_are_a_view_of() -> None:
    def run() -> Tensor:
        y = torch.zeros(2, 2)
        y[0] = 1.0
        return y

    result, calls = recorder.followed(run)
    assert [call.name for call in calls] == ["zeros", "__setitem__"]
    assert torch.equal(calls[0].values[0], torch.zeros(2, 2))
    assert torch.equal(calls[1].values[0], result)
    viewed, calls = recorder.followed(lambda: result[0].fill_(5.0))
    assert [id(one) for one in calls[-1].results] == [id(viewed), id(result)]


def test_a_run_is_followed_until_its_copies_hold_very_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_BYTES_RECORDED", 4 * 4)
    x = torch.ones(4)
    result, calls = recorder.followed(lambda: x.sin().cos().tan().exp())
    assert [call.name for call in calls] == ["sin", "cos"]
    assert torch.equal(result, x.sin().cos().tan().exp())


def test_axes_are_told_from_tensors_and_flags() -> None:
    x = torch.ones(2, 3)
    calls = recorder.track_calls(lambda: (x.sum(1), x.sum(), x.permute((1, 0)), x.sum(dim=0), x.cumsum(-1)))
    assert [call.names_axes for call in calls.calls] == [True, False, True, True, True]
    assert calls.calls[0].arguments[0] is x


def test_floating_results_come_in_order_with_their_places() -> None:
    found = recorder.floating_results(lambda: _model(torch.ones(2, 3)))
    assert all(value.is_floating_point() and span.path.endswith("test_recorder.py") for span, value in found)
    assert torch.equal(found[1][1], torch.full((2, 3), 2.0))


def test_decisions_are_those_that_depend_on_the_inputs() -> None:
    def run(x: Tensor) -> Tensor:
        if torch.zeros_like(x).sum() > 0:  # of the shape alone
            return x
        if x.sum() > 0:
            x = x * int(x[0])
        return x

    x = torch.ones(2)
    found = recorder.value_decisions(lambda: run(x), [x])
    lines = {span.line - run.__code__.co_firstlineno: answers for span, answers in found.items() if span}
    assert lines == {3: {True}, 4: {"a value"}}


def test_a_failure_is_heard_with_what_the_call_was_given() -> None:
    heard: list[object] = []

    class Listening(recorder.FunctionRecorder):
        def failed(self, func, args, kwargs) -> None:
            heard.append((func.__name__, *recorder.tensors_in((args, kwargs))))

    x = torch.ones(2, 3)
    with Listening(), pytest.raises(RuntimeError):
        torch.matmul(x, other=x)
    assert heard[0][0] == "matmul"
    assert [value is x for value in heard[0][1:]] == [True, True]

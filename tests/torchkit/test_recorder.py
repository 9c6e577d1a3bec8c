"""A run is recorded with its places, and its results are what they are without a record."""

from __future__ import annotations

import array
import copy
import functools
import io
import pickle
from collections.abc import Callable

import numpy as np
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


READERS: dict[str, Callable[[Tensor], object]] = {
    "bool": lambda x: bool(x[0] > 0), "int": lambda x: int(x[0]), "float": lambda x: float(x[0]),
    "complex": lambda x: complex(x[0]), "index": lambda x: [1, 2, 3][x[0].long()], "in": lambda x: 1.0 in x,
    "item": lambda x: x[0].item(), "tolist": Tensor.tolist, "numpy": lambda x: x.detach().cpu().numpy(),
    "asarray": np.asarray, "number": lambda x: np.float32(x[0]), "dlpack": torch.from_dlpack,
    "numpy's dlpack": np.from_dlpack, "capsule": lambda x: torch.utils.dlpack.to_dlpack(x), "str": str, "repr": repr,
    "text": lambda x: f"{x}", "format": format, "percent": "%s".__mod__, "memory": Tensor.untyped_storage,
    "pickle": pickle.dumps, "save": lambda x: torch.save(x, io.BytesIO()), "address": Tensor.data_ptr,
    "bytes": lambda x: bytes(x.to(torch.uint8)), "array": lambda x: array.array("f", x), "sorted": sorted,
    "equal": lambda x: torch.equal(x, x), "close": lambda x: torch.allclose(x, other=x),
    "nonzero": lambda x: torch.is_nonzero(x[0]), "memoryview": lambda x: memoryview(x.numpy()),
}  # fmt: skip
"""Ways to look into a tensor."""


@pytest.mark.parametrize("name", READERS)
def test_every_look_into_a_tensor_is_seen(name: str) -> None:
    x, other = torch.rand(3), torch.rand(3)

    def model() -> None:
        with recorder.watched_reads() as paths:  # as every call of a module is watched
            READERS[name](x)
        assert len(paths) == 1

    assert recorder.value_decisions(model, [x])
    assert not recorder.value_decisions(model, [other])


def test_what_is_no_look_at_values_is_not_seen() -> None:
    x = torch.rand(3, 4)
    with recorder.watched_reads() as paths:
        x.view(2, 6), x.shape, x.dtype, list(x), x.sum(), hash(x), x[x > 0.5], x.nonzero(), x.stride(), len(x)
    assert paths == set()


def test_afterwards_every_method_is_the_one_it_was() -> None:
    names = ("__bool__", "item", "__repr__", "storage", "numpy")
    before = [(name, vars(Tensor).get(name), getattr(Tensor, name)) for name in names]
    with pytest.raises(ZeroDivisionError), recorder.watched_reads(), recorder.watched_reads():
        assert Tensor.item is not before[1][2]
        1 / 0
    assert before == [(name, vars(Tensor).get(name), getattr(Tensor, name)) for name in names]


def test_looks_without_end_are_stopped() -> None:
    def endless() -> None:
        x = torch.zeros(1)
        while x.sum() < 1:
            x = x * 2

    with pytest.raises(recorder.TooManyReadsError), recorder.watched_reads(100):
        endless()


def test_what_is_written_into_a_tensor_and_copied_still_depends() -> None:
    def run(x: Tensor) -> bool:
        kept = torch.zeros(3)
        kept[1] = x.max()
        return bool(copy.deepcopy(x).sum() > 0) and bool(kept[2] > 0)

    x = torch.ones(2)
    assert list(recorder.value_decisions(lambda: run(x), [x]).values()) == [{True}, {False}]


def test_a_nan_on_the_way_is_met() -> None:
    assert recorder.meets_nan(lambda: torch.zeros(2).log().mul(0).nan_to_num())
    assert not recorder.meets_nan(lambda: torch.zeros(2).log())
    image, places = torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2)
    sampled = functools.partial(torch.nn.functional.grid_sample, image, align_corners=False, padding_mode="border")
    assert recorder.meets_nan(lambda: sampled(places + torch.inf))
    assert not recorder.meets_nan(lambda: sampled(places + 7))


def test_an_infinity_that_is_made_an_integer_counts_as_a_nan() -> None:
    infinite = torch.tensor([1.0, torch.inf])
    assert recorder.meets_nan(infinite.long)
    assert recorder.meets_nan(lambda: infinite.to(torch.uint8) + 1)
    assert not recorder.meets_nan(infinite.bool)
    assert not recorder.meets_nan(lambda: infinite.double().isinf().long())

"""Every call starts from the module as it was handed over."""

from __future__ import annotations

import functools
import random
import threading
from collections import OrderedDict, deque
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.sizes import budgets
from anyshape.torchkit import state as kept_state
from anyshape.torchkit.state import ModuleState, untouched

OF_THE_FILE: dict[str, int] = {"a": 1}
LAST: Tensor | None = None


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("through_data", torch.zeros(1))
        self.memo = {"calls": []}
        self.kept = [torch.zeros(1)]
        self.window = deque(maxlen=3)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.through_data.data += 1
        self.memo["calls"].append(1)
        self.kept[0].add_(1)
        self.window.append(1)
        self.extra = x
        return x + self.count


def test_everything_that_forward_changes_is_put_back_in_place() -> None:
    model = Remembering()
    memo, kept = model.memo, model.kept
    state = ModuleState(model)
    for _ in range(2):
        model(torch.ones(2))
        state.restore()
        assert (float(model.count), float(model.through_data), float(model.kept[0])) == (0.0, 0.0, 0.0)
        assert model.memo == {"calls": []}
        assert not model.window
        assert not hasattr(model, "extra")
    assert model.memo is memo
    assert model.kept is kept


def test_inside_everything_is_in_eval_mode_and_afterwards_as_before() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4))
    model[0].eval()
    with untouched(model):
        assert not any(part.training for part in model.modules())
        model(torch.randn(3, 4))
    assert [part.training for part in model.modules()] == [True, False, True]
    assert int(model[1].num_batches_tracked) == 0


class Helper:
    def __init__(self) -> None:
        self.table = torch.zeros(2)
        self.sizes: list[int] = [2]


class KeepsElsewhere(nn.Module):
    of_the_class: dict[int, int] = {}

    def __init__(self) -> None:
        super().__init__()
        self.helper = Helper()
        self.pair = ({"inside": 0}, torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        global LAST  # noqa: PLW0603  what people write
        LAST = x
        OF_THE_FILE["b"] = 2
        self.of_the_class[1] = 1
        self.helper.table = x
        self.helper.sizes.append(3)
        self.pair[0]["inside"] = 1
        self.pair[1].add_(1)
        return x


def test_what_objects_classes_and_files_keep_is_put_back_too() -> None:
    model = KeepsElsewhere()
    table, sizes = model.helper.table, model.helper.sizes
    state = ModuleState(model)
    model(torch.ones(2))
    state.restore()
    assert model.helper.table is table
    assert model.helper.sizes is sizes
    assert (sizes, model.pair[0], float(model.pair[1])) == ([2], {"inside": 0}, 0.0)
    assert (OF_THE_FILE, KeepsElsewhere.of_the_class, LAST) == ({"a": 1}, {}, None)


def test_changes_name_each_place_and_none_when_put_back() -> None:
    model = KeepsElsewhere()
    state = ModuleState(model)
    assert state.changes() == frozenset()
    model(torch.ones(2))
    places = {key for _, key in state.changes()}
    assert places == {"LAST", "b", 1, "table", "inside", None}
    state.restore()
    assert state.changes() == frozenset()


# ---- the caller's world

SEEN: list[str] = []
CALLS: dict[str, int] = {}
COUNT = 0
last = "the caller's"
"""Named as an attribute of the model below, and not meant by it."""


def noted(key: str) -> None:
    CALLS[key] = CALLS.get(key, 0) + 1


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Mentions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = 0

    @decorated
    def forward(self, x: Tensor) -> Tensor:
        global COUNT  # noqa: PLW0603  what people write
        COUNT += 1
        noted("calls")
        self.last += 1
        return x * 2


def export(model: Any, **options: Any) -> None:
    anyshape.export(model, torch.randn(2, 3), dims={"x": "batch 3"}, quick=True, **options)


def test_what_a_callback_writes_stays() -> None:
    def progress(text: str) -> None:
        global last  # noqa: PLW0603  what people write
        SEEN.append(text)
        last = text
        CALLS.setdefault("progress", 0)  # which the model's own code uses, too
        CALLS["progress"] += 1

    export(Mentions(), progress=progress)
    assert SEEN[0] == "running the model"
    assert last == SEEN[-1]
    assert {"progress": len(SEEN)} == CALLS
    assert COUNT == 0


def test_what_a_thread_writes_stays() -> None:
    seen: list[int] = SEEN  # type: ignore[assignment]
    seen.clear()
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.001):
            seen.append(len(seen))

    thread = threading.Thread(target=work)
    thread.start()
    export(Mentions())
    done.set()
    thread.join()
    assert seen == list(range(len(seen)))
    assert len(seen) > 10
    assert COUNT == 0


def test_a_function_s_file_is_put_back_too() -> None:
    def double(x: Tensor) -> Tensor:
        global COUNT  # noqa: PLW0603  what people write
        COUNT += 1
        return x * 2

    export(double)
    assert COUNT == 0


def test_state_that_somebody_else_changed_between_two_calls_is_the_new_one() -> None:
    model = Remembering()
    state = ModuleState(model)
    assert state.holds()
    model.memo["mine"] = []
    assert not state.holds()
    state = ModuleState(model)
    model(torch.ones(2))
    state.restore()
    assert model.memo == {"calls": [], "mine": []}


class Registry(OrderedDict[str, type]):
    """Gives an instance for every class that it holds, as registries of activations do."""

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key)()


ACTIVATIONS = Registry(relu=nn.ReLU)


class Registered(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return ACTIVATIONS["relu"](x)


def test_a_container_with_a_will_of_its_own_is_left_alone() -> None:
    anyshape.export(Registered(), torch.randn(2, 3), dims={"x": "batch 3"}, quick=True)
    assert list(ACTIVATIONS.items()) == [("relu", nn.ReLU)]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.scale, self.total = 1000, 0.5, torch.zeros(2)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.total = self.total + x
        self.seen.add_(1)
        return self.total * self.calls * self.scale + self.seen


def test_what_torchscript_keeps_is_put_back() -> None:
    module = torch.jit.script(Counting())
    state, x = ModuleState(module), torch.ones(2)
    assert state.holds()
    first = module(x)
    assert not state.holds()
    assert len(state.changes()) == 3
    state.restore()
    assert state.holds()
    assert module(x).equal(first)


class Large(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.arange(12, dtype=torch.bfloat16).view(3, 4))
        self.register_buffer("turned", torch.arange(12.0).view(3, 4).t())
        self.register_buffer("flags", torch.tensor([True, False]))

    def forward(self, x: Tensor) -> Tensor:
        for buffer in (self.kept, self.turned, self.flags):
            buffer.zero_()
        return x


def test_large_buffers_are_put_back_from_one_copy_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "LARGE_STATE", 0)
    monkeypatch.setattr(budgets, "STATE_IN_FILE_FROM", 0)
    model = Large()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    states = [ModuleState(model), ModuleState(model)]
    first, second = ({id(one.tensor): one.copy for one in state._tensors} for state in states)
    assert all(first[id(buffer)] is second[id(buffer)] for buffer in model.buffers())
    assert first[id(model.kept)].untyped_storage().filename is not None
    for state in states:
        model(torch.ones(1))
        state.restore()
        assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())


class Hidden(nn.Module):
    """Writes where no version tells."""

    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.register_buffer("kept", buffer)

    def forward(self, x: Tensor) -> Tensor:
        self.kept.data.view(-1)[:1] = 1
        return x


@pytest.mark.parametrize(
    "buffer",
    [
        torch.zeros(3), torch.zeros(2, 3).t(), torch.zeros(3, dtype=torch.bfloat16), torch.zeros((), dtype=torch.bool),
        torch.zeros(2, dtype=torch.complex64), torch.zeros(2, dtype=torch.complex64).conj(),
    ],
    ids=["plain", "turned", "bfloat16", "a number", "complex", "conjugate"],
)  # fmt: skip
def test_what_is_written_without_a_version_is_put_back(buffer: Tensor) -> None:
    model = Hidden(buffer.clone())
    state, version = ModuleState(model), model.kept._version
    if buffer.is_contiguous():
        model(torch.ones(1))
    else:
        model.kept.data[0, 0] = 1
    assert model.kept._version == version
    assert model.kept.any()
    state.restore()
    assert not model.kept.any()


def test_a_buffer_can_be_resized_after_it_was_looked_at() -> None:
    model = Hidden(torch.zeros(3))
    state = ModuleState(model)
    model.kept.data = torch.ones(4)[:3]
    state.restore()
    assert not model.kept.any()
    state = ModuleState(model)
    model.kept.resize_(1000)
    assert state.changes()


def test_large_buffers_are_kept_in_memory_where_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(budgets, "LARGE_STATE", 0)
    monkeypatch.setattr(budgets, "STATE_IN_FILE_FROM", 0)
    monkeypatch.setattr(kept_state, "temporary_folder", full)
    model = Large()
    state = ModuleState(model)
    model(torch.ones(1))
    state.restore()
    assert float(model.kept.float().sum()) == 66.0


def test_a_generator_that_was_drawn_from_is_told() -> None:
    draws = (lambda: torch.rand(1), random.random, lambda: np.random.rand(1), lambda: torch.manual_seed(9))
    with kept_state.kept_generators():
        for seed in (0, 1):
            kept_state.seed_generators(seed)
            assert not kept_state.is_drawn_from(seed)
            for draw in draws:
                kept_state.seed_generators(seed)
                draw()
                assert kept_state.is_drawn_from(seed)


def test_generators_are_afterwards_where_they_were() -> None:
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    wanted = random.random(), np.random.rand(), torch.rand(1)
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    with kept_state.kept_generators():
        kept_state.seed_generators(0)
    assert (random.random(), np.random.rand(), torch.rand(1)) == wanted

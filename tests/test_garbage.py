"""The collector rests while a model is converted, and is as it was afterwards."""

from __future__ import annotations

import ctypes
import gc
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.garbage import _trim, give_memory_back, imported_for_good, uncollected

_seen: dict[bool, set[bool]] = {True: set(), False: set()}
"""While exporting or not: whether the collector was on."""


class Asking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _seen[torch.compiler.is_exporting()].add(gc.isenabled())
        return x * 2


def test_it_rests_during_the_trace_and_not_during_the_check() -> None:
    anyshape.export(Asking(), torch.randn(2, 3), dims={"x": "batch 3"})
    assert _seen == {True: {False}, False: {True}}
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="trace"), uncollected():
        raise ValueError("trace")
    assert gc.isenabled()


@pytest.fixture
def frozen() -> Iterator[Callable[[], int]]:
    """How many objects are left alone for good."""
    gc.unfreeze()
    yield gc.get_freeze_count
    gc.unfreeze()


def test_what_is_imported_for_good_is_left_alone(frozen: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    with imported_for_good():
        assert not gc.isenabled()
        assert not frozen()
    assert frozen()
    assert gc.isenabled()


def test_a_process_that_has_torch_already_is_not_ours(frozen: Callable[[], int]) -> None:
    with imported_for_good():
        pass
    assert not frozen()


def test_what_fails_is_not_left_alone(frozen: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(ImportError), imported_for_good():
        raise ImportError
    assert not frozen()
    assert gc.isenabled()


def test_memory_that_was_freed_is_given_back() -> None:
    """Below the length that the C library returns at once, with something behind it that stays."""
    status = Path("/proc/self/status")
    if not status.exists() or platform.libc_ver()[0] != "glibc":
        pytest.skip("only glibc keeps what was freed and can be told to give it back")

    def held() -> int:
        return int(next(line for line in status.read_text().splitlines() if line.startswith("RssAnon")).split()[1])

    give_memory_back()
    pieces = [np.ones(2**13) for _ in range(2000)]
    stays, before = pieces[-1], held()
    del pieces
    give_memory_back()
    assert held() < before - 100_000
    assert stays.size


def test_a_c_library_without_such_a_call_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise TypeError("bad argument type for built-in operation")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    _trim.cache_clear()
    give_memory_back()
    _trim.cache_clear()

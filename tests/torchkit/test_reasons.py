"""Why torch failed is said in one line without its symbols."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from anyshape.torchkit import reasons


class Deciding(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


def test_a_decision_on_values_is_known_by_its_type() -> None:
    with pytest.raises(Exception) as caught:
        torch.export.export(Deciding(), (torch.ones(2),), strict=False)
    assert reasons.reason_of(caught.value) == "a decision depends on values, which a trace cannot follow"
    assert reasons.is_known(caught.value)
    assert reasons.depends_on_values(caught.value)


def _raised(error: Exception, cause: Exception | None = None) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("\n  first\nsecond"), "ValueError: first"),
        (_raised(RuntimeError("outer"), KeyError("inner")), "KeyError: 'inner'"),
        (ValueError("s0 is 3"), "ValueError"),
        (ValueError(), "ValueError"),
        (ValueError("<object at 0x7f00>"), "ValueError: <object>"),
        (
            ValueError("<OpOverload(op='aten.frexp', overload='Tensor')>. Failure message: none"),
            "ValueError: aten.frexp",
        ),
        (ValueError("a" * 300), "ValueError: " + "a" * 197 + "..."),
    ],
)
def test_the_root_is_told_in_its_first_line(error: Exception, reason: str) -> None:
    assert reasons.reason_of(error) == reason
    assert not reasons.is_known(error)


def test_causes_that_go_in_a_circle_end() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert reasons.reason_of(first) == "ValueError: second"


def _raised_by(make: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        make()
    return caught.value


def test_what_users_code_raised_is_told_with_its_place() -> None:
    assert re.fullmatch(r"ZeroDivisionError: division by zero \(\S*test_reasons.py:\d+\)", _said(lambda: 1 / 0))
    assert _said(lambda: compile("a b", "own.py", "exec")) == "SyntaxError: invalid syntax (own.py, line 1)"
    assert reasons.said_with_place(KeyError("nowhere")) == "KeyError: 'nowhere'"


def _said(make: Callable[[], object]) -> str:
    return reasons.said_with_place(_raised_by(make))


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_a_device_that_is_missing_is_known_by_the_module_that_raised(device: str) -> None:
    if getattr(torch, device).is_available():
        pytest.skip(f"{device} is here")
    error = _raised_by(lambda: torch.zeros(2, device=device))
    assert reasons.asks_for_missing_device(error)
    stays = "which is not here: let the model stay on the device of its inputs"
    assert re.fullmatch(rf"\S*test_reasons.py:\d+ asks for {device.upper()}, {stays}", reasons.said_with_place(error))
    assert not reasons.asks_for_missing_device(_raised_by(lambda: torch.zeros(2) @ torch.zeros(3)))

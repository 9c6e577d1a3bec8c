"""Why torch failed is said in one line without its symbols."""

from __future__ import annotations

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

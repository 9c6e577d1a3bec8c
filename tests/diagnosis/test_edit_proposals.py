"""What to try for a cause, the most likely first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyshape.diagnosis.edit_proposals import proposals
from tests.diagnosis.traced import seen_in, shown


class Viewed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(3, 8) + 1


class Multiple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(6, 4) + 1


def test_the_wanted_size_comes_first_and_nothing_twice() -> None:
    (cause,), known = seen_in(Viewed(), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    made = [shown(one) for one in proposals(cause, known)]
    assert made[0] == "3 -> x.shape[0]"
    assert len(made) == len(set(made))


def test_a_multiple_of_a_size_is_tried_only_for_a_pin() -> None:
    (cause,), known = seen_in(Multiple(), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    many, few = (proposals(cause, known, many=many) for many in (True, False))
    assert "6 -> 2 * x.shape[0]" in map(shown, many)
    assert not any(one.is_multiple for one in few)


def test_code_without_source_has_none() -> None:
    names: dict[str, type[nn.Module]] = {"nn": nn}  # type: ignore[dict-item]
    text = "class Net(nn.Module):\n    def forward(self, x):\n        return x.view(3, 8)\n"
    exec(compile(text, "<string>", "exec"), names)  # type: ignore[arg-type]
    (cause,), known = seen_in(names["Net"](), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    assert proposals(cause, known) == []

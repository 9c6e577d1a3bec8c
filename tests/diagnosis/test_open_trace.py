"""A trace that commits to nothing: every line is asked anew."""

from __future__ import annotations

import sympy
import torch
from torch import Tensor, nn

from anyshape.diagnosis.open_trace import Track, Tracked, held_tensors, tracking


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.plain = torch.ones(4)

    def forward(self, x: Tensor) -> Tensor:
        y = x.view(3, 4)
        y = self.inner(y) + self.plain
        return y.view(3, 4) + torch.zeros(3, 1)


def _tracked(model: nn.Module, x: Tensor) -> Track:
    with tracking() as (track, _):
        torch.export.export(Tracked(model, track), (x,), dynamic_shapes=(({0: torch.export.Dim.AUTO},),), strict=False)
    return track


def test_every_line_that_needs_the_number_is_noted() -> None:
    track = _tracked(Twice(), torch.randn(3, 4))
    equal = [one for one in track.assumed if isinstance(one.condition, sympy.Eq) and one.call is not None]
    lines = {one.site.line for one in equal if one.site is not None}
    first = Twice.forward.__code__.co_firstlineno
    assert lines == {first + 1, first + 3}


def test_a_question_of_python_s_has_no_call() -> None:
    class Decides(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.shape[0] > 2 else x * 2

    track = _tracked(Decides(), torch.randn(3, 4))
    (assumed,) = [one for one in track.assumed if one.call is None and one.site is not None]
    assert str(assumed.condition).endswith("> 2")


def test_what_the_module_holds_and_was_given_is_known_by_identity() -> None:
    model, x = Twice(), torch.randn(3, 4)
    track = Track()
    track.note_held(model, (7, x))
    assert track.inputs == {id(x): 1}
    assert track.held[id(model.plain)] == "plain"
    assert {name for name, _ in held_tensors(model)} == {"plain", "inner.weight", "inner.bias"}

"""What a trace assumed is told in the user's dims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn

from anyshape.conversion import trace
from anyshape.declaration.calls import bind_call
from anyshape.declaration.spec import Spec, declare
from anyshape.declaration.targets import resolve_target
from anyshape.torchkit import capture


class Model(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.function(x, y)


class Adapter(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *values: Tensor) -> Tensor:
        return self.model(*values)


def _traced(function: Callable[..., Tensor]) -> tuple[capture.Recorder, torch.export.ExportedProgram | None, Spec]:
    model = Model(function)
    call = (torch.ones(4, 6), torch.ones(6))
    spec = declare(bind_call(resolve_target(model), call, None), {"x": "batch n", "y": "n"}, {})
    with capture.recording() as recorder:
        try:
            program = trace.trace(Adapter(model), [("x", call[0]), ("y", call[1])], spec, strict=False)
        except Exception:  # noqa: BLE001  a dim that became a number
            program = None
    return recorder, program, spec


def test_sizes_of_results_are_expressions_of_dims() -> None:
    recorder, program, spec = _traced(lambda x, y: torch.cat([x + y, x * y], 1)[:, 1:])
    assert program is not None
    meaning = trace.meaning_of(recorder, ["x", "y"], spec)
    assert {str(expression) for expression in meaning.values()} == {"batch", "n"}
    ((rows, columns),) = trace.output_expressions(program, meaning)
    assert (str(rows), columns.value({"n": 6})) == ("batch", 11)


def test_guards_speak_of_dims_and_have_lines() -> None:
    recorder, _, spec = _traced(lambda x, y: x * y if x.shape[0] > 3 else x)
    guards = trace.guards_of(recorder, trace.meaning_of(recorder, ["x", "y"], spec))
    (guard,) = [guard for guard in guards if guard.dims == ("batch",) and guard.span]
    assert [guard.holds({"batch": size}) for size in (3, 4, 9)] == [False, True, True]


def test_a_dim_that_became_a_number_is_named() -> None:
    recorder, program, spec = _traced(lambda x, y: x + y + torch.zeros(4, 1))
    assert program is None
    (pin,) = trace.pins_of(recorder, trace.meaning_of(recorder, ["x", "y"], spec))
    assert (pin.dim, pin.size) == ("batch", 4)


def test_views_do_not_count_as_computing_and_values_that_are_read_decide() -> None:
    _, program, _ = _traced(lambda x, y: (x * y).transpose(0, 1).reshape(-1).relu())
    assert program is not None
    assert trace.operators_of(program) == Counter({"aten.mul.Tensor": 1, "aten.relu.default": 1})
    assert not trace.decides(program)
    _, program, _ = _traced(lambda x, y: x * y.max().item())
    assert program is not None
    assert trace.decides(program)

"""torch's older exporter writes the job's dynamic axes, and leaves out inputs that nobody uses."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyshape.conversion.candidates import Job
from anyshape.conversion.torchscript import torchscript_model
from anyshape.declaration.calls import Adapter, bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import resolve_target


class First(nn.Module):
    def forward(self, x: Tensor, unused: Tensor) -> Tensor:
        return x * 2


def test_dynamic_axes_are_open_and_unused_inputs_left_out() -> None:
    args = (torch.randn(3, 4), torch.randn(2))
    target = resolve_target(First())
    signature = bind_call(target, args, None)
    spec = declare(signature, {"x": "n 4"}, None)
    job = Job(Adapter(target, signature, ["x", "unused"]), (("x", args[0]), ("unused", args[1])), spec, 17)
    model = torchscript_model(job, 17)
    (value,) = model.graph.inputs
    assert value.name == "input_0"
    assert [isinstance(size, int) for size in value.shape] == [False, True]
    assert model.opset_imports[""] == 17

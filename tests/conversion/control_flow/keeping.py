"""Small models traced with their loops kept, made into files and run at sizes that they were not traced at."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.kept_loops import rewritten
from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.translation import translate_program
from anyshape.torchkit.capture import export_program
from tests.conversion.control_flow.lowering import is_right


class Wrapped(nn.Module):
    """Takes any inputs, as the adapter does."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *values: Tensor) -> object:
        return self.model(*values)


def traced(model: nn.Module, *example: Tensor) -> tuple[torch.export.ExportedProgram, list[str]]:
    """With all axes but the last dynamic; and what is said of the loops."""
    said: list[str] = []
    wrapped = Wrapped(model.eval())
    dynamic = [dict.fromkeys(range(max(value.dim() - 1, 1)), torch.export.Dim.DYNAMIC) for value in example]
    with applied(REPAIRS), rewritten(wrapped, lambda sentence, suspects=(): said.append(sentence)):
        return export_program(wrapped, example, dynamic), said


def kept(model: nn.Module, *example: Tensor) -> tuple[ir.Model, list[str]]:
    program, said = traced(model, *example)
    made = translate_program(program, 20, {}).model
    lower_regions(made)
    return made, said


def is_right_at(model: nn.Module, example: Sequence[Tensor], others: Sequence[Sequence[Tensor]]) -> bool:
    """Whether the file of a model computes what the model does, at sizes that it was not traced at."""
    made, said = kept(model, *example)
    assert said
    return is_right(made, model, [tuple(example), *map(tuple, others)])

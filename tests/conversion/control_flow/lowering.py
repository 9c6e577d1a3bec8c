"""Small models with marks put by hand, made into files and run at sizes that they were not traced at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch
from torch import nn

from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.translation import translate_program
from anyshape.torchkit.capture import export_program

ops: Any = torch.ops.anyshape

Tensors = tuple[torch.Tensor, ...]


class Marked(nn.Module):
    """A function of tensors with marks in it, and the modules whose weights it uses."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *values: torch.Tensor) -> Any:
        return self.function(*self.parts, *values)


def number_of_step(index: torch.Tensor, count: Any) -> Any:
    """The index of a loop as a number."""
    step = index.item()
    torch._check(step >= 0)
    torch._check(step < count)
    return step


def translated(model: nn.Module, example: Tensors, opset: int = 20) -> ir.Model:
    """With all axes but the last dynamic, and the marks as they are."""
    dynamic = [dict.fromkeys(range(value.dim() - 1), torch.export.Dim.DYNAMIC) for value in example]
    return translate_program(export_program(model.eval(), example, dynamic), opset, {}).model


def lowered(model: nn.Module, example: Tensors, opset: int = 20) -> ir.Model:
    made = translated(model, example, opset)
    lower_regions(made)
    return made


def differences(
    made: ir.Model, plain: Callable[..., Any], examples: Sequence[Tensors]
) -> Iterator[tuple[Tensors, int]]:
    """The inputs at which a file and plain PyTorch differ, and in which output."""
    proto = ir.to_proto(made)
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for example in examples:
        feeds = {value.name: tensor.numpy() for value, tensor in zip(session.get_inputs(), example, strict=True)}
        results = session.run(None, feeds)
        with torch.no_grad():
            wanted = plain(*example)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        assert len(results) == len(wanted)
        for place, (result, right) in enumerate(zip(results, wanted, strict=True)):
            same = result.shape == tuple(right.shape) and result.dtype == right.numpy().dtype
            if not same or not np.allclose(result, right.numpy(), rtol=1e-4, atol=1e-5):
                yield tuple(value.shape for value in example), place


def is_right(made: ir.Model, plain: Callable[..., Any], examples: Sequence[Tensors]) -> bool:
    return not list(differences(made, plain, examples))


def operators(graph: ir.Graph) -> Counter[str]:
    """How often each operator stands in a graph, without the graphs inside it."""
    return Counter(node.op_type for node in graph)


def all_operators(graph: ir.Graph) -> Counter[str]:
    return Counter(node.op_type for node in ir.traversal.RecursiveGraphIterator(graph))


def body(graph: ir.Graph, operator: str, attribute: str = "body") -> ir.Graph:
    """The graph inside the only node of this kind."""
    (node,) = [node for node in graph if node.op_type == operator]
    return node.attributes[attribute].as_graph()

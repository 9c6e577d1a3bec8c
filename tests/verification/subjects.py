"""What a subject and a file are, and how subjects get their weights and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx
import torch
from torch import Tensor, nn

from .drawing import Drawing


@dataclass(frozen=True)
class Subject:
    """A module, a right ONNX graph for it, and how a user declares its dims."""

    name: str
    module: Callable[[], nn.Module]
    inputs: Callable[..., tuple[Tensor, ...]]
    dims: dict[str, str]
    sizes: dict[str, str]
    traced: dict[str, int]
    graph: Callable[[nn.Module], onnx.ModelProto]


@dataclass(frozen=True)
class FileCase:
    """An ONNX file for a subject; `wrong` says what is wrong and where, and is empty for a right file."""

    name: str
    subject: Subject
    build: Callable[[], onnx.ModelProto]
    wrong: str = ""


def case(
    subject: Subject, name: str, wrong: str = "", changes: dict[str, str] | None = None, **declared: str
) -> FileCase:
    """The subject's graph with values redefined and shapes declared otherwise."""
    assert isinstance(subject.graph, Drawing)
    drawing = subject.graph.redefine(changes or {}).declare(**declared)
    return FileCase(f"{subject.name}: {name}", subject, lambda: drawing(subject.module()), wrong)


def seeded(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """The same weights at every call, and larger than at initialisation: flat attention hides bugs."""

    def module() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            made = make().eval()
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if name.split(".")[-2:-1] in (["query"], ["key"]):
                    weight.mul_(4)
        return made

    return module


def normal(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(size * 31**axis for axis, size in enumerate(shape)))
    return torch.randn(*shape, generator=generator)


def integers(below: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(below + sum(size * 31**axis for axis, size in enumerate(shape)))
    return torch.randint(below, shape, generator=generator)


def ragged(batch: int, length: int) -> Tensor:
    """Padding on the right: the first row full, the others of different lengths."""
    lengths = torch.tensor([length if row == 0 else 1 + row * 5 % length for row in range(batch)])
    return torch.arange(length) < lengths[:, None]


def linear(name: str, source: str, layer: str) -> str:
    """A Linear over the last axis of any rank."""
    return (
        f"{name}_matrix = Transpose<perm=[1, 0]>({layer}_weight)\n"
        f"{name}_product = MatMul({source}, {name}_matrix)\n"
        f"{name} = Add({name}_product, {layer}_bias)"
    )

"""Numbers that a program computes from sizes, kept whole: what Python does in double, the file does in double.

torch's translation makes every such number a float32 step by step: `int(n * 0.7)` is then wrong at one size in sixty.
After the decompositions each chain of scalar functions is gathered into one node; its translation sees all of it.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeGuard

import torch
from torch import fx

from anyshape.conversion.operators.numbers_layouts import mark_layouts
from anyshape.torchkit.patches import patched

Tree = Any
"""`(function's name, argument, ...)`; an argument is another tree, a number, or what comes from outside."""


def exact_number(tree: Tree) -> Any:
    """The target of a gathered node: never run, only translated."""
    raise NotImplementedError(str(tree))


def _functions() -> dict[Any, str]:
    named = {
        builtins.round: "round", math.ceil: "ceil", math.floor: "floor", math.trunc: "trunc",
        torch.sym_int: "trunc", torch.sym_float: "float", torch.sym_max: "max", torch.sym_min: "min",
        torch.sym_sum: "sum",
    }  # fmt: skip
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs"):
        named[getattr(operator, name)] = name
    for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2"):
        function = getattr(torch, f"_sym_{name}", None)
        if function is not None:
            named[function] = name
    return named


FUNCTIONS = _functions()


def gather(module: fx.GraphModule) -> None:
    """Replace every chain that passes through a float by one node, in a graph and in those inside it."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule) and _gather(part.graph):
            part.graph.eliminate_dead_code()
            part.recompile()


def _gather(graph: fx.Graph) -> bool:
    changed = False
    for node in list(graph.nodes):
        if node.op not in ("call_function", "output"):
            continue
        if _is_scalar_function(node):
            if isinstance(_value(node), torch.SymInt | torch.SymBool) and any(map(_is_float, node.args)):
                node.args, node.target, node.kwargs = (_tree(node),), exact_number, {}
                changed = True
        elif any(_is_chain(argument) for argument in node.all_input_nodes):
            leave = partial(_outside, graph, node)
            node.args, node.kwargs = fx.map_arg(node.args, leave), fx.map_arg(node.kwargs, leave)
            changed = True
    return changed


def _outside(graph: fx.Graph, user: fx.Node, argument: fx.Node) -> fx.Node:
    """A float number where it leaves the chain, for a tensor operator."""
    if not _is_chain(argument):
        return argument
    with graph.inserting_before(user):
        made = graph.call_function(exact_number, (_tree(argument),))
    made.meta = dict(user.meta) | {"val": _value(argument)}
    return made


def _is_scalar_function(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in FUNCTIONS and not isinstance(_value(node), torch.Tensor)


def _is_chain(node: Any) -> TypeGuard[fx.Node]:
    return isinstance(node, fx.Node) and _is_scalar_function(node) and _is_float(node)


def _is_float(argument: Any) -> bool:
    if isinstance(argument, fx.Node):
        return isinstance(_value(argument), torch.SymFloat | float)
    return isinstance(argument, float)


def _value(node: fx.Node) -> Any:
    return node.meta.get("val")


def _tree(node: fx.Node) -> Tree:
    """The chain above a node; whole numbers and what is no scalar function are its leaves."""
    name = FUNCTIONS[node.target]
    return (name, *(_tree(argument) if _is_chain(argument) else argument for argument in node.args))


@contextlib.contextmanager
def gathered() -> Iterator[None]:
    """Inside, torch's translation sees gathered numbers. A torch that has moved the place translates as it is."""
    from torch.onnx._internal.exporter import _core as core

    name = "_prepare_exported_program_for_export"
    prepare: Callable[..., Any] | None = getattr(core, name, None)
    if prepare is None:
        yield
        return

    def prepare_and_gather(*args: Any, **kwargs: Any) -> Any:
        program = prepare(*args, **kwargs)
        gather(program.graph_module)
        mark_layouts(program.graph_module)
        return program

    with patched(core, name, prepare_and_gather):
        yield

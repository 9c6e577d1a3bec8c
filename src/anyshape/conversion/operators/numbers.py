"""Numbers that a program computes from sizes, kept whole: what Python does in double, the file does in double.

torch's translation makes every such number a float32 step by step: `int(n * 0.7)` is then wrong at one size in sixty;
and it translates `//` by a division that truncates, so `-(-n // k)` is wrong. After the decompositions each chain of
scalar functions is gathered into one node; its translation sees all of it: whole numbers as int64, others as double,
with the literals as written.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from typing import Any, TypeGuard

import onnx_ir as ir
import torch
from torch import fx

from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    FLOAT,
    INT64,
    bits,
    counted,
    exact,
    literal,
    op,
    torchs_translation,
    whole,
)  # fmt: skip
from anyshape.conversion.operators.resize import mark_layouts
from anyshape.torchkit.patches import observed, replaced
from anyshape.torchkit.private_names import lookup

# ---- chains of scalar functions in a program, each gathered into one node

Tree = Any
"""`(function's name, argument, ...)`; an argument is another tree, a number, or what comes from outside."""


def exact_number(tree: Tree, *, in_double: bool = False) -> Any:
    """The target of a gathered node: never run, only translated; a float leaves in float32, or in double."""
    raise NotImplementedError(f"{tree}, in double: {in_double}")


_IN_DOUBLE = ("aten::full", "aten::scalar_tensor")
"""Operators that cast a number to the type they are told: they are given all its digits, as a range is."""


def _scalar_functions() -> dict[Any, str]:
    named = {
        builtins.round: "round", math.ceil: "ceil", math.floor: "floor", math.trunc: "trunc",
        torch.sym_int: "trunc", torch.sym_float: "float", torch.sym_max: "max", torch.sym_min: "min",
        torch.sym_sum: "sum",
    }  # fmt: skip
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs"):
        named[getattr(operator, name)] = name
    for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2"):
        function = lookup(f"torch._sym_{name}")
        if function is not None:
            named[function] = name
    return named


_NAMES = _scalar_functions()


def gather(module: fx.GraphModule) -> None:
    """Replace every chain that passes through a float by one node, in a graph and in those inside it."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule) and _gather_in(part.graph):
            part.graph.eliminate_dead_code()
            part.recompile()


def _gather_in(graph: fx.Graph) -> bool:
    changed = False
    for node in list(graph.nodes):
        if node.op not in ("call_function", "output"):
            continue
        if _is_scalar_function(node):
            if isinstance(_value(node), torch.SymInt | torch.SymBool) and any(map(_is_float, node.args)):
                node.args, node.target, node.kwargs = (_tree_above(node),), exact_number, {}
                changed = True
        elif any(_is_chain(argument) for argument in node.all_input_nodes):
            leave = partial(_gathered_for, graph, node)
            node.args, node.kwargs = fx.map_arg(node.args, leave), fx.map_arg(node.kwargs, leave)
            changed = True
    return changed


def _gathered_for(graph: fx.Graph, user: fx.Node, argument: fx.Node) -> fx.Node:
    """A float number where it leaves the chain, for a tensor operator."""
    if not _is_chain(argument):
        return argument
    name = getattr(getattr(user.target, "_schema", None), "name", "")
    is_kept = name == "aten::arange" or (name in _IN_DOUBLE and user.kwargs.get("dtype") is not None)
    with graph.inserting_before(user):
        made = graph.call_function(exact_number, (_tree_above(argument),), {"in_double": is_kept})
    made.meta = dict(user.meta) | {"val": _value(argument)}
    return made


def _is_scalar_function(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target in _NAMES and not isinstance(_value(node), torch.Tensor)


def _is_chain(node: Any) -> TypeGuard[fx.Node]:
    return isinstance(node, fx.Node) and (_is_scalar_function(node) or _is_item_in_double(node)) and _is_float(node)


def _is_item_in_double(node: fx.Node) -> bool:
    """`math.log(n)` goes by way of a tensor of one double, and is read as a number."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or schema.name not in ("aten::_local_scalar_dense", "aten::item"):
        return False
    (source,) = node.args
    value = _value(source) if isinstance(source, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


def _is_float(argument: Any) -> bool:
    if isinstance(argument, fx.Node):
        return isinstance(_value(argument), torch.SymFloat | float)
    return isinstance(argument, float)


def _value(node: fx.Node) -> Any:
    return node.meta.get("val")


def _tree_above(node: fx.Node) -> Tree:
    """The chain above a node; whole numbers and what is no scalar function are its leaves."""
    name = _NAMES.get(node.target, "item")
    return (name, *(_tree_above(argument) if _is_chain(argument) else argument for argument in node.args))


def gathered(then: Callable[[fx.GraphModule, Any], None]) -> AbstractContextManager[None]:
    """Inside, torch's translation sees gathered numbers; `then` is told the graph that it translates, and its table. A
    torch that has moved the place translates as it is.
    """

    def make(prepare: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_and_gather(*args: Any, **kwargs: Any) -> Any:
            program = prepare(*args, **kwargs)
            gather(program.graph_module)
            # this is the one place at which a decomposed program can be told anything before it is translated
            mark_layouts(program.graph_module)
            then(program.graph_module, kwargs.get("registry"))
            return program

        return prepare_and_gather

    return replaced("torch.onnx._internal.exporter._core._prepare_exported_program_for_export", make)


def numbers_in_double() -> AbstractContextManager[None]:
    """Inside, a number of the model's code that torch's translation casts to float64 has all its digits."""

    def widen(_recorder: Any, signature: Any, inputs: dict[str, Any], attributes: Mapping[str, Any], *_: Any) -> None:
        target = attributes.get("to") if signature.name == "Cast" else getattr(inputs.get("target_type"), "dtype", None)
        if signature.name in ("Cast", "CastLike") and target == DOUBLE and isinstance(inputs.get("input"), float):
            inputs["input"] = ir.tensor(inputs["input"], dtype=DOUBLE)

    return observed("torch.onnx._internal.exporter._building.OpRecorder._call_op", widen)


# ---- ONNX


def floordiv(left: Any, right: Any) -> Any:
    """Towards minus infinity: one less than the truncated quotient where a remainder has the other sign."""
    left, right = _in_int64(left), _in_int64(right)
    if _is_positive_literal(right) and _is_a_size(left):
        return op.Div(left, right)
    # ONNX's Mod of integers has the sign of the divisor, as Python's
    return op.Div(op.Sub(left, op.Mod(left, right)), right)


def _power_of_two(exponent: Any) -> Any:
    return op.Pow(literal(2), _in_int64(exponent))


def _is_positive_literal(value: Any) -> bool:
    constant = ir.convenience.get_const_tensor(value) if isinstance(value, ir.Value) else None
    return constant is not None and bool((constant.numpy() > 0).all())


def _is_a_size(value: Any) -> bool:
    """Whether a number comes straight from a shape: it cannot be negative."""
    node = value.producer() if isinstance(value, ir.Value) else None
    if node is not None and node.op_type == "Squeeze":
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    return node is not None and node.op_type == "Shape"


def number_from_tree(tree: Sequence[Any], *, in_double: bool = False) -> Any:
    """The translation of a whole chain of scalar functions: double inside, int64 or a float at its end."""
    name, *_ = tree
    value = _value_of_tree(tree)
    return op.Cast(value, to=INT64 if name in _WHOLE_RESULTS else DOUBLE if in_double else FLOAT)


def _value_of_tree(tree: Any) -> Any:
    if not isinstance(tree, list | tuple):
        return _in_double(tree)
    name, *arguments = tree
    if name == "sum":
        (arguments,) = arguments
    return _FUNCTIONS[name](*(_value_of_tree(argument) for argument in arguments if argument is not None))


def _in_double(value: Any) -> Any:
    return op.Cast(value, to=DOUBLE) if isinstance(value, ir.Value) else exact(value)


def _in_int64(value: Any) -> Any:
    return value if isinstance(value, ir.Value) else literal(int(value))


def _towards_zero(value: Any) -> Any:
    return op.Where(op.Less(value, exact(0)), op.Ceil(value), op.Floor(value))


def _half_to_even(value: Any, digits: Any = None) -> Any:
    if digits is not None:
        raise NotImplementedError("round() of a size to decimal digits")
    return op.Round(value)  # half to even in both


def _remainder(left: Any, right: Any) -> Any:
    return with_sign_of_divisor(op.Mod(left, right, fmod=1), right, exact(0))


def with_sign_of_divisor(rest: Any, right: Any, zero: Any) -> Any:
    """What a division towards zero leaves, as Python's and torch's remainder."""
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(right, zero)))
    return op.Where(differs, op.Add(rest, right), rest)


def _floor_quotient(left: Any, right: Any) -> Any:
    """Python divides what the remainder leaves: `1.0 // 0.1` is 9, although 1.0 / 0.1 is 10."""
    return op.Round(op.Div(op.Sub(left, _remainder(left, right)), right))


def arange(*given: Any, dtype: int = -1, **layout: Any) -> Any:
    """With a fraction among its numbers, as torch: the length and all values in double, and then cast.

    ONNX's Range takes both in float32, and its length is wrong: at n = 41 it makes 42 steps of 1 / n from 0 to 1.
    """
    is_whole = dtype is not None and int(dtype) > 0 and ir.DataType(int(dtype)).is_integer()
    if is_whole or not any(_is_fraction(one) for one in given):
        name = ("core.aten_arange", "core.aten_arange_start", "core.aten_arange_start_step")[len(given) - 1]
        return torchs_translation(name)(*given, dtype=-1 if dtype is None else dtype, **layout)
    start, end, step = map(_in_double, (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3])
    length = op.Cast(op.Ceil(op.Div(op.Sub(end, start), step)), to=INT64)
    values = op.Add(start, op.Mul(op.Cast(counted(length), to=DOUBLE), step))
    return op.Cast(values, to=FLOAT if dtype is None or int(dtype) < 0 else int(dtype))


def _is_fraction(value: Any) -> bool:
    if isinstance(value, ir.Value):
        return value.dtype is not None and value.dtype.is_floating_point()
    return isinstance(value, float)


def _binary_logarithm(value: Any) -> Any:
    """Exact at powers of two, as Python's."""
    plain = op.Div(op.Log(value), exact(math.log(2)))
    whole = op.Round(plain)
    return op.Where(op.Equal(op.Pow(exact(2), whole), value), whole, plain)


_WHOLE_RESULTS = {"trunc", "floor", "ceil", "round"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": op.Add, "sub": op.Sub, "mul": op.Mul, "truediv": op.Div, "floordiv": _floor_quotient, "mod": _remainder,
    "item": lambda x: op.Reshape(x, whole()),
    "pow": op.Pow, "neg": op.Neg, "abs": op.Abs, "max": op.Max, "min": op.Min, "float": lambda x: x,
    "sum": lambda *values: reduce(op.Add, values),
    "round": _half_to_even, "ceil": op.Ceil, "floor": op.Floor, "trunc": _towards_zero, "sqrt": op.Sqrt,
    "log2": _binary_logarithm, "cos": op.Cos, "cosh": op.Cosh, "sin": op.Sin, "sinh": op.Sinh, "tan": op.Tan,
    "tanh": op.Tanh, "asin": op.Asin, "acos": op.Acos, "atan": op.Atan,
}  # fmt: skip

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "_operator::floordiv": floordiv,
    "_operator::and_": partial(bits, op.And, op.BitwiseAnd),
    "_operator::or_": partial(bits, op.Or, op.BitwiseOr),
    "_operator::lshift": lambda left, right: op.Mul(_in_int64(left), _power_of_two(right)),
    "_operator::rshift": lambda left, right: floordiv(left, _power_of_two(right)),
    "aten::arange": arange,
    "aten::arange.start": arange,
    "aten::arange.start_step": arange,
    "anyshape.conversion.operators.numbers::exact_number": number_from_tree,
}

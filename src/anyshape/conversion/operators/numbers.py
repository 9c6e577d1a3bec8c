"""Numbers that a program computes from sizes, kept whole: what Python does in double, the file does in double.

torch's translation makes every such number a float32 step by step: `int(n * 0.7)` is then wrong at one size in sixty.
After the decompositions each chain of scalar functions is gathered into one node; its translation sees all of it.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeGuard

import onnx_ir as ir
import torch
from torch import fx

from anyshape.conversion.operators.onnx_words import FLOAT, number, op
from anyshape.torchkit.patches import replaced
from anyshape.torchkit.private_names import lookup
from anyshape.torchkit.schemas import schema_of

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
        function = lookup(f"torch._sym_{name}")
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

    def make(prepare: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_and_gather(*args: Any, **kwargs: Any) -> Any:
            program = prepare(*args, **kwargs)
            gather(program.graph_module)
            mark_layouts(program.graph_module)
            return program

        return prepare_and_gather

    with replaced("torch.onnx._internal.exporter._core._prepare_exported_program_for_export", make):
        yield


_BY_LAYOUT = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


def mark_layouts(module: fx.GraphModule) -> None:
    """Give `from_channels_last=True` to the operators whose values depend on it."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, fx.GraphModule) else ():
            if _depends_on_layout(node) and _is_channels_last(node.args[0]):
                node.kwargs = {**node.kwargs, "from_channels_last": True}


def _depends_on_layout(node: fx.Node) -> bool:
    schema = schema_of(node.target)
    return node.op == "call_function" and schema is not None and schema.name.split("::")[-1] in _BY_LAYOUT


def _is_channels_last(argument: object) -> bool:
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return isinstance(value, torch.Tensor) and (
        value.dim() == 4 and value.stride()[1] == 1 and value.is_contiguous(memory_format=torch.channels_last)
    )


_DOUBLE, _FLOAT, _INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def floordiv(left: Any, right: Any) -> Any:
    """Towards minus infinity: one less than the truncated quotient where a remainder has the other sign."""
    left, right = _whole(left), _whole(right)
    if _is_positive_literal(right) and _is_a_size(left):
        return op.Div(left, right)
    # ONNX's Mod of integers has the sign of the divisor, as Python's
    return op.Div(op.Sub(left, op.Mod(left, right)), right)


def _is_positive_literal(value: Any) -> bool:
    constant = ir.convenience.get_const_tensor(value) if isinstance(value, ir.Value) else None
    return constant is not None and bool((constant.numpy() > 0).all())


def _is_a_size(value: Any) -> bool:
    """Whether a number comes straight from a shape: it cannot be negative."""
    node = value.producer() if isinstance(value, ir.Value) else None
    if node is not None and node.op_type == "Squeeze":
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    return node is not None and node.op_type == "Shape"


def number_from_tree(tree: Sequence[Any]) -> Any:
    """The translation of a whole chain of scalar functions: double inside, int64 or float32 at its end."""
    name, *_ = tree
    value = _evaluate(tree)
    if name in _WHOLE_RESULTS:
        return op.Cast(value, to=_INT64)
    return op.Cast(value, to=_FLOAT)


def _evaluate(tree: Any) -> Any:
    if not isinstance(tree, list | tuple):
        return _double(tree)
    name, *arguments = tree
    if name == "sum":
        (arguments,) = arguments
    values = [_evaluate(argument) for argument in arguments if argument is not None]
    return _FUNCTIONS[name](*values)


def _double(value: Any) -> Any:
    if isinstance(value, ir.Value):
        return op.Cast(value, to=_DOUBLE)
    return op.Constant(value=ir.tensor(float(value), dtype=_DOUBLE))


def _whole(value: Any) -> Any:
    return value if isinstance(value, ir.Value) else op.Constant(value=ir.tensor(int(value), dtype=_INT64))


def _trunc(value: Any) -> Any:
    return op.Where(op.Less(value, _double(0)), op.Ceil(value), op.Floor(value))


def _round(value: Any, digits: Any = None) -> Any:
    if digits is not None:
        raise NotImplementedError("round() of a size to decimal digits")
    return op.Round(value)  # half to even in both


def _remainder(left: Any, right: Any) -> Any:
    """With the sign of the divisor."""
    rest = op.Mod(left, right, fmod=1)
    zero = _double(0)
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(right, zero)))
    return op.Where(differs, op.Add(rest, right), rest)


def _floor_quotient(left: Any, right: Any) -> Any:
    """Python divides what the remainder leaves: `1.0 // 0.1` is 9, although 1.0 / 0.1 is 10."""
    return op.Round(op.Div(op.Sub(left, _remainder(left, right)), right))


def _log2(value: Any) -> Any:
    """Exact at powers of two, as Python's."""
    plain = op.Div(op.Log(value), _double(math.log(2)))
    whole = op.Round(plain)
    return op.Where(op.Equal(op.Pow(_double(2), whole), value), whole, plain)


def _sum(*values: Any) -> Any:
    total = values[0]
    for value in values[1:]:
        total = op.Add(total, value)
    return total


_WHOLE_RESULTS = {"trunc", "floor", "ceil", "round"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": op.Add, "sub": op.Sub, "mul": op.Mul, "truediv": op.Div, "floordiv": _floor_quotient, "mod": _remainder,
    "pow": op.Pow, "neg": op.Neg, "abs": op.Abs, "max": op.Max, "min": op.Min, "sum": _sum, "float": lambda x: x,
    "round": _round, "ceil": op.Ceil, "floor": op.Floor, "trunc": _trunc, "sqrt": op.Sqrt, "log2": _log2,
    "cos": op.Cos, "cosh": op.Cosh, "sin": op.Sin, "sinh": op.Sinh, "tan": op.Tan, "tanh": op.Tanh,
    "asin": op.Asin, "acos": op.Acos, "atan": op.Atan,
}  # fmt: skip

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "_operator::floordiv": floordiv,
    "anyshape.conversion.operators.numbers::exact_number": number_from_tree,
}

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def rsub(tensor: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = tensor.dtype
    if dtype not in _FLOATS and any(_is_fraction(number) for number in (other, alpha)):
        dtype = ir.DataType.FLOAT  # as PyTorch promotes, unless its default type was changed
    tensor, other = _as(tensor, dtype), _as(other, dtype)
    return op.Sub(other, tensor if alpha == 1 else op.Mul(tensor, _as(alpha, dtype)))


def _is_fraction(value: Any) -> bool:
    return value.dtype in _FLOATS if isinstance(value, ir.Value) else isinstance(value, float)


def _as(value: Any, dtype: Any) -> Any:
    if not isinstance(value, ir.Value):
        return op.Cast(op.Constant(value=ir.tensor(value)), to=dtype)
    return value if value.dtype == dtype else op.Cast(value, to=dtype)


SUBTRACTIONS: dict[str, Callable[..., Any]] = {"aten::rsub.Scalar": rsub, "aten::rsub.Tensor": rsub}

Function = Callable[..., Any]
_LIBRARY = "onnxscript.function_libs.torch_lib.ops"


def _of_torch(place: str) -> Function:
    module, _, name = place.partition(".")
    function: Function = getattr(importlib.import_module(f"{_LIBRARY}.{module}"), name)
    return function


def _where_sized(tensors: int, ours: Function, otherwise: str) -> Function:
    """Ours where a number behind so many tensors is a value of the graph; torch's own otherwise."""

    def translate(*args: Any, **kwargs: Any) -> Any:
        sized = any(isinstance(value, ir.Value) for value in (*args[tensors:], *kwargs.values()))
        return (ours if sized else _of_torch(otherwise))(*args, **kwargs)

    return translate


def _common(x: ir.Value, other: Any) -> tuple[Any, Any]:
    """Both in one type: that of the tensor, unless the number has a fraction and the tensor cannot have one."""
    whole = x.dtype is not None and x.dtype.is_integer()
    fractional = other.dtype is not None and not other.dtype.is_integer() if isinstance(other, ir.Value) else False
    if whole and fractional:
        return op.Cast(x, to=FLOAT), op.Cast(other, to=FLOAT)
    return x, number(other, x)


def _plain(operator: Function) -> Function:
    def translate(x: ir.Value, other: Any, alpha: Any = 1) -> Any:
        left, right = _common(x, other)
        return operator(left, right if isinstance(alpha, int) and alpha == 1 else op.Mul(right, number(alpha, x)))

    return translate


def _power(x: ir.Value, exponent: Any) -> Any:
    left, right = _common(x, exponent)
    return op.Pow(left, right)


def _tensor_remainder(x: ir.Value, other: Any) -> Any:
    """With the sign of the divisor."""
    left, right = _common(x, other)
    if x.dtype is not None and x.dtype.is_integer() and left is x:
        return op.Mod(left, right)
    rest = op.Mod(left, right, fmod=1)
    zero = op.CastLike(op.Constant(value=ir.tensor(0.0, dtype=FLOAT)), left)
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(right, zero)))
    return op.Where(differs, op.Add(rest, right), rest)


def _add_product(x: ir.Value, left: ir.Value, right: ir.Value, *, value: Any = 1) -> Any:
    return op.Add(x, op.Mul(number(value, x), op.Mul(left, right)))


def _add_quotient(x: ir.Value, left: ir.Value, right: ir.Value, *, value: Any = 1) -> Any:
    return op.Add(x, op.Mul(number(value, x), op.Div(left, right)))


def _leaky_relu(x: ir.Value, negative_slope: Any = 0.01) -> Any:
    return op.PRelu(x, number(negative_slope, x))


def _elu(x: ir.Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    one, zero = number(1, x), number(0, x)
    below = op.Mul(number(alpha, x), op.Sub(op.Exp(op.Mul(op.Min(x, zero), number(input_scale, x))), one))
    return op.Mul(number(scale, x), op.Where(op.Greater(x, zero), x, below))


def _hardtanh(x: ir.Value, min_val: Any = -1, max_val: Any = 1) -> Any:
    return op.Clip(x, number(min_val, x), number(max_val, x))


def _softplus(x: ir.Value, beta: Any = 1, threshold: Any = 20) -> Any:
    steep = op.Mul(x, number(beta, x))
    return op.Where(op.Greater(steep, number(threshold, x)), x, op.Div(op.Softplus(steep), number(beta, x)))


def _add_matrix_product(x: ir.Value, left: ir.Value, right: ir.Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return op.Add(op.Mul(number(beta, x), x), op.Mul(number(alpha, x), op.MatMul(left, right)))


WITH_SIZES: dict[str, Function] = {
    "aten::add.Scalar": _where_sized(1, _plain(op.Add), "core.aten_add_scalar"),
    "aten::sub.Scalar": _where_sized(1, _plain(op.Sub), "core.aten_sub_scalar"),
    "aten::mul.Scalar": _where_sized(1, _plain(op.Mul), "core.aten_mul_scalar"),
    "aten::pow.Tensor_Scalar": _where_sized(1, _power, "core.aten_pow_tensor_scalar"),
    "aten::remainder.Scalar": _where_sized(1, _tensor_remainder, "core.aten_remainder_scalar"),
    "aten::addcmul": _where_sized(3, _add_product, "core.aten_addcmul"),
    "aten::addcdiv": _where_sized(3, _add_quotient, "core.aten_addcdiv"),
    "aten::addmm": _where_sized(3, _add_matrix_product, "core.aten_addmm"),
    "aten::leaky_relu": _where_sized(1, _leaky_relu, "nn.aten_leaky_relu"),
    "aten::elu": _where_sized(1, _elu, "nn.aten_elu"),
    "aten::hardtanh": _where_sized(1, _hardtanh, "nn.aten_hardtanh"),
    "aten::softplus": _where_sized(1, _softplus, "nn.aten_softplus"),
}

"""Arithmetic with sizes: in the model's own Python code, in functions of torch, and between a size and a tensor.

Python makes plain numbers of sizes (`int(h * 0.5)`, `math.sqrt(n)`, `len(x)`, `np.prod(x.shape)`), and the traced size
becomes a constant; so do some functions of torch (`torch.linspace(0, 1, n)`), and torch's translations of a tensor
beside a number.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import SymFloat, SymInt, Tensor, sym_float, sym_int, sym_max, sym_min

from anyshape.conversion.operators.elementwise import power_by_products, whole_remainder
from anyshape.conversion.operators.numbers import with_sign_of_divisor
from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    FLOAT,
    exact,
    literal,
    number,
    op,
    static_size,
    torchs_translation,
)
from anyshape.conversion.operators.repair import Repair, Used, all_patched, answering, is_known, is_size
from anyshape.conversion.operators.traced_code import shadowed
from anyshape.sizes import budgets

# ---- in Python: names that keep a symbolic size symbolic

# In the model's modules they stand, while a trace runs, for functions that do with everything else what they always
# did. The same numbers come out: the file computes them in double and int64, as Python does.

Function = Callable[..., Any]
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, _SYMBOLIC)


def _whole_part(value: Any) -> Any:
    return value if isinstance(value, SymInt) else sym_int(value)


def _stand_in(genuine: type, symbolic: type, convert: Function, used: Used) -> type:
    """A class in place of `int` or `float`: called, it keeps a symbolic number; `isinstance` still asks it."""
    name = genuine.__name__

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            value = _number_in(args[0]) if len(args) == 1 and not kwargs else None
            if _is_symbolic(value):
                used(computed_in_the_file(f"{name}()"))
                return convert(value)
            return genuine(*args, **kwargs)

        def __instancecheck__(cls, value: Any) -> bool:
            if isinstance(value, symbolic):
                used(f"isinstance(size, {name}): true during the trace too")
                return True
            return isinstance(value, genuine)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, (genuine, symbolic))

        def __eq__(cls, other: object) -> bool:
            return other is genuine or other is cls

        def __hash__(cls) -> int:
            return hash(genuine)

        def __getattr__(cls, name: str) -> Any:
            return getattr(genuine, name)

    return Meta(name, (), {})


def _number_in(value: Any) -> Any:
    """The number in a tensor of one element whose value a trace does not know."""
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def _by_tensor(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    """A function of a size that symbols do not know: by way of a tensor of one double."""

    def compute(value: Any) -> Any:
        return function(torch.full((), sym_float(value), dtype=torch.float64)).item()

    return compute


def _exact_at_powers(base: float) -> Function:
    """A logarithm that is whole at powers of its base, as Python's."""

    def logarithm(value: torch.Tensor) -> torch.Tensor:
        plain = torch.log(value) / math.log(base)
        whole = torch.round(plain)
        return torch.where(torch.pow(base, whole) == value, whole, plain)

    return _by_tensor(logarithm)


_log2, _log10 = _exact_at_powers(2.0), _exact_at_powers(10.0)


def _log(value: Any, base: Any = None) -> Any:
    plain = _by_tensor(torch.log)(value) if _is_symbolic(value) else math.log(value)
    if base is None:
        return plain
    return plain / (_by_tensor(torch.log)(base) if _is_symbolic(base) else math.log(base))


def _isqrt(value: Any) -> Any:
    return sym_int(torch.sym_sqrt(value))  # exact: the root of a whole number below 2**52 never rounds up


def _remainder_towards_zero(value: Any, divisor: Any) -> Any:
    if not (is_known(value >= 0) and is_known(divisor > 0)):
        raise TypeError("of negative numbers, it is another than Python's %")
    return sym_float(value) % sym_float(divisor)


def _greatest_divisor(*numbers: Any) -> Any:
    """Of sizes and one plain number at least: the largest divisor of the plain ones that divides the sizes."""
    plain = math.gcd(*(one for one in numbers if not _is_symbolic(one)))
    if not 0 < plain <= budgets.LARGEST_DIVISOR:
        raise TypeError("no such list of divisors")
    rests = [one for one in numbers if _is_symbolic(one)]
    fitting = (d * (1 - sym_min(sum(one % d for one in rests), 1)) for d in range(1, plain + 1) if plain % d == 0)
    return reduce(sym_max, fitting)


def _least_multiple(one: Any, other: Any) -> Any:
    return one * other // _greatest_divisor(one, other)


def _bit_length(size: Any) -> Any:
    """A power of two more, a bit more; a size of more than 32 bits is none that fits into memory."""
    return sum((sym_min(size // 2**power, 1) for power in range(32)), start=0)


def _product(values: Any, *, start: Any = 1) -> Any:
    return reduce(lambda left, right: left * right, values, start)


def _mean(values: Any) -> Any:
    return sum(values) / len(values)


def _extreme(better: Function, first: Any, *others: Any) -> Any:
    return reduce(better, others, first) if others else reduce(better, first)


_largest, _smallest = partial(_extreme, sym_max), partial(_extreme, sym_min)


def _divmod(left: Any, right: Any) -> Any:
    return left // right, left % right


def _floor_division(genuine: Function, *, reflected: bool) -> Function:
    """Of fractions as Python does it, by way of the remainder: `1 // 0.1` is 9, although 1 / 0.1 is 10."""

    def divide(left: Any, right: Any) -> Any:
        if not any(isinstance(value, float | SymFloat) for value in (left, right)):
            return genuine(left, right)
        upper, lower = (right, left) if reflected else (left, right)
        upper, lower = sym_float(upper), sym_float(lower)
        return sym_float(builtins.round((upper - upper % lower) / lower))

    return divide


_OF_PYTHON: dict[str, Function] = {
    "round": builtins.round, "min": _smallest, "max": _largest, "divmod": _divmod,
}  # fmt: skip
_OF_MATH: dict[str, Function] = {
    "sqrt": torch.sym_sqrt, "isqrt": _isqrt, "prod": _product, "fabs": abs,
    "log": _log, "log2": _log2, "log10": _log10, "log1p": _by_tensor(torch.log1p),
    "exp": _by_tensor(torch.exp), "pow": lambda base, power: sym_float(base) ** power,
    "sin": _by_tensor(torch.sin), "cos": _by_tensor(torch.cos), "tanh": _by_tensor(torch.tanh),
    "fmod": _remainder_towards_zero, "gcd": _greatest_divisor, "lcm": _least_multiple,
    "hypot": lambda *values: torch.sym_sqrt(sum(value * value for value in values)),
}  # fmt: skip
_OF_NUMPY: dict[str, Function] = {
    "prod": _product, "mean": _mean, "sum": sum, "sqrt": torch.sym_sqrt, "log": _log, "log2": _log2,
    "log10": _log10, "exp": _by_tensor(torch.exp), "abs": abs, "round": builtins.round,
    "ceil": lambda value: sym_float(math.ceil(value)), "floor": lambda value: sym_float(math.floor(value)),
    "maximum": sym_max, "minimum": sym_min, "max": _largest, "min": _smallest,
    "power": lambda base, power: base**power, "square": lambda value: value * value,
}  # fmt: skip


_OF_UFUNCS = ("reduce", "accumulate", "reduceat", "outer", "at")
"""numpy calls its own functions by these while a trace runs: `np.max` is `np.maximum.reduce`."""


def _function_keeping_sizes(genuine: Function, symbolic: Function, tell: Callable[[], None]) -> Function:
    """The genuine function for plain values, the other one where a symbolic number is among them."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if any(map(_holds_symbol, args)):
            try:
                result = symbolic(*args, **kwargs)
            except TypeError:  # arguments that only the genuine one knows
                return genuine(*args, **kwargs)
            tell()
            return result
        return genuine(*args, **kwargs)

    for name in _OF_UFUNCS:
        if hasattr(genuine, name):
            setattr(function, name, getattr(genuine, name))
    return function


def _holds_symbol(value: Any) -> bool:
    return _is_symbolic(value) or (isinstance(value, list | tuple) and any(map(_is_symbolic, value)))


def computed_in_the_file(name: str) -> str:
    return f"{name} of a size: computed in the file, as Python does"


@contextlib.contextmanager
def _names_keep_sizes(used: Used) -> Iterator[None]:
    def telling(name: str) -> Callable[[], None]:
        return lambda: used(computed_in_the_file(name))

    names: dict[str, Any] = {
        "int": _stand_in(int, SymInt, _whole_part, used),
        "float": _stand_in(float, SymFloat, sym_float, used),
        "len": partial(_telling_length, telling("len()")),
    }
    for name, symbolic in _OF_PYTHON.items():
        names[name] = _function_keeping_sizes(getattr(builtins, name), symbolic, telling(f"{name}()"))
    imported: dict[int, Any] = {}
    places: list[tuple[Any, str, Any]] = []
    for module, table in ((math, _OF_MATH), (np, _OF_NUMPY)):
        for name, symbolic in table.items():
            genuine = getattr(module, name)
            stand_in = _function_keeping_sizes(genuine, symbolic, telling(f"{module.__name__}.{name}()"))
            imported[id(genuine)] = stand_in
            places.append((module, name, stand_in))
    for kind in (SymInt, SymFloat):
        for name in ("__floordiv__", "__rfloordiv__"):
            divide = _floor_division(getattr(kind, name), reflected=name == "__rfloordiv__")
            places.append((kind, name, divide))
    lengths = _function_keeping_sizes(int.bit_length, _bit_length, telling("int.bit_length()"))
    places += [(SymInt, "bit_length", lengths), (SymInt, "__invert__", lambda size: -size - 1)]
    with all_patched(places), shadowed(names, imported):
        yield


def _telling_length(tell: Callable[[], None], value: Any) -> Any:
    if not isinstance(value, Tensor) or not value.dim():
        return builtins.len(value)
    if _is_symbolic(value.shape[0]):
        tell()
    return value.shape[0]


ARITHMETIC = Repair("arithmetic on sizes", _names_keep_sizes)


# ---- `torch.div(n, 2, rounding_mode="floor")` of a size: a whole number that is still a size

# Torch makes a tensor of it, and what is cut or viewed by it has a size that comes from values. A division of sizes
# rounds down; towards zero is the same where neither number can be negative, and is left to torch where one can.


def _divide(used: Used, input: Any, other: Any, *, rounding_mode: str | None = None, **others: Any) -> Any:  # noqa: A002
    if others or rounding_mode is None or not _are_whole_sizes(input, other):
        return NotImplemented
    if rounding_mode == "trunc" and not (is_known(input >= 0) and is_known(other > 0)):
        return NotImplemented
    used("torch.div of a size: stays a size")
    return input // other


def _are_whole_sizes(*numbers: Any) -> bool:
    whole = all(isinstance(number, int | SymInt) for number in numbers)
    return whole and any(isinstance(number, SymInt) for number in numbers)


DIVISIONS = Repair("torch.div of sizes", answering({(torch, name): _divide for name in ("div", "divide")}))


# ---- `torch.as_tensor([(height, width), (8, 4)])`: a tensor of sizes stays one of sizes

# Torch reads the numbers of nested lists and tuples as plain ones. `torch.tensor` makes the same tensor, and keeps
# sizes symbolic.


def _numbers_in(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for part in data:
            yield from _numbers_in(part)
    else:
        yield data


def _holds_sizes(data: Any) -> bool:
    """Whether a size is among the numbers; tensors are left to torch, which may share their memory."""
    found = [*_numbers_in(data)]
    plain = all(isinstance(one, int | float | SymInt | SymFloat) for one in found)
    return plain and any(isinstance(one, SymInt | SymFloat) for one in found)


def _tensor_by_name(name: str, used: Used, data: Any, dtype: Any = None, device: Any = None, **others: Any) -> Any:
    if others or not _holds_sizes(data):
        return NotImplemented
    used(f"{name}: of sizes")
    return torch.tensor(data, dtype=dtype, device=device)


def _tensor_like(used: Used, like: Tensor, data: Any, *, dtype: Any = None, device: Any = None, **others: Any) -> Any:
    return _tensor_by_name("x.new_tensor", used, data, dtype or like.dtype, device or like.device, **others)


_ANSWERS: dict[tuple[Any, str], Function] = {
    (torch, "as_tensor"): partial(_tensor_by_name, "torch.as_tensor"),
    (torch, "asarray"): partial(_tensor_by_name, "torch.asarray"),
    (Tensor, "new_tensor"): _tensor_like,
}
TENSORS_OF_SIZES = Repair("tensors of sizes", answering(_ANSWERS))


# ---- values spread over a length that is a size: `torch.linspace(0, 1, n)`, `torch.hann_window(n)`

# Torch pins a symbolic length of `linspace`, `logspace` and windows while it traces. Put there: the same values from
# `arange` and arithmetic on it.


def _linspace(genuine: Function, used: Used) -> Function:
    """As torch computes it on a CPU: from the start up to the middle, from the end for the rest."""

    def linspace(start: Any, end: Any, steps: Any, **options: Any) -> Any:
        if not is_size(steps) or isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor):
            return genuine(start, end, steps, **options)
        used(computed_in_the_file("torch.linspace()"))
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        index = torch.arange(steps, dtype=dtype, **options)
        step = torch.full((), 1.0, dtype=dtype, **options) * (end - start) / sym_max(steps - 1, 1)
        rising, falling = start + index * step, end - (steps - 1 - index) * step
        middle = sym_max(steps // 2, 2 - steps)  # of one step, the start
        return torch.where(torch.arange(steps, **options) < middle, rising, falling)

    return linspace


def _logspace(genuine: Function, linspace: Function) -> Function:
    def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, **options: Any) -> Any:
        if not is_size(steps):
            return genuine(start, end, steps, base, **options)
        return torch.pow(base, linspace(start, end, steps, **options))

    return logspace


_WINDOWS = {
    "hann_window": (0.5, -0.5), "hamming_window": (0.54, -0.46), "blackman_window": (0.42, -0.5, 0.08),
}  # fmt: skip
"""What stands before the cosines of 0, 1 and 2 times the angle."""


def _window(name: str, used: Used) -> Function:
    """A sum of cosines over the length, or over one less where it is not periodic; of one value, 1."""
    genuine: Function = getattr(torch, name)

    def window(length: Any, periodic: bool = True, **options: Any) -> Any:
        if not is_size(length) or not options.keys() <= {"dtype", "device"}:
            return genuine(length, periodic, **options)
        used(computed_in_the_file(f"torch.{name}()"))
        whole = length if periodic else sym_max(length - 1, 1)
        angle = torch.arange(length, dtype=torch.float64, device=options.get("device")) * (2 * math.pi / whole)
        value = torch.zeros_like(angle)
        for order, weight in enumerate(_WINDOWS[name]):
            value = value + weight * torch.cos(order * angle)
        one = torch.zeros_like(angle, dtype=torch.int64) + length == 1
        return torch.where(one, 1.0, value).to(options.get("dtype") or torch.get_default_dtype())

    return window


def _spread_at_run_time(used: Used) -> AbstractContextManager[None]:
    linspace = _linspace(torch.linspace, used)
    replaced = {"linspace": linspace, "logspace": _logspace(torch.logspace, linspace)}
    replaced |= {name: _window(name, used) for name in _WINDOWS}
    return all_patched((torch, *replacement) for replacement in replaced.items())


RANGES = Repair("values spread over a size", _spread_at_run_time)

# ---- ONNX: `1.0 - x` and `torch.rsub`, a number minus a tensor

# torch turns it into a subtraction whose first argument is a number; its own promotion of types finds no such operator
# where `x` holds whole numbers.

_FLOATS = (FLOAT, DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _subtracted_from(tensor: Any, other: Any, alpha: Any = 1) -> Any:
    dtype = tensor.dtype
    if dtype not in _FLOATS and any(_is_fraction(number) for number in (other, alpha)):
        dtype = FLOAT  # as PyTorch promotes, unless its default type was changed
    tensor, other = _in_type(tensor, dtype), _in_type(other, dtype)
    return op.Sub(other, tensor if alpha == 1 else op.Mul(tensor, _in_type(alpha, dtype)))


def _is_fraction(value: Any) -> bool:
    return value.dtype in _FLOATS if isinstance(value, ir.Value) else isinstance(value, float)


def _in_type(value: Any, dtype: Any) -> Any:
    if not isinstance(value, ir.Value):
        return exact(value) if dtype == DOUBLE else op.Cast(op.Constant(value=ir.tensor(value)), to=dtype)
    return value if value.dtype == dtype else op.Cast(value, to=dtype)


# ---- ONNX: a tensor beside a number that is a size, or was computed from sizes

# torch's translations write such a number down as a constant. With a literal they are asked as before.


def _where_sized(tensors: int, ours: Function, otherwise: str, *, rounds: bool = False) -> Function:
    """Ours where a number behind so many tensors is a value of the graph, and in float64 if torch's own `rounds`
    literals to float32; torch's own otherwise.
    """

    def translate(*args: Any, **kwargs: Any) -> Any:
        sized = any(isinstance(value, ir.Value) for value in (*args[tensors:], *kwargs.values()))
        return (ours if sized or (rounds and args[0].dtype == DOUBLE) else torchs_translation(otherwise))(
            *args, **kwargs
        )

    return translate


def _in_one_type(x: ir.Value, other: Any) -> tuple[Any, Any]:
    """Both in one type: that of the tensor, unless the number has a fraction and the tensor cannot have one."""
    whole = x.dtype is not None and x.dtype.is_integer()
    if whole and _is_fraction(other):
        return op.Cast(x, to=FLOAT), op.Cast(other, to=FLOAT) if isinstance(other, ir.Value) else literal(other, FLOAT)
    return x, number(other, x)


def _elementwise(operator: Function, x: ir.Value, other: Any, alpha: Any = 1) -> Any:
    left, right = _in_one_type(x, other)
    return operator(left, right if isinstance(alpha, int) and alpha == 1 else op.Mul(right, number(alpha, x)))


def _power(x: ir.Value, exponent: Any) -> Any:
    """Of whole numbers by products: ONNX Runtime takes it in double, where the last digits of large ones are lost."""
    if x.dtype is not None and x.dtype.is_integer() and type(exponent) is int and exponent > 0:
        return power_by_products(x, exponent, op.Mul)
    translate = _where_sized(1, partial(_elementwise, op.Pow), "core.aten_pow_tensor_scalar")
    return translate(x, exponent)


def _remainder(x: ir.Value, other: Any) -> Any:
    left, right = _in_one_type(x, other)
    if x.dtype is not None and x.dtype.is_integer() and left is x:
        return whole_remainder(left, right)
    rest = op.Mod(left, right, fmod=1)
    zero = op.CastLike(literal(0.0, FLOAT), left)
    return with_sign_of_divisor(rest, right, zero)


def _add_joined(join: Function, x: ir.Value, left: ir.Value, right: ir.Value, *, value: Any = 1) -> Any:
    return op.Add(x, op.Mul(number(value, x), join(left, right)))


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


def _matrix_product_and_sum(x: ir.Value, left: ir.Value, right: ir.Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """ONNX Runtime's Gemm takes no whole numbers, and forgets what is added where nothing is multiplied."""
    if x.dtype not in _FLOATS or 0 in (static_size(left, 1), static_size(right, 0)):
        return _add_matrix_product(x, left, right, beta=beta, alpha=alpha)
    translate = _where_sized(3, _add_matrix_product, "core.aten_addmm")
    return translate(x, left, right, beta=beta, alpha=alpha)


TRANSLATIONS: dict[str, Function] = {
    "aten::rsub.Scalar": _subtracted_from,
    "aten::rsub.Tensor": _subtracted_from,
    "aten::add.Scalar": _where_sized(1, partial(_elementwise, op.Add), "core.aten_add_scalar"),
    "aten::sub.Scalar": _where_sized(1, partial(_elementwise, op.Sub), "core.aten_sub_scalar"),
    "aten::mul.Scalar": _where_sized(1, partial(_elementwise, op.Mul), "core.aten_mul_scalar"),
    "aten::pow.Tensor_Scalar": _power,
    "aten::remainder.Scalar": _remainder,
    "aten::addcmul": _where_sized(3, partial(_add_joined, op.Mul), "core.aten_addcmul", rounds=True),
    "aten::addcdiv": _where_sized(3, partial(_add_joined, op.Div), "core.aten_addcdiv", rounds=True),
    "aten::addmm": _matrix_product_and_sum,
    "aten::addmv": _where_sized(3, _add_matrix_product, "core.aten_addmv", rounds=True),
    "aten::leaky_relu": _where_sized(1, _leaky_relu, "nn.aten_leaky_relu"),
    "aten::elu": _where_sized(1, _elu, "nn.aten_elu"),
    "aten::hardtanh": _where_sized(1, _hardtanh, "nn.aten_hardtanh", rounds=True),
    "aten::softplus": _where_sized(1, _softplus, "nn.aten_softplus", rounds=True),
}

"""Arithmetic on sizes in the model's own code: `int(h * 0.5)`, `math.sqrt(n)`, `len(x)`, `np.prod(x.shape)`.

Python makes these plain numbers, and the traced size becomes a constant. In the model's modules the names stand, while
a trace runs, for functions that keep a symbolic size symbolic and do with everything else what they always did. The
same numbers come out: the file computes them in double and int64, as Python does.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import SymFloat, SymInt, Tensor

from anyshape.conversion.operators.recurrent import is_known
from anyshape.conversion.operators.repair import Answer, Repair, Used, answered
from anyshape.conversion.operators.shadows import shadowed
from anyshape.torchkit.patches import patched

Function = Callable[..., Any]
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
# torch does not type these
_sym_int: Function = torch.sym_int
_sym_float: Function = torch.sym_float
_sym_max: Function = torch.sym_max
_sym_min: Function = torch.sym_min


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, _SYMBOLIC)


def _int(value: Any) -> Any:
    return value if isinstance(value, torch.SymInt) else _sym_int(value)


def _stand_in(genuine: type, symbolic: type, convert: Function, used: Used) -> type:
    """A class in place of `int` or `float`: called, it keeps a symbolic number; `isinstance` still asks it."""
    name = genuine.__name__

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            value = _number_in(args[0]) if len(args) == 1 and not kwargs else None
            if _is_symbolic(value):
                used(sentence(f"{name}()"))
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
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _of_tensor(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    """A function of a size that symbols do not know: by way of a tensor of one double."""

    def compute(value: Any) -> Any:
        return function(torch.full((), _sym_float(value), dtype=torch.float64)).item()

    return compute


def _log2(value: torch.Tensor) -> torch.Tensor:
    """Exact at powers of two, as Python's."""
    plain = torch.log(value) / math.log(2)
    whole = torch.round(plain)
    return torch.where(torch.pow(2.0, whole) == value, whole, plain)


def _log(value: Any, base: Any = None) -> Any:
    plain = _of_tensor(torch.log)(value) if _is_symbolic(value) else math.log(value)
    if base is None:
        return plain
    return plain / (_of_tensor(torch.log)(base) if _is_symbolic(base) else math.log(base))


def _isqrt(value: Any) -> Any:
    return _sym_int(torch.sym_sqrt(value))  # exact: the root of a whole number below 2**52 never rounds up


def _product(values: Any, *, start: Any = 1) -> Any:
    return reduce(lambda left, right: left * right, values, start)


def _mean(values: Any) -> Any:
    return sum(values) / len(values)


def _largest(first: Any, *others: Any) -> Any:
    return reduce(_sym_max, others, first) if others else reduce(_sym_max, first)


def _smallest(first: Any, *others: Any) -> Any:
    return reduce(_sym_min, others, first) if others else reduce(_sym_min, first)


def _divmod(left: Any, right: Any) -> Any:
    return left // right, left % right


def _floor_division(genuine: Function, *, reflected: bool) -> Function:
    """Of fractions as Python does it, by way of the remainder: `1 // 0.1` is 9, although 1 / 0.1 is 10."""

    def divide(left: Any, right: Any) -> Any:
        if not any(isinstance(value, float | torch.SymFloat) for value in (left, right)):
            return genuine(left, right)
        upper, lower = (right, left) if reflected else (left, right)
        upper, lower = _sym_float(upper), _sym_float(lower)
        return _sym_float(builtins.round((upper - upper % lower) / lower))

    return divide


_OF_PYTHON: dict[str, Function] = {
    "round": builtins.round, "min": _smallest, "max": _largest, "divmod": _divmod,
}  # fmt: skip
_OF_MATH: dict[str, Function] = {
    "sqrt": torch.sym_sqrt, "isqrt": _isqrt, "prod": _product, "fabs": abs,
    "log": _log, "log2": _of_tensor(_log2), "log10": _of_tensor(torch.log10), "log1p": _of_tensor(torch.log1p),
    "exp": _of_tensor(torch.exp), "pow": lambda base, power: _sym_float(base) ** power,
    "sin": _of_tensor(torch.sin), "cos": _of_tensor(torch.cos), "tanh": _of_tensor(torch.tanh),
}  # fmt: skip
_OF_NUMPY: dict[str, Function] = {
    "prod": _product, "mean": _mean, "sum": sum, "sqrt": torch.sym_sqrt, "log": _log, "log2": _of_tensor(_log2),
    "log10": _of_tensor(torch.log10), "exp": _of_tensor(torch.exp), "abs": abs, "round": builtins.round,
    "ceil": lambda value: _sym_float(math.ceil(value)), "floor": lambda value: _sym_float(math.floor(value)),
    "maximum": _sym_max, "minimum": _sym_min, "max": _largest, "min": _smallest,
    "power": lambda base, power: base**power, "square": lambda value: value * value,
}  # fmt: skip


def _keeping(genuine: Function, symbolic: Function, tell: Callable[[], None]) -> Function:
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


_OF_UFUNCS = ("reduce", "accumulate", "reduceat", "outer", "at")
"""numpy calls its own functions by these while a trace runs: `np.max` is `np.maximum.reduce`."""


def _holds_symbol(value: Any) -> bool:
    return _is_symbolic(value) or (isinstance(value, list | tuple) and any(map(_is_symbolic, value)))


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else builtins.len(value)


def sentence(name: str) -> str:
    return f"{name} of a size: computed in the file, as Python does"


@contextlib.contextmanager
def _apply_arithmetic(used: Used) -> Iterator[None]:
    def telling(name: str) -> Callable[[], None]:
        return lambda: used(sentence(name))

    names: dict[str, Any] = {
        "int": _stand_in(int, torch.SymInt, _int, used),
        "float": _stand_in(float, torch.SymFloat, _sym_float, used),
        "len": _telling_length(telling("len()")),
    }
    for name, symbolic in _OF_PYTHON.items():
        names[name] = _keeping(getattr(builtins, name), symbolic, telling(f"{name}()"))
    imported: dict[int, Any] = {}
    with contextlib.ExitStack() as stack:
        for module, table in ((math, _OF_MATH), (np, _OF_NUMPY)):
            for name, symbolic in table.items():
                genuine = getattr(module, name)
                stand_in = _keeping(genuine, symbolic, telling(f"{module.__name__}.{name}()"))
                imported[id(genuine)] = stand_in
                stack.enter_context(patched(module, name, stand_in))
        for kind in (torch.SymInt, torch.SymFloat):
            for name in ("__floordiv__", "__rfloordiv__"):
                divide = _floor_division(getattr(kind, name), reflected=name == "__rfloordiv__")
                stack.enter_context(patched(kind, name, divide))
        stack.enter_context(shadowed(names, imported))
        yield


def _telling_length(tell: Callable[[], None]) -> Function:
    def length(value: Any) -> Any:
        found = _length(value)
        if _is_symbolic(found):
            tell()
        return found

    return length


ARITHMETIC = Repair("arithmetic on sizes", _apply_arithmetic)


@contextlib.contextmanager
def _apply_divisions(used: Used) -> Iterator[None]:
    def div(input: Any, other: Any, *, rounding_mode: str | None = None, **others: Any) -> Any:  # noqa: A002
        if others or rounding_mode is None or not _are_whole_sizes(input, other):
            return NotImplemented
        if rounding_mode == "trunc" and not (is_known(input >= 0) and is_known(other > 0)):
            return NotImplemented
        used("torch.div of a size: stays a size")
        return input // other

    with answered({(torch, name): div for name in ("div", "divide")}):
        yield


def _are_whole_sizes(*numbers: Any) -> bool:
    whole = all(isinstance(number, int | SymInt) for number in numbers)
    return whole and any(isinstance(number, SymInt) for number in numbers)


DIVISIONS = Repair("torch.div of sizes", _apply_divisions)


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


def _made(used: Used, name: str) -> Answer:
    def answer(data: Any, dtype: Any = None, device: Any = None, **others: Any) -> Any:
        if others or not _holds_sizes(data):
            return NotImplemented
        used(f"torch.{name}: of sizes")
        return torch.tensor(data, dtype=dtype, device=device)

    return answer


def _made_like(used: Used) -> Answer:
    def answer(like: Tensor, data: Any, *, dtype: Any = None, device: Any = None, **others: Any) -> Any:
        if others or not _holds_sizes(data):
            return NotImplemented
        used("x.new_tensor: of sizes")
        return torch.tensor(data, dtype=dtype or like.dtype, device=device or like.device)

    return answer


@contextlib.contextmanager
def _apply_tensors_of_sizes(used: Used) -> Iterator[None]:
    functions = {(torch, name): _made(used, name) for name in ("as_tensor", "asarray")}
    with answered({**functions, (Tensor, "new_tensor"): _made_like(used)}):
        yield


TENSORS_OF_SIZES = Repair("tensors of sizes", _apply_tensors_of_sizes)

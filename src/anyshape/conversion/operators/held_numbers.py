"""Sizes that go through tensors without axes: `(length - self.kernel_size) / self.stride` with buffers of one number.

Recognised: arithmetic on tensors of one whole number each, from buffers, literals and sizes. A trace does not know what
is in a tensor, so a padding or a slice by such a number is of unknown length, and a question about it is a branch. Put
there, wherever the number is read: the same arithmetic on sizes, exact, in whole numbers and ratios of them; torch
divides in float32, which comes to the same for sizes below 2**24.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import replaced
from anyshape.torchkit.private_names import attribute

_WHOLE = (torch.int64, torch.int32)


# ---- what tensors are known to hold: from a buffer, from a literal or from a size, until the tensor is written to


class Held:
    """The values of some tensors, as far as they are known."""

    def __init__(self) -> None:
        self._values: Any = WeakIdKeyDictionary()

    def keep(self, tensor: Tensor, value: Any) -> None:
        self._values[tensor] = (tensor._version, value)

    def value_of(self, tensor: Tensor) -> Any:
        """None where it is not known."""
        version, value = self._values.get(tensor, (None, None))
        if value is not None:
            return value if version == tensor._version else None
        literal = attribute(tensor, "torch._subclasses.fake_tensor.FakeTensor.constant")
        return int(literal) if isinstance(literal, Tensor) and _is_whole_number(literal) else None


def _is_whole_number(tensor: Tensor) -> bool:
    return tensor.ndim == 0 and tensor.dtype in _WHOLE


def _buffers_held(held: Held) -> AbstractContextManager[None]:
    """Inside, torch's stand-ins for buffers that are one whole number are known by their values."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def fakify(mode: Any, module: torch.nn.Module) -> Any:
            fakes = original(mode, module)
            for name, buffer in module.named_buffers(remove_duplicate=False):
                if name in fakes and _is_whole_number(buffer):
                    held.keep(fakes[name], int(buffer))
            return fakes

        return fakify

    return replaced("torch.export._trace._fakify_params_buffers", make)


# ---- arithmetic on such numbers


@dataclass(frozen=True)
class Ratio:
    """A number made of sizes; what it is divided by is a literal."""

    over: Any
    under: int = 1

    def plus(self, other: Ratio) -> Ratio:
        return Ratio(self.over * other.under + other.over * self.under, self.under * other.under)

    def minus(self, other: Ratio) -> Ratio:
        return self.plus(Ratio(-other.over, other.under))

    def times(self, other: Ratio) -> Ratio:
        return Ratio(self.over * other.over, self.under * other.under)

    def by(self, other: Ratio) -> Ratio | None:
        """None where the divisor is no positive literal."""
        if not isinstance(other.over, int) or other.over <= 0:
            return None
        return Ratio(self.over * other.under, self.under * other.over)

    def floor(self) -> Ratio:
        return Ratio(self.over // self.under)

    def ceil(self) -> Ratio:
        return Ratio(-(-self.over // self.under))

    def floor_by(self, other: Ratio) -> Ratio | None:
        quotient = self.by(other)
        return None if quotient is None else quotient.floor()

    def rest(self, other: Ratio) -> Ratio | None:
        quotient = self.floor_by(other)
        return None if quotient is None else self.minus(quotient.times(other))

    def same(self) -> Ratio:
        return self

    def compared(self, question: Callable[[Any, Any], Any], other: Ratio) -> Any:
        return question(self.over * other.under, other.over * self.under)


_FUNCTIONS: dict[str, Callable[..., Ratio | None]] = {
    "add": Ratio.plus, "sub": Ratio.minus, "mul": Ratio.times, "truediv": Ratio.by, "div": Ratio.by,
    "true_divide": Ratio.by, "floordiv": Ratio.floor_by, "floor_divide": Ratio.floor_by, "mod": Ratio.rest,
    "remainder": Ratio.rest, "ceil": Ratio.ceil, "floor": Ratio.floor, "clone": Ratio.same, "detach": Ratio.same,
    "tensor": Ratio.same, "as_tensor": Ratio.same,
}  # fmt: skip
_QUESTIONS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_READERS = {"__bool__", "__int__", "__index__", "item"}


def _result_of(name: str, numbers: Sequence[Ratio]) -> Any:
    """What a function of torch's makes of known numbers: a ratio, a truth, or None where that is not known."""
    plain = name.strip("_")
    if plain in _QUESTIONS:
        return numbers[0].compared(_QUESTIONS[plain], numbers[1])
    if plain in _FUNCTIONS:
        return _FUNCTIONS[plain](*numbers)
    if plain.startswith("r") and plain[1:] in _FUNCTIONS:  # `__rsub__`
        return _FUNCTIONS[plain[1:]](*reversed(numbers))
    return None


def _read_padding(pad: Any, read: Callable[[Any], Any]) -> Any:
    return tuple(map(read, pad)) if isinstance(pad, list | tuple) else pad


def _read_index(index: Any, read: Callable[[Any], Any]) -> Any:
    """The borders of slices; a tensor that is itself an index is one for torch, too."""
    parts = index if isinstance(index, tuple) else (index,)
    found = [slice(*map(read, (one.start, one.stop, one.step))) if isinstance(one, slice) else one for one in parts]
    return tuple(found) if isinstance(index, tuple) else found[0]


_TAKERS: dict[str, Callable[..., Any]] = {"pad": _read_padding, "__getitem__": _read_index}
"""Functions whose second argument is sizes, to be read."""


# ---- the repair


class _Numbers(TorchFunctionMode):
    """Follows whole numbers through the calls of one trace."""

    def __init__(self, held: Held, used: Used) -> None:
        super().__init__()
        self._held, self._used = held, used

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in _READERS and isinstance(value := self._whole(args[0]), int | SymInt | bool | torch.SymBool):
            return bool(value) if name == "__bool__" else value
        if name in _TAKERS and len(args) > 1:
            args = (args[0], _TAKERS[name](args[1], self._number_for), *args[2:])
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and result.ndim == 0:
            self._follow(name, args, kwargs, result)
        return result

    def _follow(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Keep what has come out, if all that went in is known."""
        if name in {"to", "long"} and args and isinstance(args[0], Tensor):
            known = self._held.value_of(args[0])
            is_same = not isinstance(known, Ratio) or known.under == 1 or result.is_floating_point()
            value = known if is_same and not result.dtype.is_complex else None
        else:
            numbers = [self._number(arg) for arg in args]
            known = [number for number in numbers if number is not None]
            value = _result_of(name, known) if known and len(known) == len(numbers) and not kwargs else None
        if value is not None:
            self._held.keep(result, value)

    def _number(self, value: Any) -> Ratio | None:
        if isinstance(value, Tensor) and value.ndim == 0:
            value = self._held.value_of(value)
        if isinstance(value, int | SymInt) and not isinstance(value, bool):
            return Ratio(value)
        return value if isinstance(value, Ratio) else None

    def _whole(self, value: Any) -> Any:
        """The number or the truth that a tensor is known to hold; None for other tensors."""
        known = self._held.value_of(value) if isinstance(value, Tensor) and value.ndim == 0 else None
        if isinstance(known, Ratio):
            known = known.over if known.under == 1 and not value.is_floating_point() else None
        if known is not None:
            self._used("whole numbers in tensors: computed from the sizes")
        return known

    def _number_for(self, value: Any) -> Any:
        """The number in place of a tensor that is known to hold it."""
        known = self._whole(value)
        return value if known is None else known


@contextlib.contextmanager
def _numbers_followed(used: Used) -> Iterator[None]:
    held = Held()
    with _buffers_held(held), _Numbers(held, used):
        yield


HELD_NUMBERS = Repair("whole numbers in tensors", _numbers_followed)

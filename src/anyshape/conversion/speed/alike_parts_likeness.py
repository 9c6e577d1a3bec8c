"""What a part of a model looks like to its own code: two parts that look alike do the same with other weights.

Blocks of a deep model often differ in a number that counts them, such as `layer_idx`. So numbers are looked at apart:
they matter if the part's code reads them.
"""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from anyshape.torchkit.capture_expressions import expression_of
from anyshape.torchkit.patches import patched

PLAIN = (type(None), bool, int, float, str, bytes, torch.dtype, torch.device, torch.memory_format, torch.layout)
Place = tuple[str, str]
"""The path of a module inside the part, and the name of an attribute."""


@dataclass(frozen=True)
class Look:
    """A part's class, attributes, children and the shapes of its weights; whole numbers among the attributes apart."""

    kind: Hashable
    numbers: Mapping[Place, int]


class Looks:
    """The looks of parts, each taken once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[nn.Module, Look | None]] = {}

    def of(self, part: nn.Module) -> Look | None:
        """None for a part with hooks, which may do anything."""
        if id(part) not in self._known:
            self._known[id(part)] = (part, self._take(part))  # held, so that the number is not given to another
        return self._known[id(part)][1]

    def _take(self, part: nn.Module) -> Look | None:
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        attributes = {name: value for name, value in vars(part).items() if not isinstance(value, nn.Module)}
        for name in ("_parameters", "_buffers", "_modules"):
            attributes.pop(name, None)
        numbers: dict[Place, int] = {}
        if not _hides_reads(type(part)):
            own = [name for name, value in attributes.items() if type(value) is int]
            numbers = {("", name): attributes.pop(name) for name in own}
        children = []
        for name, child in part._modules.items():
            look = None if child is None else self.of(child)
            if look is None and child is not None:
                return None
            if look is not None:
                children.append((name, look.kind))
                numbers |= {(_joined(name, path), place): value for (path, place), value in look.numbers.items()}
        weights = [(name, look_of(value)) for name, value in (*part._parameters.items(), *part._buffers.items())]
        names = tuple(numbers)
        return Look((type(part), look_of(attributes), names, tuple(children), tuple(weights)), numbers)


def _joined(name: str, path: str) -> str:
    return f"{name}.{path}" if path else name


def _hides_reads(kind: type) -> bool:
    """Whether a class answers questions for its attributes itself."""
    return any("__getattribute__" in vars(base) for base in kind.__mro__ if base not in (nn.Module, object))


def look_of(value: Any) -> Hashable:
    """What a value is to code that looks at it; of an object that is not plain, that it is this very object."""
    look: Hashable = id(value)
    if isinstance(value, torch.Tensor):
        sizes = tuple(map(expression_of, (*value.shape, *value.stride())))
        look = sizes, value.dtype, value.device, value.requires_grad
    elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        look = expression_of(value)
    elif isinstance(value, PLAIN):
        look = value
    elif type(value) in (tuple, list):
        look = tuple(map(look_of, value))
    elif type(value) in (dict, OrderedDict):
        look = tuple((look_of(key), look_of(one)) for key, one in value.items())
    elif value == set():  # names of buffers that are not saved
        look = ()
    return type(value), look


# ---- which numbers are read

_ALL = "__dict__"


class Reads:
    """The numbers that code has read since a moment, by the module that holds them."""

    def __init__(self) -> None:
        self._read: set[tuple[int, str]] = set()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, reads of modules' attributes are noted."""
        read = object.__getattribute__
        not_the_models = (sys.modules[nn.Module.__module__].__file__, __file__)

        def noted(module: nn.Module, name: str) -> Any:
            value = read(module, name)
            if type(value) is int or (name == _ALL and sys._getframe(1).f_code.co_filename not in not_the_models):
                self._read.add((id(module), name))
            return value

        with patched(nn.Module, "__getattribute__", noted):
            yield

    @contextlib.contextmanager
    def during(self, part: nn.Module, look: Look) -> Iterator[dict[Place, int]]:
        """Fills, at its end, with the numbers of a part that were read inside."""
        outer, self._read = self._read, set()
        found: dict[Place, int] = {}
        try:
            yield found
        finally:
            inner, self._read = self._read, outer | self._read
            names: dict[int, set[str]] = {}
            for holder, name in inner:
                names.setdefault(holder, set()).add(name)
            holders = part.named_modules(remove_duplicate=False)
            read = {path: names.get(id(module), set()) for path, module in holders}
            found |= {place: value for place, value in look.numbers.items() if {place[1], _ALL} & read[place[0]]}

    def again(self, part: nn.Module, places: Mapping[Place, int]) -> None:
        """The same numbers of another part count as read: it was not run, since it would have read them."""
        self._read |= {(id(part.get_submodule(path)), name) for path, name in places}

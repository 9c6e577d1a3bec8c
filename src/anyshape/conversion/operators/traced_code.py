"""The model's own code for the time of a trace: other objects under its names, and less than it does otherwise.

Only the result is traced. It does not depend on whether, or how, it could be differentiated, nor on what is cached.

`int(n)` calls nothing that torch could answer: Python insists on a plain number, and the size is pinned. A name in a
module's globals hides the builtin from the code in that module alone; torch's own code does not see it. Functions
under `functools.lru_cache` are replaced in this way, too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import nn
from torch.autograd.function import Function, FunctionCtx

from anyshape.conversion.operators.repair import Repair, Used, all_patched
from anyshape.sizes import budgets
from anyshape.source.live_code import LOCK
from anyshape.source.sites import SourceReading, read, site_of_stack
from anyshape.torchkit.patches import gradients_kept_off, patched

# ---- the modules of the model

_NOT_THE_MODELS = frozenset(sys.stdlib_module_names - {"__main__"}) | {
    "torch", "torchgen", "functorch", "numpy", "scipy", "sympy", "mpmath", "onnx", "onnx_ir", "onnxscript",
    "onnxruntime", "anyshape", "networkx", "rich", "click", "pytest", "_pytest", "pluggy", "hypothesis", "ml_dtypes",
    "google", "setuptools", "pkg_resources", "pip", "packaging", "typing_extensions", "jinja2", "IPython", "regex",
}  # fmt: skip


@contextlib.contextmanager
def shadowed(replacements: Mapping[str, Any], imported: Mapping[int, Any]) -> Iterator[None]:
    """Inside, model code finds `replacements` in place of builtins, and other objects in place of `imported` ones.

    `imported` maps the id of a function, as `from math import sqrt` binds it, to what stands for it.
    """
    with LOCK:
        kept: list[tuple[dict[str, Any], str, Any]] = []
        try:
            for names in model_globals():
                for name, value in list(names.items()):
                    if id(value) in imported and name not in replacements:
                        kept.append((names, name, value))
                        names[name] = imported[id(value)]
                for name, value in replacements.items():
                    if name not in names:
                        kept.append((names, name, None))
                        names[name] = value
            yield
        finally:
            for names, name, value in reversed(kept):
                if value is None:
                    names.pop(name, None)
                else:
                    names[name] = value


def model_globals() -> list[dict[str, Any]]:
    """The globals of every module that is neither torch's, Python's nor ours, each once."""
    modules = [module for name, module in list(sys.modules.items()) if _is_the_models(name, module)]
    found = {id(vars(module)): vars(module) for module in modules}
    for kind in _module_classes(nn.Module):
        for method in vars(kind).values():
            names = getattr(method, "__globals__", None)
            if isinstance(names, dict) and _is_the_models(str(names.get("__name__", "")), None):
                found.setdefault(id(names), names)
    return list(found.values())


def _is_the_models(name: str, module: ModuleType | None) -> bool:
    if module is not None and not isinstance(module, ModuleType):
        return False
    return name.partition(".")[0] not in _NOT_THE_MODELS


def _module_classes(kind: type) -> Iterator[type]:
    """Classes whose file is not in `sys.modules`: notebooks, and files that were loaded by their path."""
    child: type
    for child in type.__subclasses__(kind):
        if _is_the_models(child.__module__, None):
            yield child
        yield from _module_classes(child)


def model_classes() -> list[type]:
    """The classes of model code: every module class, and whatever else its files define."""
    found = dict.fromkeys(_module_classes(nn.Module))
    for names in model_globals():
        own = names.get("__name__")
        found.update(dict.fromkeys(v for v in names.values() if isinstance(v, type) and v.__module__ == own))
    return list(found)


# ---- what is kept under a size: `self.grids[height, width]`, a function under `functools.lru_cache`

# Recognised: a size of the trace that is hashed, which torch refuses, and a call of a cached function with such a size.
# Put there: a hash that no plain number has, and the function without its cache. The model then finds nothing and
# builds anew, as it does in PyTorch at a size that it never saw. Where it did see one, it must have kept the same: the
# check runs those sizes, and those that stand as keys in the code that asks.

_CACHED: Any = type(functools.lru_cache(lambda: None))
_SALT = itertools.count()


def _hash_of_sizes(used: Used) -> Callable[[torch.SymInt], int]:
    salt = (torch.SymInt, next(_SALT))  # what a cache out of reach kept from an earlier trace is not found in this one

    def of(size: torch.SymInt) -> int:
        known = size.node.maybe_as_int()
        if known is not None:
            return hash(known)
        keys = _keys_of_table(sys._getframe(1))
        for key in keys:
            if size == key:
                return hash(key)
        if not keys:
            used("what is kept under a size is built for every size", suspects=_keys_at(sys._getframe(1)))
        return hash((*salt, size.node.expr))

    return of


def _keys_of_table(frame: FrameType) -> list[int]:
    """The keys of what a size is looked for in, where that is a table of plain numbers and texts, not what was kept:
    each is a path of its own.
    """
    site = site_of_stack(frame)
    reading = None if site is None else read(site)
    tables = [] if reading is None else [_table_of(one, reading) for one in ast.walk(reading.node)]
    keys = {key for table in tables for key in table}
    return sorted(keys) if len(keys) <= budgets.MOST_KEYS_OF_A_TABLE else []


def _table_of(node: ast.AST, reading: SourceReading) -> set[int]:
    if isinstance(node, (ast.Set, ast.Dict)):
        nodes = node.elts if isinstance(node, ast.Set) else node.keys
        return _whole_numbers(reading.value_of(one) for one in nodes if one is not None)
    value = reading.value_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if not isinstance(value, (dict, set, frozenset)):
        return set()
    held = value.values() if isinstance(value, dict) else ()
    return _whole_numbers(value) if all(isinstance(one, (int, float, str)) for one in held) else set()


def _place_by_size(genuine: Callable[[torch.SymInt], int]) -> Callable[[torch.SymInt], int]:
    """`self.heads[n % 3]`: each place of a short list is a path of its own."""

    def of(size: torch.SymInt) -> int:
        length = 0 if size.node.maybe_as_int() is not None else _length_of_list(sys._getframe(1))
        places: list[int] = [*range(length), *range(-1, -length - 1, -1)]
        found = next((place for place in places if size == place), None)
        return genuine(size) if found is None else found

    return of


def _length_of_list(frame: FrameType) -> int:
    """Of what a size is the place in, where that is a list in the model's code; else 0."""
    site = site_of_stack(frame)
    reading = None if site is None else read(site)
    if reading is None or not isinstance(reading.node, ast.Subscript):
        return 0
    node = reading.node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        length = 0 if any(isinstance(one, ast.Starred) for one in node.elts) else len(node.elts)
    else:
        value = reading.value_of(node)
        length = len(value) if isinstance(value, _LISTS) else 0
    return length if length <= budgets.MOST_KEYS_OF_A_TABLE else 0


_LISTS = (list, tuple, str, range, nn.ModuleList, nn.Sequential, nn.ParameterList)


def _whole_numbers(keys: Iterable[Any]) -> set[int]:
    """Those among keys, and in keys that are pairs and longer."""
    flat = itertools.chain.from_iterable(key if isinstance(key, (tuple, list)) else (key,) for key in keys)
    return {number for number in flat if type(number) is int and number >= 0}


def _keys_at(frame: FrameType) -> set[int]:
    """Whole numbers in the code that hashes a size, and keys of the tables that it can see."""
    code = frame.f_code
    seen = [*code.co_consts, *frame.f_locals.values(), *(frame.f_globals.get(name) for name in code.co_names)]
    tables = (list(value) if isinstance(value, (dict, set, frozenset, tuple)) else [value] for value in seen)
    return {number for keys in tables for number in _whole_numbers(keys) if number > 0}


def _without_cache(function: Any, used: Used) -> Callable[..., Any]:
    @functools.wraps(function.__wrapped__)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(map(_holds_symbol, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        used(f"{function.__qualname__}: called without its cache")
        return function.__wrapped__(*args, **kwargs)

    call.cache_info, call.cache_clear = function.cache_info, function.cache_clear  # type: ignore[attr-defined]
    return call


def _holds_symbol(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_symbol, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


@contextlib.contextmanager
def _kept_for_every_size(used: Used) -> Iterator[None]:
    functions = {
        id(f): _without_cache(f, used) for names in model_globals() for f in names.values() if type(f) is _CACHED
    }
    hashed = patched(torch.SymInt, "__hash__", _hash_of_sizes(used))
    placed = patched(torch.SymInt, "__index__", _place_by_size(torch.SymInt.__index__))
    with shadowed({}, functions), all_patched(_methods_without_cache(used)), hashed, placed:
        yield


def _methods_without_cache(used: Used) -> Iterator[tuple[type, str, Any]]:
    for kind in model_classes():
        for name, value in list(vars(kind).items()):
            if type(value) is _CACHED:
                yield kind, name, _without_cache(value, used)
            elif isinstance(value, staticmethod) and type(value.__func__) is _CACHED:
                yield kind, name, staticmethod(_without_cache(value.__func__, used))


SIZE_KEYS = Repair("size keys", _kept_for_every_size)


# ---- a function with a gradient of its own

# Recognised: `apply` of any `torch.autograd.Function`. Put there: its `forward`, on a context that keeps what it is
# given. torch traces most of these functions as they are, but not below `torch.vmap`.


def _traced_through_forward(used: Used) -> AbstractContextManager[None]:
    def apply(function: type[Function], *args: Any, **kwargs: Any) -> Any:
        used(f"{function.__name__}: traced through its forward")
        if function.setup_context is not Function.setup_context:
            return function.forward(*args, **kwargs)
        return function.forward(_context_for(args), *args, **kwargs)

    return patched(Function, "apply", classmethod(apply))


def _context_for(args: tuple[Any, ...]) -> Any:
    context: Any = FunctionCtx()
    context.needs_input_grad = tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in args)
    return context


AUTOGRAD_FUNCTIONS = Repair("autograd functions", _traced_through_forward)


# ---- a part of a forward that switches gradients on

# Recognised: `torch.enable_grad()` and `torch.set_grad_enabled(True)`. Put there: nothing, so that the trace goes on
# without gradients; a forward that takes a gradient itself fails then, and is left to others. torch keeps such a part
# as an inner program, which its translation cannot write.


GRADIENTS = Repair(
    "gradients", lambda used: gradients_kept_off(lambda: used("torch.enable_grad: traced without gradients"))
)


# ---- `self.head.to(x.dtype)` in forward: a module that is already so is left alone

# Torch would exchange its parameters for others, which a trace does not allow.


def _is_already(module: nn.Module, wanted: tuple[Any, ...]) -> bool:
    tensors = list(itertools.chain(module.parameters(), module.buffers()))
    dtypes = [one for one in wanted if isinstance(one, torch.dtype)]
    devices = [torch.device(one) for one in wanted if isinstance(one, (str, torch.device))]
    if len(dtypes) + len(devices) != len(wanted):
        return False
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    return all(t.dtype in dtypes for t in floating if dtypes) and all(t.device in devices for t in tensors if devices)


def _modules_left_in_place(used: Used) -> AbstractContextManager[None]:
    original = nn.Module.to

    def to(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        named = [value for name, value in kwargs.items() if name in ("dtype", "device") and value is not None]
        if len(named) == len(kwargs) and _is_already(self, (*args, *named)):
            used(f"{type(self).__name__}.to() in forward: left as it is, since it is so already")
            return self
        return original(self, *args, **kwargs)

    return patched(nn.Module, "to", to)


# always right, and without it such a model is never traced
MOVED_MODULES = Repair("modules moved in forward", _modules_left_in_place, always=True)

"""Names of builtins and of small functions replaced in the modules of the model's own code, for the time of a trace.

`int(n)` calls nothing that torch could answer: Python insists on a plain number, and the size is pinned. A name in a
module's globals hides the builtin from the code in that module alone; torch's own code does not see it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from torch import nn

from anyshape.torchkit.state import LOCK

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

"""Who asks: a question about a size comes from the model's own code, from a layer of torch, or from torch itself."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FrameType

import sympy
import torch
from torch import nn

from anyshape.sizes.evaluation import symbols_of
from anyshape.source.stacks import is_users

_TORCH = Path(torch.__file__).resolve().parent
_LAYERS = str(_TORCH / "nn")
_OURS = str(Path(__file__).resolve().parent.parent)
_BETWEEN = (str(_TORCH / "__init__.py"), str(_TORCH / "fx" / "experimental"), _OURS)
"""What lies between a question in Python and its answer."""
OWN: frozenset[str] = frozenset()
"""The files of the modules that are traced now: the model's code, though one may lie within torch."""


def files_of(model: nn.Module) -> frozenset[str]:
    """Where the modules of a model say what they do."""
    codes = [getattr(inspect.unwrap(type(module).forward), "__code__", None) for module in model.modules()]
    return frozenset(code.co_filename for code in codes if code and not code.co_filename.startswith(_OURS))


def is_question(expression: sympy.Basic) -> bool:
    """Whether it is true or false, depending on sizes or values; sympy takes a symbol for either."""
    is_truth = isinstance(expression, sympy.logic.boolalg.Boolean) and not isinstance(expression, sympy.Symbol)
    return is_truth and bool(symbols_of(expression))


def asker_of(frame: FrameType | None, *, by_value: bool = False) -> FrameType | None:
    """Who put a question to Python: the model's code or a layer of torch; None where torch asks for itself.

    Python asks a size by `__bool__`. Where one of torch's operators asks, no such frame is between; and there is none
    where a tensor is asked for its value.
    """
    asked_by_python = by_value
    while frame is not None:
        name = frame.f_code.co_filename
        if is_models(name):
            return frame if asked_by_python else None
        if not name.startswith(_BETWEEN) and frame.f_code.co_name != "__torch_function__":
            return None
        asked_by_python |= frame.f_code.co_name == "__bool__"
        frame = frame.f_back
    return None


def is_raised_by_model(error: BaseException) -> bool:
    """Whether the model's code or a layer raised it, and not torch at something that it cannot trace."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and is_models(step.tb_frame.f_code.co_filename)


def is_models(filename: str) -> bool:
    return is_users(filename) or filename in OWN or filename.startswith(_LAYERS)

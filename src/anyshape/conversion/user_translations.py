"""The user's own translations of operators: the decorator `translation`, and the table of one export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from anyshape.conversion.translation import with_outputs
from anyshape.errors import DeclarationError
from anyshape.torchkit import custom_operators

_Translation = TypeVar("_Translation", bound=Callable[..., Any])

_DECORATED: dict[str, Callable[..., Any]] = {}
"""By the operator's name: an operator that is registered anew is another object."""


def translation(operator: Any) -> Callable[[_Translation], _Translation]:
    """Pair a torch operator with its translation, for every export from now on; the newest wins.

    `operator` is what `torch.library.custom_op` made, or `torch.ops.mine.twice`. The function below takes the same
    arguments: tensors as ONNX values, the rest as Python values. It is an onnxscript function, or a plain one that
    calls `onnxscript.opset18`. An export's own `custom_translation_table` wins over it.
    """
    overload = _overload_meant(operator, "translation")
    if overload is None:
        raise DeclarationError(f"translation({operator!r}): give a torch operator, such as torch.ops.mine.twice")

    def decorate(function: _Translation) -> _Translation:
        _refuse_what_is_no_function(overload, function)
        _DECORATED[overload.name()] = function
        return function

    return decorate


def translations(table: Mapping[Any, Any] | None) -> dict[Any, Callable[..., Any]]:
    """All that hold for one export: the decorated ones, and `custom_translation_table` over them."""
    if table is not None and not isinstance(table, Mapping):
        raise DeclarationError(f"custom_translation_table is a {type(table).__name__}: map operators to functions")
    found = {overload: f for name, f in _DECORATED.items() for overload in custom_operators.overloads_of(name)}
    for key, function in (table or {}).items():
        _refuse_what_is_no_function(key, function)
        overload = _overload_meant(key, "custom_translation_table")
        found[key if overload is None else overload] = function
    return {key: with_outputs(function) for key, function in found.items()}


def _overload_meant(operator: Any, where: str) -> Any:
    """The one overload that is meant; None for what is no operator of torch's dispatcher."""
    overloads = custom_operators.overloads_of(operator)
    if len(overloads) > 1:
        names = ", ".join(str(overload).rpartition(".")[2] for overload in overloads)
        raise DeclarationError(f"{where}: torch.ops.{operator} has the overloads {names}: name one of them")
    return overloads[0] if overloads else None


def _refuse_what_is_no_function(operator: Any, function: Any) -> None:
    if not callable(function):
        raise DeclarationError(f"the translation of {operator} is a {type(function).__name__}: give a function")

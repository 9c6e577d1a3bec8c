"""Operators registered with torch without what makes that slow: its table for ONNX, and the shapes of ours.

The table is built once for each opset of a process, without reading the sources of its functions. For shapes torch goes
through all modules of the process to learn which of them registers, several milliseconds each time.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from anyshape.conversion.speed import are_on, shortcut
from anyshape.conversion.speed.late_functions import domains_untold, read_late
from anyshape.torchkit.patches import patched, replaced
from anyshape.torchkit.private_names import lookup

Build = Callable[..., Any]
"""torch's own function, given an opset or nothing."""
_TABLES: dict[int | None, Any] = {}


def operator_table(build: Build, opset: int | None, complete: Callable[[Any], None]) -> Any:
    """A table that the caller may add to; `complete` adds what is to stand in every table."""
    if are_on():
        return _copy_of(kept_table(build, opset, complete))
    table = _new_table(build, opset)
    complete(table)
    return table


def kept_table(build: Build, opset: int | None, complete: Callable[[Any], None]) -> Any:
    """The table that serves all exports of this opset, only to be read."""
    if opset not in _TABLES:
        with _sources_unread():
            _TABLES[opset] = _new_table(build, opset)
    complete(_TABLES[opset])  # each time: a library may have defined its operators since
    return _TABLES[opset]


def _new_table(build: Build, opset: int | None) -> Any:
    return build() if opset is None else build(opset_version=opset)


def _copy_of(table: Any) -> Any:
    """A copy whose lists may grow without touching the original."""
    twin = copy.copy(table)
    for name, value in vars(table).items():
        if isinstance(value, dict):
            setattr(twin, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
    return twin


@shortcut
@contextlib.contextmanager
def _sources_unread() -> Iterator[None]:
    """Inside, a table is filled without reading the source of each of its functions, which takes most of the time.

    torch infers the signature of a function when it is used, if it is not there.
    """
    entries = "torch.onnx._internal.exporter._registration.OnnxDecompMeta"
    with read_late():
        lookup("onnxscript.function_libs.torch_lib.ops.core.aten_add")  # the library, before any domain is asked for
    with domains_untold(), replaced(entries, _unread_entry):
        yield


def _unread_entry(kind: Any) -> Any:
    knows = "skip_signature_inference" in getattr(kind, "__dataclass_fields__", ())
    return partial(kind, skip_signature_inference=True) if knows else kind


# ---- shapes


def define(name: str, schema: str, shapes: Callable[..., Any]) -> None:
    """A new operator, with what it gives for tensors that have shapes alone."""
    torch.library.define(name, schema)
    register_fake(name, shapes)


def register_fake(name: str, function: Callable[..., Any], lib: torch.library.Library | None = None) -> None:
    """What an operator gives for tensors that have shapes alone."""
    unsearched = patched(inspect, "getmodule", lambda *_asked: None) if are_on() else contextlib.nullcontext()
    with unsearched:
        torch.library.register_fake(name, function, lib=lib)

"""Run a model on tensors: what a result does when it is called.

No torch is imported: whoever holds tensors has done that.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.errors import DeclarationError
from anyshape.onnxfile.binding import Binder, in_pairs, parameters_of
from anyshape.onnxfile.contract import KEY, parse_contract
from anyshape.onnxfile.interface import Interface, Port
from anyshape.onnxfile.saving import write_model
from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.session import Array, RuntimeFailureError, unrunnable_type


def run_model(
    model: ir.Model,
    inputs: Sequence[Port],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    custom_ops: CustomOps | None = None,
) -> Sequence[Any]:
    """The outputs as tensors, as arrays where there is no torch; arguments are tensors, arrays or numbers in the
    file's order, nested ones as their leaves, or what the module itself takes.
    """
    leaves, names = _leaves(args), [port.name for port in inputs]
    given = dict(zip(names, leaves, strict=False)) | dict(kwargs)
    if len(leaves) > len(names) or not given.keys() <= set(names):  # some may be part of the file
        contract = parse_contract(model.metadata_props.get(KEY, ""))
        given = Binder(parameters_of(Interface(tuple(inputs), ()), contract))(args, dict(kwargs))
    missing = [port.name for port in inputs if port.name not in given]
    if missing:
        raise DeclarationError(f"the file takes {len(inputs)} inputs, `{missing[0]}` is missing")
    with temporary_folder() as folder:
        path = folder / "model.onnx"
        write_model(model, path)
        try:
            session = (custom_ops or CustomOps()).open(path)
        except RuntimeFailureError as failure:
            raise unrunnable_type(onnx.load(path, load_external_data=False), failure) or failure from failure
        results = session.run({port.name: as_numpy(given[port.name], port.dtype) for port in inputs})
    torch = sys.modules.get("torch")
    return results if torch is None else [torch.from_numpy(result) for result in results]


def _leaves(args: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in args:
        if isinstance(value, (list, tuple)):
            found += _leaves(value)
        elif isinstance(value, Mapping):
            found += _leaves(list(value.values()))
        elif value is not None:
            found.append(value)
    return found


def as_numpy(value: Any, dtype: str) -> Array:
    """A leaf of a call as the runtime takes it for an input of this type."""
    if not hasattr(value, "detach"):  # no tensor of torch
        return np.asarray(in_pairs(value) if np.iscomplexobj(value) else value, dtype=np.dtype(dtype))
    value = value.detach().cpu()
    if str(value.dtype) == "torch.bfloat16":  # which numpy lacks: such a graph is run in float32
        value = value.float()
    array: Array = value.contiguous().resolve_conj().numpy()
    if array.dtype.kind == "c":
        array = in_pairs(array)
    return array if str(array.dtype) == dtype or dtype == "bfloat16" else array.astype(np.dtype(dtype))

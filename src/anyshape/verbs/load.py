"""`load`: a file as a callable that takes what its module took, checks it against the contract, and returns the same.

It needs ONNX Runtime, but no torch. Nothing changes in a loaded file after it is made, so threads may share it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from anyshape.errors import DeclarationError, first_line
from anyshape.onnxfile import metadata
from anyshape.onnxfile.acceptance import make_guards
from anyshape.onnxfile.binding import Binder, as_array, from_tensor, is_tensor, like, maker
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.interface import Interface, Port, read_interface
from anyshape.onnxfile.structure import Branch, Node, Parameter, Slot, slots
from anyshape.onnxfile.untrusted import load_checked
from anyshape.runtime.session import RuntimeFailureError, load_runtime
from anyshape.sizes.notation import SizeRange, did_you_mean

if TYPE_CHECKING:
    import onnxruntime


def load(
    path: str | os.PathLike[str],
    *,
    providers: Sequence[Any] | None = None,
    session_options: onnxruntime.SessionOptions | None = None,
    disabled_optimizers: Sequence[str] | None = None,
    check: bool = True,
) -> Loaded:
    """Open an ONNX file, by whomever; call the result as the module was called.

    The first three go to ONNX Runtime as they are; the CPU is the default. The file's own advice on optimisers is
    followed where neither options nor optimisers are given. `check=False` leaves dtypes and sizes to the runtime.
    """
    model = load_checked(path)
    if session_options is None and disabled_optimizers is None:
        disabled_optimizers = _advised(model)
    session = _open(Path(path), providers, session_options, disabled_optimizers or ())
    return Loaded(session, read_interface(model), read_contract(model), check=check)


def _open(
    path: Path, providers: Sequence[Any] | None, options: Any, disabled: Sequence[str]
) -> onnxruntime.InferenceSession:
    runtime = load_runtime()
    available = runtime.get_available_providers()
    for provider in providers or ():
        name = provider[0] if isinstance(provider, tuple) else provider
        if name not in available:  # the runtime would take another without a word
            raise DeclarationError(f"this ONNX Runtime has no `{name}`, only {', '.join(available)}")
    wanted = list(providers or ["CPUExecutionProvider"])
    further = {"disabled_optimizers": list(disabled)} if disabled else {}
    try:
        return runtime.InferenceSession(str(path), options, providers=wanted, **further)
    except Exception as error:
        raise RuntimeFailureError(f"ONNX Runtime does not load `{path.name}`: {first_line(error)}") from error


def _advised(model: onnx.ModelProto) -> list[str]:
    """The optimisers that the file itself wants switched off; what is no such list is no advice."""
    text = next((entry.value for entry in model.metadata_props if entry.key == metadata.KEY), "{}")
    try:
        names = json.loads(text)["disabled_optimizers"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


class Loaded:
    """A file in ONNX Runtime, called as its module was."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        interface: Interface,
        contract: Contract | None,
        *,
        check: bool = True,
    ) -> None:
        self.session = session
        self.inputs: tuple[Port, ...] = interface.inputs
        self.outputs: tuple[Port, ...] = interface.outputs
        self.contract = contract
        known = contract.dims if contract is not None else {}
        self.dims: Mapping[str, SizeRange | None] = {dim: known.get(dim) for dim in interface.dims}
        self._guards = make_guards(self.inputs, contract)
        self._checks = check
        self._names = [port.name for port in self.outputs]
        self._bind = Binder(_parameters(interface, contract))
        self._make = maker(_result(interface, contract), {name: i for i, name in enumerate(self._names)})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arguments as the module took them: arrays, tensors or numbers, nested or not. Tensors give tensors."""
        arrays, tensor = self._arrays(self._bind(args, kwargs))
        results = self._run(arrays)
        return self._make(results if tensor is None else like(tensor, results))

    def run(self, feeds: Mapping[str, Any], run_options: onnxruntime.RunOptions | None = None) -> dict[str, Any]:
        """By the names of the file: inputs to outputs, all of them arrays."""
        self._refuse_other_names(feeds)
        return dict(zip(self._names, self._run(self._arrays(feeds)[0], run_options), strict=True))

    def bind(self, feeds: Mapping[str, Any], device: str = "cpu") -> onnxruntime.IOBinding:
        """Checked inputs, bound without a copy, and outputs on a device: for `session.run_with_iobinding`."""
        self._refuse_other_names(feeds)
        binding = self.session.io_binding()
        for name, array in self._arrays(feeds)[0].items():
            binding.bind_cpu_input(name, np.ascontiguousarray(array))
        for name in self._names:
            binding.bind_output(name, device)
        return binding

    def _arrays(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """What the runtime gets, checked, and a tensor that was among it."""
        arrays, tensor = {}, None
        for guard in self._guards.inputs:
            value = given[guard.name]
            if type(value) is np.ndarray:
                pass
            elif is_tensor(value):
                tensor, value = value, from_tensor(guard.name, value)
            else:
                value = as_array(guard.name, value, guard.dtype, guard.rank)
            arrays[guard.name] = value
        if self._checks:
            self._guards.check(arrays)
        return arrays, tensor

    def _run(self, arrays: dict[str, Any], run_options: Any = None) -> list[Any]:
        try:
            return self.session.run(self._names, arrays, run_options)  # type: ignore[no-any-return]
        except Exception as error:
            raise RuntimeFailureError(f"ONNX Runtime fails: {first_line(error)}") from error

    def _refuse_other_names(self, feeds: Mapping[str, Any]) -> None:
        names = [port.name for port in self.inputs]
        listed = ", ".join(f"`{name}`" for name in names)
        for name in names:
            if name not in feeds:
                raise DeclarationError(f"`{name}` is missing: the file takes {listed}")
        for name in feeds:
            if name not in names:
                raise DeclarationError(f"`{name}` is unknown: the file takes {listed}{did_you_mean(name, names)}")

    def __repr__(self) -> str:
        ports = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<anyshape.load: ({ports[0]}) -> ({ports[1]})>"


def _parameters(interface: Interface, contract: Contract | None) -> Sequence[Parameter]:
    """The module's own, where the contract has them for these inputs; else the file's inputs in their order."""
    names = {port.name for port in interface.inputs}
    if contract is not None and contract.call is not None:
        told = [name for parameter in contract.call for name in slots(parameter.node)]
        if names <= set(told) and len(told) == len(set(told)):
            return contract.call
    return [Parameter(port.name, "both", Slot(port.name)) for port in interface.inputs]


def _result(interface: Interface, contract: Contract | None) -> Node:
    """The module's own, where the contract has it for these outputs; else a dict by the file's names."""
    names = tuple(port.name for port in interface.outputs)
    if contract is not None and contract.returns is not None and set(slots(contract.returns)) <= set(names):
        return contract.returns
    return Branch("dict", names, tuple(map(Slot, names)))

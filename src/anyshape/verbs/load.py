"""`load`: a file as a callable that takes what its module took, checks it against the contract, and returns the same.

It needs ONNX Runtime, but no torch. Nothing changes in a loaded file after it is made, but which shapes came last, so
threads may share it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from anyshape.errors import first_line
from anyshape.onnxfile import binding
from anyshape.onnxfile.acceptance import AcceptedInput, Likeness, NoiseInputs, acceptance_of
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.contradictions import UNREADABLE, contract_of
from anyshape.onnxfile.interface import Interface, Port, read_interface
from anyshape.onnxfile.metadata import advised_optimizers
from anyshape.onnxfile.untrusted import load_checked
from anyshape.runtime.opening import load_runtime
from anyshape.runtime.session import RuntimeFailureError, refuse_missing_providers, runtime_words, unrunnable_type
from anyshape.sizes.notation import SizeRange

if TYPE_CHECKING:
    import onnxruntime


def load(
    path: str | os.PathLike[str],
    *,
    providers: Sequence[Any] | None = None,
    session_options: onnxruntime.SessionOptions | None = None,
    disabled_optimizers: Sequence[str] | None = None,
    check: bool = True,
    seed: int | None = None,
) -> Loaded:
    """Open an ONNX file, by whomever; call the result as the module was called.

    - `path`: the file; a contract in it that is not about it, in part or at all, is told by a warning and not asked
    - `providers`, `session_options`, `disabled_optimizers`: for ONNX Runtime, as they are; by default the CPU, and the
      file's own advice on optimisers
    - `check`: False leaves dtypes and sizes to the runtime
    - `seed`: of noise that a call does not give

    >>> model = torch.nn.Linear(4, 2)
    >>> _ = anyshape.export(model, torch.randn(3, 4), "linear.onnx", dims={"input": "batch 4"}, sizes={"batch": "1..8"})
    >>> linear = anyshape.load("linear.onnx")
    >>> linear(torch.ones(5, 4)).shape
    torch.Size([5, 2])
    >>> linear(torch.ones(9, 4))
    Traceback (most recent call last):
    anyshape.errors.DeclarationError: `batch` = 9 is above 8
    """
    model = load_checked(path)
    if session_options is None and disabled_optimizers is None:
        disabled_optimizers = advised_optimizers(model)
    interface = read_interface(model)
    contract, untrue = contract_of(model, interface) if check else (read_contract(model), ())
    _warn_of(untrue, Path(path).name)
    try:
        session = _open_session(Path(path), providers, session_options, disabled_optimizers or ())
    except RuntimeFailureError as failure:
        words = runtime_words(cast(Exception, failure.__cause__))
        raise unrunnable_type(model, RuntimeFailureError(words)) or failure from failure.__cause__
    return Loaded(session, interface, contract, check=check, seed=seed)


def _warn_of(untrue: Sequence[str], name: str) -> None:
    """Another tool may have changed the file: it is called by what it has itself, which is worth a word."""
    if untrue:
        more = f" (and {len(untrue) - 1} more: `anyshape inspect` tells them)" if len(untrue) > 1 else ""
        rest = ": was the file changed since? calls are held to the file, and to what else the contract says"
        rest = "; calls are held to the file alone" if UNREADABLE in untrue else rest
        warnings.warn(f"the contract of `{name}` {untrue[0]}{more}{rest}", stacklevel=3)


def _open_session(
    path: Path, providers: Sequence[Any] | None, options: Any, disabled: Sequence[str]
) -> onnxruntime.InferenceSession:
    runtime = load_runtime()
    refuse_missing_providers(runtime, providers or ())
    wanted = list(providers or ["CPUExecutionProvider"])
    further = {"disabled_optimizers": list(disabled)} if disabled else {}
    try:
        # it would print an error, and take another provider
        return runtime.InferenceSession(str(path), options, providers=wanted, enable_fallback=0, **further)
    except Exception as error:
        raise RuntimeFailureError(f"ONNX Runtime does not load `{path.name}`: {first_line(error)}") from error


def _as_array(one: AcceptedInput, value: Any) -> Any:
    if type(value) is np.ndarray:
        array = value
    elif binding.is_tensor(value):
        array = binding.from_tensor(one.name, value)
    else:
        return binding.as_array(one.name, value, one.dtype, one.rank)
    return binding.in_pairs(array) if array.dtype.kind == "c" else array


class Loaded:
    """A file in ONNX Runtime, called as its module was."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        interface: Interface,
        contract: Contract | None,
        *,
        check: bool,
        seed: int | None = None,
    ) -> None:
        self.session, self.contract, self._checks = session, contract, check
        self.inputs: tuple[Port, ...] = interface.inputs
        self.outputs: tuple[Port, ...] = interface.outputs
        known = contract.dims if contract is not None else {}
        self.dims: Mapping[str, SizeRange | None] = {dim: known.get(dim) for dim in interface.dims}
        self._acceptance = acceptance_of(self.inputs, contract)
        self._remembers = check and self._acceptance.asks_for_shapes_alone
        self._taken: Likeness = ()
        """What the last call was that fitted: the next one is often like it, and need not be asked everything."""
        self._names = [port.name for port in self.outputs]
        self._draws = NoiseInputs(self.inputs, contract, seed)
        self._bind = binding.Binder(binding.parameters_of(interface, contract), self._draws.names)
        self._make = binding.result_maker(
            binding.result_of(interface, contract), {name: i for i, name in enumerate(self._names)}
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Arguments as the module took them: arrays, tensors or numbers, nested or not. Tensors give tensors."""
        arrays, tensor = self._checked_arrays(self._with_noise(self._bind(args, kwargs)))
        results = self._results(arrays)
        return self._make(results if tensor is None else binding.as_tensors(tensor, results))

    def run(self, feeds: Mapping[str, Any], run_options: onnxruntime.RunOptions | None = None) -> dict[str, Any]:
        """By the names of the file: inputs to outputs, all of them arrays."""
        arrays = self._checked_feeds(feeds)
        return dict(zip(self._names, self._results(arrays, run_options), strict=True))

    def bind(self, feeds: Mapping[str, Any], device: str = "cpu") -> onnxruntime.IOBinding:
        """Checked inputs, bound without a copy, and outputs on a device: for `session.run_with_iobinding`."""
        arrays = self._checked_feeds(feeds)
        bound = self.session.io_binding()
        for name, array in arrays.items():
            bound.bind_cpu_input(name, np.ascontiguousarray(array))
        for name in self._names:
            bound.bind_output(name, device)
        return bound

    def _checked_feeds(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        binding.refuse_other_names(feeds, [port.name for port in self.inputs], self._draws.names)
        return self._checked_arrays(self._with_noise(dict(feeds)))[0]

    def _with_noise(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is given, with noise where that is missing."""
        if all(name in given for name in self._draws.names):
            return given
        arrays = {one.name: _as_array(one, given[one.name]) for one in self._draws.others.inputs}
        return {**given, **{name: made for name, made in self._draws.drawn(arrays).items() if name not in given}}

    def _checked_arrays(self, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """What the runtime gets, checked, and a tensor that was among it."""
        if self._taken and self._is_like_the_last(given):
            return given, None
        arrays, tensor = {}, None
        for one in self._acceptance.inputs:
            value = given[one.name]
            tensor = value if binding.is_tensor(value) else tensor
            arrays[one.name] = _as_array(one, value)
        if self._checks and not (self._taken and self._is_like_the_last(arrays)):
            self._acceptance.check(arrays)
            if self._remembers:
                self._taken = tuple([(name, array.dtype, array.shape) for name, array in arrays.items()])
        return arrays, tensor

    def _is_like_the_last(self, given: dict[str, Any]) -> bool:
        for name, dtype, shape in self._taken:
            value = given[name]
            if type(value) is not np.ndarray or value.dtype is not dtype or value.shape != shape:
                return False
        return True

    def _results(self, arrays: dict[str, Any], run_options: Any = None) -> list[Any]:
        try:
            return self.session.run(self._names, arrays, run_options)  # type: ignore[no-any-return]
        except Exception as error:
            raise RuntimeFailureError(f"ONNX Runtime fails: {first_line(error)}") from error

    def __repr__(self) -> str:
        ports = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<anyshape.load: ({ports[0]}) -> ({ports[1]})>"

"""The call and its declaration: from the options, from the target's file, or from the inputs of an ONNX file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.cli.inputs import example_call, understand_inputs
from anyshape.cli.targets import LoadedTarget, users_code
from anyshape.declaration.calls import read_call
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Port
from anyshape.sizes.notation import InputText, parse_sizes


@dataclass(frozen=True)
class TargetCall:
    """What `export` and `check` are given beside the model."""

    args: Any = ()
    kwargs: Mapping[str, Any] | None = None
    make_inputs: Callable[..., Any] | None = None
    dims: Mapping[str, Any] | None = None
    sizes: Mapping[str, Any] | None = None
    examples: Any = None

    @property
    def arguments(self) -> dict[str, Any]:
        return vars(self)

    @property
    def first(self) -> tuple[Any, Mapping[str, Any] | None]:
        """Arguments and keywords of the call, or of the first of several."""
        return (self.args, self.kwargs) if self.examples is None else read_call(self.examples[0])


def call_of(
    loaded: LoadedTarget,
    inputs: Sequence[InputText],
    dims: Mapping[str, str],
    sizes: Mapping[str, str],
    seed: int,
    ports: Sequence[Port] = (),
) -> TargetCall:
    """--input replaces what the file says about inputs and dims; --dim and --size override it name by name."""
    if inputs:
        return _call_from_options(loaded, inputs, dims, sizes, seed)
    all_dims = {**(loaded.mapping("dims") or {}), **dims}
    all_sizes = {**(loaded.mapping("sizes") or {}), **sizes}
    if "examples" in loaded.namespace and not (all_dims and "inputs" in loaded.namespace):
        return TargetCall(dims=all_dims or None, sizes=all_sizes or None, examples=_examples_of_file(loaded, seed))
    args, kwargs, make_inputs = _inputs_of_file(loaded, seed)
    if make_inputs is None and args is None and not ports:
        args, kwargs = _own_example(loaded)
    if make_inputs is None and args is None:
        if not ports:
            raise DeclarationError(_no_inputs_sentence(loaded))
        args, kwargs = example_call(loaded.model, understand_inputs(_texts_of_ports(ports)), {}, seed)
    return TargetCall(() if args is None else args, kwargs, make_inputs, all_dims or None, all_sizes or None)


def _call_from_options(
    loaded: LoadedTarget, texts: Sequence[InputText], dims: Mapping[str, str], sizes: Mapping[str, str], seed: int
) -> TargetCall:
    inputs = understand_inputs(texts)
    named = {dim for one in inputs for dim in one.dims}
    kept = {dim: value for dim, value in (loaded.mapping("sizes") or {}).items() if dim in named}
    all_sizes = {**kept, **sizes}
    ranges = {dim: parse_sizes(value, dim=dim) for dim, value in all_sizes.items()}
    args, kwargs = example_call(loaded.model, inputs, ranges, seed)
    return TargetCall(args, kwargs, None, {**{one.name: list(one.axes) for one in inputs}, **dims}, all_sizes or None)


def _inputs_of_file(loaded: LoadedTarget, seed: int) -> tuple[Any, Mapping[str, Any] | None, Callable[..., Any] | None]:
    """Arguments, keywords and `make_inputs`, as the file's `inputs` gives them."""
    inputs = loaded.namespace.get("inputs")
    if inputs is None or not callable(inputs):
        return (*read_call(inputs), None)
    parameters = inspect.signature(inputs).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [p for p in parameters if p.kind not in variadic]
    if any(p.default is p.empty for p in named):
        return None, None, inputs
    return (*read_call(_result_of(loaded, "inputs", seed)), inputs if parameters else None)


def _own_example(loaded: LoadedTarget) -> tuple[Any, Mapping[str, Any] | None]:
    """The call that a Lightning module carries; a method of it is called otherwise."""
    from anyshape.declaration.calls import example_of
    from anyshape.declaration.targets import resolve_target

    target = resolve_target(loaded.model)
    found = example_of(target.module) if target.call is target.module else None
    return (None, None) if found is None else found


def _examples_of_file(loaded: LoadedTarget, seed: int) -> Any:
    """The calls of a file that shows instead of declaring: a list, or a function that returns or yields them."""
    examples = loaded.namespace["examples"]
    return _result_of(loaded, "examples", seed) if callable(examples) else examples


def _result_of(loaded: LoadedTarget, name: str, seed: int) -> Any:
    torch.manual_seed(seed)
    with users_code(f"`{name}` of `{loaded.text}` fails"):
        made = loaded.namespace[name]()
        return list(made) if inspect.isgenerator(made) else made


def _texts_of_ports(ports: Sequence[Port]) -> list[InputText]:
    """The inputs of an ONNX file, as somebody would write them."""
    for port in ports:
        if port.axes is None:
            raise DeclarationError(f"input `{port.name}` of the file declares no axes: give --input")
    return [InputText(p.name, p.dtype, ", ".join(_axis_text(axis) for axis in p.axes or ()), None) for p in ports]


def _axis_text(axis: int | str | None) -> str:
    return "?" if axis is None else re.sub(r"[^\w+\-*/%() ]", "_", str(axis))


def _no_inputs_sentence(loaded: LoadedTarget) -> str:
    names = list(resolve_target(loaded.model).signature.parameters)
    first = names[0] if names else "x"
    takes = f" for each of {', '.join(f'`{name}`' for name in names)}" if len(names) > 1 else ""
    return (
        f"`{loaded.text}` has no inputs to run on: give --input '{first}: float32[batch, 8]'{takes}, "
        "or define `inputs` beside it"
    )

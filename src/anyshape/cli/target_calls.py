"""The call and its declaration: from the options, from the target's file, or from the inputs of an ONNX file.

`--input 'tokens: int64[batch, seq] < 1000'` is a declaration and a seeded random example in one. Integers are drawn
below the number after `<`, or from 0 and 1 where there is none; floats are normal, or uniform below the number; every
row of flags (bool, or integers from 0 and 1) has one that is set.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.cli.example_sizes import SizeSearch
from anyshape.cli.preflight import check_inputs
from anyshape.cli.targets import LoadedTarget, required_parameters, users_code
from anyshape.declaration.calls import example_of, read_call
from anyshape.declaration.spec import unnamed
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.oracle import describe
from anyshape.onnxfile.interface import Port
from anyshape.sizes import notation
from anyshape.sizes.notation import Expression, InputText, SizeRange, Sizes, parse_sizes
from anyshape.torchkit import capture
from anyshape.torchkit.reasons import asks_for_missing_device, said_with_place
from anyshape.torchkit.state import untouched


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
    said = loaded.mapping("dims")
    all_dims = {**(said or {}), **dims}
    nothing: dict[str, Any] | None = None if said is None else {}  # `dims = {}` says that nothing varies
    all_sizes = {**(loaded.mapping("sizes") or {}), **sizes}
    if "examples" in loaded.namespace and not (all_dims and "inputs" in loaded.namespace):
        return TargetCall(dims=all_dims or None, sizes=all_sizes or None, examples=_examples_of_file(loaded, seed))
    args, kwargs, make_inputs = _inputs_of_file(loaded, seed)
    if make_inputs is None and args is None and ports:
        args, kwargs = _random_call(loaded.model, _random_inputs(_texts_of_ports(ports)), {}, seed)
    elif make_inputs is None and args is None:
        args, kwargs = _own_example(loaded)
    return TargetCall(() if args is None else args, kwargs, make_inputs, all_dims or nothing, all_sizes or None)


def _call_from_options(
    loaded: LoadedTarget, texts: Sequence[InputText], dims: Mapping[str, str], sizes: Mapping[str, str], seed: int
) -> TargetCall:
    inputs = _random_inputs(texts)
    named = {dim for one in inputs for dim in one.dims}
    kept = {dim: value for dim, value in (loaded.mapping("sizes") or {}).items() if dim in named}
    all_sizes = {**kept, **sizes}
    ranges = {dim: parse_sizes(value, dim=dim) for dim, value in all_sizes.items()}
    args, kwargs = _random_call(loaded.model, inputs, ranges, seed)
    return TargetCall(args, kwargs, None, {**{one.name: list(one.axes) for one in inputs}, **dims}, all_sizes or None)


def _inputs_of_file(loaded: LoadedTarget, seed: int) -> tuple[Any, Mapping[str, Any] | None, Callable[..., Any] | None]:
    """Arguments, keywords and `make_inputs`, as the file's `inputs` gives them."""
    inputs = loaded.namespace.get("inputs")
    if inputs is None or not callable(inputs):
        return (*read_call(inputs), None)
    if required_parameters(inputs):
        return None, None, inputs
    return (*read_call(_result_of(loaded, "inputs", seed)), inputs if inspect.signature(inputs).parameters else None)


def _own_example(loaded: LoadedTarget) -> tuple[Any, Mapping[str, Any]]:
    """The call that a Lightning module carries; a method of it is called otherwise."""
    target = resolve_target(loaded.model)
    found = example_of(target.module) if target.call is target.module else None
    if found is None:
        raise DeclarationError(_no_inputs_sentence(loaded))
    return found


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


# ---- inputs to be drawn at any size


@dataclass(frozen=True)
class RandomInput:
    """One input: how to draw it at any size."""

    name: str
    dtype: torch.dtype
    axes: tuple[Expression | int, ...]
    below: int | None

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(name for axis in self.axes if isinstance(axis, Expression) for name in axis.names)

    def draw(self, sizes: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
        shape = tuple(axis if isinstance(axis, int) else axis.value(sizes) for axis in self.axes)
        if self.dtype.is_floating_point:
            if self.below is None:
                return torch.randn(shape, generator=generator).to(self.dtype)
            return (torch.rand(shape, generator=generator) * self.below).to(self.dtype)
        highest = 2 if self.below is None or self.dtype == torch.bool else self.below
        values = torch.randint(0, highest, shape, generator=generator)
        if highest == 2 and values.dim() and values.numel():
            values[..., 0] |= (values == 0).all(-1).long()  # a row without a flag is nothing: its mean is not a number
        return values.to(self.dtype)


def _random_inputs(texts: Sequence[InputText]) -> list[RandomInput]:
    """The inputs that were declared, or that a file has."""
    check_inputs(texts)
    return [RandomInput(text.name, getattr(torch, text.dtype), _axes(text), text.below) for text in texts]


def _axes(text: InputText) -> tuple[Expression | int, ...]:
    return tuple(
        notation.parse_expression(unnamed(text.name, index)) if entry is None else entry
        for index, entry in enumerate(notation.parse_axes(text.axes, where=text.name))
        if entry is None or isinstance(entry, int | Expression)
    )


# ---- a random call


def _random_call(
    model: Any, inputs: Sequence[RandomInput], ranges: Mapping[str, SizeRange], seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A random call: its sizes are small, pairwise different, and the first at which the model runs."""
    dims = list(dict.fromkeys(dim for one in inputs for dim in one.dims))
    fixed = [math.prod(axis for axis in one.axes if isinstance(axis, int)) for one in inputs]
    lengths = [size for weight in resolve_target(model).module.parameters() for size in weight.shape]
    search = SizeSearch({dim: ranges.get(dim, SizeRange()) for dim in dims}, fixed, lengths)
    first = _call_at(model, inputs, search.starts()[0], seed)
    if len(search.starts()) == 1 or not _is_bound(model, *first):
        return first
    found = search.first_that_runs(lambda sizes: _error_of(model, *_call_at(model, inputs, sizes, seed)))
    if found is None:
        raise DeclarationError(_no_example_sentence(inputs, search))
    return _call_at(model, inputs, found, seed)


def _no_example_sentence(inputs: Sequence[RandomInput], search: SizeSearch) -> str:
    """Why there is no example, and the form in which a size can be given that runs."""
    one = next(one for one in inputs if one.dims)
    axes = [str(axis) for axis in one.axes]
    numbers = ", ".join("NUMBER" if isinstance(axis, Expression) else str(axis) for axis in one.axes)
    dtype = str(one.dtype).removeprefix("torch.")
    below = "" if one.below is None else f" < {one.below}"
    return (
        f"the model fails at all {len(search.failures)} sizes that were tried for an example, first at "
        f"{describe(search.failures[0][0])}: {said_with_place(search.failures[0][1])}; give a size at which it runs, "
        f"--input '{one.name}: {dtype}[{numbers}]{below}' --dim '{one.name}={' '.join(axes)}'"
    )


def _call_at(
    model: Any, inputs: Sequence[RandomInput], sizes: Sizes, seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    nested = _nested_values({one.name: _values_at(one, sizes, generator) for one in inputs})
    return _positional_first(model, nested)


def _values_at(one: RandomInput, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
    try:
        return one.draw(sizes, generator)
    except (ZeroDivisionError, RuntimeError):  # a negative size, or one that divides by zero
        used = ", ".join(f"{dim} = {sizes[dim]}" for dim in dict.fromkeys(one.dims))
        raise DeclarationError(f"`{one.name}` has no shape at {used}: give --size for its dims") from None


def _nested_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """`batch.ids` becomes a dict, `states.0` and `states.1` a tuple."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *folders, last = name.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise DeclarationError(f"`{folder}` of the input `{name}` is itself an input")
        if last in place:
            raise DeclarationError(f"the input `{name}` is also a container of others")
        place[last] = value
    return {name: _container(value) for name, value in tree.items()}


def _container(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {key: _container(part) for key, part in value.items()}
    if sorted(parts) == sorted(map(str, range(len(parts)))):
        return tuple(parts[str(index)] for index in range(len(parts)))
    return parts


def _positional_first(model: Any, named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keywords in the order written; only a function that takes `*args` needs what stands before them by position."""
    parameters = list(resolve_target(model).signature.parameters.values())
    variadic = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    if variadic is None or variadic not in named:
        return (), named
    before = [one.name for one in itertools.takewhile(lambda one: one.name != variadic, parameters)]
    missing = [name for name in before if name not in named]
    if missing:
        raise DeclarationError(f"the input `{missing[0]}` stands before `*{variadic}` and is missing")
    rest = {name: value for name, value in named.items() if name not in (*before, variadic)}
    return (*(named[name] for name in before), *named[variadic]), rest


def _is_bound(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether the names are the model's own: no size helps where they are not."""
    try:
        resolve_target(model).signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _error_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    target = resolve_target(model)
    try:
        with untouched(target.module), capture.quiet(), torch.no_grad():
            target.call(*args, **kwargs)
    except Exception as error:
        if asks_for_missing_device(error):  # which no size brings along
            raise DeclarationError(f"the model fails on the example: {said_with_place(error)}") from error
        return error
    return None

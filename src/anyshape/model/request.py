"""From the arguments of `export` or `check` to one request: the target, its call, the declaration, the file's names."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.declaration import torch_forms
from anyshape.declaration.calls import Signature, bind_call, cast, casting, example_of
from anyshape.declaration.spec import Spec, declare, mentioned, without_dims
from anyshape.declaration.targets import Target, as_dtype, converted, resolve_target
from anyshape.declaration.torch_forms import Declared
from anyshape.errors import DeclarationError, first_line
from anyshape.model.oracle import call_make_inputs, run_once
from anyshape.sizes.notation import SizeRange, did_you_mean, parse_sizes
from anyshape.sizes.spelling import spelled


@dataclass(frozen=True)
class Request:
    """What the user asked for, checked."""

    target: Target
    signature: Signature
    spec: Spec
    input_names: Mapping[str, str]
    """Leaf -> name in the file."""
    output_names: tuple[str, ...] | None
    labels: Mapping[str, Mapping[int, str]]
    """Names for axes of outputs, by the output's name."""
    make_inputs: Callable[..., Any] | None
    notes: tuple[str, ...]
    yielding: frozenset[str] = frozenset()
    """Dims that stay static, with a note, where no file serves them."""
    are_labels: bool = False
    """Whether dims came by `dynamic_axes` alone, which torch takes for labels: what PyTorch itself cannot vary stays
    static, and sizes that give another number of outputs are beyond a limit."""

    def without(self, dims: Iterable[str]) -> Request:
        """The same with these dims at their size in the example."""
        fixed = {dim: self.spec.example[dim] for dim in dims}
        make_inputs = functools.partial(self.make_inputs, **fixed) if self.make_inputs is not None else None
        return replace(self, spec=without_dims(self.spec, fixed), make_inputs=make_inputs)


def understand(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    *,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dtype: Any = None,
) -> Request:
    """Bind the call, read the declaration in whichever form it came, and check one against the other."""
    _refuse_other_types(dims=dims, sizes=sizes, dynamic_axes=dynamic_axes, kwargs=kwargs)
    _refuse_two_ways("declare the dims", dims=dims, dynamic_axes=dynamic_axes, dynamic_shapes=dynamic_shapes)
    _refuse_two_calls(examples, args, kwargs, make_inputs)
    target = resolve_target(model)
    if dtype is not None:
        target = converted(target, as_dtype(dtype))
        make_inputs = make_inputs and casting(make_inputs, target, as_dtype(dtype))
    call = _calls_given(target, args, kwargs, examples, make_inputs, dims or {}, sizes or {})
    call = call if dtype is None else call.cast(as_dtype(dtype))
    signature = call.signature
    _refuse_without_values(signature)
    if dims is None and dynamic_axes is None and dynamic_shapes is None:
        found = _found_dims(target, call, make_inputs, sizes or {})
    else:
        found = Declared(dict(dims or {}))
    names = _input_names(signature, input_names, found.dims)
    if dynamic_axes is not None:
        found = torch_forms.from_dynamic_axes(dynamic_axes, {n: n for n in names.values()} | names, signature)
    elif dynamic_shapes is not None:
        found = torch_forms.from_dynamic_shapes(dynamic_shapes, target, signature, args, kwargs)
    by_leaf = {names.get(key, key): value for key, value in found.dims.items()}
    spec = declare(signature, by_leaf, {**found.sizes, **(sizes or {})}, where=where, known=call.known)
    spec = replace(spec, explicit=spec.explicit - found.offered.difference(sizes or ()))
    renamed = {leaf: name for name, leaf in names.items()}
    return Request(
        target,
        signature,
        spec,
        {leaf: renamed.get(leaf, leaf) for leaf in spec.inputs(signature)},
        None if output_names is None else tuple(_name_list(output_names, "output_names")),
        found.labels,
        make_inputs and with_fixed_rest(make_inputs, spec.dims, call.known),
        (*found.notes, *call.notes, *spec.notes),
        frozenset(found.yielding).intersection(spec.dims).difference(sizes or ()),
        are_labels=dynamic_axes is not None and not sizes,
    )


def _refuse_without_values(signature: Signature) -> None:
    for leaf in signature.leaves:
        if isinstance(leaf.value, torch.Tensor) and leaf.value.device.type == "meta":
            raise DeclarationError(f"`{leaf.name}` of the example is on `meta`, which holds no values: pass real ones")


# ---- the call


@dataclass(frozen=True)
class _GivenCalls:
    """What the user calls the model with, once or several times."""

    calls: tuple[Signature, ...]
    known: Mapping[str, int]
    """The sizes of a call that make_inputs made."""
    notes: tuple[str, ...] = ()
    best: int = 0
    """Which of the calls to export with."""

    @property
    def signature(self) -> Signature:
        return self.calls[self.best]

    def cast(self, dtype: torch.dtype) -> _GivenCalls:
        return replace(self, calls=tuple(cast(call, dtype) for call in self.calls))


def _calls_given(
    target: Target,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    examples: Any,
    make_inputs: Callable[..., Any] | None,
    dims: Mapping[str, Any],
    sizes: Mapping[str, Any],
) -> _GivenCalls:
    if examples is not None:
        return _calls_of_examples(target, examples)
    if make_inputs is not None and not _is_given(args, kwargs):
        made, known = first_call(make_inputs, dims, sizes, target)
        return _GivenCalls((made,), known)
    own = None if _is_given(args, kwargs) or target.call is not target.module else _own_example(target)
    return _GivenCalls((bind_call(target, *(own or (args, kwargs))),), {})


def _own_example(target: Target) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """A program's own call, or the one that a module carries."""
    return target.example if target.example is not None else example_of(target.module)


def _calls_of_examples(target: Target, examples: Any) -> _GivenCalls:
    from anyshape.model.proposal.given_calls import SeenCalls, best_call, read_calls  # as below

    calls = read_calls(target, examples)
    return _GivenCalls(calls, {}, tuple(examples.notes if isinstance(examples, SeenCalls) else ()), best_call(calls))


def _found_dims(
    target: Target, call: _GivenCalls, make_inputs: Callable[..., Any] | None, sizes: Mapping[str, Any]
) -> Declared:
    """What is found where the user says nothing."""
    from anyshape.model.proposal.undeclared import propose  # whoever declares does not wait for it

    known = call.known
    if make_inputs is not None and not known:  # a call was given, too
        _, known = first_call(make_inputs, {}, sizes, target)
    proposal = propose(target, call.calls, make_inputs, known)
    found = {dim: parse_sizes(text, dim=dim) for dim, text in proposal.sizes.items()}
    yielding = set(mentioned(proposal.dims)) if len(call.calls) == 1 and make_inputs is None else set()
    return Declared(dict(proposal.dims), found, notes=list(proposal.notes), offered=frozenset(found), yielding=yielding)


# ---- the other arguments


def _refuse_other_types(**arguments: Any) -> None:
    examples = {"dims": '{"x": "batch seq"}', "sizes": '{"seq": "1..512"}', "dynamic_axes": '{"x": {0: "batch"}}'}
    for name, value in arguments.items():
        if value is not None and not isinstance(value, Mapping):
            such = f", such as {examples[name]}" if name in examples else ""
            raise DeclarationError(f"{name} is {value!r}, a {type(value).__name__}: give a dict by name{such}")


def _name_list(names: Sequence[str], argument: str) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise DeclarationError(f"{argument} is {names!r}: give a list of names")
    return list(names)


def _is_given(args: Any, kwargs: Mapping[str, Any] | None) -> bool:
    return bool(kwargs) or not (args is None or (isinstance(args, tuple) and not args))


def _refuse_two_ways(what: str, **ways: Any) -> None:
    used = [f"{name}=" for name, value in ways.items() if value is not None]
    if len(used) > 1:
        raise DeclarationError(f"{' and '.join(used)} both {what}: give one of them")


def _refuse_two_calls(examples: Any, args: Any, kwargs: Mapping[str, Any] | None, make_inputs: Any) -> None:
    """`examples` beside another way; a call may stand beside `make_inputs`."""
    ways = {"args": args if _is_given(args, None) else None, "kwargs": kwargs or None, "make_inputs": make_inputs}
    for name, value in ways.items():
        _refuse_two_ways("give the call", examples=examples, **{name: value})


def _input_names(signature: Signature, given: Sequence[str] | None, dims: Mapping[str, Any]) -> dict[str, str]:
    """Name in the file -> leaf. Names that are the leaves' own, in whatever order, are taken by name."""
    leaves = [leaf.name for leaf in signature.leaves if leaf.is_tensor or leaf.name in dims]
    names = _name_list(given or [], "input_names")
    if len(names) > len(leaves):
        raise DeclarationError(f"input_names has {len(names)} names but the call has {len(leaves)} inputs: {leaves}")
    in_order = leaves if set(names) <= set(leaves) else [*names, *leaves[len(names) :]]
    if len(set(names)) != len(names) or len(set(in_order)) != len(in_order):
        raise DeclarationError(f"input_names {names} gives two of the inputs {leaves} one name")
    return dict(zip(in_order, leaves, strict=True))


# ---- the first call of `make_inputs`: at which sizes it returns one that the model accepts

_FIRST_SIZES = (
    (3, 5, 7, 4, 6, 9, 8, 10),
    (2, 4, 6, 3, 5, 8, 7, 9),
    (32, 64, 96, 48, 80),
    (8, 16, 24, 12, 20),
    (64, 128, 96),
)
"""Small and different ones first; then larger ones, which many numbers divide."""


def first_call(
    make_inputs: Callable[..., Any], dims: Mapping[str, Any], sizes: Mapping[str, Any], target: Target
) -> tuple[Signature, dict[str, int]]:
    """The first sizes at which make_inputs returns a call that the model accepts."""
    error: Exception | None = None
    for candidate in _size_candidates(make_inputs, dims, sizes):
        try:
            signature = call_make_inputs(make_inputs, candidate, seed=0, target=target)
            run_once(target, signature)
        except DeclarationError:
            raise
        except Exception as failure:  # noqa: BLE001  the user's own function
            error = failure
        else:
            return signature, candidate
    maker = spelled("make_inputs", "`inputs`")
    said = f"no call of {maker} runs at the sizes tried, last {type(error).__name__}: {first_line(error)}"
    raise DeclarationError(f"{said}; give an example or {spelled('sizes=', '--size')}")


def _size_candidates(
    make_inputs: Callable[..., Any], dims: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Iterator[dict[str, int]]:
    defaults = _size_parameters(make_inputs, (*mentioned(dims), *sizes))
    ranges = {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else SizeRange(lo=0) for dim in defaults}
    for row in _FIRST_SIZES:
        wanted = zip(defaults.items(), itertools.cycle(row), strict=False)
        yield {dim: ranges[dim].nearest(size if default is None else default) for (dim, default), size in wanted}


def _size_parameters(make_inputs: Callable[..., Any], others: Iterable[str]) -> dict[str, int | None]:
    """The sizes that make_inputs takes and their defaults; a parameter with another default, a dtype say, is none."""
    parameters = inspect.signature(make_inputs).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    found = {p.name: None if p.default is p.empty else p.default for p in named if _is_size(p)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return {**dict.fromkeys(others if takes_any else ()), **found}


def _is_size(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty or type(parameter.default) is int


def with_fixed_rest(
    make_inputs: Callable[..., Any], dims: Iterable[str], known: Mapping[str, int]
) -> Callable[..., Any]:
    """What it takes beside the declared dims keeps its first size; without a first size, that is an error."""
    dims = tuple(dims)
    rest = [name for name in _size_parameters(make_inputs, known) if name not in dims]
    required = [n for n in rest if n not in known and _size_parameters(make_inputs, ())[n] is None]
    if required:
        raise DeclarationError(
            f"make_inputs takes `{required[0]}`, but no axis is called so{did_you_mean(required[0], dims)}"
        )
    return functools.partial(make_inputs, **{name: known[name] for name in rest if name in known})

"""From the arguments of `export` or `check` to one request: the target, its call, the declaration, the names in the file."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape._torch.state import untouched
from anyshape.declaration import torch_forms
from anyshape.declaration.calls import Signature, bind_call
from anyshape.declaration.dims import Spec, declare
from anyshape.declaration.notation import SizeRange, parse_sizes
from anyshape.declaration.targets import Target, resolve_target
from anyshape.errors import DeclarationError
from anyshape.verification.reference import call_make_inputs


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


def understand(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    *,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dtype: Any = None,
) -> Request:
    """Bind the call, read the declaration in whichever form it came, and check one against the other."""
    target = resolve_target(model)
    if dtype is not None:
        target = _converted(target, as_dtype(dtype))
    known: dict[str, int] | None = None
    if make_inputs is not None and not _is_given(args, kwargs):
        signature, known = _example_from(make_inputs, sizes or {}, target)
    else:
        signature = bind_call(target, args, kwargs)
    if dtype is not None:
        signature = _cast(signature, as_dtype(dtype))
    _one_way(dims=dims, dynamic_axes=dynamic_axes, dynamic_shapes=dynamic_shapes)
    notes: list[str] = []
    labels: Mapping[str, Mapping[int, str]] = {}
    all_sizes: dict[str, Any] = dict(sizes or {})
    declared: Mapping[str, Any] = dims or {}
    names = _input_names(signature, input_names, declared)
    if dynamic_axes is not None:
        found = torch_forms.from_dynamic_axes(dynamic_axes, {**names, **{n: n for n in names.values()}}, output_names)
        declared, labels, notes = found.dims, found.labels, found.notes
    elif dynamic_shapes is not None:
        found = torch_forms.from_dynamic_shapes(dynamic_shapes, target, signature, args, kwargs)
        declared, notes = found.dims, found.notes
        all_sizes = {**found.sizes, **all_sizes}
    elif dims is None:
        notes.append("nothing was declared, so every size is fixed; declare what varies with dims=")
    else:
        declared = {names.get(key, key): value for key, value in dims.items()}
    known = {k: v for k, v in (known or {}).items() if _is_mentioned(k, declared)} or None
    spec = declare(signature, declared, all_sizes, known=known)
    outward = {leaf: name for name, leaf in names.items() if leaf not in spec.constants}
    return Request(
        target,
        signature,
        spec,
        outward,
        tuple(output_names) if output_names is not None else None,
        labels,
        make_inputs,
        (*notes, *spec.notes),
    )


def _is_mentioned(dim: str, declared: Mapping[str, Any]) -> bool:
    return dim in declared or any(dim in str(value) for value in declared.values())


def _is_given(args: Any, kwargs: Mapping[str, Any] | None) -> bool:
    return bool(kwargs) or not (isinstance(args, tuple) and not args)


def _one_way(**ways: Any) -> None:
    used = [f"{name}=" for name, value in ways.items() if value is not None]
    if len(used) > 1:
        raise DeclarationError(f"{' and '.join(used)} both declare the dims: give one of them")


def _input_names(signature: Signature, given: Sequence[str] | None, dims: Mapping[str, Any]) -> dict[str, str]:
    """Name in the file -> leaf. Names that are the leaves' own, in whatever order, are taken by name."""
    leaves = [leaf.name for leaf in signature.leaves if leaf.is_tensor or leaf.name in dims]
    if given is None:
        return {name: name for name in leaves}
    if len(set(given)) != len(given):
        raise DeclarationError(f"input_names {list(given)} names one input twice")
    if set(given) <= set(leaves):
        return {name: name for name in leaves}
    if len(given) > len(leaves):
        raise DeclarationError(f"input_names has {len(given)} names but the call has {len(leaves)} inputs: {leaves}")
    rest = leaves[len(given) :]
    return dict(zip([*given, *rest], leaves, strict=True))


# ---- an example from make_inputs

_FIRST_SIZES = (
    (3, 5, 7, 4, 6, 9, 8, 10),
    (2, 4, 6, 3, 5, 8, 7, 9),
    (32, 64, 96, 48, 80),
    (8, 16, 24, 12, 20),
    (64, 128, 96),
)


def _example_from(
    make_inputs: Callable[..., Any], sizes: Mapping[str, Any], target: Target
) -> tuple[Signature, dict[str, int]]:
    """The first sizes at which make_inputs returns a call that the model accepts."""
    error: Exception | None = None
    for candidate in _size_candidates(make_inputs, sizes):
        try:
            signature = call_make_inputs(make_inputs, candidate, seed=0, target=target)
            _run(target, signature)
            return signature, candidate
        except DeclarationError:
            raise
        except Exception as failure:  # noqa: BLE001  the user's own function
            error = failure
    first_line = (str(error).splitlines() or [""])[0]
    raise DeclarationError(
        f"no call of make_inputs runs at the sizes tried, last {type(error).__name__}: {first_line}; give an example or sizes="
    )


def _run(target: Target, signature: Signature) -> None:
    args, kwargs = signature.build({})
    with untouched(target.module), torch.no_grad():
        target.call(*args, **kwargs)


def _size_candidates(make_inputs: Callable[..., Any], sizes: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    parameters = inspect.signature(make_inputs).parameters.values()
    dims = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    ranges = {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else SizeRange() for dim in dims}
    defaults = {p.name: p.default for p in parameters if isinstance(p.default, int)}
    for row in _FIRST_SIZES:
        found = {}
        for index, dim in enumerate(dims):
            found[dim] = defaults.get(dim, ranges[dim].nearest(row[index % len(row)]))
        yield found


# ---- dtype=


def as_dtype(dtype: Any) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise DeclarationError(f"dtype is {dtype!r}: give a floating type such as torch.float16 or 'bfloat16'")
    return found


def _converted(target: Target, dtype: torch.dtype) -> Target:
    """A copy of the module in another type; the user's own is not touched."""
    if target.call is not target.module and not inspect.ismethod(target.call):
        raise DeclarationError("dtype= converts a module or its method, not a function")
    twin = copy.deepcopy(target.module).to(dtype)
    return resolve_target(twin if target.call is target.module else getattr(twin, target.call.__name__))


def _cast(signature: Signature, dtype: torch.dtype) -> Signature:
    leaves = tuple(
        type(leaf)(leaf.name, leaf.value.to(dtype)) if leaf.is_tensor and leaf.value.is_floating_point() else leaf
        for leaf in signature.leaves
    )
    return Signature(leaves, signature.positional, signature.keywords)

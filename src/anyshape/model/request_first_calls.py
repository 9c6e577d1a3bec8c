"""The first call of `make_inputs`: at which sizes it returns one that the model accepts."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.dims import mentioned
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError, first_line
from anyshape.model.oracle import call_make_inputs
from anyshape.sizes.notation import SizeRange, did_you_mean, parse_sizes
from anyshape.torchkit.state import untouched

_FIRST_SIZES = (
    (3, 5, 7, 4, 6, 9, 8, 10),
    (2, 4, 6, 3, 5, 8, 7, 9),
    (32, 64, 96, 48, 80),
    (8, 16, 24, 12, 20),
    (64, 128, 96),
)


def first_call(
    make_inputs: Callable[..., Any], dims: Mapping[str, Any], sizes: Mapping[str, Any], target: Target
) -> tuple[Signature, dict[str, int]]:
    """The first sizes at which make_inputs returns a call that the model accepts."""
    error: Exception | None = None
    for candidate in _size_candidates(make_inputs, dims, sizes):
        try:
            signature = call_make_inputs(make_inputs, candidate, seed=0, target=target)
            _run(target, signature)
        except DeclarationError:
            raise
        except Exception as failure:  # noqa: BLE001  the user's own function
            error = failure
        else:
            return signature, candidate
    said = first_line(error)
    raise DeclarationError(
        f"no call of make_inputs runs at the sizes tried, last {type(error).__name__}: {said}; "
        "give an example or sizes="
    )


def _run(target: Target, signature: Signature) -> None:
    args, kwargs = signature.build({leaf.name: leaf.value.clone() for leaf in signature.leaves if leaf.is_tensor})
    with untouched(target.module), torch.no_grad():
        target.call(*args, **kwargs)


def _size_candidates(
    make_inputs: Callable[..., Any], dims: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Iterator[dict[str, int]]:
    defaults = _parameters(make_inputs, (*mentioned(dims), *sizes))
    ranges = {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else SizeRange(lo=0) for dim in defaults}
    for row in _FIRST_SIZES:
        wanted = zip(defaults.items(), itertools.cycle(row), strict=False)
        yield {dim: ranges[dim].nearest(size if default is None else default) for (dim, default), size in wanted}


def _parameters(make_inputs: Callable[..., Any], others: Iterable[str]) -> dict[str, int | None]:
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
    rest = [name for name in _parameters(make_inputs, known) if name not in dims]
    required = [n for n in rest if n not in known and _parameters(make_inputs, ())[n] is None]
    if required:
        raise DeclarationError(
            f"make_inputs takes `{required[0]}`, but no axis is called so{did_you_mean(required[0], dims)}"
        )
    return functools.partial(make_inputs, **{name: known[name] for name in rest if name in known})

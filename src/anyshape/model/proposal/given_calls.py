"""One file serves calls of one kind: they may differ in sizes and numbers, not in what is given, dtypes or flags."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.containers import parts_of
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError


def refuse_other_kinds(target: Target, signatures: Sequence[Signature], *, offer: str | None = None) -> None:
    """Raise where calls are of several kinds; `offer` is how to write the calls of the kind with a number."""
    _refuse_absent(signatures, offer)
    for leaf in signatures[0].leaves:
        _refuse_other_values(leaf.name, [signature.values[leaf.name] for signature in signatures])
    fixed = [dict(_fixed_values(target, signature)) for signature in signatures]
    for name in dict.fromkeys(name for values in fixed for name in values):
        _refuse_difference(name, [values.get(name) for values in fixed], repr, _BECOMES_PART)


def kinds(signatures: Sequence[Signature]) -> list[list[int]]:
    """The numbers of the calls that are given the same leaves, kind by kind."""
    found: dict[frozenset[str], list[int]] = {}
    for number, signature in enumerate(signatures):
        found.setdefault(frozenset(leaf.name for leaf in signature.leaves), []).append(number)
    return list(found.values())


# ---- what is given in some calls alone

_MOST_NAMED = 3


def _refuse_absent(signatures: Sequence[Signature], offer: str | None) -> None:
    found = kinds(signatures)
    if len(found) == 1:
        return
    calls = [{leaf.name for leaf in signature.leaves} for signature in signatures]
    always = set.intersection(*calls)
    first = next(leaf.name for signature in signatures for leaf in signature.leaves if leaf.name not in always)
    path = _shortest_absent(first, calls)
    given = [number for number, names in enumerate(calls) if _has(names, path)]
    absent = [number for number in range(len(calls)) if number not in given]
    ways = [offer.format(number) if offer else _written(numbers) for number, numbers in enumerate(found)]
    raise DeclarationError(
        f"`{path}` is given in {_listed(given)} but left out, None or empty in {_listed(absent)}: "
        f"export one file for each kind of call, with {' and with '.join(f'examples={way}' for way in ways)}"
    )


def _shortest_absent(name: str, calls: Sequence[set[str]]) -> str:
    """`past` rather than `past.0.key`, where some call has nothing below it."""
    parts = name.split(".")
    paths = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return next(path for path in paths if not all(_has(names, path) for names in calls))


def _has(names: set[str], path: str) -> bool:
    return any(name == path or name.startswith(f"{path}.") for name in names)


def _written(numbers: Sequence[int]) -> str:
    return f"[{', '.join(f'examples[{number}]' for number in numbers)}]"


def _listed(numbers: Sequence[int]) -> str:
    shown = [f"examples[{number}]" for number in numbers[:_MOST_NAMED]]
    *first, last = [*shown, f"{len(numbers) - _MOST_NAMED} more"] if len(numbers) > _MOST_NAMED else shown
    return f"{', '.join(first)} and {last}" if first else last


# ---- what is given in all calls, but differs in more than size

_BECOMES_PART = "it becomes part of the file, so export one file for each"


def _refuse_other_values(name: str, values: Sequence[Any]) -> None:
    _refuse_difference(name, [_kind(value) for value in values], str, "give the same kind in all calls")
    if isinstance(values[0], torch.Tensor):
        dtypes = [str(value.dtype).removeprefix("torch.") for value in values]
        _refuse_difference(name, dtypes, str, "give the same dtype in all calls")
        if len({value.dim() for value in values}) > 1:
            ranks = [f"of shape {tuple(value.shape)}" for value in values]
            _refuse_difference(name, ranks, str, "give the same number of axes in all calls")
    elif isinstance(values[0], bool):
        _refuse_difference(name, values, repr, _BECOMES_PART)
    elif isinstance(values[0], int) and min(values) < 0:
        _refuse_difference(name, values, repr, "a number that varies must not be negative; pass it as a tensor")


def _refuse_difference(name: str, values: Sequence[Any], show: Callable[[Any], str], advice: str) -> None:
    other = next((number for number, value in enumerate(values) if value != values[0]), None)
    if other is not None:
        first, second = show(values[0]), show(values[other])
        raise DeclarationError(f"`{name}` is {first} in examples[0] but {second} in examples[{other}]: {advice}")


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "a tensor"
    return f"{'an' if type(value) is int else 'a'} {type(value).__name__}"


_COMPARED = (str, bytes, enum.Enum, type(None), torch.dtype, torch.device)


def _fixed_values(target: Target, signature: Signature) -> Iterator[tuple[str, Any]]:
    """What is neither tensor nor number, by name: texts and their like as they are, of other objects the type."""
    args, kwargs = signature.build({})
    bound = target.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        if target.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            yield from (found for key, part in value.items() for found in _fixed_below(key, part))
        else:
            yield from _fixed_below(name, value)


def _fixed_below(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (torch.Tensor, int, float)):
        return
    found = parts_of(value)
    if found is None:
        yield name, value if isinstance(value, _COMPARED) else type(value)
        return
    for key, part in found[1].items():
        yield from _fixed_below(f"{name}.{key}", part)

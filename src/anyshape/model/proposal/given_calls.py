"""Several calls of one model, given as a list or recorded by `watch`: bound to its signature, and of one kind.

One file serves calls of one kind: they may differ in sizes and numbers, not in what is given, dtypes or flags.
"""

from __future__ import annotations

import collections
import enum
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch

from anyshape.declaration.calls import Signature, bind_call, read_call
from anyshape.declaration.containers import parts_of
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.probe import Place, sizes_of
from anyshape.sizes import budgets
from anyshape.sizes.fit import Column, moves
from anyshape.sizes.spelling import spelled

# ---- recorded calls


@dataclass(frozen=True, repr=False)
class SeenCall:
    """One call, as it was made."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.shown(most=4)

    def shown(self, most: int) -> str:
        """Its shapes and other values; of what stands in a container so many."""
        given = [_value_text(value, most) for value in self.args]
        named = [f"{name}={_value_text(value, most)}" for name, value in self.kwargs.items()]
        return f"({', '.join([*given, *named])})"


class SeenCalls(Sequence[SeenCall]):
    """The recorded calls, in their order; `of(0)` are those of the first kind, where some were given other inputs."""

    def __init__(self, target: Target, calls: Sequence[SeenCall] = (), notes: Sequence[str] = ()) -> None:
        self._target = target
        self._calls = list(calls)
        self.notes = list(notes)
        """What was not recorded as it was, and why."""

    @overload
    def __getitem__(self, index: int) -> SeenCall: ...
    @overload
    def __getitem__(self, index: slice) -> SeenCalls: ...
    def __getitem__(self, index: int | slice) -> SeenCall | SeenCalls:
        if isinstance(index, slice):
            return SeenCalls(self._target, self._calls[index], self.notes)
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def kinds(self) -> tuple[SeenCalls, ...]:
        """The calls by what they were given: each kind can be exported to a file."""
        bound = [bind_call(self._target, call.args, call.kwargs) for call in self._calls]
        return tuple(SeenCalls(self._target, [self._calls[n] for n in numbers], self.notes) for numbers in kinds(bound))

    def of(self, kind: int) -> SeenCalls:
        """The calls of one kind."""
        found = self.kinds
        if not 0 <= kind < len(found):
            raise DeclarationError(f"there is no kind {kind}: the {len(self)} recorded calls are of {len(found)} kinds")
        return found[kind]

    def __repr__(self) -> str:
        count = f"{len(self)} call{'s' if len(self) != 1 else ''} of {self._target.name}"
        return "\n".join([count, *(f"  {number}: {call}" for number, call in enumerate(self)), *self.notes])


def _value_text(value: Any, most: int) -> str:
    """`int64[2, 5]`, `{ids: int64[2, 5]}`, `3`, `'mean'`."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    found = parts_of(value)
    if found is None:
        return type(value).__name__
    kind, parts = found
    is_listed = kind in ("list", "tuple")
    inside = [
        _value_text(part, most) if is_listed else f"{key}: {_value_text(part, most)}" for key, part in parts.items()
    ]
    text = ", ".join([*inside[:most], *(["..."] if len(inside) > most else [])])
    before, after = {"list": ("[", "]"), "tuple": ("(", ")")}.get(kind, ("{", "}"))
    return f"{'' if is_listed or kind == 'dict' else type(value).__name__}{before}{text}{after}"


# ---- the calls of `examples=`, in whichever form they came


def read_calls(target: Target, examples: Any) -> tuple[Signature, ...]:
    """All calls, of one kind; one sentence for what is no call, or a call of another kind."""
    if isinstance(examples, (str, Mapping, torch.Tensor)) or not isinstance(examples, Sequence):
        kind = type(examples).__name__
        raise DeclarationError(
            f"examples is of type {kind}: give a list of calls, such as [(x,), (y,)], or what watch recorded"
        )
    if not examples:
        nothing = "watch recorded no call" if isinstance(examples, SeenCalls) else "examples is empty"
        raise DeclarationError(f"{nothing}: give two calls of different sizes")
    signatures = tuple(_bind_example(target, call, number) for number, call in enumerate(examples))
    refuse_other_kinds(target, signatures, offer="seen.of({})" if isinstance(examples, SeenCalls) else None)
    return signatures


def _bind_example(target: Target, call: Any, number: int) -> Signature:
    try:
        if isinstance(call, SeenCall):
            return bind_call(target, call.args, call.kwargs)
        if isinstance(call, (tuple, dict, collections.UserDict, torch.Tensor)):
            return bind_call(target, *read_call(call))
    except DeclarationError as error:
        raise DeclarationError(f"examples[{number}]: {error}") from None
    raise DeclarationError(
        f"examples[{number}] is of type {type(call).__name__}: a call is a tuple of arguments, a dict of keywords, "
        'or {"args": ..., "kwargs": ...}'
    )


def columns_of(signatures: Sequence[Signature]) -> dict[Place, Column]:
    """The size of every place in each call."""
    sizes = [sizes_of(signature) for signature in signatures]
    return {place: tuple(one[place] for one in sizes) for place in sizes[0]}


def best_call(signatures: Sequence[Signature]) -> int:
    """The call to export with: no size below 2, no two alike, as far as the calls have it; of several the smallest."""
    columns = {column for column in columns_of(signatures).values() if moves(column)}

    # everything broadcasts at 1, and sizes that are alike cannot be told apart
    def drawback(number: int) -> tuple[int, int, int]:
        sizes = [column[number] for column in columns]
        return sum(size < 2 for size in sizes), len(sizes) - len(set(sizes)), sum(sizes)

    return min(range(len(signatures)), key=drawback)


# ---- calls of one kind


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


def _refuse_absent(signatures: Sequence[Signature], offer: str | None) -> None:
    found = kinds(signatures)
    if len(found) == 1:
        return
    calls = [{leaf.name for leaf in signature.leaves} for signature in signatures]
    always = set.intersection(*calls)
    first = next(leaf.name for signature in signatures for leaf in signature.leaves if leaf.name not in always)
    path = _shortest_absent(first, calls)
    given = [number for number, names in enumerate(calls) if _has_below(names, path)]
    absent = [number for number in range(len(calls)) if number not in given]
    ways = [offer.format(number) if offer else _examples_chosen(numbers) for number, numbers in enumerate(found)]
    said = spelled("examples=", "`examples` = ")
    raise DeclarationError(
        f"`{path}` is given in {_examples_named(given)} but left out, None or empty in {_examples_named(absent)}: "
        f"export one file for each kind of call, with {' and with '.join(f'{said}{way}' for way in ways)}"
    )


def _shortest_absent(name: str, calls: Sequence[set[str]]) -> str:
    """`past` rather than `past.0.key`, where some call has nothing below it."""
    parts = name.split(".")
    paths = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return next(path for path in paths if not all(_has_below(names, path) for names in calls))


def _has_below(names: set[str], path: str) -> bool:
    return any(name == path or name.startswith(f"{path}.") for name in names)


def _examples_chosen(numbers: Sequence[int]) -> str:
    return f"[{', '.join(f'examples[{number}]' for number in numbers)}]"


def _examples_named(numbers: Sequence[int]) -> str:
    shown = [f"examples[{number}]" for number in numbers[: budgets.MOST_NAMED_IN_A_NOTE]]
    more = len(numbers) - len(shown)
    *first, last = [*shown, f"{more} more"] if more else shown
    return f"{', '.join(first)} and {last}" if first else last


# ---- what is given in all calls, but differs in more than size

_BECOMES_PART = "it becomes part of the file, so export one file for each"


def _refuse_other_values(name: str, values: Sequence[Any]) -> None:
    _refuse_difference(name, [_kind_text(value) for value in values], str, "give the same kind in all calls")
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


def _kind_text(value: Any) -> str:
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

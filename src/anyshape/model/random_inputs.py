"""`random="inputs"`: each draw of the model becomes an input of the file, of standard noise in a shape of its own.

The module stays as it is: its call is surrounded by a mode that puts the given noise where it would draw. With that it
is a model as any other, which gives the same for the same inputs, and is traced and checked as such.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from anyshape.declaration.calls import Leaf, Signature, bind_call, read_call
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.labels import declared_expressions
from anyshape.model.oracle import Outcome, Reference, describe
from anyshape.model.request import Request
from anyshape.model.survey import make_reference, start_sizes
from anyshape.sizes import budgets
from anyshape.sizes.fit import Observation, fit_outputs
from anyshape.sizes.notation import Expression, Sizes, parse_expression
from anyshape.sizes.spelling import spelled
from anyshape.source.sites import read, site_of_stack
from anyshape.source.spans import Span, is_users, span_of_stack
from anyshape.torchkit import capture
from anyshape.torchkit.draws import GivenDraws, Noise, WantedNoise, drawn_noise, standard_noise
from anyshape.torchkit.state import evaluating


@dataclass(frozen=True)
class FoundDraw:
    """One draw of a call."""

    noise: Noise
    shape: tuple[int, ...]
    dtype: torch.dtype
    function: str
    span: Span | None
    wish: str
    """What its input may be called."""

    @property
    def place(self) -> str:
        return f"`{self.function}`" + (f" ({self.span.path}:{self.span.line})" if self.span else "")


_NamedDraw = tuple[str, FoundDraw, tuple[Expression | None, ...]]
"""With the name of its input, and the expression of each axis."""


def with_random_inputs(request: Request, seed: int) -> Request:
    """The same request with an input for each draw; DeclarationError where there is none for one of them."""
    with capture.quiet(), evaluating(request.target.module):
        reference = make_reference(request, seed)
        start, example = start_sizes(reference, request, prints=False)
        found = _draws_of(reference, example)
        if found:
            rows = _axes_of_draws(request, reference, start, found)
            names = _names_of(found, request)
            request = _request_with(request, [*zip(names, found, rows, strict=True)])
            reference = make_reference(request, seed)
            example = reference.run(start)
        if reference.is_random(example):
            raise DeclarationError(_not_expressed(reference.drawing_places(example)))
    note = f"{spelled('random=', '--random ')}inputs: the model draws no random numbers"
    return request if found else replace(request, notes=(*request.notes, note))


def with_plain_draws(request: Request) -> Request:
    """The same request, which draws nothing but standard noise and computes the rest of it, as any file can."""
    given = request.target
    if given.is_scripted:  # which no mode of Python's hears of
        return request

    def call(*args: Any, **kwargs: Any) -> Any:
        with GivenDraws(drawn_noise, or_draw=True):
            return given.call(*args, **kwargs)

    call.__signature__ = given.signature  # type: ignore[attr-defined]
    return replace(request, target=replace(given, call=call))


def depends_on_draws(reference: Reference, outcome: Outcome) -> bool:
    """Whether a call gives other results with other noise in the place of its draws, however these are seeded."""

    def outputs(seed: int) -> tuple[torch.Tensor, ...]:
        chance = torch.Generator().manual_seed(seed)
        with GivenDraws(lambda one: standard_noise(one.noise, one.shape, one.dtype, chance), or_draw=True):
            return reference.module.call(outcome.leaves)[1]

    return not all(map(torch.equal, outputs(1), outputs(2)))


def _not_expressed(places: Mapping[Span | None, str]) -> str:
    span, by = next(iter(places.items()), (None, "something that is no generator"))
    place = f" ({span.path}:{span.line})" if span is not None else ""
    return f"`{by}`{place} draws where no input can take its place{_INSTEAD}"


def _request_with(request: Request, draws: Sequence[_NamedDraw]) -> Request:
    given, spec = request.signature, request.spec
    axes = {**spec.axes, **{name: row for name, _, row in draws}}
    spec = replace(spec, axes=axes, draws={name: draw.noise for name, draw, _ in draws})
    leaves = [
        Leaf(name, standard_noise(draw.noise, spec.shape(name, spec.example, draw.shape), draw.dtype))
        for name, draw, _ in draws
    ]
    names = [leaf.name for leaf in leaves]
    return replace(
        request,
        target=_target_with(request.target, [draw for _, draw, _ in draws], names),
        signature=Signature((*given.leaves, *leaves), given.positional, {**given.keywords, **_kept_leaves(names)}),
        spec=spec,
        input_names={**request.input_names, **{name: name for name in names}},
        make_inputs=request.make_inputs and _with_noise(request.make_inputs, request.target, draws),
    )


# ---- the draws of a call, and their shapes at any size


def _draws_of(reference: Reference, outcome: Outcome) -> list[FoundDraw]:
    found: list[FoundDraw] = []
    chance = torch.Generator().manual_seed(0)  # one of its own: who else draws shows in the others

    def give(wanted: WantedNoise) -> torch.Tensor:
        span = span_of_stack(wanted.frame)
        found.append(FoundDraw(wanted.noise, wanted.shape, wanted.dtype, wanted.function, span, _wished_name(wanted)))
        return standard_noise(wanted.noise, wanted.shape, wanted.dtype, chance)

    with GivenDraws(give):
        reference.module.call(outcome.leaves)
    return found


def _wished_name(wanted: WantedNoise) -> str:
    """The variable that the user keeps it in; what is made of the noise is called another thing than the noise."""
    variable = _variable_of(wanted.frame)
    if wanted.is_result:
        return variable or "noise"
    return f"{variable or wanted.function.strip('_')}_noise"


def _variable_of(frame: FrameType) -> str | None:
    site = site_of_stack(frame) if is_users(frame.f_code.co_filename) else None
    reading = None if site is None else read(site)
    node = None if reading is None else reading.node
    while reading is not None and isinstance(node, ast.expr):
        parent = reading.source.parent_of(node)
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            return parent.targets[0].id
        node = parent if isinstance(parent, (ast.Attribute, ast.Call)) and not _is_argument(node, parent) else None
    return None


def _is_argument(node: ast.expr, of: ast.AST) -> bool:
    return isinstance(of, ast.Call) and of.func is not node


def _names_of(draws: Sequence[FoundDraw], request: Request) -> list[str]:
    taken = {*request.target.signature.parameters, *request.input_names.values(), *request.signature.values}
    names: list[str] = []
    for draw in draws:
        numbered = (f"{draw.wish}_{number}" for number in itertools.count(2))
        names.append(next(name for name in itertools.chain([draw.wish], numbered) if name not in taken))
        taken.add(names[-1])
    return names


def _axes_of_draws(
    request: Request, reference: Reference, start: Sizes, draws: Sequence[FoundDraw]
) -> list[tuple[Expression | None, ...]]:
    """The size of each axis of each draw, as an expression of dims, or None where it never moves."""
    observations = [Observation(start, tuple(draw.shape for draw in draws))]
    for sizes in _sizes_to_ask(request, start):
        outcome = reference.run(sizes)
        if outcome.runs:
            there = _draws_of(reference, outcome)
            _refuse_another_number(start, draws, sizes, there)
            observations.append(Observation(sizes, tuple(draw.shape for draw in there)))
    fitted = fit_outputs(observations, None, [*declared_expressions(request), *_quotients(request.spec.dims)])
    for draw, row in zip(draws, fitted, strict=True):
        if row is None or None in row:
            raise DeclarationError(f"{draw.place} draws numbers in a shape that no formula of the dims gives{_INSTEAD}")
    return [tuple(one if isinstance(one, Expression) else None for one in row) for row in fitted if row is not None]


def _quotients(dims: Sequence[str]) -> Iterator[Expression]:
    """What strides and patches leave of a size: few of its sizes may run, and tell no rounding from another."""
    yield from map(parse_expression, dims)
    yield from (parse_expression(f"{dim} // {n}") for dim in dims for n in range(2, budgets.LARGEST_DIVISOR + 1))
    for one, two in itertools.combinations(dims, 2):
        patches = (f"({one} // {n}) * ({two} // {n})" for n in range(2, budgets.LARGEST_DIVISOR + 1))
        yield from map(parse_expression, patches)


_INSTEAD = ": draw outside of the model, and pass the numbers as an input"


def _sizes_to_ask(request: Request, start: Sizes) -> list[Sizes]:
    """Each dim alone, moved by steps and by multiples, since a model may take nothing else; and all of them."""
    spec, found = request.spec, []
    for dim, declared in spec.ranges.items():
        moved = [start[dim] + shift * declared.step for shift in (1, 2, 5)] + [start[dim] * factor for factor in (2, 3)]
        found += [{**start, dim: declared.nearest(size)} for size in moved]
    for shift in (1, 3):
        found.append({d: r.nearest((start[d] + i) * shift + 1) for i, (d, r) in enumerate(spec.ranges.items())})
    unique = {tuple(sizes.values()): sizes for sizes in found if sizes != start}
    return [sizes for sizes in unique.values() if all(condition.holds(sizes) for condition in spec.where)]


def _refuse_another_number(start: Sizes, draws: Sequence[FoundDraw], sizes: Sizes, there: Sequence[FoundDraw]) -> None:
    if [draw.place for draw in draws] == [draw.place for draw in there]:
        return
    pairs = itertools.zip_longest(draws, there)
    odd = next(two or one for one, two in pairs if one is None or two is None or one.place != two.place)
    assert odd is not None
    raise DeclarationError(_other_number(odd.place, describe(start), len(draws), describe(sizes), len(there)))


def _other_number(place: str, at: str, count: int, elsewhere: str, other: int) -> str:
    drawn = f"the model draws {_times(count)} at {at} and {_times(other)} at {elsewhere}"
    return f"how often {place} draws depends on sizes or values, of which no input can be made: {drawn}{_INSTEAD}"


def _times(count: int) -> str:
    return ("nothing", "once")[count] if count < 2 else f"{count} times"


# ---- the model with its draws given


def _target_with(target: Target, draws: Sequence[FoundDraw], names: Sequence[str]) -> Target:
    def call(*args: Any, **kwargs: Any) -> Any:
        giver = _NoiseInOrder(draws, [kwargs.pop(name) for name in names])
        with GivenDraws(giver):
            result = target.call(*args, **kwargs)
        giver.close()
        return result

    plain = list(target.signature.parameters.values())
    further = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    place = len(plain) - any(one.kind is one.VAR_KEYWORD for one in plain)
    call.__signature__ = target.signature.replace(parameters=[*plain[:place], *further, *plain[place:]])  # type: ignore[attr-defined]
    return replace(target, call=call)


class _NoiseInOrder:
    """Gives noise to one call, one tensor for each draw."""

    def __init__(self, draws: Sequence[FoundDraw], given: Sequence[torch.Tensor]) -> None:
        self._draws, self._given, self._next = draws, given, 0

    def __call__(self, wanted: WantedNoise) -> torch.Tensor:
        is_traced = any(type(value) is not torch.Tensor for value in self._given)
        if is_traced and not self._is_next(wanted):
            self._next = 0  # a trace that follows several paths runs the model's code anew for each
        if self._next == len(self._given):
            said = f"`{wanted.function}` draws more often at some sizes or values than at others"
            raise DeclarationError(f"{said}{_INSTEAD}")
        value, draw = self._given[self._next], self._draws[self._next]
        self._next += 1
        # in a trace, sizes are symbols, which a comparison would make numbers
        if not is_traced and tuple(value.shape) != wanted.shape:
            known = f"{wanted.shape} where its formula gives {tuple(value.shape)}"
            raise DeclarationError(f"{draw.place} draws numbers in the shape {known}{_INSTEAD}")
        return value

    def _is_next(self, wanted: WantedNoise) -> bool:
        known = self._draws[self._next] if self._next < len(self._draws) else None
        return known is not None and (known.function, known.span) == (wanted.function, span_of_stack(wanted.frame))

    def close(self) -> None:
        if self._next < len(self._given):
            place = self._draws[self._next].place
            raise DeclarationError(f"{place} draws at some sizes or values, and not at others{_INSTEAD}")


def _kept_leaves(names: Sequence[str]) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    def kept(name: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda values: values[name]

    return {name: kept(name) for name in names}


def _with_noise(make_inputs: Callable[..., Any], target: Target, draws: Sequence[_NamedDraw]) -> Callable[..., Any]:
    """The user's calls with noise of their sizes."""

    def make(**sizes: int) -> dict[str, Any]:
        args, kwargs = bind_call(target, *read_call(make_inputs(**sizes))).build({})
        for name, draw, row in draws:
            shape = [n if one is None else one.value(sizes) for one, n in zip(row, draw.shape, strict=True)]
            kwargs[name] = standard_noise(draw.noise, shape, draw.dtype)
        return {"args": args, "kwargs": kwargs}

    return make

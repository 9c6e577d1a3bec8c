"""Nothing was declared: dims from several calls, from `make_inputs`, or from one call by asking the model."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.oracle import call_make_inputs
from anyshape.model.proposal import call_structures, one_call
from anyshape.model.proposal.call_structures import CallPart, DimSteps, Settled, Structure
from anyshape.model.proposal.dim_names import name_dims, words_of
from anyshape.model.proposal.given_calls import best_call, columns_of, refuse_other_kinds
from anyshape.model.proposal.probe import Place, Prober, RunBudget, argument_of, sizes_of
from anyshape.model.proposal.proposal import DimProposal, looks_like_features, notation
from anyshape.sizes import budgets
from anyshape.sizes.fit import Column, FormulaKind, formulas, moves
from anyshape.sizes.notation import Sizes, parse_expression
from anyshape.sizes.spelling import spelled


def propose(
    target: Target,
    calls: Sequence[Signature],
    make_inputs: Callable[..., Any] | None = None,
    known: Sizes | None = None,
) -> DimProposal:
    """The declaration that stands in for the user's own; its first note says where it comes from."""
    if len(calls) > 1:
        found, source = propose_from_calls(target, calls), f"dims were found from {len(calls)} calls"
    elif make_inputs is not None and known:
        found = propose_from_make_inputs(target, make_inputs, known)
        source = f"dims are the parameters of {spelled('make_inputs', '`inputs`')}"
    else:
        found, source = one_call.propose(target, calls[0]), "nothing was declared: dims were found by probing"
    return replace(found, notes=(f"{source}; declare {spelled('dims=', '--dim')} to say otherwise", *found.notes))


# ---- the parameters of `make_inputs` are the dims; calls of several sizes show which axes follow which

_STEPS = (1, 2, 3, 5, 7, 11)
"""All unlike, so that no two parameters grow side by side."""


def propose_from_make_inputs(target: Target, make_inputs: Callable[..., Any], known: Mapping[str, int]) -> DimProposal:
    """Every axis that moves with a parameter, as an expression of the parameters; `known` are sizes that run."""
    calls = [
        (sizes, made) for sizes in _sizes_to_call(known) if (made := _call_at(target, make_inputs, sizes)) is not None
    ]
    parameters = {name: tuple(sizes[name] for sizes, _ in calls) for name in known}
    columns = columns_of([made for _, made in calls])
    texts = {place: _size_text(place, column, parameters) for place, column in columns.items() if moves(column)}
    example = calls[0][1]
    used = [name for name in known if any(name in text for text in texts.values())]
    return DimProposal(notation(example, texts), {}, dict.fromkeys(used, "a parameter of make_inputs"))


def _sizes_to_call(known: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The sizes that are known to run, each parameter alone, twice as large, and all together by unlike steps."""
    yield dict(known)
    for name, size in known.items():
        yield from ({**known, name: moved} for moved in (size + 1, size + 2, 2 * size, 3 * size) if moved != size)
    yield {name: size + _STEPS[index % len(_STEPS)] for index, (name, size) in enumerate(known.items())}


def _call_at(target: Target, make_inputs: Callable[..., Any], sizes: Mapping[str, int]) -> Signature | None:
    """A call of these sizes; None where the function refuses them, as it may."""
    with contextlib.suppress(Exception):
        return call_make_inputs(make_inputs, dict(sizes), seed=0, target=target)
    return None


def _size_text(place: Place, column: Column, parameters: Mapping[str, Column]) -> str:
    varying = {name: sizes for name, sizes in parameters.items() if moves(sizes)}
    found = formulas(column, list(varying.values()))
    if not found:
        raise DeclarationError(
            f"{where([place])} moves with the sizes of {spelled('make_inputs', '`inputs`')} in no way that is known: "
            f"give {spelled('dims=', '--dim')}"
        )
    return found[0].text(dict(enumerate(varying)))


# ---- several calls: what differs between them varies, what moves alike is one, the model settles the rest


def propose_from_calls(target: Target, signatures: Sequence[Signature]) -> DimProposal:
    """The declaration that fits all calls; what they leave open is settled by running the model, or said aloud."""
    refuse_other_kinds(target, signatures)
    number = best_call(signatures)
    example, columns = signatures[number], columns_of(signatures)
    budget = RunBudget.for_runs_of(target, example, budgets.MOST_RUNS_FOR_EXAMPLES)
    prober = Prober(target, example, budget=budget)
    still = {place: column[0] for place, column in columns.items() if not moves(column)}
    settled = call_structures.settle(_call_parts(columns, number, prober), number, prober, set(still.values()))
    structure = settled.structure
    steps = {dim: _steps_of_dim(structure, dim, number, prober) for dim in structure.dims}
    names = _dim_names(structure, steps, example, target)
    texts = _part_texts(structure, steps, names, example)
    return DimProposal(
        {**notation(example, structure.spread(texts)), **dict.fromkeys(_varying_floats(signatures), ())},
        {name: text for dim, name in names.items() if (text := steps[dim].notation)},
        {name: _basis_text(structure.parts[dim].column) for dim, name in names.items()},
        notes=(
            *on_too_little(columns, prober),
            *on_rivals(settled, texts, [_part_texts(rival, steps, names, example) for rival in settled.rivals]),
            *on_unsettled(settled, texts),
            *on_equals(structure, texts, number, prober),
            *on_still(still, structure, prober),
        ),
    )


# ---- the parts of several calls


def _call_parts(columns: Mapping[Place, Column], number: int, prober: Prober) -> list[CallPart]:
    """Places with equal columns at the same axis, the smaller first: what is larger may be computed from them."""
    example = prober.signature
    found: list[list[Place]] = []
    for column in dict.fromkeys(filter(moves, columns.values())):
        for places in _at_one_axis([place for place in columns if columns[place] == column], example):
            found += _under_one_mask(places, columns, example) or [places]
    found += [[place] for place in columns if _is_still_sum(place, columns, number, prober)]
    parts = [CallPart(tuple(places), columns[places[0]], _follows(places, example)) for places in found]
    return sorted(parts, key=lambda part: sum(part.column))


def _under_one_mask(
    places: Sequence[Place], columns: Mapping[Place, Column], example: Signature
) -> list[list[Place]] | None:
    """The inputs apart, where some mask is twice as long: it may cover two of them that are equal by chance."""
    twice = tuple(2 * size for size in columns[places[0]])
    is_covered = any(column == twice and _follows([place], example) for place, column in columns.items())
    found = by_input(places) if is_covered else []
    return found if sum(map(len, found)) == len(places) else None


def _is_still_sum(place: Place, columns: Mapping[Place, Column], number: int, prober: Prober) -> bool:
    """Whether a mask has one length in all calls only because what it covers grew in one as it shrank in another."""
    if moves(columns[place]) or place[1] is None or not _follows([place], prober.signature):
        return False
    moving = list(dict.fromkeys(filter(moves, columns.values())))
    sums = [formula for formula in formulas(columns[place], moving) if formula.kind == FormulaKind.SUM]
    return any(_covers(place, moving[formula.of[0]], columns, number, prober) for formula in sums)


def _covers(place: Place, column: Column, columns: Mapping[Place, Column], number: int, prober: Prober) -> bool:
    """Whether the model runs where one of two sizes is another call's, and a mask over both as much longer."""
    other = next(size for size in column if size != column[number])
    sizes = {part: other for part, sizes in columns.items() if sizes == column}
    return prober.runs({**sizes, place: columns[place][number] + other - column[number]})


def _at_one_axis(places: Sequence[Place], example: Signature) -> list[list[Place]]:
    """Counted from the front or, for inputs of other ranks, from the back; two axes of one input stay apart."""
    found: dict[int | None, list[Place]] = {}
    for leaf, axis in places:
        found.setdefault(axis, []).append((leaf, axis))
    groups: list[list[Place]] = []
    for group in found.values():
        host = next((other for other in groups if _meet_at_the_back(group, other, example)), None)
        if host is None:
            groups.append(group)
        else:
            host += group
    return groups


def _meet_at_the_back(group: Sequence[Place], other: Sequence[Place], example: Signature) -> bool:
    if group[0][1] is None or other[0][1] is None or {leaf for leaf, _ in group} & {leaf for leaf, _ in other}:
        return False
    ranks = {leaf: example.values[leaf].dim() for leaf, _ in (*group, *other)}
    backs = [{(axis or 0) - ranks[leaf] for leaf, axis in places} for places in (group, other)]
    return not backs[0].isdisjoint(backs[1])


def _follows(places: Sequence[Place], example: Signature) -> bool:
    values = example.values
    return all(axis is None or values[leaf].dtype == torch.bool or follows_by_name(leaf) for leaf, axis in places)


def _steps_of_dim(structure: Structure, dim: int, example: int, prober: Prober) -> DimSteps:
    if structure.parts[dim].is_number:
        return DimSteps(lowest=min(1, *structure.parts[dim].column))
    along = call_structures.outputs_along(structure, dim, example, prober.outputs)
    return call_structures.steps_of(structure.parts[dim].column, along)


# ---- the declaration that fits several calls


def _dim_names(
    structure: Structure, steps: Mapping[int, DimSteps], example: Signature, target: Target
) -> dict[int, str]:
    """A name for each dim, in the order of the call."""
    order = list(sizes_of(example))
    dims = sorted(structure.dims, key=lambda dim: min(map(order.index, structure.alike(dim))))
    names = dict(zip(dims, name_dims([_naming_places(structure, dim) for dim in dims], example, target), strict=True))
    return {dim: f"{name}_side" if steps[dim].is_square else name for dim, name in names.items()}


def _naming_places(structure: Structure, dim: int) -> frozenset[Place]:
    """The places that a dim is named after: a mask has its sizes from others."""
    places = frozenset(structure.alike(dim))
    return frozenset(place for place in places if not follows_by_name(place[0])) or places


def _part_texts(
    structure: Structure, steps: Mapping[int, DimSteps], names: Mapping[int, str], example: Signature
) -> dict[int, str]:
    """Every part in the notation of `dims=`: the past before what comes now, else in the order of the call."""
    order = {place: number for number, place in enumerate(sizes_of(example))}

    def text(index: int) -> str:
        formula = structure.formulas[index]
        if formula is None:
            return f"{names[index]} * {names[index]}" if steps[index].is_square else names[index]
        inner = {base: text(base) for base in formula.of}
        first = {base: order[structure.parts[base].places[0]] for base in formula.of}
        ordered = sorted(formula.of, key=lambda base: ("past" not in inner[base], first[base]))
        bracketed = {base: part if part.isidentifier() else f"({part})" for base, part in inner.items()}
        return replace(formula, of=tuple(ordered)).text(bracketed)

    return {index: parse_expression(text(index)).text for index in range(len(structure.parts))}


def _varying_floats(signatures: Sequence[Signature]) -> list[str]:
    """Python floats that differ between the calls: inputs that follow nothing."""
    numbers = [leaf.name for leaf in signatures[0].leaves if isinstance(leaf.value, float)]
    return [name for name in numbers if len({signature.values[name] for signature in signatures}) > 1]


def _basis_text(column: Column) -> str:
    sizes = [str(size) for size in sorted(set(column))]
    return f"{', '.join(sizes[:-1])} and {sizes[-1]} in the calls"


# ---- what the calls leave open, said aloud together with the call that would settle it


def on_too_little(columns: Mapping[Place, Column], prober: Prober) -> Iterator[str]:
    """Calls that show nothing, or a model that takes too long to be asked."""
    if not any(map(moves, columns.values())):
        yield "all calls have the same sizes, so every size is fixed: pass calls of different sizes"
    if prober.budget.exhausted:
        yield f"after {prober.budget.count} runs of the model, what was still open was taken as it is in the calls"


def on_rivals(settled: Settled, texts: Mapping[int, str], rivals: Sequence[Mapping[int, str]]) -> Iterator[str]:
    """Other formulas that fit all calls, and that the model runs with just as well."""
    for index, part in enumerate(settled.structure.parts):
        others = dict.fromkeys(rival[index] for rival in rivals if rival[index] != texts[index])
        if others:
            yield (
                f"{where(part.places)} is `{texts[index]}` in all calls, but `{'`, `'.join(others)}` as well, "
                f"and was taken for `{texts[index]}`: pass a call in which they differ"
            )


def on_unsettled(settled: Settled, texts: Mapping[int, str]) -> Iterator[str]:
    """Readings that were taken although the model could not be asked."""
    for index in settled.unsettled:
        part, formula = settled.structure.parts[index], settled.structure.formulas[index]
        if formula is not None:
            yield (
                f"{where(part.places)} is `{texts[index]}` in all calls and was taken for it, "
                "though no run of the model confirmed that: pass a third call of other sizes"
            )


# ---- sizes that are equal in all calls, and which the model would take apart


def on_equals(structure: Structure, texts: Mapping[int, str], example: int, prober: Prober) -> Iterator[str]:
    for dim in structure.dims:
        places = list(structure.alike(dim))
        for own in itertools.islice(_splits(places), budgets.MOST_SPLITS_TOLD):
            rest = [place for place in places if place not in own]
            if call_structures.moves_alone(_split_off(structure, own, dim), len(structure.parts), example, prober):
                yield (
                    f"{where(own)} and {where(rest)} are equal in all calls and share `{texts[dim]}`, "
                    "though the model takes them apart: pass a call in which they differ, if they may"
                )
                break


def _splits(places: Sequence[Place]) -> Iterator[list[Place]]:
    """What may have its size by chance: a number, one input with its mask, one of two axes of an input."""
    if any(axis is not None for _, axis in places):
        yield from ([place] for place in places if place[1] is None)
    axes = [place for place in places if place[1] is not None]
    yield from by_input(axes)
    for place in axes:
        if any(other[0] == place[0] and other != place for other in axes):
            yield from _splits_around(place, axes)


def _splits_around(place: Place, places: Sequence[Place]) -> Iterator[list[Place]]:
    """One axis of an input without its other one, alone and with places of other inputs."""
    others = [other for other in places if other[0] != place[0]]
    for count in range(len(others) + 1):
        yield from ([place, *more] for more in itertools.combinations(others, count))


def _split_off(structure: Structure, own: Sequence[Place], dim: int) -> Structure:
    """The structure with these places as a dim of their own, its last."""
    left = [replace(p, places=tuple(place for place in p.places if place not in own)) for p in structure.parts]
    return Structure((*left, CallPart(tuple(own), structure.parts[dim].column)), (*structure.formulas, None))


# ---- sizes that stand still, and which the model would let vary


def on_still(still: Mapping[Place, int], structure: Structure, prober: Prober) -> Iterator[str]:
    moving = {place for part in structure.parts for place in part.places}
    groups: dict[tuple[int, int], list[Place]] = {}
    for (leaf, axis), size in still.items():
        if axis is not None and not looks_like_features((leaf, axis), moving, prober.signature.values):
            groups.setdefault((axis, size), []).append((leaf, axis))
    for (_, size), places in list(groups.items())[: budgets.MOST_STILL_PLACES_TOLD]:
        if all(prober.runs(dict.fromkeys(places, other)) for other in (size + 1, size + 3, max(size - 1, 1))):
            yield (
                f"{where(places)} is {size} in all calls, so the file has it fixed, though the model takes others: "
                "pass a call in which it differs, if it varies"
            )


def where(places: Sequence[Place]) -> str:
    """`axis 1 of `ids``, or the name of a number."""
    texts = []
    for axis in dict.fromkeys(axis for _, axis in places):
        leaves = list(dict.fromkeys(leaf for leaf, other in places if other == axis))
        named = ", ".join(f"`{leaf}`" for leaf in leaves[: budgets.MOST_NAMED_IN_A_NOTE])
        rest = len(leaves) - budgets.MOST_NAMED_IN_A_NOTE
        more = f" and {rest} more" if rest > 0 else ""
        texts.append(named + more if axis is None else f"axis {axis} of {named}{more}")
    return ", ".join(texts)


# ---- inputs that say something about others, such as masks and positions: as long as these, and told by their names

_FOLLOWS = re.compile(r"mask|position|bias|padding|(^|[._])(pos|pad|valid)([._\d]|$)")


def follows_by_name(leaf: str) -> bool:
    return _FOLLOWS.search(leaf.lower()) is not None


def by_input(places: Sequence[Place]) -> list[list[Place]]:
    """The places of one input after the other, each with those of its mask; nothing where there is one input alone."""
    roots = list(dict.fromkeys(argument_of(leaf) for leaf, _ in places if not follows_by_name(leaf)))
    return [[place for place in places if root in _owners(place[0], roots)] for root in roots] if roots[1:] else []


def _owners(leaf: str, roots: Sequence[str]) -> list[str]:
    """The inputs that a leaf belongs to: the one that it stands in, or those whose names share most words with it."""
    if argument_of(leaf) in roots:
        return [argument_of(leaf)]
    shared = [len(set(words_of(leaf)) & set(words_of(root))) for root in roots]
    return [root for root, count in zip(roots, shared, strict=True) if count and count == max(shared)]

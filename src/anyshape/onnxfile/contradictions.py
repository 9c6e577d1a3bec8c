"""Where a contract and the file that it stands in contradict each other, and what is left of it there.

Whoever wrote it, one of both is not true: another tool has renamed a dim, or fixed its size, or somebody lies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import onnx

from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Contract, Evidence, has_contract, read_contract, slots
from anyshape.onnxfile.fingerprint import fingerprint
from anyshape.onnxfile.interface import Interface, Port
from anyshape.sizes.notation import Condition, parse_expression

UNREADABLE = "cannot be read: written by a later anyshape, or by somebody else"


CHANGED = "tells of a check of another graph: the file was changed since"


def contract_of(
    model: onnx.ModelProto, interface: Interface, folder: Path | None = None
) -> tuple[Contract | None, tuple[str, ...]]:
    """What of a file's contract is about it, and what is not, a clause each; with the folder of its weights, also
    whether it is the file that was checked.
    """
    contract = read_contract(model)
    if contract is None:
        return None, (UNREADABLE,) if has_contract(model) else ()
    untrue = tuple(contradictions(contract, interface))
    contract = _part_about(contract, interface) if untrue else contract
    if folder is None or not is_changed(contract, model, folder):
        return contract, untrue
    return replace(contract, evidence=None), (CHANGED, *untrue)


def is_changed(contract: Contract, model: onnx.ModelProto, folder: Path) -> bool:
    """Whether the graph is another one than that which was checked; False where nobody knows."""
    known = contract.evidence.graph if contract.evidence is not None else ""
    try:
        return bool(known) and known != fingerprint(model, folder)
    # a file is data: a weight that cannot be read is another one
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return True


def contradictions(contract: Contract, interface: Interface) -> Iterator[str]:
    """What it says that the file does not have, a clause each: "speaks of the dim `n`, which no input has"."""
    yield from _unknown_inputs(contract, interface)
    yield from _unknown_places(contract, interface)
    outputs = {port.name: port for port in interface.outputs}
    for name, formulas in contract.outputs.items():
        if name not in outputs:
            yield f"has formulas for the output `{name}`, which the file does not have"
        else:
            yield from _contradicted_axes(outputs[name], formulas)
    if contract.evidence is not None:
        yield from _odd_evidence(contract.verdict, contract.evidence)


def _unknown_inputs(contract: Contract, interface: Interface) -> Iterator[str]:
    inputs = {port.name for port in interface.inputs}
    for name in (*contract.numbers, *contract.draws):
        if name not in inputs:
            yield f"says what the input `{name}` is, which the file does not have"
    dims = _known_dims(contract, interface)
    for dim in contract.dims:
        if dim not in dims:
            yield f"speaks of the dim `{dim}`, which no input has"
    for condition in contract.relations:
        for dim in condition.names:
            if dim not in dims:
                yield f"asks for `{condition}`, but no input has the dim `{dim}`"


def _known_dims(contract: Contract, interface: Interface) -> set[str]:
    return {*interface.dims, *(dim for number in contract.numbers.values() for dim in number.names)}


def _unknown_places(contract: Contract, interface: Interface) -> Iterator[str]:
    """The module's structure, which is not used where it is one of other inputs or outputs."""
    told = {name for parameter in contract.call or () for name in slots(parameter.node)}
    for port in interface.inputs if contract.call is not None else ():
        if port.name not in told:
            yield f"does not say where the input `{port.name}` stands in the module's call"
    outputs = {port.name for port in interface.outputs}
    for name in slots(contract.returns) if contract.returns is not None else ():
        if name not in outputs:
            yield f"says where the output `{name}` stands in the module's result, which the file does not have"


def _odd_evidence(verdict: str, evidence: Evidence) -> Iterator[str]:
    if evidence.sizes < 1:
        yield f"says `{verdict}` at {evidence.sizes} sizes"
    for dim, (low, high) in evidence.ranges.items():
        if not 0 <= low <= high:
            yield f"says that `{dim}` was run from {low} to {high}"


def _contradicted_axes(port: Port, formulas: tuple[str, ...]) -> Iterator[str]:
    if port.axes is None:
        return
    if len(port.axes) != len(formulas):
        yield f"gives the output `{port.name}` {len(formulas)} axes, the file {len(port.axes)}"
        return
    for index, (axis, formula) in enumerate(zip(port.axes, formulas, strict=True)):
        if isinstance(axis, int) and formula.isdecimal() and formula != str(axis):
            yield f"gives axis {index} of the output `{port.name}` the size {formula}, the file {axis}"


# ---- what is left


def _part_about(contract: Contract, interface: Interface) -> Contract:
    inputs, outputs = ({port.name: port for port in ports} for ports in (interface.inputs, interface.outputs))
    kept = replace(contract, numbers={name: one for name, one in contract.numbers.items() if name in inputs})
    dims = _known_dims(kept, interface)
    odd = contract.evidence is not None and any(_odd_evidence(contract.verdict, contract.evidence))
    return replace(
        kept,
        dims={dim: sizes for dim, sizes in contract.dims.items() if dim in dims},
        limits=_those_about(contract.limits, dims),
        conditions=_those_about(contract.conditions, dims),
        where=_those_about(contract.where, dims),
        outputs={
            name: formulas
            for name, formulas in contract.outputs.items()
            if name in outputs
            and not any(_contradicted_axes(outputs[name], formulas))
            and all(_is_about(formula, dims) for formula in formulas)
        },
        evidence=None if odd else contract.evidence,
        draws={name: noise for name, noise in contract.draws.items() if name in inputs},
    )


def _those_about(conditions: tuple[Condition, ...], dims: Collection[str]) -> tuple[Condition, ...]:
    return tuple(condition for condition in conditions if set(condition.names) <= set(dims))


def _is_about(formula: str, dims: Collection[str]) -> bool:
    try:
        return formula == "?" or set(parse_expression(formula).names) <= set(dims)
    except DeclarationError:
        return False

"""Where a contract and the file that it stands in contradict each other: whoever wrote it, one of both is not true."""

from __future__ import annotations

from collections.abc import Iterator

from anyshape.onnxfile.contract import Contract, Evidence
from anyshape.onnxfile.interface import Interface, Port


def contradictions(contract: Contract, interface: Interface) -> Iterator[str]:
    """What it says that the file does not have, a clause each: "speaks of the dim `n`, which no input has"."""
    yield from _unknown_inputs(contract, interface)
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
    for name in contract.numbers:
        if name not in inputs:
            yield f"says what the input `{name}` is, which the file does not have"
    dims = {*interface.dims, *(dim for number in contract.numbers.values() for dim in number.names)}
    for dim in contract.dims:
        if dim not in dims:
            yield f"speaks of the dim `{dim}`, which no input has"
    for condition in contract.relations:
        for dim in condition.names:
            if dim not in dims:
                yield f"asks for `{condition}`, but no input has the dim `{dim}`"


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

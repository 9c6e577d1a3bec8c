"""`inspect`: what a file says about itself, without running it: dims, contract, formulas, and what is baked in."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from anyshape.freeing.freeable import Freeable, find_freeable
from anyshape.onnxfile.baked_sizes import Baked, find_baked
from anyshape.onnxfile.contract import Contract, contract_facts, contract_to_dict, has_contract, read_contract
from anyshape.onnxfile.contradictions import CHANGED, UNREADABLE, contradictions, is_changed
from anyshape.onnxfile.graph import STANDARD_DOMAINS, proto_graphs
from anyshape.onnxfile.interface import Interface, Port, opset_of, port_rows, read_interface
from anyshape.onnxfile.untrusted import external_files, load_checked
from anyshape.results import markup
from anyshape.results.result import port_to_dict
from anyshape.results.text import labelled_lines
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange


@dataclass(frozen=True, repr=False)
class Inspection(markup.ShownInNotebooks):
    """What stands in a file; `print` it."""

    path: Path
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    dims: Mapping[str, SizeRange | None]
    """Every dim that the inputs name; None where the file does not say which sizes it may take."""
    contract: Contract | None
    opset: int | None
    domains: Mapping[str, int]
    """Operators from elsewhere: domain -> version."""
    producer: str
    nodes: int
    bytes: int
    """Of the file itself."""
    data: Mapping[str, int] = field(default_factory=dict)
    """External data: file -> bytes."""
    baked: tuple[Baked, ...] = ()
    freeable: Freeable | None = None
    """Of a static file: its batch, which could be free."""
    lies: tuple[str, ...] = ()
    """Where the contract contradicts the file."""

    def formulas(self, output: str) -> tuple[str, ...]:
        """The formula of every axis of an output, as the contract has it; none where it has none."""
        return self.contract.outputs.get(output, ()) if self.contract is not None else ()

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        by = f", by {printable(self.producer)}" if self.producer else ""
        nodes = f"{self.nodes} node{'s' if self.nodes != 1 else ''}"
        return f"{self.path.name}: {nodes}, opset {self.opset or 'unknown'}, {_readable(self.bytes)}{by}"

    def __str__(self) -> str:
        return "\n".join([self.headline, *labelled_lines(_rows(self))])

    def _repr_html_(self) -> str:
        return markup.box(markup.table(self.headline, _rows(self)))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        same = {name: getattr(self, name) for name in ("opset", "domains", "producer", "nodes", "bytes", "data")}
        return {
            "path": str(self.path),
            "inputs": [port_to_dict(port) for port in self.inputs],
            "outputs": [port_to_dict(port) | {"formulas": list(self.formulas(port.name))} for port in self.outputs],
            "dims": {dim: None if sizes is None else str(sizes) for dim, sizes in self.dims.items()},
            "contract": None if self.contract is None else contract_to_dict(self.contract),
            **same,
            "baked": [baked.to_dict() for baked in self.baked],
            "lies": list(self.lies),
            "freeable": None if self.freeable is None else dataclasses.asdict(self.freeable),
        }


def inspect(f: str | os.PathLike[str]) -> Inspection:
    """What stands in an ONNX file `f`, by whomever; nothing of it is run or expanded: no torch, no runtime.

    >>> _ = anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), "linear.onnx", dims={"input": "batch 4"})
    >>> found = anyshape.inspect("linear.onnx")
    >>> {dim: str(sizes) for dim, sizes in found.dims.items()}, found.formulas("output")
    ({'batch': '1..'}, ('batch', '2'))
    """
    path = Path(f)
    model = load_checked(path)
    interface = read_interface(model)
    contract = read_contract(model)
    lies = tuple(_lies(model, interface, contract, path.parent))  # before the weights are cleared
    known = contract.dims if contract is not None else {}
    return Inspection(
        path,
        interface.inputs,
        interface.outputs,
        {dim: known.get(dim) for dim in interface.dims},
        contract,
        opset_of(model),
        {entry.domain: int(entry.version) for entry in model.opset_import if entry.domain not in STANDARD_DOMAINS},
        f"{model.producer_name} {model.producer_version}".strip(),
        _count_nodes(model),
        path.stat().st_size,
        external_files(model, path),
        find_baked(model, interface),
        find_freeable(interface),
        lies,
    )


def _lies(model: onnx.ModelProto, interface: Interface, contract: Contract | None, folder: Path) -> Iterator[str]:
    if contract is None:
        yield from (UNREADABLE,) if has_contract(model) else ()
        return
    yield from (CHANGED,) if is_changed(contract, model, folder) else ()
    yield from (f"contradicts the file: it {clause}" for clause in contradictions(contract, interface))


def _count_nodes(model: onnx.ModelProto) -> int:
    inner = sum(len(graph.node) for graph in proto_graphs(model))
    return inner + sum(len(function.node) for function in model.functions)


# ---- as text


def _rows(found: Inspection) -> Iterator[tuple[str, str]]:
    inputs = [(port, tuple(map(_axis, port.axes or ()))) for port in found.inputs]
    outputs = [(port, _with_formulas(port, found)) for port in found.outputs]
    for kind, rows in (("input", inputs), ("output", outputs)):
        yield from port_rows(kind, [(printable(port.name), port.typed(axes)) for port, axes in rows])
    yield from ((label, printable(text)) for label, text in _facts(found))


def _axis(axis: int | str | None) -> str:
    return "?" if axis is None else printable(str(axis))


def _with_formulas(port: Port, found: Inspection) -> tuple[str, ...]:
    """`len = seq // 2` where the file labels an axis and the contract has its formula."""
    axes = tuple(map(_axis, port.axes or ()))
    formulas = found.formulas(port.name)
    if len(formulas) != len(axes):
        return axes
    return tuple(a if f in (a, "?") else f"{a} = {printable(f)}" for a, f in zip(axes, formulas, strict=True))


def _facts(found: Inspection) -> Iterator[tuple[str, str]]:
    if found.dims:
        yield "dims", ", ".join(f"{dim} {sizes}" if sizes is not None else dim for dim, sizes in found.dims.items())
    if found.contract is not None:
        yield from contract_facts(found.contract)
    elif found.dims and not found.lies:
        yield "contract", "none: which sizes the dims may take is not written in the file"
    yield from _first_rows("contract", found.lies)
    if found.domains:
        yield "domains", ", ".join(f"{domain} {version}" for domain, version in found.domains.items())
    if found.data:
        yield "data", ", ".join(f"{file} ({_readable(size)})" for file, size in found.data.items())
    yield from _first_rows("baked in", found.baked)
    if found.freeable is not None:
        yield "static", str(found.freeable)


def _first_rows(label: str, rows: Sequence[object]) -> Iterator[tuple[str, str]]:
    yield from ((label, str(row)) for row in rows[: budgets.MOST_INSPECTED_ROWS])
    if len(rows) > budgets.MOST_INSPECTED_ROWS:
        yield label, f"... and {len(rows) - budgets.MOST_INSPECTED_ROWS} more"


def printable(text: str) -> str:
    """Text from a file, safe for a terminal: no control characters, not endless."""
    text = text if len(text) <= budgets.LONGEST_INSPECTED_TEXT else text[: budgets.LONGEST_INSPECTED_TEXT - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def _readable(size: int) -> str:
    for unit, bytes_each in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size} bytes"

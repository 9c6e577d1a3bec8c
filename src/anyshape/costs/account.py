"""The account of a file: its graph walked for formulas, held against real runs, and everything in one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import onnx_ir as ir
import sympy
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass

from anyshape.costs.file_costs import DimCosts, FileCosts, Growth, NodeCosts, State, ValueCosts
from anyshape.costs.leading_terms import growth_of
from anyshape.costs.node_scopes import Scope, scopes_of, source_of
from anyshape.costs.node_work import Work, item_bytes, largest, memory_steps, work_of
from anyshape.costs.observed_shapes import ObservedFile, ShapeEvidence, chosen_sizes
from anyshape.costs.shape_rules import total
from anyshape.costs.value_shapes import ShapeWalk
from anyshape.costs.written_formulas import WrittenFormula, write_condition, write_size
from anyshape.errors import AnyshapeError, first_line
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.graph import every_node, reads
from anyshape.onnxfile.interface import Interface, read_interface, type_name
from anyshape.onnxfile.untrusted import load_checked
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs import Calls, axes_by_input
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Shape, Size, evaluate, number, tree_of
from anyshape.sizes.notation import Condition, Expression, SizeRange, Sizes


def costs_of(
    path: Path, *, start: Sizes | None = None, custom_ops: CustomOps | None = None, is_run: bool = True
) -> FileCosts:
    """What the file at this path costs; `start` are the sizes that sliders begin at.

    Inside `confined`, a stranger's file runs where it is confined to; without `is_run`, nothing is run.
    """
    proto = load_checked(path)
    interface, contract = read_interface(proto), read_contract(proto)
    try:
        model = ir.from_proto(proto)
        ir.external_data.set_base_dir(model.graph, path.parent)
        is_changed = bool(model.functions)
        file = _OpenFile(path, _own_copy(model), interface, contract, is_changed)
        names = [node.name or "" for node in model.graph]
        evidence = file.evidence(custom_ops or CustomOps()) if is_run else None
        walk = ShapeWalk(file.model, file.dims, evidence)
        file.declare_inputs(walk)
        walk.main(file.model.graph)
        return _Writer(file, walk, evidence, start or {}, names).costs()
    except AnyshapeError:
        raise
    except Exception as error:  # a file is data: whatever is wrong with it gets one sentence
        raise AnyshapeError(f"what `{path.name}` costs cannot be told: {first_line(error)}") from error


def _own_copy(model: ir.Model) -> ir.Model:
    """Without functions, constants or shapes, and with a name of its own for every node."""
    if model.functions:
        InlinePass()(model)
    model.graph.sort()
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    for node in every_node(model.graph):
        for value in node.outputs:
            value.shape = None
    return model


# ---- what a file says of itself


@dataclass(frozen=True)
class _OpenFile:
    path: Path
    model: ir.Model
    interface: Interface
    contract: Contract | None
    is_changed: bool
    """Whether the model is another one than the file holds."""

    @cached_property
    def calls(self) -> Calls:
        """Inputs of types that nobody can make up have axes all the same; without axes they are left out."""
        ports = [replace(port, dtype="float32") for port in self.interface.inputs if port.axes is not None]
        return Calls(axes_by_input(ports), self.interface, 0)

    @cached_property
    def numbers(self) -> Mapping[str, Expression]:
        """Inputs whose value is a size."""
        names = {port.name for port in self.interface.inputs if port.axes == ()}
        told = {} if self.contract is None else self.contract.numbers
        return {name: expression for name, expression in told.items() if name in names}

    @cached_property
    def ranges(self) -> Mapping[str, SizeRange]:
        of_numbers = (name for expression in self.numbers.values() for name in expression.names)
        told = {} if self.contract is None else self.contract.dims
        return {dim: told.get(dim, SizeRange()) for dim in dict.fromkeys((*self.calls.dims, *of_numbers))}

    @cached_property
    def relations(self) -> tuple[Condition, ...]:
        told = () if self.contract is None else self.contract.relations
        return tuple(dict.fromkeys(one for one in told if set(one.names) <= set(self.ranges)))

    @cached_property
    def dims(self) -> Mapping[str, Size]:
        return {dim: _symbol(dim, declared) for dim, declared in self.ranges.items()}

    def size(self, axis: Expression | int) -> Size:
        if isinstance(axis, int):
            return number(axis)
        return evaluate(
            tree_of(axis.text),
            {sympy.Symbol(d, integer=True, positive=True): s for d, s in self.dims.items()},
            algebra=_ALGEBRA,
        )

    def declare_inputs(self, walk: ShapeWalk) -> None:
        for value in self.inputs:
            name = str(value.name)
            axes = self.calls.axes.get(name)
            walk.assign(value, None if axes is None else tuple(map(self.size, axes)))
            if name in self.numbers:
                walk.numbers.assign(value, np.array(self.size(self.numbers[name]), dtype=object))

    @property
    def inputs(self) -> list[ir.Value]:
        names = {port.name for port in self.interface.inputs}
        return [value for value in self.model.graph.inputs if value.name in names]

    def evidence(self, custom_ops: CustomOps) -> ShapeEvidence:
        source, folder = _runnable_source(self)
        made = {str(node.name): [str(value.name) for value in node.outputs if value.name] for node in self.model.graph}
        file = ObservedFile(source, made, self.calls, self.numbers, folder, custom_ops.libraries)
        sizes = chosen_sizes(self.ranges, self.relations, has_contract=self.contract is not None)
        return ShapeEvidence(file, self.dims, self.ranges, sizes)


def _symbol(dim: str, declared: SizeRange) -> Size:
    if declared.lo > 0:
        return sympy.Symbol(dim, integer=True, positive=True)
    return sympy.Symbol(dim, integer=True, nonnegative=True)


_ALGEBRA = {
    "Add": sympy.Add, "Mul": sympy.Mul, "Mod": sympy.Mod, "Min": sympy.Min, "Max": sympy.Max,
    "FloorDiv": lambda left, right: sympy.floor(left / right),
}  # fmt: skip


def _runnable_source(file: _OpenFile) -> tuple[Path | bytes, Path | None]:
    """The file itself, where its nodes can be told apart by name; else the copy, with names that can."""
    nodes = every_node(file.model.graph)
    names = [node.name for node in nodes]
    if all(names) and len(set(names)) == len(names) and not file.is_changed:
        return file.path, None
    for place, node in enumerate(nodes):
        node.name = f"{node.name or node.op_type} #{place}"
    proto = ir.to_proto(file.model)
    del proto.graph.value_info[:]
    return proto.SerializeToString(), file.path.parent


# ---- all of it, written down


class _Writer:
    """Puts formulas into one table, and everything else into rows."""

    def __init__(
        self, file: _OpenFile, walk: ShapeWalk, evidence: ShapeEvidence | None, start: Sizes, names: Sequence[str]
    ) -> None:
        self._file, self._walk, self._evidence, self._start, self._names = file, walk, evidence, start, names
        self._nodes = list(file.model.graph)
        made = [value for node in self._nodes for value in node.outputs if value.name]
        self._values = [*file.inputs, *made]
        self._place = {value: place for place, value in enumerate(self._values)}
        self._table: dict[Size, int] = {}
        self._written: list[WrittenFormula] = []

    def costs(self) -> FileCosts:
        file, works = self._file, [work_of(self._walk, node) for node in self._nodes]
        scopes = scopes_of(self._nodes)
        values = tuple(map(self._value, self._values))
        rows = zip(self._names, self._nodes, works, scopes, strict=True)
        nodes = tuple(self._node(*row) for row in rows)
        held_at = () if self._evidence is None else tuple(self._evidence.held_at)
        return FileCosts(
            tuple(self._dim(dim, declared, held_at) for dim, declared in file.ranges.items()),
            tuple(self._relations()),
            tuple(self._written),
            values,
            nodes,
            tuple(range(len(file.inputs))),
            tuple(self._place.get(value, -1) for value in file.model.graph.outputs if value is not None),
            sum(tensor.nbytes for tensor in _weights(file.model)),
            held_at,
            self._growth(works),
        )

    def _relations(self) -> Iterator[WrittenFormula]:
        """What the contract says, and what nodes need beyond that."""
        dims = list(self._file.dims)
        told = [write_condition(one, dims) for one in self._file.relations]
        needed = [one for size in self._walk.needs if (one := self._write(_at_least_zero(size))) is not None]
        held_at = [] if self._evidence is None else self._evidence.held_at
        # what is not so at a size that runs is no need
        return iter(dict.fromkeys((*told, *(one for one in needed if all(one.value(sizes) for sizes in held_at)))))

    def _dim(self, dim: str, declared: SizeRange, held_at: Sequence[Sizes]) -> DimCosts:
        start = self._start.get(dim, max((sizes[dim] for sizes in held_at), default=declared.nearest(4)))
        return DimCosts(dim, declared.lo, declared.hi, declared.step, declared.values, start)

    def _formula(self, size: Size | None) -> int | None:
        """The place of a formula in the table; None for what cannot be written, too."""
        if size is None:
            return None
        if size not in self._table:
            written = self._write(size)
            if written is None:
                return None
            self._table[size] = len(self._written)
            self._written.append(written)
        return self._table[size]

    def _write(self, size: Size) -> WrittenFormula | None:
        """None for what has no such form, or one that nobody could read."""
        if len(list(islice(sympy.preorder_traversal(size), budgets.LONGEST_SIZE_TEXT + 1))) > budgets.LONGEST_SIZE_TEXT:
            return None  # each part is a character and more
        try:
            written = write_size(size, list(self._file.dims))
        except (KeyError, RecursionError):
            return None
        return written if len(written.text) <= budgets.LONGEST_SIZE_TEXT else None

    def _value(self, value: ir.Value) -> ValueCosts:
        shape = self._walk.known_shape(value)
        places = None if shape is None else tuple(self._formula(size) for size in shape)
        known = None if places is None or None in places else tuple(place for place in places if place is not None)
        item = item_bytes(value.dtype)
        size = None if item is None else int(item) if item.is_Integer else float(item)
        name = "unknown" if value.dtype is None else type_name(value.dtype)
        return ValueCosts(str(value.name), name, size, known, self._state(value, shape if known is not None else None))

    def _state(self, value: ir.Value, shape: Shape | None) -> State:
        if shape is None:
            return "unknown"
        holds = None if self._evidence is None else self._evidence.holds(str(value.name), shape)
        return "not run" if holds is None else "held" if holds else "contradicted"

    def _node(self, name: str, node: ir.Node, work: Work, scope: Scope) -> NodeCosts:
        given = [value for value in node.inputs if value is not None]
        is_read = any(value in self._walk.read for value in node.outputs)
        return NodeCosts(
            name,
            node.op_type if not node.domain else f"{node.domain}::{node.op_type}",
            tuple(-1 if value is None else self._place.get(value, -1) for value in node.inputs),
            tuple(self._place[value] for value in node.outputs if value.name),
            self._formula(work.flops),
            self._formula(work.moved),
            scope,
            source_of(node),
            work.mark or ("the sizes of its results were read off runs" if is_read else ""),
            None if work.inner == 0 else self._formula(work.inner),
            tuple(dict.fromkeys(self._place[one] for one in reads(node) if one in self._place and one not in given)),
            tuple(text for value in given if (text := _weight_text(value))),
        )

    def _growth(self, works: Sequence[Work]) -> Growth:
        steps = memory_steps(self._walk, self._file.model.graph, [work.inner for work in works], self._file.inputs)
        flops = None if any(work.flops is None for work in works) else sympy.expand(total(work.flops for work in works))
        memory = None if steps is None else largest(steps)
        return Growth(
            self._leading_terms(memory.args if isinstance(memory, sympy.Max) else [memory]),
            self._leading_terms([flops]),
            self._text(memory),
            self._text(flops),
        )

    def _leading_terms(self, sizes: Sequence[Size | None]) -> str | None:
        try:
            return None if None in sizes else growth_of(sizes, list(self._file.dims.values()))
        except sympy.PolynomialError:
            return None

    def _text(self, size: Size | None) -> str | None:
        written = None if size is None else self._write(size)
        return None if written is None else written.text


def _at_least_zero(size: Size) -> Size:
    """`height >= 2` rather than `height - 2 >= 0`."""
    constant, _ = size.as_coeff_Add()
    return sympy.Ge(size - constant, -constant, evaluate=False)


def _weights(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    for graph in model.graphs():
        yield from (value.const_value for value in graph.initializers.values() if value.const_value is not None)


def _weight_text(value: ir.Value) -> str:
    """`name float32[768, 3072]`; nothing for what is no weight, nor for numbers that tell an axis or a size."""
    tensor = value.const_value
    if tensor is None or (len(tensor.shape) < 2 and tensor.size <= budgets.LONGEST_SHORT_CONSTANT):
        return ""
    return f"{value.name} {type_name(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"

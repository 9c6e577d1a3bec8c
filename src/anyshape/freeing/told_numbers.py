"""Numbers of a file of which the user says what they are: a formula of the dims, or fixed.

A formula is written into the graph in place of the number, before anything is freed. The static file stays the
reference: it is run with what the formula gives at the sizes of the other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.errors import DeclarationError
from anyshape.freeing.builder import Builder
from anyshape.freeing.inference import Evaluator
from anyshape.freeing.records import SETTLED
from anyshape.freeing.suspects import Use, is_same, ramp_axis
from anyshape.freeing.wanted import Wanted
from anyshape.onnxfile.graph import every_node, name_of
from anyshape.sizes.expressions import dim_symbol
from anyshape.sizes.formulas import SizeFormula, parse_formula
from anyshape.sizes.notation import Sizes, did_you_mean
from anyshape.sizes.spelling import argument

FIXED = "fixed"
_DOUBLE = ir.DataType.DOUBLE


@dataclass(frozen=True)
class ToldNumber:
    """A number, where it stands in the file as it was prepared, and what it is."""

    node: str
    use: Use
    array: Any
    formula: SizeFormula

    def at(self, sizes: Sizes) -> Any:
        """The number at other sizes; a ramp stays as long as it is in the file."""
        return values_like(self.array, self.formula, sizes, keeps_length=True)


def values_like(array: Any, formula: SizeFormula, sizes: Sizes, *, keeps_length: bool = False) -> Any:
    """What a formula gives at these sizes, in the shape and type of the constant that it stands for."""
    shape = list(array.shape)
    if formula.is_ramp:
        axis = ramp_axis(array) or 0
        line = formula.values(sizes, shape[axis] if keeps_length else None)
        found = np.asarray(line).reshape([-1 if one == axis else 1 for one in range(array.ndim)])
        shape[axis] = found.shape[axis]
    else:
        found = np.asarray(formula.values(sizes))
        found = found.reshape(shape) if found.ndim else found
    with np.errstate(all="ignore"):
        return np.broadcast_to(found, shape).astype(array.dtype)


# ---- what the user says, held against the file


@dataclass(frozen=True)
class ToldNumbers:
    """All that is told about one file."""

    numbers: tuple[ToldNumber, ...] = ()
    fixed: tuple[Use, ...] = ()
    patterns: tuple[str, ...] = ()
    """By which the user called those that are fixed."""

    def covers(self, names: Iterable[str]) -> bool:
        return any(is_called(name, pattern) for name in names for pattern in self.patterns)

    def as_inputs(self, model: ir.Model) -> ir.Model:
        """The file that was prepared, with inputs in place of the numbers."""
        return with_inputs(model, {count: (one.use, one.array) for count, one in enumerate(self.numbers)})

    def at(self, sizes: Sizes) -> dict[str, Any]:
        """The inputs of the static file that stand for the numbers."""
        return {input_name(place): one.at(sizes) for place, one in enumerate(self.numbers)}


def is_called(name: str, key: str) -> bool:
    """By its own name, which may hold brackets, or by wildcards."""
    return name == key or fnmatchcase(name, key)


def read_told(model: ir.Model, constants: Mapping[str, str], sizes: Sizes) -> ToldNumbers:
    """`{"node_7": "1/batch", "/Div": "fixed"}` for a file that was prepared; one sentence where they do not fit."""
    evaluator = Evaluator(model)
    numbers: dict[Use, ToldNumber] = {}
    fixed: list[Use] = []
    patterns: list[str] = []
    for key, text in constants.items():
        uses = _uses_called(model, key)
        if text == FIXED:
            fixed += [use for use, _ in uses]
            patterns.append(key)
            continue
        formula = _formula_of_dims(key, text, sizes)
        found = [(use, node, evaluator.value(node.inputs[use[1]])) for use, node in uses]
        known = [(use, node, array) for use, node, array in found if array is not None and array.dtype.kind in "iuf"]
        told = [ToldNumber(name_of(node), use, array, formula) for use, node, array in known if array.size]
        fitting = [one for one in told if _agrees(one, sizes)]
        if not fitting:
            raise DeclarationError(_disagreement(key, formula, [one.array for one in told], sizes))
        numbers |= {one.use: one for one in fitting}
    return ToldNumbers(tuple(numbers.values()), tuple(fixed), tuple(patterns))


def _uses_called(model: ir.Model, key: str) -> list[tuple[Use, ir.Node]]:
    """The inputs of nodes that a key means: all of a node, by its name or its results; or all uses of a constant."""
    found: list[tuple[Use, ir.Node]] = []
    known: set[str] = set()
    for index, node in enumerate(every_node(model.graph)):
        names = {name_of(node), *(str(value.name) for value in node.outputs)}
        is_meant = any(is_called(name, key) for name in names)
        known |= {name for name in names if name}
        for place, value in enumerate(node.inputs):
            constant = str(value.name) if value is not None and value.const_value is not None else ""
            known.add(constant)
            if is_meant or (constant and is_called(constant, key)):
                found.append(((index, place), node))
        found += [((index, -1), node)] if is_meant and not node.inputs else []
    if not found:
        missing = f"the file has no such node{did_you_mean(key, known)}"
        raise DeclarationError(f"`{argument('constants')}` names `{key}`, but {missing}")
    return found


def _formula_of_dims(key: str, text: str, sizes: Sizes) -> SizeFormula:
    formula = parse_formula(text)
    for name in formula.names:
        if name not in sizes:
            dims = ", ".join(f"`{dim}`" for dim in sizes)
            raise DeclarationError(
                f"`{argument('constants')}` says that `{key}` is {text}, but the dims that are freed are {dims}"
                f"{did_you_mean(name, sizes)}"
            )
    return formula


def _agrees(told: ToldNumber, sizes: Sizes) -> bool:
    narrow = told.array.dtype.kind == "f" and told.array.dtype.itemsize < 4
    try:
        given = values_like(told.array, told.formula, sizes)
    except ValueError:  # more or fewer numbers than there are
        return False
    return given.shape == told.array.shape and np.allclose(given, told.array, rtol=2e-3 if narrow else 1e-5, atol=1e-6)


def _disagreement(key: str, formula: SizeFormula, arrays: Sequence[Any], sizes: Sizes) -> str:
    given = np.ravel(formula.values(sizes))
    says = f"`{argument('constants')}` says that `{key}` is {formula.text}, which is {_in_short(given)} in the file"
    return f"{says}, but it holds {' and '.join(map(_in_short, arrays)) or 'no number'}"


def _in_short(array: Any) -> str:
    flat = np.ravel(array)
    return f"{flat[0]:g}" if is_same(flat) else f"{flat[0]:g} to {flat[-1]:g}"


# ---- written into the graph


def with_inputs(model: ir.Model, uses: Mapping[int, tuple[Use, Any]]) -> ir.Model:
    """A copy in which these numbers are inputs of the model, each under its own count."""
    made = model.clone()
    nodes = every_node(made.graph)
    for count, ((index, place), array) in uses.items():
        kind = ir.TensorType(ir.DataType.from_numpy(array.dtype))
        value = ir.Value(name=input_name(count), type=kind, shape=ir.Shape([None] * array.ndim))
        made.graph.inputs.append(value)
        nodes[index].replace_input_with(place, value)
    return made


def input_name(count: int) -> str:
    return f"anyshape_told_{count}"


def with_formulas(model: ir.Model, told: ToldNumbers, wanted: Wanted) -> ir.Model:
    """A copy in which every number that is told is computed from the sizes of the inputs."""
    made = model.clone()
    nodes = every_node(made.graph)
    for index, place in (*told.fixed, *(one.use for one in told.numbers)):
        nodes[index].meta[SETTLED] = (*nodes[index].meta.get(SETTLED, ()), place)
    if told.numbers:
        inputs = {str(value.name): value for value in made.graph.inputs}
        sources = {
            dim_symbol(dim): (inputs[name], axis)
            for name, row in wanted.items() for axis, dim in enumerate(row) if dim is not None
        }  # fmt: skip
        build = Builder(made, sources)
        build.enter(next(iter(made.graph)))
        for one in told.numbers:
            nodes[one.use[0]].replace_input_with(one.use[1], _computed_number(build, one))
        for node in set(made.graph) - set(nodes):
            node.meta[SETTLED] = tuple(range(len(node.inputs)))
    return made


def _computed_number(build: Builder, told: ToldNumber) -> ir.Value:
    """In float64, as Python computes it, then in the type and the shape of the number."""

    def leaf(entry: str | float) -> ir.Value:
        if isinstance(entry, str) and entry != "pi":
            return build.cast(build.reshaped(build.size(dim_symbol(entry)), [], ()), _DOUBLE, ())
        return build.constant(np.float64(np.pi if isinstance(entry, str) else entry))

    def apply(operator: str, given: list[ir.Value]) -> ir.Value:
        if operator == "Range":
            given = [build.constant(np.float64(0)), given[0], build.constant(np.float64(1))]
        return build.insert(ir.node(operator, given), None, _DOUBLE)

    kind = ir.DataType.from_numpy(told.array.dtype)

    def placed(operator: str, value: ir.Value, sizes: Sequence[int]) -> ir.Value:
        return build.insert(ir.node(operator, [value, build.constant(np.array(sizes, np.int64))]), None, value.dtype)

    parts = told.formula.parts(leaf, apply)
    shape, axis = told.array.shape, ramp_axis(told.array) if told.formula.is_ramp else None
    if len(parts) > 1:
        rows = [placed("Reshape", part, [1]) for part in parts]
        whole = build.insert(ir.node("Concat", rows, {"axis": 0}), None, _DOUBLE)
        return placed("Reshape", build.cast(whole, kind, ()), shape)
    value = placed("Reshape", build.cast(parts[0], kind, ()), [-1 if one == axis else 1 for one in range(len(shape))])
    others = [1 if one == axis else size for one, size in enumerate(shape)]
    return placed("Expand", value, others) if max(others, default=1) > 1 else value

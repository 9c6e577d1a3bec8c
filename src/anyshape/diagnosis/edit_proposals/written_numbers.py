"""The whole numbers of an expression, where they were written: in it, where a name got them, or by the caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from anyshape.diagnosis.edit_proposals.change import Knowledge
from anyshape.diagnosis.size_names import SizeNames
from anyshape.source.sites import Site, SourceReading, read


@dataclass(frozen=True, eq=False)
class Number:
    """A whole number of the source, where it was written."""

    reading: SourceReading
    node: ast.expr
    value: int
    scope: SizeNames


def numbers_in(reading: SourceReading, known: Knowledge) -> list[list[Number]]:
    """The numbers of an expression where they were written, and once more where they are used, if that is elsewhere."""
    used = [(reading, node, value) for node, value in reading.numbers()]
    written = [(*_origin(there, node), value) for there, node, value in used]
    written += [one for there, node in _named_tuples(reading) for one in _in_tuple(there, node)]
    ways = [written, used] if any(there is not reading for there, _, _ in written) else [used]
    return [[number_at(*one, known) for one in way] for way in ways]


def number_at(reading: SourceReading, node: ast.expr, value: int, known: Knowledge) -> Number:
    return Number(reading, node, value, SizeNames(reading.site, known.in_dims, names_in(reading.node)))


def _named_tuples(reading: SourceReading) -> Iterator[tuple[SourceReading, ast.Tuple | ast.List]]:
    """`shape` of `x.view(shape)`, where it was written as a tuple of numbers."""
    for node in ast.walk(reading.node):
        function = reading.source.function_of(node)
        if isinstance(node, ast.Name) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assigned = reading.source.assignments_of(function, node.id)
            if len(assigned) == 1 and isinstance(assigned[0], (ast.Tuple, ast.List)):
                yield _at_assignment(reading, function, assigned[0]), assigned[0]


def _in_tuple(reading: SourceReading, node: ast.Tuple | ast.List) -> Iterator[tuple[SourceReading, ast.expr, int]]:
    return ((reading, one, value) for one in node.elts if type(value := reading.value_of(one)) is int)


def names_in(node: ast.AST) -> list[str]:
    """The names in an expression, as they are written from left to right."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return [one.id for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


def _origin(reading: SourceReading, node: ast.expr) -> tuple[SourceReading, ast.expr]:
    """Where a number was written: at its place, where its name got it, or by whoever called the function."""
    function = reading.source.function_of(node)
    if not isinstance(node, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return reading, node
    assigned = reading.source.assignments_of(function, node.id)
    if len(assigned) == 1 and type(reading.value_of(assigned[0])) is int:
        return _origin(_at_assignment(reading, function, assigned[0]), assigned[0])
    given = _argument_given_for(reading.site, function, node.id) if not assigned else None
    return _origin(*given) if given is not None else (reading, node)


def _at_assignment(
    reading: SourceReading, function: ast.FunctionDef | ast.AsyncFunctionDef, value: ast.expr
) -> SourceReading:
    """The names that stand above an assignment: parameters, even if they are given new values below, and what was
    assigned before.
    """
    parameters = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    names = {}
    for name, held in reading.site.names.items():
        lines = [one.lineno for one in reading.source.assignments_of(function, name)]
        if name in parameters or not lines or max(lines) < value.lineno:
            names[name] = held
    site = reading.site
    earlier = Site(site.code, site.instruction, value.lineno, names, site.globals, site.caller)
    return SourceReading(earlier, reading.source, value)


def _argument_given_for(
    site: Site, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> tuple[SourceReading, ast.expr] | None:
    """What a caller gave for a parameter."""
    if site.caller is None or (reading := read(site.caller)) is None or not isinstance(reading.node, ast.Call):
        return None
    for keyword in reading.node.keywords:
        if keyword.arg == name:
            return reading, keyword.value
    parameters = [one.arg for one in function.args.args]
    if name not in parameters:
        return None
    position = parameters.index(name) - (parameters[:1] == ["self"])
    given = reading.node.args[position : position + 1]
    return (reading, given[0]) if position >= 0 and given and not isinstance(given[0], ast.Starred) else None

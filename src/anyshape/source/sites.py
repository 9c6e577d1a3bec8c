"""A site: where the model's own code stands at a moment, with the names that it knows there, and what it says.

Of the expression at a site only names, attributes, numbers and arithmetic on them are read; nothing is called.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from anyshape.source.spans import Span, frames_of_model, span_of_code, steps_of_error
from anyshape.source.syntax import Source, source_of


@dataclass(frozen=True)
class Site:
    """One instruction of the model's code, and the values of its names when it ran."""

    code: CodeType
    instruction: int
    line: int
    names: Mapping[str, Any] = field(compare=False, repr=False)
    globals: Mapping[str, Any] = field(compare=False, repr=False)
    caller: Site | None = field(default=None, compare=False, repr=False)
    """The next place of the model's further out."""

    @property
    def span(self) -> Span:
        return span_of_code(self.code, self.instruction, self.line)


def site_of_error(error: BaseException) -> Site | None:
    """The innermost place of the model's that an exception passed through."""
    found: Site | None = None
    for step in steps_of_error(error):
        found = Site(step.tb_frame.f_code, step.tb_lasti, step.tb_lineno, {}, step.tb_frame.f_globals, found)
    return found


def site_of_stack(frame: FrameType | None) -> Site | None:
    """The innermost place of the model's, seen from `frame` outwards, with those further out behind it."""
    site: Site | None = None
    for one in reversed(list(frames_of_model(frame))):
        site = Site(one.f_code, one.f_lasti, one.f_lineno, dict(one.f_locals), one.f_globals, site)
    return site


# ---- the expression at a site


UNKNOWN = object()


@dataclass(frozen=True, eq=False)
class SourceReading:
    """The expression that runs at a site."""

    site: Site
    source: Source
    node: ast.AST

    def value_of(self, node: ast.AST) -> Any:
        """The value of a simple expression; UNKNOWN where it would take a call."""
        try:
            return _value_at(node, self.site)
        except Exception:  # noqa: BLE001  the user's own attributes and numbers
            return UNKNOWN

    def text_of(self, node: ast.AST) -> str:
        return self.source.text_of(node)

    def numbers(self) -> Iterator[tuple[ast.expr, int]]:
        """The largest parts of the expression that are plain whole numbers, from left to right."""
        return _numbers_below(self.node, self)


def read(site: Site) -> SourceReading | None:
    """The source at a site; None for code without source."""
    source = source_of(site.code.co_filename)
    node = source.node_at(site.code, site.instruction) if source is not None else None
    return None if source is None or node is None else SourceReading(site, source, node)


def is_decision(site: Site) -> bool:
    """Whether the code chooses between paths here."""
    reading = read(site)
    node = reading.node if reading is not None else None
    while reading is not None and isinstance(node, ast.expr):
        parent = reading.source.parent_of(node)
        if getattr(parent, "test", None) is node or isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp)):
            return True
        node = parent if isinstance(parent, (ast.UnaryOp, ast.BoolOp, ast.Compare)) else None
    return isinstance(node, (ast.If, ast.While, ast.Assert))


_TELLING = {"print", "log", "debug", "info", "warning", "warn", "error", "critical", "exception"}
"""Words in the names of functions that tell people something."""


def is_told(site: Site) -> bool:
    """Whether what is computed here, or what a caller computes, is printed or logged, or is an assertion's message."""
    place: Site | None = site
    while place is not None:
        reading = read(place)
        if reading is not None and _is_message(reading):
            return True
        place = place.caller
    return False


def _is_message(reading: SourceReading) -> bool:
    node, parent = reading.node, reading.source.parent_of(reading.node)
    while not isinstance(node, (ast.stmt, ast.NamedExpr)) and parent is not None:
        if isinstance(parent, ast.Assert):
            return parent.msg is node
        if isinstance(parent, ast.Expr) and isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            return not _TELLING.isdisjoint(name.split("_"))
        node, parent = parent, reading.source.parent_of(parent)
    return False


def span_of_expression(reading: SourceReading) -> Span:
    """Where an expression stands that is not the one of its site."""
    change = reading.source.change(reading.node, "")
    place = reading.site.span
    return Span(place.path, change.line, change.column, change.end_line, change.end_column, place.function)


def _numbers_below(node: ast.AST, reading: SourceReading) -> Iterator[tuple[ast.expr, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            value = UNKNOWN if isinstance(child, (ast.Tuple, ast.List)) else reading.value_of(child)
            if type(value) is int or (type(value) is float and value.is_integer()):
                yield child, int(value)
                continue
        yield from _numbers_below(child, reading)


# ---- values without calls


def _value_at(node: ast.AST, site: Site) -> Any:
    read = next((read for kinds, read in _READERS if isinstance(node, kinds)), None)
    return UNKNOWN if read is None else read(node, site)


_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.USub: operator.neg,
}


def _value_of_arithmetic(node: Any, site: Site) -> Any:
    operands = (node.operand,) if isinstance(node, ast.UnaryOp) else (node.left, node.right)
    calculate = _ARITHMETIC.get(type(node.op))
    return UNKNOWN if calculate is None else calculate(*(_whole_number(one, site) for one in operands))


def _value_of_entry(node: Any, site: Site) -> Any:
    """An entry of a tuple or a dict is read, of a tensor is not."""
    owner = _known_value(node.value, site)
    return owner[_known_value(node.slice, site)] if isinstance(owner, (tuple, list, dict)) else UNKNOWN


def _value_of_name(name: str, site: Site) -> Any:
    place: Site | None = site
    while place is not None:
        if name in place.names:
            return place.names[name]
        if not _is_inner(place):
            break
        place = place.caller
    return site.globals.get(name, UNKNOWN)


def _is_inner(site: Site) -> bool:
    """A comprehension or a lambda: it runs inside the function that surrounds it."""
    return site.code.co_name.startswith("<")


def names_at(site: Site) -> dict[str, Any]:
    """Every name that code at this place could use, the nearest first."""
    names = dict(site.names)
    while _is_inner(site) and site.caller is not None and site.caller.code.co_filename == site.code.co_filename:
        site = site.caller
        names = {**names, **{name: value for name, value in site.names.items() if name not in names}}
    return {name: value for name, value in names.items() if name.isidentifier()}


def _known_value(node: ast.AST, site: Site) -> Any:
    value = _value_at(node, site)
    if value is UNKNOWN:
        raise LookupError
    return value


def _whole_number(node: ast.AST, site: Site) -> Any:
    value = _known_value(node, site)
    if type(value) is not int:
        raise TypeError
    return value


_READERS: tuple[tuple[Any, Callable[[Any, Site], Any]], ...] = (
    (ast.Constant, lambda node, _: node.value),
    (ast.Name, lambda node, site: _value_of_name(node.id, site)),
    (ast.Attribute, lambda node, site: getattr(_known_value(node.value, site), node.attr)),
    ((ast.Tuple, ast.List), lambda node, site: [_known_value(one, site) for one in node.elts]),
    (ast.Subscript, _value_of_entry),
    ((ast.UnaryOp, ast.BinOp), _value_of_arithmetic),
)

"""The user's source as a tree: from an instruction to its expression, from an expression to a change of the text."""

from __future__ import annotations

import ast
import itertools
import linecache
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType

from anyshape.source.edits import Change
from anyshape.source.spans import characters_before, extent_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Extent = tuple[int, int, int, int]
"""First line, first byte, last line, byte after the last: in the order of the text."""


def source_of(filename: str) -> Source | None:
    """A file's source, or a notebook cell's; None where there is none, or where it does not parse."""
    text = _text_in_use(filename)
    return None if text is None else _source_of_text(filename, text)


def _text_in_use(filename: str) -> str | None:
    entry = linecache.cache.get(filename)
    # without a time of change it is no copy of a file: a notebook's cell, or an edit that is being tried
    if entry is not None and len(entry) == 4 and entry[1] is None:
        return "".join(entry[2])
    if not Path(filename).is_file():
        return "".join(linecache.getlines(filename)) or None
    try:
        with tokenize.open(filename) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=64)
def _source_of_text(filename: str, text: str) -> Source | None:
    try:
        return Source(filename, text, ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, eq=False)
class Source:
    """A text and its tree; the tree's nodes are what its methods take and give."""

    filename: str
    text: str
    tree: ast.Module

    def node_at(self, code: CodeType, instruction: int) -> ast.AST | None:
        """The expression that an instruction (`f_lasti`, `tb_lasti`) computes, or the statement that it belongs to."""
        line, end_line, column, end_column = extent_of(code, instruction)
        if line is None or end_line is None or column is None or end_column is None:
            return None
        extent = (line, column, end_line, end_column)
        return self._extents.get(extent) or self._ending_with(extent)

    def _ending_with(self, extent: _Extent) -> ast.expr | None:
        """A call in a chain over several lines: its instruction begins at the method's own name, not at the chain's."""
        around = [
            node
            for found, node in self._extents.items()
            if isinstance(node, ast.expr) and found[2:] == extent[2:] and found[:2] <= extent[:2]
        ]
        return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)

    def parent_of(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that a node stands in, or is."""
        return next((one for one in self._upwards(node) if isinstance(one, ast.stmt)), None)

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function in whose body a node stands; defaults and decorators belong to what is around."""
        for inner, outer in itertools.pairwise(self._upwards(node)):
            if isinstance(outer, FunctionNode) and _is_in_body(outer, inner):
                return outer
        return None

    def assignments_of(self, function: ast.AST, name: str) -> list[ast.expr]:
        """The expressions that a local name is assigned in a function, in the order of the text."""
        found = []
        for node in _own_nodes(function):
            for target, value in _bindings(node):
                found += [one for bound, one in _names_with_values(target, value) if bound == name]
        return found

    def text_of(self, node: ast.AST) -> str:
        (line, column), (end_line, end_column) = self._place(node)
        lines = self._lines[line - 1 : end_line]
        lines[-1] = lines[-1][: end_column - 1]
        lines[0] = lines[0][column - 1 :]
        return "\n".join(lines)

    def change(self, node: ast.AST, new_text: str) -> Change:
        """The replacement of a node's text."""
        (line, column), (end_line, end_column) = self._place(node)
        return Change(line, column, end_line, end_column, self.text_of(node), new_text)

    def _place(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        """Lines and columns in characters, from 1: the parser counts bytes, from 0."""
        extent = _extent(node)
        if extent is None:
            raise ValueError(f"{type(node).__name__} has no place in the text")
        line, column, end_line, end_column = extent
        return (line, self._column(line, column)), (end_line, self._column(end_line, end_column))

    def _column(self, line: int, offset: int) -> int:
        return characters_before(self._lines[line - 1], offset) + 1

    def _upwards(self, node: ast.AST) -> Iterator[ast.AST]:
        outer: ast.AST | None = node
        while outer is not None:
            yield outer
            outer = self._parents.get(outer)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def _extents(self) -> dict[_Extent, ast.AST]:
        """The outermost node of each extent, but an expression rather than the statement that is nothing else."""
        found: dict[_Extent, ast.AST] = {}
        for node in ast.walk(self.tree):
            extent = _extent(node)
            if extent is not None and not isinstance(found.get(extent), ast.expr):
                found[extent] = node
        return found


def _extent(node: ast.AST) -> _Extent | None:
    line, end_line = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if line is None or end_line is None:
        return None
    return line, node.col_offset, end_line, node.end_col_offset  # type: ignore[attr-defined]


# ---- functions and their names


def _is_in_body(function: FunctionNode, node: ast.AST) -> bool:
    return node is function.body if isinstance(function, ast.Lambda) else node in function.body


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body in the order of the text, without those of functions and classes in it."""
    body = getattr(function, "body", [])
    waiting: list[ast.AST] = list(reversed(body)) if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value


def _names_with_values(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names and their values; of `a, b = 4, 5` each with its own, of `a, b = x.shape` both with the whole."""
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        for one, its in zip(target.elts, _shares(target.elts, value), strict=True):
            yield from _names_with_values(one, its)


def _shares(targets: list[ast.expr], value: ast.expr) -> list[ast.expr]:
    """What each of some targets gets of a value that is written out; the whole where that cannot be told."""
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    star = next((place for place, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
    behind = 0 if star is None else len(targets) - star - 1
    fits = len(parts) == len(targets) if star is None else len(parts) >= len(targets) - 1
    if not parts or not fits or any(isinstance(one, ast.Starred) for one in parts):
        return [value] * len(targets)
    return parts if star is None else [*parts[:star], value, *parts[len(parts) - behind :]]

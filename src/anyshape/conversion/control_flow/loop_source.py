"""Which names of a loop's body matter: those that a step reads from the one before, and those read after the loop.

It is told from the text alone. Where the text does not tell, a name matters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

Statements = Sequence[ast.stmt]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Names:
    """The names of a loop's body that are local to its function."""

    state: tuple[str, ...]
    """May be read in a step as the step before has left them, or be written in place."""
    last: tuple[str, ...]
    """Are bound by the loop and read after it."""


class _First(Enum):
    """What happens to a name first."""

    READ = "read"
    WRITTEN = "written"
    NOTHING = "nothing"


def names_of(loop: ast.For, function: ast.FunctionDef) -> Names:
    own = _locals_of(function)
    targets = _stored(loop.target)
    used = {name for statement in loop.body for name in _all_names(statement)} & own
    bound = ({name for statement in loop.body for name in _stored(statement)} | targets) & own
    last = {name for name in bound if _is_live_after(loop, function, name)}
    first = {name: _first(loop.body, name) for name in used - targets}
    state = {
        name
        for name, what in first.items()
        if what is _First.READ or (what is _First.NOTHING and (name in last or name not in bound))
    }
    return Names(tuple(sorted(state)), tuple(sorted(last)))


# ---- what happens first


def _first(statements: Statements, name: str) -> _First:
    for statement in statements:
        found = _first_in(statement, name)
        if found is not _First.NOTHING:
            return found
    return _First.NOTHING


def _first_in(statement: ast.stmt, name: str) -> _First:  # noqa: PLR0911  one for each kind of statement
    if name not in _all_names(statement):
        return _First.NOTHING
    if isinstance(statement, ast.If):
        if name in _loaded(statement.test):
            return _First.READ
        return _either(_first(statement.body, name), _first(statement.orelse, name))
    if isinstance(statement, ast.For | ast.While):
        return _first_in_loop(statement, name)
    if isinstance(statement, ast.With):
        if any(name in _loaded(item) for item in statement.items):
            return _First.READ
        written = any(name in _stored(item) for item in statement.items)
        return _First.WRITTEN if written else _first(statement.body, name)
    if name in _loaded(statement):
        return _First.READ
    # a `try` or a `match` may write it or not
    return _First.NOTHING if isinstance(statement, ast.Try | ast.Match) else _First.WRITTEN


def _first_in_loop(loop: ast.For | ast.While, name: str) -> _First:
    """A loop may do nothing, so that it never surely writes."""
    head = loop.iter if isinstance(loop, ast.For) else loop.test
    if name in _loaded(head):
        return _First.READ
    is_target = isinstance(loop, ast.For) and name in _stored(loop.target)
    body = _First.NOTHING if is_target else _first(loop.body, name)
    return _First.READ if _First.READ in (body, _first(loop.orelse, name)) else _First.NOTHING


def _either(left: _First, right: _First) -> _First:
    if _First.READ in (left, right):
        return _First.READ
    return left if left is right else _First.NOTHING


# ---- what happens afterwards


def _is_live_after(loop: ast.For, function: ast.FunctionDef, name: str) -> bool:
    if _first(loop.orelse, name) is _First.READ:
        return True
    for following, is_sure in _continuations(loop, function):
        found = _first(following, name)
        if found is _First.READ:
            return True
        if found is _First.WRITTEN and is_sure:
            return False
    return False


def _continuations(statement: ast.stmt, function: ast.FunctionDef) -> Iterator[tuple[Statements, bool]]:
    """The statements that run after one, block by block outwards, and whether each block surely runs."""
    for parent, block in _blocks_around(statement, function):
        yield block, True
        if isinstance(parent, ast.For | ast.While):
            yield (ast.Expr(parent.test), *parent.body) if isinstance(parent, ast.While) else parent.body, False
            yield parent.orelse, False
        elif isinstance(parent, ast.Try):
            for handler in parent.handlers:
                yield handler.body, False
            yield parent.orelse, False
            yield parent.finalbody, False


def _blocks_around(statement: ast.stmt, function: ast.FunctionDef) -> Iterator[tuple[ast.AST, Statements]]:
    """Each statement around one, innermost first, and what follows in its block."""
    found: list[tuple[ast.AST, Statements]] = []
    node: ast.AST = function
    while node is not statement:
        for block in _blocks_of(node):
            place = next(
                (at for at, one in enumerate(block) if any(statement is inner for inner in ast.walk(one))), None
            )
            if place is not None:
                found.append((node, block[place + 1 :]))
                node = block[place]
                break
        else:
            break
    yield from reversed(found)


def _blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


# ---- names


def _locals_of(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    own = {one.arg for one in every if one is not None}
    declared: set[str] = set()
    for statement in function.body:
        own |= _stored(statement)
        declared |= {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}
    # the compiler gives names such as `__h` another form
    return {name for name in own - declared if not name.startswith("__")}


def _stored(node: ast.AST) -> set[str]:
    """The names that a node binds in the function around it."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            found.add(one.id)
        elif isinstance(one, _NAMED) and one.name:
            found.add(one.name)
        elif isinstance(one, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        if not isinstance(one, (*_SCOPES, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(one)
    return found


def _loaded(node: ast.AST) -> set[str]:
    """The names that a node reads, also within functions that it makes."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    added = {
        one.target.id for one in ast.walk(node) if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
    }
    return found | added


def _all_names(node: ast.AST) -> set[str]:
    return _loaded(node) | _stored(node)

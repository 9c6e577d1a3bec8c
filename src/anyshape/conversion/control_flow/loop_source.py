"""The model's source changed in memory: its loops ask a helper what they go over.

    for t in range(n):             loop = __anyshape_loop__(range(n), ...)
        h = cell(x[:, t], h)       for t in loop:
                                       if "h" in loop.given: h = loop.given["h"]
                                       try:
                                           h = cell(x[:, t], h)
                                       except:
                                           if not loop.forgives(): raise
                                   else:
                                       if "h" in loop.given: h = loop.given["h"]

A `while` does so, too: in each of its turns it is told whether to run its test or its body. `break` asks whether it
shall be left.

Every node keeps its place in the text, so that messages point to the lines of the file. Which names of a body matter is
told from the text alone; where it does not tell, a name matters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class Names:
    """The names of a loop's body that are local to its function."""

    state: tuple[str, ...]
    """May be read in a step as the step before has left them, or be written in place."""
    last: tuple[str, ...]
    """Are bound by the loop and read after it."""


LOOP, WHILE, EACH, BUILTIN = (f"__anyshape_{name}__" for name in ("loop", "while", "each", "builtin"))
"""The helpers: for each kind of statement, for a comprehension, and for a call of one of these builtins."""
BUILTINS = ("range", "enumerate", "zip", "reversed", "list", "tuple", "sum", "len")
_ITEMS = "__anyshape_items__"
_TURN = "__anyshape_turn__"
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


def rewritten_tree(text: str) -> ast.Module:
    tree = ast.parse(text)
    return ast.fix_missing_locations(_Rewriter().visit(tree))  # type: ignore[no-any-return]


class _Rewriter(ast.NodeTransformer):
    """Changes the loops of functions; what runs when a file is imported stays as it is."""

    def __init__(self) -> None:
        self._names: dict[AnyLoop, Names] | None = None
        """For each loop of the function in work; None outside of functions."""
        self._around: list[tuple[str | None, AnyLoop]] = []
        """The loops around, with the variables that hold them; None for one that was not changed."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        kept = self._names, self._around
        # before anything is changed: it is told from the text
        self._names = {loop: names_of(loop, node) for loop in _loops_of(node)}
        self._around = []
        node.body = [statement for one in node.body for statement in _as_list(self.visit(one))]
        self._names, self._around = kept
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept, self._names = self._names, None
        self.generic_visit(node)
        self._names = kept
        return node

    # ---- statements

    def visit_For(self, node: AnyLoop) -> Any:
        names = (self._names or {}).get(node)
        variable = f"__anyshape_loop_{len(self._around)}__" if names is not None else None
        head = "iter" if isinstance(node, ast.For) else "test"
        text = ast.unparse(getattr(node, head))
        setattr(node, head, self.visit(getattr(node, head)))
        self._around.append((variable, node))
        node.body = [statement for one in node.body for statement in _as_list(self.visit(one))]
        self._around.pop()
        node.orelse = [statement for one in node.orelse for statement in _as_list(self.visit(one))]
        if names is None or variable is None:
            return node
        return _loop_that_asks(node, variable, text, names)

    def visit_While(self, node: ast.While) -> Any:
        return self.visit_For(node)

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        for variable, _ in reversed(self._around):
            if variable is not None:
                value = node.value or ast.Constant(None)
                node.value = ast.copy_location(_call_on(variable, "left", value), node)
        return node

    def visit_Break(self, node: ast.Break) -> Any:
        """`if loop.leaves(): break`, else the next turn; whether an `else` runs cannot be left open."""
        variable, loop = self._around[-1] if self._around else (None, None)
        if variable is None or loop is None:
            return node
        if loop.orelse:
            return [ast.copy_location(ast.Expr(_call_on(variable, "left", ast.Constant(None))), node), node]
        left = ast.If(_call_on(variable, "leaves"), [node], [])
        return [ast.copy_location(one, node) for one in (left, ast.Continue())]

    # ---- expressions

    def visit_ListComp(self, node: Any) -> Any:
        """`each(ITER, lambda items: [EXPR for TARGET in items if TEST])`; a second loop becomes one in it."""
        if self._names is None or not _is_movable(node):
            self.generic_visit(node)
            return node
        first, *others = node.generators
        text = ast.unparse(first.iter)
        if others:
            node.elt = ast.copy_location(ast.ListComp(node.elt, others), node)
            node.generators = [first]
        self.generic_visit(node)
        items, first.iter = first.iter, ast.copy_location(ast.Name(_ITEMS, ast.Load()), node)
        one = ast.arguments(posonlyargs=[], args=[ast.arg(_ITEMS)], kwonlyargs=[], kw_defaults=[], defaults=[])
        told = (ast.Constant(text), ast.Constant(node.lineno), ast.Constant(bool(others)))
        call = _call(EACH, items, ast.Lambda(one, node), *told)
        return ast.copy_location(call, node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self.visit_ListComp(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if self._names is not None and isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            node.func = ast.copy_location(_call(BUILTIN, ast.Constant(node.func.id), node.func), node.func)
        return node


def _as_list(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


AnyLoop = ast.For | ast.While


def _loops_of(function: ast.FunctionDef) -> list[AnyLoop]:
    """The loops of a function that run from the first to the last item without a pause; not those of inner ones."""
    found: list[AnyLoop] = []
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, AnyLoop) and not any(isinstance(inner, _SUSPENDING) for inner in ast.walk(node)):
            found.append(node)
        waiting += ast.iter_child_nodes(node)
    return found


def _is_movable(node: Any) -> bool:
    """Whether a comprehension can be moved into a function of its own."""
    immovable = (*_SUSPENDING, ast.NamedExpr)
    first, *others = node.generators
    if any(one.is_async for one in node.generators):
        return False
    inner = [one for part in (node.elt, first.target, *first.ifs, *others) for one in ast.walk(part)]
    names = {one.id for one in inner if isinstance(one, ast.Name)}
    return not names & {"super", "__class__", "locals"} and not any(isinstance(one, immovable) for one in inner)


# ---- building


def _loop_that_asks(loop: AnyLoop, variable: str, text: str, names: Names) -> list[ast.stmt]:
    node = loop if isinstance(loop, ast.For) else _turns_of(loop, variable)
    arguments = (ast.Constant(text), ast.Constant(node.lineno), _strings(names.state), _strings(names.last))
    head = [node.iter] if isinstance(loop, ast.For) else []
    helper = LOOP if isinstance(loop, ast.For) else WHILE
    made = ast.Assign([ast.Name(variable, ast.Store())], _call(helper, *head, *arguments))
    ast.copy_location(made, node.iter)
    ast.copy_location(made.value, node.iter)
    fails = ast.UnaryOp(ast.Not(), _call_on(variable, "forgives"))
    forgiving = ast.If(fails, [ast.Raise(exc=None, cause=None)], [])
    attempt = ast.Try(node.body, [ast.ExceptHandler(None, None, [forgiving])], [], [])
    node.iter = ast.copy_location(ast.Name(variable, ast.Load()), node.iter)
    # not the loop's own targets: they have been bound
    node.body = [*(_statement_that_binds(variable, name) for name in names.state), attempt]
    every = sorted({*names.state, *names.last})
    node.orelse = [*(_statement_that_binds(variable, name) for name in every), *node.orelse]
    for statement in (*node.body, *node.orelse):
        if not hasattr(statement, "lineno"):
            ast.copy_location(statement, node)
    return [made, node]


def _turns_of(loop: ast.While, variable: str) -> ast.For:
    """`for turn in loop: if turn.is_test: loop.test(TEST) else: BODY`."""
    turn = ast.Name(_TURN, ast.Load())
    test = ast.copy_location(ast.Expr(_call_on(variable, "test", loop.test)), loop.test)
    ast.copy_location(test.value, loop.test)
    body: list[ast.stmt] = [ast.copy_location(ast.If(turn, [test], loop.body), loop)]
    target = ast.copy_location(ast.Name(_TURN, ast.Store()), loop)
    return ast.copy_location(ast.For(target, loop.test, body, loop.orelse), loop)


def _strings(values: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(value) for value in values], ast.Load())


def _statement_that_binds(variable: str, name: str) -> ast.stmt:
    """`if "h" in loop.given: h = loop.given["h"]`."""
    is_given = ast.Compare(ast.Constant(name), [ast.In()], [_given_to(variable)])
    value = ast.Subscript(_given_to(variable), ast.Constant(name), ast.Load())
    return ast.If(is_given, [ast.Assign([ast.Name(name, ast.Store())], value)], [])


def _given_to(variable: str) -> ast.expr:
    return ast.Attribute(ast.Name(variable, ast.Load()), "given", ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*arguments], [])


def _call_on(variable: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(variable, ast.Load()), method, ast.Load()), [*arguments], [])


# ---- which names of a body matter: read from the step before, or after the loop

Statements = Sequence[ast.stmt]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _First(Enum):
    """What happens to a name first."""

    READ = "read"
    WRITTEN = "written"
    NOTHING = "nothing"


def names_of(loop: AnyLoop, function: ast.FunctionDef) -> Names:
    own = _locals_of(function)
    targets = _names_bound_by(loop.target) if isinstance(loop, ast.For) else set()
    body = loop.body if isinstance(loop, ast.For) else [ast.Expr(loop.test), *loop.body]
    used = {name for statement in body for name in _all_names(statement)} & own
    bound = ({name for statement in body for name in _names_bound_by(statement)} | targets) & own
    last = {name for name in bound if _is_live_after(loop, function, name)}
    first = {name: _first_use(body, name) for name in used - targets}
    stays = last | (first.keys() - bound)
    state = {name for name, what in first.items() if what is _First.READ or (what is _First.NOTHING and name in stays)}
    if any(isinstance(inner, ast.Break | ast.Continue) for inner in ast.walk(loop)):
        state |= last - targets  # a step may end before it binds them
    return Names(tuple(sorted(state)), tuple(sorted(last)))


# ---- what happens first


def _first_use(statements: Statements, name: str) -> _First:
    for statement in statements:
        found = _first_use_in(statement, name)
        if found is not _First.NOTHING:
            return found
    return _First.NOTHING


def _first_use_in(statement: ast.stmt, name: str) -> _First:  # noqa: PLR0911  one for each kind of statement
    if name not in _all_names(statement):
        return _First.NOTHING
    if isinstance(statement, ast.If):
        if name in _names_read_by(statement.test):
            return _First.READ
        return _first_of_both(_first_use(statement.body, name), _first_use(statement.orelse, name))
    if isinstance(statement, ast.For | ast.While):
        return _first_use_in_loop(statement, name)
    if isinstance(statement, ast.With):
        if any(name in _names_read_by(item) for item in statement.items):
            return _First.READ
        written = any(name in _names_bound_by(item) for item in statement.items)
        return _First.WRITTEN if written else _first_use(statement.body, name)
    if name in _names_read_by(statement):
        return _First.READ
    # a `try` or a `match` may write it or not
    return _First.NOTHING if isinstance(statement, ast.Try | ast.Match) else _First.WRITTEN


def _first_use_in_loop(loop: ast.For | ast.While, name: str) -> _First:
    """A loop may do nothing, so that it never surely writes."""
    head = loop.iter if isinstance(loop, ast.For) else loop.test
    if name in _names_read_by(head):
        return _First.READ
    is_target = isinstance(loop, ast.For) and name in _names_bound_by(loop.target)
    body = _First.NOTHING if is_target else _first_use(loop.body, name)
    return _First.READ if _First.READ in (body, _first_use(loop.orelse, name)) else _First.NOTHING


def _first_of_both(left: _First, right: _First) -> _First:
    if _First.READ in (left, right):
        return _First.READ
    return left if left is right else _First.NOTHING


# ---- what happens afterwards


def _is_live_after(loop: AnyLoop, function: ast.FunctionDef, name: str) -> bool:
    if _first_use(loop.orelse, name) is _First.READ:
        return True
    for following, is_sure in _continuations(loop, function):
        found = _first_use(following, name)
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
            place = next((at for at, one in enumerate(block) if statement in ast.walk(one)), None)
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
        own |= _names_bound_by(statement)
        declared |= {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}
    # the compiler gives names such as `__h` another form
    return {name for name in own - declared if not name.startswith("__")}


def _names_bound_by(node: ast.AST) -> set[str]:
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


def _names_read_by(node: ast.AST) -> set[str]:
    """The names that a node reads, also within functions that it makes."""
    every = [*ast.walk(node)]
    read = [one for one in every if isinstance(getattr(one, "ctx", None), ast.Load)]
    read += [one.target for one in every if isinstance(one, ast.AugAssign)]
    return {one.id for one in read if isinstance(one, ast.Name)}


def _all_names(node: ast.AST) -> set[str]:
    return _names_read_by(node) | _names_bound_by(node)

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

Every node keeps its place in the text, so that messages point to the lines of the file.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from anyshape.conversion.control_flow.loop_source import Names, names_of

LOOP, EACH, BUILTIN = "__anyshape_loop__", "__anyshape_each__", "__anyshape_builtin__"
"""The helpers: for a statement, for a comprehension, and for a call of one of these builtins."""
BUILTINS = ("range", "enumerate", "zip", "reversed", "list", "tuple", "sum", "len")
_ITEMS = "__anyshape_items__"
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


def rewritten_tree(text: str) -> ast.Module:
    tree = ast.parse(text)
    return ast.fix_missing_locations(_Rewriter().visit(tree))  # type: ignore[no-any-return]


class _Rewriter(ast.NodeTransformer):
    """Changes the loops of functions; what runs when a file is imported stays as it is."""

    def __init__(self) -> None:
        self._names: dict[ast.For, Names] | None = None
        """For each loop of the function in work; None outside of functions."""
        self._around: list[str | None] = []
        """The loops around, by the variables that hold them; None for one that was not changed."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        kept = self._names, self._around
        # before anything is changed: it is told from the text
        self._names = {loop: names_of(loop, node) for loop in _loops_of(node)}
        self._around = []
        node.body = [statement for one in node.body for statement in _listed(self.visit(one))]
        self._names, self._around = kept
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept, self._names = self._names, None
        self.generic_visit(node)
        self._names = kept
        return node

    # ---- statements

    def visit_For(self, node: ast.For) -> Any:
        names = (self._names or {}).get(node)
        variable = f"__anyshape_loop_{len(self._around)}__" if names is not None else None
        text = ast.unparse(node.iter)
        node.iter = self.visit(node.iter)
        self._around.append(variable)
        node.body = [statement for one in node.body for statement in _listed(self.visit(one))]
        self._around.pop()
        node.orelse = [statement for one in node.orelse for statement in _listed(self.visit(one))]
        if names is None or variable is None:
            return node
        return _asking(node, variable, text, names)

    def visit_While(self, node: ast.While) -> Any:
        self._around.append(None)
        self.generic_visit(node)
        self._around.pop()
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        for variable in reversed(self._around):
            if variable is not None:
                value = node.value or ast.Constant(None)
                node.value = ast.copy_location(_call_on(variable, "left", value), node)
        return node

    def visit_Break(self, node: ast.Break) -> Any:
        variable = self._around[-1] if self._around else None
        if variable is None:
            return node
        return [ast.copy_location(ast.Expr(_call_on(variable, "left", ast.Constant(None))), node), node]

    # ---- expressions

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node)

    def _comprehension(self, node: Any) -> Any:
        """`each(ITER, lambda items: [EXPR for TARGET in items])`."""
        text = ast.unparse(node.generators[0].iter)
        self.generic_visit(node)
        if self._names is None or not _is_simple(node):
            return node
        first = node.generators[0]
        items, first.iter = first.iter, ast.copy_location(ast.Name(_ITEMS, ast.Load()), node)
        one = ast.arguments(posonlyargs=[], args=[ast.arg(_ITEMS)], kwonlyargs=[], kw_defaults=[], defaults=[])
        call = _call(EACH, items, ast.Lambda(one, node), ast.Constant(text), ast.Constant(node.lineno))
        return ast.copy_location(call, node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if self._names is not None and isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            node.func = ast.copy_location(_call(BUILTIN, ast.Constant(node.func.id), node.func), node.func)
        return node


def _listed(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _loops_of(function: ast.FunctionDef) -> list[ast.For]:
    """The loops of a function that run from the first to the last item without a pause; not those of inner ones."""
    found: list[ast.For] = []
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.For) and not any(isinstance(inner, _SUSPENDING) for inner in ast.walk(node)):
            found.append(node)
        waiting += ast.iter_child_nodes(node)
    return found


def _is_simple(node: Any) -> bool:
    """Whether a comprehension has one loop and no filter, and can be moved into a function of its own."""
    first = node.generators[0]
    if len(node.generators) > 1 or first.ifs or first.is_async:
        return False
    immovable = (*_SUSPENDING, ast.NamedExpr)
    inner = [*ast.walk(node.elt), *ast.walk(first.target)]
    names = {one.id for one in inner if isinstance(one, ast.Name)}
    return not names & {"super", "__class__", "locals"} and not any(isinstance(one, immovable) for one in inner)


# ---- building


def _asking(node: ast.For, variable: str, text: str, names: Names) -> list[ast.stmt]:
    arguments = (ast.Constant(text), ast.Constant(node.lineno), _strings(names.state), _strings(names.last))
    made = ast.Assign([ast.Name(variable, ast.Store())], _call(LOOP, node.iter, *arguments))
    ast.copy_location(made, node.iter)
    ast.copy_location(made.value, node.iter)
    forgiving = ast.If(
        ast.UnaryOp(ast.Not(), _call_on(variable, "forgives")), [ast.Raise(exc=None, cause=None)], []
    )  # fmt: skip
    attempt = ast.Try(node.body, [ast.ExceptHandler(None, None, [forgiving])], [], [])
    node.iter = ast.copy_location(ast.Name(variable, ast.Load()), node.iter)
    # not the loop's own targets: they have been bound
    node.body = [*(_binding(variable, name) for name in names.state), attempt]
    node.orelse = [*(_binding(variable, name) for name in sorted({*names.state, *names.last})), *node.orelse]
    for statement in (*node.body, *node.orelse):
        if not hasattr(statement, "lineno"):
            ast.copy_location(statement, node)
    return [made, node]


def _strings(values: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(value) for value in values], ast.Load())


def _binding(variable: str, name: str) -> ast.stmt:
    """`if "h" in loop.given: h = loop.given["h"]`."""
    is_given = ast.Compare(ast.Constant(name), [ast.In()], [_given(variable)])
    value = ast.Subscript(_given(variable), ast.Constant(name), ast.Load())
    return ast.If(is_given, [ast.Assign([ast.Name(name, ast.Store())], value)], [])


def _given(variable: str) -> ast.expr:
    return ast.Attribute(ast.Name(variable, ast.Load()), "given", ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*arguments], [])


def _call_on(variable: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(variable, ast.Load()), method, ast.Load()), [*arguments], [])

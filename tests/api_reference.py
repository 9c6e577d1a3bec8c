"""The reference of the public names, made from their signatures and docstrings, for `docs/api.md`."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyshape
from anyshape.model.proposal.given_calls import SeenCalls
from anyshape.results.verification import Verification

DOCS = Path(__file__).parent.parent / "docs"
PUBLIC = {name: getattr(anyshape, name) for name in anyshape.__all__}
OTHER_PAGES = {
    "load": "loading.md",
    "translation": "custom_operators.md#a-translation",
    "watch": "examples.md#calls-that-your-own-code-makes",
}
"""Of names that have no page called like them."""


def reference() -> str:
    functions = {name: one for name, one in PUBLIC.items() if inspect.isfunction(one)}
    classes = {name: one for name, one in PUBLIC.items() if inspect.isclass(one)}
    errors = {name: one for name, one in classes.items() if issubclass(one, Exception)}
    values = {name: one for name, one in classes.items() if name not in errors} | _returned(functions)
    others = {name: one for name, one in PUBLIC.items() if name not in functions | classes}
    groups = {"Functions": functions, "Modules": others, "What they return": values, "What they raise": errors}
    return "\n".join(f"## {title}\n\n{_entries(group)}" for title, group in groups.items())


def _returned(functions: dict[str, Any]) -> dict[str, type]:
    """Classes that functions give back beside the public ones: read, not made, by users."""
    named = (vars(inspect.getmodule(one)).get(inspect.signature(one).return_annotation) for one in functions.values())
    found = {one.__name__: one for one in (*named, SeenCalls, Verification) if inspect.isclass(one)}
    return {name: one for name, one in sorted(found.items()) if name not in PUBLIC}


def _entries(group: dict[str, Any]) -> str:
    return "\n".join("\n".join(_entry(name, one)) for name, one in group.items())


def _entry(name: str, one: Any) -> Iterator[str]:
    yield f"### {'anyshape.' if name in PUBLIC else ''}{name}\n"
    if inspect.isfunction(one):
        yield f"```py\n{_signature(f'anyshape.{name}', one)}\n```\n"
    page = OTHER_PAGES.get(name, f"{name}.md")
    if (DOCS / page.partition("#")[0]).exists():
        yield f"Page: [{_title(page)}]({page})\n"
    yield _as_markdown(inspect.getdoc(one) or "")
    if inspect.ismodule(one):
        for function in (getattr(one, name) for name in one.__all__):
            yield f"```py\n{_signature(f'{one.__name__}.{function.__name__}', function)}\n```\n"
            yield _as_markdown(inspect.getdoc(function) or "")
    elif inspect.isclass(one) and (rows := dict(_members(one))):
        yield "| | |\n|---|---|"
        yield "\n".join(f"| {_code(member)} | {meaning} |" for member, meaning in rows.items()) + "\n"


def _title(page: str) -> str:
    text = (DOCS / page.partition("#")[0]).read_text(encoding="utf-8")
    return text.partition("\n")[0].removeprefix("# ")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """The call, an argument a line; what is to be given by name stands behind the star."""
    signature = inspect.signature(inspect.unwrap(function))
    parameters = [re.sub(r": '([^']*)'", r": \1", str(one)) for one in signature.parameters.values()]
    kinds = [one.kind for one in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    gives = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parameters)}){gives}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){gives}"


def _as_markdown(docstring: str) -> str:
    """Its examples as blocks; whatever follows the first prompt is one."""
    text, prompt, example = docstring.partition(">>> ")
    return text.rstrip() + (f"\n\n```pycon\n{prompt}{example.rstrip()}\n```\n" if prompt else "\n")


def _members(one: type) -> Iterator[tuple[str, str]]:
    """What users read and call, with its first paragraph: fields with the text below them, properties, methods."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            yield f"{node.target.id}: {ast.unparse(node.annotation)}", _text_of(after)
        elif isinstance(node, ast.FunctionDef) and (node.name == "__call__" or not node.name.startswith("_")):
            is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)
            call = "" if is_property else f"({', '.join(_arguments(node))})"
            yield f"{node.name}{call}", _on_one_line(ast.get_docstring(node) or "")


def _text_of(node: ast.stmt | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return _on_one_line(str(node.value.value)) if is_text else ""


def _on_one_line(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("|", "\\|")


def _arguments(node: ast.FunctionDef) -> list[str]:
    plain = [one.arg for one in node.args.args[1:]]
    variable = [f"*{node.args.vararg.arg}"] if node.args.vararg else []
    keywords = [f"{one.arg}=" for one in node.args.kwonlyargs]
    others = [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
    return [*plain, *variable, *keywords, *others]


def is_explained(function: Callable[..., Any], argument: str) -> bool:
    """Whether the docstring names it in an item of its list, or at least in code."""
    return re.search(rf"`{argument}[`=]", inspect.getdoc(function) or "") is not None

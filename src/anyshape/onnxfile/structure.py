"""How the flat inputs and outputs of a file stand in the module's own call and result: a small tree, stored as JSON.

`forward(batch, scale=2.0)` with a dict of two tensors is `Parameter("batch", Branch("dict", ("ids", "mask"), ...))` and
`Parameter("scale", Fixed(2.0))`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Literal

from anyshape.sizes import budgets

Kind = Literal["list", "tuple", "dict", "namedtuple", "fields", "cache"]
Way = Literal["both", "positional", "keyword", "many"]
_KINDS = ("list", "tuple", "dict", "namedtuple", "fields", "cache")
_WAYS = ("both", "positional", "keyword", "many")
_KEYED = ("dict", "namedtuple", "fields")


@dataclass(frozen=True)
class Slot:
    """The place of one input or output of the file."""

    name: str


@dataclass(frozen=True)
class Fixed:
    """What became part of the file: a number, a text, or None."""

    value: str | float | bool | None


@dataclass(frozen=True)
class Branch:
    """A container; `fields` are those of a dataclass or another object, `cache` holds layers of keys and values."""

    kind: Kind
    keys: tuple[str | int, ...]
    """Of a dict, or the names of fields; nothing for what is counted."""
    parts: tuple[Node, ...]
    name: str = ""
    """Of a named tuple's class."""


Node = Slot | Fixed | Branch


@dataclass(frozen=True)
class Parameter:
    """One parameter of the module's call; `many` is `*args`."""

    name: str
    way: Way
    node: Node


def slots(node: Node) -> Iterator[str]:
    """The names of inputs or outputs below a node, in order."""
    if isinstance(node, Slot):
        yield node.name
    elif isinstance(node, Branch):
        for part in node.parts:
            yield from slots(part)


# ---- as text


def shown(node: Node) -> str:
    """As Python would write it, with the file's names in their places."""
    if isinstance(node, Slot):
        return node.name
    if isinstance(node, Fixed):
        return repr(node.value)
    parts = [shown(part) for part in node.parts]
    if node.kind in ("list", "cache"):
        return f"[{', '.join(parts)}]"
    if node.kind == "tuple":
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if node.kind == "dict":
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(node.keys, parts, strict=True))}}}"
    return f"{node.name}({', '.join(f'{key}={part}' for key, part in zip(node.keys, parts, strict=True))})"


def shown_call(parameters: Sequence[Parameter]) -> str:
    """The parameters with what stands in them; one that is an input of its own name is shown once."""
    return f"({', '.join(_shown_parameter(parameter) for parameter in parameters)})"


def _shown_parameter(parameter: Parameter) -> str:
    text = shown(parameter.node)
    if parameter.way == "many":
        return f"*{text}"
    return text if text == parameter.name else f"{parameter.name}={text}"


# ---- as plain values for JSON, and back


def to_rows(node: Node) -> Any:
    """A text is a slot, null is None, everything else says its kind."""
    if isinstance(node, Slot):
        return node.name
    if isinstance(node, Fixed):
        return None if node.value is None else {"kind": "fixed", "value": node.value}
    rows: dict[str, Any] = {"kind": node.kind, "parts": [to_rows(part) for part in node.parts]}
    if node.kind in _KEYED:
        rows["keys"] = list(node.keys)
    return rows | ({"name": node.name} if node.name else {})


def from_rows(rows: Any, depth: int = 0) -> Node:
    """The tree behind plain values; ValueError, TypeError or KeyError where there is none."""
    if isinstance(rows, str):
        return Slot(rows)
    if rows is None:
        return Fixed(None)
    if rows["kind"] == "fixed":
        return Fixed(_checked_constant(rows["value"]))
    if rows["kind"] not in _KINDS or depth == budgets.DEEPEST_STRUCTURE:
        raise ValueError("no such container")
    keys = tuple(map(_checked_key, rows["keys"])) if rows["kind"] in _KEYED else ()
    parts = tuple(from_rows(part, depth + 1) for part in rows["parts"])
    name = _checked_name(rows.get("name", ""))
    if rows["kind"] in _KEYED and len(set(keys)) != len(parts):
        raise ValueError("keys and parts differ in number")
    if rows["kind"] == "namedtuple" and not all(map(_is_field, (name, *keys))):
        raise ValueError("no class could have such fields")
    return Branch(rows["kind"], keys, parts, name)


def parameter_to_rows(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "way": parameter.way, "value": to_rows(parameter.node)}


def parameter_from_rows(rows: Any) -> Parameter:
    if rows["way"] not in _WAYS:
        raise ValueError("no such parameter")
    return Parameter(_checked_name(rows["name"]), rows["way"], from_rows(rows["value"]))


def _is_field(name: str | int) -> bool:
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name) and not name.startswith("_")


def _checked_key(value: Any) -> str | int:
    if not isinstance(value, (str, int)):
        raise TypeError("keys are texts or numbers")
    return value


def _checked_name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("names are texts")
    return value


def _checked_constant(value: Any) -> str | float | bool:
    if not isinstance(value, (str, int, float)):
        raise TypeError("only numbers and texts become part of a file")
    return value

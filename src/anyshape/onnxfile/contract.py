"""The contract: dims, sizes, relations and limits under which a file is valid, stored in the file itself.

docs/contract.md has a table of its fields. What a later format adds is ignored; a later format itself is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any, Literal, get_args

import onnx

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Expression, SizeRange, parse_condition, parse_expression, parse_sizes

KEY = "anyshape.contract"
FORMAT = 2
"""Format 1 had no number, no structures, and did not say what was checked."""

# ---- how the flat inputs and outputs of a file stand in the module's own call and result: a small tree
#
# `forward(batch, scale=2.0)` with a dict of two tensors is `Parameter("batch", Branch("dict", ("ids", "mask"), ...))`
# and `Parameter("scale", Fixed(2.0))`.

Kind = Literal["list", "tuple", "dict", "namedtuple", "fields", "cache"]
Way = Literal["both", "positional", "keyword", "many"]
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


# ---- the tree as text


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


# ---- the tree as plain values for JSON, and back


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
        return Fixed(_of_type((str, int, float), rows["value"]))
    if rows["kind"] not in get_args(Kind) or depth == budgets.DEEPEST_STRUCTURE:
        raise ValueError("no such container")
    keys = tuple(_of_type((str, int), key) for key in rows["keys"]) if rows["kind"] in _KEYED else ()
    parts = tuple(from_rows(part, depth + 1) for part in rows["parts"])
    name = _of_type((str,), rows.get("name", ""))
    if rows["kind"] in _KEYED and len(set(keys)) != len(parts):
        raise ValueError("keys and parts differ in number")
    if rows["kind"] == "namedtuple" and not all(map(_is_field, (name, *keys))):
        raise ValueError("no class could have such fields")
    return Branch(rows["kind"], keys, parts, name)


def parameter_to_rows(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "way": parameter.way, "value": to_rows(parameter.node)}


def parameter_from_rows(rows: Any) -> Parameter:
    if rows["way"] not in get_args(Way):
        raise ValueError("no such parameter")
    return Parameter(_of_type((str,), rows["name"]), rows["way"], from_rows(rows["value"]))


def _is_field(name: str | int) -> bool:
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name) and not name.startswith("_")


def _of_type(types: tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, types):
        raise TypeError(f"`{type(value).__name__}` is not expected here")
    return value


# ---- the contract itself


RANDOM_VALUES = "nothing: values are random"
"""What errors are counted in where a model draws random numbers."""


@dataclass(frozen=True)
class Evidence:
    """What was run before the file was written."""

    sizes: int
    """At how many sizes."""
    ranges: Mapping[str, tuple[int, int]]
    """The smallest and the largest size of each dim that was run."""
    runtime: str
    against: str
    error: float | None
    """The largest error, counted in `unit`; None where values were not compared."""
    allowed: float
    unit: str
    computed_in: str | None = None
    graph: str = ""
    """The fingerprint of the graph that was run; empty where it was not kept."""

    def __str__(self) -> str:
        where = f"at {self.sizes} size{'s' if self.sizes != 1 else ''} in {self.runtime} against {self.against}"
        where = where if self.computed_in is None else f"in {self.computed_in}, not in its own type, {where}"
        if self.error is None:
            return where if self.unit != RANDOM_VALUES else f"{where}, shapes and types alone: values are random"
        return f"{where}, error at most {self.error:.1f} x {self.unit} ({self.allowed:g} is allowed)"


End = Literal["proved", "run", "open"]


@dataclass(frozen=True)
class Assumption:
    """A condition on sizes that the conversion took for granted, and what became of it."""

    expression: str
    place: str
    """The line that it comes from, `model.py:12`; empty where it is not known."""
    end: End
    """`proved` for all declared sizes, `run` on both sides, or `open`."""
    holds_at: Mapping[str, int] | None = None
    """Sizes at which it holds that were run; None, too, where it is asked at none of them."""
    breaks_at: Mapping[str, int] | None = None
    """Sizes at which it does not hold: run and right, or, where it is open, known and not run."""

    def __str__(self) -> str:
        return f"{self.expression} ({self.place})" if self.place else self.expression

    @property
    def is_for_people(self) -> bool:
        """Whether it is open and speaks of sizes alone, so that somebody can do something about it."""
        return self.end == "open" and "?" not in self.expression


@dataclass(frozen=True)
class Contract:
    """What the file promises, and for which sizes."""

    dims: Mapping[str, SizeRange]
    limits: tuple[Condition, ...] = ()
    """What the model itself cannot do."""
    conditions: tuple[Condition, ...] = ()
    """What only this file cannot do: it was narrowed."""
    outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The formula of every axis of every output; `?` where it depends on the data."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = "checked"
    version: str = ""
    """Of anyshape."""
    numbers: Mapping[str, Expression] = field(default_factory=dict)
    """Inputs without axes whose value is a size: a dim, or an expression of dims."""
    call: tuple[Parameter, ...] | None = None
    """The module's parameters, and where the file's inputs stand in them; None where it is not known."""
    returns: Node | None = None
    """What the module returns, and where the file's outputs stand in it."""
    evidence: Evidence | None = None
    where: tuple[Condition, ...] = ()
    """Relations between dims that the user declared."""
    assumptions: tuple[Assumption, ...] = ()
    draws: Mapping[str, str] = field(default_factory=dict)
    """Inputs that hold what the module draws itself: `normal` (standard) or `uniform` (in [0, 1)) noise."""
    random: bool = False
    """Whether the file draws random numbers itself, so that its values were never compared."""

    @property
    def relations(self) -> tuple[Condition, ...]:
        """All that must hold between sizes, whoever says so."""
        return (*self.where, *self.limits, *self.conditions)

    def to_text(self) -> str:
        rows = {
            "format": FORMAT,
            "version": self.version,
            "verdict": self.verdict,
            "dims": {dim: str(declared) for dim, declared in self.dims.items()},
            "where": [str(condition) for condition in self.where],
            "limits": [str(limit) for limit in self.limits],
            "conditions": [str(condition) for condition in self.conditions],
            "outputs": {name: list(axes) for name, axes in self.outputs.items()},
            "constants": {name: repr(value) for name, value in self.constants.items()},
            "numbers": {name: str(expression) for name, expression in self.numbers.items()},
        }
        if self.call is not None:
            rows["call"] = [parameter_to_rows(parameter) for parameter in self.call]
        if self.returns is not None:
            rows["returns"] = to_rows(self.returns)
        if self.evidence is not None:
            ranges = {dim: list(ends) for dim, ends in self.evidence.ranges.items()}
            rows["checked"] = {**vars(self.evidence), "ranges": ranges}
        if self.assumptions:
            rows["assumptions"] = [assumption_to_rows(one) for one in self.assumptions]
        if self.draws:
            rows["draws"] = dict(self.draws)
        if self.random:
            rows["random"] = True
        return json.dumps(rows, ensure_ascii=False)


def assumption_to_rows(one: Assumption) -> dict[str, Any]:
    return {name: value for name, value in vars(one).items() if value is not None}


def read_contract(model: onnx.ModelProto) -> Contract | None:
    """The contract of a file; None where it has none, or none that can be read: a file is data, not to be trusted."""
    return parse_contract(next((entry.value for entry in model.metadata_props if entry.key == KEY), ""))


def has_contract(model: onnx.ModelProto) -> bool:
    """Whether a file has one, be it one that can be read or not."""
    return any(entry.key == KEY for entry in model.metadata_props)


def parse_contract(text: str) -> Contract | None:
    if not text or len(text) > budgets.LONGEST_CONTRACT:
        return None
    try:
        return _contract_from_rows(json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError, DeclarationError):
        return None


_VERDICTS = ("checked", "narrowed", "unchecked")


def _contract_from_rows(rows: Any) -> Contract:
    if rows["verdict"] not in _VERDICTS or not all(dim.isidentifier() for dim in rows["dims"]):
        raise ValueError("written by somebody else")
    if rows.get("format", 1) not in range(1, FORMAT + 1):
        raise ValueError("written by a later anyshape")
    return Contract(
        dims={str(dim): parse_sizes(str(text), dim=str(dim)) for dim, text in rows["dims"].items()},
        limits=tuple(parse_condition(str(text)) for text in rows["limits"]),
        conditions=tuple(parse_condition(str(text)) for text in rows.get("conditions", ())),
        outputs={str(name): tuple(map(str, axes)) for name, axes in rows["outputs"].items()},
        constants={str(name): str(value) for name, value in rows["constants"].items()},
        verdict=str(rows["verdict"]),
        version=str(rows["version"]),
        numbers={str(name): parse_expression(str(text)) for name, text in rows.get("numbers", {}).items()},
        call=_call_from_rows(rows["call"]) if "call" in rows else None,
        returns=from_rows(rows["returns"]) if "returns" in rows else None,
        evidence=_evidence_from_rows(rows["checked"]) if "checked" in rows else None,
        where=tuple(parse_condition(str(text)) for text in rows.get("where", ())),
        assumptions=tuple(map(_assumption_from_rows, rows.get("assumptions", ()))),
        draws={str(name): _of_kind(noise) for name, noise in rows.get("draws", {}).items()},
        random=rows.get("random", False) is True,
    )


NOISES = {"normal": "standard normal", "uniform": "uniform in [0, 1)"}
"""What may be drawn for an input, and how it is told."""


def _of_kind(noise: Any) -> str:
    if noise not in NOISES:
        raise ValueError("no such noise")
    return str(noise)


def _assumption_from_rows(rows: Any) -> Assumption:
    if rows["end"] not in get_args(End):
        raise ValueError("no such end")
    sizes = [{str(dim): int(n) for dim, n in rows[key].items()} if key in rows else None for key in _KEYS_OF_SIZES]
    return Assumption(str(rows["expression"]), str(rows["place"]), rows["end"], *sizes)


_KEYS_OF_SIZES = ("holds_at", "breaks_at")


def _call_from_rows(rows: Iterable[Any]) -> tuple[Parameter, ...]:
    found = tuple(parameter_from_rows(row) for row in rows)
    if len({parameter.name for parameter in found}) != len(found):
        raise ValueError("two parameters of one name")
    return found


def _evidence_from_rows(rows: Any) -> Evidence:
    return Evidence(
        int(rows["sizes"]),
        {str(dim): (int(low), int(high)) for dim, (low, high) in rows["ranges"].items()},
        str(rows["runtime"]),
        str(rows["against"]),
        None if rows["error"] is None else float(rows["error"]),
        float(rows["allowed"]),
        str(rows["unit"]),
        None if rows["computed_in"] is None else str(rows["computed_in"]),
        str(rows.get("graph", "")),
    )


# ---- for people and machines that inspect a file


def contract_facts(contract: Contract) -> Iterator[tuple[str, str]]:
    """Labels and texts, one row each."""
    if contract.where:
        yield "where", ", ".join(map(str, contract.where))
    yield from (("limit", f"{limit} (PyTorch itself)") for limit in contract.limits)
    yield from (("narrowed", f"only where {condition}") for condition in contract.conditions)
    yield from (("assumed", f"{one}, not settled") for one in contract.assumptions if one.is_for_people)
    yield from draw_facts(contract.draws)
    if contract.constants:
        yield "constant", ", ".join(f"{name} = {value}" for name, value in contract.constants.items())
    # how the module is called and what it returns, where the list of inputs and outputs does not say it already
    if contract.call is not None and any(shown(p.node) != p.name for p in contract.call):
        yield "call", shown_call(contract.call)
    if contract.returns is not None and not isinstance(contract.returns, Slot):
        yield "returns", shown(contract.returns)
    yield "contract", f"{contract.verdict} by anyshape {contract.version}".rstrip()
    if contract.evidence is not None:
        yield "checked", str(contract.evidence)


def draw_facts(draws: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is to be drawn for an input, each."""
    for name, noise in draws.items():
        yield "draw", f"{name} is {NOISES[noise]} noise, which `load` draws where it is not given"


def contract_to_dict(contract: Contract) -> dict[str, Any]:
    """As plain values for JSON; the outputs' formulas stand with the outputs there."""
    rows = json.loads(contract.to_text())
    rows["constants"] = {name: str(value) for name, value in contract.constants.items()}
    told = ("verdict", "version", "dims", "where", "limits", "conditions", "constants")
    may_be_absent = ("numbers", "call", "returns", "checked", "assumptions")
    of_chance = (key for key in ("draws", "random") if key in rows)
    return {key: rows.get(key) for key in (*told, *may_be_absent, *of_chance)}

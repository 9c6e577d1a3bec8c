"""The contract: dims, sizes, relations and limits under which a file is valid, stored in the file itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from anyshape.declaration.notation import Condition, SizeRange, parse_condition, parse_sizes
from anyshape.errors import DeclarationError

KEY = "anyshape.contract"
_LONGEST = 1_000_000


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

    def to_text(self) -> str:
        rows = {
            "version": self.version,
            "verdict": self.verdict,
            "dims": {dim: str(declared) for dim, declared in self.dims.items()},
            "limits": [str(limit) for limit in self.limits],
            "conditions": [str(condition) for condition in self.conditions],
            "outputs": {name: list(axes) for name, axes in self.outputs.items()},
            "constants": {name: repr(value) for name, value in self.constants.items()},
        }
        return json.dumps(rows, ensure_ascii=False)


def read_contract(model: onnx.ModelProto) -> Contract | None:
    """The contract of a file; None where it has none, or none that can be read: a file is data, not to be trusted."""
    text = next((entry.value for entry in model.metadata_props if entry.key == KEY), "")
    if not text or len(text) > _LONGEST:
        return None
    try:
        return _from_rows(json.loads(text))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, DeclarationError):
        return None


_VERDICTS = ("checked", "narrowed", "unchecked")


def _from_rows(rows: Any) -> Contract:
    if rows["verdict"] not in _VERDICTS or not all(dim.isidentifier() for dim in rows["dims"]):
        raise ValueError("written by somebody else")
    return Contract(
        dims={str(dim): parse_sizes(str(text), dim=str(dim)) for dim, text in rows["dims"].items()},
        limits=tuple(parse_condition(str(text)) for text in rows["limits"]),
        conditions=tuple(parse_condition(str(text)) for text in rows.get("conditions", ())),
        outputs={str(name): tuple(map(str, axes)) for name, axes in rows["outputs"].items()},
        constants={str(name): str(value) for name, value in rows["constants"].items()},
        verdict=str(rows["verdict"]),
        version=str(rows["version"]),
    )

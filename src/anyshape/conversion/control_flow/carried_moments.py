"""What a loop's body can change, as it is at one moment: names of its function, and attributes of the model's modules.

Local names cannot be set from outside. The rewritten loop takes what is `given` to it at the start of each pass, and at
its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor, nn

from anyshape.conversion.control_flow.collected_collected import Collected, parts_of
from anyshape.conversion.control_flow.loop_trace import leaves_of, rebuilt, version_of

Key = str | tuple[int, str]
"""A local name; or a container of attributes, by its place among all, and the attribute's name."""
_TORCHS = frozenset(vars(nn.Module()))


@dataclass(frozen=True, eq=False)
class Kept:
    """A value at one moment: what is in it, and how often its tensors had been written to."""

    value: Any
    leaves: Sequence[Any]
    structure: Any
    """None for a value that contains no others."""
    versions: Sequence[int]
    parts: Sequence[Any] = ()
    """Of a list: what is in it."""

    @classmethod
    def of(cls, value: Any) -> Kept:
        is_container = isinstance(value, list | tuple | dict) and not isinstance(value, Collected)
        leaves, structure = leaves_of(value) if is_container else ([value], None)
        versions = [version_of(one) if isinstance(one, Tensor) else 0 for one in leaves]
        return cls(value, leaves, structure, versions, parts_of(value) if isinstance(value, list) else ())

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """The like of it with other leaves; its lists and dicts are new ones."""
        return leaves[0] if self.structure is None else rebuilt(leaves, self.structure)

    def copy(self) -> Any:
        if isinstance(self.value, Collected):
            return self.value.copy()
        return self.with_leaves(self.leaves)


Moment = Mapping[Key, Kept]


class Scope:
    """The names and attributes that the body of one loop can change."""

    def __init__(self, frame: FrameType, names: Iterable[str], modules: Iterable[nn.Module]) -> None:
        self._frame = frame
        self._names = sorted({*names})
        self._attributes = [one for module in modules for one in (vars(module), vars(module)["_buffers"])]
        self.given: dict[str, Any] = {}

    def read(self) -> Moment:
        names = self._frame.f_locals
        found: dict[Key, Kept] = {name: Kept.of(names[name]) for name in self._names if name in names}
        for place, attributes in enumerate(self._attributes):
            found |= {(place, name): Kept.of(value) for name, value in attributes.items() if name not in _TORCHS}
        return found

    def write(self, values: Mapping[Key, Any]) -> None:
        """Attributes that are not among the values go; names stay."""
        self.given = {key: value for key, value in values.items() if isinstance(key, str)}
        for place, attributes in enumerate(self._attributes):
            for name in [name for name in attributes if name not in _TORCHS and (place, name) not in values]:
                del attributes[name]
        for key, value in values.items():
            if isinstance(key, tuple) and self._attributes[key[0]].get(key[1]) is not value:
                self._attributes[key[0]][key[1]] = value


def shown(key: Key) -> str:
    return key if isinstance(key, str) else f"self.{key[1]}"

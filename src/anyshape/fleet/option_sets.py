"""Columns of a sweep: by whom each entry is converted or checked, and with which options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.sizes.notation import did_you_mean, listed

EXPORTERS, FILE_VERBS = ("anyshape", "torch", "torchscript"), ("check", "make-dynamic")
WORKERS = (*EXPORTERS, *FILE_VERBS)
"""Who makes a file of a model, and what is done with a file."""


@dataclass(frozen=True)
class OptionSet:
    """One column."""

    name: str
    by: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise DeclarationError(f"a column is called {self.name!r}: give it a name that can be printed")
        if self.by not in WORKERS:
            near = did_you_mean(self.by, WORKERS)
            raise DeclarationError(f"the column `{self.name}` is by `{self.by}`: choose of {listed(WORKERS)}{near}")

    def serves(self, kind: str) -> bool:
        """Torch's exporters know nothing of a checkpoint's files, and no exporter of a file that is there."""
        served = {"onnx": FILE_VERBS, "checkpoint": ("anyshape",)}
        return self.by in served.get(kind, EXPORTERS)


def columns_for(kind: str, columns: Sequence[OptionSet]) -> Sequence[OptionSet]:
    """Those that serve this kind of entry; where none does, the usual one: nothing is left out in silence."""
    usual = OptionSet("check", "check") if kind == "onnx" else OptionSet("anyshape", "anyshape")
    return [column for column in columns if column.serves(kind)] or [usual]


def read_option_sets(said: Any, where: str) -> tuple[OptionSet, ...]:
    """`{"half": {"dtype": "float16"}, "torch": {"by": "torch"}}`: anyshape where nothing else is said."""
    if not isinstance(said, Mapping) or not all(isinstance(options or {}, Mapping) for options in said.values()):
        raise DeclarationError(f"{where} are no columns: write names, each with its options")
    return tuple(_option_set(str(name), dict(options or {})) for name, options in said.items())


def _option_set(name: str, options: dict[str, Any]) -> OptionSet:
    by = options.pop("by", name if name in WORKERS else "anyshape")
    return OptionSet(name, str(by), options)


def parse_columns(names: Iterable[str], texts: Mapping[str, str]) -> tuple[OptionSet, ...]:
    """`--by torch` and `--column half=dtype=float16,narrow=true` of a command line."""
    plain = [OptionSet(name, name) for name in names]
    return (*plain, *(_option_set(name, _options_in(text, name)) for name, text in texts.items()))


def _options_in(text: str, column: str) -> dict[str, Any]:
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and equals for name, equals, _ in parts):
        raise DeclarationError(f"the column `{column}` has the options `{text}`: write NAME=VALUE,NAME=VALUE")
    return {name.strip(): _value(value.strip()) for name, _, value in parts}


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?(\d+\.\d*|\.?\d+)(e-?\d+)?", text):
        return float(text)
    return text


def refuse_unknown_options(options: Iterable[str], known: Iterable[str], where: str) -> None:
    known = sorted(known)
    for name in options:
        if name not in known:
            raise DeclarationError(f"{where} has no option `{name}`{did_you_mean(name, known)}; it has {listed(known)}")

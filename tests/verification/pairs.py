"""A static file and a dynamic one, both written by hand."""

from __future__ import annotations

from dataclasses import replace

import onnx.parser

from anyshape.onnxfile.interface import Interface, read_interface
from anyshape.runtime.made_up_inputs import find_contents
from anyshape.runtime.session import Session
from anyshape.verification.static_twin import Pair

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def pair_of(static: str, dynamic: str, *, labels: dict[str, str] | None = None, **wanted: str) -> Pair:
    """`wanted` names the dims of each input: x="batch seq _"; `labels` are expressions for names of output axes."""
    before, after = (onnx.parser.parse_model(HEAD + text) for text in (static, dynamic))
    sessions = [Session(model.SerializeToString()) for model in (before, after)]
    ports = read_interface(before).inputs
    axes = {name: tuple(None if dim == "_" else dim for dim in text.split()) for name, text in wanted.items()}
    shapes = {port.name: port.axes for port in ports}
    sizes = {dim: shapes[name][axis] for name, row in axes.items() for axis, dim in enumerate(row) if dim}
    interface = read_interface(after)
    outputs = tuple(replace(p, axes=tuple((labels or {}).get(a, a) for a in p.axes)) for p in interface.outputs)
    return Pair(*sessions, Interface(interface.inputs, outputs), axes, sizes, find_contents(sessions[0], ports, 0))


def renamed(text: str, **sizes: int) -> tuple[str, str]:
    """`BATCH` and `SEQ` in a text: as numbers for the static file, as names for the dynamic one."""
    static, dynamic = text, text
    for name, size in sizes.items():
        static, dynamic = static.replace(name, str(size)), dynamic.replace(name, name.lower())
    return static, dynamic

"""What can be said without torch is said first: about paths, the target, inputs and sizes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyshape.cli.target_texts import TargetText, mode_of, read_target
from anyshape.errors import DeclarationError
from anyshape.onnxfile.destination import check_destination, check_writable, refuse_foreign, refuse_lasting
from anyshape.results.report.writing import check_report_path
from anyshape.sizes import notation
from anyshape.sizes.notation import STATIC, InputText, did_you_mean

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "half", "float", "double", "bool", "uint8", "int8", "int16", "int32",
    "int64", "short", "int", "long",
)  # fmt: skip


RANDOM = "random"
"""What `--weights` says of weights that are meant to be so; a file of that name is `./random`."""


def ask_target(text: str, options: Mapping[str, Any]) -> TargetText:
    """TARGET as it is written, once it and what is said about the model can be right."""
    found = read_target(text)
    if options.get("weights") not in (None, RANDOM):
        ask_file(options["weights"])
    ask_declaration(options)
    return found


def ask_dtype(text: str | None) -> None:
    """A type that torch may know is left to it; a misspelled one need not wait for it."""
    floats = [name for name in DTYPES if "float" in name] + ["half", "double"]
    if text is not None and text not in floats and not text.startswith("float8_"):
        near = did_you_mean(text, floats)
        raise DeclarationError(f"--dtype is {text!r}: give a floating type such as float16 or bfloat16{near}")


def ask_file(text: str) -> None:
    refuse_foreign(text)
    mode = mode_of(text)
    if stat.S_ISDIR(mode):
        raise DeclarationError(f"`{text}` is a folder, not a file")
    if not mode:
        raise DeclarationError(f"there is no file `{text}`")
    if not os.access(text, os.R_OK):
        raise DeclarationError(f"`{text}` cannot be read: Permission denied")


def ask_output(output: str, *sources: str | None) -> Path | None:
    """The file to write, wherever the model's code may change to; a sentence where nothing can be written there, or
    where what is read would be overwritten.
    """
    if output == "-":
        raise DeclarationError("`-` is no file: a checked file takes its place whole, and is not piped; name it")
    for source in sources:
        if source is not None and mode_of(output) and Path(output).resolve() == Path(source).resolve():
            raise DeclarationError(f"`{output}` is what is read: name another file for -o")
    return check_destination(output)


def ask_comparison(model: str, target: str | None, options: Mapping[str, Any]) -> TargetText | None:
    """TARGET as it is written, where there is one, once the file and what is said of both can be right."""
    ask_file(model)
    ask_declaration(options)
    return None if target is None else ask_target(target, options)


def ask_report(page: str) -> Path:
    """The page to write, wherever the model's code may change to; a sentence where that cannot be."""
    if page == "-":
        raise DeclarationError("`-` is no file: a report takes its place whole, and is not piped; name it")
    return check_report_path(page)


def ask_times(text: str | None) -> Any:
    """What `anyshape bench --json` printed, from the file that it was kept in."""
    if text is None:
        return None
    ask_file(text)
    try:
        found = json.loads(Path(text).read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or "series" not in found:
        raise DeclarationError(f"`{text}` holds no measurements: keep what `anyshape bench --json` prints in it")
    return found


def ask_folder(output: str) -> None:
    refuse_foreign(output)
    if stat.S_ISREG(mode_of(output)):
        raise DeclarationError(f"`{output}` is a file: a checkpoint is exported to a folder")
    check_writable(Path(output))
    refuse_lasting(Path(output))


def ask_declaration(options: Mapping[str, Any]) -> None:
    """Raise where inputs, dims, sizes or relations are not what their notation allows."""
    check_inputs(options.get("inputs", ()))
    for name, axes in options.get("dims", {}).items():
        notation.parse_axes(axes, where=name)
    for dim, sizes in options.get("sizes", {}).items():
        notation.parse_sizes(sizes, dim=dim)
    for relation in options.get("where", ()):
        notation.parse_conditions(relation)


def check_inputs(texts: Sequence[InputText]) -> None:
    """Raise where an input cannot be drawn from what is written."""
    names = [text.name for text in texts]
    for text in texts:
        if names.count(text.name) > 1:
            raise DeclarationError(f"the input `{text.name}` is given twice")
        if "*" in text.name:
            raise DeclarationError(
                f"`{text.name}` is a wildcard, but every input needs values of its own: wildcards belong to --dim"
            )
        if text.dtype not in DTYPES:
            raise DeclarationError(
                f"`{text.name}` is declared {text.dtype}, which is no element type{did_you_mean(text.dtype, DTYPES)}"
            )
        if text.below == 0:
            raise DeclarationError(f"`{text.name}` is declared < 0: no value is left")
        _check_axes(text)


def _check_axes(text: InputText) -> None:
    for index, entry in enumerate(notation.parse_axes(text.axes, where=text.name)):
        if entry is Ellipsis or entry == STATIC:
            written = "..." if entry is Ellipsis else STATIC
            raise DeclarationError(
                f"`{text.name}` has `{written}` on axis {index}, which tells no size: write a name or a number"
            )

"""Which opset to write: what the user asks for, or the newest that torch writes and the runtime takes."""

from __future__ import annotations

import re

from anyshape.errors import DeclarationError
from anyshape.runtime.session import newest_opset, opset_of_release
from anyshape.torchkit import capture

_TARGET = re.compile(r"\s*onnxruntime\s*(?:==|<=|>=|~=|@)?\s*(\d+)\.(\d+)(?:\.\S+)?\s*")


def choose_opset(opset_version: int | None, target: str | None) -> int:
    newest = min(newest_opset(), capture.newest_translated_opset())
    cap = newest if target is None else min(newest, _newest_opset_of(target))
    if opset_version is None:
        return cap
    if not isinstance(opset_version, int) or not 7 <= opset_version <= newest_opset():
        raise DeclarationError(
            f"opset_version is {opset_version!r}, the installed ONNX Runtime takes 7 to {newest_opset()}"
        )
    if opset_version > cap and target is not None:
        raise DeclarationError(f"opset_version is {opset_version}, but target `{target}` takes {cap} at most")
    return opset_version


def _newest_opset_of(target: str) -> int:
    match = _TARGET.fullmatch(target)
    if match is None:
        raise DeclarationError(f"target is `{target}`: write `onnxruntime==1.18`")
    major, minor = int(match[1]), int(match[2])
    opset = opset_of_release((major, minor))
    if opset is None or opset < 17:
        raise DeclarationError(f"target is `{target}`: ONNX Runtime 1.12 is the oldest that is known")
    return opset

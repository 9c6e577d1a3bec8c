"""Releases of ONNX Runtime: which opsets and IR versions each loads, and what is written for whom.

By default a file is written for the tools that people use next: quantisers, shape inference and converters read the
operators of opset 20, while those of opset 23 (`Attention`, `RotaryEmbedding`, `RMSNormalization`), which run faster,
break most of them. `target` asks for a runtime instead: the newest that it takes.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import onnx
import onnx.helper
import onnx.parser

from anyshape.errors import DeclarationError
from anyshape.runtime.opening import load_runtime
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.spelling import argument

DEFAULT_OPSET = 20
"""Also torch's own default; ONNX Runtime has it since 1.17."""
TARGET_ADVICE = "write `onnxruntime==1.18`, or `onnxruntime` for the installed one"
OLDEST_OPSET = 7
"""ONNX Runtime promises no older ones."""


@dataclass(frozen=True)
class Release:
    """What a release of ONNX Runtime takes at most."""

    version: str
    opset: int
    ir_version: int
    lacks: tuple[tuple[str, int], ...] = ()
    """Operators without a kernel on the CPU, since an opset that it takes."""

    def __str__(self) -> str:
        return f"ONNX Runtime {self.version}"


_LACKED = {
    "DeformConv": (19, (1, 25)), "LpNormalization": (22, (1, 25)), "TensorScatter": (24, (1, 25)),
    "Bernoulli": (22, None), "RoiAlign": (22, None), "Swish": (24, None),
}  # fmt: skip
"""Operator -> since which opset releases lack it, and the first that has it: each operator of ONNX was tried, by the
cases of its own tests, in the newest opset of each release.
"""


def _lacked_in(version: tuple[int, int]) -> tuple[tuple[str, int], ...]:
    rows = _LACKED.items()
    return tuple((operator, opset) for operator, (opset, since) in rows if since is None or version < since)


# The table "ONNX opset support" of onnxruntime.ai/docs/reference/compatibility.html, and by trial: each release was
# given a file of every opset and one of every IR version, 1.12 to 1.14 as their packages for Node.js, the others as
# wheels (tests/runtime/test_releases.py does it again for those that can be installed). 1.15 loads opset 19, too, and
# has no kernels of it for Cast, Identity, Reshape and others.
RELEASES = {
    (major, minor): Release(f"{major}.{minor}", opset, ir_version, _lacked_in((major, minor)))
    for major, minor, opset, ir_version in (
        (1, 12, 17, 8), (1, 13, 17, 8), (1, 14, 18, 8), (1, 15, 18, 9), (1, 16, 19, 9), (1, 17, 20, 9),
        (1, 18, 21, 10), (1, 19, 21, 10), (1, 20, 21, 10), (1, 21, 22, 10), (1, 22, 22, 10), (1, 23, 23, 11),
        (1, 24, 25, 13), (1, 25, 26, 13), (1, 26, 26, 13), (1, 27, 26, 13), (1, 28, 26, 13), (1, 29, 26, 13),
        (1, 30, 26, 13), (1, 31, 26, 13),
    )
}  # fmt: skip

_TARGET = re.compile(r"\s*onnxruntime\s*(?:(?:==|<=|>=|~=|@)\s*(\d+)\.(\d+)(?:\.\S+)?\s*)?")


def understand_target(target: str) -> Release:
    """The release that `onnxruntime==1.18` means; the installed one for `onnxruntime` alone."""
    match = _TARGET.fullmatch(target)
    if match is None:
        raise DeclarationError(f"{argument('target')} is `{target}`: {TARGET_ADVICE}")
    if match[1] is None:
        return installed_release()
    asked, (oldest, *_, newest) = (int(match[1]), int(match[2])), RELEASES
    if asked < oldest:
        known = RELEASES[oldest]
        raise DeclarationError(f"{argument('target')} is `{target}`, but {known} is the oldest that is known")
    if asked > newest and asked > _installed_version():
        known = max(RELEASES[newest], installed_release(), key=lambda release: release.opset)
        raise DeclarationError(f"{argument('target')} is `{target}`, but {known} is the newest that is known")
    return RELEASES.get(asked) or installed_release()


def _installed_version() -> tuple[int, int]:
    major, minor = load_runtime().__version__.split(".")[:2]
    return int(major), int(minor)


@functools.cache
def installed_release() -> Release:
    """What the installed runtime loads: tried, since it may be newer than the table."""
    version = load_runtime().__version__
    opsets = (opset for opset in range(onnx.defs.onnx_opset_version(), OLDEST_OPSET, -1) if _loads(opset))
    opset = next(opsets, OLDEST_OPSET)
    return Release(version, opset, ir_version_for(opset))


def _loads(opset: int) -> bool:
    head = f'<ir_version: {ir_version_for(opset)}, opset_import: ["": {opset}]>'
    graph = "smallest (float[1] x) => (float[1] y) { y = Identity(x) }"
    try:
        Session(bytes(onnx.parser.parse_model(head + graph).SerializeToString()))
    except RuntimeFailureError:
        return False
    return True


def ir_version_for(opset: int) -> int:
    """The oldest IR version that knows this opset: the one that the most runtimes read."""
    versions = [row[1] for row in onnx.helper.VERSION_TABLE if row[2] >= opset]
    return max(4, min(versions, default=onnx.IR_VERSION))  # before 4 every weight is an input, too


# ---- which opset to write


def choose_opset(asked: int | None, target: Release | None, translated: int) -> int:
    """What the user asks for; else the default, or the newest that the target takes and torch translates to."""
    installed = installed_release()
    if asked is None:
        return min(DEFAULT_OPSET if target is None else target.opset, installed.opset, translated)
    if not isinstance(asked, int) or isinstance(asked, bool) or not OLDEST_OPSET <= asked <= installed.opset:
        taken = f"the installed {installed} takes {OLDEST_OPSET} to {installed.opset}"
        raise DeclarationError(f"{argument('opset_version')} is {asked!r}, {taken}")
    if target is not None and asked > target.opset:
        most = f"target {target} takes {target.opset} at most"
        raise DeclarationError(f"{argument('opset_version')} is {asked}, but {most}")
    return asked

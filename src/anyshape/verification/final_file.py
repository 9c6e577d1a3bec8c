"""The file that is written beside the one that was judged: between the two lie the contract, and labels of outputs.

Labels are known when all runs are done. Those that the trace foretells stand in the judged file already; where they
come true, the final file differs in its contract alone, a text that no runtime reads, and is not opened again. Else it
is held to the judged one: the same computation, byte by byte, and the same results, bit by bit.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.onnxfile.contract import KEY
from anyshape.onnxfile.fingerprint import fingerprint
from anyshape.onnxfile.untrusted import attribute_tensors, stored_tensors
from anyshape.results.finding import Finding
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session
from anyshape.source.spans import Span


def computation_of(path: Path) -> str:
    """What a file computes, and which files hold its weights: all of it but its contract and the labels of outputs."""
    proto = onnx.load(path, load_external_data=False)
    kept = [entry for entry in proto.metadata_props if entry.key != KEY]
    del proto.metadata_props[:]
    proto.metadata_props.extend(sorted(kept, key=lambda entry: entry.key))
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    for tensor in attribute_tensors(proto.graph, *proto.functions):
        tensor.ClearField("name")
    found = hashlib.sha256()
    for tensor in stored_tensors(proto.graph, *proto.functions):
        raw = tensor.raw_data  # apart: to write weights once more takes longer than to read them
        found.update(len(raw).to_bytes(8, "big"))
        found.update(raw)
        if raw:
            tensor.ClearField("raw_data")
        for entry in (entry for entry in tensor.external_data if entry.key == "location"):
            beside = (path.parent / entry.value).stat()
            entry.value = (
                f"{beside.st_size} {beside.st_ino} {beside.st_mtime_ns}"  # it may be renamed, not written anew
            )
    found.update(proto.SerializeToString(deterministic=True))
    return found.hexdigest()


def labels_of(proto: onnx.ModelProto) -> tuple[bytes, ...]:
    """The outputs as a file declares them."""
    return tuple(output.SerializeToString(deterministic=True) for output in proto.graph.output)


@dataclass(frozen=True)
class JudgedFile:
    """What is left of a file that was judged, when it is written again."""

    computation: str
    labels: tuple[bytes, ...]
    fingerprint: str = ""
    """By which a contract knows the graph again."""
    session: Session | None = None
    """None where the runtime cannot run the file's own type."""
    calls: tuple[Feeds, ...] = ()
    runs: tuple[tuple[Feeds, list[Array]], ...] | None = None
    """What it gave, where its labels will change."""

    @classmethod
    def of(cls, path: Path, session: Session | None = None, calls: Iterable[Feeds] = ()) -> JudgedFile:
        proto = onnx.load(path, load_external_data=False)
        known = fingerprint(proto, path.parent)
        return cls(computation_of(path), labels_of(proto), known, session, tuple(calls))

    def before(self, model: ir.Model) -> JudgedFile:
        """With what it gives, if the model now has other labels: asked before it is written, as sessions may reload."""
        if tuple(ir.to_proto(one).SerializeToString(deterministic=True) for one in model.graph.outputs) == self.labels:
            return self
        runs: list[tuple[Feeds, list[Array]]] = []
        for feeds in self.calls if self.session is not None else ():
            assert self.session is not None
            with contextlib.suppress(RuntimeFailureError):  # values that were made up need not fit at every size
                runs.append((feeds, self.session.run(feeds)))
        return replace(self, runs=tuple(runs))

    def finding(self, path: Path, home: Span, open_file: Callable[[Path], Session] = Session) -> Finding | None:
        """What is wrong with the final file, if anything; it is opened where its labels are others."""
        said = self._fault(path, open_file)
        if said is None:
            return None
        return Finding(
            "wrong-values", f"the final file {said}, unlike the one that was checked", home, origin="export",
            helps=("this is a defect of anyshape: please report it with the model",),
        )  # fmt: skip

    def _fault(self, path: Path, open_file: Callable[[Path], Session]) -> str | None:
        if computation_of(path) != self.computation:
            return "computes something else"
        if labels_of(onnx.load(path, load_external_data=False)) == self.labels:
            return None
        if self.runs is None:
            return "declares other outputs"
        if not self.runs:
            return None
        try:
            session = open_file(path)
            return None if all(_is_repeated(session, *run) for run in self.runs) else "gives other values"
        except RuntimeFailureError as failure:
            return f"fails in ONNX Runtime: {failure}"


def _is_repeated(session: Session, feeds: Feeds, judged: list[Array]) -> bool:
    """Whether the same bits come out; kernels that differ from run to run, as some on a GPU do, tell nothing."""
    found = session.run(feeds)
    return _are_identical(found, judged) or not _are_identical(found, session.run(feeds))


def _are_identical(some: list[Array], others: list[Array]) -> bool:
    return [_bits(one) for one in some] == [_bits(one) for one in others]


def _bits(value: Any) -> object:
    """Texts, lists and maps are compared as they are shown."""
    is_numeric = isinstance(value, np.ndarray) and value.dtype.kind != "O"
    return (value.dtype.str, value.shape, value.tobytes()) if is_numeric else repr(value)

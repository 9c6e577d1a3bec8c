"""The file that is written beside the one that was judged: between the two lie only labels of outputs and metadata.

They are known when all runs are done. So the final file is held to the judged one: the same computation, byte by byte,
and the same results, bit by bit.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from anyshape.onnxfile.untrusted import attribute_tensors, stored_tensors
from anyshape.results.finding import Finding
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session
from anyshape.source.spans import Span


def computation_of(path: Path) -> str:
    """What a file computes: all of it but metadata and the labels of its outputs, and which files hold its weights."""
    proto = onnx.load(path, load_external_data=False)
    del proto.metadata_props[:]
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


@dataclass(frozen=True)
class JudgedFile:
    """What is left of a file that was judged, when it is written again."""

    computation: str
    runs: tuple[tuple[Feeds, list[Array]], ...] = ()

    @classmethod
    def of(cls, path: Path, session: Session | None, calls: Iterable[Feeds]) -> JudgedFile:
        """Without a session where the runtime cannot run the file's own type."""
        runs: list[tuple[Feeds, list[Array]]] = []
        for feeds in calls if session is not None else ():
            assert session is not None
            with contextlib.suppress(RuntimeFailureError):  # values that were made up need not fit at every size
                runs.append((feeds, session.run(feeds)))
        return cls(computation_of(path), tuple(runs))

    def finding(self, path: Path, session: Session | None, home: Span) -> Finding | None:
        """What is wrong with the final file, if anything; a session of it that was just opened."""
        said = "computes something else" if computation_of(path) != self.computation else None
        try:
            if session is not None and not all(_is_repeated(session, *run) for run in self.runs):
                said = said or "gives other values"
        except RuntimeFailureError as failure:
            said = f"fails in ONNX Runtime: {failure}"
        if said is None:
            return None
        return Finding(
            "wrong-values", f"the final file {said}, unlike the one that was checked", home, origin="export",
            helps=("this is a defect of anyshape: please report it with the model",),
        )  # fmt: skip


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

"""ONNX Runtime: running a file on the leaves of a call."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser

from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.runtime.confinement import StoppedError, open_runtime_session
from anyshape.runtime.opening import Opening, load_runtime
from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort, OperatorShapes, effort_of

if TYPE_CHECKING:
    import onnxruntime

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]


class RuntimeFailureError(AnyshapeError):
    """ONNX Runtime refused the file or the call; the text is its own."""


class UnrunnableTypeError(RuntimeFailureError):
    """ONNX Runtime does not run a type that the file holds: nothing is wrong with the file."""


_NARROW = (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT16)
"""Types that not every build and device has kernels for."""


def unrunnable_type(model: onnx.ModelProto, failure: RuntimeFailureError) -> UnrunnableTypeError | None:
    """The sentence for a file that does not load and holds such a type; None where it holds none."""
    held = {tensor.data_type for tensor in model.graph.initializer}
    held |= {value.type.tensor_type.elem_type for value in model.graph.input}
    narrow = next((kind for kind in _NARROW if kind in held), None)
    lacking = [node.op_type for node in model.graph.node if not node.domain and lacks_double(node.op_type)]
    if narrow is not None:
        what = "bfloat16" if narrow == onnx.TensorProto.BFLOAT16 else "this file in float16"
    elif lacking and onnx.TensorProto.DOUBLE in held:
        what = f"`{lacking[0]}` in float64"
    else:
        return None
    return UnrunnableTypeError(f"{runtime_version()} cannot run {what} here: {failure}")


@functools.cache
def lacks_double(operator: str) -> bool:
    """Whether the runtime computes an operator of one input in float32 and not in float64."""
    return _loads_in("float", operator) and not _loads_in("double", operator)


def _loads_in(kind: str, operator: str) -> bool:
    head = '<ir_version: 9, opset_import: ["": 20]>'
    try:
        model = onnx.parser.parse_model(f"{head} one ({kind}[n] x) => ({kind}[n] y) {{ y = {operator} (x) }}")
        Session(model.SerializeToString())
    except (RuntimeFailureError, onnx.parser.ParseError):
        return False
    return True


def runtime_version() -> str:
    return f"ONNX Runtime {load_runtime().__version__}"


class Session:
    """One file, loaded once, run at many sizes."""

    bytes_of_large_weights = 0
    """That lie beside the file and are mapped, not packed, as the runtime's default options would; 0 where few."""

    def __init__(
        self,
        model: Path | bytes,
        *,
        providers: Sequence[str] | None = None,
        libraries: Sequence[str] = (),
        folder: Path | None = None,
        by_default: bool = False,
    ) -> None:
        """`folder` is where the weights of a model that is given as bytes lie; `by_default` packs large ones, too."""
        self._providers, self._libraries = providers, libraries
        self._source, self._folder = model, folder
        size, types = _weights_beside(model, folder)
        self.bytes_of_large_weights = size if size > budgets.BYTES_OF_BIG_WEIGHTS and not by_default else 0
        self._is_widened = onnx.TensorProto.BFLOAT16 in types  # in which the runtime does not compute on a CPU
        self._session: onnxruntime.InferenceSession | None = None
        self._efforts: dict[tuple[Any, ...], Effort | None] = {}
        session = self._loaded_session()
        self.inputs = {i.name: (i.type, tuple(i.shape)) for i in session.get_inputs()}
        self.outputs = tuple(o.name for o in session.get_outputs())

    def _loaded_session(self) -> onnxruntime.InferenceSession:
        if self._session is None:
            self._session = self._open_session(self._opening_by_default())
        return self._session

    def _opening_by_default(self) -> Opening:
        return Opening(
            str(self._source) if isinstance(self._source, Path) else self._source,
            tuple(self._providers or ["CPUExecutionProvider"]),
            self._libraries,
            None if self._folder is None else str(self._folder),
            leaves_weights=bool(self.bytes_of_large_weights),
            is_widened=self._is_widened,
        )

    def _open_session(self, opening: Opening) -> onnxruntime.InferenceSession:
        refuse_missing_providers(load_runtime(), self._providers or ())
        with failures_in_short():
            return open_runtime_session(opening)

    def reopened(self, model: bytes) -> Session:
        """Another model in the same way: with the same providers and libraries."""
        return Session(model, providers=self._providers, libraries=self._libraries)

    def by_default(self) -> Session:
        """The same file with the runtime's default options, as most users open it."""
        return Session(self._source, providers=self._providers, libraries=self._libraries, by_default=True)

    def rest(self) -> None:
        """Give back the memory of large weights; the next run maps them again."""
        if self.bytes_of_large_weights:
            self._session = None

    def effort(self, feeds: Mapping[str, Array]) -> Effort | None:
        """What a run takes, counted in the file's own nodes; None where it fails."""
        key = tuple((name, feeds[name].shape) for name in self.inputs)
        if key not in self._efforts:
            with temporary_folder() as folder:
                # weights that are packed are no inputs of their nodes any more; to find values that could share memory
                # takes the square of their number, several times as long as all the rest of a load
                apart = {"enable_mem_reuse": "false"}
                plain = replace(self._opening_by_default(), is_optimised=False, is_packed=False, settings=apart)
                try:
                    session = self._open_session(replace(plain, profile=str(folder / "run")))
                    session.run(None, {name: feeds[name] for name in self.inputs})
                    session.end_profiling()
                    events = recorded_events(folder)
                except StoppedError:
                    raise
                except Exception:  # noqa: BLE001  no run, or no record of it
                    events = []
            self._efforts[key] = effort_of(calls) if (calls := list(_profiled_calls(events))) else None
        return self._efforts[key]

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        session = self._loaded_session()
        with failures_in_short():
            return list(session.run(None, {name: feeds[name] for name in self.inputs}))


@contextlib.contextmanager
def failures_in_short() -> Iterator[None]:
    """What the runtime raises inside is a failure in its own words; what is ours stays."""
    try:
        yield
    except DeclarationError:
        raise
    except Exception as error:
        raise RuntimeFailureError(runtime_words(error)) from error


def _profiled_calls(events: Iterable[Mapping[str, Any]]) -> Iterator[OperatorShapes]:
    """The nodes of a run; shapes stand in its record as `[{"float": [2, 3]}]`."""
    for event in events:
        told = event.get("args") or {}
        if "output_type_shape" in told and "op_name" in told:
            inputs, outputs = (
                [shape for one in told.get(key, ()) for shape in one.values()]
                for key in ("input_type_shape", "output_type_shape")
            )
            yield told["op_name"], inputs, outputs, 4


def recorded_events(folder: Path) -> list[dict[str, Any]]:
    """What a session has written into a folder about its runs."""
    events: list[dict[str, Any]] = json.loads(next(folder.glob("run*")).read_bytes())
    return events


def refuse_missing_providers(ort: Any, providers: Sequence[Any]) -> None:
    """ONNX Runtime would take another provider without a word."""
    available = ort.get_available_providers()
    for provider in providers:
        name = provider[0] if isinstance(provider, tuple) else provider
        if name not in available:
            raise DeclarationError(f"this ONNX Runtime has no `{name}`, only {', '.join(available)}")


def _weights_beside(model: Path | bytes, folder: Path | None = None) -> tuple[int, set[int]]:
    """The bytes in other files that a model names, and their types; one that is large holds its weights itself."""
    if isinstance(model, bytes) and folder is None:
        return 0, set()
    if isinstance(model, Path) and (
        not model.is_file() or model.stat().st_size > budgets.LARGEST_GRAPH_WITHOUT_WEIGHTS
    ):
        return 0, set()
    try:
        proto = onnx.load(model, load_external_data=False) if isinstance(model, Path) else onnx.load_from_string(model)
        stored = proto.graph.initializer
    except Exception:  # noqa: BLE001  no model: the runtime will say so
        return 0, set()
    names = {entry.value for tensor in stored for entry in tensor.external_data if entry.key == "location"}
    files = [(model.parent if isinstance(model, Path) else folder or Path()) / name for name in names]
    types = {tensor.data_type for tensor in stored if tensor.external_data}
    return sum(file.stat().st_size for file in files if file.is_file()), types


_NODE_FAILED = re.compile(r"while running (\w+) node\. Name:'([^']*)' Status Message: (.*)", re.DOTALL)


def runtime_words(error: Exception) -> str:
    """The runtime's own words without its file names and C++ signatures."""
    text = str(error).strip() or type(error).__name__
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    text = re.sub(r"^Load model from .* failed:", "", text)
    if match := _NODE_FAILED.search(text):
        operator, name, message = match.groups()
        message = message.split(" was false. ")[-1]
        text = f"{operator} node `{name}`: {message}" if name else f"{operator} node: {message}"
    line = text.splitlines()[0].strip()
    return line if len(line) <= budgets.LONGEST_RUNTIME_REASON else line[: budgets.LONGEST_RUNTIME_REASON - 3] + "..."

"""The tools of the compatibility matrix: what each makes of a file, run at two sizes and compared with the file itself.

Run by benchmarks/compatibility.py, in a process for each tool and file.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

Arrays = dict[str, np.ndarray]
Runner = Callable[[Arrays], Arrays]

EXACT, FLOAT16, INT8 = 1e-4, 0.02, 0.25
"""What a result may differ by: of the largest number for a tool that only rewrites, of the mean square for one that
rounds. Weights are random here: what rounding costs a trained model is another question."""
NODE = Path(__file__).with_name("compatibility_runtime.mjs")


@dataclass(frozen=True)
class Case:
    """A file, the calls at which it is run, and where a tool may write."""

    path: Path
    calls: Sequence[Arrays]
    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out.onnx"


@dataclass(frozen=True)
class Tool:
    """One tool: what runs its result, how far that may be off, and where the tool comes from."""

    name: str
    apply: Callable[[Case], Runner]
    package: str
    allowed: float = EXACT
    is_at_hand: bool = True
    """Comes with onnx or ONNX Runtime, so the tests can run it."""


# ---- runners


def _session(model: Path | bytes) -> Runner:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
    )
    types = {port.name: port.type for port in session.get_inputs()}
    names = [port.name for port in session.get_outputs()]

    def run(call: Arrays) -> Arrays:
        cast = {
            name: value.astype(np.float16) if types[name] == "tensor(float16)" else value
            for name, value in call.items()
            if name in types
        }
        return dict(zip(names, session.run(None, cast), strict=True))

    return run


def run_file(path: Path) -> Runner:
    """The file itself in ONNX Runtime, as what tools make of it is compared with."""
    return _session(path)


def opset_of(path: Path) -> int:
    imported = onnx.load(path, load_external_data=False).opset_import
    return int(next(entry.version for entry in imported if entry.domain in ("", "ai.onnx")))


def _saved(case: Case, model: onnx.ModelProto) -> Runner:
    onnx.save(model, case.out)
    return _read(case.out)


def _read(path: Path) -> Runner:
    """The session of a file that a tool wrote; the shapes that it claims must be those of its results."""
    run, model = _session(path), onnx.load(path, load_external_data=False)
    claimed = {port.name: port.type.tensor_type for port in model.graph.output}

    def checked(call: Arrays) -> Arrays:
        found = run(call)
        for name, value in found.items():
            if claimed[name].HasField("shape"):
                axes = [axis.dim_value or None for axis in claimed[name].shape.dim]
                fits = len(axes) == value.ndim and all(a in (None, s) for a, s in zip(axes, value.shape, strict=True))
                if not fits:
                    raise ValueError(f"the result claims {axes} for `{name}`, which has {list(value.shape)}")
        return found

    return checked


# ---- onnx


def _checker(case: Case) -> Runner:
    onnx.checker.check_model(str(case.path), full_check=True)
    model = onnx.shape_inference.infer_shapes(onnx.load(case.path), check_type=True, strict_mode=True, data_prop=True)
    return _saved(case, model)


def _reference(case: Case) -> Runner:
    from onnx.reference import ReferenceEvaluator

    model = ReferenceEvaluator(str(case.path))
    return lambda call: dict(
        zip(model.output_names, model.run(None, {name: call[name] for name in model.input_names}), strict=True)
    )


def _version_converter(case: Case) -> Runner:
    from onnx import version_converter

    return _saved(case, version_converter.convert_version(onnx.load(case.path), 17))


# ---- ONNX Runtime's own


def _quantize_dynamic(case: Case) -> Runner:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(case.path, case.out)
    return _read(case.out)


def _quant_pre_process(case: Case, **options: Any) -> Runner:
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(str(case.path), str(case.out), **options)
    return _read(case.out)


def _quantize_static(case: Case, **options: Any) -> Runner:
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    wanted = {port.name for port in onnx.load(case.path, load_external_data=False).graph.input}

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{n: v for n, v in call.items() if n in wanted} for call in case.calls])

        def get_next(self) -> Arrays | None:
            return next(self.rest, None)

    quantize_static(str(case.path), str(case.out), Reader(), **options)
    return _read(case.out)


def _pre_process_and_quantize_static(case: Case, *, before: Any = None, **options: Any) -> Runner:
    _quant_pre_process(case, **(before or {}))
    prepared = case.out.rename(case.folder / "prepared.onnx")
    return _quantize_static(replace(case, path=prepared), **options)


def _ort_float16(case: Case, *, keep: bool, block: Sequence[str] = ()) -> Runner:
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    listed = [*DEFAULT_OP_BLOCK_LIST, *block]
    return _saved(case, convert_float_to_float16(onnx.load(case.path), keep_io_types=keep, op_block_list=listed))


def _symbolic_shape_infer(case: Case) -> Runner:
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    model = SymbolicShapeInference.infer_shapes(onnx.load(case.path), 2**31 - 1, False, False, 0)
    return _saved(case, model)


def _make_dim_param_fixed(case: Case) -> Runner:
    from onnxruntime.tools.onnx_model_utils import fix_output_shapes, make_dim_param_fixed

    def run(call: Arrays) -> Arrays:
        model = onnx.load(case.path)
        sizes = {
            axis.dim_param: size
            for port in model.graph.input
            for axis, size in zip(port.type.tensor_type.shape.dim, call[port.name].shape, strict=True)
            if axis.dim_param
        }
        for name, size in sizes.items():
            make_dim_param_fixed(model.graph, name, size)
        fix_output_shapes(model)
        return _saved(case, model)(call)

    return run


def _ort_format(case: Case) -> Runner:
    command = [sys.executable, "-m", "onnxruntime.tools.convert_onnx_models_to_ort", "--optimization_style", "Fixed"]
    done = subprocess.run(
        [*command, "--output_dir", str(case.folder), str(case.path)], capture_output=True, text=True, check=False
    )
    written = next(case.folder.rglob("*.ort"), None)
    if written is None:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1])
    return _session(written)


# ---- others


def _onnxsim(case: Case) -> Runner:
    import onnxsim

    model, is_right = onnxsim.simplify(onnx.load(case.path))
    if not is_right:
        raise RuntimeError("onnxsim's own check says no")
    return _saved(case, model)


def _onnxslim(case: Case) -> Runner:
    import onnxslim

    onnxslim.slim(str(case.path), str(case.out))
    return _read(case.out)


def _common_float16(case: Case, *, keep: bool) -> Runner:
    from onnxconverter_common.float16 import convert_float_to_float16

    return _saved(case, convert_float_to_float16(onnx.load(case.path), keep_io_types=keep))


def _openvino(case: Case) -> Runner:
    import openvino

    core = openvino.Core()
    names = [port.name for port in onnx.load(case.path, load_external_data=False).graph.output]

    def run(call: Arrays) -> Arrays:
        model = core.read_model(case.path)
        given = {port.get_any_name(): call[port.get_any_name()] for port in model.inputs}
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = compiled(given)
        return {name: np.array(found[index]) for index, name in enumerate(names)}

    return run


def _node(package: str) -> Callable[[Case], Runner]:
    """ONNX Runtime for JavaScript, from the folder of npm packages that NODE_MODULES names."""

    def apply(case: Case) -> Runner:
        def run(call: Arrays) -> Arrays:
            wanted = {port.name for port in onnx.load(case.path, load_external_data=False).graph.input}
            given = {name: _as_text(value) for name, value in call.items() if name in wanted}
            task = {"package": package, "model": str(case.path), "inputs": given}
            done = subprocess.run(
                ["node", str(NODE), os.environ["NODE_MODULES"]],
                input=json.dumps(task), capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            return {name: _from_text(value) for name, value in json.loads(done.stdout).items()}

        return run

    return apply


_TYPES = {"float32": np.float32, "int64": np.int64, "bool": np.bool_, "int32": np.int32}


def _as_text(value: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"type": value.dtype.name, "shape": list(value.shape), "data": data}


def _from_text(value: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(value["data"]), _TYPES[value["type"]]).reshape(value["shape"])


def _float16(apply: Callable[..., Runner], *, keep: bool) -> Callable[[Case], Runner]:
    return partial(apply, keep=keep)


_ORT, _COMMON = "onnxruntime", "onnxconverter-common"
TOOLS: tuple[Tool, ...] = (
    Tool("onnx.checker, strict shape inference", _checker, "onnx"),
    Tool("onnx.reference", _reference, "onnx"),
    Tool("onnx.version_converter to 17", _version_converter, "onnx"),
    Tool("quantize_dynamic", _quantize_dynamic, _ORT, INT8),
    Tool("quant_pre_process", _quant_pre_process, _ORT),
    Tool("quantize_static", _quantize_static, _ORT, INT8),
    Tool("quant_pre_process, quantize_static", _pre_process_and_quantize_static, _ORT, INT8),
    Tool("float16, keep_io_types", _float16(_ort_float16, keep=True), _ORT, FLOAT16),
    Tool("float16", _float16(_ort_float16, keep=False), _ORT, FLOAT16),
    Tool("symbolic_shape_infer", _symbolic_shape_infer, _ORT),
    Tool("make_dim_param_fixed", _make_dim_param_fixed, _ORT),
    Tool(".ort conversion", _ort_format, _ORT),
    Tool("onnxsim", _onnxsim, "onnxsim", is_at_hand=False),
    Tool("onnxslim", _onnxslim, "onnxslim", is_at_hand=False),
    Tool("onnxconverter-common float16, keep_io_types", _float16(_common_float16, keep=True), _COMMON, FLOAT16,
         is_at_hand=False),
    Tool("onnxconverter-common float16", _float16(_common_float16, keep=False), _COMMON, FLOAT16, is_at_hand=False),
    Tool("OpenVINO", _openvino, "openvino", is_at_hand=False),
    Tool("onnxruntime-node", _node("onnxruntime-node"), "npm onnxruntime-node", is_at_hand=False),
    Tool("onnxruntime-web (wasm)", _node("onnxruntime-web"), "npm onnxruntime-web", is_at_hand=False),
)  # fmt: skip
BY_NAME = {tool.name: tool for tool in TOOLS}


# ---- work-arounds: the same tools, called otherwise

_HEAVY = {"op_types_to_quantize": ["Conv", "Gemm", "MatMul"]}


def without_symbols(tool: Tool) -> Tool:
    """Shapes by onnx's own inference instead of ONNX Runtime's symbolic one."""
    skipped = {"skip_symbolic_shape": True}
    if tool.name == "quant_pre_process":
        return replace(tool, apply=partial(_quant_pre_process, **skipped))
    if tool.name == "symbolic_shape_infer":
        return replace(tool, apply=_checker)
    return replace(tool, apply=partial(_pre_process_and_quantize_static, before=skipped, **_HEAVY))


def of_heavy_operators(tool: Tool) -> Tool:
    """Quantised where it pays; masks and positions keep their types."""
    apply = _quantize_static if tool.name == "quantize_static" else _pre_process_and_quantize_static
    return replace(tool, apply=partial(apply, **_HEAVY))


def of_own_weights(tool: Tool) -> Tool:
    """Every Gemm has a weight of its own."""

    def apply(case: Case) -> Runner:
        model = onnx.load(case.path)
        weights, seen = {weight.name: weight for weight in model.graph.initializer}, set()
        for node in model.graph.node:
            if node.op_type == "Gemm" and node.input[1] in seen:
                copy = model.graph.initializer.add()
                copy.CopyFrom(weights[node.input[1]])
                copy.name = node.input[1] = f"{copy.name}_of_{node.name}"
            seen.update(node.input[1:2] if node.op_type == "Gemm" else ())
        path = case.folder / "own_weights.onnx"
        onnx.save(model, path)
        return tool.apply(replace(case, path=path))

    return replace(tool, apply=apply)


def by_runtimes_converter(*block: str) -> Callable[[Tool], Tool]:
    """ONNX Runtime's own float16 converter, with operators that stay as they are."""
    return lambda tool: replace(tool, apply=partial(_ort_float16, keep="keep_io_types" in tool.name, block=block))


def version_of(tool: Tool) -> str:
    """The version of what a tool comes from, as it is installed."""
    if tool.package.startswith("npm "):
        text = (Path(os.environ["NODE_MODULES"]) / tool.package[4:] / "package.json").read_text(encoding="utf-8")
        return str(json.loads(text)["version"])
    return importlib.metadata.version(tool.package)


# ---- comparing


def difference(tool: Tool, expected: Arrays, found: Arrays, ranked: Sequence[str] = ()) -> float:
    """How far a result is off; one that is not comparable raises ValueError."""
    if set(expected) != set(found):
        raise ValueError(f"the outputs are {', '.join(found)}")
    worst = 0.0
    for name, value in expected.items():
        if tool.allowed != EXACT and name in ranked:
            continue
        other = found[name]
        if other.shape != value.shape:
            raise ValueError(f"`{name}` has the shape {list(other.shape)}, not {list(value.shape)}")
        a, b = value.astype(np.float64), other.astype(np.float64)
        if not np.isfinite(b).all():
            raise ValueError(f"`{name}` is not finite")
        if value.size == 0:
            continue
        if tool.allowed == EXACT:
            worst = max(worst, float(np.abs(a - b).max() / max(1.0, np.abs(a).max())))
        else:
            worst = max(worst, float(np.sqrt(np.square(a - b).mean() / max(np.square(a).mean(), 1e-12))))
    return worst


def outcome_of(tool: Tool, path: Path, calls: Sequence[Arrays], ranked: Sequence[str] = ()) -> dict[str, Any]:
    """What a tool makes of a file: right, how far off, or the error with which it ends."""
    original = run_file(path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some tools write where they stand
        try:
            run = tool.apply(Case(path, calls, Path(folder)))
            off = max(difference(tool, original(call), run(call), ranked) for call in calls)
        except Exception as error:
            said = str(error).replace(folder, "").strip() or "no message"
            return {"outcome": "fails", "error": f"{type(error).__name__}: {said}"}
    outcome = "right" if off <= tool.allowed else "differs"
    return {"outcome": outcome, "off": off}

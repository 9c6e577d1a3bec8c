"""What `check` promises: a file beside its model, a file alone, and nothing loaded that is not run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape

from .test_export import DIMS, Pooled, example


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[anyshape.Result, Path]:
    path = tmp_path_factory.mktemp("pooled") / "model.onnx"
    return anyshape.export(Pooled(), example(), path, dims=DIMS, quick=True), path


def test_a_quantised_file_is_told_from_a_wrong_one(tmp_path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    anyshape.export(model, torch.randn(3, 16), tmp_path / "float.onnx", dims={"input": "batch 16"})
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "small.onnx", weight_type=QuantType.QUInt8)
    result = anyshape.check(tmp_path / "small.onnx", model, torch.randn(3, 16))
    assert result.verdict == "checked"
    assert result.notes[-1].startswith("the file computes in a narrower type: at the example's size it loses ")


def test_check_reads_dims_from_the_file(exported: tuple[anyshape.Result, Path]) -> None:
    result = anyshape.check(exported[1], Pooled(), example())
    assert (result.verdict, dict(result.dims).keys()) == ("checked", {"batch", "seq"})


def test_check_at_one_size_runs_that_size(exported: tuple[anyshape.Result, Path]) -> None:
    result = anyshape.check(exported[1], Pooled(), example(), at={"batch": 4, "seq": 9})
    assert result.verification.sizes_run == ({"batch": 4, "seq": 9},)


def test_check_says_where_another_model_differs(exported: tuple[anyshape.Result, Path]) -> None:
    class Doubled(Pooled):
        def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
            return {name: value * 2 for name, value in super().forward(ids, mask).items()}

    other = Doubled()
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(exported[1], other, example())
    (finding,) = refused.value.findings
    assert finding.rule == "wrong-values"
    assert finding.span.function.endswith("forward")


def test_other_weights_are_told_before_a_line_is_blamed(exported: tuple[anyshape.Result, Path]) -> None:
    other = Pooled()
    nn.init.ones_(other.head.weight)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(exported[1], other, example())
    (finding,) = refused.value.findings
    assert (finding.rule, finding.message) == ("other-weights", "the file holds other weights than the model")
    assert refused.value.result.headline == "refused: the weights of file and model differ"
    assert finding.helps == ("give the weights that the file was exported with: load them into the model first",)


def test_a_claim_in_a_file_is_not_taken_for_the_models_limit(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    claims = {"version": "1", "verdict": "checked", "dims": {"batch": "1.."}, "limits": ["batch == 3"]}
    text = json.dumps({**claims, "outputs": {}, "constants": {}})
    graph = '<ir_version: 9, opset_import: ["" : 20]> g (float[batch, 4] x) => (float[batch, 4] y) { y = Relu(x) }'
    model = onnx.parser.parse_model(graph)
    model.metadata_props.add(key="anyshape.contract", value=text)
    onnx.save(model, path)
    result = anyshape.check(path, nn.ReLU(), torch.randn(3, 4))
    assert (result.limits, result.given_up) == ((), ("only where batch == 3",))


def test_a_file_of_nan_is_wrong_although_the_model_has_some(tmp_path: Path) -> None:
    class LogOfRelu(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.log(torch.relu(x))

    graph = (
        '<ir_version: 9, opset_import: ["" : 20]> g (float[batch, 4] x) => (float[batch, 4] y) '
        "{ a = Abs(x) n = Neg(a) y = Log(n) }"
    )
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "nan.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "nan.onnx", LogOfRelu(), torch.randn(3, 4))
    assert [finding.rule for finding in refused.value.findings] == ["wrong-values"]
    result = anyshape.export(LogOfRelu(), torch.randn(3, 4), dims={"x": "batch 4"})
    assert result.verdict == "checked"


# ---- the opset, by both names of its domain


@pytest.mark.parametrize("model", [None, nn.ReLU()], ids=["alone", "beside its model"])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_the_opset_is_told(domain: str, model: nn.Module | None, tmp_path: Path) -> None:
    head = f'<ir_version: 9, opset_import: ["com.microsoft" : 1, "{domain}" : 20]>'
    text = f"{head} g (float[batch, 4] x) => (float[batch, 4] y) {{ y = Relu(x) }}"
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    args = () if model is None else torch.randn(3, 4)
    assert anyshape.check(tmp_path / "model.onnx", model, args, quick=True).opset == 20


# ---- wrong usage


def test_what_is_about_the_model_needs_one(exported: tuple[anyshape.Result, Path]) -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.check(exported[1], atol=1e-3)
    assert str(raised.value) == "atol= is about the model, but no model is given: pass it as the second argument"


@pytest.mark.parametrize("model", [None, Pooled()], ids=["alone", "beside its model"])
def test_a_size_of_no_dim_is_one_sentence(model: nn.Module | None, exported: tuple[anyshape.Result, Path]) -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.check(exported[1], model, () if model is None else example(), at={"bach": 3})
    assert str(raised.value) == "no dim is called `bach`; did you mean `batch`?"


def test_what_is_no_path_is_one_sentence() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.check(3)
    assert str(raised.value) == "`f` is a int: pass the path of an ONNX file"


# ---- what is loaded

_HEAD = "import sys, onnx, onnx.parser, anyshape; path = sys.argv[1];"
_LOADED = "print(*(name for name in sys.modules if name.startswith({})), sep='\\n')"
_STATIC = "(float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"
_NAMED = "(float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"


def loaded(folder: Path, text: str, code: str, *prefixes: str) -> list[str]:
    """The modules with these prefixes after `code` has run in a process of its own."""
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}'), path)
    program = f"{_HEAD}{code}\n{_LOADED.format(prefixes)}"
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (_NAMED, "anyshape.check(path, quick=True)"),
        (_NAMED, "import numpy; anyshape.load(path)(numpy.ones((5, 3), 'float32'))"),
        (_NAMED, "str(anyshape.inspect(path))"),
        (_STATIC, "anyshape.make_dynamic(path, {'x': 'batch 3'}, out=path + '.free.onnx')"),
    ],
    ids=["check", "load", "inspect", "make_dynamic"],
)
def test_a_file_alone_needs_neither_torch_nor_conversion(text: str, code: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, text, code, "torch", "onnxscript", "anyshape.conversion", "anyshape.torchkit") == []


def test_beside_a_model_no_translation_is_loaded(tmp_path: Path) -> None:
    code = "import torch; anyshape.check(path, torch.nn.ReLU(), torch.randn(2, 3), quick=True)"
    rooms = [f"anyshape.conversion.{room}" for room in ("operators", "control_flow", "speed")]
    assert loaded(tmp_path, _NAMED, code, *rooms) == []


def test_a_file_in_float16_without_a_kernel_is_one_sentence_and_not_called_wrong(tmp_path: Path) -> None:
    nodes = "w = BlackmanWindow <output_datatype = 10> (size) y = Mul (x, w)"
    graph = f"(float16[n] x, int64 size) => (float16[n] y) {{ {nodes} }}"
    path = tmp_path / "window.onnx"
    onnx.save(onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]> g ' + graph), path)
    tries: list[Callable[[], object]] = [
        lambda: anyshape.load(path),
        lambda: anyshape.check(path),
        lambda: anyshape.check(path, lambda x, size: x * size, (torch.ones(3).half(), torch.tensor(3))),
    ]
    for attempt in tries:
        with pytest.raises(anyshape.AnyshapeError) as caught:
            attempt()
        assert str(caught.value) == (
            f"ONNX Runtime {onnxruntime.__version__} cannot run this file in float16 here: "
            "Could not find an implementation for BlackmanWindow(17) node with name ''"
        )

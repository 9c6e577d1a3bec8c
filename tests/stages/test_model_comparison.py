"""A file beside its model: which input takes which leaf, what the file declares, and what a narrow file may lose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from torch import Tensor

import anyshape
from anyshape.onnxfile.interface import Port, read_interface
from anyshape.stages.model_comparison import declare_by_model, match_ports
from anyshape.verification.given_file import GivenFile

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
DOUBLE = "(float[n] x) => (float[n] z) { z = Add (x, x) }"


def written(text: str, folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(HEAD + text), folder / "model.onnx")
    return folder / "model.onnx"


def ports(*names: str) -> list[Port]:
    return [Port(name, "float32", ("n",)) for name in names]


def test_inputs_are_matched_by_name_or_else_in_order() -> None:
    assert {leaf: port.name for leaf, port in match_ports(ports("b", "a"), ["a", "b"]).items()} == {"a": "a", "b": "b"}
    assert {leaf: port.name for leaf, port in match_ports(ports("b", "c"), ["a", "b"]).items()} == {"a": "b", "b": "c"}


def test_another_number_of_inputs_is_one_sentence() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        match_ports(ports("ids"), ["ids", "mask"])
    assert str(raised.value) == "the file has 1 inputs (ids), the call 2; the call's `mask` is not in the file"


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


@pytest.mark.parametrize(
    ("rows", "dims"),
    [
        ((("batch", 4), ("batch", 4)), {"batch"}),
        ((("batch size", 4), ("batch size", 4)), {"batch_size"}),
        (((None, 4), (2, 4)), {"x_dim0"}),
        ((("a", 4), ("2*a", 4)), {"a"}),
        ((("2*a", 4), (2, 4)), {"dim_2_a"}),
    ],
)
def test_the_file_names_what_varies(rows: tuple[tuple[int | str | None, ...], ...], dims: set[str]) -> None:
    text = "(float[n, 4] x, float[n, 4] y) => (float[n, 4] z) { z = Add (x, y) }"
    proto = onnx.parser.parse_model(HEAD + text)
    inputs = tuple(Port(name, "float32", row) for name, row in zip("xy", rows, strict=True))
    file = GivenFile(Path("model.onnx"), proto, replace(read_interface(proto), inputs=inputs), None)
    args = (torch.ones(2, 4), torch.ones(4 if rows[1][0] == "2*a" else 2, 4))
    assert set(declare_by_model(file, added, args, None, None, None, ()).spec.ranges) == dims


def ignoring(x: Tensor, y: Tensor) -> Tensor:
    return x * 2 if y.shape[0] else y


def test_an_input_that_the_file_lost_matters_or_not(tmp_path: Path) -> None:
    path, args, dims = written(DOUBLE, tmp_path), (torch.randn(3), torch.randn(3)), {"x": "n", "y": "n"}
    assert anyshape.check(path, ignoring, args, dims=dims, quick=True).verdict == "checked"
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, added, args, dims=dims, quick=True)
    assert "`y`" in refused.value.findings[0].message


def test_a_model_of_chance_is_compared_with_nothing(tmp_path: Path) -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(written(DOUBLE, tmp_path), lambda x: x + torch.rand_like(x), torch.randn(3), quick=True)
    assert refused.value.result.verification is None
    assert [finding.rule for finding in refused.value.findings] == ["random-output"]


NARROW = "(float[n] x) => (float[n] z) <float16[1] one = {15360}> "
NARROW += "{ h = Cast<to = 10>(x) m = Mul (h, one) w = Cast<to = 1>(m) "


def test_a_narrow_file_may_lose_what_it_loses_at_the_example_and_no_more(tmp_path: Path) -> None:
    result = anyshape.check(written(NARROW + "z = Add (w, w) }", tmp_path), lambda x: x * 2, torch.randn(3), quick=True)
    assert result.notes[0].startswith("the file computes in a narrower type: at the example's size it loses ")
    assert result.verification is not None
    assert result.verification.measure == "the tolerance in use"
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(written(NARROW + "z = Mul (w, w) }", tmp_path), lambda x: x * 2, torch.randn(3), quick=True)
    (note,) = refused.value.result.notes
    assert note.startswith("the file computes in a narrower type and loses more than a tenth of the largest value")


def test_a_number_that_sizes_are_compared_with_is_run_far_beyond_the_example(tmp_path: Path) -> None:
    path = written(
        "(float[n] x) => (float[n] z) { c = Size (x) e = Constant <value_int: int = 640> () l = Greater (c, e) "
        "f = CastLike (l, x) d = Add (x, x) z = Add (d, f) }",
        tmp_path,
    )
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, lambda x: x + x, torch.randn(3))
    assert refused.value.findings[0].breaks_at == {"n": 641}


class _ResizedLike(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, size=y.shape[0])


def test_a_resize_whose_pixels_are_others_at_few_pairs_of_sizes_is_found(tmp_path: Path) -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 18]>
    main (float[1, 2, a] x, float[b] y) => (float[1, 2, b] out) {
        front = Shape <start = 0, end = 2> (x)
        size = Shape (y)
        sizes = Concat <axis = 0> (front, size)
        out = Resize <nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"> (x, , , sizes)
    }
    """
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    call = (torch.randn(1, 2, 10), torch.randn(20))
    dims, sizes = {"x": "1 2 n", "y": "m"}, {"n": "1..100", "m": "1..100"}
    with pytest.raises(anyshape.ExportError) as refusal:
        anyshape.check(path, _ResizedLike(), call, dims=dims, sizes=sizes)
    assert [finding.rule for finding in refusal.value.result.findings] == ["wrong-values"]


class Gated(torch.nn.Module):
    """Of more than four rows it gives twice as much."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * (2 if x.shape[0] > 4 else 1)


def in_bfloat16(folder: Path, **options: object) -> tuple[torch.nn.Module, Tensor, Path]:
    model, x, path = Gated().to(torch.bfloat16), torch.randn(3, 4).to(torch.bfloat16), folder / "model.onnx"
    anyshape.export(model, x, path, dims={"x": "n 4"}, quick=True, **options)
    return model, x, path


@pytest.mark.parametrize("outside", [False, True], ids=["one file", "weights beside it"])
def test_a_file_in_bfloat16_is_run_in_float32_beside_its_model(tmp_path: Path, outside: bool) -> None:
    model, x, path = in_bfloat16(tmp_path, external_data=outside)
    result = anyshape.check(path, model, x, quick=True)
    runtime, sizes = f"ONNX Runtime {onnxruntime.__version__}", len(result.verification.sizes_run)
    assert result.headline == (
        f"checked in float32: model.onnx, its graph is right at {sizes} sizes against PyTorch; "
        f"{runtime} cannot run bfloat16 here"
    )
    assert "  type     the same graph in float32 was run; the file's own bfloat16 was not" in str(result).splitlines()
    assert result.notes == ()
    of_wide = anyshape.check(path, model.float(), x.float(), quick=True)
    assert of_wide.verification.own_type == "bfloat16"


def test_a_wrong_file_in_bfloat16_is_told_with_its_line(tmp_path: Path) -> None:
    model, x, path = in_bfloat16(tmp_path, sizes={"n": "1..4"})
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, model, x, sizes={"n": "1..9"}, quick=True)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.breaks_at) == ("wrong-values", {"n": 5})
    assert (finding.label, finding.span.function) == ("first result that differs", "forward")

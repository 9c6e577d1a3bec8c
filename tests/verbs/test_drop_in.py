"""`export` in the place of torch.onnx.export: what a script that worked there may pass, and what becomes of it."""

from __future__ import annotations

import pytest
import torch
from onnxscript import opset18 as op
from torch import Tensor, nn
from torch.export import Dim

import anyshape
from anyshape.conversion.strategies import LIFTED, TORCHSCRIPT
from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.undeclared import propose
from tests.running import is_right


class Steps(nn.Module):
    """A branch on values and a loop over a size, which TorchScript keeps by itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, times: int = 2) -> Tensor:
        total = torch.zeros_like(x[0])
        for step in range(x.size(0)):
            total = torch.tanh(self.linear(total + x[step]))
        return total * times if bool(x.sum() > 0) else total


def ports(result: anyshape.Result) -> list[str]:
    return [str(port) for port in (*result.inputs, *result.outputs)]


# ---- TorchScript


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_module_is_converted_by_its_own_exporter_alone_and_checked(tmp_path) -> None:
    model, path = torch.jit.script(Steps().eval()), tmp_path / "model.onnx"
    result = anyshape.export(model, (torch.randn(3, 2, 4),), path, dims={"x": "steps batch 4"}, quick=True)
    assert result.verdict == "checked"
    assert [attempt.strategy for attempt in result.attempts] == ["TorchScript"]
    assert ports(result) == ["x: float32[steps, batch, 4]", "output: float32[batch, 4]"]
    for sign in (1, -1):
        assert is_right(path, Steps(), (sign * torch.rand(6, 5, 4),))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_traced_module_that_froze_a_size_is_refused() -> None:
    class Flat(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(x.shape[0], 8) + torch.arange(x.shape[1] * 4)

    traced = torch.jit.trace(Flat(), torch.ones(3, 2, 4))
    result = anyshape.export(traced, torch.ones(3, 2, 4), dims={"x": "batch 2 4"}, quick=True)
    assert ports(result) == ["x: float32[batch, 2, 4]", "output: float32[batch, 8]"]
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(traced, torch.ones(3, 2, 4), dims={"x": "batch n 4"}, quick=True)
    assert str(refused.value.findings[0]).splitlines() == [
        "error[pinned-dim]: `n` cannot vary",
        "  = note: batch = 3, n = 1 breaks it; PyTorch fails there too: "
        "RuntimeError: shape '[3, 8]' is invalid for input of size 12",
        "  = help: tracing wrote its size down as a number: export the module that was traced, or leave `n` out of the "
        "declaration",
    ]


class Writing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x.add_(3)
        return x * self.calls


def test_a_scripted_module_may_write_to_its_inputs_and_its_attributes(tmp_path) -> None:
    model, path = torch.jit.script(Writing()), tmp_path / "model.onnx"
    anyshape.export(model, torch.ones(2, 3), path, dims={"x": "n 3"}, quick=True)
    assert model.calls == 0
    assert is_right(path, model, (torch.randn(5, 3),))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_may_hold_scripted_parts() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.script(Steps().eval())

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) + 1

    result = anyshape.export(Outer().eval(), torch.randn(3, 2, 4), dims={"x": "steps 2 4"}, quick=True)
    assert result.attempts[-1].strategy == "TorchScript"


# ---- an exported program


def test_a_program_brings_its_own_example() -> None:
    program = torch.export.export(nn.Linear(4, 3), (torch.ones(5, 4),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    assert ports(anyshape.export(program, quick=True)) == ["input: float32[batch, 4]", "output: float32[batch, 3]"]
    keywords = torch.export.export(nn.Linear(4, 3), (), {"input": torch.ones(5, 4)})
    assert ports(anyshape.export(keywords, dims={}, quick=True)) == ["input: float32[5, 4]", "output: float32[5, 3]"]


# ---- dynamic_axes


def test_what_dynamic_axes_names_beside_inputs_and_outputs_is_noted() -> None:
    axes = {"input_1": {0: "batch"}, "output": {0: "batch"}, "inputs": [1], "input": {0: "batch"}}
    result = anyshape.export(nn.Linear(4, 3), torch.ones(2, 4), dynamic_axes=axes, quick=True)
    assert ports(result) == ["input: float32[batch, 4]", "output: float32[batch, 3]"]
    assert list(result.notes) == [
        f"`dynamic_axes` names `{name}`, which is neither an input nor an output, and declares nothing: "
        "the inputs are `input`; did you mean `input`?"
        for name in ("input_1", "inputs")
    ]


def test_an_axis_that_pytorch_itself_cannot_vary_stays_static_with_a_note() -> None:
    axes = {"input": {0: "batch", 1: "features"}}
    result = anyshape.export(nn.Linear(4, 3), torch.ones(2, 4), dynamic_axes=axes, quick=True)
    assert ports(result) == ["input: float32[batch, 4]", "output: float32[batch, 3]"]
    assert list(result.notes) == ["`features` stays 4, since no file serves it: `features` cannot vary"]
    for asked in ({"dynamic_axes": axes, "sizes": {"features": "1..9"}}, {"dims": {"input": "batch features"}}):
        with pytest.raises(anyshape.ExportError, match="`features` cannot vary"):
            anyshape.export(nn.Linear(4, 3), torch.ones(2, 4), quick=True, **asked)


def test_sizes_that_give_another_number_of_outputs_are_beyond_a_limit() -> None:
    class Thirds(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return x.chunk(3, 1) if x.shape[1] > 4 else (x,)

    result = anyshape.export(Thirds(), torch.ones(2, 9), dynamic_axes={"x": {0: "batch", 1: "n"}}, quick=True)
    assert str(result.dims["n"]) == "5.."
    (note,) = result.notes
    assert note.startswith("limit `n >= 5`: at ")
    assert note.endswith(" the model returns 1 output, 3 in the example, and a file always has as many")


def test_a_number_of_outputs_that_values_decide_is_no_limit() -> None:
    class Some(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return (x, x + 1) if bool(x.sum() > 0) else (x,)

    with pytest.raises(anyshape.ExportError):
        anyshape.export(Some(), torch.ones(2, 3), dynamic_axes={"x": {1: "n"}}, quick=True)


# ---- dynamic_shapes: what each entry says about an axis


class Rows(nn.Module):
    """The first axis becomes a number, the second is free."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(2, 3, x.shape[1]) + 1


FREE = "x: float32[6, x_dim1] output: float32[2, 3, x_dim1]"
STATIC = "x: float32[6, 4] output: float32[2, 3, 4]"


@pytest.mark.parametrize(
    ("shapes", "written"),
    [
        (None, None),
        ((None,), STATIC),
        ((Dim.STATIC,), STATIC),
        (({},), STATIC),
        (({0: None, 1: None},), STATIC),
        (({0: Dim.STATIC, 1: Dim.STATIC},), STATIC),
        (([6, 4],), STATIC),
        (({0: 6, 1: Dim.DYNAMIC},), FREE),
        (({0: None, 1: Dim.DYNAMIC},), FREE),
        (((None, Dim.AUTO),), FREE),
        (({0: Dim.AUTO, 1: Dim.AUTO},), FREE),
        ({"x": {1: "cols"}}, FREE.replace("x_dim1", "cols")),
        ({"x": {1: Dim("cols", max=9)}}, FREE.replace("x_dim1", "cols")),
    ],
)
def test_every_entry_of_dynamic_shapes_means_what_it_means_to_torch(shapes, written) -> None:
    result = anyshape.export(Rows(), torch.ones(6, 4), dynamic_shapes=shapes, quick=True)
    assert " ".join(ports(result)) == (written or FREE.replace("x_dim1", "seq"))


def test_an_axis_that_may_be_static_stays_so_with_a_note_and_one_that_must_vary_is_refused() -> None:
    result = anyshape.export(Rows(), torch.ones(6, 4), dynamic_shapes=({0: Dim.AUTO},), quick=True)
    assert " ".join(ports(result)) == STATIC
    assert list(result.notes) == ["`x_dim0` stays 6, since no file serves it: `x_dim0` cannot vary"]
    with pytest.raises(anyshape.ExportError, match=r"error\[pinned-dim\]: `x_dim0` cannot vary\n"):
        anyshape.export(Rows(), torch.ones(6, 4), dynamic_shapes=({0: Dim.DYNAMIC},), quick=True)
    with pytest.raises(anyshape.ExportError, match=r"error\[pinned-dim\]: `rows` cannot vary\n"):
        anyshape.export(Rows(), torch.ones(6, 4), dynamic_shapes=({0: "rows", 1: Dim.AUTO},), quick=True)


# ---- nothing declared


def test_a_dim_that_was_found_and_that_no_file_serves_stays_static() -> None:
    class Apart(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return (x * 2).unbind(0)

    result = anyshape.export(Apart(), torch.ones(3, 4), quick=True)
    assert ports(result) == ["x: float32[3, seq]", *(f"output.{index}: float32[seq]" for index in range(3))]
    assert result.notes[-1] == "`batch` stays 3, since no file serves it: `batch` cannot vary in the export"
    assert not any("declaration" in note for note in result.notes)
    with pytest.raises(anyshape.ExportError, match="cannot vary in the export"):
        anyshape.export(Apart(), torch.ones(3, 4), dims={"x": "batch seq"}, quick=True)


def test_keys_and_values_of_attention_are_found_to_have_one_length() -> None:
    class Attention(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return nn.functional.scaled_dot_product_attention(q, k, v)

    call = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    proposal = propose(resolve_target(Attention()), [bind_call(resolve_target(Attention()), call)])
    axes = {name: " ".join(map(str, row)) for name, row in proposal.dims.items()}
    assert axes == {"q": "batch _ q_seq _", "k": "batch _ k_seq _", "v": "batch _ k_seq _"}
    result = anyshape.export(
        Attention(), call, dims={"q": "b 3 t 8", "k": "b 3 keys 8", "v": "b 3 values 8"}, quick=True
    )
    assert result.limits == ("values == keys",)


# ---- custom_translation_table


class Kinked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) + 1


def test_a_translation_may_stand_in_a_list_and_one_that_gives_other_values_is_refused_by_name() -> None:
    relu, call = torch.ops.aten.relu.default, torch.randn(2, 3, generator=torch.Generator().manual_seed(0))

    def exported(translation: object) -> anyshape.Result:
        table = {relu: translation}
        return anyshape.export(Kinked(), call, dims={"x": "b 3"}, custom_translation_table=table, quick=True)

    assert exported([lambda x: op.Relu(x)]).verdict == "checked"
    with pytest.raises(anyshape.DeclarationError, match=r"of aten\.relu\.default is a list: give a fun"):
        exported([op.Relu, op.Relu])
    with pytest.raises(anyshape.ExportError) as caught:
        exported(lambda x: op.Mul(x, op.Constant(value_float=3.0)))
    assert {attempt.strategy for attempt in caught.value.result.attempts}.isdisjoint({TORCHSCRIPT, LIFTED})
    first = caught.value.findings[0]
    assert first.rule == "wrong-values"
    assert first.helps[0] == (
        "custom_translation_table translates `aten.relu.default`: compare what it gives with PyTorch"
    )


# ---- what stands in the way, and the line that says it


def test_the_line_that_was_tried_is_the_help() -> None:
    class Parts(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
            scaled = x * 2 if x.shape[0] == mask.shape[0] else x
            return scaled, (mask if x.shape[0] == mask.shape[0] else mask.sum())

    def refused(**declared: object) -> anyshape.ExportError:
        with pytest.raises(anyshape.ExportError) as caught:
            anyshape.export(Parts(), (torch.ones(3, 4), torch.ones(3, 2)), quick=True, **declared)
        return caught.value

    error = refused(dynamic_axes={"x": {0: "batch"}, "mask": {0: "bs"}})
    assert error.findings[0].helps == (
        'did you mean one dim? give both axes the name `batch`, or where=["bs == batch"]: with it the file is right',
    )

    class Thirds(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return x.chunk(3, 1)

    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.export(Thirds(), torch.ones(3, 9), dims={"x": "batch n"}, quick=True)
    assert caught.value.findings[0].helps == ('declare it: sizes={"n": "5.."}: with it the file is right',)


def test_of_dims_that_were_found_only_the_one_to_blame_stays_static() -> None:
    def thirds(x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(3)

    result = anyshape.export(thirds, torch.ones(6, 4), quick=True)
    assert " ".join(ports(result)).startswith("x: float32[6, seq]")
    assert result.notes[-1].startswith("`batch` stays 6, since no file serves it: has 3 outputs, PyTorch 1 at ")

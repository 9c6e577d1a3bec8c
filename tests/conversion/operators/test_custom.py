"""Custom operators are traced through their Python implementation, translated, or named with the user's line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxscript
import pytest
import torch
from onnxscript import opset18 as op
from torch import Tensor, nn

import anyshape
from anyshape.conversion.operators import custom
from anyshape.torchkit import custom_operators
from tests.running import is_right

LIBRARY = torch.library.Library("anyshape_tests", "FRAGMENT")


def define(schema: str, key: str, function: Any) -> Any:
    LIBRARY.define(schema)
    LIBRARY.impl(schema.partition("(")[0], function, key)
    return getattr(torch.ops.anyshape_tests, schema.partition("(")[0])


def plus(constant: float) -> Any:
    def function(x: Tensor, rows: int) -> Tensor:
        return x.reshape(rows, -1) + constant

    return function


PLUS_ONE = define("plus_one(Tensor x, int rows) -> Tensor", "CPU", plus(1.0))
PLUS_TWO = define("plus_two(Tensor x, int rows) -> Tensor", "CompositeImplicitAutograd", plus(2.0))
FOR_AUTOGRAD = define("for_autograd(Tensor x) -> Tensor", "Autograd", lambda x: x.tanh())


class Below(torch.autograd.Function):
    @staticmethod
    def forward(_context: Any, x: Tensor) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.anyshape_tests.below(x)

    @staticmethod
    def backward(_context: Any, gradient: Tensor) -> Tensor:
        return gradient


BELOW = define("below(Tensor x) -> Tensor", "Autograd", lambda x: Below.apply(x))
LIBRARY.impl("below", lambda x: x.sigmoid(), "CPU")


class Partly:
    """A callable object has no function that could be found."""

    def __call__(self, x: Tensor, by: float) -> Tensor:
        return x * by


PARTLY = define("partly(Tensor x, float by) -> Tensor", "CPU", Partly())


@torch.library.custom_op("anyshape_tests::outer", mutates_args=(), device_types=("cpu", "cuda"))
def outer(x: Tensor, scale: float = 2.0) -> list[Tensor]:
    return [torch.ops.anyshape_tests.below(x) * scale, torch.ops.anyshape_tests.plus_one(x, x.shape[1])]


@torch.library.custom_op("anyshape_tests::in_numpy", mutates_args=())
def in_numpy(x: Tensor, factor: float = 2.0) -> Tensor:
    return torch.from_numpy(x.detach().numpy() * x.detach().numpy().dtype.type(factor))


@torch.library.custom_op("anyshape_tests::scaled", mutates_args=())
def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


class Calls(nn.Module):
    """Calls whatever it is given, three modules deep."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def deep(function: Any) -> nn.Module:
    return nn.Sequential(nn.Sequential(nn.Sequential(nn.Tanh(), Calls(function)))).eval()


def export(function: Any, path: Path | None = None, **options: Any) -> anyshape.Result:
    return anyshape.export(deep(function), torch.randn(3, 5), path, dims={"input": "batch n"}, quick=True, **options)


CALLS = {
    "a size in a plain int": lambda x: PLUS_ONE(x, x.shape[1]),
    "the same code with other constants": lambda x: (PLUS_ONE(x, x.shape[1]), PLUS_TWO(x, rows=x.shape[0])),
    "a kernel for autograd alone": lambda x: FOR_AUTOGRAD(x),
    "a kernel for autograd above another": lambda x: BELOW.default(x),
    "a callable object": lambda x: PARTLY(x, 0.5),
    "an operator inside an operator": lambda x: outer(x, scale=x.shape[0] / 2),
    "twice": lambda x: scaled(scaled(x), 3.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_traced_through_its_python_implementation(name: str, tmp_path: Path) -> None:
    result = export(CALLS[name], tmp_path / "model.onnx")
    assert (result.verdict, [attempt.strategy for attempt in result.attempts]) == ("checked", ["torch.export"])
    assert all("traced through its Python implementation" in repair for repair in result.repairs)
    for shape in ((1, 1), (1, 4), (3, 5), (7, 11)):
        assert is_right(tmp_path / "model.onnx", deep(CALLS[name]), (torch.randn(*shape),))


def test_operators_are_as_before_afterwards_also_where_a_trace_fails() -> None:
    overload, packet = torch.ops.anyshape_tests.scaled.default, torch.ops.anyshape_tests.scaled
    before = (overload._op, packet._op)

    def answer(_overload: Any, _call: Any) -> Any:
        raise KeyError

    with pytest.raises(KeyError), custom_operators.answered(answer):
        scaled(torch.ones(2))
    assert (overload._op, packet._op) == before
    assert torch.equal(scaled(torch.ones(2)), torch.full((2,), 2.0))


def test_an_operator_in_place_of_which_another_answers_is_still_found_in_tables() -> None:
    overload = torch.ops.anyshape_tests.scaled.default
    table = {overload: "found"}
    with custom_operators.answered(lambda _overload, call: call.plainly()):
        assert table[overload] == "found"
        assert torch.equal(overload(torch.ones(2), factor=3.0), torch.full((2,), 3.0))


def test_the_function_of_a_library_is_met_and_not_run() -> None:
    x = torch.ones(2, 3)
    run = custom.implementation(PLUS_TWO.default, (x, 3), {})
    assert run is not None
    assert torch.equal(run(), x.reshape(3, 2) + 2)
    assert custom._registered_function(PLUS_ONE.default, "CPU", (x, 3), {}).__closure__[0].cell_contents == 1.0  # type: ignore[attr-defined]


def test_an_operator_in_c_has_no_python_implementation() -> None:
    assert custom.implementation(torch.ops._test.leaky_relu.default, (torch.ones(2), 0.1), {}) is None
    assert not custom.has_implementation(torch.ops._test.leaky_relu.default)


# ---- the user's translations


def twice(x: Any, factor: float = 2.0) -> Any:
    return op.Mul(x, op.CastLike(factor, x))


def wrong(x: Any, factor: float = 2.0) -> Any:
    return op.Mul(x, op.CastLike(factor + 1, x))


@onnxscript.script()
def scripted(x, factor: float = 2.0):  # type: ignore[no-untyped-def]  # torch alone needs the other annotations
    return op.Mul(x, op.Constant(value_float=factor))


FORMS = {
    "the overload": torch.ops.anyshape_tests.scaled.default,
    "the packet": torch.ops.anyshape_tests.scaled,
    "what custom_op made": scaled,
}


@pytest.fixture
def _undecorated() -> Any:
    from anyshape.conversion.translation import _DECORATED

    before = dict(_DECORATED)
    yield
    _DECORATED.clear()
    _DECORATED.update(before)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("translation", [twice, scripted], ids=["plain", "onnxscript"])
def test_a_translation_wins_over_the_implementation(form: str, translation: Any, tmp_path: Path) -> None:
    result = export(scaled, tmp_path / "model.onnx", custom_translation_table={FORMS[form]: translation})
    assert (result.verdict, result.repairs) == ("checked", ())
    assert is_right(tmp_path / "model.onnx", deep(scaled), (torch.randn(1, 9),))


@pytest.mark.usefixtures("_undecorated")
def test_the_newest_decorated_translation_wins_and_the_table_of_the_call_over_it() -> None:
    assert anyshape.translation(scaled)(wrong) is wrong
    with pytest.raises(anyshape.ExportError) as refused:
        export(scaled)
    assert refused.value.findings[0].rule == "wrong-values"
    assert export(scaled, custom_translation_table={scaled: twice}).verdict == "checked"
    anyshape.translation(torch.ops.anyshape_tests.scaled)(twice)
    assert (export(scaled).verdict, export(scaled).repairs) == ("checked", ())


@pytest.mark.usefixtures("_undecorated")
def test_a_translated_operator_in_numpy_needs_its_shape() -> None:
    anyshape.translation(in_numpy)(twice)
    with pytest.raises(anyshape.ExportError) as refused:
        export(in_numpy)
    (finding,) = refused.value.findings
    assert finding.message == "torch does not know the shape of `anyshape_tests::in_numpy`"
    assert finding.notes == (
        "on tensors without values it fails: RuntimeError: .numpy() is not supported for tensor subclasses.",
    )
    assert finding.helps == (
        "say it, before the export:\n"
        '@torch.library.register_fake("anyshape_tests::in_numpy")\n'
        "def _(x, factor=2.0):\n"
        "    return ...  # a tensor of the result's shape and type, such as torch.empty_like(x)",
    )


# ---- neither


def test_an_operator_that_cannot_be_traced_is_named_with_its_line_and_what_to_write() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        export(lambda x: in_numpy(x, 3.0) + 1)
    (finding,) = refused.value.findings
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[finding.span.line - 1]
    assert line[finding.span.column - 1 : (finding.span.end_column or 0) - 1] == "in_numpy(x, 3.0)"
    assert finding.headline == ("error[unsupported-op]: `anyshape_tests::in_numpy` has no ONNX translation")
    assert finding.notes == (
        "its Python implementation cannot be traced: RuntimeError: .numpy() is not supported for tensor subclasses.",
    )
    assert finding.helps == (
        "write its translation, before the export:\n"
        "from onnxscript import opset18 as op\n"
        "\n"
        "@anyshape.translation(torch.ops.anyshape_tests.in_numpy.default)\n"
        "def in_numpy(x, factor=2.0):\n"
        "    return ...  # what `anyshape_tests::in_numpy` computes, in ONNX operators such as op.Mul",
    )


@pytest.mark.parametrize("has_shape", [False, True])
def test_an_operator_in_c_is_named_with_its_line(has_shape: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"compiled_{has_shape}"
    schema = f"{name}(Tensor x, float by=2.0) -> Tensor"
    compiled = define(schema, "CPU", lambda x, by=2.0: torch.from_numpy(x.detach().numpy()) * by)
    if has_shape:
        torch.library.register_fake(f"anyshape_tests::{name}", lambda x, by=2.0: torch.empty_like(x))
    # as if the kernel had been registered from C++
    monkeypatch.setattr(torch.library, "_impls", torch.library._impls - {f"anyshape_tests/{name}/CPU"})
    with pytest.raises(anyshape.ExportError) as refused:
        export(lambda x: compiled(x, 0.1))
    (finding,) = refused.value.findings
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[finding.span.line - 1]
    assert line[finding.span.column - 1 : (finding.span.end_column or 0) - 1] == "compiled(x, 0.1)"
    assert finding.message == f"`anyshape_tests::{name}` has no ONNX translation"
    assert finding.notes == ("its implementation is not in Python, so it cannot be traced",)
    assert f"def {name}(x, by=2.0):" in finding.helps[0]


def test_a_decision_on_values_inside_an_operator_is_no_lack_of_a_translation() -> None:
    def decide(x: Tensor) -> Tensor:
        while bool(x.abs().max() > 1):
            x = x[None] / 2  # of a rank that grows: no loop of a file carries it
        return x.sum()

    decided = define("decided(Tensor x) -> Tensor", "CPU", decide)
    with pytest.raises(anyshape.ExportError) as refused:
        export(lambda x: decided(x))
    (finding,) = refused.value.findings
    assert (finding.rule, finding.span.function.rpartition(".")[2]) == ("frozen-branch", "decide")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: anyshape.translation(np.add),
            "translation(<ufunc 'add'>): give a torch operator, such as torch.ops.mine.twice",
        ),
        (
            lambda: anyshape.translation(torch.ops.aten.squeeze),
            "translation: torch.ops.aten.squeeze has the overloads default, dim, dims: name one of them",
        ),
        (
            lambda: anyshape.translation(scaled)(3),  # type: ignore[type-var]
            "the translation of anyshape_tests.scaled.default is a int: give a function",
        ),
        (
            lambda: export(scaled, custom_translation_table=[1]),
            "custom_translation_table is a list: map operators to functions",
        ),
    ],
)
def test_misuse_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(anyshape.DeclarationError) as error:
        call()
    assert str(error.value) == sentence

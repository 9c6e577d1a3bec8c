"""What would grow without end is refused by arithmetic, whichever verb reads the file."""

from __future__ import annotations

import onnx
import onnx.helper
import onnx.parser
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile import growth_limits
from anyshape.onnxfile.untrusted import load_checked
from anyshape.sizes import budgets
from tests.onnxfile.strangers import calling_itself, deep_functions, many_axes, many_nodes, text_model


def _refusal(model: onnx.ModelProto) -> str:
    with pytest.raises(DeclarationError) as refusal:
        growth_limits.refuse_endless_growth(model, "model.onnx")
    return str(refusal.value)


def test_functions_are_counted_as_they_would_be_expanded() -> None:
    model = deep_functions(depth=10, calls=20)
    assert len(model.functions) == 10
    assert _refusal(model) == (
        "the functions of `model.onnx` expand to 10^13 nodes, more than the 100,000 that are read"
    )
    growth_limits.refuse_endless_growth(deep_functions(depth=4, calls=10), "model.onnx")
    assert _refusal(deep_functions(depth=5, calls=10)) == (
        "the functions of `model.onnx` expand to 111,111 nodes, more than the 100,000 that are read"
    )


@pytest.mark.parametrize("through", [0, 1, 5])
def test_a_function_that_calls_itself_has_no_end(through: int) -> None:
    assert _refusal(calling_itself(through)) == "a function of `model.onnx` calls itself: refused"


def test_functions_may_stand_in_any_order_and_call_each_other_deeply() -> None:
    model = deep_functions(depth=3000, calls=1)
    growth_limits.refuse_endless_growth(model, "model.onnx")
    functions = list(reversed(model.functions))
    del model.functions[:]
    model.functions.extend(functions)
    growth_limits.refuse_endless_growth(model, "model.onnx")


def test_a_million_nodes_are_not_read() -> None:
    said = "`model.onnx` has 1,000,000 nodes, more than the 100,000 that are read"
    assert _refusal(many_nodes(1_000_000)) == said


def test_nodes_of_inner_graphs_and_functions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_NODES", 3)
    model = text_model(
        "main (bool c, float[2] x) => (float[2] y) "
        "{ y = If (c) <then_branch = a () => (float[2] p) { q = Neg(x) p = Neg(q) }, "
        "else_branch = b () => (float[2] r) { r = Neg(x) }> }"
    )
    assert _refusal(model) == "`model.onnx` has 4 nodes, more than the 3 that are read"


def test_a_tensor_of_many_axes_is_refused_wherever_it_stands() -> None:
    for place in ("input", "output", "value_info", "initializer"):
        said = _refusal(many_axes(100_000, place))
        assert said == "`wide` of `model.onnx` has 100,000 axes, more than the 64 of numpy"
        growth_limits.refuse_endless_growth(many_axes(64, place), "model.onnx")


@pytest.mark.parametrize("key", ["offset", "length"])
def test_a_place_of_many_digits_is_refused(tmp_path, key) -> None:
    model = text_model("main (float[n] x) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }")
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    weight.external_data.add(key=key, value="9" * 5000)
    (tmp_path / "w.bin").write_bytes(bytes(4))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(DeclarationError) as refusal:
        load_checked(tmp_path / "model.onnx")
    assert str(refusal.value) == "`model.onnx` keeps `w` in `w.bin`, at a place of more than 100 digits: refused"


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "b" * 300])
def test_a_name_that_no_disk_takes_is_no_file(tmp_path, name) -> None:
    with pytest.raises(DeclarationError, match=r"^there is no file "):
        load_checked(tmp_path / name)

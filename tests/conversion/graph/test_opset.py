"""A model in another opset: what cannot be written is named, with the smallest opset that has it."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from anyshape.conversion.graph.opset import STACK_KEY, set_opset
from anyshape.results.attempt import NewerOpsetError
from tests.conversion.graph.test_older_operators import FLOATS, model_of

SCATTERED = (
    "float[4] x, int64[2] i, float[2] v", "", 'y = ScatterElements<reduction="{}">(x, i, v)', "float[4] y",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "asked", "needed"),
    [
        ((*SCATTERED[:2], SCATTERED[2].format("add"), SCATTERED[3]), 15, (("ScatterElements", 16),)),
        ((*SCATTERED[:2], SCATTERED[2].format("max"), SCATTERED[3]), 13, (("ScatterElements", 18),)),
        ((*SCATTERED[:2], SCATTERED[2].format("none"), SCATTERED[3]), 13, ()),
        (("int64[n] x", "", "y = BitwiseAnd(x, x)", "int64[n] y"), 17, (("BitwiseAnd", 18),)),
        ((FLOATS, "", 'y = Einsum<equation="ijk->ikj">(x)', "float[a, 5, b] y"), 11, (("Einsum", 12),)),
        (("float[n] x, int64[k] axes", "", "y = ReduceMax(x, axes)", "float[m] y"), 17, (("ReduceMax", 18),)),
        (("float[a, n] x", "", "y, z = Split<axis=1, num_outputs=2>(x)", "float[a, m] y, float[a, k] z"), 17,
         (("Split", 18),)),
        (("int8[n] x", "", "y = Add(x, x)", "int8[n] y"), 13, (("Add", 14),)),
        (("int8[n] x", "", "y = Add(x, x) z = BitwiseNot(x)", "int8[n] y, int8[n] z"), 13,
         (("Add", 14), ("BitwiseNot", 18))),
        ((FLOATS, "", "y = Identity(x)", "float[a, b, 5] y"), 24, ()),
    ],
)  # fmt: skip
def test_what_an_opset_lacks_is_named(text: tuple[str, ...], asked: int, needed: tuple[tuple[str, int], ...]) -> None:
    model = model_of(*text)
    if not needed:
        set_opset(model, asked)
        assert model.opset_imports[""] == asked
        return
    with pytest.raises(NewerOpsetError) as caught:
        set_opset(model, asked)
    assert (caught.value.asked, caught.value.needed) == (asked, needed)
    assert caught.value.smallest == max(opset for _, opset in needed)


def test_what_is_in_the_wanted_opset_already_is_held_to_its_types() -> None:
    model = model_of("float[3, 3] x", "", "y = MatMul(x, x)", "float[3, 3] y", opset=18)
    model.opset_imports[""] = 11
    model.graph.inputs[0].dtype = ir.DataType.BFLOAT16
    with pytest.raises(NewerOpsetError) as caught:
        set_opset(model, 11)
    assert caught.value.needed == (("MatMul", 13),)


def test_the_line_of_the_operator_is_told() -> None:
    model = model_of("int64[n] x", "", "y = BitwiseAnd(x, x)", "int64[n] y")
    model.graph[0].metadata_props[STACK_KEY] = f'File "{__file__}", line 7, in forward\n    x & x'
    with pytest.raises(NewerOpsetError) as caught:
        set_opset(model, 11)
    assert caught.value.span is not None
    assert (caught.value.span.line, str(caught.value)) == (7, "`BitwiseAnd` needs opset 18")


def test_a_meaning_that_changed_on_the_way_up_is_not_taken_for_the_same() -> None:
    model = model_of(
        "float[a, 4, c] x, float[2] s", "", "y = GroupNormalization<num_groups=2>(x, s, s)", "float[a, 4, c] y"
    )
    with pytest.raises(NewerOpsetError) as caught:
        set_opset(model, 21)
    assert caught.value.needed == (("GroupNormalization", 18),)


def test_names_differ_in_all_graphs_and_other_domains_stay() -> None:
    body = """
        s = Shape<start=0, end=1>(x)
        other = my.domain.Op(x)
        y = If(c) <
            then_branch = t () => (int64[1] a) { a0 = Shape<start=1, end=2>(x) a = Add(a0, s) },
            else_branch = e () => (int64[1] b) { b0 = Shape<start=2, end=3>(x) b = Add(b0, s) }
        >
    """
    head = '<ir_version: 8, opset_import: ["": 18, "my.domain": 1]>'
    text = f"{head} g (float[a, b, 5] x, bool c) => (int64[1] y, float[a, b, 5] other) {{ {body} }}"
    model = ir.from_proto(onnx.parser.parse_model(text))
    set_opset(model, 11)
    proto = ir.to_proto(model)
    graphs = [
        proto.graph,
        *(attribute.g for node in proto.graph.node for attribute in node.attribute if attribute.g.node),
    ]
    names = [name for graph in graphs for node in graph.node for name in node.output]
    assert len(names) == len(set(names))
    assert {"other", "a", "b", "y"} <= set(names)
    assert {(entry.domain, entry.version) for entry in proto.opset_import} == {("", 11), ("my.domain", 1)}

"""The whole text of every rule, as a user reads it."""
# ruff: noqa: E501  the texts are quoted as they are

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
import torch
from onnxscript import opset18

import anyshape
from anyshape.results.explanations import RULES
from tests.messages import models

EXPORTS = {
    "pinned-dim: a size written as a number": (
        models.HardView,
        (2, 8, 4),
        {},
        """\
error[pinned-dim]: `batch` and `seq` cannot vary
  --> tests/messages/models.py:9:16 in HardView.forward
  |
9 |         return x.view(2, 8, 4) + 1
  |                ^^^^^^^^^^^^^^^ `batch` becomes 2 and `seq` becomes 8 here
  = note: smallest size that breaks it: batch = 2, seq = 1; PyTorch fails there too
  = help: take the sizes from `x`   [tried: same result at batch = 2, seq = 8, runs at 12 other sizes]
          - return x.view(2, 8, 4) + 1
          + return x.view(x.shape[0], x.shape[1], 4) + 1
""",
    ),
    "pinned-dim: a loop over an axis into a dict": (
        models.Loop,
        (3, 5, 4),
        {},
        """\
error[pinned-dim]: `seq` cannot vary in the export
   --> tests/messages/models.py:14:70 in Loop.forward
   |
14 |         return torch.stack(list({step: x[:, step] * step for step in range(x.shape[1])}.values()))
   |                                                                      ^^^^^^^^^^^^^^^^^ `seq` becomes 5 here
   = note: only the export is limited: PyTorch runs at other sizes
   = help: leave `seq` out of the declaration, or write this expression in another way
""",
    ),
    "bounded-dim: a branch on a size that returns more": (
        models.Branch,
        (3, 5, 4),
        {},
        """\
error[bounded-dim]: `seq` cannot take every declared size in the export
   --> tests/messages/models.py:19:12 in Branch.forward
   |
19 |         if x.shape[1] > 6:
   |            ^^^^^^^^^^^^^^ exported only for `seq <= 6`
   = note: smallest of 3 failing sizes found: batch = 1, seq = 7; PyTorch runs there
   = note: there has 1 outputs, PyTorch 2
   = help: declare only these sizes, or write the model without this condition on `seq`
""",
    ),
    "bounded-dim: a table that ends": (
        models.Table,
        (3, 5, 4),
        {"seq": "1..64"},
        """\
error[bounded-dim]: `seq` is bounded
   --> tests/messages/models.py:30:20 in Table.forward
   |
30 |         return x + self.table(torch.arange(x.shape[1]))
   |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ runs only for `seq <= 16`
   = note: batch = 3, seq = 17 breaks it; PyTorch fails there too: IndexError: index out of range in self
   = help: declare it: sizes={"seq": "1..16"} instead of "1..64"
""",
    ),
    "divided-dim: a multiple": (
        models.Heads,
        (3, 8, 4),
        {"seq": "1..64"},
        """\
error[divided-dim]: `seq` must satisfy `seq % 4 == 0`
   --> tests/messages/models.py:36:16 in Heads.forward
   |
36 |         return x.view(batch, 4, length // 4, width)
   |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ runs only for `seq % 4 == 0`
   = note: batch = 3, seq = 9 breaks it; PyTorch fails there too: RuntimeError: shape '[3, 4, 2, 4]' is invalid for input of size 108
   = help: declare it: sizes={"seq": "4..64 step 4"} instead of "1..64"
""",
    ),
    "tied-dims: a branch on two sizes that returns more": (
        models.Wide,
        (3, 5, 4),
        {},
        """\
error[tied-dims]: `batch` and `seq` cannot take every declared size in the export
   --> tests/messages/models.py:74:12 in Wide.forward
   |
74 |         if x.shape[0] > x.shape[1]:
   |            ^^^^^^^^^^^^^^^^^^^^^^^ exported only for `batch <= seq`
   = note: smallest of 3 failing sizes found: batch = 2, seq = 1; PyTorch runs there
   = note: there has 1 outputs, PyTorch 2
   = help: declare only these sizes, or write the model without this condition on `batch` and `seq`
""",
    ),
    "frozen-branch: a while on values": (
        models.Loud,
        (3, 5, 4),
        {},
        """\
error[frozen-branch]: a decision on values would be frozen in the export
   --> tests/messages/models.py:41:15 in Loud.forward
   |
41 |         while x.abs().max() > 1:
   |               ^^^^^^^^^^^^^^^^^ a value decides here
   = note: a trace keeps the path that the example took, whatever other values would do
   = help: use torch._higher_order_ops.while_loop, or a fixed number of steps with torch.where
""",
    ),
    "data-dependent-size: a list as long as a value says": (
        models.Copies,
        (3, 5, 4),
        {},
        """\
error[data-dependent-size]: a size that comes from values blocks the export
   --> tests/messages/models.py:91:26 in Copies.forward
   |
91 |         return torch.cat([x] * int(x.abs().max() + 1))
   |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ needs a size that only the values tell
   = note: PyTorch knows the values when it runs, a trace does not
   = help: take the size from an input's shape, or pass it as a Python integer of its own
""",
    ),
    "random-output: random numbers": (
        models.Noisy,
        (3, 5, 4),
        {},
        """\
error[random-output]: `output` changes from call to call, so that no file can be checked against it
   --> tests/messages/models.py:48:20 in Noisy.forward
   |
48 |         return x + torch.rand_like(x)
   |                    ^^^^^^^^^^^^^^^^^^ draws random numbers
   = note: in eval mode, the same inputs gave other results under another random seed
   = help: random="inputs" makes each draw an input of the file, which is then checked as any other
   = help: random="shapes" checks shapes and types alone
""",
    ),
    "wrong-shape: a translation that doubles": (
        models.Translated,
        (3, 5, 4),
        {},
        """\
error[wrong-shape]: `output` has shape (1, 4, 2), in PyTorch (1, 4, 1) at batch = 1, seq = 1
   --> tests/messages/models.py:53:9 in forward
   |
53 |         doubled = nn.functional.silu(x)
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ first result that differs
   = note: smallest of 3 failing sizes found: batch = 1, seq = 1; PyTorch runs there
   = note: first node that differs: `node_silu` (Concat)
   = help: custom_translation_table translates `aten.silu.default`: compare what it gives with PyTorch
""",
    ),
    "not-converted: a power that nobody translates": (
        models.Cube,
        (3, 5, 4),
        {},
        """\
error[not-converted]: no exporter could convert the model
    --> tests/messages/models.py:178:9 in forward
    |
178 |         return torch.view_as_real(torch.fft.rfft(x) ** 3)
    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ what cannot be translated
    = note: torch.export: NotImplementedError: complex values to the power of 3
    = note: torch.export with branches and loops: NotImplementedError: complex values to the power of 3
    = note: TorchScript: UnsupportedOperatorError: Exporting the operator 'aten::fft_rfft' to ONNX opset version 20 is not supported
""",
    ),
    "unsupported-op: one of torch": (
        models.Eigenvalues,
        (3, 5, 4),
        {},
        """\
error[unsupported-op]: `aten::_linalg_eigh` has no ONNX translation
   --> tests/messages/models.py:59:9 in forward
   |
59 |         return torch.linalg.eigvalsh(x @ x.mT)
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ called here
   = note: ONNX has no operator for it
   = help: write its translation, before the export:
           from onnxscript import opset18 as op

           @anyshape.translation(torch.ops.aten._linalg_eigh.default)
           def _linalg_eigh(A, UPLO='L', compute_v=True):
               return ...  # what `aten::_linalg_eigh` computes, in ONNX operators such as op.Mul
   = help: or compute it before or after the file; or translate it to a node of your own, which a library or a Python function computes: `custom_ops`
""",
    ),
    "unsupported-op: an operator in numpy": (
        models.InNumpy,
        (3, 5, 4),
        {},
        """\
error[unsupported-op]: `anyshape_messages::in_numpy` has no ONNX translation
   --> tests/messages/models.py:86:20 in InNumpy.forward
   |
86 |         return 1 + in_numpy(x, 3)
   |                    ^^^^^^^^^^^^^^ called here
   = note: its Python implementation cannot be traced: RuntimeError: .numpy() is not supported for tensor subclasses.
   = help: write its translation, before the export:
           from onnxscript import opset18 as op

           @anyshape.translation(torch.ops.anyshape_messages.in_numpy.default)
           def in_numpy(x, times, factor=#):
               return ...  # what `anyshape_messages::in_numpy` computes, in ONNX operators such as op.Mul
""",
    ),
    "unsupported-op: an operator of another domain": (
        models.Custom,
        (3, 5, 4),
        {},
        """\
error[unsupported-op]: ONNX Runtime has no `my.domain::Twice`
   --> tests/messages/models.py:64:9 in forward
   |
64 |         return torch.onnx.ops.symbolic("my.domain::Twice", (x,), dtype=x.dtype, shape=x.shape, version=1)
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = help: give what computes it in Python:
           def twice(x):
               return ...  # numpy arrays and attributes in, an array (or a tuple of them) out

           custom_ops={'my.domain::Twice': twice}
   = help: or the library that implements it for ONNX Runtime: custom_ops=[path]
   = help: or write the file without a check: unchecked=['my.domain::Twice']
""",
    ),
}
"""What is exported: the model, the example's shape, the declared sizes, and the finding's whole text."""

FILES = {
    "wrong-values: a frozen divisor": (
        """
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
            two = Constant <value_float = 2.0> ()
            five = Constant <value_float = 5.0> ()
            length = Shape <start = 1, end = 2> (x)
            float = Cast <to = 1> (length)
            factor = Div (float, five)
            twice = Mul (x, two)
            y = Mul (twice, factor)
        }
""",
        """\
error[wrong-values]: `y` differs by # (allowed #) at batch = 1, seq = 1
   --> tests/messages/models.py:68:5 in Plain.forward
   |
68 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: smallest of 3 failing sizes found: batch = 1, seq = 1; PyTorch runs there
""",
    ),
    "runtime-error: a frozen shape": (
        """
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
            two = Constant <value_float = 2.0> ()
            shape = Constant <value_ints = [3, 5, 4]> ()
            twice = Mul (x, two)
            y = Reshape (twice, shape)
        }
""",
        """\
error[runtime-error]: fails in ONNX Runtime: Reshape node: The input tensor cannot be reshaped to the requested shape. Input shape:{1,1,4}, requested shape:{3,5,4} at batch = 1, seq = 1
   --> tests/messages/models.py:68:5 in Plain.forward
   |
68 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: smallest of 3 failing sizes found: batch = 1, seq = 1; PyTorch runs there
   = note: first node that fails: `y` (Reshape)
""",
    ),
    "mislabelled-dim: a number that is none": (
        """
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[batch, seq, 4] x) => (float[batch, 5, 4] y) {
            two = Constant <value_float = 2.0> ()
            y = Mul (x, two)
        }
""",
        """\
error[mislabelled-dim]: `y` declares 5 on axis 1 but has shape (1, 1, 4) at batch = 1, seq = 1
   --> tests/messages/models.py:68:5 in Plain.forward
   |
68 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: smallest of 3 failing sizes found: batch = 1, seq = 1; PyTorch runs there
""",
    ),
    "wrong-type: another element type": (
        """
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[batch, seq, 4] x) => (int64[batch, seq, 4] y) {
            two = Constant <value_float = 2.0> ()
            twice = Mul (x, two)
            y = Cast <to = 7> (twice)
        }
""",
        """\
error[wrong-type]: `y` has type int64, in PyTorch float32 at batch = 1, seq = 1
   --> tests/messages/models.py:68:5 in Plain.forward
   |
68 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: smallest of 3 failing sizes found: batch = 1, seq = 1; PyTorch runs there
""",
    ),
}
"""What is checked against `Plain`: a graph as ONNX text, and the finding's whole text."""


def _text(error: anyshape.ExportError) -> str:
    """The one finding; numbers that depend on rounding are masked."""
    (finding,) = error.findings
    return re.sub(r"\d\.?\d*e-\d+|\d+\.\d+", "#", str(finding)) + "\n"


WRONG = {torch.ops.aten.silu.default: lambda x: opset18.Concat(x, x, axis=1)}
"""A translation that is wrong, as a user's may be."""


@pytest.mark.parametrize("name", EXPORTS)
def test_a_refused_export_says(name: str) -> None:
    model, shape, sizes, text = EXPORTS[name]
    torch.manual_seed(0)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(
            model(), torch.randn(*shape), dims={"x": "batch seq 4"}, sizes=sizes, custom_translation_table=WRONG
        )
    assert _text(refused.value) == text


LACKING = """\
error[newer-opset]: opset {} cannot hold the model: `BitwiseAnd`, as it is used here, needs opset 18
    --> tests/messages/models.py:164:9 in forward
    |
164 |         return torch.einsum("bsd,bsd->bs", x, x), x.int() & 3
    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{}    = help: opset 18 would do, which ONNX Runtime 1.14 and newer take
"""


@pytest.mark.parametrize(
    ("asked", "opset", "notes"),
    [
        ({"opset_version": 11}, 11, "    = note: `Einsum` needs opset 12\n"),
        ({"target": "onnxruntime==1.13"}, 17, "    = note: ONNX Runtime 1.13 takes opset 17 at most\n"),
    ],
)
def test_an_opset_that_lacks_an_operator_is_refused_with_it(asked: dict[str, Any], opset: int, notes: str) -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(models.Masked(), torch.randn(3, 5, 4), dims={"x": "batch seq 4"}, **asked)
    (finding,) = refused.value.findings
    assert f"{finding}\n" == LACKING.format(opset, notes)


@pytest.mark.parametrize("name", FILES)
def test_a_refused_check_says(name: str, tmp_path: Path) -> None:
    graph, text = FILES[name]
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "model.onnx")
    torch.manual_seed(0)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", models.Plain(), torch.randn(3, 5, 4))
    assert _text(refused.value) == text


DIAGNOSED: dict[str, tuple[type[torch.nn.Module], str]] = {
    "pinned-dim: a table": (
        models.Positions,
        """\
error[pinned-dim]: `seq` cannot vary
    --> tests/messages/models.py:100:16 in Positions.forward
    |
100 |         return x + self.table
    |                ^^^^^^^^^^^^^^ `table` has 5 entries for `seq`
    = note: smallest size that breaks it: batch = 3, seq = 2; PyTorch fails there too
    = help: take as much of `self.table` as is needed   [unsafe; tried: same result at seq = 5, runs at 1, 2, 4]
            - return x + self.table
            + return x + self.table[:, :x.shape[1]]
""",
    ),
    "pinned-dim: a state": (
        models.State,
        """\
error[pinned-dim]: `batch` cannot vary
    --> tests/messages/models.py:109:17 in State.forward
    |
109 |         state = torch.zeros(1, 3, 4)
    |                 ^^^^^^^^^^^^^^^^^^^^ `batch` becomes 3 here
    = note: smallest size that breaks it: batch = 1, seq = 5; PyTorch fails there too
    = note: it shows at tests/messages/models.py:110:16 in State.forward
    = help: take the size from `x`   [tried: same result at batch = 3, runs at 1, 2, 4, 5, 6]
            - state = torch.zeros(1, 3, 4)
            + state = x.new_zeros(1, x.shape[0], 4)
""",
    ),
    "pinned-dim: a layer after a flatten": (
        models.Flat,
        """\
error[pinned-dim]: `seq` cannot vary
    --> tests/messages/models.py:119:16 in Flat.forward
    |
119 |         return self.head(x.flatten(1))
    |                ^^^^^^^^^^^^^^^^^^^^^^^ `head.weight` has 20 entries for `4 * seq`
    = note: smallest size that breaks it: batch = 3, seq = 1; PyTorch fails there too
    = note: the architecture fixes the size: `head` was made for 20 features
    = help: pool to a fixed size in front of `head`, or leave `seq` out of the declaration
""",
    ),
    "pinned-dim: an assertion": (
        models.Asserted,
        """\
error[pinned-dim]: `seq` cannot vary
    --> tests/messages/models.py:124:16 in Asserted.forward
    |
124 |         assert x.shape[1] == 5
    |                ^^^^^^^^^^^^^^^ `seq` becomes 5 here
    = note: smallest size that breaks it: batch = 3, seq = 1; PyTorch fails there too
    = help: drop the assertion   [unsafe; tried: same result at seq = 5, runs at 1, 2, 4, 6, 7, 10]
            - assert x.shape[1] == 5
            + pass
""",
    ),
    "pinned-dim: a table of samples": (
        models.Static,
        """\
error[pinned-dim]: `batch` and `seq` cannot vary
    --> tests/messages/models.py:134:16 in Static.forward
    |
134 |         return torch.einsum("bsd,bsd->bs", x, self.other)
    |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `other` has 3 entries for `batch` and `other` has 5 entries for `seq`
    = note: smallest size that breaks it: batch = 3, seq = 2; PyTorch fails there too
    = help: take as much of `self.other` as is needed
            [unsafe; tried: same result at batch = 3, seq = 5, runs at 6 other sizes]
            - return torch.einsum("bsd,bsd->bs", x, self.other)
            + return torch.einsum("bsd,bsd->bs", x, self.other[:x.shape[0], :x.shape[1]])
""",
    ),
    "frozen-value: a mean": (
        models.Mean,
        """\
warning[frozen-value]: the size of `seq` is written as a number
    --> tests/messages/models.py:139:16 in Mean.forward
    |
139 |         return x.sum(1) / 5
    |                ^^^^^^^^^^^^ divides by 5, which is `seq` in the example
    = note: at batch = 3, seq = 1 the result is another than with the size itself
    = help: take the size from `x`   [tried: same result at seq = 5, runs at 1, 2, 4, 6, 7, 10]
            - return x.sum(1) / 5
            + return x.sum(1) / x.shape[1]
""",
    ),
    "frozen-value: a loop": (
        models.Rows,
        """\
warning[frozen-value]: the size of `seq` is written as a number
    --> tests/messages/models.py:144:59 in Rows.forward.<listcomp>
    |
144 |         return torch.stack([x[:, step].tanh() for step in range(5)], 1)
    |                                                           ^^^^^^^^ counts to 5, which is `seq` in the example
    = note: at batch = 3, seq = 1 the result is another than with the size itself
    = help: take the size from `x`   [tried: same result at seq = 5, runs at 1, 2, 4, 6, 7, 10]
            - return torch.stack([x[:, step].tanh() for step in range(5)], 1)
            + return torch.stack([x[:, step].tanh() for step in range(x.shape[1])], 1)
""",
    ),
    "mixed-batch: a fold": (
        models.Folded,
        """\
warning[mixed-batch]: samples are mixed at other sizes of `seq`
    --> tests/messages/models.py:149:16 in Folded.forward
    |
149 |         return x.flatten(0, 1).reshape(-1, 5, 4).softmax(1)
    |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ fits `seq` = 5 alone
    = note: at batch = 3, seq = 1 the result is another than with the size itself
    = help: take the size from `x`   [tried: same result at seq = 5, runs at 1, 2, 4, 6, 7, 10]
            - return x.flatten(0, 1).reshape(-1, 5, 4).softmax(1)
            + return x.flatten(0, 1).reshape(-1, x.shape[1], 4).softmax(1)
""",
    ),
    "mixed-batch: a softmax": (
        models.Mixed,
        """\
warning[mixed-batch]: samples of `batch` are mixed
    --> tests/messages/models.py:154:16 in Mixed.forward
    |
154 |         return x.softmax(0)
    |                ^^^^^^^^^^^^ the result of one sample depends on others here
    = note: f(cat(a, b)) differs from cat(f(a), f(b)): `output` of a sample moves by # when another stands beside it
    = help: let `softmax` work along another axis than that of `batch`
""",
    ),
}
"""What `diagnose` says of a model with an example of 3 5 4."""


@pytest.mark.parametrize("name", DIAGNOSED)
def test_a_diagnosis_says(name: str) -> None:
    model, text = DIAGNOSED[name]
    torch.manual_seed(0)
    (finding,) = anyshape.diagnose(model().eval(), torch.randn(3, 5, 4), dims={"x": "batch seq 4"})
    assert re.sub(r"moves by [\d.e-]+", "moves by #", str(finding)) + "\n" == text


def test_a_lost_input_says(tmp_path: Path) -> None:
    graph = """
        <ir_version: 9, opset_import: ["" : 20]>
        doubled (float[batch, seq, 4] x) => (float[batch, seq, 4] y) { y = Add (x, x) }
"""
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "model.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", models.Scaled(), (torch.ones(3, 5, 4), torch.tensor(2.0)))
    assert (
        _text(refused.value)
        == """\
error[lost-input]: the file does not depend on `scale`, the model does
    --> tests/messages/models.py:158:5 in Scaled.forward
    |
158 |     def forward(self, x: Tensor, scale: Tensor) -> Tensor:
    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    = help: keep `scale` in tensors on the way to the outputs: what passes through Python becomes a constant
"""
    )


def test_an_unchecked_dim_says(tmp_path: Path) -> None:
    graph = """
        <ir_version: 9, opset_import: ["" : 20]>
        largest (float[2, 7, 4] x) => (float[2, 4] y) <int64[1] axes = {1}> { y = ReduceMax <keepdims = 0> (x, axes) }
"""
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "model.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.make_dynamic(tmp_path / "model.onnx", {"x": "batch seq 4"})
    assert (
        _text(refused.value)
        == """\
error[unchecked-dim]: nothing in the file tells whether other sizes of `seq` are right
  --> model.onnx:1:1
  = note: `y`: what stands at one place depends on too many others along `seq`, as control runs show
  = help: check against the model: `model=`
  = help: or write the file unchecked: `unchecked=["seq"]`
"""
    )


def test_an_ambiguous_number_says(tmp_path: Path) -> None:
    graph = """
        <ir_version: 9, opset_import: ["" : 20]>
        shared (float[batch, 7, 4] x) => (float[batch, 7, 4] y) <float[1] seven = {7.0}> { y = Div (x, seven) }
"""
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "model.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.make_dynamic(tmp_path / "model.onnx", {"x": "batch seq 4"})
    assert (
        _text(refused.value)
        == """\
error[ambiguous-number]: 7 in Div node `y` may be `seq`, or a number of its own
  --> model.onnx:1:1
  = note: `seven` is both at seq = 7, so that the static file does not tell
  = note: at batch = 3, seq = 2 the results differ
  = help: where it follows: `constants={"y": "seq"}`   [tried: right at 6 sizes]
  = help: where it is a number of its own: `constants={"y": "fixed"}`
  = help: or check against the model: `model=`
"""
    )


def test_other_weights_say(tmp_path: Path) -> None:
    torch.manual_seed(0)
    anyshape.export(
        models.Projected(), (torch.randn(3, 4),), tmp_path / "model.onnx", dims={"x": "batch 4"}, quick=True
    )
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", models.Projected(), (torch.randn(3, 4),))
    assert (
        _text(refused.value)
        == """\
error[other-weights]: the file holds other weights than the model
  --> model.onnx:1:1
  = note: 1 of 1 weights that can be compared differ: `project.weight`
  = note: so `output` differs by # (allowed #) at batch = 3
  = help: give the weights that the file was exported with: load them into the model first
"""
    )


def test_every_rule_has_its_text_here() -> None:
    alone = {"lost-input", "unchecked-dim", "ambiguous-number", "newer-opset", "other-weights"}
    shown = {name.split(":")[0] for name in (*EXPORTS, *FILES, *DIAGNOSED)} | alone
    assert shown == set(RULES)

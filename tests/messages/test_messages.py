"""The whole text of every rule, as a user reads it."""
# ruff: noqa: E501  the texts are quoted as they are

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx.parser
import pytest
import torch
from onnxscript import opset18

import anyshape
from anyshape.diagnosis.explanations import RULES
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
  |                ^^^^^^^^^^^^^^^ `batch` must be 2 and `seq` must be 8 here
  = note: batch = 1, seq = 8 breaks it; PyTorch fails there too: RuntimeError: shape '[2, 8, 4]' is invalid for input of size 32
  = help: take the size from an input instead of writing a number, or leave `batch` and `seq` out of the declaration
""",
    ),
    "pinned-dim: a loop over an axis": (
        models.Loop,
        (3, 5, 4),
        {},
        """\
error[pinned-dim]: `seq` cannot vary in the export
   --> tests/messages/models.py:14:59 in Loop.forward
   |
14 |         return torch.stack([x[:, step] * step for step in range(x.shape[1])])
   |                                                           ^^^^^^^^^^^^^^^^^ `seq` becomes 5 here
   = note: only the export is limited: PyTorch runs at other sizes
   = help: leave `seq` out of the declaration, or write this expression in another way
""",
    ),
    "bounded-dim: a branch on a size": (
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
   = note: there `output` differs by # (allowed #)
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
    "tied-dims: a branch on two sizes": (
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
   = note: there `output` differs by # (allowed #)
   = help: declare only these sizes, or write the model without this condition on `batch` and `seq`
""",
    ),
    "frozen-branch: a branch on values": (
        models.Loud,
        (3, 5, 4),
        {},
        """\
error[frozen-branch]: a decision on values would be frozen in the export
   --> tests/messages/models.py:41:12 in Loud.forward
   |
41 |         if x.abs().max() > 1:
   |            ^^^^^^^^^^^^^^^^^ a value is read into Python here
   = note: a trace keeps the path that the example took, whatever other values would do
   = help: write both paths as tensors and choose with torch.where, or use torch.cond
""",
    ),
    "random-output: random numbers": (
        models.Noisy,
        (3, 5, 4),
        {},
        """\
error[random-output]: `output` changes from call to call, so that no file can be checked against it
   --> tests/messages/models.py:47:5 in Noisy.forward
   |
47 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: in eval mode, the same inputs gave other results under another random seed
   = help: pass the random numbers as an input, or draw them from a fixed table
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
""",
    ),
    "not-converted: an operator without translation": (
        models.Eigenvalues,
        (3, 5, 4),
        {},
        """\
error[not-converted]: no exporter could convert the model
   --> tests/messages/models.py:58:5 in Eigenvalues.forward
   |
58 |     def forward(self, x: Tensor) -> Tensor:
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = note: torch.export: DispatchError: No ONNX function found for aten._linalg_eigh
   = note: torch.export (strict): DispatchError: No ONNX function found for aten._linalg_eigh
   = note: TorchScript: UnsupportedOperatorError: Exporting the operator 'aten::mT' to ONNX opset version 20 is not supported
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


@pytest.mark.parametrize("name", FILES)
def test_a_refused_check_says(name: str, tmp_path: Path) -> None:
    graph, text = FILES[name]
    onnx.save(onnx.parser.parse_model(graph), tmp_path / "model.onnx")
    torch.manual_seed(0)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", models.Plain(), torch.randn(3, 5, 4))
    assert _text(refused.value) == text


def test_every_rule_has_its_text_here() -> None:
    assert {name.split(":")[0] for name in (*EXPORTS, *FILES)} == set(RULES)

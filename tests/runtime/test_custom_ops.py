"""What computes operators that ONNX Runtime lacks: how it is given, and what a check says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.runtime.custom_ops import understand_custom_ops

from .test_custom_ops_parts import TWO_ROUNDS, saved, scale


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("libmine.so", "custom_ops is 'libmine.so': give a list of libraries, or a dict of Python functions"),
        ({"Scale": scale}, "custom_ops: 'Scale' names no operator: write 'domain::Operator'"),
        ({"my::Scale": 3}, "custom_ops: 'my::Scale' is given a int: give a function of numpy arrays"),
        ([3], "custom_ops holds 3: give the path of a library, or a dict of functions"),
    ],
)
def test_misuse_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(anyshape.DeclarationError) as error:
        understand_custom_ops(given)
    assert str(error.value) == sentence


def test_libraries_and_functions_may_stand_together() -> None:
    understood = understand_custom_ops([Path("a.so"), {"my::Scale": scale}, "b.so"])
    assert (understood.libraries, understood.functions) == (("a.so", "b.so"), {"my::Scale": scale})


def test_what_is_no_function_may_be_made_one() -> None:
    understood = understand_custom_ops({"my::Three": 3}, lambda value: (lambda: value) if value == 3 else None)
    assert understood.functions["my::Three"]() == 3
    with pytest.raises(anyshape.DeclarationError, match="is given a int"):
        understand_custom_ops({"my::Four": 4}, lambda value: (lambda: value) if value == 3 else None)


# ---- export and check


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
            by = {"by": 3.0}
            x = torch.onnx.ops.symbolic("my.domain::Times", (x,), by, dtype=x.dtype, shape=x.shape, version=1)
        else:
            x = x * 3
        return self.head(x)


def times(x: Any, *, by: float) -> Any:
    return x * np.float32(by)


def test_a_file_is_checked_through_a_python_function(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, example, path = Scaled().eval(), torch.randn(3, 4), tmp_path / "model.onnx"
    result = anyshape.export(
        model, example, path, dims={"x": "batch 4"}, custom_ops={"my.domain::Times": times}, quick=True
    )
    note = "`my.domain::Times` was computed in Python by `times`"
    assert (result.verdict, result.notes[1:]) == ("checked", (note,))  # the first one tells who asks for an export
    x = torch.randn(7, 4)
    torch.testing.assert_close(result(x)[0], model(x).detach())
    again = anyshape.check(path, model, example, custom_ops=[{"my.domain::Times": times}], quick=True)
    assert (again.verdict, again.notes) == ("checked", (note,))
    alone = anyshape.check(path, custom_ops={"my.domain::Times": times}, quick=True)
    assert (alone.verdict, alone.notes[-1]) == ("checked", note)


def test_a_wrong_python_function_is_noticed(tmp_path: Path) -> None:
    custom_ops = {"my.domain::Times": lambda x, by: x * np.float32(by + 1)}
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(
            Scaled().eval(), torch.randn(3, 4), tmp_path / "model.onnx", dims={"x": "batch 4"}, custom_ops=custom_ops
        )
    assert refused.value.findings[0].rule == "wrong-values"
    assert not (tmp_path / "model.onnx").exists()


@torch.library.custom_op("anyshape_tests::times", mutates_args=())
def times_in_torch(x: Tensor, by: float) -> Tensor:
    return x * by


def test_a_torch_operator_may_compute_it() -> None:
    model = Scaled().eval()
    custom_ops = {"my.domain::Times": times_in_torch}
    result = anyshape.export(model, torch.randn(3, 4), dims={"x": "batch 4"}, custom_ops=custom_ops, quick=True)
    assert result.notes[1:] == ("`my.domain::Times` was computed in Python by `anyshape_tests::times`",)


def test_a_file_whose_operators_nobody_computes_names_them(tmp_path: Path) -> None:
    path = saved(TWO_ROUNDS, tmp_path)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, custom_ops={"my.domain::Scale": scale})
    (finding,) = refused.value.findings
    assert str(finding) == (
        "error[unsupported-op]: ONNX Runtime has no `my.domain::Both`\n"
        "  --> model.onnx:1:1\n"
        "  = help: give what computes it in Python:\n"
        "          def both(x0, x1, x2):\n"
        "              return ...  # numpy arrays and attributes in, an array (or a tuple of them) out\n"
        "\n"
        "          custom_ops={'my.domain::Both': both}\n"
        "  = help: or the library that implements it for ONNX Runtime: custom_ops=[path]"
    )


def test_on_the_command_line_the_target_s_file_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from anyshape.cli import program

    monkeypatch.chdir(tmp_path)
    Path("scaled.py").write_text(
        "import torch\nfrom tests.runtime.test_custom_ops import Scaled, times\n"
        "inputs = (torch.ones(3, 4),)\ndims = {'x': 'batch 4'}\ncustom_ops = {'my.domain::Times': times}\n"
    )
    outcome = CliRunner().invoke(program, ["export", "scaled.py:Scaled", "-o", "scaled.onnx", "--quick", "--quiet"])
    assert outcome.exit_code == 0, outcome.output
    assert "note     `my.domain::Times` was computed in Python by `times`" in outcome.stdout
    outcome = CliRunner().invoke(program, ["check", "scaled.onnx", "--custom-ops", "no.so", "--quiet"])
    assert outcome.exit_code == 2
    assert "`no.so` is no library of custom operators" in outcome.stderr

"""`where=`: relations between dims count in the choice of sizes, in the contract, in `load` and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import anyshape
from anyshape.cli import program


class Cut(nn.Module):
    """Right only where `src` is at least as long as `tgt`: elsewhere PyTorch itself fails."""

    def forward(self, src, tgt):
        return src[:, : tgt.shape[1]] * tgt


class Area(nn.Module):
    """What a traced file cannot keep: beyond an area of 400 the model does something else."""

    def forward(self, x):
        return x * 2 if x.shape[1] * x.shape[2] <= 400 else x.sum(0, keepdim=True).expand_as(x)


_DIMS = {"src": "batch src 4", "tgt": "batch tgt 4"}


def _call(src: int, tgt: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, src, 4, generator=generator), torch.randn(2, tgt, 4, generator=generator)


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    path = tmp_path_factory.mktemp("where") / "cut.onnx"
    result = anyshape.export(Cut(), _call(7, 5), path, dims=_DIMS, where=["src >= tgt", "batch*src <= 100", "tgt >= 2"])
    return path, result


def test_only_sizes_that_fit_are_run_and_the_edge_of_a_relation_is_among_them(cut):
    _, result = cut
    sizes = result.verification.sizes_run
    assert all(s["src"] >= s["tgt"] and s["batch"] * s["src"] <= 100 and s["tgt"] >= 2 for s in sizes)
    assert any(s["src"] == s["tgt"] for s in sizes)
    assert len(sizes) > 10
    assert not result.verification.invalid


def test_a_relation_of_one_dim_is_part_of_its_range(cut):
    _, result = cut
    assert str(result.dims["tgt"]) == "2.."
    assert result.where == ("src >= tgt", "batch * src <= 100", "tgt >= 2")
    assert "  where    src >= tgt, batch * src <= 100, tgt >= 2\n" in str(result)
    assert result.to_dict()["where"] == list(result.where)


def test_the_file_keeps_the_relations(cut):
    path, _ = cut
    loaded = anyshape.load(path)
    assert loaded(np.ones((2, 6, 4), np.float32), np.ones((2, 6, 4), np.float32)).shape == (2, 6, 4)
    with pytest.raises(anyshape.DeclarationError) as raised:
        loaded(np.ones((2, 5, 4), np.float32), np.ones((2, 6, 4), np.float32))
    assert str(raised.value) == "the file takes `src >= tgt`, but `src` = 5 and `tgt` = 6"
    assert "where    src >= tgt, batch * src <= 100, tgt >= 2" in str(anyshape.inspect(path))


def test_a_check_asks_for_sizes_that_the_contract_promises(cut):
    path, _ = cut
    for result in (anyshape.check(path, Cut(), _call(7, 5)), anyshape.check(path)):
        assert result.where == ("src >= tgt", "batch * src <= 100", "tgt >= 2")
        assert all(s["src"] >= s["tgt"] for s in result.verification.sizes_run)


def test_a_check_takes_relations_of_its_own(cut):
    path, _ = cut
    result = anyshape.check(path, Cut(), _call(7, 5), where=["src == 2*tgt"], sizes={"tgt": "2..20"})
    assert {(s["src"], s["tgt"]) for s in result.verification.sizes_run} <= {(2 * n, n) for n in range(2, 21)}
    assert len(result.verification.sizes_run) > 4


def test_what_a_relation_excludes_need_not_be_served():
    example = (torch.randn(3, 4, 5),)
    dims = {"x": "batch height width"}
    result = anyshape.export(Area(), example, dims=dims, where=["height * width <= 400"])
    assert result.verdict == "checked"
    assert max(s["height"] * s["width"] for s in result.verification.sizes_run) > 300


def test_sizes_to_trace_at_differ_although_the_example_s_do_not():
    result = anyshape.export(Cut(), _call(5, 5), dims=_DIMS, where=["src >= tgt"], quick=True)
    assert any(s["src"] > s["tgt"] for s in result.verification.sizes_run)
    assert [port.axes for port in result.outputs] == [("batch", "min(src, tgt)", 4)]


def test_an_example_that_breaks_a_relation_is_resized_with_a_note():
    result = anyshape.export(Cut(), _call(7, 5), dims=_DIMS, where=["src == tgt"], quick=True)
    assert "the example's src = 7, tgt = 5 breaks `src == tgt`; src = 7, tgt = 7 is used" in result.notes
    assert all(s["src"] == s["tgt"] for s in result.verification.sizes_run)


def test_relations_that_nothing_fits_are_told_before_the_model_runs():
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.export(Cut(), _call(7, 5), dims=_DIMS, where=["src > tgt"], sizes={"src": "1..4", "tgt": "4.."})
    assert str(raised.value) == (
        "no sizes were found that fit `src > tgt` with src 1..4, tgt 4..: "
        "at the smallest, src = 1, tgt = 4, `src > tgt` does not hold"
    )


def test_the_command_line_takes_relations(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "class Cut(torch.nn.Module):\n"
        "    def forward(self, src, tgt):\n"
        "        return src[:, : tgt.shape[1]] * tgt\n"
        "inputs = (torch.ones(2, 7, 4), torch.ones(2, 5, 4))\n"
        "dims = {'src': 'batch src 4', 'tgt': 'batch tgt 4'}\n"
        "where = ['src >= tgt']\n"
    )
    arguments = [f"{tmp_path}/model.py:Cut", "-o", f"{tmp_path}/cut.onnx", "--where", "batch <= 5", "--quick", "--json"]
    done = CliRunner().invoke(program, ["export", *arguments])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["where"] == ["src >= tgt", "batch <= 5"]
    assert document["dims"]["batch"] == "1..5"

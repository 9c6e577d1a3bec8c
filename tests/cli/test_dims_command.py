"""`anyshape dims`: the proposal as text and as a document, from every kind of call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from anyshape.cli import program

MODEL = """
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.places = nn.Embedding(16, 8)

    def forward(self, ids, mask):
        read = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return (read * mask.unsqueeze(-1)).sum(1)


class Module(Reader):
    example_input_array = {"ids": torch.ones(2, 5, dtype=torch.int64), "mask": torch.ones(2, 5)}

    def encode(self, ids):
        return self.words(ids)
"""
CALL = "\ninputs = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5)\n"
TEXT = """\
dims={
    "ids": "batch seq",
    "mask": "batch seq",
},
sizes={
    "seq": "1..16",
},

--dim 'ids=batch seq' --dim 'mask=batch seq' --size seq=1..16

batch  axis 0 of `ids` and axis 0 of `mask` move together
seq    axis 1 of `ids` and axis 1 of `mask` move together

note: found with <n> runs of the model
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def dims(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["dims", *arguments, "--quiet"])


def without_count(text: str) -> str:
    words = text.split(" runs of the model")
    return f"{words[0].rpartition(' ')[0]} <n> runs of the model{words[1]}"


def test_the_proposal_of_a_file_with_inputs_is_printed_ready_to_paste(model: Path):
    model.write_text(MODEL + CALL)
    result = dims(f"{model}:Reader")
    assert (result.exit_code, without_count(result.stdout), result.stderr) == (0, TEXT, "")


def test_inputs_come_from_the_command_line_or_from_a_lightning_module(model: Path):
    given = dims(f"{model}:Reader", "--input", "ids: int64[2, 5] < 30", "--input", "mask: float32[2, 5]")
    assert without_count(given.stdout) == TEXT
    assert without_count(dims(f"{model}:Module").stdout) == TEXT


def test_the_document_holds_the_same(model: Path):
    document = json.loads(dims(f"{model}:Module", "--json").stdout)
    assert document["dims"] == {"ids": ["batch", "seq"], "mask": ["batch", "seq"]}
    assert document["sizes"] == {"seq": "1..16"}
    assert set(document) == {"dims", "sizes", "basis", "offers", "notes"}


def test_without_a_call_there_is_nothing_to_probe(model: Path):
    for target in (f"{model}:Reader", f"{model}:Module.encode"):
        result = dims(target)
        assert result.exit_code == 2
        assert result.stderr.startswith(
            f"error: `{target}` has no inputs to run on: give --input 'ids: float32[batch, 8]'"
        )


def test_a_lightning_module_is_exported_with_its_own_example(model: Path, tmp_path: Path):
    out = tmp_path / "model.onnx"
    result = CliRunner().invoke(
        program, ["export", f"{model}:Module", "-o", str(out), "--dim", "*=batch seq", "--quick", "--quiet"]
    )
    assert result.exit_code == 0, result.stderr
    assert out.exists()

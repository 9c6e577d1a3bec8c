"""Which class a checkpoint is loaded as, and one sentence where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import transformers

from anyshape.checkpoints import export_checkpoint
from tests.checkpoints.refusals import refusal_of, set_config

Make = Callable[[str], Path]


def test_a_config_without_an_architecture_needs_a_task(bert: Path) -> None:
    assert refusal_of(set_config(bert, architectures=None)) == (
        "the config of `/home/bert` names no architecture: say with --task what it is for"
    )


def test_an_architecture_that_transformers_lacks_is_named(bert: Path) -> None:
    assert refusal_of(set_config(bert, architectures=["BertForTelepathy"])) == (
        f"transformers {transformers.__version__} has no `BertForTelepathy`, which `/home/bert` needs"
    )


def test_code_of_a_checkpoint_is_not_run_by_itself(bert: Path) -> None:
    (bert / "mine.py").write_text("raise SystemExit")
    set_config(bert, architectures=["Mine"], auto_map={"AutoModel": "mine.Mine"})
    assert refusal_of(bert) == (
        "`/home/bert` brings its own code for `Mine` (`mine.Mine`): "
        "read it, then give --trust-remote-code (trust_remote_code=True) to run it"
    )


def test_code_of_a_checkpoint_is_run_when_trusted(vit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    (vit / "mine.py").write_text(
        "from transformers import ViTForImageClassification\n"
        "class Mine(ViTForImageClassification):\n"
        "    def forward(self, pixel_values=None):\n"
        "        result = super().forward(pixel_values=pixel_values)\n"
        "        return {'logits': result.logits.sum(-1)}\n"
    )
    set_config(vit, architectures=["Mine"], auto_map={"AutoModel": "mine.Mine"})
    found = export_checkpoint(vit, tmp_path / "out", trust_remote_code=True, quick=True)
    assert (found.model, [port.axes for port in found[0].outputs]) == ("Mine", [("batch_size",)])


def test_transformers_own_class_comes_before_code_that_is_not_trusted(vit: Path) -> None:
    set_config(vit, auto_map={"AutoModel": "mine.ViTForImageClassification"})
    found = export_checkpoint(vit, vit.parent / "out", quick=True)
    assert found.notes[0] == "the code that the checkpoint brings along is not run: transformers has its own"


def test_a_task_that_nobody_knows_is_corrected(bert: Path) -> None:
    assert refusal_of(bert, task="fill-masks") == "no task is called `fill-masks`; did you mean `fill-mask`?"


def test_a_task_that_the_model_is_not_made_for_is_refused(bert: Path) -> None:
    assert refusal_of(bert, task="object-detection") == (
        "transformers has no model of the type `bert` for `object-detection`"
    )


def test_a_model_that_takes_images_beside_text_is_refused(bert: Path) -> None:
    set_config(bert, architectures=["LlavaForConditionalGeneration"], model_type="llava")
    assert refusal_of(bert) == (
        "`LlavaForConditionalGeneration` generates from `pixel_values` beside text, which a checkpoint export does not "
        "take apart: export its parts with anyshape.export"
    )

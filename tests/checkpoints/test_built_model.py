"""Which class a checkpoint is loaded as, what cannot be loaded, adapters, and what is said about weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

from anyshape.checkpoints import export_checkpoint
from tests.checkpoints import tiny
from tests.checkpoints.refusals import refusal_of, set_config

Make = Callable[[str], Path]


def test_quantised_weights_are_refused(bert: Path) -> None:
    assert refusal_of(set_config(bert, quantization_config={"quant_method": "gptq"})) == (
        "the weights of `/home/bert` are quantised (gptq): give the checkpoint before that"
    )


def test_weights_that_the_class_needs_must_be_there(bert: Path) -> None:
    said = refusal_of(bert, task="token-classification")
    assert said == (
        "`/home/bert` lacks `classifier.bias`, `classifier.weight`, which `BertForTokenClassification` needs"
    )


@pytest.mark.parametrize("name", ["pipeline", "AutoModel", "__doc__", "BertConfig"])
def test_only_a_class_of_models_is_an_architecture(bert: Path, name: str) -> None:
    said = f"transformers {transformers.__version__} has no `{name}`, which `/home/bert` needs"
    assert refusal_of(set_config(bert, architectures=[name])) == said


def test_weights_that_are_cut_off_are_named(bert: Path) -> None:
    weights = bert / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    assert refusal_of(bert).startswith("`/home/bert` cannot be loaded as `BertModel`: SafetensorError: ")


def test_an_adapter_is_merged_into_a_copy(checkpoint: Make, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    base = checkpoint("vit")
    before = (base / "model.safetensors").read_bytes()
    model = peft.get_peft_model(tiny.vit(), peft.LoraConfig(r=2, target_modules=["q_proj", "query"]))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    model.save_pretrained(tmp_path / "adapter")
    settings = tmp_path / "adapter/adapter_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "base_model_name_or_path": str(base)}))
    found = export_checkpoint(tmp_path / "adapter", tmp_path / "out", quick=True)
    pixels = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        wanted = model.eval()(pixel_values=pixels).logits.numpy()
        plain = tiny.vit()(pixels).logits.numpy()
    result = onnxruntime.InferenceSession(found[0].path).run(None, {"pixel_values": pixels.numpy()})[0]
    np.testing.assert_allclose(result, wanted, atol=1e-3)
    assert np.abs(wanted - plain).max() > 0.05
    assert found.notes[0] == f"the adapter in `{tmp_path / 'adapter'}` is merged into the weights of `{base}`"
    assert (base / "model.safetensors").read_bytes() == before


def test_without_peft_the_command_is_told(checkpoint: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    (tmp_path / "adapter").mkdir()
    settings = {"base_model_name_or_path": str(checkpoint("vit"))}
    (tmp_path / "adapter/adapter_config.json").write_text(json.dumps(settings))
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "peft" else find(name, *more))
    assert refusal_of(tmp_path / "adapter") == (
        "`/home/adapter` is a PEFT adapter, and peft is not installed: pip install peft"
    )


# ---- which class


def test_a_config_without_an_architecture_needs_a_task(bert: Path) -> None:
    assert refusal_of(set_config(bert, architectures=None)) == (
        "the config of `/home/bert` names no architecture: say with task= what it is for"
    )


def test_an_architecture_that_transformers_lacks_is_named(bert: Path) -> None:
    assert refusal_of(set_config(bert, architectures=["BertForTelepathy"])) == (
        f"transformers {transformers.__version__} has no `BertForTelepathy`, which `/home/bert` needs"
    )


def test_code_of_a_checkpoint_is_not_run_by_itself(bert: Path) -> None:
    (bert / "mine.py").write_text("raise SystemExit")
    set_config(bert, architectures=["Mine"], auto_map={"AutoModel": "mine.Mine"})
    assert refusal_of(bert) == (
        "`/home/bert` brings its own code for `Mine` (`mine.Mine`): read it, then give trust_remote_code=True to run it"
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
        "take apart: export its parts with `anyshape.export`"
    )

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers

Make = Callable[[str], Any]


def test_genai_is_told_what_the_file_has(exported: Make) -> None:
    settings = json.loads((exported("llama").path / "genai_config.json").read_text())
    model, decoder = settings["model"], settings["model"]["decoder"]
    assert {key: model[key] for key in ("type", "vocab_size", "context_length", "bos_token_id", "eos_token_id")} == {
        "type": "llama", "vocab_size": 40, "context_length": 64, "bos_token_id": 1, "eos_token_id": [2],
    }  # fmt: skip
    shapes = ("head_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers")
    assert {key: decoder[key] for key in shapes} == dict(zip(shapes, (4, 16, 4, 2, 2), strict=True))
    [result] = exported("llama")
    names = {port.name for port in (*result.inputs, *result.outputs)}
    told = [*decoder["inputs"].values(), *decoder["outputs"].values()]
    assert {name.replace("%d", str(layer)) for name in told for layer in range(2)} == names
    assert not settings["search"]["past_present_share_buffer"]


def test_genai_generates_what_transformers_generates(exported: Make, checkpoint: Make) -> None:
    genai = pytest.importorskip("onnxruntime_genai")
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("llama")).eval()
    prompt = [5, 7, 9, 11]
    wanted = model.generate(torch.tensor([prompt]), max_new_tokens=6, do_sample=False)[0].tolist()
    opened = genai.Model(str(exported("llama").path))
    parameters = genai.GeneratorParams(opened)
    parameters.set_search_options(max_length=len(prompt) + 6)
    generator = genai.Generator(opened, parameters)
    generator.append_tokens(np.array([prompt], dtype=np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    assert [int(token) for token in generator.get_sequence(0)] == wanted

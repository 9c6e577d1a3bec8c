"""Files that do not generate what their model generates are noticed, although each may be right in itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers

from anyshape.checkpoints.decoders import decoder_part
from anyshape.checkpoints.generation import Generator, check_generation, first_difference, step_difference

Make = Callable[[str], Any]
WORDS = 7


def _logits(total: torch.Tensor) -> torch.Tensor:
    """The sum of all tokens so far, as the most likely next one."""
    return torch.nn.functional.one_hot(total % WORDS, WORDS).float()


def _generator(**changes: Any) -> Generator:
    def run(ids: torch.Tensor, mask: torch.Tensor, past: Any) -> tuple[torch.Tensor, Any]:
        total = past + (ids * mask[:, -ids.shape[1] :]).sum(1)
        return _logits(total), total

    def reference(count: int) -> torch.Tensor:
        tokens = torch.tensor([[1, 2], [3, 1]])
        for _ in range(count):
            tokens = torch.cat([tokens, tokens.sum(1, keepdim=True) % WORDS], dim=1)
        return tokens[:, 2:]

    right = Generator(run, torch.zeros(2, dtype=torch.int64), torch.tensor([[1, 2], [3, 1]]), reference, 1e-3)
    return dataclasses.replace(right, **changes)


def test_a_right_file_has_no_fault() -> None:
    generator = _generator()
    assert step_difference(generator, torch.arange(12).reshape(2, 6)) is None
    assert first_difference(generator, generator.reference(4)) is None


def test_a_past_that_is_forgotten_is_noticed() -> None:
    forgets = _generator(run=lambda ids, mask, past: (_logits(ids.sum(1)), past))
    assert step_difference(forgets, torch.arange(12).reshape(2, 6)) == (
        "a prompt of 5 and one more token differ from the prompt of 6 by 1 (largest 1)"
    )


def test_another_token_is_noticed() -> None:
    generator = _generator()
    wanted = generator.reference(4)
    wanted[1, 2] = (wanted[1, 2] + 1) % WORDS
    own, given = wanted[:, 2].tolist(), generator.reference(4)[:, 2].tolist()
    assert first_difference(generator, wanted) == (f"token 3 is {given}, but `generate` of transformers gives {own}")


def test_nan_is_no_agreement() -> None:
    broken = _generator(run=lambda ids, mask, past: (torch.full((2, WORDS), torch.nan), past))
    assert step_difference(broken, torch.arange(12).reshape(2, 6)) is not None


def test_equally_likely_tokens_may_be_either() -> None:
    undecided = _generator(run=lambda ids, mask, past: (torch.ones(2, WORDS), past))
    assert first_difference(undecided, torch.tensor([[3, 5], [6, 6]])) is None


@pytest.mark.slow
def test_the_file_of_another_model_is_noticed(exported: Make, checkpoint: Make) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint("llama")).eval()
    with torch.no_grad():
        model.lm_head.weight.neg_()
    part = decoder_part(model, model.config)
    evidence = check_generation(model, model.config, {exported("llama").path / "model.onnx": part}, seed=0)
    assert evidence.fault is not None
    assert evidence.fault.startswith("token 1 is ")

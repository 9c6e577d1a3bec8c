"""Tiny checkpoints of many architectures, exported from their folders: which come out right, and at what cost.

Every checkpoint is saved with random weights and exported with the default options and few sizes; files with a cache
must generate what transformers' own `generate` does. `by` is the strategy that gave each file; seconds are CPU time.

Run: python benchmarks/checkpoints.py [--only REGEX] [--thorough]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table

import anyshape
from anyshape.checkpoints import export_checkpoint
from silence import silence

TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT: dict[str, Any] = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip
DECODER = {**TEXT, **TOKENS}
GROUPED = {**DECODER, "num_key_value_heads": 2}
VISION: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
GPT: dict[str, Any] = {
    "vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
HALVES: dict[str, Any] = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, **TOKENS, "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}  # fmt: skip
BART = {**HALVES, "max_position_embeddings": 64}
SPEECH = {**HALVES, "max_target_positions": 32}
T5 = {"vocab_size": 40, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertModel", "BertConfig", TEXT),
    "roberta": ("RobertaForSequenceClassification", "RobertaConfig", {**TEXT, "type_vocab_size": 1}),
    "distilbert": ("DistilBertForQuestionAnswering", "DistilBertConfig", {
        "vocab_size": 40, "dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config", TEXT),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig", {
        **DECODER, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 8}),
    "t5 encoder": ("T5EncoderModel", "T5Config", T5),
    "bart classifier": ("BartForSequenceClassification", "BartConfig", BART),
    "vit": ("ViTForImageClassification", "ViTConfig", VISION),
    "dinov2": ("Dinov2Model", "Dinov2Config", {**VISION, "mlp_ratio": 2}),
    "resnet": ("ResNetForImageClassification", "ResNetConfig", {
        "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}),
    "convnext": ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {
        "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16], "patch_sizes": [7, 3],
        "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16}),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", {
        **{key: size for key, size in TEXT.items() if key != "max_position_embeddings"}, "conv_dim": (16, 16),
        "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4}),
    "ast": ("ASTForAudioClassification", "ASTConfig", {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, "patch_size": 8,
        "frequency_stride": 8, "time_stride": 8, "max_length": 32, "num_mel_bins": 16}),
    "clip": ("CLIPModel", "CLIPConfig", {
        "text_config": {**TEXT, "bos_token_id": 38, "eos_token_id": 39}, "vision_config": VISION,
        "projection_dim": 16}),
    "siglip": ("SiglipModel", "SiglipConfig", {"text_config": TEXT, "vision_config": VISION}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {**GPT, "rotary_dim": 4}),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", {**GPT, "rotary_dim": 4, "n_ctx": 64}),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", GPT),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", DECODER),
    "mistral, window of 6": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 6}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 8}),
    "phi": ("PhiForCausalLM", "PhiConfig", DECODER),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**GROUPED, "head_dim": 4}),
    "gemma2, window of 6": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 4, "sliding_window": 6}),
    "gemma3, window of 6": ("Gemma3ForCausalLM", "Gemma3TextConfig", {**GROUPED, "head_dim": 4, "sliding_window": 6}),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "opt": ("OPTForCausalLM", "OPTConfig", {
        "vocab_size": 40, "hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 64, "word_embed_proj_dim": 16, **TOKENS}),
    "bloom": ("BloomForCausalLM", "BloomConfig", {
        "vocab_size": 40, "hidden_size": 16, "n_layer": 2, "n_head": 4, **TOKENS}),
    "mpt": ("MptForCausalLM", "MptConfig", {
        "vocab_size": 40, "d_model": 16, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "falcon": ("FalconForCausalLM", "FalconConfig", {
        "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, **TOKENS}),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", {**GROUPED, "hidden_size": 32}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", {
        **DECODER, "num_key_value_heads": 4, "moe_intermediate_size": 8, "n_routed_experts": 4, "n_group": 1,
        "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "kv_lora_rank": 8, "q_lora_rank": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 4, "qk_nope_head_dim": 4}),
    "mamba": ("MambaForCausalLM", "MambaConfig", {
        "vocab_size": 40, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, **TOKENS}),
    "t5": ("T5ForConditionalGeneration", "T5Config", {**T5, "decoder_start_token_id": 0}),
    "bart": ("BartForConditionalGeneration", "BartConfig", BART),
    "marian": ("MarianMTModel", "MarianConfig", BART),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", BART),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", BART),
    "m2m100": ("M2M100ForConditionalGeneration", "M2M100Config", BART),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", {
        **SPEECH, "max_source_positions": 16, "num_mel_bins": 8}),
    "speech to text": ("Speech2TextForConditionalGeneration", "Speech2TextConfig", {
        **SPEECH, "max_source_positions": 64, "input_feat_per_channel": 8, "conv_channels": 16}),
}  # fmt: skip


def save(name: str, folder: Path) -> None:
    kind, config, settings = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**settings))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape) * 0.3 + (weight.dim() == 1))
    model.save_pretrained(folder)


def measure(name: str, *, thorough: bool) -> list[str]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with silence():
            save(name, folder / "checkpoint")
        started = time.process_time()
        try:
            found = export_checkpoint(folder / "checkpoint", folder / "out", quick=not thorough, thorough=thorough)
        except anyshape.AnyshapeError as error:
            first = str(error).replace(place, "").splitlines()
            return [name, "refused", "", "", f"{time.process_time() - started:.1f}", " ".join(first[:2])]
    by = {next(a.strategy for a in result.attempts if a.outcome == "checked") for result in found}
    files = ", ".join(result.path.name for result in found if result.path is not None)
    said = [*found.generation[1:], *(limit for result in found for limit in result.limits), *found.notes]
    return [name, found.verdict, files, ", ".join(sorted(by)), f"{time.process_time() - started:.1f}", "; ".join(said)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--thorough", action="store_true", help="check at many sizes")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=200)
    names = [name for name in MODELS if re.search(chosen.only, name)]
    table = Table("checkpoint", "verdict", "files", "by", "CPU s", "said")
    for name in names:
        console.print(f"{name} ...", style="dim")
        table.add_row(*measure(name, thorough=chosen.thorough))
    console.print(table)


if __name__ == "__main__":
    main()

"""transformers on sound, on pictures with text, and on time series."""

from __future__ import annotations

from typing import Any

import torch

from coverage_models.entry import Entry, floats, ids, own, padding, plain, positive, ragged, under
from coverage_models.hf_common import SEQ2SEQ, TEXT, tiny

# ---- sound

WAVE = {"input_values": floats("batch length")}
LENGTHS = {"length": (2000, 800, 1601, 3000)}
SPEECH: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": [16, 16, 16], "conv_stride": [5, 4, 2], "conv_kernel": [10, 8, 4], "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4, "vocab_size": 20,
}  # fmt: skip
WAVES: list[tuple[str, str, dict[str, Any]]] = [
    ("wav2vec2", "Wav2Vec2Model", {}),
    ("wav2vec2 ctc", "Wav2Vec2ForCTC", {"feat_extract_norm": "layer", "do_stable_layer_norm": True}),
    ("hubert", "HubertModel", {}),
    ("wavlm", "WavLMModel", {"num_buckets": 8, "max_bucket_distance": 16}),
    ("unispeech", "UniSpeechModel", {}),
    ("wav2vec2_conformer", "Wav2Vec2ConformerModel", {"conv_depthwise_kernel_size": 3}),
    ("wav2vec2_conformer rotary", "Wav2Vec2ConformerModel", {"conv_depthwise_kernel_size": 3,
                                                             "position_embeddings_type": "rotary"}),
    ("data2vec audio", "Data2VecAudioModel", {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5}),
    ("sew", "SEWModel", {"squeeze_factor": 2}),
]  # fmt: skip
CODEC: dict[str, Any] = {
    "num_filters": 4,
    "hidden_size": 8,
    "codebook_size": 16,
    "codebook_dim": 8,
    "upsampling_ratios": [4, 2],
}


def sound() -> list[Entry]:
    found = [
        plain(name, tiny(kind, **{**SPEECH, **options}), WAVE, keywords=True, **LENGTHS)
        for name, kind, options in WAVES
    ]
    whisper = {**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 32}
    heard = {"input_features": floats("batch 8 32"), "decoder_input_ids": ids("batch target", 100, 3)}
    frames = {"input_features": floats("batch length 8"), "decoder_input_ids": ids("batch target", 100, 3)}
    listener = {**SEQ2SEQ, "input_feat_per_channel": 8, "conv_channels": 16, "max_source_positions": 64,
                "max_target_positions": 32}  # fmt: skip
    spectrogram = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
                   "patch_size": 4, "frequency_stride": 4, "time_stride": 4, "max_length": 16,
                   "num_mel_bins": 8}  # fmt: skip
    codec = {"input_values": floats("batch 1 length")}
    return [
        *found,
        plain("whisper", tiny("WhisperForConditionalGeneration", **whisper), heard, keywords=True),
        plain("speech_to_text", tiny("Speech2TextForConditionalGeneration", **listener), frames, keywords=True),
        plain("audio_spectrogram_transformer", tiny("ASTModel", **spectrogram), {"input_values": floats("batch 16 8")},
              keywords=True),
        plain("encodec", tiny("EncodecModel", **CODEC), codec, keywords=True, length=(400, 200, 333, 512)),
        plain("dac", tiny("DacModel", encoder_hidden_size=4, downsampling_ratios=[2, 4], decoder_hidden_size=16,
              n_codebooks=2, codebook_size=16, codebook_dim=4, upsampling_ratios=[4, 2], hidden_size=16), codec,
              keywords=True, length=(400, 200, 333, 512)),
        plain("moonshine", tiny("MoonshineForConditionalGeneration", **{**TEXT, "use_cache": False,
              "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4,
              "decoder_num_attention_heads": 4, "decoder_start_token_id": 1, "num_hidden_layers": 2}),
              {"input_values": floats("batch length"), "decoder_input_ids": ids("batch target", 100, 3)},
              keywords=True, length=(2000, 1500, 2601, 3000)),
    ]  # fmt: skip


# ---- pictures with text

EYE: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 16,
    "patch_size": 8,
}  # fmt: skip
TALK = {key: value for key, value in TEXT.items() if key not in ("pad_token_id", "bos_token_id", "eos_token_id")}
BOTH = {"input_ids": ids("n seq", 99, 3), "pixel_values": floats("batch 3 16 16"), "attention_mask": padding("n seq")}


def _llava(batch: int, seq: int) -> dict[str, Any]:
    """Each row holds one picture: four tokens of its own, then words."""
    picture = torch.full((batch, 4), 99)
    words = torch.randint(3, 99, (batch, seq))
    return {
        "input_ids": torch.cat([picture, words], 1),
        "pixel_values": torch.randn(batch, 3, 16, 16),
        "attention_mask": torch.cat([torch.ones_like(picture), ragged(batch, seq).long()], 1),
    }


def _layout(batch: int, seq: int) -> dict[str, Any]:
    corner = torch.randint(0, 40, (batch, seq, 2))
    return {
        "input_ids": torch.randint(3, 100, (batch, seq)),
        "bbox": torch.cat([corner, corner + torch.randint(1, 20, (batch, seq, 2))], 2),
        "attention_mask": ragged(batch, seq).long(),
    }


def _clip(text: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return {
        "text_config": {**TALK, "eos_token_id": 99, **(text or {})},
        "vision_config": EYE,
        "projection_dim": 16,
        **options,
    }


def pictures_with_text() -> list[Entry]:
    text = {**TEXT, "num_key_value_heads": 2, "model_type": "llama", "use_cache": False}
    llava = {"text_config": text, "vision_config": {**EYE, "model_type": "clip_vision_model"}, "image_token_id": 99,
             "image_token_index": 99, "vision_feature_layer": -1}  # fmt: skip
    vilt = {**TEXT, **EYE, "vocab_size": 100, "max_image_length": -1}
    layout = {**TEXT, "max_2d_position_embeddings": 64}
    seen = {"input_ids": ids("batch seq", 100, 3), "pixel_values": floats("batch 3 16 16")}
    reader = {"encoder": {"model_type": "vit", **EYE}, "is_encoder_decoder": True,
    "decoder": {"model_type": "gpt2", **TEXT,
              "add_cross_attention": True, "is_decoder": True, "use_cache": False}}  # fmt: skip
    written = {"pixel_values": floats("batch 3 16 16"), "decoder_input_ids": ids("batch target", 100, 3)}
    visual = {"input_ids": ids("batch seq", 100, 3), "visual_embeds": floats("batch n 16")}
    regions = {"input_ids": ids("batch seq", 100, 3), "visual_feats": floats("batch n 16"),
               "visual_pos": positive("batch n 4")}  # fmt: skip
    return [
        plain("clip", tiny("CLIPModel", **_clip()), BOTH, keywords=True, n=(4, 1, 2, 3)),
        plain("siglip", tiny("SiglipModel", **_clip()), BOTH, keywords=True, n=(4, 1, 2, 3), seq=(5, 64, 8, 12)),
        plain("chinese_clip", tiny("ChineseCLIPModel", **_clip({"pad_token_id": 0})), BOTH, keywords=True,
              n=(4, 1, 2, 3)),
        plain("altclip", tiny("AltCLIPModel", **_clip({"pad_token_id": 0, "project_dim": 32})), BOTH, keywords=True,
              n=(4, 1, 2, 3)),
        plain("clip text", tiny("CLIPTextModel", **{**TALK, "eos_token_id": 99}),
            {"input_ids": ids("batch seq", 99, 3)},
              keywords=True),
        plain("clipseg", tiny("CLIPSegVisionModel", **EYE), {"pixel_values": floats("batch 3 16 16")}, keywords=True),
        plain("blip", tiny("BlipForImageTextRetrieval", **_clip({"encoder_hidden_size": 32, "pad_token_id": 0,
              "bos_token_id": 1, "eos_token_id": 2, "projection_dim": 16}, image_text_hidden_size=16)), seen,
              keywords=True),
        plain("git", tiny("GitForCausalLM", **{**TEXT, "vision_config": EYE, "use_cache": False}), seen, keywords=True),
        own("llava", tiny("LlavaForConditionalGeneration", **llava), _llava,
            {"input_ids": "batch seq+4", "attention_mask": "batch seq+4", "pixel_values": "batch 3 16 16"}),
        plain("vilt", tiny("ViltModel", **vilt), seen, keywords=True),
        own("layoutlm", tiny("LayoutLMModel", **layout), _layout,
            {"input_ids": "batch seq", "bbox": "batch seq 4", "attention_mask": "batch seq"}, own_inputs=False),
        own("lilt", tiny("LiltModel", **{**layout, "hidden_size": 48, "channel_shrink_ratio": 2}), _layout,
            {"input_ids": "batch seq", "bbox": "batch seq 4", "attention_mask": "batch seq"}, own_inputs=False),
        plain("vision_encoder_decoder", tiny("VisionEncoderDecoderModel", **reader), written, keywords=True),
        plain("visual_bert", tiny("VisualBertModel", **{**TEXT, "visual_embedding_dim": 16}), visual, keywords=True),
        plain("lxmert", tiny("LxmertModel", **{**TEXT, "l_layers": 1, "x_layers": 1, "r_layers": 1,
              "visual_feat_dim": 16, "num_hidden_layers": ...}), regions, keywords=True),
    ]  # fmt: skip


# ---- time series and decisions


def series() -> list[Entry]:
    patches = {"num_input_channels": 3, "context_length": 32, "patch_length": 4, "patch_stride": 4, "d_model": 16,
               "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32, "prediction_length": 8}  # fmt: skip
    past = {"past_values": floats("batch 32 3")}
    steps = {"states": floats("batch seq 4"), "actions": floats("batch seq 2"), "rewards": floats("batch seq 1"),
             "returns_to_go": floats("batch seq 1"), "timesteps": ids("batch seq", 20),
             "attention_mask": padding("batch seq")}  # fmt: skip
    return [
        plain("patchtst", tiny("PatchTSTForPrediction", **patches), past, keywords=True),
        plain("patchtsmixer", tiny("PatchTSMixerForPrediction", **{**patches, "num_layers": 2,
            "mode": "common_channel"}),
              past, keywords=True),
        plain("decision_transformer", tiny("DecisionTransformerModel", state_dim=4, act_dim=2, hidden_size=32,
              max_ep_len=32, n_layer=2, n_head=4, n_positions=64), steps, keywords=True),
        plain("perceiver", tiny("PerceiverModel", num_latents=4, d_latents=16, d_model=8, num_blocks=1,
              num_self_attends_per_block=2, num_self_attention_heads=2, num_cross_attention_heads=2),
              {"inputs": floats("batch seq 8")}, keywords=True),
    ]  # fmt: skip


def entries() -> list[Entry]:
    return under("hf", [*sound(), *pictures_with_text(), *series()])

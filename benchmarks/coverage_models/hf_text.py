"""transformers on text without a cache: encoders, decoders, mixtures of experts, state spaces, encoder-decoders."""

from __future__ import annotations

from typing import Any

from coverage_models.entry import Entry, ids, padding, plain, under
from coverage_models.hf_common import SEQ2SEQ, TEXT, tiny

WORDS = {"input_ids": ids("batch seq", 100, 3), "attention_mask": padding("batch seq")}
BARE = {"input_ids": ids("batch seq", 100, 3)}
PAIR = {
    "input_ids": ids("batch source", 100, 3),
    "attention_mask": padding("batch source"),
    "decoder_input_ids": ids("batch target", 100, 3),
}


def text(name: str, kind: str, inputs: Any = None, *, columns: Any = None, **options: Any) -> Entry:
    return plain(name, tiny(kind, **{**TEXT, **options}), inputs or WORDS, keywords=True, **(columns or {}))


ENCODERS: list[tuple[str, str, dict[str, Any]]] = [
    ("bert", "BertModel", {}),
    ("bert token classification", "BertForTokenClassification", {}),
    ("roberta", "RobertaModel", {}),
    ("xlm_roberta", "XLMRobertaForSequenceClassification", {}),
    ("camembert", "CamembertModel", {}),
    ("distilbert", "DistilBertForMaskedLM", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    ("albert", "AlbertModel", {"embedding_size": 16}),
    ("electra", "ElectraModel", {"embedding_size": 16}),
    ("mpnet", "MPNetModel", {}),
    ("deberta", "DebertaModel", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    ("deberta_v2", "DebertaV2Model", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"],
                                      "position_buckets": 8, "share_att_key": True}),
    ("convbert", "ConvBertModel", {"embedding_size": 32, "conv_kernel_size": 3}),
    ("squeezebert", "SqueezeBertModel", {"embedding_size": 32}),
    ("roformer", "RoFormerModel", {"embedding_size": 32}),
    ("rembert", "RemBertModel", {"input_embedding_size": 16, "output_embedding_size": 16}),
    ("mobilebert", "MobileBertModel", {"embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16}),
    ("ernie", "ErnieModel", {}),
    ("esm", "EsmModel", {"mask_token_id": 4, "position_embedding_type": "rotary", "token_dropout": False}),
    ("megatron_bert", "MegatronBertModel", {}),
    ("modernbert", "ModernBertModel", {"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2}),
    ("big_bird", "BigBirdModel", {"attention_type": "original_full"}),
    ("xlm", "XLMModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    ("flaubert", "FlaubertModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    ("xlnet", "XLNetModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "use_mems_eval": False,
                             "max_position_embeddings": ...}),
    ("longformer", "LongformerModel", {"attention_window": 4, "max_position_embeddings": 70}),
    ("nystromformer", "NystromformerModel", {"num_landmarks": 4, "segment_means_seq_len": 4}),
    ("funnel", "FunnelModel", {"block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64,
                               "num_decoder_layers": 1, "num_hidden_layers": ..., "columns": {"seq": (8, 4, 12, 7)}}),
    ("splinter", "SplinterModel", {}),
    ("data2vec text", "Data2VecTextModel", {}),
    ("nomic_bert", "NomicBertModel", {}),
]  # fmt: skip

DECODERS: list[tuple[str, str, dict[str, Any]]] = [
    ("gpt2", "GPT2LMHeadModel", {}),
    ("openai gpt", "OpenAIGPTLMHeadModel", {}),
    ("gpt_neo", "GPTNeoForCausalLM", {"num_layers": 2, "attention_types": [[["global", "local"], 1]],
                                      "window_size": 4}),
    ("gptj", "GPTJForCausalLM", {"rotary_dim": 4}),
    ("gpt_neox", "GPTNeoXForCausalLM", {}),
    ("gpt_bigcode", "GPTBigCodeForCausalLM", {}),
    ("codegen", "CodeGenForCausalLM", {"rotary_dim": 4, "n_ctx": 64}),
    ("opt", "OPTForCausalLM", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    ("bloom", "BloomForCausalLM", {}),
    ("mpt", "MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    ("falcon", "FalconForCausalLM", {}),
    ("llama", "LlamaForCausalLM", {"num_key_value_heads": 2}),
    ("mistral", "MistralForCausalLM", {"num_key_value_heads": 2, "sliding_window": 4}),
    ("qwen2", "Qwen2ForCausalLM", {"num_key_value_heads": 2}),
    ("qwen3", "Qwen3ForCausalLM", {"num_key_value_heads": 2, "head_dim": 8}),
    ("gemma", "GemmaForCausalLM", {"num_key_value_heads": 1, "head_dim": 8}),
    ("gemma2", "Gemma2ForCausalLM", {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4}),
    ("gemma3", "Gemma3ForCausalLM", {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4}),
    ("phi", "PhiForCausalLM", {}),
    ("phi3", "Phi3ForCausalLM", {"num_key_value_heads": 2}),
    ("stablelm", "StableLmForCausalLM", {"num_key_value_heads": 2}),
    ("starcoder2", "Starcoder2ForCausalLM", {"num_key_value_heads": 2}),
    ("olmo2", "Olmo2ForCausalLM", {"num_key_value_heads": 2}),
    ("cohere", "CohereForCausalLM", {"num_key_value_heads": 2, "logit_scale": 1.0}),
    ("granite", "GraniteForCausalLM", {"num_key_value_heads": 2}),
    ("glm", "GlmForCausalLM", {"num_key_value_heads": 2, "head_dim": 8}),
    ("persimmon", "PersimmonForCausalLM", {}),
    ("smollm3", "SmolLM3ForCausalLM", {"num_key_value_heads": 2}),
    ("xglm", "XGLMForCausalLM", {"num_layers": 2, "attention_heads": 4, "ffn_dim": 64, "d_model": 32}),
    ("biogpt", "BioGptForCausalLM", {}),
    ("ctrl", "CTRLLMHeadModel", {"dff": 64}),
]  # fmt: skip

EXPERTS: list[tuple[str, str, dict[str, Any]]] = [
    ("mixtral", "MixtralForCausalLM", {"num_key_value_heads": 2, "num_local_experts": 4}),
    ("qwen2_moe", "Qwen2MoeForCausalLM", {"num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
                                          "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32}),
    ("qwen3_moe", "Qwen3MoeForCausalLM", {"num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
                                          "moe_intermediate_size": 16, "head_dim": 8}),
    ("olmoe", "OlmoeForCausalLM", {"num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2}),
    ("deepseek_v2", "DeepseekV2ForCausalLM", {"n_routed_experts": 4, "num_experts_per_tok": 2, "kv_lora_rank": 16,
        "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 16,
        "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "n_shared_experts": 1, "head_dim": 8}),
    ("deepseek_v3", "DeepseekV3ForCausalLM", {"n_routed_experts": 4, "num_experts_per_tok": 2, "kv_lora_rank": 16,
        "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 16,
        "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1, "num_key_value_heads": 4}),
    ("gpt_oss", "GptOssForCausalLM", {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
                                      "head_dim": 8, "sliding_window": 4}),
    ("granitemoe", "GraniteMoeForCausalLM", {"num_key_value_heads": 2, "num_local_experts": 4,
                                             "num_experts_per_tok": 2}),
    ("phimoe", "PhimoeForCausalLM", {"num_key_value_heads": 2, "num_local_experts": 4}),
]  # fmt: skip

STATE_SPACES: list[tuple[str, str, dict[str, Any]]] = [
    ("mamba", "MambaForCausalLM", {"state_size": 8, "time_step_rank": 4}),
    ("mamba2", "Mamba2ForCausalLM", {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}),
    ("falcon_mamba", "FalconMambaForCausalLM", {"state_size": 8, "time_step_rank": 4}),
    ("rwkv", "RwkvForCausalLM", {"attention_hidden_size": 32, "context_length": 64}),
    ("recurrent_gemma", "RecurrentGemmaForCausalLM", {"num_hidden_layers": 3, "lru_width": 32,
        "num_key_value_heads": 1, "head_dim": 8, "attention_window_size": 8}),
    ("lfm2", "Lfm2ForCausalLM", {"num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]}),
]  # fmt: skip

TRANSLATORS: list[tuple[str, str, dict[str, Any]]] = [
    ("bart", "BartForConditionalGeneration", {}),
    ("mbart", "MBartForConditionalGeneration", {}),
    ("pegasus", "PegasusForConditionalGeneration", {}),
    ("blenderbot", "BlenderbotForConditionalGeneration", {}),
    ("marian", "MarianMTModel", {}),
    ("m2m_100", "M2M100ForConditionalGeneration", {}),
    ("plbart", "PLBartForConditionalGeneration", {}),
    ("led", "LEDForConditionalGeneration", {"attention_window": 4, "max_encoder_position_embeddings": 64,
                                            "max_decoder_position_embeddings": 64}),
    ("prophetnet", "ProphetNetForConditionalGeneration", {"hidden_size": 32, "num_encoder_layers": 2,
        "num_decoder_layers": 2, "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4,
        "encoder_layers": ...,
        "decoder_layers": ..., "d_model": ...}),
]  # fmt: skip

T5: dict[str, Any] = {
    "vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "use_cache": False,
    "relative_attention_num_buckets": 8, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
T5_KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("t5", "T5ForConditionalGeneration", {}),
    ("mt5", "MT5ForConditionalGeneration", {}),
    ("umt5", "UMT5ForConditionalGeneration", {}),
    ("longt5", "LongT5ForConditionalGeneration", {"local_radius": 3, "encoder_attention_type": "local"}),
    ("switch_transformers", "SwitchTransformersForConditionalGeneration", {"num_experts": 2,
        "num_sparse_encoder_layers": 1,
                                                                          "num_sparse_decoder_layers": 1}),
]  # fmt: skip


def entries() -> list[Entry]:
    found = [text(name, kind, **options) for name, kind, options in ENCODERS]
    found.append(text("fnet", "FNetModel", BARE))
    found += [text(name, kind, use_cache=False, **options) for name, kind, options in DECODERS + EXPERTS]
    found += [text(name, kind, BARE, use_cache=False, **options) for name, kind, options in STATE_SPACES]
    for name, kind, options in TRANSLATORS:
        found.append(plain(name, tiny(kind, **{**SEQ2SEQ, **options}), PAIR, keywords=True))
    for name, kind, options in T5_KINDS:
        found.append(plain(name, tiny(kind, **{**T5, **options}), PAIR, keywords=True))
    return under("hf", found)

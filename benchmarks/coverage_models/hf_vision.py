"""transformers on images, with height and width dynamic wherever PyTorch takes other sizes than the configured one."""

from __future__ import annotations

from typing import Any

from coverage_models.entry import Entry, floats, plain, under
from coverage_models.hf_common import tiny

IMAGE = {"pixel_values": floats("batch 3 height width")}
FIXED = {"pixel_values": floats("batch 3 32 32")}
MEDIUM = {"height": (64, 32, 75, 96), "width": (96, 48, 101, 64)}
"""For networks that halve often."""
LARGE = {"height": (64, 96, 75, 128), "width": (96, 64, 101, 70)}
PATCHES = {"height": (32, 24, 40, 56), "width": (48, 40, 32, 16)}
"""Multiples of 8."""
WINDOWS = {"height": (32, 16, 36, 50), "width": (48, 20, 44, 33)}
"""For windows that are padded."""

VIT: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
SWIN: dict[str, Any] = {
    "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 2,
}  # fmt: skip
CONV: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2], "layer_type": "basic"}
DINO: dict[str, Any] = {**VIT, "mlp_ratio": 2}
PYRAMID: dict[str, Any] = {
    "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [16, 32], "num_attention_heads": [1, 2],
    "sr_ratios": [4, 2], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2],
}  # fmt: skip
RESNET = {"model_type": "resnet", **CONV, "out_features": ["stage1", "stage2"]}
DETR: dict[str, Any] = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "d_model": 32, "encoder_layers": 1,
    "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "num_queries": 6, "num_labels": 5,
}  # fmt: skip

INTERPOLATED: list[tuple[str, str, dict[str, Any], dict[str, tuple[int, ...]]]] = [
    ("vit", "ViTModel", VIT, PATCHES),
    ("deit", "DeiTModel", VIT, PATCHES),
    ("vit_msn", "ViTMSNModel", VIT, PATCHES),
    ("ijepa", "IJepaModel", VIT, PATCHES),
    ("siglip vision", "SiglipVisionModel", VIT, PATCHES),
    ("clip vision", "CLIPVisionModel", VIT, PATCHES),
    ("beit", "BeitModel", {**VIT, "use_relative_position_bias": True}, PATCHES),
    ("swin", "SwinModel", SWIN, WINDOWS),
]
"""Called with `interpolate_pos_encoding=True`."""

FREE: list[tuple[str, str, dict[str, Any], dict[str, tuple[int, ...]]]] = [
    ("dinov2", "Dinov2Model", DINO, PATCHES),
    ("dinov2_with_registers", "Dinov2WithRegistersModel", DINO, PATCHES),
    ("dinov3_vit", "DINOv3ViTModel", VIT, PATCHES),
    ("yolos", "YolosForObjectDetection", {**VIT, "image_size": [32, 32], "num_detection_tokens": 5}, PATCHES),
    ("swin plain", "SwinModel", SWIN, WINDOWS),
    ("swinv2", "Swinv2Model", SWIN, WINDOWS),
    ("swin2sr", "Swin2SRForImageSuperResolution", {"image_size": 16, "patch_size": 1, "embed_dim": 16, "depths": [1, 1],
        "num_heads": [2, 2], "window_size": 4, "upscale": 2}, {"height": (16, 12, 8, 24), "width": (20, 8, 16, 12)}),
    ("convnext", "ConvNextModel", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, MEDIUM),
    ("convnextv2", "ConvNextV2Model", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, MEDIUM),
    ("resnet", "ResNetForImageClassification", CONV, MEDIUM),
    ("regnet", "RegNetModel", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
        "groups_width": 4}, MEDIUM),
    ("bit", "BitModel", {"embedding_size": 8, "hidden_sizes": [32, 64], "depths": [1, 1], "num_groups": 4}, MEDIUM),
    ("mobilenet_v1", "MobileNetV1Model", {"depth_multiplier": 0.25, "tf_padding": True}, MEDIUM),
    ("mobilenet_v2", "MobileNetV2Model", {"depth_multiplier": 0.25, "tf_padding": True}, MEDIUM),
    ("mobilevit", "MobileViTModel", {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
        "num_attention_heads": 2, "image_size": 64}, MEDIUM),
    ("mobilevitv2", "MobileViTV2Model", {"width_multiplier": 0.25, "image_size": 64}, LARGE),
    ("efficientnet", "EfficientNetModel", {"width_coefficient": 0.25, "depth_coefficient": 0.1, "hidden_dim": 320,
        "image_size": 64}, MEDIUM),
    ("segformer", "SegformerForSemanticSegmentation", {**PYRAMID, "decoder_hidden_size": 16}, MEDIUM),
    ("pvt_v2", "PvtV2Model", {**PYRAMID, "num_encoder_blocks": 2, "mlp_ratios": [2, 2]}, MEDIUM),
    ("glpn", "GLPNForDepthEstimation", {**PYRAMID, "num_encoder_blocks": 4, "depths": [1, 1, 1, 1],
        "hidden_sizes": [8, 8, 16, 16], "num_attention_heads": [1, 1, 2, 2], "sr_ratios": [4, 2, 1, 1],
        "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "mlp_ratios": [2, 2, 2, 2],
        "decoder_hidden_size": 16}, {"height": (64, 32, 128, 96), "width": (96, 64, 32, 160)}),
    ("poolformer", "PoolFormerModel", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2,
        "patch_sizes": [7, 3], "strides": [4, 2], "padding": [2, 1]}, MEDIUM),
    ("cvt", "CvtModel", {"embed_dim": [8, 16, 24], "num_heads": [1, 2, 3], "depth": [1, 2, 3]}, MEDIUM),
    ("focalnet", "FocalNetModel", {"embed_dim": 8, "depths": [1, 1], "hidden_sizes": [8, 16], "focal_levels": [2, 2],
        "focal_windows": [3, 3], "image_size": 32}, WINDOWS),
    ("swiftformer", "SwiftFormerModel", {"embed_dims": [8, 8, 16, 16], "depths": [1, 1, 1, 1],
        "num_channels": 3}, MEDIUM),
    ("textnet", "TextNetModel", {}, {"height": (64, 32, 75, 96), "width": (64, 48, 33, 96)}),
    ("resnet backbone", "ResNetBackbone", CONV, MEDIUM),
    ("depth_anything", "DepthAnythingForDepthEstimation", {"backbone_config": {"model_type": "dinov2", **DINO,
        "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False}, "patch_size": 8,
        "neck_hidden_sizes": [8, 8, 16, 16],
        "fusion_hidden_size": 8, "head_hidden_size": 8, "reassemble_hidden_size": 32}, PATCHES),
    ("upernet", "UperNetForSemanticSegmentation", {"backbone_config": {"model_type": "convnext", "num_stages": 4,
        "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "out_features": ["stage1", "stage2", "stage3",
        "stage4"]},
        "hidden_size": 16, "auxiliary_in_channels": 16, "num_labels": 5}, MEDIUM),
    ("detr", "DetrForObjectDetection", {**DETR, "backbone_config": RESNET}, MEDIUM),
    ("conditional_detr", "ConditionalDetrForObjectDetection", {**DETR, "backbone_config": RESNET}, MEDIUM),
    ("deformable_detr", "DeformableDetrForObjectDetection", {**DETR, "backbone_config": RESNET,
        "num_feature_levels": 2, "decoder_layers": 2}, MEDIUM),
]  # fmt: skip

STILL: list[tuple[str, str, dict[str, Any]]] = [
    ("vit fixed", "ViTForImageClassification", VIT),
    ("levit", "LevitModel", {"image_size": 32, "hidden_sizes": [8, 16, 24], "num_attention_heads": [1, 2, 3],
                             "depths": [1, 1, 1], "key_dim": [4, 4, 4]}),
    ("dpt", "DPTForSemanticSegmentation", {**VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
        "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 8, "num_labels": 5}),
    ("hiera", "HieraModel", {"embed_dim": 8, "image_size": [32, 32], "patch_size": [3, 3], "patch_stride": [2, 2],
        "patch_padding": [1, 1], "depths": [1, 1], "num_heads": [1, 2], "num_query_pool": 1,
        "masked_unit_size": [4, 4]}),
]  # fmt: skip
"""Only the batch may vary."""


def entries() -> list[Entry]:
    told = {"interpolate_pos_encoding": True}
    found = [
        plain(name, tiny(kind, **options), IMAGE, keywords=True, constants=told, **columns)
        for name, kind, options, columns in INTERPOLATED
    ]
    found += [
        plain(name, tiny(kind, **options), IMAGE, keywords=True, **columns) for name, kind, options, columns in FREE
    ]
    found += [plain(name, tiny(kind, **options), FIXED, keywords=True) for name, kind, options in STILL]
    return under("hf", found)

"""timm's smallest variants, with height and width dynamic where PyTorch takes other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from coverage_models.entry import Entry, floats, plain, under
from coverage_models.hf_common import NORMS, lively
from coverage_models.stand_ins import stand_ins

PICTURE = {"x": floats("batch 3 height width")}
FREE = {"height": (64, 48, 75, 96), "width": (96, 64, 101, 33)}
"""For convolutions: any size."""
STEPS = {"height": (64, 96, 32, 128), "width": (96, 64, 128, 32)}
"""Multiples of 32."""
VIT: dict[str, Any] = {"embed_dim": 48, "depth": 2, "num_heads": 3, "img_size": 64}
DYNAMIC: dict[str, Any] = {**VIT, "dynamic_img_size": True}


def create(name: str, side: int = 64, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        with stand_ins("torchvision", "PIL"):
            import timm

            made = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return settle(lively(made), side)

    return build


def settle(model: nn.Module, side: int) -> nn.Module:
    """Statistics of the batch norms from one run, so that values neither vanish nor explode."""
    norms = [module for module in model.modules() if isinstance(module, NORMS)]
    if norms:
        for norm in norms:
            norm.train()
            norm.momentum = 1.0
        with torch.no_grad():
            model(torch.randn(4, 3, side, side))
    return model.eval()


CONVOLUTIONS = (
    "resnet10t", "resnet18", "resnext26ts", "skresnet18", "legacy_seresnet18", "resnetblur18",
    "densenetblur121d", "dpn48b",
    "mobilenetv2_035", "mobilenetv3_small_050",
    "mobilenetv4_conv_small_035", "tf_mobilenetv3_small_minimal_100", "efficientnet_b0", "tf_efficientnet_lite0",
    "mixnet_s", "mnasnet_small", "lcnet_035", "tinynet_e", "ghostnet_050", "fbnetc_100", "rexnet_100", "regnetx_002",
    "regnety_002", "repvgg_a0", "repghostnet_050", "mobileone_s0", "convnext_atto", "convnextv2_atto", "starnet_s1",
    "ese_vovnet19b_dw", "hgnetv2_b0", "inception_next_atto", "edgenext_xx_small", "poolformerv2_s12", "pvt_v2_b0",
    "nf_regnet_b0", "gernet_s", "efficientvit_b0", "repvit_m0_9", "mobilevit_xxs", "mobilevitv2_050",
)  # fmt: skip

SHAPED: list[tuple[str, dict[str, Any], dict[str, tuple[int, ...]]]] = [
    ("vit_tiny_patch16_224", DYNAMIC, STEPS),
    ("deit_tiny_distilled_patch16_224", DYNAMIC, STEPS),
    ("vit_tiny_patch16_224", {**DYNAMIC, "dynamic_img_pad": True}, FREE),
    ("deit3_small_patch16_224", DYNAMIC, STEPS),
    ("eva02_tiny_patch14_224", {**DYNAMIC, "img_size": 56}, {"height": (56, 28, 70, 84), "width": (84, 42, 56, 28)}),
    ("vit_medium_patch16_gap_240", DYNAMIC, STEPS),
    ("vit_small_patch16_rope_224", DYNAMIC, STEPS),
    ("swin_tiny_patch4_window7_224", {"embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4), "img_size": 56,
        "strict_img_size": False}, {"height": (56, 64, 28, 48), "width": (64, 56, 40, 84)}),
    ("swinv2_tiny_window8_256", {"embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4), "img_size": 64,
        "strict_img_size": False}, STEPS),
    ("davit_tiny", {"embed_dims": (24, 48), "depths": (1, 1), "num_heads": (2, 4)}, STEPS),
    ("focalnet_tiny_srf", {}, STEPS),
    ("lambda_resnet26t", {}, STEPS),
    ("dla46_c", {}, STEPS),
    ("hrnet_w18_small", {}, STEPS),
    ("xcit_nano_12_p8_224", {"depth": 2, "img_size": 64}, STEPS),
    ("fastvit_t8", {}, STEPS),
    ("tiny_vit_5m_224", {}, STEPS),
    ("twins_svt_small", {"img_size": 64}, STEPS),
]  # fmt: skip

STILL: list[tuple[str, dict[str, Any], int]] = [
    ("vit_relpos_small_patch16_224", VIT, 64),
    ("beit_base_patch16_224", VIT, 64),
    ("vit_srelpos_small_patch16_224", VIT, 64),
    ("mixer_s32_224", {"img_size": 64}, 64),
    ("resmlp_12_224", {"img_size": 64}, 64),
    ("levit_128s", {"img_size": 64}, 64),
    ("pit_ti_224", {"img_size": 64}, 64),
    ("crossvit_tiny_240", {}, 240),
    ("hiera_tiny_224", {}, 224),
    ("cait_xxs24_224", {"depth": 2, "img_size": 64}, 64),
    ("maxvit_rmlp_pico_rw_256", {"img_size": 64}, 64),
]
"""Only the batch may vary."""


def entries() -> list[Entry]:
    found = [plain(name, create(name), PICTURE, **FREE) for name in CONVOLUTIONS]
    for name, options, columns in SHAPED:
        title = f"{name} padded" if "dynamic_img_pad" in options else name
        found.append(plain(title, create(name, **options), PICTURE, **columns))
    for name, options, side in STILL:
        found.append(plain(name, create(name, side, **options), {"x": floats(f"batch 3 {side} {side}")}))
    return under("timm", found)

"""torch.nn without sequences: linear, convolutions, normalisation, pooling, resizing, activations, distances."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from coverage_models.entry import Entry, floats, ids, model, own, plain, positive, under

LINE = {"input": floats("batch 4 length")}
IMAGE = {"input": floats("batch 4 height width")}
VOLUME = {"input": floats("batch 4 depth height width")}
SMALL = {"depth": (6, 5, 7, 8), "height": (8, 7, 9, 12), "width": (10, 9, 8, 13)}
"""Volumes are kept small."""
EVEN = {"height": (16, 8, 22, 30), "width": (20, 12, 14, 26)}


def lively(layer: nn.Module) -> nn.Module:
    """Running statistics and scales that are not the neutral ones."""
    for tensor in [*layer.parameters(), *layer.buffers()]:
        if tensor.is_floating_point() and tensor.ndim == 1:
            tensor.data.uniform_(0.5, 1.5)
    return layer


def linear() -> list[Entry]:
    rows = {"input": floats("batch 10")}
    sequences = {"input": floats("batch seq 10")}
    return [
        plain("linear", lambda: nn.Linear(10, 5), rows),
        plain("linear 3-d", lambda: nn.Linear(10, 5), sequences),
        plain("linear without bias", lambda: nn.Linear(10, 5, bias=False), sequences),
        plain("identity", nn.Identity, sequences),
        plain("mlp", lambda: nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 3)), sequences),
        plain("bilinear", lambda: nn.Bilinear(4, 6, 3), {"input1": floats("batch 4"), "input2": floats("batch 6")}),
        plain("flatten", lambda: nn.Sequential(nn.Flatten(), nn.Linear(24, 3)), {"input": floats("batch 4 6")}),
        plain("flatten front", lambda: nn.Flatten(0, 1), sequences),
        plain("unflatten", lambda: nn.Unflatten(2, (2, 5)), sequences),
        plain("unflatten a dim", lambda: nn.Unflatten(1, (3, -1)), {"input": floats("batch 3*n")}),
    ]


def convolutions() -> list[Entry]:
    flat = [
        ("conv1d", lambda: nn.Conv1d(4, 6, 3)),
        ("conv1d stride 2", lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1)),
        ("conv1d dilated", lambda: nn.Conv1d(4, 6, 3, dilation=3)),
        ("conv1d same", lambda: nn.Conv1d(4, 6, 4, padding="same")),
        ("conv1d circular", lambda: nn.Conv1d(4, 6, 3, padding=2, padding_mode="circular")),
        ("conv_transpose1d", lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)),
    ]
    images = [
        ("conv2d", lambda: nn.Conv2d(4, 6, 3)),
        ("conv2d stride 2", lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1)),
        ("conv2d depthwise", lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1)),
        ("conv2d dilated", lambda: nn.Conv2d(4, 6, 3, dilation=2)),
        ("conv2d same", lambda: nn.Conv2d(4, 6, (3, 4), padding="same", dilation=2)),
        ("conv2d valid", lambda: nn.Conv2d(4, 6, 5, padding="valid")),
        ("conv2d reflect", lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect")),
        ("conv2d replicate", lambda: nn.Conv2d(4, 6, 3, padding=2, padding_mode="replicate")),
        ("conv2d circular", lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular")),
        ("conv_transpose2d", lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)),
        ("conv_transpose2d groups", lambda: nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1, groups=2)),
        ("conv_transpose2d dilated", lambda: nn.ConvTranspose2d(4, 6, 3, dilation=2)),
    ]
    volumes = [
        ("conv3d", lambda: nn.Conv3d(4, 6, 3)),
        ("conv3d stride 2", lambda: nn.Conv3d(4, 6, 3, stride=2, padding=1)),
        ("conv_transpose3d", lambda: nn.ConvTranspose3d(4, 6, 3, stride=2)),
    ]
    return [
        *(plain(name, build, LINE) for name, build in flat),
        *(plain(name, build, IMAGE) for name, build in images),
        *(plain(name, build, VOLUME, **SMALL) for name, build in volumes),
    ]


def norms() -> list[Entry]:
    last = {"input": floats("batch seq 8")}
    return [
        plain("batch_norm1d", lambda: lively(nn.BatchNorm1d(4)), LINE),
        plain("batch_norm1d rows", lambda: lively(nn.BatchNorm1d(4)), {"input": floats("batch 4")}),
        plain("batch_norm2d", lambda: lively(nn.BatchNorm2d(4)), IMAGE),
        plain("batch_norm3d", lambda: lively(nn.BatchNorm3d(4)), VOLUME, **SMALL),
        plain("group_norm", lambda: lively(nn.GroupNorm(2, 4)), IMAGE),
        plain("instance_norm1d", lambda: nn.InstanceNorm1d(4), LINE),
        plain("instance_norm2d affine", lambda: lively(nn.InstanceNorm2d(4, affine=True)), IMAGE),
        plain("instance_norm2d tracked", lambda: lively(nn.InstanceNorm2d(4, track_running_stats=True)), IMAGE),
        plain("layer_norm", lambda: lively(nn.LayerNorm(8)), last),
        plain("layer_norm 2 axes", lambda: nn.LayerNorm((4, 8)), {"input": floats("batch 4 8")}),
        plain("rms_norm", lambda: lively(nn.RMSNorm(8)), {"x": floats("batch seq 8")}),
        plain("local_response_norm", lambda: nn.LocalResponseNorm(3), IMAGE),
    ]


def pools() -> list[Entry]:
    images = [
        ("max_pool2d", lambda: nn.MaxPool2d(2)),
        ("max_pool2d ceil", lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True)),
        ("max_pool2d dilated", lambda: nn.MaxPool2d(3, 2, dilation=2)),
        ("max_pool2d indices", lambda: nn.MaxPool2d(2, return_indices=True)),
        ("avg_pool2d", lambda: nn.AvgPool2d(3, 2, 1)),
        ("avg_pool2d ceil", lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)),
        ("lp_pool2d", lambda: nn.LPPool2d(2, 3)),
        ("adaptive_avg_pool2d 1", lambda: nn.AdaptiveAvgPool2d(1)),
        ("adaptive_avg_pool2d 3x5", lambda: nn.AdaptiveAvgPool2d((3, 5))),
        ("adaptive_avg_pool2d None", lambda: nn.AdaptiveAvgPool2d((None, 1))),
        ("adaptive_avg_pool2d None 3", lambda: nn.AdaptiveAvgPool2d((None, 3))),
        ("adaptive_max_pool2d 1", lambda: nn.AdaptiveMaxPool2d(1)),
        ("adaptive_max_pool2d 3x2", lambda: nn.AdaptiveMaxPool2d((3, 2))),
    ]
    lines = [
        ("max_pool1d", lambda: nn.MaxPool1d(3, 2)),
        ("avg_pool1d", lambda: nn.AvgPool1d(3, 2, 1)),
        ("adaptive_avg_pool1d 1", lambda: nn.AdaptiveAvgPool1d(1)),
        ("adaptive_avg_pool1d 4", lambda: nn.AdaptiveAvgPool1d(4)),
        ("adaptive_max_pool1d 3", lambda: nn.AdaptiveMaxPool1d(3)),
    ]
    volumes = [
        ("max_pool3d", lambda: nn.MaxPool3d(2)),
        ("avg_pool3d", lambda: nn.AvgPool3d(3, 2)),
        ("adaptive_avg_pool3d 2", lambda: nn.AdaptiveAvgPool3d(2)),
    ]
    unpool = lambda self, x: self.unpool(*self.pool(x))  # noqa: E731  reads as one line
    wide = lambda self, x: self.unpool(*self.pool(x), output_size=x.shape)  # noqa: E731
    both = lambda: {"pool": nn.MaxPool2d(2, return_indices=True), "unpool": nn.MaxUnpool2d(2)}  # noqa: E731
    image = {"x": floats("batch 4 height width")}
    return [
        *(plain(name, build, LINE) for name, build in lines),
        *(plain(name, build, IMAGE) for name, build in images),
        *(plain(name, build, VOLUME, **SMALL) for name, build in volumes),
        plain("max_unpool2d", lambda: model(unpool, **both()), image, **EVEN),
        plain("max_unpool2d output_size", lambda: model(wide, **both()), image),
    ]


def resizing() -> list[Entry]:
    images = [
        ("upsample nearest", lambda: nn.Upsample(scale_factor=2)),
        ("upsample nearest-exact", lambda: nn.Upsample(scale_factor=2, mode="nearest-exact")),
        ("upsample bilinear", lambda: nn.Upsample(scale_factor=2, mode="bilinear")),
        ("upsample bilinear corners", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)),
        ("upsample bilinear 1.5", lambda: nn.Upsample(scale_factor=1.5, mode="bilinear")),
        ("upsample bicubic", lambda: nn.Upsample(scale_factor=2, mode="bicubic")),
        ("upsample to a size", lambda: nn.Upsample(size=(24, 30), mode="bilinear")),
        ("pixel_shuffle", lambda: nn.PixelShuffle(2)),
        ("channel_shuffle", lambda: nn.ChannelShuffle(2)),
        ("reflection_pad2d", lambda: nn.ReflectionPad2d((1, 2, 3, 0))),
        ("replication_pad2d", lambda: nn.ReplicationPad2d(2)),
        ("constant_pad2d", lambda: nn.ConstantPad2d((1, 2, 0, 3), 1.5)),
        ("zero_pad2d cropping", lambda: nn.ZeroPad2d((-1, 2, -2, 0))),
        ("circular_pad2d", lambda: nn.CircularPad2d((1, 2, 3, 1))),
        ("unfold", lambda: nn.Unfold(3, padding=1, stride=2)),
    ]
    functions = [
        ("interpolate area", lambda self, x: F.interpolate(x, scale_factor=0.5, mode="area")),
        ("interpolate area size", lambda self, x: F.interpolate(x, size=(5, 7), mode="area")),
        ("interpolate like", lambda self, x: F.interpolate(x[:, :, ::2, ::2], size=x.shape[2:], mode="bilinear")),
        ("interpolate antialias", lambda self, x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)),
        ("interpolate bicubic antialias", lambda self, x: F.interpolate(x, (7, 6), mode="bicubic", antialias=True)),
        ("interpolate half", lambda self, x: F.interpolate(x, scale_factor=0.5, mode="bilinear")),
        ("pad to a multiple", lambda self, x: F.pad(x, (0, -x.shape[3] % 8, 0, -x.shape[2] % 8))),
        ("affine_grid", lambda self, x: F.grid_sample(x, _grid(x), align_corners=False)),
        ("fold of unfold", lambda self, x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1)),
        ("roll", lambda self, x: torch.roll(x, (1, -2), (2, 3))),
        ("flip", lambda self, x: x.flip(3)),
        ("chunk", lambda self, x: torch.cat(x.chunk(2, dim=2)[::-1], 2)),
    ]
    image = {"x": floats("batch 4 height width")}
    sampled = {"x": floats("batch 4 height width"), "grid": floats("batch n m 2")}
    return [
        *(plain(name, build, IMAGE) for name, build in images),
        *(plain(name, lambda f=function: model(f), image) for name, function in functions),
        plain("upsample linear", lambda: nn.Upsample(scale_factor=2, mode="linear"), LINE),
        plain("upsample trilinear", lambda: nn.Upsample(scale_factor=2, mode="trilinear"), VOLUME, **SMALL),
        plain("reflection_pad1d", lambda: nn.ReflectionPad1d(3), LINE),
        plain("replication_pad3d", lambda: nn.ReplicationPad3d(1), VOLUME, **SMALL),
        plain("pixel_unshuffle", lambda: nn.PixelUnshuffle(2), {"input": floats("batch 3 2*n 2*m")}),
        plain("fold", lambda: nn.Fold((6, 8), (2, 2), stride=2), {"input": floats("batch 12 12")}),
        plain("grid_sample", lambda: model(lambda self, x, grid: F.grid_sample(x, grid, align_corners=True)), sampled),
    ]


def _grid(x: torch.Tensor) -> torch.Tensor:
    turn = torch.tensor([[0.8, -0.3, 0.1], [0.3, 0.9, -0.2]]).expand(x.shape[0], 2, 3)
    return F.affine_grid(turn, list(x.shape), align_corners=False)


def activations() -> list[Entry]:
    kinds = [
        nn.ReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Softplus, nn.CELU, nn.LogSigmoid, nn.Softsign,
        nn.Tanhshrink, nn.Hardshrink, nn.RReLU, nn.SELU,
    ]  # fmt: skip
    rows = {"input": floats("batch seq 6")}
    return [
        *(plain(kind.__name__.lower(), kind, rows) for kind in kinds),
        plain("softmax", lambda: nn.Softmax(1), rows),
        plain("log_softmax", lambda: nn.LogSoftmax(-1), rows),
        plain("softmax2d", nn.Softmax2d, IMAGE),
        plain("glu", lambda: nn.GLU(-1), rows),
        plain("prelu", lambda: nn.PReLU(4), IMAGE),
        plain("gelu tanh", lambda: nn.GELU("tanh"), rows),
    ]


def distances() -> list[Entry]:
    pair = {"x1": floats("batch seq 6"), "x2": floats("batch seq 6")}
    sets = {"x": floats("batch n 6"), "y": floats("batch m 6")}
    logits = {"input": floats("batch 5"), "target": ids("batch", 5)}
    same = {"input": floats("batch seq"), "target": positive("batch seq")}
    return [
        plain("cosine_similarity", lambda: nn.CosineSimilarity(2), pair),
        plain("pairwise_distance", nn.PairwiseDistance, pair),
        plain("cdist", lambda: model(lambda self, x, y: torch.cdist(x, y)), sets),
        plain("cdist p=1", lambda: model(lambda self, x, y: torch.cdist(x, y, p=1.0)), sets),
        plain("cross_entropy", nn.CrossEntropyLoss, logits),
        plain("kl_div", lambda: nn.KLDivLoss(reduction="batchmean"), same),
        plain("mse_loss", nn.MSELoss, same),
        plain("l1_loss", nn.L1Loss, same),
        plain("smooth_l1_loss", nn.SmoothL1Loss, same),
        plain("einsum", lambda: model(lambda self, x, y: torch.einsum("bnd,bmd->bnm", x, y)), sets),
        plain("embedding", lambda: nn.Embedding(50, 8), {"input": ids("batch seq")}),
        plain("embedding padding", lambda: nn.Embedding(50, 8, padding_idx=0), {"input": ids("batch seq")}),
        plain("embedding_bag 2-d", lambda: nn.EmbeddingBag(50, 8, mode="mean"), {"input": ids("batch seq")}),
        plain("embedding_bag max", lambda: nn.EmbeddingBag(50, 8, mode="max"), {"input": ids("batch seq")}),
        own("embedding_bag offsets", lambda: nn.EmbeddingBag(50, 8, mode="sum"), _bags,
            {"input": "n", "offsets": "batch"}, n=(9, 1, 12, 4), batch=(3, 1, 5, 6)),
    ]  # fmt: skip


def _bags(n: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 50, (n,)), torch.arange(batch) * n // batch


def entries() -> list[Entry]:
    groups = (linear, convolutions, norms, pools, resizing, activations, distances)
    return under("nn", [entry for group in groups for entry in group()])

"""Healthy parts that the models are put together from: every size comes from a tensor."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Heads by hand, with a mask of what may be looked at."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e4)
        mixed = torch.softmax(scores, -1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """One layer of a transformer around any attention."""

    def __init__(self, attention: nn.Module, width: int = 8) -> None:
        super().__init__()
        self.attention = attention
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, *masks):
        x = x + self.attention(self.norms[0](x), *masks)
        return x + self.mlp(self.norms[1](x))


class Encoder(nn.Module):
    """Blocks one after the other; the last may be another one."""

    def __init__(self, last: nn.Module | None = None, width: int = 8) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(Attention(width), width), last or Block(Attention(width), width)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Words(nn.Module):
    """Embedded words with as many places as are needed."""

    def __init__(self, count: int = 20, width: int = 8, longest: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(count, width)
        self.places = nn.Embedding(longest, width)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))


class Tagger(nn.Module):
    """Words, any body, a class for each word."""

    def __init__(self, body: nn.Module, words: nn.Module | None = None, width: int = 8) -> None:
        super().__init__()
        self.words = words or Words(width=width)
        self.body = body
        self.head = nn.Linear(width, 5)

    def forward(self, ids):
        return self.head(self.body(self.words(ids)))


class Stage(nn.Module):
    """A convolution that may halve the picture."""

    def __init__(self, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 3, stride, 1)
        self.norm = nn.BatchNorm2d(outer)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Rise(nn.Module):
    """The coarse picture brought to the size of the fine one."""

    def forward(self, coarse, fine):
        return F.interpolate(coarse, size=fine.shape[-2:], mode="nearest")


class UNet(nn.Module):
    """Down, and up again past the skip connections."""

    def __init__(self, rise: nn.Module | None = None, neck: nn.Module | None = None) -> None:
        super().__init__()
        self.top, self.middle, self.low = Stage(3, 4), Stage(4, 8, 2), Stage(8, 8, 2)
        self.neck = neck or nn.Identity()
        self.rises = nn.ModuleList([rise or Rise(), Rise()])
        self.joins = nn.ModuleList([Stage(16, 4), Stage(8, 4)])
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, image):
        top = self.top(image)
        middle = self.middle(top)
        x = self.neck(self.low(middle))
        for rise, join, skip in zip(self.rises, self.joins, (middle, top), strict=True):
            x = join(torch.cat([rise(x, skip), skip], 1))
        return self.head(x)


class Pooled(nn.Module):
    """A text as one vector: any body, then a mean over its words."""

    def __init__(self, body: nn.Module, pool: nn.Module | None = None) -> None:
        super().__init__()
        self.words, self.body = Words(), body
        self.pool = pool or Mean()
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(self.pool(self.body(self.words(ids))))


class Mean(nn.Module):
    def forward(self, x):
        return x.sum(1) / x.shape[1]

"""Ten healthy networks in the user's own code, with masks, tables, skips, grids and frames."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.planted.parts import Attention, Block, Encoder, Stage, Tagger, UNet, Words


class ConvTagger(nn.Module):
    """Convolution, LSTM and attention over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Words()
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.lstm = nn.LSTM(8, 4, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, ids, mask):
        x = F.relu(self.conv(self.words(ids).transpose(1, 2))).transpose(1, 2)
        x, _ = self.lstm(x)
        x = x + self.attention(x, x, x, key_padding_mask=mask == 0, need_weights=False)[0]
        return self.head(x)


class Translator(nn.Module):
    """An encoder-decoder with a padding mask and a causal one."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = Words(), Words()
        self.encoder = Block(Attention())
        self.decoder = Block(Attention())
        self.cross = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 20)

    def forward(self, source, mask, target):
        memory = self.encoder(self.source(source), mask[:, None, None, :] > 0)
        length = target.shape[1]
        causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=target.device))
        x = self.decoder(self.target(target), causal)
        x = x + self.cross(x, memory, memory, key_padding_mask=mask == 0, need_weights=False)[0]
        return self.head(x)


class Tcn(nn.Module):
    """Dilated convolutions that see the past only."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(4, 4, 3, dilation=2**i) for i in range(3)])

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = x + torch.relu(conv(F.pad(x, (2 * 2**i, 0))))
        return x[:, :, -1]


class Graph(nn.Module):
    """Messages along edges, averaged at their targets."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 4)])

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        for layer in self.layers:
            heard = torch.zeros_like(x).index_add(0, target, x[source])
            count = x.new_zeros(x.shape[0]).index_add(0, target, torch.ones_like(target, dtype=x.dtype))
            x = torch.relu(layer(torch.cat([x, heard / count.clamp(min=1)[:, None]], -1)))
        return x


class Detector(nn.Module):
    """Boxes around the cells of a grid as large as the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(Stage(3, 8, 2), Stage(8, 8, 2))
        self.head = nn.Conv2d(8, 6, 1)

    def forward(self, image):
        found = self.head(self.body(image))
        batch, _, height, width = found.shape
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], -1).to(found.dtype).view(1, height * width, 2)
        found = found.flatten(2).transpose(1, 2)
        corner = (found[..., :2].sigmoid() + grid) * 4
        return torch.cat([corner, found[..., 2:4].exp(), found[..., 4:].sigmoid()], -1), found.reshape(batch, -1).amax(
            1
        )


class PaddedEncoder(nn.Module):
    """torch's own encoder with a padding mask, then a mean over what is not padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = Words()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids, mask):
        x = self.encoder(self.words(ids), src_key_padding_mask=mask == 0)
        kept = mask[..., None].to(x.dtype)
        return (x * kept).sum(1) / kept.sum(1)


class Pointer(nn.Module):
    """Each query points at a place of the source; what it points at is gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(4, 8, batch_first=True)
        self.query, self.key, self.score = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x, queries):
        memory, _ = self.encoder(x)
        both = torch.tanh(self.query(queries)[:, :, None] + self.key(memory)[:, None])
        scores = self.score(both).squeeze(-1)
        best = scores.argmax(-1)
        picked = memory.gather(1, best[..., None].expand(-1, -1, memory.shape[-1]))
        return scores.softmax(-1), picked


class Patches(nn.Module):
    """A vision transformer by hand: patches, a class token, as much of the table as there are patches."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 65, 8))
        self.encoder = Encoder()
        self.head = nn.Linear(8, 3)

    def forward(self, image):
        x = self.cut(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.head(self.encoder(x + self.places[:, : x.shape[1]])[:, 0])


class Frames(nn.Module):
    """Sound cut into frames, windowed, filtered, normalised over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))
        self.filters = nn.Linear(8, 4)

    def forward(self, wave):
        frames = wave.unfold(-1, 8, 4) * self.window
        x = torch.log1p(self.filters(frames).square())
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)


def tagger() -> nn.Module:
    return Tagger(Encoder())


def unet() -> nn.Module:
    return UNet()


class Constants(nn.Module):
    """Two heads, two groups, a stack of two, eight channels: numbers of the model's own, none a size of an input."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.groups = nn.Parameter(torch.randn(2, 4))

    def forward(self, x):
        heads = x.reshape(-1, 8).view(x.shape[0], -1, 2, 4)
        scaled = torch.stack([heads[:, :, i] * self.groups[i] for i in range(2)], 2)
        mean = (scaled * torch.ones(2, 4)).sum(2) / 2
        both = torch.stack([mix(x) for mix in self.mix])
        total = both.view(2, x.shape[0], -1, 8).sum(0) / 2
        return total + mean.repeat(1, 1, 2) + torch.arange(8), scaled.flatten(2).sum(-1) / 8

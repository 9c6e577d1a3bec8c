"""Small networks as people write them, with the habits that pin sizes: literal views, made states, tables, windows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)


class Flattened(nn.Module):
    """The batch is asked for."""

    def __init__(self):
        super().__init__()
        self.convolution, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8 * 8 * 8, 5)

    def rows(self, x):
        return x.view(x.size(0), -1)

    def forward(self, x):
        return self.head(self.rows(F.max_pool2d(F.relu(self.convolution(x)), 2)))


class LiteralView(Flattened):
    """The batch is a number in the source."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def rows(self, x):
        return x.view(self.batch, 8 * 8 * 8)


class TorchAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.attention, self.norm = (
            nn.Linear(12, 32),
            nn.MultiheadAttention(32, 4, batch_first=True),
            nn.LayerNorm(32),
        )

    def forward(self, x):
        h = self.first(x)
        return self.norm(h + self.attention(h, h, h, need_weights=False)[0])


class TorchEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


class NanoGpt(nn.Module):
    """Attention by hand, with a table of positions and a buffer for the mask."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("mask", torch.tril(torch.ones(64, 64)).bool())

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length))
        q, k, v = (part.view(batch, length, 4, 8).transpose(1, 2) for part in self.qkv(x).split(32, dim=2))
        scores = (q @ k.transpose(-2, -1) * 8**-0.5).masked_fill(~self.mask[:length, :length], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(batch, length, 32))


class LastStep(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.cells, self.head = kind(6, 12, batch_first=True), nn.Linear(12, 3)

    def forward(self, x):
        steps = self.cells(x)[0]
        return self.head(steps[:, -1]), steps


class GivenState(nn.Module):
    """Two layers, both directions, a state that is made for the batch."""

    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(6, 12, 2, batch_first=True, bidirectional=True), nn.Linear(24, 3)

    def forward(self, x):
        state = torch.zeros(4, x.shape[0], 12)
        return self.head(self.cells(x, (state, state + 0.5))[0])


class StateOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(6, 8, 2, batch_first=True)

    def forward(self, x, state):
        return self.cells(x, state.transpose(0, 1).contiguous())[0]


class Queries(nn.Module):
    """Learnt queries are expanded, distances come from arange."""

    def __init__(self):
        super().__init__()
        self.queries, self.weight = nn.Parameter(torch.randn(1, 4, 16)), nn.Linear(16, 16)

    def forward(self, x):
        batch, length, _ = x.shape
        queries = self.queries.expand(batch, -1, -1)
        distance = torch.arange(length).float().view(1, length, 1).expand(batch, length, 1)
        x = self.weight(x) * torch.exp(-distance / 10) + torch.ones(batch, length, 1)
        answers = F.softmax(queries @ x.transpose(1, 2), -1) @ x
        return torch.cat([queries, answers, x], 1)


class YoloHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 2, 1)
        self.heads = nn.ModuleList(nn.Conv2d(16, 21, 1) for _ in range(2))

    def forward(self, x):
        first = F.relu(self.first(x))
        found = [self.boxes(self.heads[0](first), 2.0), self.boxes(self.heads[1](F.relu(self.second(first))), 4.0)]
        return torch.cat(found, 1)

    def boxes(self, y, stride):
        batch, _, height, width = y.shape
        y = y.view(batch, 3, 7, height, width).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack((columns, rows), -1).view(1, 1, height, width, 2).float()
        places, extents = (y[..., :2] * 2 - 0.5 + grid) * stride, (y[..., 2:4] * 2) ** 2
        return torch.cat((places, extents, y[..., 4:]), -1).view(batch, -1, 7)


class SsdHeads(nn.Module):
    """Anchors are constants, classes and boxes come apart."""

    def __init__(self):
        super().__init__()
        self.body, self.classes, self.boxes = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 1)
        self.register_buffer("anchors", torch.rand(1, 128, 4))

    def forward(self, x):
        features = F.relu(self.body(x))
        scores = self.classes(features).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4).softmax(-1)
        boxes = self.boxes(features).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        return scores, boxes.exp() * self.anchors.expand(x.shape[0], -1, -1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep, self.out = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.Conv2d(24, 4, 3, padding=1),
        )

    def forward(self, x):
        skip = F.relu(self.down(x))
        grown = F.interpolate(F.relu(self.deep(skip)), size=skip.shape[-2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([skip, grown], 1))


class Windows(nn.Module):
    """As in Swin: the batch is merged with windows and split again."""

    def __init__(self):
        super().__init__()
        self.patches, self.qkv, self.head = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 48), nn.Linear(16, 10)
        self.bias = nn.Parameter(torch.randn(2, 4, 4))

    def forward(self, x):
        x = self.patches(x).permute(0, 2, 3, 1)
        batch, height, width, depth = x.shape
        x = x.view(batch, height // 2, 2, width // 2, 2, depth).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, depth)
        q, k, v = self.qkv(x).reshape(x.shape[0], 4, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        x = (F.softmax(q @ k.transpose(-2, -1) + self.bias, -1) @ v).transpose(1, 2).reshape(-1, 4, depth)
        x = x.view(batch, height // 2, width // 2, 2, 2, depth).permute(0, 1, 3, 2, 4, 5)
        return self.head(x.reshape(batch, height, width, depth).mean((1, 2)))


class MeanByLength(nn.Module):
    """A size as a value, not as a shape."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(8, 8)

    def forward(self, x):
        return self.weight(x).sum(1) / x.shape[1]


class Audio(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(1, 8, 5, 2, 2), nn.Conv1d(8, 8, 5, 2, 2)
        self.cells, self.head = nn.GRU(8, 10, batch_first=True), nn.Linear(10, 4)

    def forward(self, x):
        x = F.relu(self.second(F.relu(self.first(x.unsqueeze(1))))).transpose(1, 2)
        return F.log_softmax(self.head(self.cells(x)[0]), -1)


class Tcn(nn.Module):
    """Causal convolutions, padded on the left."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(8, 8, 3, dilation=2**level) for level in range(3))

    def forward(self, x):
        for level, layer in enumerate(self.layers):
            x = x + F.relu(layer(F.pad(x, (2 * 2**level, 0))))
        return x


class Mixer(nn.Module):
    """Tokens are mixed by a matrix: their number cannot vary, the batch can."""

    def __init__(self):
        super().__init__()
        self.patches, self.tokens, self.channels = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 16), nn.Linear(16, 16)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.channels(self.norm(x))).mean(1))


class Excited(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.squeeze, self.excite = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(16, 4), nn.Linear(4, 16)

    def forward(self, x):
        x = self.body(x)
        batch, depth, _, _ = x.shape
        weights = self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1).view(batch, depth)))).sigmoid()
        return (x * weights.view(batch, depth, 1, 1).expand_as(x)).mean((2, 3))


class GraphLayer(nn.Module):
    """Neighbours of each node by a dense adjacency, messages over all pairs."""

    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, nodes, adjacency):
        batch, count, depth = nodes.shape
        left = nodes.unsqueeze(2).expand(batch, count, count, depth)
        right = nodes.unsqueeze(1).expand(batch, count, count, depth)
        messages = F.relu(self.message(torch.cat([left, right], -1))) * adjacency.unsqueeze(-1)
        return self.update(torch.cat([nodes, messages.sum(2)], -1))


class ClassToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 40, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)

    def forward(self, x):
        x = torch.cat([self.token.repeat(x.shape[0], 1, 1), x], 1)
        return self.layer(x + self.places[:, : x.shape[1]])[:, 0]


class Pooler(nn.Module):
    """The mean over what a mask shows."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)

    def forward(self, ids, mask):
        shown = mask.unsqueeze(-1).expand(-1, -1, 16).float()
        return (self.words(ids) * shown).sum(1) / shown.sum(1).clamp(min=1e-9)


class Shuffled(nn.Module):
    """Channels are shuffled by two views, as in ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def forward(self, x):
        x = self.first(x)
        batch, depth, height, width = x.size()
        x = x.view(batch, 2, depth // 2, height, width).transpose(1, 2).contiguous().view(batch, -1, height, width)
        return self.second(x)


class SubPixel(nn.Module):
    """Super-resolution: depth becomes space."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 12, 3, padding=1))

    def forward(self, x):
        return F.pixel_shuffle(self.body(x), 2)


class Rotary(nn.Module):
    """A causal layer with rotary positions."""

    def __init__(self):
        super().__init__()
        self.words, self.qkv = nn.Embedding(50, 32), nn.Linear(32, 96)
        self.register_buffer("rates", 1.0 / 100 ** (torch.arange(0, 8, 2).float() / 8))

    def turn(self, x, angles):
        first, second = x[..., :4], x[..., 4:]
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1
        )

    def forward(self, ids):
        batch, length = ids.shape
        angles = torch.outer(torch.arange(length).float(), self.rates)[None, None]
        q, k, v = self.qkv(self.words(ids)).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mask = torch.full((length, length), float("-inf")).triu(1)
        weights = (self.turn(q, angles) @ self.turn(k, angles).transpose(-2, -1) / 8**0.5 + mask).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(batch, length, 32)

"""Subjects made of layers: rows, padding masks, attention and images."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .drawing import Drawing
from .subjects import Subject, linear, normal, ragged, seeded

# ---- layers over rows


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 4)
        self.score = nn.Linear(16, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.norm(torch.relu(self.first(x)))
        return self.head(hidden), self.score(hidden).squeeze(-1)


MLP = Subject(
    name="mlp",
    module=seeded(Mlp),
    inputs=lambda batch: (normal(batch, 8),),
    dims={"x": "batch 8"},
    sizes={"batch": "1..64"},
    traced={"batch": 3},
    graph=Drawing(
        {"x": "float32[batch, 8]"},
        {"logits": "float32[batch, 4]", "score": "float32[batch]"},
        """
        hidden = Gemm<transB=1>(x, first_weight, first_bias)
        active = Relu(hidden)
        normed = LayerNormalization<axis=-1, epsilon=0.00001>(active, norm_weight, norm_bias)
        logits = Gemm<transB=1>(normed, head_weight, head_bias)
        column = Gemm<transB=1>(normed, score_weight, score_bias)
        score = Squeeze(column, {1,})
        """,
    ),
)


# ---- padding masks


class MaskedMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        count = mask.sum(1, keepdim=True).clamp(min=1)
        return self.out((x * mask.unsqueeze(-1)).sum(1) / count)


MASKED_MEAN = Subject(
    name="masked mean",
    module=seeded(MaskedMean),
    inputs=lambda batch, seq: (normal(batch, seq, 8), ragged(batch, seq).float()),
    dims={"x": "batch seq 8", "mask": "batch seq"},
    sizes={"batch": "1..8", "seq": "1..24"},
    traced={"batch": 3, "seq": 12},
    graph=Drawing(
        {"x": "float32[batch, seq, 8]", "mask": "float32[batch, seq]"},
        {"y": "float32[batch, 4]"},
        """
        kept = Identity(mask)
        column = Unsqueeze(kept, {2,})
        masked = Mul(x, column)
        total = ReduceSum<keepdims=0>(masked, {1,})
        number = ReduceSum<keepdims=1>(kept, {1,})
        count = Max(number, {1.0})
        mean = Div(total, count)
        y = Gemm<transB=1>(mean, out_weight, out_bias)
        """,
    ),
)


class MeanOfKept(nn.Module):
    """The mask of the example is full, so nothing in the example shows whether the mask is used."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(x.dtype)
        total = x.masked_fill(~mask.unsqueeze(-1), 0).sum(1)
        return self.out(total / weights.sum(1, keepdim=True).clamp(min=1))


def _full_when_traced(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    mask = ragged(batch, seq) | torch.tensor((batch, seq) == (2, 7))
    return normal(batch, seq, 8), mask


FULL_MASK = Subject(
    name="full mask",
    module=seeded(MeanOfKept),
    inputs=_full_when_traced,
    dims={"x": "batch seq 8", "mask": "batch seq"},
    sizes={"batch": "1..6", "seq": "1..20"},
    traced={"batch": 2, "seq": 7},
    graph=Drawing(
        {"x": "float32[batch, seq, 8]", "mask": "bool[batch, seq]"},
        {"y": "float32[batch, 4]"},
        """
        kept = Identity(mask)
        column = Unsqueeze(kept, {2,})
        masked = Where(column, x, {0.0})
        total = ReduceSum<keepdims=0>(masked, {1,})
        weights = Cast<to=1>(kept)
        number = ReduceSum<keepdims=1>(weights, {1,})
        count = Max(number, {1.0})
        mean = Div(total, count)
        y = Gemm<transB=1>(mean, out_weight, out_bias)
        """,
    ),
)


# ---- attention


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, seq, _ = x.shape
        query, key, value = (f(x).view(batch, seq, 2, 4).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = (query @ key.transpose(-1, -2)) / 2
        scores = scores.masked_fill(~mask[:, None, None, :], -1e9)
        mixed = scores.softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, seq, 8))


ATTENTION = Subject(
    name="attention",
    module=seeded(Attention),
    inputs=lambda batch, seq: (normal(batch, seq, 8), ragged(batch, seq)),
    dims={"x": "batch seq 8", "mask": "batch seq"},
    sizes={"batch": "1..8", "seq": "1..24"},
    traced={"batch": 2, "seq": 9},
    graph=Drawing(
        {"x": "float32[batch, seq, 8]", "mask": "bool[batch, seq]"},
        {"y": "float32[batch, seq, 8]"},
        f"""
        batch = Shape<start=0, end=1>(x)
        seq = Shape<start=1, end=2>(x)
        split = Concat<axis=0>(batch, seq, {{2, 4}})
        {linear("q", "x", "query")}
        {linear("k", "x", "key")}
        {linear("v", "x", "value")}
        q_split = Reshape(q, split)
        k_split = Reshape(k, split)
        v_split = Reshape(v, split)
        q_heads = Transpose<perm=[0, 2, 1, 3]>(q_split)
        k_heads = Transpose<perm=[0, 2, 3, 1]>(k_split)
        v_heads = Transpose<perm=[0, 2, 1, 3]>(v_split)
        products = MatMul(q_heads, k_heads)
        scores = Div(products, {{2.0}})
        kept = Unsqueeze(mask, {{1, 2}})
        masked = Where(kept, scores, {{-1000000000.0}})
        attention = Softmax<axis=-1>(masked)
        mixed = MatMul(attention, v_heads)
        rows = Transpose<perm=[0, 2, 1, 3]>(mixed)
        joint = Concat<axis=0>(batch, seq, {{8,}})
        joined = Reshape(rows, joint)
        {linear("y", "joined", "out")}
        """,
    ),
)


class CachedStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor, past_key: Tensor, past_value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        past, seq = past_key.shape[1], x.shape[1]
        key = torch.cat([past_key, self.key(x)], 1)
        value = torch.cat([past_value, self.value(x)], 1)
        causal = torch.arange(past + seq) <= past + torch.arange(seq)[:, None]
        scores = self.query(x) @ key.transpose(1, 2) / math.sqrt(8)
        scores = scores.masked_fill(~(causal & mask[:, None, :]), -1e9)
        return scores.softmax(-1) @ value, key, value


def _step_inputs(batch: int, past: int, seq: int) -> tuple[Tensor, ...]:
    mask = ragged(batch, past + seq).flip(1)
    return normal(batch, seq, 8), normal(batch, past, 8), normal(batch, past, 8) * 0.5, mask


CACHED_STEP = Subject(
    name="cached step",
    module=seeded(CachedStep),
    inputs=_step_inputs,
    dims={"x": "batch seq 8", "past_key": "batch past 8", "past_value": "batch past 8", "mask": "batch past+seq"},
    sizes={"batch": "1..4", "past": "1..24", "seq": "1..8"},
    traced={"batch": 2, "past": 7, "seq": 3},
    graph=Drawing(
        {
            "x": "float32[batch, seq, 8]",
            "past_key": "float32[batch, past, 8]",
            "past_value": "float32[batch, past, 8]",
            "mask": "bool[batch, past+seq]",
        },
        {
            "y": "float32[batch, seq, 8]",
            "present_key": "float32[batch, past+seq, 8]",
            "present_value": "float32[batch, past+seq, 8]",
        },
        f"""
        seq_axis = Shape<start=1, end=2>(x)
        past_axis = Shape<start=1, end=2>(past_key)
        seq = Squeeze(seq_axis)
        past = Squeeze(past_axis)
        both = Add(past, seq)
        {linear("q", "x", "query")}
        {linear("k", "x", "key")}
        {linear("v", "x", "value")}
        present_key = Concat<axis=1>(past_key, k)
        present_value = Concat<axis=1>(past_value, v)
        columns = Range({{0}}, both, {{1}})
        steps = Range({{0}}, seq, {{1}})
        places = Add(steps, past)
        rows = Unsqueeze(places, {{1,}})
        causal = LessOrEqual(columns, rows)
        padding = Unsqueeze(mask, {{1,}})
        kept = And(causal, padding)
        turned = Transpose<perm=[0, 2, 1]>(present_key)
        products = MatMul(q, turned)
        scores = Div(products, {{{math.sqrt(8)!r}}})
        masked = Where(kept, scores, {{-1000000000.0}})
        attention = Softmax<axis=-1>(masked)
        y = MatMul(attention, present_value)
        """,
    ),
)


# ---- images


class StridedConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.bn.running_mean.copy_(torch.tensor([0.1, -0.2, 0.3, 0.0]))
        self.bn.running_var.copy_(torch.tensor([0.05, 0.3, 0.1, 0.02]))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        features = self.bn(self.conv(image))
        return features, nn.functional.max_pool2d(features, 2)


STRIDED_CONV = Subject(
    name="strided conv",
    module=seeded(StridedConv),
    inputs=lambda batch, height, width: (normal(batch, 3, height, width),),
    dims={"image": "batch 3 height width"},
    sizes={"batch": "1..3", "height": "3..40", "width": "3..40"},
    traced={"batch": 2, "height": 8, "width": 12},
    graph=Drawing(
        {"image": "float32[batch, 3, height, width]"},
        {
            "features": "float32[batch, 4, (height+1)//2, (width+1)//2]",
            "pooled": "float32[batch, 4, (height+1)//4, (width+1)//4]",
        },
        """
        edges = Conv<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(image, conv_weight, conv_bias)
        features = BatchNormalization<epsilon=0.00001>(edges, bn_weight, bn_bias, bn_running_mean, bn_running_var)
        pooled = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(features)
        """,
    ),
)

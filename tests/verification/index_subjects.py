"""Subjects whose sizes become values or indices: tables, joints, scatters, steps, rankings and filters."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from .drawing import Drawing, Weights, parameters
from .subjects import Subject, integers, linear, normal, seeded


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.table = nn.Parameter(torch.randn(32, 8))
        self.out = nn.Linear(8, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(torch.tanh(self.words(tokens) + self.table[: tokens.shape[1]]))


POSITIONS = Subject(
    name="positions",
    module=seeded(Positions),
    inputs=lambda batch, seq: (integers(20, batch, seq),),
    dims={"tokens": "batch seq"},
    sizes={"batch": "1..6", "seq": "1..32"},
    traced={"batch": 3, "seq": 10},
    graph=Drawing(
        {"tokens": "int64[batch, seq]"},
        {"y": "float32[batch, seq, 4]"},
        f"""
        words = Gather(words_weight, tokens)
        seq = Shape<start=1, end=2>(tokens)
        rows = Slice(table, {{0,}}, seq, {{0,}})
        placed = Add(words, rows)
        squashed = Tanh(placed)
        {linear("y", "squashed", "out")}
        """,
    ),
)


class Joint(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, question: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([question, context], 1)
        y = self.out(both.cumsum(1))
        return y, y[:, question.shape[1] :]


JOINT = Subject(
    name="joint",
    module=seeded(Joint),
    inputs=lambda batch, n, m: (normal(batch, n, 8), normal(batch, m, 8) + 0.5),
    dims={"question": "batch n 8", "context": "batch m 8"},
    sizes={"batch": "1..3", "n": "1..40", "m": "1..40"},
    traced={"batch": 2, "n": 5, "m": 9},
    graph=Drawing(
        {"question": "float32[batch, n, 8]", "context": "float32[batch, m, 8]"},
        {"y": "float32[batch, n+m, 4]", "tail": "float32[batch, m, 4]"},
        f"""
        n = Shape<start=1, end=2>(question)
        m = Shape<start=1, end=2>(context)
        both = Concat<axis=1>(question, context)
        sums = CumSum(both, {{1}})
        {linear("y", "sums", "out")}
        first = Identity(n)
        tail = Slice(y, first, {{1000000,}}, {{1,}})
        """,
    ),
)


class Scatter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(8, 4)
        self.own = nn.Linear(8, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        zeros = x.new_zeros(x.shape[0], 4)
        total = zeros.index_add(0, target, self.message(x)[source])
        degree = zeros[:, :1].index_add(0, target, x.new_ones(edges.shape[1], 1))
        return torch.tanh(self.own(x) + total / degree.clamp(min=1))


SCATTER = Subject(
    name="scatter",
    module=seeded(Scatter),
    inputs=lambda nodes, edges: (normal(nodes, 8), integers(nodes, 2, edges)),
    dims={"x": "nodes 8", "edges": "2 edges"},
    sizes={"nodes": "1..40", "edges": "1..60"},
    traced={"nodes": 7, "edges": 11},
    graph=Drawing(
        {"x": "float32[nodes, 8]", "edges": "int64[2, edges]"},
        {"y": "float32[nodes, 4]"},
        """
        nodes = Shape<start=0, end=1>(x)
        source = Gather<axis=0>(edges, {0})
        target = Gather<axis=0>(edges, {1})
        messages = Gemm<transB=1>(x, message_weight, message_bias)
        sent = Gather(messages, source)
        places = Unsqueeze(target, {1,})
        shape = Concat<axis=0>(nodes, {4,})
        zeros = Expand({0.0}, shape)
        total = ScatterND<reduction="add">(zeros, places, sent)
        ones_shape = Shape(sent)
        ones = Expand({1.0}, ones_shape)
        degree = ScatterND<reduction="add">(zeros, places, ones)
        divisor = Max(degree, {1.0})
        mean = Div(total, divisor)
        own = Gemm<transB=1>(x, own_weight, own_bias)
        joined = Add(own, mean)
        y = Tanh(joined)
        """,
    ),
)


class SizesAsValues(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, seq, _ = x.shape
        ramp = torch.arange(seq, dtype=x.dtype) / seq
        return x.sum(1) / seq, x * ramp[:, None], torch.tensor([batch, seq, -(-seq // 4)])


SIZES_AS_VALUES = Subject(
    name="sizes as values",
    module=SizesAsValues,
    inputs=lambda batch, seq: (normal(batch, seq, 8),),
    dims={"x": "batch seq 8"},
    sizes={"batch": "1..8", "seq": "1..24"},
    traced={"batch": 3, "seq": 12},
    graph=Drawing(
        {"x": "float32[batch, seq, 8]"},
        {"mean": "float32[batch, 8]", "weighted": "float32[batch, seq, 8]", "numbers": "int64[3]"},
        """
        batch = Shape<start=0, end=1>(x)
        seq = Shape<start=1, end=2>(x)
        length = Cast<to=1>(seq)
        divisor = Identity(length)
        total = ReduceSum<keepdims=0>(x, {1,})
        mean = Div(total, divisor)
        limit = Squeeze(seq)
        steps = Range({0}, limit, {1})
        float_steps = Cast<to=1>(steps)
        ramp = Div(float_steps, length)
        column = Unsqueeze(ramp, {1,})
        weighted = Mul(x, column)
        raised = Add(seq, {3,})
        quarter = Div(raised, {4,})
        numbers = Concat<axis=0>(batch, seq, quarter)
        """,
    ),
)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.start = nn.Parameter(torch.randn(1, 1, 5))
        self.memory = nn.Parameter(torch.randn(1, 1, 5))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch = x.shape[0]
        state = self.start.expand(1, batch, 5).contiguous(), self.memory.expand(1, batch, 5).contiguous()
        y, _ = self.lstm(x, state)
        return y, y[:, -1]


def lstm_weights(module: nn.Module) -> Weights:
    """ONNX orders the gates input, output, forget, cell; torch input, forget, cell, output."""
    found = parameters(module)

    def reorder(name: str) -> np.ndarray:
        i, f, c, o = np.split(found[name], 4)
        return np.concatenate([i, o, f, c])[None]

    biases = np.concatenate([reorder("lstm_bias_ih_l0"), reorder("lstm_bias_hh_l0")], axis=1)
    return {**found, "w": reorder("lstm_weight_ih_l0"), "r": reorder("lstm_weight_hh_l0"), "b": biases}


RECURRENT = Subject(
    name="recurrent",
    module=seeded(Recurrent),
    inputs=lambda batch, seq: (normal(batch, seq, 6),),
    dims={"x": "batch seq 6"},
    sizes={"batch": "1..8", "seq": "1..24"},
    traced={"batch": 3, "seq": 9},
    graph=Drawing(
        {"x": "float32[batch, seq, 6]"},
        {"y": "float32[batch, seq, 5]", "last": "float32[batch, 5]"},
        """
        batch = Shape<start=0, end=1>(x)
        steps = Transpose<perm=[1, 0, 2]>(x)
        state = Concat<axis=0>({1,}, batch, {5,})
        hidden = Expand(start, state)
        cell = Expand(memory, state)
        run = LSTM<hidden_size=5>(steps, w, r, b, , hidden, cell)
        flat = Squeeze(run, {1,})
        y = Transpose<perm=[1, 0, 2]>(flat)
        last = Gather<axis=1>(y, {-1})
        """,
        weights=lstm_weights,
    ),
)


class Ranking(nn.Module):
    def forward(self, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, indices = scores.topk(min(5, scores.shape[1]))
        return values, indices, scores.argmax(1)


RANKING = Subject(
    name="ranking",
    module=Ranking,
    inputs=lambda n: (normal(2, n),),
    dims={"scores": "2 n"},
    sizes={"n": "1..200"},
    traced={"n": 9},
    graph=Drawing(
        {"scores": "float32[2, n]"},
        {"values": "float32[2, min(5,n)]", "indices": "int64[2, min(5,n)]", "best": "int64[2]"},
        """
        n = Shape<start=1, end=2>(scores)
        k = Min(n, {5,})
        values, indices = TopK<axis=1>(scores, k)
        best = ArgMax<axis=1, keepdims=0>(scores)
        """,
    ),
)


class Filter(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        kept = scores > 0
        return boxes[kept], scores[kept]


FILTER = Subject(
    name="filter",
    module=Filter,
    inputs=lambda n: (normal(n, 4), normal(n)),
    dims={"boxes": "n 4", "scores": "n"},
    sizes={"n": "1..100"},
    traced={"n": 10},
    graph=Drawing(
        {"boxes": "float32[n, 4]", "scores": "float32[n]"},
        {"kept_boxes": "float32[kept, 4]", "kept_scores": "float32[kept]"},
        """
        candidates = Identity(scores)
        high = Greater(candidates, {0.0})
        found = NonZero(high)
        rows = Squeeze(found, {0,})
        kept_boxes = Gather<axis=0>(boxes, rows)
        kept_scores = Gather<axis=0>(scores, rows)
        """,
    ),
)

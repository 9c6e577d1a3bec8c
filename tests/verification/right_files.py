"""Files that are right at every size: the drawings themselves, and other ways to write the same."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from torch import nn

from .drawing import Drawing, Weights, choose, parameters
from .index_subjects import FILTER, JOINT, POSITIONS, RANKING, RECURRENT, SCATTER, SIZES_AS_VALUES
from .layer_subjects import ATTENTION, CACHED_STEP, FULL_MASK, MASKED_MEAN, MLP, STRIDED_CONV
from .subjects import FileCase, Subject, case


def _drawn(subject: Subject, name: str, **changes: object) -> FileCase:
    """The subject's drawing with other fields: opset, weights."""
    assert isinstance(subject.graph, Drawing)
    drawing = replace(subject.graph, **changes)
    return FileCase(f"{subject.name}: {name}", subject, lambda: drawing(subject.module()))


def _renamed(subject: Subject, name: str) -> FileCase:
    """Values between the nodes get other names."""
    assert isinstance(subject.graph, Drawing)
    nodes = subject.graph.nodes
    inner = set(re.findall(r"(\w+) = ", nodes)) - {*subject.graph.outputs}
    pattern = re.compile(rf"\b({'|'.join(sorted(inner, key=len, reverse=True))})\b(?!=)")
    return _drawn(subject, name, nodes=pattern.sub(r"t_\1", nodes))


def _folded(module: nn.Module) -> Weights:
    """The norm after the convolution as part of its weights."""
    found = parameters(module)
    factor = found["bn_weight"] / np.sqrt(found["bn_running_var"] + np.float32(1e-5))
    bias = (found["conv_bias"] - found["bn_running_mean"]) * factor + found["bn_bias"]
    return {"conv_weight": found["conv_weight"] * factor[:, None, None, None], "conv_bias": bias}


_AS_DRAWN = tuple(
    case(subject, "as drawn")
    for subject in (
        *(MLP, MASKED_MEAN, FULL_MASK, ATTENTION, CACHED_STEP, STRIDED_CONV),
        *(POSITIONS, JOINT, SCATTER, SIZES_AS_VALUES, RECURRENT, RANKING, FILTER),
    )
)

_OPSETS = tuple(
    _drawn(subject, f"opset {opset}", opset=opset)
    for subject, opset in ((MLP, 17), (ATTENTION, 17), (STRIDED_CONV, 21), (SCATTER, 18), (RECURRENT, 21), (FILTER, 23))
)

_DECLARED_OTHERWISE = (
    case(JOINT, "sum with spaces", y="float32[batch, n + m, 4]"),
    case(JOINT, "sum the other way round", y="float32[batch, m+n, 4]"),
    case(STRIDED_CONV, "axes without names", features="float32[?, 4, ?, ?]", pooled="float32[batch, 4, ?, ?]"),
    case(STRIDED_CONV, "the same half", features="float32[batch, 4, (height-1)//2+1, width - width//2]"),
    case(RANKING, "a name of its own", values="float32[2, k]", indices="int64[2, k]"),
    case(MASKED_MEAN, "other names for the dims", x="float32[N, T, 8]", mask="float32[N, T]", y="float32[N, 4]"),
    case(MLP, "no dims declared", x="float32[?, 8]", logits="float32[?, 4]", score="float32[?]"),
)

_WRITTEN_OTHERWISE = (
    case(
        MLP,
        "product and sum",
        "",
        {
            "logits": "turned = Transpose<perm=[1, 0]>(head_weight)\n"
            "product = MatMul(normed, turned)\nlogits = Add(product, head_bias)"
        },
    ),
    case(
        MLP,
        "norm in pieces",
        "",
        {
            "normed": "centre = ReduceMean<keepdims=1>(active, {-1,})\ncentred = Sub(active, centre)\n"
            "squares = Mul(centred, centred)\nvariance = ReduceMean<keepdims=1>(squares, {-1,})\n"
            "raised = Add(variance, {0.00001})\ndeviation = Sqrt(raised)\nunit = Div(centred, deviation)\n"
            "scaled = Mul(unit, norm_weight)\nnormed = Add(scaled, norm_bias)"
        },
    ),
    _drawn(MLP, "unused weights", extra={"forgotten": np.arange(12, dtype=np.float32), "count": np.array([3, 17, 64])}),
    case(
        MASKED_MEAN,
        "chosen instead of multiplied",
        "",
        {"masked": "is_kept = Greater(column, {0.5})\nmasked = Where(is_kept, x, {0.0})"},
    ),
    case(
        MASKED_MEAN, "multiplied by the reciprocal", "", {"mean": "share = Reciprocal(count)\nmean = Mul(total, share)"}
    ),
    case(
        MASKED_MEAN,
        "summed by a product",
        "",
        {"total": "row = Unsqueeze(kept, {1,})\nsums = MatMul(row, x)\ntotal = Squeeze(sums, {1,})"},
    ),
    case(MASKED_MEAN, "summed backwards", "", {"masked": "masked = Slice(right, {-1,}, {-1000000,}, {1,}, {-1,})"}),
    case(FULL_MASK, "mask as numbers", "", {"masked": "numbers = Cast<to=1>(column)\nmasked = Mul(x, numbers)"}),
    case(
        ATTENTION,
        "sizes copied by Reshape",
        "",
        {"split": "split = Identity({0, 0, 2, 4})", "joint": "joint = Identity({0, 0, 8})"},
    ),
    case(
        ATTENTION,
        "queries scaled",
        "",
        {"q_heads": "q_heads = Mul(right, {0.5})", "scores": "scores = Identity(products)"},
    ),
    case(
        ATTENTION,
        "softmax in pieces",
        "",
        {
            "attention": "top = ReduceMax<keepdims=1>(masked, {-1,})\nlowered = Sub(masked, top)\n"
            "powers = Exp(lowered)\n"
            "mass = ReduceSum<keepdims=1>(powers, {-1,})\nattention = Div(powers, mass)"
        },
    ),
    _renamed(ATTENTION, "other names inside"),
    case(
        CACHED_STEP,
        "single steps need no causal mask",
        "",
        {"kept": "shape = Shape(right)\n" + choose("kept", "Equal(seq, {1})", "Expand(padding, shape)", dtype="bool")},
    ),
    case(
        CACHED_STEP,
        "causal mask by counting back",
        "",
        {"causal": "ahead = Sub(columns, rows)\ncausal = Less(ahead, {1})"},
    ),
    case(
        STRIDED_CONV,
        "padding left to the operator",
        "",
        {
            "edges": 'edges = Conv<kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER">'
            "(image, conv_weight, conv_bias)"
        },
    ),
    _drawn(
        STRIDED_CONV,
        "norm folded",
        weights=_folded,
        nodes="""
        features = Conv<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(image, conv_weight, conv_bias)
        pooled = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(features)
    """,
    ),
    case(
        POSITIONS,
        "rows gathered",
        "",
        {"rows": "limit = Squeeze(seq)\nplaces = Range({0}, limit, {1})\nrows = Gather(table, places)"},
    ),
    case(JOINT, "tail from the end", "", {"first": "first = Neg(m)"}),
    case(
        SCATTER,
        "rows picked by a product",
        "",
        {
            "total": "depth = Squeeze(nodes)\n"
            "chosen = OneHot<axis=0>(target, depth, {0.0, 1.0})\ntotal = MatMul(chosen, sent)"
        },
    ),
    case(SIZES_AS_VALUES, "mean as one operator", "", {"mean": "mean = ReduceMean<keepdims=0>(x, {1,})"}),
    case(
        SIZES_AS_VALUES,
        "quarter by another formula",
        "",
        {"quarter": "shifted = Add(seq, {-1,})\ndown = Div(shifted, {4,})\nquarter = Add(down, {1,})"},
    ),
    case(
        RECURRENT,
        "state tiled",
        "",
        {"hidden": "times = Concat<axis=0>({1,}, batch, {1,})\nhidden = Tile(start, times)"},
    ),
    case(RANKING, "extra copies", "", {"values": "copied = Identity(right)\nvalues = Identity(copied)"}),
    case(
        RANKING,
        "best from the ranking",
        "",
        {"best": "one, first = TopK<axis=1>(scores, {1,})\nbest = Squeeze(first, {1,})"},
    ),
    case(FILTER, "compressed", "", {"kept_boxes": "kept_boxes = Compress<axis=0>(boxes, high)"}),
)

RIGHT: tuple[FileCase, ...] = (*_AS_DRAWN, *_OPSETS, *_DECLARED_OTHERWISE, *_WRITTEN_OTHERWISE)

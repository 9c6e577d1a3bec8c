"""Files that are right at the traced size and wrong elsewhere, for the subjects made of layers."""

from __future__ import annotations

from .drawing import choose, first_row_from, late, places, size
from .layer_subjects import ATTENTION, CACHED_STEP, FULL_MASK, MASKED_MEAN, MLP, STRIDED_CONV
from .subjects import FileCase, case

_MLP = (
    case(
        MLP,
        "hidden reshaped to three rows",
        "batch != 3: Reshape to [3, 16]",
        {"hidden": "hidden = Reshape(right, {3, 16})"},
    ),
    case(
        MLP,
        "row 0 for late rows",
        "batch > 3: later rows get the result of row 0",
        {"normed": first_row_from("normed", "x", 3)},
    ),
    case(
        MLP,
        "half precision for larger batches",
        "slightly, batch > 3: the hidden layer passes through float16",
        {
            "normed": size("batch", "x", 0)
            + "half = Cast<to=10>(right)\nrounded = Cast<to=1>(half)\n"
            + choose("normed", "Greater(batch, {3,})", "Identity(rounded)")
        },
    ),
    case(
        MLP,
        "another epsilon",
        "slightly, everywhere: the norm's epsilon is 1e-3 instead of 1e-5",
        {"normed": "normed = LayerNormalization<axis=-1, epsilon=0.001>(active, norm_weight, norm_bias)"},
    ),
    case(
        MLP,
        "bare squeeze",
        "batch == 1: Squeeze without axes also removes the batch",
        {"score": "score = Squeeze(column)"},
    ),
    case(
        MLP,
        "no activation at the maximum",
        "batch == 64: Relu is skipped",
        {"active": size("batch", "x", 0) + choose("active", "Equal(batch, {64,})", "Identity(hidden)")},
    ),
    case(MLP, "output declared with three rows", "batch != 3: `logits` is declared 3 4", logits="float32[3, 4]"),
    case(MLP, "input declared with three rows", "batch != 3: `x` is declared 3 8", x="float32[3, 8]"),
)

_MASKED_MEAN = (
    case(
        MASKED_MEAN,
        "mask dropped late",
        "seq > 12: later positions count whatever the mask says",
        {"kept": late("mask", 1, 12) + "kept = Where(late, {1.0}, right)"},
    ),
    case(
        MASKED_MEAN,
        "mask of the whole batch",
        "batch > 3: a position counts if any row has it",
        {
            "kept": "shape = Shape(mask)\n"
            + size("batch", "mask", 0)
            + "anyone = ReduceMax<keepdims=1>(right, {0,})\n"
            + choose("kept", "Greater(batch, {3,})", "Expand(anyone, shape)")
        },
    ),
    case(
        MASKED_MEAN,
        "no mask for long sequences",
        "seq > 20: the padding is added too",
        {"masked": size("seq", "mask", 1) + choose("masked", "Greater(seq, {20,})", "Identity(x)", "Mul(x, column)")},
    ),
    case(
        MASKED_MEAN,
        "count clamped",
        "seq > 12: rows of more than 12 are divided by 12",
        {"number": "number = Min(right, {12.0})"},
    ),
    case(
        MASKED_MEAN,
        "count of row 0",
        "batch > 3: later rows are divided by the count of row 0",
        {"count": first_row_from("count", "x", 3)},
    ),
    case(
        MASKED_MEAN,
        "odd lengths lose a position",
        "seq odd: the last position is left out",
        {
            "masked": size("seq", "mask", 1)
            + "pairs = Div(seq, {2,})\neven = Mul(pairs, {2,})\nmasked = Slice(right, {0,}, even, {1,})"
        },
    ),
    case(
        MASKED_MEAN,
        "axes of the mask swapped",
        "batch != seq: `mask` is declared seq batch",
        mask="float32[seq, batch]",
    ),
)

_FULL_MASK = (
    case(FULL_MASK, "mask not applied", "ragged mask: the padding is added too", {"masked": "masked = Identity(x)"}),
    case(
        FULL_MASK,
        "divided by the length",
        "ragged mask: the divisor is seq",
        {"number": size("seq", "x", 1) + "number = Cast<to=1>(seq)"},
    ),
    case(
        FULL_MASK,
        "mask of the whole batch",
        "ragged mask: a position counts if any row has it",
        {
            "kept": "shape = Shape(mask)\nas_numbers = Cast<to=1>(right)\n"
            "anyone = ReduceMax<keepdims=1>(as_numbers, {0,})\nsomeone = Cast<to=9>(anyone)\n"
            "kept = Expand(someone, shape)"
        },
    ),
)

_ATTENTION = (
    case(
        ATTENTION,
        "length baked into the split",
        "seq != 9: Reshape to [-1, 9, 2, 4]",
        {"split": "split = Identity({-1, 9, 2, 4})"},
    ),
    case(
        ATTENTION,
        "batch baked into the joint",
        "batch != 2: Reshape to [2, -1, 8]",
        {"joint": "joint = Identity({2, -1, 8})"},
    ),
    case(
        ATTENTION,
        "scale from the batch",
        "batch != 2: scaled by the root of batch + 2, not of the 4 features",
        {
            "scores": "wide = Add(batch, {2,})\nfeatures = Cast<to=1>(wide)\n"
            "root = Sqrt(features)\nscores = Div(products, root)"
        },
    ),
    case(
        ATTENTION,
        "softmax over the batch",
        "batch > 2: Softmax over axis 0",
        {
            "attention": choose(
                "attention", "Greater(batch, {2,})", "Softmax<axis=0>(masked)", "Softmax<axis=-1>(masked)"
            )
        },
    ),
    case(
        ATTENTION,
        "mask dropped late",
        "seq > 9: later keys are seen whatever the mask says",
        {"kept": late("mask", 1, 9) + "kept = Or(right, late)"},
    ),
    case(
        ATTENTION,
        "wrong at one length",
        "seq == 17: scores are 1.25 times too large",
        {"scores": choose("scores", "Equal(seq, {17,})", "Mul(right, {1.25})")},
    ),
    case(
        ATTENTION,
        "mask over queries",
        "batch == seq: the mask's rows are taken for queries",
        {
            "kept": choose(
                "kept", "Equal(batch, seq)", "Unsqueeze(mask, {0, 1})", "Unsqueeze(mask, {1, 2})", dtype="bool"
            )
        },
    ),
    case(
        ATTENTION,
        "rows mixed up",
        "batch > seq: values of the batch in reverse",
        {"v_heads": choose("v_heads", "Greater(batch, seq)", "Slice(right, {-1,}, {-100,}, {0,}, {-1,})")},
    ),
    case(
        ATTENTION,
        "first 16 keys",
        "seq > 16: later keys are never seen",
        {"kept": places("mask", 1) + "early = Less(places, {16})\nkept = And(right, early)"},
    ),
    case(
        ATTENTION,
        "nothing at length 1",
        "seq == 1: the mixed values are 0",
        {"mixed": choose("mixed", "Equal(seq, {1,})", "Mul(right, {0.0})")},
    ),
    case(
        ATTENTION,
        "another scale",
        "slightly, everywhere: scores are divided by 2.01 instead of 2",
        {"scores": "scores = Div(products, {2.01})"},
    ),
    case(ATTENTION, "length declared", "seq != 9: `y` is declared batch 9 8", y="float32[batch, 9, 8]"),
)

_CACHED_STEP = (
    case(
        CACHED_STEP,
        "cache length baked",
        "past != 7: the causal mask starts at 7",
        {"places": "places = Add(steps, {7})"},
    ),
    case(
        CACHED_STEP,
        "cache length from the step",
        "past != seq + 4: the causal mask starts at seq + 4",
        {"places": "guess = Add(seq, {4})\nplaces = Add(steps, guess)"},
    ),
    case(
        CACHED_STEP,
        "window of 16",
        "past + seq > 16: older keys are never seen",
        {"kept": "oldest = Sub(both, {16})\nrecent = GreaterOrEqual(columns, oldest)\nkept = And(right, recent)"},
    ),
    case(
        CACHED_STEP,
        "padding of row 0",
        "batch > 2: every row has the padding of row 0",
        {
            "padding": size("batch", "mask", 0)
            + choose("padding", "Greater(batch, {2,})", "Slice(right, {0,}, {1,}, {0,})", dtype="bool")
        },
    ),
    case(
        CACHED_STEP,
        "long steps see ahead",
        "seq > 3: no causal mask",
        {"causal": "ahead = Not(right)\n" + choose("causal", "Greater(seq, {3})", "Or(right, ahead)", dtype="bool")},
    ),
    case(
        CACHED_STEP,
        "key positions frozen",
        "past + seq != 10: Range of 10",
        {"columns": "columns = Range({0}, {10}, {1})"},
    ),
    case(
        CACHED_STEP,
        "one step in front",
        "seq == 1: the new value is put before the cache",
        {
            "present_value": choose(
                "present_value", "Equal(seq, {1})", "Concat<axis=1>(v, past_value)", "Concat<axis=1>(past_value, v)"
            )
        },
    ),
    case(
        CACHED_STEP,
        "wrong at one cache length",
        "past == 13: the newest key is not seen",
        {
            "kept": "newest = Sub(both, {1})\nold = Less(columns, newest)\nfew = And(right, old)\n"
            + choose("kept", "Equal(past, {13})", "Identity(few)", dtype="bool")
        },
    ),
    case(
        CACHED_STEP,
        "cache declared too short",
        "everywhere: `present_key` is declared batch past 8",
        present_key="float32[batch, past, 8]",
    ),
)

_STRIDED_CONV = (
    case(
        STRIDED_CONV,
        "no padding below",
        "height odd: a row of features is missing",
        {
            "edges": "edges = Conv<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 1]>"
            "(image, conv_weight, conv_bias)"
        },
    ),
    case(
        STRIDED_CONV,
        "pool rounds up",
        "(height+1)//2 odd or (width+1)//2 odd: one more row or column",
        {"pooled": "pooled = MaxPool<kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1>(features)"},
    ),
    case(
        STRIDED_CONV,
        "another epsilon",
        "slightly, everywhere: the norm's epsilon is 1e-3 instead of 1e-5",
        {
            "features": "features = BatchNormalization<epsilon=0.001>"
            "(edges, bn_weight, bn_bias, bn_running_mean, bn_running_var)"
        },
    ),
    case(
        STRIDED_CONV,
        "slice end frozen",
        "width > 12: columns of features past 6 are cut off",
        {"features": "features = Slice(right, {0,}, {6,}, {3,})"},
    ),
    case(
        STRIDED_CONV,
        "tall images",
        "height > width: an activation that the module has not",
        {
            "features": size("height", "image", 2)
            + size("width", "image", 3)
            + choose("features", "Greater(height, width)", "Relu(right)")
        },
    ),
    case(
        STRIDED_CONV,
        "square images turned",
        "height == width: features are transposed",
        {
            "features": size("height", "image", 2)
            + size("width", "image", 3)
            + choose("features", "Equal(height, width)", "Transpose<perm=[0, 1, 3, 2]>(right)")
        },
    ),
    case(
        STRIDED_CONV,
        "row 0 for late images",
        "batch > 2: the third image gets the features of the first",
        {"features": first_row_from("features", "image", 2)},
    ),
    case(
        STRIDED_CONV,
        "one name for both halves",
        "(height+1)//2 != (width+1)//2: both are declared `half`",
        features="float32[batch, 4, half, half]",
    ),
    case(
        STRIDED_CONV,
        "half declared rounded down",
        "width odd: `features` is declared width//2",
        features="float32[batch, 4, (height+1)//2, width//2]",
    ),
)

WRONG_LAYERS: tuple[FileCase, ...] = (*_MLP, *_MASKED_MEAN, *_FULL_MASK, *_ATTENTION, *_CACHED_STEP, *_STRIDED_CONV)

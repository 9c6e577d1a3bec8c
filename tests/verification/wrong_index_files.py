"""Files that are right at the traced size and wrong elsewhere, for subjects whose sizes become values or indices."""

from __future__ import annotations

from .drawing import choose, late, places, size
from .index_subjects import FILTER, JOINT, POSITIONS, RANKING, RECURRENT, SCATTER, SIZES_AS_VALUES
from .subjects import FileCase, case

_POSITIONS = (
    case(
        POSITIONS,
        "table cut off",
        "seq > 24: the table has 24 rows",
        {"rows": "short = Slice(table, {0,}, {24,}, {0,})\nrows = Slice(short, {0,}, seq, {0,})"},
    ),
    case(
        POSITIONS,
        "last row repeated",
        "seq > 24: positions from 24 on get row 23",
        {"rows": places("tokens", 1) + "clamped = Min(places, {23})\nrows = Gather(table, clamped)"},
    ),
    case(
        POSITIONS,
        "slice end frozen",
        "seq != 10: the first 10 rows",
        {"rows": "rows = Slice(table, {0,}, {10,}, {0,})"},
    ),
    case(
        POSITIONS,
        "slice end from the batch",
        "seq != batch + 7: batch + 7 rows",
        {"rows": size("batch", "tokens", 0) + "guess = Add(batch, {7,})\nrows = Slice(table, {0,}, guess, {0,})"},
    ),
    case(
        POSITIONS,
        "positions wrap",
        "seq > 16: positions are taken modulo 16",
        {"rows": places("tokens", 1) + "wrapped = Mod(places, {16})\nrows = Gather(table, wrapped)"},
    ),
    case(
        POSITIONS,
        "reversed at the maximum",
        "seq == 32: the table is read backwards",
        {"rows": choose("rows", "Equal(seq, {32,})", "Slice(right, {-1,}, {-100,}, {0,}, {-1,})")},
    ),
    case(
        POSITIONS,
        "window of the table",
        "seq != 10: rows seq - 10 to seq",
        {"rows": "first = Sub(seq, {10,})\nrows = Slice(table, first, seq, {0,})"},
    ),
)

_JOINT = (
    case(JOINT, "start of the tail baked", "n != 5: the tail starts at 5", {"first": "first = Identity({5,})"}),
    case(JOINT, "start of the tail from m", "n != m - 4: the tail starts at m - 4", {"first": "first = Sub(m, {4,})"}),
    case(JOINT, "start of the tail at least 5", "n < 5: the tail starts at 5", {"first": "first = Max(n, {5,})"}),
    case(JOINT, "at most 64", "n + m > 64: cut off at 64", {"both": "both = Slice(right, {0,}, {64,}, {1,})"}),
    case(
        JOINT,
        "longer one last",
        "n > m: joined in the other order",
        {
            "both": choose(
                "both", "Greater(n, m)", "Concat<axis=1>(context, question)", "Concat<axis=1>(question, context)"
            )
        },
    ),
    case(
        JOINT,
        "equal lengths swapped",
        "n == m: joined in the other order",
        {
            "both": choose(
                "both", "Equal(n, m)", "Concat<axis=1>(context, question)", "Concat<axis=1>(question, context)"
            )
        },
    ),
    case(
        JOINT,
        "names of the outputs swapped",
        "everywhere: `y` is declared m, `tail` n+m",
        y="float32[batch, m, 4]",
        tail="float32[batch, n+m, 4]",
    ),
    case(JOINT, "sum declared with a number", "m != 9: `y` is declared n+9", y="float32[batch, n+9, 4]"),
)

_SCATTER = (
    case(
        SCATTER,
        "first 11 edges",
        "edges > 11: later edges are ignored",
        {"sent": "sent = Slice(right, {0,}, {11,}, {0,})", "places": "places = Slice(right, {0,}, {11,}, {0,})"},
    ),
    case(
        SCATTER,
        "targets clamped",
        "nodes > 7: messages to later nodes go to node 6",
        {"target": "target = Min(right, {6})"},
    ),
    case(SCATTER, "seven rows", "nodes != 7: the sums have 7 rows", {"shape": "shape = Identity({7, 4})"}),
    case(
        SCATTER,
        "rows from the edges",
        "nodes != edges - 4: the sums have edges - 4 rows",
        {"shape": size("number", "edges", 1) + "guess = Sub(number, {4,})\nshape = Concat<axis=0>(guess, {4,})"},
    ),
    case(
        SCATTER,
        "more nodes than edges",
        "nodes > edges: messages go back to their source",
        {
            "target": size("number", "edges", 1)
            + choose("target", "Greater(nodes, number)", "Identity(source)", dtype="int64")
        },
    ),
    case(
        SCATTER,
        "degree clamped",
        "a node with more than 5 edges: its sum is divided by 5",
        {"divisor": "divisor = Min(right, {5.0})"},
    ),
)

_SIZES_AS_VALUES = (
    case(
        SIZES_AS_VALUES,
        "divisor baked",
        "seq != 12: the sum is divided by 12",
        {"divisor": "divisor = Identity({12.0})"},
    ),
    case(
        SIZES_AS_VALUES,
        "divisor at least 12",
        "seq < 12: the sum is divided by 12",
        {"divisor": "divisor = Max(length, {12.0})"},
    ),
    case(
        SIZES_AS_VALUES,
        "sizes baked",
        "batch != 3 or seq != 12: [3, 12, 3]",
        {"numbers": "numbers = Identity({3, 12, 3})"},
    ),
    case(
        SIZES_AS_VALUES,
        "quarter rounded down",
        "seq not a multiple of 4: one too few",
        {"quarter": "quarter = Div(seq, {4,})"},
    ),
    case(
        SIZES_AS_VALUES,
        "ramp from the batch",
        "seq != batch + 9: the ramp ends elsewhere",
        {"ramp": "guess = Add(batch, {9,})\nfloat_guess = Cast<to=1>(guess)\nramp = Div(float_steps, float_guess)"},
    ),
    case(
        SIZES_AS_VALUES,
        "range frozen",
        "seq > 12: the ramp has 12 steps",
        {"steps": "all_steps = Range({0}, {12}, {1})\nsteps = Slice(all_steps, {0,}, seq, {0,})"},
    ),
    case(
        SIZES_AS_VALUES,
        "ramp flat at the end",
        "seq > 12: the ramp stays at step 11",
        {"steps": "steps = Min(right, {11})"},
    ),
    case(
        SIZES_AS_VALUES,
        "off by one when long",
        "seq > 20: the second number is one too large",
        {"numbers": choose("numbers", "Greater(seq, {20,})", "Add(right, {0, 1, 0})", dtype="int64")},
    ),
    case(
        SIZES_AS_VALUES,
        "even length",
        "seq odd: the length is one too small",
        {"length": "pairs = Div(seq, {2,})\neven = Mul(pairs, {2,})\nlength = Cast<to=1>(even)"},
    ),
    case(
        SIZES_AS_VALUES,
        "axes named the other way",
        "batch != seq: `weighted` is declared seq batch 8",
        weighted="float32[seq, batch, 8]",
    ),
)

_RECURRENT = (
    case(
        RECURRENT,
        "state of three rows",
        "batch != 3: the first state has 3 rows",
        {"hidden": "hidden = Expand(start, {1, 3, 5})"},
    ),
    case(
        RECURRENT,
        "late rows start at zero",
        "batch > 3: later rows start from zero",
        {"hidden": late("x", 0, 3) + "column = Unsqueeze(late, {1,})\nhidden = Where(column, {0.0}, right)"},
    ),
    case(
        RECURRENT,
        "nine steps",
        "seq > 9: later steps are not run",
        {
            "run": size("seq", "x", 1)
            + "few = Min(seq, {9,})\nnumber = Cast<to=6>(few)\nlengths = Expand(number, batch)\n"
            "run = LSTM<hidden_size=5>(steps, w, r, b, lengths, hidden, cell)"
        },
    ),
    case(RECURRENT, "last step baked", "seq != 9: the last step is step 8", {"last": "last = Gather<axis=1>(y, {8})"}),
    case(
        RECURRENT,
        "batch and steps confused",
        "batch == seq: runs over the batch",
        {
            "steps": size("seq", "x", 1)
            + choose("steps", "Equal(batch, seq)", "Identity(x)", "Transpose<perm=[1, 0, 2]>(x)")
        },
    ),
)

_RANKING = (
    case(RANKING, "five of fewer", "n < 5: TopK of 5", {"k": "k = Identity({5,})"}),
    case(RANKING, "number from n", "n != 9: TopK of n - 4", {"k": "k = Sub(n, {4,})"}),
    case(
        RANKING,
        "index in a byte",
        "n > 128: indices from 128 on become negative",
        {"indices": "small = Cast<to=3>(right)\nindices = Cast<to=7>(small)"},
    ),
    case(
        RANKING,
        "off by one when long",
        "n > 100: the best index is one too large",
        {"best": choose("best", "Greater(n, {100,})", "Add(right, {1})", dtype="int64")},
    ),
    case(
        RANKING,
        "best of the first 64",
        "n > 64: later scores are not looked at",
        {"best": "early = Slice(scores, {0,}, {64,}, {1,})\nbest = ArgMax<axis=1, keepdims=0>(early)"},
    ),
    case(RANKING, "five declared", "n < 5: declared 2 5", values="float32[2, 5]", indices="int64[2, 5]"),
)

_FILTER = (
    case(
        FILTER,
        "first 16 candidates",
        "n > 16: later candidates are not looked at",
        {"candidates": "candidates = Slice(scores, {0,}, {16,}, {0,})"},
    ),
    case(
        FILTER,
        "at most 8",
        "more than 8 kept: the others are cut off",
        {"rows": "rows = Slice(right, {0,}, {8,}, {0,})"},
    ),
    case(
        FILTER,
        "odd numbers lose one",
        "n odd: the last candidate is not looked at",
        {
            "candidates": size("n", "scores", 0)
            + "pairs = Div(n, {2,})\neven = Mul(pairs, {2,})\ncandidates = Slice(scores, {0,}, even, {0,})"
        },
    ),
    case(
        FILTER,
        "backwards when many",
        "n > 50: kept in the other order",
        {
            "rows": size("n", "scores", 0)
            + choose("rows", "Greater(n, {50,})", "Slice(right, {-1,}, {-1000,}, {0,}, {-1,})", dtype="int64")
        },
    ),
    case(FILTER, "all declared kept", "anything filtered: `kept_boxes` is declared n 4", kept_boxes="float32[n, 4]"),
)

WRONG_INDICES: tuple[FileCase, ...] = (
    *(*_POSITIONS, *_JOINT, *_SCATTER, *_SIZES_AS_VALUES, *_RECURRENT, *_RANKING, *_FILTER),
)

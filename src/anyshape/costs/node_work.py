"""What a node computes and moves, as formulas: operations by its operator, bytes by the types of its values.

A product that is added to a sum counts as two operations, all else as one for each element; what only moves numbers
computes nothing. An operator without a rule has no formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import onnx_ir as ir
import sympy

from anyshape.costs.liveness import changes
from anyshape.costs.shape_rules import total
from anyshape.costs.size_numbers import SizeChoice
from anyshape.costs.value_shapes import ShapeWalk
from anyshape.onnxfile.graph import attribute, graphs_in, is_standard, reads
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Shape, Size, number, product


@dataclass(frozen=True)
class Work:
    """What a run of some nodes takes; None where it is not known."""

    flops: Size | None
    moved: Size | None
    inner: Size | None = None
    """Bytes that bodies hold at a time."""
    mark: str = ""


NOTHING = number(0)


def item_bytes(dtype: ir.DataType | None) -> sympy.Rational | None:
    """Of each element; None where elements differ, or the type is not known."""
    if dtype is None or dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    return sympy.Rational(dtype.bitwidth, 8)


def value_bytes(walk: ShapeWalk, value: ir.Value | None) -> Size | None:
    if value is None:
        return NOTHING
    shape, item = walk.known_shape(value), item_bytes(value.dtype)
    return None if shape is None or item is None else sympy.expand(product(shape) * item)


def work_of(walk: ShapeWalk, node: ir.Node) -> Work:
    """What one node takes."""
    if graphs_in(node):
        return _work_of_bodies(walk, node)
    rule = _RULES.get(node.op_type) if is_standard(node) else None
    flops = None
    if rule is not None:
        try:
            flops = rule(_Shapes(walk, node))
        except (_UnknownError, IndexError, TypeError, ValueError, KeyError, AttributeError):
            flops = None
    return Work(flops, _bytes_moved(walk, node), mark="" if rule is not None else "its operations are not known")


def _bytes_moved(walk: ShapeWalk, node: ir.Node) -> Size | None:
    if is_standard(node) and node.op_type in _VIEWS:
        return NOTHING
    made = [value_bytes(walk, value) for value in node.outputs if value.name]
    read = [value_bytes(walk, value) for value in node.inputs]
    if is_standard(node) and node.op_type in _PICKING:
        read = [made[0] if made else NOTHING, *read[1:]]  # of what it reads only what it gives
    return _sum_or_none((*read, *made))


def _sum_or_none(sizes: Iterable[Size | None]) -> Size | None:
    known = list(sizes)
    return None if any(size is None for size in known) else total(size for size in known if size is not None)


# ---- bodies


def _work_of_bodies(walk: ShapeWalk, node: ir.Node) -> Work:
    works = [work_of_graph(walk, graph) for graph in graphs_in(node)]
    if node.op_type == "If" and len(works) == 2:
        return _work_of_branches(works, walk.choices.get(node))
    trips = walk.trips.get(node)
    if trips is None or walk.is_unknown(trips) or len(works) != 1:
        return Work(None, None, works[0].inner, "how often its body runs is not known")
    flops, moved = (None if one is None else sympy.expand(trips * one) for one in (works[0].flops, works[0].moved))
    return Work(flops, moved, works[0].inner, "" if flops is not None else "its body is not known")


def _work_of_branches(works: Sequence[Work], condition: Size | None) -> Work:
    rows = [[getattr(work, name) for work in works] for name in ("flops", "moved", "inner")]
    if any(None in row for row in rows[:1]):
        return Work(None, None, None, "one of its branches is not known")
    if condition is not None:
        parts = [None if None in row else SizeChoice(condition, row[0], row[1]) for row in rows]
        return Work(parts[0], parts[1], parts[2])
    parts = [None if None in row else sympy.Max(*row) for row in rows]
    return Work(parts[0], parts[1], parts[2], "the data decide: its larger branch is counted")


def work_of_graph(walk: ShapeWalk, graph: ir.Graph) -> Work:
    """All nodes of a body, and the bytes that it holds at a time beside what it is given."""
    works = [work_of(walk, node) for node in graph]
    peaks = memory_steps(walk, graph, [work.inner for work in works], ())
    inner = None if peaks is None else largest(peaks)
    return Work(_sum_or_none(work.flops for work in works), _sum_or_none(work.moved for work in works), inner)


Terms = Mapping[Size, Size]
"""A sum: term without its factor -> factor."""
Steps = list[dict[Size, Size]]
"""The bytes that are held at some nodes, each as a sum."""


def memory_steps(
    walk: ShapeWalk, graph: ir.Graph, inner: Sequence[Size | None], inputs: Sequence[ir.Value]
) -> Steps | None:
    """What is held while each node runs, without steps that others surely exceed; None where a value is unknown."""
    values = [*inputs, *(value for node in graph for value in node.outputs)]
    place = {value: index for index, value in enumerate(values)}
    sized = [_terms(value_bytes(walk, value)) if value.name else {} for value in values]
    if any(terms is None for terms in sized):
        return None
    lives = [([place.get(v, -1) for v in reads(n)], [place[v] for v in n.outputs]) for n in graph]
    given = list(range(len(inputs)))
    held: dict[Size, Size] = {}
    for value in given:
        _add(held, sized[value], 1)
    steps: Steps = [dict(held)]
    kept = [place.get(value, -1) for value in graph.outputs if value is not None]
    for (born, dead), own in zip(changes(lives, given, kept), inner, strict=True):
        for value in born:
            _add(held, sized[value], 1)
        step = dict(held)
        _add(step, _terms(own) or {}, 1)
        steps.append(step)
        for value in dead:
            _add(held, sized[value], -1)
    return undominated(steps)


def _terms(size: Size | None) -> dict[Size, Size] | None:
    if size is None:
        return None
    return {term: factor for term, factor in sympy.expand(size).as_coefficients_dict().items() if factor}


def _add(held: dict[Size, Size], terms: Mapping[Size, Size] | None, sign: int) -> None:
    for term, factor in (terms or {}).items():
        left = held.get(term, 0) + sign * factor
        if left:
            held[term] = left
        else:
            held.pop(term, None)


def undominated(steps: Steps) -> Steps:
    """Each once, without those that another one is at least as large as, whatever the sizes are."""
    distinct = list({frozenset(step.items()): step for step in steps}.values())
    distinct.sort(key=lambda step: (-len(step), -float(sum(step.values()))))
    # the cheap question first: most steps are smaller than another one in every term
    few = _without_covered([(step, step) for step in distinct])
    if len(few) > budgets.MOST_STEPS_COMPARED:
        return few
    return _without_covered([(step, _counted_from_one(step)) for step in few])


def _without_covered(steps: Iterable[tuple[Terms, Terms]]) -> Steps:
    """Without each step of which another one has at least as much of every term; each stands beside its terms."""
    kept: list[tuple[Terms, Terms]] = []
    for step, terms in steps:
        if not any(_covers(other, terms) for _, other in kept):
            kept = [one for one in kept if not _covers(terms, one[1])] + [(step, terms)]
    return [dict(step) for step, _ in kept]


def _covers(one: Terms, other: Terms) -> bool:
    terms = one.keys() | other.keys()
    return all(one.get(term, 0) >= other.get(term, 0) for term in terms)


def _counted_from_one(step: Terms) -> Terms:
    """A sum whose dims are counted from their smallest size on, which is 1 for most: `n**2` is at least `n` by it."""
    counted: dict[Size, Size] = {}
    for term, factor in step.items():
        for part, share in _term_from_one(term).items():
            _add(counted, {part: share * factor}, 1)
    return counted


@lru_cache(maxsize=1 << 12)
def _term_from_one(term: Size) -> Terms:
    counted = term.xreplace({dim: dim + 1 for dim in term.free_symbols if dim.is_positive})
    return dict(sympy.expand(counted).as_coefficients_dict())


def largest(steps: Steps) -> Size:
    sums = [total(factor * term for term, factor in step.items()) for step in steps]
    return sums[0] if len(sums) == 1 else sympy.Max(*sums, evaluate=False) if sums else NOTHING


# ---- rules: how many operations


class _UnknownError(Exception):
    pass


class _Shapes:
    """The shapes of a node, or an error where one is not known."""

    def __init__(self, walk: ShapeWalk, node: ir.Node) -> None:
        self._walk, self.node = walk, node

    def given(self, index: int) -> Shape:
        return self._shape(self.node.inputs[index])

    def made(self, index: int = 0) -> Shape:
        return self._shape(self.node.outputs[index])

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def _shape(self, value: ir.Value | None) -> Shape:
        shape = None if value is None else self._walk.known_shape(value)
        if shape is None:
            raise _UnknownError
        return shape

    def option(self, name: str, default: object = None) -> object:
        return attribute(self.node, name, default)


_Rule = Callable[[_Shapes], Size]


def _per_result(times: int) -> _Rule:
    return lambda shapes: times * product(shapes.made())


def _per_input(times: int) -> _Rule:
    return lambda shapes: times * product(shapes.given(0))


def _matrix_product(left: int = 0) -> _Rule:
    return lambda shapes: 2 * product(shapes.made()) * shapes.given(left)[-1]


def _gemm(shapes: _Shapes) -> Size:
    depth = shapes.given(0)[0 if shapes.option("transA", 0) else 1]
    return (2 * depth + (1 if shapes.has(2) else 0)) * product(shapes.made())


def _convolution(weight: int, bias: int) -> _Rule:
    return lambda shapes: (
        product(shapes.made()) * (2 * product(shapes.given(weight)[1:]) + (1 if shapes.has(bias) else 0))
    )


def _spread_convolution(shapes: _Shapes) -> Size:
    added = product(shapes.made()) if shapes.has(2) else NOTHING
    return 2 * product(shapes.given(0)) * product(shapes.given(1)[1:]) + added


def _recurrent(gates: int) -> _Rule:
    """Both products of each step, and some operations for each gate."""

    def count(shapes: _Shapes) -> Size:
        length, batch, _ = shapes.given(0)
        directions, _, hidden = shapes.given(2)
        products = 2 * (product(shapes.given(1)) + product(shapes.given(2)))
        return length * batch * (products + 4 * gates * directions * hidden)

    return count


def _attention(shapes: _Shapes) -> Size:
    query, key, value = (shapes.given(index) for index in range(3))
    heads = query[1] if len(query) == 4 else number(int(str(shapes.option("q_num_heads"))))
    rows = query[-2]
    columns = key[-2] + (shapes.given(4)[-2] if shapes.has(4) else 0)
    of_key, of_value = product(query[1:]) / rows / heads, product(value[1:]) / value[-2]
    of_value = of_value / (value[1] if len(value) == 4 else number(int(str(shapes.option("kv_num_heads")))))
    return query[0] * heads * rows * columns * (2 * of_key + 2 * of_value + 5)


def _einsum(shapes: _Shapes) -> Size:
    """All letters together: a product for each, and a sum where there are several operands."""
    equation = str(shapes.option("equation")).replace(" ", "")
    operands = equation.split("->")[0].split(",")
    if "." in equation:
        raise _UnknownError
    sizes: dict[str, Size] = {}
    for index, letters in enumerate(operands):
        for letter, size in zip(letters, shapes.given(index), strict=True):
            sizes[letter] = size if sizes.get(letter, number(1)) == 1 else sizes[letter]
    return len(operands) * product(sizes.values())


def _pool(shapes: _Shapes) -> Size:
    return product(shapes.made()) * product(map(number, shapes.option("kernel_shape")))  # type: ignore[call-overload]


def _resize(shapes: _Shapes) -> Size:
    """As many products and sums as there are neighbours along each axis that changes its size."""
    mode = shapes.option("mode", "nearest")
    taps = {"nearest": 0, "linear": 2, "cubic": 4}[mode.decode() if isinstance(mode, bytes) else str(mode)]
    changed = sum(a != b for a, b in zip(shapes.given(0), shapes.made(), strict=True))
    return 2 * taps**changed * product(shapes.made()) if taps else NOTHING


_MOVING = (
    "Cast", "CastLike", "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "DepthToSpace", "Dropout",
    "Expand", "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad", "Range", "Reshape",
    "ReverseSequence", "ScatterElements", "ScatterND", "Scatter", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceInsert", "SequenceErase", "SequenceLength", "Shape", "Size", "Slice", "SpaceToDepth", "Split",
    "SplitToSequence", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze", "Optional", "OptionalGetElement",
    "OptionalHasElement", "OneHot", "BitCast", "Col2Im", "CenterCropPad", "Compress", "TensorScatter",
)  # fmt: skip
_VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Size", "Constant"))
"""What the runtime does without a copy."""
_PICKING = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))
_ELEMENTWISE = (
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
    "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt",
    "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor", "Bernoulli", "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike", "QuantizeLinear", "DequantizeLinear",
)  # fmt: skip
_REDUCING = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin", "CumSum", "CumProd", "TopK", "NonZero",
    "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool",
)  # fmt: skip
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(_MOVING, lambda _: NOTHING),
    **dict.fromkeys(_ELEMENTWISE, _per_result(1)),
    **dict.fromkeys(_REDUCING, _per_input(1)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _per_input(5)),
    "BatchNormalization": _per_input(2),
    **dict.fromkeys(
        ("LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"),
        _per_input(8),
    ),
    **dict.fromkeys(("RMSNormalization", "LpNormalization"), _per_input(4)),
    "LRN": _per_input(5),
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _matrix_product()),
    "Gemm": _gemm,
    "Conv": _convolution(1, 2),
    "ConvInteger": _convolution(1, 4),
    "QLinearConv": _convolution(3, 8),
    "ConvTranspose": _spread_convolution,
    "RNN": _recurrent(1),
    "GRU": _recurrent(3),
    "LSTM": _recurrent(4),
    "Attention": _attention,
    "Einsum": _einsum,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    "Resize": _resize,
    "GridSample": lambda shapes: 8 * product(shapes.made()),
}

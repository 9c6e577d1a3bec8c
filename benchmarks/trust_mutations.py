"""Wrong files made from right ones: each family is a way in which files go wrong, put into any graph.

A mutation reads the graph and what its values are at the traced size; it knows nothing of the model. Most are right at
the traced size: what is changed stands behind a gate on the sizes, or meets values alone that are not drawn.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from trust_models import PLAIN, Subject
from trust_truth import Array, session_of


class NotApplicableError(Exception):
    """This graph has no place for the mutation."""


# ---- what is known of the right graph


@dataclass(frozen=True)
class Facts:
    """The values inside the right file in a few calls: at the traced size first, then at others."""

    calls: tuple[dict[str, Array], ...]

    @property
    def traced(self) -> dict[str, Array]:
        return self.calls[0]

    def largest(self, name: str) -> float:
        finite = (np.abs(call[name])[np.isfinite(call[name])] for call in self.calls)
        return max((float(one.max()) for one in finite if one.size), default=0.0)

    def least(self, name: str) -> float:
        return min(float(call[name].min()) for call in self.calls)

    def varying_axes(self, name: str) -> list[int]:
        """Axes whose length is another in some call."""
        shapes = [call[name].shape for call in self.calls]
        return [axis for axis in range(len(shapes[0])) if len({shape[axis] for shape in shapes}) > 1]


def facts_of(model: onnx.ModelProto, calls: Sequence[dict[str, Array]]) -> Facts:
    """Every value of the main graph, in every call."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    outside = {value.name for value in twin.graph.output}
    names = [name for node in twin.graph.node for name in node.output if name and name not in outside]
    twin.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = session_of(twin.SerializeToString())
    asked = [one.name for one in session.get_outputs()]
    return Facts(tuple({**feeds, **dict(zip(asked, session.run(None, feeds), strict=True))} for feeds in calls))


# ---- a graph under the knife


@dataclass
class Surgery:
    """One mutant in the making."""

    subject: Subject
    model: ir.Model
    facts: Facts
    chance: random.Random
    said: list[str] = field(default_factory=list)
    """What was done, for whoever reads of a file that was missed."""
    count: int = 0

    @property
    def graph(self) -> ir.Graph:
        return self.model.graph

    def op(self, kind: str, *inputs: ir.Value | Array | float | None, **attributes) -> ir.Value:
        self.count += 1
        values = [one if one is None or isinstance(one, ir.Value) else self.constant(one) for one in inputs]
        node = ir.node(kind, values, attributes, name=f"changed_{self.count}")
        node.outputs[0].name = f"changed_{self.count}"
        self.graph.append(node)
        return node.outputs[0]

    def constant(self, value: Array | float) -> ir.Value:
        self.count += 1
        array = np.asarray(value)
        array = array.astype({"f": np.float32, "i": np.int64, "b": np.bool_}[array.dtype.kind])
        name = f"constant_{self.count}"
        found = ir.Value(name=name, const_value=ir.tensor(array, name=name))
        self.graph.register_initializer(found)
        return found

    def size(self, dim: str) -> ir.Value:
        """The size of a dim, without axes."""
        places = ((n, axes.split().index(dim)) for n, axes in self.subject.dims.items() if dim in axes.split())
        name, axis = next(places)
        value = next(value for value in self.graph.inputs if value.name == name)
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1))

    def put(self, value: ir.Value, change: Callable[[ir.Value], ir.Value]) -> None:
        """Whatever read the value before reads the changed one from now on; an output keeps its name."""
        uses = list(value.uses())
        places = [i for i, one in enumerate(self.graph.outputs) if one is value]
        changed = change(value)
        for node, index in uses:
            node.replace_input_with(index, changed)
        for place in places:
            self.put_out(place, changed, value.type)
        value.shape = value.shape if value.is_graph_input() else None

    def put_out(self, place: int, changed: ir.Value, dtype: ir.TypeProtocol | None) -> None:
        """Another value becomes the output, under its name."""
        value = self.graph.outputs[place]
        changed.type, changed.shape, changed.name = dtype, value.shape, value.name
        value.name = f"unchanged_{value.name}"
        self.graph.outputs[place] = changed

    # ---- places

    def pick(self, found: Sequence, what: str):
        if not found:
            raise NotApplicableError(what)
        return self.chance.choice(list(found))

    def nodes(self, *kinds: str) -> list[ir.Node]:
        return [node for node in self.graph if node.op_type in kinds]

    def known(self, value: ir.Value) -> Array:
        return self.facts.traced[value.name]

    def floats(self, at_least: int = 2) -> list[ir.Value]:
        """Values of the main graph that are float32 and have some elements."""
        made = [value for node in self.graph for value in node.outputs if value.name in self.facts.traced]
        found = [v for v in (*self.graph.inputs, *made) if self.known(v).dtype == np.float32]
        return [value for value in found if self.known(value).size >= at_least]

    def outputs(self, kinds: str = "f") -> list[ir.Value]:
        return [value for value in self.graph.outputs if self.known(value).dtype.kind in kinds]

    def place(self) -> ir.Value:
        """A float somewhere, outputs as often as all others."""
        outputs, inner = self.outputs(), self.floats()
        return self.pick(outputs if outputs and self.chance.random() < 0.5 else inner, "floats")

    def sizes_inside(self) -> list[ir.Value]:
        """Integers that were computed from sizes alone."""
        from_sizes: set[ir.Value] = set()
        for node in self.graph:
            given = [one for one in node.inputs if one is not None and one.const_value is None]
            if node.op_type in ("Shape", "Size") or (given and all(one in from_sizes for one in given)):
                from_sizes.update(node.outputs)
        found = [one for one in from_sizes if self._moves(one)]
        return sorted(found, key=lambda value: value.name)

    def _moves(self, value: ir.Value) -> bool:
        calls = [call.get(value.name) for call in self.facts.calls]
        if any(one is None or one.dtype != np.int64 or one.ndim > 1 for one in calls):
            return False
        return any(not np.array_equal(one, calls[0]) for one in calls) and all(o.shape == calls[0].shape for o in calls)

    # ---- gates

    def dim(self) -> str:
        return self.pick(list(self.subject.ranges), "dims")

    def two_dims(self) -> tuple[str, str]:
        return tuple(self.chance.sample(list(self.subject.ranges), 2))

    def constant_for(self, dim: str, test: Callable[[int, int], bool]) -> int:
        """A number for which the test of a size says no at the traced size, and yes at some others."""
        low, high = self.subject.ranges[dim]
        numbers = [
            c for c in range(low, high + 1)
            if not test(self.subject.example[dim], c) and any(test(n, c) for n in range(low, high + 1))
        ]  # fmt: skip
        return self.pick(numbers, "numbers")

    def gate(self, value: ir.Value, closed: ir.Value, opened: ir.Value) -> ir.Value:
        """Where the gate opens, the other value: as Where or as If."""
        known = self.facts.traced.get(closed.name)
        has_where = known is None or known.dtype != np.bool_  # ONNX Runtime has none for flags
        if self.chance.random() < 0.5 and has_where:
            return self.op("Where", value, opened, closed)
        return self.op("If", value, then_branch=self._branch(opened), else_branch=self._branch(closed))

    def _branch(self, value: ir.Value) -> ir.Graph:
        self.count += 1
        node = ir.node("Identity", [value])
        node.outputs[0].name = f"branch_{self.count}"
        return ir.Graph([], [node.outputs[0]], nodes=[node], name=f"branch_{self.count}")

    def threshold(self, dim: str | None = None) -> ir.Value:
        """A gate that opens above or below some size."""
        dim = dim or self.dim()
        if self.chance.random() < 0.75:
            c = self.constant_for(dim, lambda n, c: n > c)
            self.said.append(f"where {dim} > {c}")
            return self.op("Greater", self.size(dim), c)
        c = self.constant_for(dim, lambda n, c: n < c)
        self.said.append(f"where {dim} < {c}")
        return self.op("Less", self.size(dim), c)

    # ---- effects

    def changed(self, value: ir.Value, *names: str) -> ir.Value:
        """The value with something wrong in it, of the same shape."""
        known = self.known(value)
        fitting = [name for name in names or EFFECTS if known.ndim >= 2 or name not in NEED_AXES]
        name = self.pick(fitting, "effects")
        self.said.append(f"{name} `{value.name}`")
        return EFFECTS[name](self, value)

    def change_where(
        self, text: str, opens: Callable[[], ir.Value], effects: Sequence[str] = (), value: ir.Value | None = None
    ) -> None:
        """Put one of the effects on a value where the gate opens."""
        value = value or self.place()
        if text:
            self.said.append(f"where {text}")
        self.put(value, lambda v: self.gate(opens(), v, self.changed(v, *(effects or STRONG))))


def _rolled(s: Surgery, value: ir.Value) -> ir.Value:
    axis = s.pick(s.facts.varying_axes(value.name) or [0], "axes")
    last = s.op("Slice", value, [-1], [2**62], [axis])
    return s.op("Concat", last, s.op("Slice", value, [0], [-1], [axis]), axis=axis)


def _reversed(s: Surgery, value: ir.Value) -> ir.Value:
    axis = s.pick(s.facts.varying_axes(value.name) or [0], "axes")
    return s.op("Slice", value, [-1], [-(2**62)], [axis], [-1])


def _viewed(s: Surgery, value: ir.Value) -> ir.Value:
    """A transpose that is taken for a view."""
    axes = list(range(s.known(value).ndim))
    one = s.chance.randrange(len(axes) - 1)
    axes[one], axes[one + 1] = axes[one + 1], axes[one]
    return s.op("Reshape", s.op("Transpose", value, perm=axes), s.op("Shape", value))


def _leaked(s: Surgery, value: ir.Value) -> ir.Value:
    mean = s.op("ReduceMean", value, [0], keepdims=1)
    return s.op("Add", value, s.op("Mul", mean, 0.05))


def _without_the_last(s: Surgery, value: ir.Value) -> ir.Value:
    """Zero where a table or a loop ended too early."""
    axis = s.pick(s.facts.varying_axes(value.name) or [0], "axes")
    ahead = s.op("Slice", value, [0], [-1], [axis])
    last = s.op("Slice", value, [-1], [2**62], [axis])
    return s.op("Concat", ahead, s.op("Sub", last, last), axis=axis)


def _scale_of(s: Surgery, value: ir.Value) -> float:
    return s.facts.largest(value.name) or 1.0


EFFECTS: dict[str, Callable[[Surgery, ir.Value], ir.Value]] = {
    "doubled": lambda s, v: s.op("Mul", v, 2.0),
    "halved": lambda s, v: s.op("Mul", v, 0.5),
    "negated": lambda s, v: s.op("Neg", v),
    "zeroed": lambda s, v: s.op("Mul", v, 0.0),
    "moved": lambda s, v: s.op("Add", v, 0.05 * _scale_of(s, v)),
    "relu of": lambda s, v: s.op("Relu", v),
    "absolute": lambda s, v: s.op("Abs", v),
    "a thousandth more of": lambda s, v: s.op("Mul", v, 1.001),
    "rolled": _rolled,
    "reversed": _reversed,
    "viewed otherwise": _viewed,
    "leaked over the batch": _leaked,
    "cut at the end": _without_the_last,
}
NEED_AXES = {"rolled", "reversed", "viewed otherwise", "leaked over the batch", "cut at the end"}
STRONG = ("doubled", "halved", "negated", "zeroed", "moved", "rolled", "reversed", "cut at the end")


# ---- families: sizes


def baked_size(s: Surgery) -> None:
    """A size became the number that it was in the trace."""
    value = s.pick(s.sizes_inside(), "sizes")
    s.said.append(f"`{value.name}` is {s.known(value).tolist()}")
    s.put(value, lambda v: s.op("Identity", s.constant(s.known(v))))


def clamped_size(s: Surgery) -> None:
    value = s.pick(s.sizes_inside(), "sizes")
    kind = s.chance.choice(["Min", "Max"])
    s.said.append(f"{kind} of `{value.name}` and {s.known(value).tolist()}")
    s.put(value, lambda v: s.op(kind, v, s.known(v)))


def size_of_another(s: Surgery) -> None:
    """One dim's size is taken for another's."""
    value = s.pick([one for one in s.sizes_inside() if s.known(one).size == 1], "single sizes")
    dim = s.dim()
    less = s.known(value) - s.subject.example[dim]
    s.said.append(f"`{value.name}` is {dim} + {less.tolist()}")
    s.put(value, lambda v: s.op("Add", s.size(dim), less))


def rounded_size(s: Surgery) -> None:
    """Rounded down to a multiple that the traced one is."""
    value = s.pick([one for one in s.sizes_inside() if s.known(one).size == 1], "single sizes")
    known = int(s.known(value).reshape(()))
    step = s.pick([k for k in range(2, 9) if known % k == 0], "divisors")
    s.said.append(f"`{value.name}` rounded to a multiple of {step}")
    s.put(value, lambda v: s.op("Mul", s.op("Div", v, step), step))


def frozen_reshape(s: Surgery) -> None:
    """What a Reshape may find out (-1 or 0) is a number."""
    places = [node for node in s.nodes("Reshape", "Expand") if node.outputs[0].name in s.facts.traced]
    node = s.pick([n for n in places if s.facts.varying_axes(n.outputs[0].name)], "reshapes")
    shape = np.array(s.known(node.outputs[0]).shape, dtype=np.int64)
    if s.chance.random() < 0.5:  # runs at all sizes that have as many elements
        shape[s.facts.varying_axes(node.outputs[0].name)[-1]] = -1
    s.said.append(f"`{node.outputs[0].name}` has shape {shape.tolist()}")
    node.replace_input_with(1, s.constant(shape))


def cut_table(s: Surgery) -> None:
    """Places beyond the traced ones are taken for the last of these."""
    node = s.pick(s.nodes("Range"), "ranges")
    value = node.outputs[0]
    if s.known(value).dtype != np.int64:
        raise NotApplicableError("whole numbers")
    most = int(s.known(value).max())
    s.said.append(f"`{value.name}` up to {most}")
    s.put(value, lambda v: s.op("Min", v, most))


REDUCING = (
    "ReduceSum", "ReduceMean", "ReduceMax", "MatMul", "Softmax", "CumSum", "LSTM", "Conv", "Scan", "ScatterND",
    "Resize", "ArgMax", "TopK", "AveragePool", "Attention", "Gemm",
)  # fmt: skip


def cut_sum(s: Surgery) -> None:
    """What stands beyond the traced length does not take part."""
    nodes = [node for node in s.nodes(*REDUCING) if node.inputs[0].name in s.facts.traced]
    rows = [(node, i) for node in nodes for i in range(min(2, len(node.inputs))) if _is_float(s, node.inputs[i])]
    node, index = s.pick([r for r in rows if s.facts.varying_axes(r[0].inputs[r[1]].name)], "sums")
    value = node.inputs[index]
    axis = s.pick(s.facts.varying_axes(value.name), "axes")
    length = s.known(value).shape[axis]
    s.said.append(f"`{value.name}` is zero from place {length} of axis {axis}")
    node.replace_input_with(index, _zero_from(s, value, axis, length))


def _is_float(s: Surgery, value: ir.Value | None) -> bool:
    return value is not None and value.name in s.facts.traced and s.known(value).dtype == np.float32


def _zero_from(s: Surgery, value: ir.Value, axis: int, length: int) -> ir.Value:
    here = s.op("Less", _places(s, value, axis), length)
    return s.op("Where", here, value, 0.0)


def _places(s: Surgery, value: ir.Value, axis: int) -> ir.Value:
    """0, 1, 2 ... along one axis, to be broadcast."""
    length = s.op("Squeeze", s.op("Shape", value, start=axis, end=axis + 1))
    others = [a for a in range(s.known(value).ndim) if a != axis]
    places = s.op("Range", 0, length, 1)
    return s.op("Unsqueeze", places, others) if others else places


def threshold(s: Surgery) -> None:
    s.change_where("", s.threshold)


def one_size(s: Surgery) -> None:
    dim = s.dim()
    c = s.constant_for(dim, lambda n, c: n == c)
    s.change_where(f"{dim} == {c}", lambda: s.op("Equal", s.size(dim), c))


def parity(s: Surgery) -> None:
    dim, step = s.dim(), s.chance.choice([2, 2, 3, 4, 5, 8])
    rest = s.chance.choice([r for r in range(step) if r != s.subject.example[dim] % step])
    s.change_where(f"{dim} % {step} == {rest}", lambda: s.op("Equal", s.op("Mod", s.size(dim), step), rest))


def equal_dims(s: Surgery) -> None:
    a, b = s.two_dims()
    s.change_where(f"{a} == {b}", lambda: s.op("Equal", s.size(a), s.size(b)))


def related_dims(s: Surgery) -> None:
    """One dim is another and so many more, or so many times it."""
    a, b = s.two_dims()
    (low, high), (least, most) = s.subject.ranges[a], s.subject.ranges[b]
    steps = [(k, m) for k in (1, 2, 3) for m in range(1, most) if k * low + m <= most and k * high + m >= least]
    example = s.subject.example
    k, m = s.pick([(k, m) for k, m in steps if k * example[a] + m != example[b]], "relations")

    def opens() -> ir.Value:
        return s.op("Equal", s.size(b), s.op("Add", s.op("Mul", s.size(a), k), m))

    s.change_where(f"{b} == {k} * {a} + {m}", opens)


def product_of_dims(s: Surgery) -> None:
    a, b = s.two_dims()
    rows = itertools.product(*(range(s.subject.ranges[d][0], s.subject.ranges[d][1] + 1) for d in (a, b)))
    c = s.pick([n * m for n, m in rows if n * m != s.subject.example[a] * s.subject.example[b]], "products")
    s.change_where(f"{a} * {b} == {c}", lambda: s.op("Equal", s.op("Mul", s.size(a), s.size(b)), c))


def congruence(s: Surgery) -> None:
    """Wrong at few sizes that no number in the file names."""
    dim, k, step = s.dim(), s.chance.choice([3, 5, 7]), s.chance.choice([11, 13, 17, 31])
    low, high = s.subject.ranges[dim]
    rests = {(k * n + 3) % step for n in range(low, high + 1)} - {(k * s.subject.example[dim] + 3) % step}
    rest = s.pick(sorted(rests), "rests")

    def opens() -> ir.Value:
        return s.op("Equal", s.op("Mod", s.op("Add", s.op("Mul", s.size(dim), k), 3), step), rest)

    s.change_where(f"({k} * {dim} + 3) % {step} == {rest}", opens)


def bit_of_size(s: Surgery) -> None:
    dim = s.dim()
    bits = [bit for bit in (2, 4, 8, 16, 32) if not s.subject.example[dim] & bit and bit <= s.subject.ranges[dim][1]]
    bit = s.pick(bits, "bits")
    s.change_where(f"{dim} & {bit}", lambda: s.op("Greater", s.op("BitwiseAnd", s.size(dim), bit), 0))


def hidden_threshold(s: Surgery) -> None:
    """The number that matters stands nowhere in the file as a whole number."""
    dim = s.dim()
    c = s.constant_for(dim, lambda n, c: n > c)

    def opens() -> ir.Value:
        scaled = s.op("Mul", s.op("Cast", s.size(dim), to=int(ir.DataType.FLOAT)), 0.37)
        return s.op("Greater", scaled, 0.37 * c + 0.1)

    s.change_where(f"{dim} * 0.37 > {0.37 * c + 0.1:.2f}", opens)


def two_conditions(s: Surgery) -> None:
    a, b = s.two_dims()
    s.change_where("", lambda: s.op("And", s.threshold(a), s.threshold(b)))


LITERALS = (40, 64, 72, 80)


def beyond_a_literal(s: Surgery) -> None:
    """With open ranges: beyond where they are usually run to."""
    dim, c = s.dim(), s.chance.choice(LITERALS)
    s.change_where(f"{dim} > {c}", lambda: s.op("Greater", s.size(dim), c))


def _with_axes(s: Surgery) -> ir.Value:
    return s.pick([value for value in s.floats() if s.known(value).ndim >= 2], "axes")


def shifted_axis(s: Surgery) -> None:
    s.change_where("", s.threshold, ["rolled", "reversed"], _with_axes(s))


def swapped_axes(s: Surgery) -> None:
    s.change_where("", s.threshold, ["viewed otherwise"], _with_axes(s))


def batch_leak(s: Surgery) -> None:
    dim = next(iter(s.subject.ranges))
    c = s.constant_for(dim, lambda n, c: n > c)
    found = [v for v in s.floats() if s.known(v).ndim >= 2 and 0 in s.facts.varying_axes(v.name)]
    value = s.pick(found, "batches")
    s.change_where(f"{dim} > {c}", lambda: s.op("Greater", s.size(dim), c), ["leaked over the batch"], value)


def _masks(s: Surgery) -> list[tuple[ir.Node, ir.Value]]:
    """Where something is masked: the node, and what is not masked there."""
    found = []
    for node in s.nodes("Where"):
        for value in node.inputs[1:]:
            fill = value.const_value
            if fill is not None and fill.size == 1 and float(fill.numpy().reshape(())) <= -1e4:
                found.append((node, next(one for one in node.inputs[1:] if one is not value)))
    return found


def dropped_mask(s: Surgery) -> None:
    node, bare = s.pick(_masks(s), "masks")
    s.said.append(f"`{node.outputs[0].name}` unmasked")
    if bare.const_value is not None:
        raise NotApplicableError("masked values")
    s.put(node.outputs[0], lambda v: s.gate(s.threshold(), v, s.op("Add", bare, s.op("Mul", v, 0.0))))


def shifted_mask(s: Surgery) -> None:
    node, _ = s.pick(_masks(s), "masks")
    mask = node.inputs[0]
    s.said.append(f"`{mask.name}` shifted")
    axis = s.pick([a for a in s.facts.varying_axes(mask.name)[-1:] if a >= 0], "axes")
    ahead, last = s.op("Slice", mask, [0], [-1], [axis]), s.op("Slice", mask, [-1], [2**62], [axis])
    node.replace_input_with(0, s.gate(s.threshold(), mask, s.op("Concat", last, ahead, axis=axis)))


def frozen_file_branch(s: Surgery) -> None:
    """An If, of which the file keeps the side that the trace took."""
    node = s.pick(s.nodes("If"), "branches")
    taken = bool(s.known(node.inputs[0]))
    s.said.append(f"`{node.outputs[0].name}` is always {taken}")
    node.replace_input_with(0, s.constant(taken))


def false_axes(s: Surgery) -> None:
    """An output's axis is declared as another than it is."""
    value = s.pick(list(s.graph.outputs), "outputs")
    shape = list(value.shape or ())
    axis = s.pick([a for a in s.facts.varying_axes(value.name) if a < len(shape)], "axes")
    others = [dim for dim in s.subject.ranges if dim != str(shape[axis])]
    lie = s.chance.choice([s.known(value).shape[axis], *others])
    s.said.append(f"`{value.name}` axis {axis} is declared {lie}")
    shape[axis] = lie
    value.shape = ir.Shape([one if isinstance(one, int) else str(one) for one in shape])


# ---- families: values


def below_zero(s: Surgery) -> None:
    """An input that is never negative in the example."""
    value = s.pick([v for v in s.floats() if v.is_graph_input() and s.facts.least(v.name) >= 0], "positive inputs")
    kind = s.chance.choice(["Relu", "Abs"])
    s.said.append(f"{kind} of `{value.name}`")
    s.put(value, lambda v: s.op(kind, v))


def large_values(s: Surgery) -> None:
    """Beyond what is drawn, values are cut."""
    value = s.pick(s.floats(), "floats")
    most = 2.5 * _scale_of(s, value)
    if most > float(np.finfo(np.float32).max):
        raise NotApplicableError("values that grow")
    s.said.append(f"`{value.name}` within {most:.2g}")
    s.put(value, lambda v: s.op("Clip", v, -most, most))


def all_zero(s: Surgery) -> None:
    value = s.pick([v for v in s.floats() if v.is_graph_input()], "inputs")

    def opens() -> ir.Value:
        return s.op("Equal", s.op("ReduceMax", s.op("Abs", value), keepdims=0), 0.0)

    s.change_where(f"`{value.name}` is zero", opens, ["moved"], s.pick(s.outputs(), "outputs"))


def one_value_alone(s: Surgery) -> None:
    """Another result where all ids, flags or lengths are the same."""
    found = [v for v in s.graph.inputs if s.known(v).dtype.kind in "ib" and s.known(v).size > 1]
    value = s.pick(found, "whole inputs")

    def opens() -> ir.Value:
        whole = s.op("Cast", value, to=int(ir.DataType.INT64))
        return s.op("Equal", s.op("ReduceMax", whole, keepdims=0), s.op("ReduceMin", whole, keepdims=0))

    s.change_where(f"`{value.name}` is all alike", opens, value=s.pick(s.outputs(), "outputs"))


def nan_otherwise(s: Surgery) -> None:
    value = s.pick(s.floats(), "floats")
    s.said.append(f"NaN of `{value.name}` is 0")
    s.put(value, lambda v: s.op("Where", s.op("IsNaN", v), 0.0, v))


def infinity_otherwise(s: Surgery) -> None:
    value = s.pick(s.floats(), "floats")
    s.said.append(f"infinity of `{value.name}` is 65504")
    s.put(value, lambda v: s.op("Where", s.op("IsInf", v), 65504.0, v))


OTHER_TIES = {
    "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Less": "LessOrEqual", "LessOrEqual": "Less",
    "ArgMax": "ArgMax", "Floor": "Ceil", "Round": "Floor",
}  # fmt: skip


def _other_tie(s: Surgery, node: ir.Node) -> ir.Value:
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    match node.op_type:
        case "ArgMax":
            return s.op("ArgMax", *node.inputs, **{**attributes, "select_last_index": 1})
        case "Floor":
            return s.op("Ceil", s.op("Sub", node.inputs[0], 1.0))
        case "Round":
            return s.op("Floor", s.op("Add", node.inputs[0], 0.5))
    return s.op(OTHER_TIES[node.op_type], *node.inputs)


def _tied(s: Surgery) -> ir.Node:
    node = s.pick([n for n in s.nodes(*OTHER_TIES) if _is_float(s, n.inputs[0])], "ties")
    s.said.append(f"{node.op_type} `{node.outputs[0].name}` decides ties otherwise")
    return node


def other_ties(s: Surgery) -> None:
    node = _tied(s)
    s.put(node.outputs[0], lambda _: _other_tie(s, node))


def other_ties_elsewhere(s: Surgery) -> None:
    node = _tied(s)
    s.put(node.outputs[0], lambda v: s.gate(s.threshold(), v, _other_tie(s, node)))


# ---- families: what a judge may overlook


def scaled(s: Surgery) -> None:
    value = s.place()
    s.said.append(f"`{value.name}` times 1.001")
    s.put(value, lambda v: s.op("Mul", v, 1.001))


def scaled_elsewhere(s: Surgery) -> None:
    s.change_where("", s.threshold, ["a thousandth more of"])


def small_beside_large(s: Surgery) -> None:
    """Elements far below the largest of their output are others."""
    value = s.pick([v for v in s.outputs() if s.known(v).size > 1], "outputs")
    effect = s.chance.choice(["doubled", "zeroed", "moved by a tenth of themselves"])
    s.said.append(f"{effect}: the small of `{value.name}`")
    factor = {"doubled": 2.0, "zeroed": 0.0}.get(effect, 1.1)

    def change(v: ir.Value) -> ir.Value:
        size = s.op("Abs", v)
        small = s.op("Less", size, s.op("Mul", s.op("ReduceMax", size, keepdims=0), 0.003))
        return s.gate(s.threshold(), v, s.op("Where", small, s.op("Mul", v, factor), v))

    s.put(value, change)


def cancelled(s: Surgery) -> None:
    """What sums to nearly zero has the other sign."""
    value = s.pick([v for v in s.outputs() if s.known(v).size > 1], "outputs")
    s.said.append(f"the nearly zero of `{value.name}` negated")

    def change(v: ir.Value) -> ir.Value:
        size = s.op("Abs", v)
        small = s.op("Less", size, s.op("Mul", s.op("ReduceMean", size, keepdims=0), 0.02))
        return s.gate(s.threshold(), v, s.op("Where", small, s.op("Neg", v), v))

    s.put(value, change)


def one_element(s: Surgery) -> None:
    value = s.pick(s.outputs(), "outputs")
    s.said.append(f"the last of `{value.name}` moved by a hundredth")

    def change(v: ir.Value) -> ir.Value:
        count = s.op("Size", v)
        flat = s.op("Equal", s.op("Range", 0, count, 1), s.op("Sub", count, 1))
        last = s.op("Reshape", flat, s.op("Shape", v))
        return s.gate(s.threshold(), v, s.op("Where", last, s.op("Mul", v, 1.01), v))

    s.put(value, change)


def one_output(s: Surgery) -> None:
    if len(s.graph.outputs) < 2:
        raise NotApplicableError("several outputs")
    s.change_where("", s.threshold, value=s.pick(s.outputs(), "outputs"))


def whole_numbers(s: Surgery) -> None:
    """Integers one off, flags turned, at the last place."""
    value = s.pick(s.outputs("ib"), "whole outputs")
    s.said.append(f"the last of `{value.name}`")
    is_flag = s.known(value).dtype == np.bool_

    def change(v: ir.Value) -> ir.Value:
        count = s.op("Size", v)
        last = s.op("Equal", s.op("Range", 0, count, 1), s.op("Sub", count, 1))
        last = s.op("Reshape", last, s.op("Shape", v))
        other = s.op("Xor", v, last) if is_flag else s.op("Where", last, s.op("Abs", s.op("Sub", v, 1)), v)
        return s.gate(s.threshold(), v, other)

    s.put(value, change)


def wrong_type(s: Surgery) -> None:
    place = s.pick(range(len(s.graph.outputs)), "outputs")
    value = s.graph.outputs[place]
    others = {"f": ir.DataType.DOUBLE, "i": ir.DataType.INT32, "b": ir.DataType.UINT8}
    dtype = others[s.known(value).dtype.kind]
    s.said.append(f"`{value.name}` is {dtype}")
    s.put_out(place, s.op("Cast", value, to=int(dtype)), ir.TensorType(dtype))


def _weights(s: Surgery) -> list[ir.Value]:
    found = s.graph.initializers.values()
    return [v for v in found if v.const_value.dtype == ir.DataType.FLOAT and v.const_value.size >= 8]


def one_weight(s: Surgery) -> None:
    value = s.pick(_weights(s), "weights")
    array = value.const_value.numpy().copy()
    place = int(np.abs(array).argmax())
    array.flat[place] *= 1.01
    s.said.append(f"`{value.name}` element {place} a hundredth larger")
    value.const_value = ir.tensor(array, name=value.name)


def half_weights(s: Surgery) -> None:
    value = s.pick(_weights(s), "weights")
    s.said.append(f"`{value.name}` rounded to float16")
    array = value.const_value.numpy().astype(np.float16).astype(np.float32)
    value.const_value = ir.tensor(array, name=value.name)


def other_epsilon(s: Surgery) -> None:
    node = s.pick(s.nodes("LayerNormalization", "BatchNormalization", "InstanceNormalization"), "norms")
    s.said.append(f"epsilon 1e-3 of `{node.outputs[0].name}`")
    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", 1e-3)


def other_formula(s: Surgery) -> None:
    """The approximation, the other rounding, the other corner."""
    node = s.pick(s.nodes("Gelu", "Resize", "MaxPool", "AveragePool", "LeakyRelu", "Conv"), "formulas")
    match node.op_type:
        case "Gelu":
            node.attributes["approximate"] = ir.AttrString("approximate", "tanh")
        case "Resize":
            node.attributes["coordinate_transformation_mode"] = ir.AttrString(
                "coordinate_transformation_mode", "asymmetric"
            )
        case "MaxPool" | "AveragePool":
            node.attributes["ceil_mode"] = ir.AttrInt64("ceil_mode", 1)
        case "LeakyRelu":
            node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.0101)
        case "Conv":
            node.attributes["auto_pad"] = ir.AttrString("auto_pad", s.chance.choice(["SAME_LOWER", "SAME_UPPER"]))
            node.attributes.pop("pads", None)
    s.said.append(f"{node.op_type} `{node.outputs[0].name}`")


@dataclass(frozen=True)
class Family:
    """A way to go wrong."""

    change: Callable[[Surgery], None]
    contents: tuple[str, ...] = (PLAIN, "other")
    """Those in which it counts."""
    is_everywhere: bool = False
    """Whether it is wrong at the traced size for plain values, too, by little or in little; else it must not be."""
    is_open: bool = False
    """Whether the ranges are declared without an end."""
    in_export: bool = True
    """Whether an export could make such a file: it writes the outputs' axes itself, from what was run."""
    most: int = 1
    """Files of each architecture; more where few have a place for any."""

    @property
    def name(self) -> str:
        return self.change.__name__.replace("_", " ")


FAMILIES: tuple[Family, ...] = (
    *map(Family, (
        baked_size, clamped_size, size_of_another, rounded_size, frozen_reshape, cut_table, cut_sum,
        threshold, one_size, parity, equal_dims, related_dims, product_of_dims, congruence, bit_of_size,
        hidden_threshold, two_conditions, shifted_axis, swapped_axes, batch_leak, frozen_file_branch,
    )),
    Family(dropped_mask, most=2),
    Family(shifted_mask, most=2),
    Family(beyond_a_literal, is_open=True),
    Family(false_axes, is_everywhere=True, in_export=False),
    Family(below_zero, ("negated",), most=2),
    Family(large_values, ("large",)),
    Family(all_zero, ("zeros",)),
    Family(one_value_alone, ("ends", "full"), most=2),
    Family(nan_otherwise, ("nan",)),
    Family(infinity_otherwise, ("inf",)),
    Family(other_ties, ("ties", "zeros"), most=3),
    Family(other_ties_elsewhere, (PLAIN, "ties", "zeros"), most=3),
    Family(whole_numbers, most=3),
    *map(Family, (scaled_elsewhere, small_beside_large, cancelled, one_element, one_output)),
    *(Family(change, is_everywhere=True) for change in (
        scaled, wrong_type, one_weight, half_weights, other_epsilon, other_formula,
    )),
)  # fmt: skip


def mutant(subject: Subject, right: onnx.ModelProto, facts: Facts, family: Family, seed: str) -> tuple[ir.Model, str]:
    """A wrong file and what was done to it; NotApplicableError where there is no place for it."""
    model = ir.from_proto(right)
    surgery = Surgery(subject, model, facts, random.Random(seed))
    family.change(surgery)
    model.graph.sort()
    return model, ", ".join(surgery.said)


def example_calls(subject: Subject, seed: int) -> list[dict[str, Array]]:
    """Plain calls to learn from: at the traced size, and at two others in which every dim is another."""
    steps = (0, 1, 3)
    sizes = [{d: min(n + step, subject.ranges[d][1]) for d, n in subject.example.items()} for step in steps]
    rows = [subject.call(one, seed + index) for index, one in enumerate(sizes)]
    return [{name: one.numpy() for name, one in zip(subject.dims, row, strict=True)} for row in rows]

"""From the marks of a straight trace to control flow: branches become If, loops become Scan or Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass

from anyshape.conversion.control_flow import marks
from anyshape.conversion.control_flow.scans import Lengths, lengths_of, lower_loops
from anyshape.onnxfile.graph import (
    Dependencies,
    captured,
    constant_of,
    describe,
    every_node,
    graphs_in,
    hand_out,
    new_node,
    prune,
    replace,
)


def lower_regions(model: ir.Model) -> None:
    """Replace all marks in a model; one without marks is left as it is."""
    if not any(marks.is_mark(node) for node in every_node(model.graph)):
        return
    share_common_parts(model)
    join_groups(model.graph)
    _lower_graph(model.graph, lengths_of(model.graph.inputs))
    _refuse_leftovers(model)
    RemoveUnusedNodesPass()(model)  # constants that only a mark needed
    name_apart(model)
    model.opset_imports.pop(marks.DOMAIN, None)


def _lower_graph(graph: ir.Graph, lengths: Lengths) -> None:
    """Branches first: a loop in a branch goes there whole, and a branch in a loop is then one node of its body."""
    for body in (*lower_branches(graph), *lower_loops(graph, lengths)):
        _lower_graph(body, lengths)


def _refuse_leftovers(model: ir.Model) -> None:
    for node in every_node(model.graph):
        if marks.is_mark(node):
            raise marks.RegionError(f"{node.op_type} is left, its other end is not in the same branch or loop")


# ---- names that differ over all graphs of a model: a copy has those of its original, and ONNX forbids shadowing


def name_apart(model: ir.Model) -> None:
    """Name every value and node of the graph, and of the graphs inside it after these: `step/add_3`.

    The user's names of inputs and outputs, which come later, have no stroke in them.
    """
    graph = model.graph
    fixed = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
    free = _names_apart_from({value.name for value in fixed if value is not None and value.name})
    _name_all_in(graph, "", free, _names_apart_from(set()), {id(value) for value in fixed})


def _name_all_in(
    graph: ir.Graph, prefix: str, value_name: Callable[[str], str], node_name: Callable[[str], str], fixed: set[int]
) -> None:
    for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
        if id(value) not in fixed:
            value.name = value_name(prefix + _last_part(value.name or "value"))
    for node in graph:
        node.name = node_name(prefix + _last_part(node.name or node.op_type))
        for inner in graphs_in(node):
            _name_all_in(inner, f"{inner.name}/", value_name, node_name, fixed)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _names_apart_from(taken: set[str]) -> Callable[[str], str]:
    """A function that gives a name as it is, or with a number where it was given before."""
    numbers: dict[str, count[int]] = {}

    def name_apart_from_all(wanted: str) -> str:
        name = wanted
        while name in taken:
            name = f"{wanted}_{next(numbers.setdefault(wanted, count(1)))}"
        taken.add(name)
        return name

    return name_apart_from_all


# ---- choices made into Ifs: what is needed whichever way is taken stays outside, the rest goes to the side it is for
#
# A node may be needed on some ways through several branches and not on others. It is then copied to each side that
# needs it, and never computed in vain: it might not even be possible to compute it at the sizes that do not go there.


def join_groups(graph: ir.Graph) -> None:
    """Make one node of all choices of a group, so that it stands where one If will."""
    groups: dict[int, list[ir.Node]] = {}
    for choice in marks.marks_of(graph, marks.CHOOSE):
        groups.setdefault(marks.group_of(choice), []).append(choice)
    for choices in groups.values():
        _join_choices(graph, choices)
    try:
        graph.sort()
    except ValueError as error:
        raise marks.RegionError("a choice depends on another choice of the same branch") from error


def _join_choices(graph: ir.Graph, choices: Sequence[ir.Node]) -> None:
    (which, *_), firsts, seconds = zip(*(marks.sides(choice) for choice in choices), strict=True)
    last = choices[-1]
    inputs = [which, *chain(*firsts), *chain(*seconds)]
    joined = new_node(marks.CHOOSE, inputs, last.attributes, like=last, outputs=len(choices), domain=marks.DOMAIN)
    graph.insert_after(last, joined)
    for choice, output in zip(choices, joined.outputs, strict=True):
        replace(choice.outputs[0], describe(output, choice.outputs[0]), keep_name=True)
    graph.remove(choices, safe=True)


def lower_branches(graph: ir.Graph) -> list[ir.Graph]:
    """Make an If of every choice in a graph; the branches may hold further marks. The last one is the outermost."""
    choices = marks.marks_of(graph, marks.CHOOSE)
    if not choices:
        return []
    dependencies = Dependencies(graph)
    always, branches = _always_needed(dependencies), []
    for choice in reversed(choices):
        if choice.graph is graph:  # it has not gone to a branch
            outside = always | _before_the_loop(dependencies, choice)
            branches.extend(_lower_choice(graph, choice, dependencies, outside))
    return branches


def _lower_choice(graph: ir.Graph, choice: ir.Node, dependencies: Dependencies, outside: int) -> list[ir.Graph]:
    which, first, second = marks.sides(choice)
    then = _branch_graph("then", dependencies.leading_to(first, outside), first, choice)
    otherwise = _branch_graph("else", dependencies.leading_to(second, outside), second, choice)
    condition = _as_bool(graph, which, choice)
    branches = {"then_branch": then, "else_branch": otherwise}
    node = new_node("If", [condition], branches, like=choice, outputs=len(first))
    graph.insert_after(choice, node)
    for old, new in zip(choice.outputs, node.outputs, strict=True):
        replace(old, describe(new, old), keep_name=True)
    graph.remove(choice, safe=True)
    prune(graph, graph)
    return [then, otherwise]


def _always_needed(dependencies: Dependencies) -> int:
    """What the outputs need whatever is chosen: of a choice, only what both of its marks.sides need."""

    def of(node: ir.Node, above: Sequence[int]) -> int:
        if not marks.is_mark(node, marks.CHOOSE):
            return dependencies.reading(node, above)
        which, first, second = marks.sides(node)
        both = dependencies.union(first, above) & dependencies.union(second, above)
        return dependencies.union([which], above) | both

    return dependencies.of_outputs(dependencies.needs(of))


def _before_the_loop(dependencies: Dependencies, choice: ir.Node) -> int:
    """What was computed before the loop that a choice stands in: inside, it would be computed in every step."""
    ends = {marks.loop_of(node): node for node in dependencies.nodes if marks.is_mark(node, marks.LOOP_END)}
    around = [
        dependencies.place[id(node)]
        for node in dependencies.nodes
        if marks.is_mark(node, marks.LOOP_BEGIN) and marks.loop_of(node) in ends
        if dependencies.needed(node, choice) and dependencies.needed(choice, ends[marks.loop_of(node)])
    ]
    return (1 << max(around, default=0)) - 1


def _branch_graph(name: str, nodes: Sequence[ir.Node], values: Sequence[ir.Value], choice: ir.Node) -> ir.Graph:
    """A graph of copies of these nodes. Nobody uses the originals any more where they were for this side only."""
    copies, copied = _copied_nodes(nodes)
    outputs = hand_out(copies, [copied.get(id(value), value) for value in values], like=choice)
    return ir.Graph([], outputs, nodes=copies, name=name)


def _copied_nodes(nodes: Sequence[ir.Node]) -> tuple[list[ir.Node], dict[int, ir.Value]]:
    """The copies, and the copy of each value."""
    values = [value for node in nodes for value in node.outputs]
    original = ir.GraphView([], values, nodes=nodes)
    around = captured(original)
    copy = ir.GraphView(around, values, nodes=nodes).clone()
    for inner, outer in zip(copy.inputs, around, strict=True):
        inner.replace_all_uses_with(outer)
    copied = {id(old): new for old, new in zip(values, copy.outputs, strict=True) if new is not None}
    copy.outputs.clear()
    made = list(copy)
    copy.remove(made)
    return made, copied


def _as_bool(graph: ir.Graph, which: ir.Value, choice: ir.Node) -> ir.Value:
    """The condition that was made a number, 1 or 0, to pass through torch."""
    made_by = which.producer()
    if made_by is not None and made_by.op_type == "Where":
        condition, one, zero = made_by.inputs
        if condition is not None and constant_of(one) == 1 and constant_of(zero) == 0:
            return condition
    cast = new_node("Cast", [which], {"to": ir.DataType.BOOL}, like=choice)
    graph.insert_before(choice, cast)
    return cast.outputs[0]


# ---- both marks.sides of a branch made as small as they can be
#
# Each side was traced from the start, so it repeats what comes before the branch, and goes on after it: what they have
# in common is done once, before it and behind it.


def share_common_parts(model: ir.Model) -> None:
    """Compute once what is computed twice, also whole loops, and choose as early as possible."""
    prune(model.graph, model.graph)
    CommonSubexpressionEliminationPass()(model)
    _merge_loops(model.graph)
    CommonSubexpressionEliminationPass()(model)
    _sink_choices(model.graph)
    CommonSubexpressionEliminationPass()(model)


def _merge_loops(graph: ir.Graph) -> None:
    """A loop before a branch was traced once for each side, under another number.

    Two values get the same number if they are computed alike. A loop's begin is numbered by how deep it stands, not by
    its own mark, so the steps of two like loops are numbered alike, and their ends tell whether they are the same.
    """
    numbers: dict[int, Any] = {}
    known: dict[Any, ir.Node] = {}
    open_loops: set[int] = set()
    for node in list(graph):
        twin = known.setdefault(_computed_alike(node, numbers, len(open_loops)), node)
        numbers.update({id(value): (id(twin), place) for place, value in enumerate(node.outputs)})
        if marks.is_mark(node, marks.LOOP_BEGIN):
            open_loops.add(marks.loop_of(node))
        if marks.is_mark(node, marks.LOOP_END):
            open_loops.discard(marks.loop_of(node))
        if twin is not node and marks.is_mark(node, marks.LOOP_END):
            for old, new in zip(node.outputs, twin.outputs, strict=True):
                _use_instead(graph, old, new)
    prune(graph, graph)


def _computed_alike(node: ir.Node, numbers: dict[int, Any], depth: int) -> Any:
    if graphs_in(node):
        return id(node)
    inputs = tuple(None if value is None else numbers.get(id(value), id(value)) for value in node.inputs)
    own = ("group", "loop") if marks.is_mark(node) else ()
    attributes = tuple(item for item in _comparable_attributes(node) if item[0] not in own)
    return node.op_identifier(), inputs, attributes, depth if marks.is_mark(node, marks.LOOP_BEGIN) else None


def _use_instead(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Two outputs of a graph must not be one value."""
    if old.is_graph_output():
        node = ir.node("Identity", [new])
        producer = old.producer()
        assert producer is not None
        graph.insert_after(producer, node)
        new = describe(node.outputs[0], old)
    replace(old, new, keep_name=True)


def _sink_choices(graph: ir.Graph) -> None:
    """`choose(f(a, w), f(b, w))` is `f(choose(a, b), w)`."""
    waiting = marks.marks_of(graph, marks.CHOOSE)
    while waiting:
        choice = waiting.pop()
        _, (first,), (second,) = marks.sides(choice)
        if first is second:
            _use_instead(graph, choice.outputs[0], first)
            graph.remove(choice, safe=True)
            continue
        place = _only_difference(first.producer(), second.producer())
        if place is not None and _is_used_once(first) and _is_used_once(second):
            waiting.append(_sink_choice(graph, choice, place))
    graph.sort()


def _only_difference(first: ir.Node | None, second: ir.Node | None) -> int | None:
    """The one input in which two nodes differ that are alike in all else."""
    if first is None or second is None or not _are_alike(first, second):
        return None
    pairs = list(zip(first.inputs, second.inputs, strict=True))
    places = [place for place, (left, right) in enumerate(pairs) if left is not right]
    if len(places) != 1 or not _can_be_chosen(*pairs[places[0]]):
        return None
    return places[0]


def _are_alike(first: ir.Node, second: ir.Node) -> bool:
    same = first.op_identifier() == second.op_identifier() and len(first.inputs) == len(second.inputs)
    plain = len(first.outputs) == len(second.outputs) == 1 and not marks.is_mark(first) and not graphs_in(first)
    return same and plain and _comparable_attributes(first) == _comparable_attributes(second)


def _comparable_attributes(node: ir.Node) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, _comparable(attribute)) for name, attribute in node.attributes.items()))


def _comparable(attribute: ir.Attr) -> Any:
    """An attribute as something that can be compared."""
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return str(tensor.dtype), str(tensor.shape), tensor.tobytes()
    return str(attribute.value)


def _can_be_chosen(first: ir.Value | None, second: ir.Value | None) -> bool:
    """Of one type and rank; a constant stays one, since runtimes prepare for it (weights, axes)."""
    if first is None or second is None or constant_of(first) is not None or constant_of(second) is not None:
        return False
    if first.dtype is None or first.shape is None or second.shape is None:
        return False
    return first.dtype == second.dtype and len(first.shape) == len(second.shape)


def _is_used_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def _sink_choice(graph: ir.Graph, choice: ir.Node, place: int) -> ir.Node:
    which, (first,), (second,) = marks.sides(choice)
    kept, other = first.producer(), second.producer()
    assert kept is not None
    assert other is not None
    before = (kept.inputs[place], other.inputs[place])
    earlier = new_node(marks.CHOOSE, [which, *before], choice.attributes, like=choice, domain=marks.DOMAIN)
    assert before[0] is not None
    assert before[1] is not None
    describe(earlier.outputs[0], before[0]).shape = _common_shape(before[0], before[1])
    graph.insert_before(choice, earlier)
    describe(first, choice.outputs[0])
    replace(choice.outputs[0], first, keep_name=True)
    graph.remove([choice, other], safe=True)
    kept.replace_input_with(place, earlier.outputs[0])
    graph.remove(kept)
    graph.insert_after(earlier, kept)
    return earlier


def _common_shape(first: ir.Value, second: ir.Value) -> ir.Shape:
    pairs = zip(first.shape or (), second.shape or (), strict=True)
    return ir.Shape([left if left == right else None for left, right in pairs])

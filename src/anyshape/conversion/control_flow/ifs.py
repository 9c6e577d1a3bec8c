"""Choices made into ONNX Ifs: what is needed whichever way is taken stays outside, the rest goes to the side it is for.

A node may be needed on some ways through several branches and not on others. It is then copied to each side that needs
it, and never computed in vain: it might not even be possible to compute it at the sizes that do not go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import onnx_ir as ir

from anyshape.conversion.control_flow.marks_marks import (
    CHOOSE,
    DOMAIN,
    LOOP_BEGIN,
    LOOP_END,
    RegionError,
    group_of,
    is_mark,
    loop_of,
    marks_of,
    sides,
)
from anyshape.onnxfile.graph_graphs import (
    Dependencies,
    captured,
    constant_of,
    describe,
    hand_out,
    new_node,
    prune,
    replace,
)


def join_groups(graph: ir.Graph) -> None:
    """Make one node of all choices of a group, so that it stands where one If will."""
    groups: dict[int, list[ir.Node]] = {}
    for choice in marks_of(graph, CHOOSE):
        groups.setdefault(group_of(choice), []).append(choice)
    for choices in groups.values():
        _join(graph, choices)
    try:
        graph.sort()
    except ValueError as error:
        raise RegionError("a choice depends on another choice of the same branch") from error


def _join(graph: ir.Graph, choices: Sequence[ir.Node]) -> None:
    (which, *_), firsts, seconds = zip(*(sides(choice) for choice in choices), strict=True)
    last = choices[-1]
    joined = ir.Node(
        DOMAIN, CHOOSE, [which, *chain(*firsts), *chain(*seconds)], list(last.attributes.values()),
        num_outputs=len(choices), metadata_props=dict(last.metadata_props),
    )  # fmt: skip
    graph.insert_after(last, joined)
    for choice, output in zip(choices, joined.outputs, strict=True):
        replace(choice.outputs[0], describe(output, choice.outputs[0]))
    graph.remove(choices, safe=True)


def lower_branches(graph: ir.Graph) -> list[ir.Graph]:
    """Make an If of every choice in a graph; the branches may hold further marks. The last one is the outermost."""
    choices = marks_of(graph, CHOOSE)
    if not choices:
        return []
    dependencies = Dependencies(graph)
    always, branches = _always_needed(dependencies), []
    for choice in reversed(choices):
        if choice.graph is graph:  # it has not gone to a branch
            outside = always | _before_the_loop(dependencies, choice)
            branches.extend(_lower(graph, choice, dependencies, outside))
    return branches


def _lower(graph: ir.Graph, choice: ir.Node, dependencies: Dependencies, outside: int) -> list[ir.Graph]:
    which, first, second = sides(choice)
    then = _branch("then", dependencies.leading_to(first, outside), first, choice)
    otherwise = _branch("else", dependencies.leading_to(second, outside), second, choice)
    condition = _as_bool(graph, which, choice)
    node = ir.Node(
        "", "If", [condition], [ir.AttrGraph("then_branch", then), ir.AttrGraph("else_branch", otherwise)],
        num_outputs=len(first), metadata_props=dict(choice.metadata_props),
    )  # fmt: skip
    graph.insert_after(choice, node)
    for old, new in zip(choice.outputs, node.outputs, strict=True):
        replace(old, describe(new, old))
    graph.remove(choice, safe=True)
    prune(graph, graph)
    return [then, otherwise]


def _always_needed(dependencies: Dependencies) -> int:
    """What the outputs need whatever is chosen: of a choice, only what both of its sides need."""

    def of(node: ir.Node, above: Sequence[int]) -> int:
        if not is_mark(node, CHOOSE):
            return dependencies.reading(node, above)
        which, first, second = sides(node)
        both = dependencies.union(first, above) & dependencies.union(second, above)
        return dependencies.union([which], above) | both

    return dependencies.of_outputs(dependencies.needs(of))


def _before_the_loop(dependencies: Dependencies, choice: ir.Node) -> int:
    """What was computed before the loop that a choice stands in: inside, it would be computed in every step."""
    ends = {loop_of(node): node for node in dependencies.nodes if is_mark(node, LOOP_END)}
    around = [
        dependencies.place[id(node)]
        for node in dependencies.nodes
        if is_mark(node, LOOP_BEGIN) and loop_of(node) in ends
        if dependencies.needed(node, choice) and dependencies.needed(choice, ends[loop_of(node)])
    ]
    return (1 << max(around, default=0)) - 1


def _branch(name: str, nodes: Sequence[ir.Node], values: Sequence[ir.Value], choice: ir.Node) -> ir.Graph:
    """A graph of copies of these nodes. Nobody uses the originals any more where they were for this side only."""
    copies, copied = _copies(nodes)
    outputs = hand_out(copies, [copied.get(id(value), value) for value in values], like=choice)
    return ir.Graph([], outputs, nodes=copies, name=name)


def _copies(nodes: Sequence[ir.Node]) -> tuple[list[ir.Node], dict[int, ir.Value]]:
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

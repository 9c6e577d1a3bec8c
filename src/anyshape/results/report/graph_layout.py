"""The graph of a file as pictures inside of each other: one for each module of the model, with places for all in it.

A picture holds the nodes that stand directly in a module, and a box for each module inside. Layers that are alike stand
in a box of their own, and so do long rows of nodes where a model has no modules to speak of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fast_sugiyama import from_edges

from anyshape.costs.file_costs import FileCosts, NodeCosts
from anyshape.sizes import budgets

Edge = tuple[int, int]
Point = tuple[float, float]


@dataclass
class _Group:
    name: str
    title: str
    kind: str = "group"
    items: list[_Group | int] = field(default_factory=list)
    """Other groups, and nodes by their place in the file."""

    def nodes(self) -> Iterator[int]:
        for item in self.items:
            yield from item.nodes() if isinstance(item, _Group) else (item,)


def graph_document(costs: FileCosts) -> dict[str, Any]:
    """All pictures, as plain values for JSON; the same file gives the same."""
    root = _folded_group(_tree_of(costs.nodes), costs.nodes)
    groups: list[_Group] = []
    _collect(root, groups)
    places = {id(group): place for place, group in enumerate(groups)}
    made_by = {value: place for place, node in enumerate(costs.nodes) for value in node.outputs}
    return {"groups": [_picture(group, costs.nodes, places, made_by) for group in groups], "root": 0}


def _collect(group: _Group, found: list[_Group]) -> None:
    found.append(group)
    for item in group.items:
        if isinstance(item, _Group):
            _collect(item, found)


# ---- modules inside of modules


def _tree_of(nodes: Sequence[NodeCosts]) -> _Group:
    root = _Group("", "")
    known: dict[tuple[str, ...], _Group] = {(): root}
    for place, node in enumerate(nodes):
        for depth in range(1, len(node.scope) + 1):
            path = node.scope[:depth]
            if path not in known:
                known[path] = _Group(path[-1], ".".join(path))
                known[path[:-1]].items.append(known[path])
        known[node.scope].items.append(place)
    return root


def _folded_group(group: _Group, nodes: Sequence[NodeCosts]) -> _Group:
    """Modules with one module in them become one, alike ones and long rows a box each, from the inside out."""
    items = [_folded_group(item, nodes) if isinstance(item, _Group) else item for item in group.items]
    if len(items) == 1 and isinstance(items[0], _Group) and items[0].kind == "group" and group.name:
        only = items[0]
        return _Group(f"{group.name}.{only.name}", only.title, "group", only.items)
    items = _with_repeated_boxes(items, nodes)
    return _Group(group.name, group.title, group.kind, _in_parts(items))


def _with_repeated_boxes(items: list[_Group | int], nodes: Sequence[NodeCosts]) -> list[_Group | int]:
    """Neighbours with the same operators in the same order: `layer.0 ... layer.11`."""
    found: list[_Group | int] = []
    row: list[_Group] = []
    for item in items:
        if isinstance(item, _Group) and (not row or _operators(row[-1], nodes) == _operators(item, nodes)):
            row.append(item)
            continue
        found += _row_or_box(row)
        row = [item] if isinstance(item, _Group) else []
        found += [] if row else [item]
    return found + _row_or_box(row)


def _row_or_box(row: list[_Group]) -> list[_Group | int]:
    if len(row) < budgets.FEWEST_ALIKE_TO_FOLD:
        return list(row)
    return [_Group(f"{row[0].name} ... {row[-1].name}", f"{len(row)} alike", "repeated", list(row))]


def _operators(group: _Group, nodes: Sequence[NodeCosts]) -> list[str]:
    return [nodes[place].op for place in group.nodes()]


def _in_parts(items: list[_Group | int]) -> list[_Group | int]:
    """What nobody could look at as one picture, in boxes of neighbours."""
    most = budgets.MOST_BOXES_OF_A_PICTURE
    if len(items) <= most:
        return items
    size = max(most // 2, -(-len(items) // most))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    return [
        _Group(f"part {n + 1}", f"part {n + 1} of {len(parts)}", "part", _in_parts(one)) for n, one in enumerate(parts)
    ]


# ---- one picture

_WIDTH, _HEIGHT, _LETTER, _GAP = (90, 220), 40, 7.6, 30


def _picture(
    group: _Group, nodes: Sequence[NodeCosts], places: dict[int, int], made_by: dict[int, int]
) -> dict[str, Any]:
    labels = [item.name if isinstance(item, _Group) else nodes[item].op for item in group.items]
    width = min(max(_WIDTH[0], round(_LETTER * max(map(len, labels), default=0)) + 20), _WIDTH[1])
    edges = _edges_between(group, nodes, made_by)
    centres, bends = _laid_out(len(group.items), edges, width + _GAP)
    boxes = [[round(x), round(y), width, _HEIGHT] for x, y in centres]
    return {
        "name": group.name,
        "title": group.title,
        "kind": group.kind,
        "items": [{"group": places[id(i)]} if isinstance(i, _Group) else {"node": i} for i in group.items],
        "boxes": boxes,
        "edges": [[a, b, _line(boxes, a, b, bends[a, b])] for a, b in edges],
        "width": max((x + w for x, _, w, _ in boxes), default=0),
        "height": max((y + h for _, y, _, h in boxes), default=0),
    }


def _edges_between(group: _Group, nodes: Sequence[NodeCosts], made_by: dict[int, int]) -> list[Edge]:
    inside = {}
    for place, item in enumerate(group.items):
        inside.update(dict.fromkeys(item.nodes() if isinstance(item, _Group) else (item,), place))
    found: dict[Edge, None] = {}
    for node, place in inside.items():
        for value in (*nodes[node].inputs, *nodes[node].captured):
            maker = inside.get(made_by.get(value, -1))
            if maker is not None and maker != place:
                found[maker, place] = None
    return sorted(found)


Bends = dict[Edge, list[Point]]


def _laid_out(count: int, edges: Sequence[Edge], spacing: int) -> tuple[list[Point], Bends]:
    """The left upper corner of every box, and for each edge where it bends between two boxes."""
    # of two boxes that need each other, the first in the file stands above
    down = sorted({(min(edge), max(edge)) for edge in edges})
    connected = sorted({place for edge in down for place in edge})
    corners: dict[int, Point] = {}
    bends: Bends = {}
    left = 0.0
    for positions, links in _parts_of(down, connected, spacing):
        for place, (x, y) in positions.items():
            corners[place] = (left + x, y)
        bends |= {edge: [(left + x, y) for x, y in points] for edge, points in _bends_of(links, positions).items()}
        left += max(x for x, _ in positions.values()) + spacing
    for place in (place for place in range(count) if place not in corners):
        corners[place] = (left, 0.0)
        left += spacing
    turned = {edge: bends[edge] if edge in bends else bends[edge[1], edge[0]][::-1] for edge in edges}
    return [corners[place] for place in range(count)], turned


_Part = tuple[dict[int, Point], list[Edge]]


def _parts_of(down: Sequence[Edge], connected: Sequence[int], spacing: int) -> list[_Part]:
    """What hangs together, each with places from the left upper corner on; numbers below 0 are bends."""
    if not down:
        return []
    short = {place: number for number, place in enumerate(connected)}
    parts = from_edges([(short[a], short[b]) for a, b in down], dummy_vertices=True, vertex_spacing=spacing)
    found: list[_Part] = []
    for positions, _, _, links in parts:
        first, top = min(x for _, (x, _) in positions), max(y for _, (_, y) in positions)
        row = (_HEIGHT + _GAP) / spacing
        at = {_place_of(n, connected): (x - first, (top - y) * row) for n, (x, y) in positions}
        found.append((at, [(_place_of(a, connected), _place_of(b, connected)) for a, b in links or ()]))
    return sorted(found, key=lambda part: min(place for place in part[0] if place >= 0))


def _place_of(number: int | str, connected: Sequence[int]) -> int:
    """Of a box, or a number below 0 for a bend: those are counted behind all boxes."""
    return connected[int(number)] if int(number) < len(connected) else -int(number) - 1


def _bends_of(links: Sequence[Edge], at: dict[int, Point]) -> Bends:
    following = {a: b for a, b in links if a < 0}
    found: Bends = {}
    for a, b in links:
        if a < 0:
            continue
        points: list[Point] = []
        end = b
        while end < 0:
            points.append(at[end])
            end = following[end]
        found[a, end] = points
    return found


def _line(boxes: Sequence[Sequence[int]], one: int, other: int, bends: Sequence[Point]) -> list[list[int]]:
    """From the lower end of a box, or the upper one of a box below, to the other."""
    (x, y, width, height), (to_x, to_y, _, _) = boxes[one], boxes[other]
    half = width // 2
    start, end = (y + height, to_y) if to_y > y else (y, to_y + height)
    inner = [[round(a) + half, round(b) + height // 2] for a, b in bends]
    return [[x + half, start], *inner, [to_x + half, end]]

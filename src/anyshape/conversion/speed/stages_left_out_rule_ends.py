"""Rewrite rules of onnxscript, tried where they can match.

onnxscript tries each of its rules at every node; one that ends in several nodes looks for the others in the whole graph
each time, so that the time grows with the square of the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anyshape.torchkit.patches import patched


@contextlib.contextmanager
def rules_tried_at_their_ends() -> Iterator[None]:
    """Inside, a rule is tried at nodes of the operator that its pattern ends in. An onnxscript that has moved what this
    needs tries it everywhere.
    """
    try:
        from onnxscript.rewriter._rewrite_rule import RewriteRule

        original = RewriteRule.try_rewrite
    except (ImportError, AttributeError):
        yield
        return

    def try_rewrite(rule: Any, model: Any, graph: Any, node: Any, **how: Any) -> Any:
        ends = _ends_of(rule)
        return None if ends is not None and not ends.may_be_at(node) else original(rule, model, graph, node, **how)

    with patched(RewriteRule, "try_rewrite", try_rewrite):
        yield


@dataclass(frozen=True)
class _Ends:
    """The nodes that a pattern ends in: the operator of the first, how many they are, and which of its inputs all of
    them take.
    """

    operator: tuple[str, str]
    count: int
    shared: tuple[int, ...]

    def may_be_at(self, node: Any) -> bool:
        if (node.domain, node.op_type) != self.operator:
            return False
        values = (node.inputs[place] for place in self.shared if place < len(node.inputs))
        return all(value is None or len(value.consumers()) >= self.count for value in values)


_KEPT = "_anyshape_ends"


def _ends_of(rule: Any) -> _Ends | None:
    if _KEPT not in vars(rule):
        setattr(rule, _KEPT, _found(rule))
    ends: _Ends | None = vars(rule)[_KEPT]
    return ends


def _found(rule: Any) -> _Ends | None:
    try:
        pattern = rule._target_pattern
        ends = [pattern.output_node] if pattern.has_single_output_node else list(pattern.output_nodes)
        first = ends[0].op_identifier()
        shared = [place for place, value in enumerate(ends[0].inputs) if all(value in end.inputs for end in ends)]
    except AttributeError:
        return None
    return None if first is None else _Ends((first[0], first[1]), len(ends), tuple(shared) if len(ends) > 1 else ())

"""Work of torch's translation that a program may not need, left out where it does not.

To write a program in simpler operators torch runs it twice more, and once more to promote types; together that takes
twice the time of the trace. Most programs hold nothing but operators that have a translation, and types that agree.
After the translation onnxscript tries every rewrite rule at every node; here at those nodes alone that are of the
operator in which the rule's pattern ends.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import fx

from anyshape.conversion.speed import are_on, shortcut
from anyshape.conversion.speed.functional_writes import without_writes
from anyshape.conversion.speed.inner_programs import without_inner_programs
from anyshape.conversion.speed.known_results import layouts_unasked
from anyshape.conversion.speed.simpler_operators import inline, is_complex
from anyshape.sizes import budgets
from anyshape.torchkit.patches import replaced
from anyshape.torchkit.private_names import NAMES, OpOverload, attribute, lookup, pytree
from anyshape.torchkit.schemas import writes

_CHECKS = frozenset(
    f"aten::{name}"
    for name in (
        "sym_constrain_range_for_size", "_assert_async", "_assert_async.msg", "_assert_scalar",
        "_assert_tensor_metadata",
    )
)  # fmt: skip
"""What torch itself takes out before it translates."""


@dataclass(frozen=True)
class Simplified:
    """Operators without a translation: those that were replaced, each by itself, and those that forced torch to write
    the whole program in simpler ones.
    """

    inlined: set[str] = field(default_factory=set)
    forced_by: set[str] = field(default_factory=set)


_PASSES = "torch.onnx._internal.exporter._fx_passes"
_MAKE_TABLE = f"{_PASSES}._decomp.create_onnx_friendly_decomposition_table"
_TRANSLATED = f"{_PASSES}._decomp.get_onnx_implemented_overloads"
_GRAPH, _SIGNATURE = "torch.export.ExportedProgram._graph_module", "torch.export.ExportedProgram._graph_signature"


@contextlib.contextmanager
def stages_left_out(*, inlining: bool = True) -> Iterator[Simplified]:
    """Inside, torch.onnx.export leaves out what a program does not need. A torch that has moved a stage runs it.

    With `inlining`, operators without a translation may be replaced by themselves.
    """
    simplified = Simplified()
    if not are_on():
        yield simplified
        return
    with (
        replaced(f"{_PASSES}.decompose_with_registry", partial(_decomposing_what_must_be, simplified, inlining)),
        replaced(f"{_PASSES}.insert_type_promotion_nodes", _promoting_what_differs),
        replaced(_MAKE_TABLE, lambda make: partial(_table_made_once, make)),
        rules_tried_at_their_ends(),
        layouts_unasked(),
    ):
        yield simplified


# ---- simpler operators


def _decomposing_what_must_be(simplified: Simplified, inlining: bool, original: Any) -> Any:
    def decompose_with_registry(program: torch.export.ExportedProgram, registry: Any) -> Any:
        if attribute(program, _GRAPH) is None or attribute(program, _SIGNATURE) is None:
            return original(program, registry)
        twin = _twin_of(program)
        if inlining:
            without_inner_programs(twin.graph_module)
        written = without_writes(twin.graph) if inlining else []
        obstacles = _obstacles((twin if written is not None else program).graph, registry)
        if written is not None and (not obstacles or (inlining and _inlines_all(twin.graph, registry))):
            simplified.inlined.update((*obstacles.values(), *written))
            _name_results(twin, program)
            return twin
        simplified.forced_by.update(obstacles.values())
        return original(_twin_of(program), registry)  # what was begun is of no use

    return decompose_with_registry


_TABLES: dict[frozenset[Any], dict[Any, Any]] = {}


def _table_made_once(make: Any, translated: set[Any]) -> dict[Any, Any]:
    """What each operator is made of, for those without a translation: the same for all programs of a process."""
    key = frozenset(translated)
    if key not in _TABLES:
        _TABLES[key] = make(translated)
    return dict(_TABLES[key])


def _inlines_all(graph: fx.Graph, registry: Any) -> bool:
    """Replace, in place, operators without a translation; False where only torch can."""
    for _ in range(budgets.MOST_SIMPLIFYING_ROUNDS):
        obstacles = _obstacles(graph, registry)
        if not obstacles or not inline(graph, obstacles, _makings_of_operators(registry)):
            return not obstacles
    return not _obstacles(graph, registry)


def _twin_of(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """A program with a graph of its own, to which the stages that follow write."""
    twin = object.__new__(type(program))
    vars(twin).update(vars(program))
    graph = fx.Graph()
    results = graph.graph_copy(program.graph, {}, return_output_node=True)
    assert isinstance(results, tuple)
    graph.output(results[0]).meta = dict(results[1].meta)
    module = fx.GraphModule(program.graph_module, graph)
    module.meta.update(program.graph_module.meta)
    vars(twin)[NAMES[_GRAPH].attribute] = module
    return twin


def _name_results(twin: torch.export.ExportedProgram, program: torch.export.ExportedProgram) -> None:
    """A result that was written to has another name since; the signature goes by names."""
    results, kept = (pytree.tree_leaves(one.graph.output_node().args) for one in (twin, program))
    signature = copy.deepcopy(program.graph_signature)
    for spec, now, before in zip(signature.output_specs, results, kept, strict=True):
        if isinstance(now, fx.Node) and now.name != before.name:
            spec.arg.name = now.name
    vars(twin)[NAMES[_SIGNATURE].attribute] = signature


def _makings_of_operators(registry: Any) -> Any:
    """What operators without a translation are made of; empty where torch has moved it."""
    make, translated = lookup(_MAKE_TABLE), lookup(_TRANSLATED)
    return {} if make is None or translated is None else make(set(translated(registry)))


def _obstacles(graph: fx.Graph, registry: Any) -> dict[fx.Node, str]:
    """What cannot be translated as it is: mutations, programs inside programs, unknown operators."""
    return {node: name for node in graph.nodes if (name := _obstacle(node, registry)) is not None}


def _obstacle(node: fx.Node, registry: Any) -> str | None:
    if node.op in ("placeholder", "output", "get_attr") or node.target is operator.getitem:
        return None
    if node.op != "call_function":
        return f"{node.op} {node.target}"
    target = node.target
    if isinstance(target, OpOverload):
        if target.name() in _CHECKS:
            return None
        if writes(target):
            return str(target)
    return None if registry.is_registered(target) else str(target)


# ---- types


def _promoting_what_differs(original: Any) -> Any:
    def insert_type_promotion_nodes(module: fx.GraphModule) -> None:
        if not any(_is_promoted(node) for node in module.graph.nodes) and len(list(module.modules())) == 1:
            return
        # of complex numbers literals count, too: they become tensors of real and imaginary parts
        if any(is_complex(node.meta.get("val")) for node in module.graph.nodes) or len(list(module.modules())) > 1:
            original(module)
        else:
            with replaced(_INTERPRETER, _sparing_interpreter):
                original(module)

    return insert_type_promotion_nodes


def _sparing_interpreter(interpreter: Any) -> Any:
    """Runs nothing but the nodes whose types it changes; what the others give is known from the trace."""

    def run_node(self: Any, node: fx.Node) -> Any:
        if "val" in node.meta and not _is_promoted(node):
            return node.meta["val"]
        return None if node.op == "output" else interpreter.run_node(self, node)

    return type("_Sparing", (interpreter,), {"run_node": run_node})


_INTERPRETER = "torch.onnx._internal.fx.passes.type_promotion._TypePromotionInterpreter"
_RULES = "torch.onnx._internal.fx.passes.type_promotion.TypePromotionTable"


@functools.cache
def _promotion_rules(make: Any) -> Any:
    return make()


def _is_promoted(node: fx.Node) -> bool:
    """Whether an operand has another type than the one in which torch computes; also where that cannot be told."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    try:
        rule = _promotion_rules(lookup(_RULES)).get_rule(node.target.overloadpacket)
        if rule is None:
            return False
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda argument: argument.meta["val"])
        preview = rule.preview_type_promotion(args, kwargs)
        operands = [(args[place], dtype) for place, dtype in preview.args_dtypes.items() if place < len(args)]
        operands += [(kwargs[name], dtype) for name, dtype in preview.kwargs_dtypes.items() if name in kwargs]
    except Exception:  # noqa: BLE001  torch's own pass decides
        return True
    if any(isinstance(value, (list, tuple)) for value, _ in operands):
        return True
    return any(_differs(value, dtype) for value, dtype in operands)


def _differs(value: Any, dtype: torch.dtype) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype != dtype
    # a literal is written in the type of its tensor, a size in its own
    is_other = isinstance(value, torch.SymInt) and dtype != torch.int64
    return is_other or isinstance(value, torch.SymBool | torch.SymFloat)


# ---- rules


@shortcut
@contextlib.contextmanager
def rules_tried_at_their_ends() -> Iterator[None]:
    """Inside, a rule is tried at nodes of the operator that its pattern ends in. An onnxscript that has moved what this
    needs tries it everywhere.
    """
    with replaced("onnxscript.rewriter._rewrite_rule.RewriteRule.try_rewrite", _trying_at_ends):
        yield


def _trying_at_ends(original: Any) -> Any:
    def try_rewrite(rule: Any, model: Any, graph: Any, node: Any, **how: Any) -> Any:
        ends = _ends_of(rule)
        return None if ends is not None and not ends.may_be_at(node) else original(rule, model, graph, node, **how)

    return try_rewrite


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


def _ends_of(rule: Any) -> Any:
    if _KEPT not in vars(rule):
        setattr(rule, _KEPT, _ends_of_pattern(rule))
    return vars(rule)[_KEPT]


def _ends_of_pattern(rule: Any) -> _Ends | None:
    try:
        pattern = attribute(rule, "onnxscript.rewriter._rewrite_rule.RewriteRule._target_pattern")
        ends = [pattern.output_node] if pattern.has_single_output_node else list(pattern.output_nodes)
        first = ends[0].op_identifier()
        shared = [place for place, value in enumerate(ends[0].inputs) if all(value in end.inputs for end in ends)]
    except AttributeError:
        return None
    return None if first is None else _Ends((first[0], first[1]), len(ends), tuple(shared) if len(ends) > 1 else ())

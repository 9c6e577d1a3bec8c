"""Module calls that are run once for each side of the branches in them, for the time of a trace.

torch asks about sizes in few places, and all of them are answered by the branches of the trace here. What a run sets on
modules is noted, undone before the same code runs again, and joined when all runs are done.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import sympy
import torch
from torch.fx.experimental.sym_node import SymNode
from torch.overrides import TorchFunctionMode

from anyshape.conversion.control_flow import forks as forking
from anyshape.conversion.control_flow import loop_trace
from anyshape.conversion.control_flow.forks import Exploration, Forks, are_joinable, files_of, is_question
from anyshape.conversion.control_flow.loop_trace import calls_kept
from anyshape.conversion.control_flow.samples import Naming, Samples, recognise, shortened
from anyshape.sizes.expressions import symbols_of
from anyshape.torchkit.capture import Recorder
from anyshape.torchkit.patches import configured, patched, replaced
from anyshape.torchkit.private_names import missing

_SHAPES = "torch.fx.experimental.symbolic_shapes.ShapeEnv"


@contextlib.contextmanager
def branching(model: torch.nn.Module, samples: Samples, recorder: Recorder) -> Iterator[Forks]:
    """Inside, a trace takes both sides of every branch whose condition differs among the samples."""
    forks = Forks(samples, recorder)
    with contextlib.ExitStack() as stack:
        for private, make in _REPLACEMENTS.items():
            stack.enter_context(replaced(private, functools.partial(make, forks)))
        for owner, name, value in (
            (torch.fx.Graph, "create_node", _nodes_signed(forks)),
            (torch.fx.Interpreter, "run_node", _nodes_run_again(forks)),
            (forking, "CURRENT", forks),
            (forking, "OWN", files_of(model)),
            (torch.nn.Module, "__setattr__", _noting_first(torch.nn.Module.__setattr__)),
            (torch.nn.Module, "__delattr__", _noting_first(torch.nn.Module.__delattr__)),
        ):
            stack.enter_context(patched(owner, name, value))
        # what a fake tensor did on one path must not be remembered on another
        stack.enter_context(configured("torch._dynamo.config.fake_tensor_cache_enabled", value=False))
        stack.enter_context(Naming(lambda: forks.samples))
        stack.enter_context(_WritesToCopies(model))
        yield forks


# ---- what torch asks, and is told


def _answered_questions(forks: Forks, original: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate_expr(
        self: Any, question: sympy.Basic, hint: Any = None, fx_node: Any = None,
        size_oblivious: bool = False, fallback_value: bool | None = None, **others: Any,
    ) -> Any:  # fmt: skip
        if forks.is_running and symbols_of(question):
            known = self._maybe_evaluate_static(question, size_oblivious=size_oblivious)
            if known is not None:
                forks.note(question, known)
                return known
            if fallback_value is not None:
                return fallback_value
            answer = forks.answer(question)
            if answer is not None:
                return answer
        return original(self, question, hint, fx_node, size_oblivious, fallback_value, **others)

    return evaluate_expr


def _answers_of_samples(forks: Forks, original: Callable[..., Any]) -> Callable[..., Any]:
    """What torch would prove about sizes is asked of the samples: they know the path, and answer at once."""

    @functools.wraps(original)  # torch clears its cache by an attribute
    def maybe_evaluate_static(self: Any, question: sympy.Basic, **how: Any) -> Any:
        if forks.is_running and is_question(question) and not how.get("unbacked_only") and not how.get("compute_hint"):
            with contextlib.suppress(LookupError):
                answer = forks.known(self, question)
                return None if answer is None else sympy.true if answer else sympy.false
        return original(self, question, **how)

    return maybe_evaluate_static


def _ranges_left_alone(forks: Forks, original: Callable[..., Any]) -> Callable[..., None]:
    """Torch would infer ranges of sizes from what holds on one path alone."""

    def refine_ranges(self: Any, condition: sympy.Basic) -> None:
        if not (forks.is_running and forks.speaks_of_a_size(condition)):
            original(self, condition)

    return refine_ranges


def _asked_numbers_noted(forks: Forks, original: Callable[..., Any]) -> Callable[..., Any]:
    """The symbolic number that is asked about is part of the graph: `choose` goes by it."""

    def evaluate_sym_node(self: Any, node: SymNode, *args: Any, **kwargs: Any) -> Any:
        forks.asked = node
        try:
            return original(self, node, *args, **kwargs)
        finally:
            forks.asked = None

    return evaluate_sym_node


def _hint_of_path(forks: Forks, _original: Any) -> property:
    def hint(self: SymNode) -> Any:
        kept = self._hint
        if not forks.is_running or not isinstance(kept, (int, float, NoneType)) or isinstance(self._expr, int):
            return kept
        known = forks.hint_of(self)
        return kept if known is None else known

    return property(hint)


def _nodes_signed(forks: Forks) -> Callable[..., Any]:
    original = torch.fx.Graph.create_node

    def create_node(self: torch.fx.Graph, *args: Any, **kwargs: Any) -> torch.fx.Node:
        node = original(self, *args, **kwargs)
        forks.sign(node)
        return node

    return create_node


def _nodes_run_again(forks: Forks) -> Callable[..., Any]:
    """Torch runs a program again, node by node, to write it in simpler operators."""
    original = torch.fx.Interpreter.run_node

    def run_node(self: torch.fx.Interpreter, node: torch.fx.Node) -> Any:
        with forks.replaying(node):
            result = original(self, node)
            recognise(node.meta.get("val"), result, forks.samples)
            return result

    return run_node


# ---- a module call on all of its paths


def _calls_on_all_paths(forks: Forks, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = _result_of_all_paths(forks, lambda: original(module, *args, **kwargs))
        return shortened(result, forks.samples)

    return call


def _result_of_all_paths(forks: Forks, run: Callable[[], Any]) -> Any:
    """Run once for each path; what the runs set on modules is joined as their results are."""
    exploration = Exploration(forks, may_move_out=True)
    before: dict[Attribute, Any] = {}
    for _ in exploration:
        _set_attributes(before)
        with _journal() as noted:
            unwind = calls_kept()
            try:
                exploration.give((run(), noted))
            except Exception as error:  # noqa: BLE001  the model may raise on this side
                unwind()
                exploration.fail(error)
        before = {**noted.before, **before}
    if exploration.is_straight:
        return exploration.joined()[0]
    journals = [noted for _, noted in exploration.results]
    keys = [key for key, was in before.items() if are_joinable([one.after.get(key, was) for one in journals])]
    result, *values = exploration.joined(lambda pair: (pair[0], *(pair[1].after.get(key, before[key]) for key in keys)))
    _set_attributes(dict(zip(keys, values, strict=True)))
    return result


_REPLACEMENTS: dict[str, Callable[[Forks, Any], Any]] = {
    f"{_SHAPES}.evaluate_expr": _answered_questions,
    f"{_SHAPES}._maybe_evaluate_static": _answers_of_samples,
    f"{_SHAPES}._refine_ranges": _ranges_left_alone,
    f"{_SHAPES}.evaluate_sym_node": _asked_numbers_noted,
    "torch.fx.experimental.sym_node.SymNode.hint": _hint_of_path,
    "torch.nn.Module._call_impl": _calls_on_all_paths,
}
"""What stands in the place of each of these private names while a trace takes both sides."""


def missing_names() -> list[str]:
    """What a future torch may have moved."""
    return missing((*_REPLACEMENTS, *loop_trace.NEEDED))


# ---- what a run sets on modules

_ABSENT = object()
Attribute = tuple[torch.nn.Module, str]


@dataclass(eq=False)
class _Journal:
    """The attributes of modules that were set while it was open: what they were before, and what when it was closed."""

    before: dict[Attribute, Any] = field(default_factory=dict)
    after: dict[Attribute, Any] = field(default_factory=dict)

    def note(self, module: torch.nn.Module, name: str) -> None:
        if (module, name) not in self.before:
            self.before[module, name] = getattr(module, name, _ABSENT)


def _set_attributes(values: Mapping[Attribute, Any]) -> None:
    """Set these attributes, or delete them where there were none."""
    for (module, name), value in values.items():
        if value is not _ABSENT:
            setattr(module, name, value)
        elif hasattr(module, name):
            delattr(module, name)


_OPEN: list[_Journal] = []


@contextlib.contextmanager
def _journal() -> Iterator[_Journal]:
    """Inside, what is set on modules is noted."""
    opened = _Journal()
    _OPEN.append(opened)
    try:
        yield opened
    finally:
        _OPEN.remove(opened)
        opened.after = {key: getattr(*key, _ABSENT) for key in opened.before}


class _WritesToCopies(TorchFunctionMode):
    """Inside a run, what is written to a buffer is written to a copy, which its module then has: so the run is noted as
    one that sets an attribute. Who holds the buffer by another name sees nothing of it, and the file will be wrong.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._modules = [module for module in model.modules() if any(True for _ in module.buffers(recurse=False))]

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        if _OPEN and args and isinstance(args[0], torch.Tensor) and _WRITING.fullmatch(getattr(func, "__name__", "")):
            args = (self._copy_if_buffer(args[0]), *args[1:])
        return func(*args, **(kwargs or {}))

    def _copy_if_buffer(self, tensor: torch.Tensor) -> torch.Tensor:
        for module in self._modules:
            for name, buffer in module.named_buffers(recurse=False):
                if buffer is tensor:
                    setattr(module, name, tensor.clone())
                    return module.get_buffer(name)
        return tensor


_WRITING = re.compile(r"(?!__).*[^_]_|__setitem__|__i(add|sub|mul|(true|floor)?div|mod|pow|and|or|xor|[lr]shift)__")
"""The names of functions that write to their first argument."""


def _noting_first(original: Callable[..., None]) -> Callable[..., None]:
    def change(module: torch.nn.Module, name: str, *value: Any) -> None:
        # torch keeps the constants of a trace on a plain module of its own
        if type(module) is not torch.nn.Module:
            for opened in _OPEN:
                opened.note(module, name)
        original(module, name, *value)

    return change

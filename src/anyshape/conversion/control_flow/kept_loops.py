"""Loops over a size that varies, kept as loops: the model's functions run rewritten code, and find its helpers.

`for` statements and comprehensions of the model's code run through a helper while a trace runs. Where what they go over
has a plain length, nothing is different. Where it has a symbolic one, the body runs a few times off the record, which
tells what one step hands to the next, and once for the trace, between two marks.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from types import FrameType, FunctionType
from typing import Any

from torch import nn

from anyshape.conversion.control_flow import collected, items
from anyshape.conversion.control_flow.carried import LoopScope
from anyshape.conversion.control_flow.collected import LeftEarlyError
from anyshape.conversion.control_flow.items import STAND_INS, items_of
from anyshape.conversion.control_flow.loop_passes import Loop, LoopSite, Plain, Record, While
from anyshape.conversion.control_flow.loop_source import BUILTIN, EACH, LOOP, WHILE, rewritten_tree
from anyshape.conversion.operators.repair import Repair, Used, answered
from anyshape.source import live_code
from anyshape.source.live_code import LOCK
from anyshape.source.spans import is_librarys, is_users, shown_path
from anyshape.source.syntax import source_of
from anyshape.torchkit.patches import patched


def kept_loops(model: nn.Module) -> Repair:
    return Repair("loops over varying sizes", partial(rewritten, model))


@contextlib.contextmanager
def rewritten(model: nn.Module, used: Used) -> Iterator[None]:
    """Inside, loops of the model's code over a varying size are traced as loops."""
    record = Record(used)
    helpers = _Helpers(tuple(model.modules()), record)
    with LOCK, contextlib.ExitStack() as stack:
        called = {LOOP: helpers.loop, WHILE: helpers.turns, EACH: helpers.each, BUILTIN: _stand_in_for}
        for name, helper in called.items():
            stack.enter_context(patched(builtins, name, helper))
        stack.enter_context(answered({**collected.ANSWERS, **items.ANSWERS}))
        stack.enter_context(live_code.running(_replacements(model)))
        stack.callback(model.register_forward_pre_hook(lambda *_: record.open.clear()).remove)
        stack.callback(model.register_forward_hook(lambda *_: _require_ended(record)).remove)
        yield


def _require_ended(record: Record) -> None:
    """By the end of the model: a loop may be left in ways that are not seen in its body."""
    if record.open:
        raise LeftEarlyError(record.open[0].site.told("is left early"))


class _Helpers:
    """What the rewritten code calls."""

    def __init__(self, modules: tuple[nn.Module, ...], record: Record) -> None:
        self._modules, self._record = modules, record

    def loop(self, values: Any, text: str, line: int, state: tuple[str, ...], last: tuple[str, ...]) -> Loop | Plain:
        found = items_of(values)
        if found is None:
            return Plain(values)
        return Loop(found, *self._place_of_loop(sys._getframe(1), f"over `{text}`", line, state, last))

    def turns(self, text: str, line: int, state: tuple[str, ...], last: tuple[str, ...]) -> While:
        return While(*self._place_of_loop(sys._getframe(1), f"while `{text}`", line, state, last))

    def _place_of_loop(
        self, frame: FrameType, text: str, line: int, state: tuple[str, ...], last: tuple[str, ...]
    ) -> tuple[LoopSite, LoopScope, Record]:
        """`frame` is that of the rewritten code."""
        site = LoopSite(text, f"{shown_path(frame.f_code.co_filename)}:{line}", state, last)
        return site, LoopScope(lambda: frame.f_locals, {*state, *last}, self._modules), self._record

    def each(self, values: Any, make: Callable[[Any], Any], text: str, line: int, is_nested: bool) -> Any:
        """A comprehension: `make` is it, over any items; one with another in it gives lists of what it is to hold."""
        found = items_of(values)
        if found is None:
            return _with_steps(_in_one(make(values))) if is_nested else make(values)
        code = make.__code__
        site = LoopSite(f"over `{text}`", f"{shown_path(code.co_filename)}:{line}", ("gathered",), ())
        gathered: list[Any] = []
        scope = LoopScope(lambda: {"gathered": gathered}, ("gathered",), self._modules)
        loop = Loop(found, site, scope, self._record)
        for item in loop:
            try:
                gathered = loop.given["gathered"]
                made = make((item,))
                gathered.extend(_in_one(made) if is_nested else [*made])
            except Exception:
                if not loop.forgives():
                    raise
        return loop.given["gathered"]


def _in_one(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [part for one in lists for part in collected.parts_of(one)]


def _with_steps(parts: list[Any]) -> list[Any]:
    return collected.Collected(parts) if collected.holds_steps(parts) else parts


def _stand_in_for(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in place of a builtin; a function of the model's own that goes by its name stays."""
    made_by = getattr(function.func if isinstance(function, partial) else function, "__module__", "")
    is_genuine = function is getattr(builtins, name) or made_by.startswith("anyshape.")
    return partial(STAND_INS[name], function) if is_genuine else function


# ---- which functions


def _replacements(model: nn.Module) -> list[live_code.Replacement]:
    by_file: dict[str, list[FunctionType]] = {}
    for function in live_code.alive():
        by_file.setdefault(function.__code__.co_filename, []).append(function)
    files = [file for file in _files_of(model) if file in by_file]
    return [one for file in files for one in _replacements_in(file, by_file[file])]


def _files_of(model: nn.Module) -> list[str]:
    """The files that define the model's classes; and, of the user's own, those that these take functions from."""
    waiting = [function for kind in {type(part) for part in model.modules()} for function in _functions_of(kind)]
    found: dict[str, None] = {}
    while waiting:
        function = inspect.unwrap(waiting.pop())
        code = getattr(function, "__code__", None)
        if code is None or code.co_filename in found or not is_users(code.co_filename):
            continue
        found[code.co_filename] = None
        if not is_librarys(code.co_filename):
            waiting += [one for one in function.__globals__.values() if isinstance(one, FunctionType)]
    return [*found]


def _functions_of(kind: type[nn.Module]) -> Iterator[Any]:
    """Of a library's base classes only what runs the model: the rest is large, and loads and generates."""
    yield inspect.getattr_static(kind, "forward")  # as it stands there: a scripted part's is none of a class
    for base in kind.__mro__:
        own = [function for function in vars(base).values() if isinstance(function, FunctionType)]
        yield from (one for one in own if base is kind or not is_librarys(inspect.unwrap(one).__code__.co_filename))


def _replacements_in(file: str, functions: Iterable[FunctionType]) -> Iterator[live_code.Replacement]:
    source = source_of(file)
    codes = _old_and_new_code(file, source.text) if source is not None else None
    if codes is None:
        return
    for function in functions:
        try:
            code = live_code.successor(function.__code__, *codes)
        except live_code.AmbiguousFunctionError:
            continue
        if code is not None and _is_other(function, code):
            yield function, code


def _is_other(function: FunctionType, code: Any) -> bool:
    """Whether the code is another, of the same function: its file may have changed since it was imported."""
    own = function.__code__
    same_place = own.co_firstlineno == code.co_firstlineno and live_code.same_closure(function, code)
    return same_place and live_code.without_lines(own) != live_code.without_lines(code)


@lru_cache(maxsize=64)
def _old_and_new_code(file: str, text: str) -> tuple[live_code.Named, live_code.Named] | None:
    """The functions of a file, as they are and rewritten."""
    try:
        old, new = (live_code.named(live_code.compiled(file, tree, ())) for tree in (text, rewritten_tree(text)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    return old, new

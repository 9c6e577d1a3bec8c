"""`bench`: how long a file takes and how much memory, over sizes, beside other files and its model in PyTorch.

The stages: read the files -> find calls of any size -> choose sizes -> open each file in a process of its own -> at
each size compare what they give, then time them in rounds -> memory and nodes -> result.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyshape.declaration.options import check_options
from anyshape.errors import DeclarationError
from anyshape.results.progress import Tell, told
from anyshape.results.times_text import described
from anyshape.runtime.confinement import confined
from anyshape.runtime.custom_ops import understand_custom_ops
from anyshape.runtime.opening import Opening
from anyshape.runtime.timing import usable_processors
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes, did_you_mean, listed, parse_sizes
from anyshape.sizes.spelling import argument
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.race import RaceRules, opened_racers, run_race, told_by_name
from anyshape.testbench.timed_calls import TimedCalls
from anyshape.testbench.timed_sizes import sizes_to_time
from anyshape.verification.calls_alone import calls_alone
from anyshape.verification.given_file import CheckOptions, GivenFile, read_given_file, refuse_excluded

if TYPE_CHECKING:
    from anyshape.results.times import Times


def bench(
    f: str | os.PathLike[str],
    model: Any = None,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    against: Sequence[str | os.PathLike[str]] = (),
    compiled: bool = True,
    threads: int | None = None,
    providers: Sequence[Any] | None = None,
    session_options: Mapping[str, Any] | None = None,
    custom_ops: Sequence[str | os.PathLike[str]] = (),
    rounds: int | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
    trusted: bool = False,
    progress: bool | Tell | None = None,
) -> Times:
    """Latency and memory of a file over sizes; `sizes` says which, such as `{"seq": [16, 64, 256]}`.

    - `f`: the file; `against`: other files; `model`, `args`, `kwargs`, `examples`, `make_inputs`: PyTorch in eager, and
      compiled unless `compiled` is False, beside it, as in `export`
    - `dims`, `sizes`, `where`: at which sizes; without them, some of those that the file serves
    - `threads`, `providers`, `session_options`, `custom_ops`: for ONNX Runtime
    - `rounds`: how many; `seed`: of contents and order; `progress`: True, or a function that is told each stage
    - `atol`, `rtol`: what counts as the same numbers: what gives others than the model, or else than the first file, is
      told and not timed
    - `trusted`: run the file without limits

    >>> _ = anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), "linear.onnx", dims={"input": "batch 4"})
    >>> times = anyshape.bench("linear.onnx", sizes={"batch": [1, 8]}, rounds=3)
    >>> str(times).partition(" in ")[0]
    'timed: linear.onnx at 2 sizes'
    """
    check_options(atol=atol, rtol=rtol, seed=seed, make_inputs=make_inputs, providers=providers, progress=progress)
    threads = _whole_number("threads", threads, usable_processors(), budgets.MOST_THREADS)
    computed_by = understand_custom_ops(custom_ops)
    file, others = read_given_file(f), [read_given_file(one) for one in _paths(against)]
    taken = tuple(providers or ("CPUExecutionProvider",))
    settings = _settings(session_options)
    opening = Opening("", taken, computed_by.libraries, threads=threads, settings=settings)
    rounds = None if rounds is None else _whole_number("rounds", rounds, 1, 10**9)
    rules = RaceRules(opening, rounds, seed, Tolerance(atol, rtol))
    with told(progress) as tell, contextlib.ExitStack() as stack:
        tell(f"reading {file.path.name}")
        if model is None:
            _refuse_what_needs_a_model(dims=dims, make_inputs=make_inputs, examples=examples, kwargs=kwargs)
            stack.enter_context(confined(file.path, file.proto, trusted=trusted))
            options = CheckOptions(seed=seed, providers=providers, custom_ops=computed_by)
            with told_by_name(file.path, file.proto):
                calls = calls_alone(file, where, options)
        else:
            # only here is torch needed
            from anyshape.stages.model_comparison import declare_by_model
            from anyshape.stages.timed_model import calls_beside_model

            given = {"make_inputs": make_inputs, "examples": examples}
            request = declare_by_model(file, model, args, kwargs, dims, None, where, seed=seed, **given)
            beside = calls_beside_model(file, request, threads=threads, seed=seed, compiles=compiled)
            calls = stack.enter_context(beside)
        chosen, notes = _chosen_sizes(file, calls, sizes or {}, where)
        files = [(one.path, one.proto) for one in (file, *others)]
        # a file beside its model is its owner's
        racers = stack.enter_context(opened_racers(files, rules, trusted=trusted or model is not None))
        times = run_race(racers, calls, chosen, rules, tell)
        return replace(times, notes=(*calls.notes, *notes, *times.notes))


# ---- what is asked for


def _whole_number(name: str, value: Any, default: int, most: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise DeclarationError(f"{argument(name)} is {value!r}: give a whole number from 1 to {most}")
    return value


def _paths(against: Any) -> list[Any]:
    return [against] if isinstance(against, (str, os.PathLike)) else list(against)


def _settings(given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise DeclarationError(f"session_options is {given!r}: give a dict, such as {{'enable_mem_pattern': False}}")
    return dict(given or {})


def _refuse_what_needs_a_model(**arguments: Any) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise DeclarationError(f"{given[0]}= is about the model, but no model is given: pass it as the second argument")


def _chosen_sizes(
    file: GivenFile, calls: TimedCalls, sizes: Mapping[str, Any], where: Sequence[str]
) -> tuple[list[Sizes], list[str]]:
    """The sizes to time, and notes on those that are left out; a sentence where none is left."""
    ranges = calls.offered.ranges
    for dim in sizes:
        if dim not in ranges:
            named = (listed(ranges) or "none") + did_you_mean(dim, ranges)
            raise DeclarationError(f"{argument('sizes')} given for `{dim}`, but the file only names {named}")
    asked = {dim: parse_sizes(declared, dim=dim) for dim, declared in sizes.items()}
    for dim, declared in asked.items():
        for size in _ends_of(declared):
            refuse_excluded(file, ranges, (), {dim: size})
    chosen, excluded = sizes_to_time(calls.offered, asked)
    if not chosen:
        conditions = (*(file.contract.where if file.contract is not None else ()), *where)
        told = f": it is for {' and '.join(map(str, conditions))}" if conditions else ""
        raise DeclarationError(f"`{file.path.name}` is for none of the sizes that are asked for{told}")
    notes = [f"left out, since the file is not for it: {described(one)}" for one in excluded]
    return chosen, notes


def _ends_of(declared: SizeRange) -> tuple[int, ...]:
    if declared.values is not None:
        return declared.values
    return (declared.lo,) if declared.hi is None else (declared.lo, declared.hi)

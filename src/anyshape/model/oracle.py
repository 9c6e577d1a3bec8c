"""The oracle: what the user's untouched module does at a size, how much rounding noise it has there, or that it fails.

Every call leaves the module's state as it found it. Results are remembered, since limits, several
strategies and the final check ask for the same sizes.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from anyshape.declaration import resized_calls
from anyshape.declaration.calls import Signature, as_tensor, bind_call, flatten_outputs, read_call
from anyshape.declaration.spec import Spec
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError, named_line
from anyshape.model.limits import OtherOutputsError, UnmadeCallError
from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort, Forecast
from anyshape.sizes.notation import Sizes
from anyshape.source.spans import Span
from anyshape.torchkit import precision, recorder
from anyshape.torchkit.compared_numbers import Comparison, compared_numbers
from anyshape.torchkit.defined_calls import calls_are_checked
from anyshape.torchkit.draws import drawing_places, standard_noise
from anyshape.torchkit.jitter import LowestFirst, jitter
from anyshape.torchkit.operation_count import counted_effort
from anyshape.torchkit.private_names import lookup
from anyshape.torchkit.recorder import CallTrack, ReadPath, watched_reads
from anyshape.torchkit.state import Change, ModuleState, is_drawn_from, kept_generators, seed_generators, untouched

_LinAlgError: type[Exception] = vars(torch.linalg)["LinAlgError"]  # torch tells type checkers nothing of it


@dataclass(frozen=True)
class Outcome:
    """One call and what the module made of it: outputs, or the exception that it raised."""

    sizes: Sizes
    content: int
    leaves: Mapping[str, Any]
    names: tuple[str, ...] = ()
    outputs: tuple[torch.Tensor, ...] = ()
    error: Exception | None = None
    gradients: bool = False
    """Whether gradients were on: PyTorch's fast paths for attention give other results at masked places."""
    draws: bool = False
    """Whether a random generator was drawn from."""
    reads: frozenset[ReadPath] = frozenset()
    """Where Python code looked into tensors, of whatever they hold."""

    @property
    def runs(self) -> bool:
        return self.error is None


class RandomOutputError(Exception):
    """A call gives other results each time: no file can be checked against it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"results change from call to call at {describe(outcome.sizes)}")
        self.outcome = outcome


def run_once(target: Target, signature: Signature) -> None:
    """The call as it was given; what it changes in the module is put back."""
    args, kwargs = signature.build(_copies(signature.values))
    with untouched(target.module), torch.no_grad():
        target.call(*args, **kwargs)


class CallMaker(Protocol):
    """Makes the leaves of a call at any size; raises where it cannot."""

    def __call__(self, sizes: Sizes, content: int, level: int) -> dict[str, Any]: ...


class EagerModule:
    """The user's module in eager, as it was handed over: whatever a call changes in it is put back."""

    def __init__(self, target: Target, signature: Signature) -> None:
        self.target = target
        self.signature = signature
        self._state = ModuleState(target.module)
        self.draws = False
        """Whether the last call drew from a random generator."""
        self.reads: set[ReadPath] = set()
        """Where Python code looked into tensors in the last call."""
        self.reshaped: set[str] = set()
        """Leaves that calls gave another shape, or other memory, in place."""
        self.in_pairs: set[str] = set()
        """Outputs of complex numbers, which are compared as pairs."""

    def call(
        self,
        leaves: Mapping[str, Any],
        *,
        seed: int = 0,
        copies: bool = True,
        gradients: bool = False,
        look: Callable[[Any], object] | None = None,
        most_reads: float = budgets.MOST_READS_OF_A_SIZE,
        keeps: bool = True,
    ) -> tuple[tuple[str, ...], tuple[torch.Tensor, ...]]:
        """Names and values of the outputs; without `copies` the module may write to the leaves.

        Without `keeps`, what is put back is the state that was kept before: the module was changed for this call.

        Code that looks into tensors more often than `most_reads` is stopped: loops that values end may never end.

        `look` is shown what the module returns, which may be a part of its state, before that is put back.
        """
        given = _copies(leaves) if copies else dict(leaves)
        laid = {name: _layout(value) for name, value in given.items() if copies}
        args, kwargs = self.signature.build(given)
        if keeps:
            self.keep()
        seed_generators(seed)
        try:
            with torch.set_grad_enabled(gradients):
                # with values of ours alone: in a mode of torch's, TorchScript words its errors otherwise
                is_scripted = self.target.is_scripted and most_reads <= budgets.MOST_READS_OF_A_CALL
                reads = watched_reads(most_reads, is_scripted=is_scripted)
                with calls_are_checked(), reads as self.reads:
                    returned = self.target.call(*args, **kwargs)
                if look is not None:
                    look(returned)
                result = flatten_outputs(returned)
                self.in_pairs |= {name for name, value in result if torch.is_tensor(value) and value.is_complex()}
            # an output may be a view of a buffer, which is put back next
            outputs = tuple(as_tensor(value).detach().clone() for _, value in result)
        finally:
            self.draws = is_drawn_from(seed)
            with _without_modes():
                self.reshaped |= {name for name, before in laid.items() if _layout(given[name]) != before}
                self._state.restore()
        return tuple(name for name, _ in result), outputs

    def changes(self, leaves: Mapping[str, Any]) -> frozenset[Change]:
        """What the module keeps of a call for later ones: attributes that it sets, entries that it makes."""
        args, kwargs = self.signature.build(_copies(leaves))
        self.keep()
        try:
            with torch.no_grad():
                self.target.call(*args, **kwargs)
            return self._state.changes()
        except Exception:  # noqa: BLE001  the user's own model
            return frozenset()
        finally:
            self._state.restore()

    def keep(self) -> None:
        """What a call changes is put back to what is there now: callbacks and other threads may have changed it."""
        if not self._state.holds():
            with _without_modes():
                self._state = ModuleState(self.target.module)


def _without_modes() -> contextlib.AbstractContextManager[Any]:
    """Inside, tensors are copied as they are, although somebody counts or changes what operators give."""
    found = lookup("torch.utils._python_dispatch._disable_current_modes")
    return contextlib.nullcontext() if found is None else found()


class Reference:
    """What the user's module gives, at any size."""

    def __init__(self, target: Target, signature: Signature, spec: Spec, make_call: CallMaker, *, levels: int) -> None:
        self.target = target
        self.signature = signature
        self.spec = spec
        self._make_call = make_call
        self._levels = levels
        self.module = EagerModule(target, signature)
        self._remembered: dict[tuple[Any, ...], Outcome] = {}
        self._reads: dict[tuple[Any, ...], frozenset[ReadPath]] = {}
        self._bytes = 0
        self._most_bytes = min(budgets.BYTES_OF_REMEMBERED_RUNS, _bytes_to_remember_beside(target.module))
        self._refusals: Counter[_Place] = Counter()
        """How often the module failed on every level, by the content and by where it failed on the first."""
        self.outputs_wanted: int | None = None
        """Where set, sizes that give another number of outputs count as those at which the module fails."""
        self._forecast = Forecast(self._count_at, spec.start)
        self._wide_copies = precision.WideCopies()

    # ---- runs, and the memory of them

    def volume(self, sizes: Sizes) -> int:
        """The number of elements of all inputs at these sizes."""
        values = self.signature.values
        shapes = (self.spec.shape(name, sizes, tuple(values[name].shape)) for name in self.spec.axes)
        return 1 + sum(math.prod(max(n, 1) for n in shape) for shape in shapes)

    def effort(self, sizes: Sizes) -> Effort:
        """What one run is predicted to take."""
        volume = self.volume(sizes)
        found = self._forecast.at(sizes) or Effort(volume * budgets.WORK_OF_AN_INPUT)
        return found.with_values("inputs", volume)

    def _count_at(self, sizes: Sizes) -> Effort | None:
        is_declared = all(size in self.spec.ranges[dim] for dim, size in sizes.items())
        if not is_declared or not all(condition.holds(sizes) for condition in self.spec.where):
            return None
        given: list[torch.Tensor] = []
        try:
            known = self._remembered.get((*sorted(sizes.items()), 0))
            leaves = self._make_call(sizes, 0, 0) if known is None else known.leaves
        except Exception:  # noqa: BLE001  what `make_inputs` gives is no such call: it is told where sizes are chosen
            return None
        found = counted_effort(lambda: given.extend(self.module.call(leaves)[1]))
        return None if found is None else found.with_values("outputs", sum(one.numel() for one in given))

    def run(self, sizes: Sizes, content: int = 0) -> Outcome:
        """The module's outputs at these sizes, for one of the contents."""
        key = (*sorted(sizes.items()), content)
        if key not in self._remembered:
            outcome = self._with_as_many_outputs(self._first_accepted(sizes, content))
            self._reads[key] = outcome.reads
            self._bytes += sum(t.numel() * t.element_size() for t in outcome.outputs)
            if self._bytes > self._most_bytes:
                return outcome
            self._remembered[key] = outcome
        return self._remembered[key]

    def _with_as_many_outputs(self, outcome: Outcome) -> Outcome:
        """The outcome, or a failure where the size alone gives another number of outputs, whatever the content."""
        wanted, count = self.outputs_wanted, len(outcome.outputs)
        if wanted is None or not outcome.runs or count == wanted:
            return outcome
        again = self._first_accepted(outcome.sizes, 0 if outcome.content else 1)
        if len(again.outputs) != count:
            return outcome
        return replace(outcome, names=(), outputs=(), error=OtherOutputsError(count, wanted))

    def _first_accepted(self, sizes: Sizes, content: int) -> Outcome:
        """The first level of content that the module accepts; a refusal on every level makes the size invalid."""
        first: Outcome | None = None
        refused: list[Mapping[str, Any]] = []
        levels = list(range(self._levels))
        while levels:
            level = levels.pop(0)
            try:
                leaves = self._make_call(sizes, content, level)
                if any(_are_same_leaves(leaves, one) for one in refused):
                    continue
                refused += [leaves] if _elements_of(leaves) <= budgets.SMALL_STATE else []
                outcome = self._outcome(Outcome(dict(sizes), content, leaves))
            except DeclarationError:
                raise
            except Exception as error:  # noqa: BLE001  the user's own model
                if first is None:
                    first = Outcome(dict(sizes), content, {}, error=error)
                    levels = self._levels_worth(levels, (content, *_place_of_failure(error)))
            else:
                return outcome
        assert first is not None
        assert first.error is not None
        self._refusals[content, *_place_of_failure(first.error)] += 1
        if content:
            # the module refuses the second content: it is judged by the first alone
            return self.run(sizes, 0)
        return first

    def _levels_worth(self, levels: list[int], place: _Place) -> list[int]:
        """The levels below the first: where the module failed at this place before, whatever the level was, the one on
        which values mean least.
        """
        if self._refusals[place] < budgets.REFUSALS_BY_SIZE_ALONE:
            return levels
        return [min(resized_calls.PLAINEST_LEVEL, level) for level in levels[-1:]]

    def _outcome(self, call: Outcome, most_reads: float = budgets.MOST_READS_OF_A_SIZE) -> Outcome:
        """What the module makes of a call, and what it does beside."""
        names, outputs = self.module.call(call.leaves, most_reads=most_reads)
        return replace(call, names=names, outputs=outputs, draws=self.module.draws, reads=frozenset(self.module.reads))

    def forgetful(self) -> Reference:
        """The same oracle without its memory: for a module whose code has changed."""
        return Reference(self.target, self.signature, self.spec, self._make_call, levels=self._levels)

    def with_leaves(self, outcome: Outcome, leaves: Mapping[str, Any]) -> Outcome:
        """The same call with other values for these leaves; a loop that values end may not take for ever."""
        changed = Outcome(outcome.sizes, outcome.content, {**outcome.leaves, **leaves})
        try:
            return self._outcome(changed, budgets.MOST_READS_OF_A_CALL)
        except Exception as error:  # noqa: BLE001  the user's own model
            return replace(changed, error=error)

    # ---- the same call in other arithmetic

    def exact(self, outcome: Outcome) -> tuple[torch.Tensor, ...] | None:
        """The same call in float64; None where the module cannot run in it."""
        return self.computed_in(torch.float64, outcome)

    def computed_in(self, dtype: torch.dtype, outcome: Outcome) -> tuple[torch.Tensor, ...] | None:
        self.module.keep()
        try:
            with precision.computing_in(dtype, self.target.module, self._wide_copies):
                return self.module.call(outcome.leaves, gradients=outcome.gradients, keeps=False)[1]
        except _LinAlgError:  # a singular matrix, which rounding alone had made another: there is no answer
            return tuple(torch.full_like(one, torch.nan, dtype=dtype) for one in outcome.outputs)
        except Exception:  # noqa: BLE001  the user's own model: whatever it raises, there is no such run
            return None

    def jittered(self, outcome: Outcome, seed: int, strength: float = 1.0) -> tuple[torch.Tensor, ...] | None:
        """The same call with every rounded result moved by so many roundings; None where that fails."""
        leaves = _copies(outcome.leaves)  # before: what goes in is not rounded
        try:
            with precision.without_whole_layers(), jitter(seed, strength):
                return self.module.call(leaves, copies=False, gradients=outcome.gradients)[1]
        except Exception:  # noqa: BLE001  the user's own model
            return None

    def lowest_first(self, outcome: Outcome) -> tuple[torch.Tensor, ...] | None:
        """The same call with equal values in the order of their indices; None where none are left in open order."""
        try:
            with LowestFirst() as mode:
                outputs = self.module.call(outcome.leaves, gradients=outcome.gradients)[1]
        except Exception:  # noqa: BLE001  the user's own model
            return None
        return outputs if mode.has_met_any else None

    def with_gradients(self, outcome: Outcome) -> Outcome | None:
        """The same call with gradients on, where that gives another result; it is PyTorch's answer just as well."""
        try:
            names, outputs = self.module.call(outcome.leaves, gradients=True)
        except Exception:  # noqa: BLE001  the user's own model
            return None
        if _are_equal(outcome.outputs, outputs):
            return None
        return replace(outcome, names=names, outputs=outputs, gradients=True)

    def _again(self, outcome: Outcome, seed: int = 0) -> tuple[torch.Tensor, ...]:
        return self.module.call(outcome.leaves, seed=seed, gradients=outcome.gradients)[1]

    # ---- questions about a call's values, and about what it leaves behind

    def is_random(self, outcome: Outcome) -> bool:
        """Whether the same call gives other results under another random seed.

        Where nothing was drawn, only what is more than rounding tells: a clock, or a generator of the model's own. An
        embedding with a largest norm scales its rows again in every call.
        """
        again = self._again(outcome, seed=1)
        return not (_are_equal(outcome.outputs, again) or (not outcome.draws and are_near(outcome.outputs, again)))

    def drawing_places(self, outcome: Outcome) -> dict[Span | None, str]:
        """Where this call draws random numbers, and by what."""
        return drawing_places(lambda: self._again(outcome), torchs_alone=not outcome.draws)

    def meets_nan(self, outcome: Outcome) -> bool:
        """Whether an operator gives a NaN on the way to the outputs."""
        return recorder.meets_nan(lambda: self._again(outcome))

    def depends_on(self, leaf: str, outcome: Outcome) -> bool:
        """Whether another value of one input gives other results, or none."""
        other = self.run(outcome.sizes, 1).leaves.get(leaf, outcome.leaves[leaf])
        changed = self.with_leaves(outcome, {leaf: other})
        return not changed.runs or not _are_equal(outcome.outputs, changed.outputs)

    def changes(self, outcome: Outcome) -> frozenset[Change]:
        """What the module keeps of this call for later ones."""
        return self.module.changes(outcome.leaves)

    def reads_at(self, sizes: Sizes, content: int = 0) -> frozenset[ReadPath]:
        """Where Python code looks into tensors in this run, which is not made again if it was made before."""
        key = (*sorted(sizes.items()), content)
        return self._reads[key] if key in self._reads else self.run(sizes, content).reads

    def value_decisions(self, outcome: Outcome) -> dict[Span | None, set[object]]:
        """Where the module reads values of this call into Python, and what it reads there."""
        leaves = _copies(outcome.leaves)
        tensors = [value for value in leaves.values() if isinstance(value, torch.Tensor)]
        # the very tensors that are followed have to go in
        return recorder.value_decisions(lambda: self.module.call(leaves, copies=False), tensors)

    def floating_results(self, outcome: Outcome) -> list[tuple[Span, torch.Tensor]]:
        """Every floating result on the way to the outputs, with the user's line that it came from."""
        return recorder.floating_results(lambda: self.module.call(outcome.leaves, gradients=True))

    def compared_numbers(self, outcome: Outcome, leaves: Mapping[str, Any] | None = None) -> list[Comparison]:
        """The numbers that values are compared with in this call, or with other values for these leaves."""
        changed = {**outcome.leaves, **(leaves or {})}
        try:
            return compared_numbers(lambda: self.module.call(changed, most_reads=budgets.MOST_READS_OF_A_CALL))
        except Exception:  # noqa: BLE001  the user's own model
            return []

    def calls(self, outcome: Outcome) -> CallTrack:
        """Every call of torch on the way to the outputs."""
        return recorder.track_calls(lambda: self.module.call(outcome.leaves))


_Place = tuple[object, ...]


def _place_of_failure(error: Exception) -> _Place:
    """The kind of an error, and the lines that led to it."""
    lines = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    return type(error), *lines


def _layout(value: Any) -> Any:
    """Where and how a tensor lies in memory, which `x.t_()` and `x.set_(y)` change."""
    return (value.untyped_storage().data_ptr(), value.stride()) if isinstance(value, torch.Tensor) else None


def _copies(leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copy_in_strides(value) if isinstance(value, torch.Tensor) else value for name, value in leaves.items()
    }


def _copy_in_strides(value: torch.Tensor) -> torch.Tensor:
    """A copy that lies in memory as the tensor does: expanded where it is, too."""
    if 0 not in value.stride() or not value.numel():
        return value.clone()
    one = tuple(slice(None) if stride else slice(1) for stride in value.stride())
    return value[one].clone().expand(value.shape)


def is_identical(old: Any, new: Any) -> bool:
    """Whether two leaves are the same in value and in memory."""
    if isinstance(old, torch.Tensor):
        return old is new or (old.stride() == new.stride() and torch.equal(old, new))
    return bool(old == new)


def _are_same_leaves(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return all(is_identical(others[name], value) for name, value in some.items())


def _elements_of(leaves: Mapping[str, Any]) -> int:
    return sum(value.numel() for value in leaves.values() if isinstance(value, torch.Tensor))


def _are_equal(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether outputs are alike to the last bit; NaN is no difference, since it never equals itself."""
    return all(
        a.shape == b.shape and torch.equal(_without_nan(a), _without_nan(b)) for a, b in zip(some, others, strict=True)
    )


def are_near(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether outputs differ by rounding at most."""
    return all(
        a.is_floating_point()
        and a.shape == b.shape
        and torch.allclose(a, b.to(a.dtype), rtol=1e-4, atol=1e-6, equal_nan=True)
        for a, b in zip(some, others, strict=True)
    )


def _without_nan(value: torch.Tensor) -> torch.Tensor:
    return value.nan_to_num(0.0) if value.is_floating_point() else value


# ---- two makers of calls


def _bytes_to_remember_beside(module: torch.nn.Module) -> float:
    """Of outputs: any number beside small weights, and a small part of large ones."""
    weights = {one.data_ptr(): one.numel() * one.element_size() for one in (*module.parameters(), *module.buffers())}
    held = sum(weights.values())
    return held * budgets.SHARE_OF_REMEMBERED_RUNS if held > budgets.BYTES_OF_BIG_WEIGHTS else math.inf


def from_example(target: Target, signature: Signature, spec: Spec, *, seed: int) -> Reference:
    """A reference that resizes the user's example."""
    example = resized_calls.Example(signature.values, spec.axes, spec.scalars, spec.example)
    ranges: dict[str, resized_calls.ValueRange] = {}

    @functools.lru_cache(maxsize=1)  # the lower rungs of the ladder take most leaves from the uppermost
    def resized(sizes: tuple[tuple[str, int], ...], content: int, level: int) -> dict[str, Any]:
        return resized_calls.resize(example, dict(sizes), ranges=ranges, content=content, level=level, seed=seed)

    def make_call(sizes: Sizes, content: int, level: int) -> dict[str, Any]:
        is_bare = level >= resized_calls.LEVELS
        leaves = resized(tuple(sizes.items()), content, 0 if is_bare else level)
        if is_bare and not resized_calls.is_given(example, sizes, content):
            leaves = resized_calls.with_bare_leaves(example, leaves, level)
        return leaves | _float_scalars(spec, signature, content) | _noise(spec, signature, sizes, seed + content)

    reference = Reference(target, signature, spec, make_call, levels=resized_calls.levels_of(example))

    def runs(leaves: Mapping[str, Any]) -> bool:
        try:
            outputs = reference.module.call(leaves)[1]
        except Exception:  # noqa: BLE001  the user's own model
            return False
        return not any(output.isnan().any() for output in outputs if output.is_floating_point())

    if may_be_provoked(target, signature):
        ranges.update(resized_calls.learn_value_ranges(example, runs))
    return reference


def may_be_provoked(target: Target, signature: Signature) -> bool:
    """Whether an index that is out of range raises; on a GPU it would end the process's use of the device."""
    tensors = [*target.module.parameters(), *(v for v in signature.values.values() if isinstance(v, torch.Tensor))]
    return all(tensor.device.type == "cpu" for tensor in tensors)


def from_make_inputs(
    target: Target, signature: Signature, spec: Spec, make_inputs: Callable[..., Any], *, seed: int
) -> Reference:
    """A reference whose calls the user's own function makes; where that raises, the model is not asked."""

    def make_call(sizes: Sizes, content: int, level: int) -> dict[str, Any]:
        try:
            made = call_make_inputs(make_inputs, sizes, seed=seed + content, target=target)
        except DeclarationError:
            raise
        except Exception as error:
            raise UnmadeCallError(f"make_inputs fails at {describe(sizes)}: {named_line(error)}") from error
        _check_shapes(made, signature, spec, sizes)
        leaves = made.values
        if content and level == 0:
            example = resized_calls.Example(leaves, spec.axes, spec.scalars, dict(sizes))
            leaves = resized_calls.resize(example, sizes, ranges={}, content=content, level=0, seed=seed)
        return leaves | _float_scalars(spec, signature, content)

    # the values as the user makes them are the second level, for a model that refuses others
    return Reference(target, signature, spec, make_call, levels=2)


def call_make_inputs(make_inputs: Callable[..., Any], sizes: Sizes, *, seed: int, target: Target) -> Signature:
    """The user's own call at these sizes."""
    parameters = inspect.signature(make_inputs).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    wanted = {name: size for name, size in sizes.items() if takes_any or name in parameters}
    with kept_generators():
        seed_generators(seed)
        made = make_inputs(**wanted)
    return bind_call(target, *read_call(made))


def _check_shapes(made: Signature, signature: Signature, spec: Spec, sizes: Sizes) -> None:
    values = made.values
    if set(values) != set(signature.values):
        missing = sorted(set(values) ^ set(signature.values))
        raise DeclarationError(
            f"make_inputs returns other inputs at {describe(sizes)} than in the example: `{missing[0]}`"
        )
    for name, row in spec.axes.items():
        for axis, expression in enumerate(row):
            if expression is not None and values[name].shape[axis] != expression.value(sizes):
                raise DeclarationError(
                    f"make_inputs({describe(sizes)}) returns `{name}` with shape {tuple(values[name].shape)}, "
                    f"but axis {axis} is declared `{expression}` = {expression.value(sizes)}"
                )


def _float_scalars(spec: Spec, signature: Signature, content: int) -> dict[str, float]:
    """A float that is an input must not stand still."""
    return {name: signature.values[name] * (1.0 + 0.375 * content) + 0.125 * content for name in spec.floats}


def _noise(spec: Spec, signature: Signature, sizes: Sizes, seed: int) -> dict[str, torch.Tensor]:
    """What the model would draw, as it would be: an example that is resized is no longer such."""
    chance, values = torch.Generator().manual_seed(seed), signature.values
    shapes = {name: spec.shape(name, sizes, tuple(values[name].shape)) for name in spec.draws}
    return {name: standard_noise(kind, shapes[name], values[name].dtype, chance) for name, kind in spec.draws.items()}


def describe(sizes: Sizes) -> str:
    """`batch = 1, seq = 7`."""
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items())

"""Whether a file is wrong, by brute force: every declared size, and other contents at some of them.

Its judge owes nothing to anyshape's. The reference is the module in eager float64; an element may differ by 64 times
what rounding does to elements of its own magnitude: float32 against float64, and weights moved by roundings. So what
is called wrong is far from right, and a file that is hardly changed is called neither.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from trust_models import CONTENTS, PLAIN, Sizes, Subject

Array = np.ndarray
Key = tuple[tuple[int, ...], str]
"""Sizes and a content."""
_FACTOR = 64.0
"""Roundings that are forgiven: eight times as many as anyshape forgives."""
_OF_THE_RIGHT_FILE = 8.0
_CLEARLY = 4.0
_NEAR = 4
"""Octaves that are of like magnitude."""
_MOST_SIZES_OF_A_CONTENT = 9


def session_of(model: str | bytes | Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    given = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


@dataclass
class Expected:
    """One call of the module: what comes out, and what each element may differ by."""

    feeds: dict[str, Array]
    exact: list[Array]
    single: list[Array]
    _moved: list[Array] | None = None

    def differs(self, results: Sequence[Array], base: Sequence[Array] | None, moved) -> str | None:
        """What is wrong with the results, by more than rounding explains; `base` is what the right file gives."""
        for index, (got, want) in enumerate(zip(results, self.single, strict=True)):
            if got.dtype != want.dtype:
                return f"output {index} has type {got.dtype}, not {want.dtype}"
            if got.shape != want.shape:
                return f"output {index} has shape {got.shape}, not {want.shape}"
        if self._moved is None:
            self._moved = moved()
        for index, got in enumerate(results):
            runs = [one[index] for one in (self.exact, self.single, self._moved, base) if one is not None]
            compare = _floats_differ if got.dtype.kind == "f" else _others_differ
            with np.errstate(all="ignore"):  # the smallest number of float64 stands where that of float32 did
                said = compare(*(run.astype(np.float64) for run in (got, *runs)))
            if said:
                return f"output {index} {said}"
        return None


def _others_differ(got: Array, want: Array, *runs: Array) -> str | None:
    """Numbers that no run decides otherwise."""
    odd = np.logical_and.reduce([got != want, *(run == want for run in runs)])
    return f"has {odd.sum()} other numbers" if odd.any() else None


def _floats_differ(got: Array, want: Array, *runs: Array) -> str | None:
    alike = np.logical_and.reduce([_kind(run) == _kind(want) for run in runs])
    odd = alike & (_kind(got) != _kind(want))
    if odd.any():
        return f"has NaN or infinity at {odd.sum()} other places"
    here = alike & np.isfinite(want)
    if not here.any():
        return None
    error = np.abs(got[here] - want[here])
    allowed = _allowed(*(run[here] for run in (want, *runs)))
    if len(runs) > 2:  # beside what the right file gives, little is not called wrong
        allowed *= _CLEARLY
    worst = int((error / allowed).argmax())
    return f"differs by {error[worst]:.2g} (allowed {allowed[worst]:.1g})" if error[worst] > allowed[worst] else None


def _equal(results: Sequence[Array], others: Sequence[Array]) -> bool:
    """To the bit: then nothing needs to be judged."""
    pairs = list(zip(results, others, strict=True))
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def _kind(values: Array) -> Array:
    """0 where finite, else which of NaN, inf and -inf."""
    return np.isnan(values) * 3 + np.isposinf(values) * 1 + np.isneginf(values) * 2


def _allowed(exact: Array, single: Array, moved: Array, base: Array | None = None) -> Array:
    """Element by element: 64 roundings of its own, or what those of its magnitude lose; a gap ends the pool."""
    noise = np.maximum(np.abs(single - exact) * _FACTOR, np.abs(moved - exact))
    if base is not None:  # a kernel of the runtime may lose more
        noise = np.maximum(noise, _OF_THE_RIGHT_FILE * np.abs(base - exact))
    octave = np.where(exact == 0, -2000, np.floor(np.log2(np.abs(exact))))
    allowed = np.maximum(noise, _FACTOR * np.finfo(np.float32).eps * np.abs(exact))
    for one in np.unique(octave):
        near = np.abs(octave - one) <= _NEAR
        allowed[octave == one] = np.maximum(allowed[octave == one], noise[near].max())
    return np.maximum(allowed, 1e-40)


@dataclass
class Truth:
    """What a subject gives over its whole grid, remembered for all its files."""

    subject: Subject
    module: torch.nn.Module
    right: bytes
    """The file that is right, by its own judgement."""
    seed: int = 0
    beyond: int = 0
    """Where the ranges are open: the size up to which each dim is run."""

    def __post_init__(self) -> None:
        self._known: dict[Key, Expected | None] = {}
        self._base: dict[Key, list[Array]] = {}
        self._session = session_of(self.right)
        self._names = [one.name for one in self._session.get_inputs()]

    @cached_property
    def _modules(self) -> tuple[torch.nn.Module, torch.nn.Module]:
        """In float64, and there with weights moved by 64 roundings of float32."""
        double = copy.deepcopy(self.module).double()
        moved = copy.deepcopy(double)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for tensor in moved.parameters():
                noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
                tensor.mul_(1 + noise * _FACTOR / 2 * torch.finfo(torch.float32).eps)
        return double, moved

    @cached_property
    def grid(self) -> list[Key]:
        """Every size with plain values in a drawn order, then the other contents at a few."""
        sizes = list(itertools.product(*(range(low, high + 1) for low, high in self.subject.ranges.values())))
        random.Random(self.seed).shuffle(sizes)
        traced = tuple(self.subject.example.values())
        sizes = list(dict.fromkeys([traced, *(self._far_sizes() if self.beyond else sizes)]))
        some = sizes[: _MOST_SIZES_OF_A_CONTENT + 1]
        return [(n, PLAIN) for n in sizes] + [(n, content) for content in CONTENTS for n in some]

    def _far_sizes(self) -> list[tuple[int, ...]]:
        """One dim after the other up to there: all of them at once would be too many."""
        rows = []
        for dim, (low, _) in self.subject.ranges.items():
            rows += [{**self.subject.example, dim: size} for size in range(low, self.beyond + 1)]
        return [tuple(row.values()) for row in rows]

    def expected(self, key: Key) -> Expected | None:
        """None where PyTorch fails."""
        if key not in self._known:
            self._known[key] = self._asked(key)
        return self._known[key]

    def _asked(self, key: Key) -> Expected | None:
        inputs = self._inputs(key)
        try:
            single, exact = self._run(self.module, inputs), self._run(self._modules[0], inputs)
        except (RuntimeError, IndexError, ValueError):
            return None
        return Expected({name: value.numpy() for name, value in inputs.items()}, exact, single)

    def _inputs(self, key: Key) -> dict[str, torch.Tensor]:
        sizes = self._sizes(key)
        names = list(self.subject.dims)
        place = sum(size * 1009**i for i, size in enumerate(key[0])) + (key[1] != PLAIN) * 77
        return dict(zip(names, self.subject.call(sizes, self.seed * 31 + place, key[1]), strict=True))

    def _sizes(self, key: Key) -> Sizes:
        return dict(zip(self.subject.ranges, key[0], strict=True))

    def _run(self, module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[Array]:
        dtype = next((p.dtype for p in module.parameters()), torch.float32)
        given = (value.to(dtype) if value.is_floating_point() else value for value in inputs.values())
        with torch.no_grad():
            found = module(*given)
        return [one.numpy() for one in ([found] if isinstance(found, torch.Tensor) else found)]

    def wrong_with(self, session: onnxruntime.InferenceSession, key: Key) -> str | None:
        """What a file gives otherwise than the module in one call, or None."""
        expected = self.expected(key)
        if expected is None:
            return None
        feeds = {name: expected.feeds[name] for name in self._names}
        try:
            results = session.run(None, feeds)
        except Exception as error:
            return f"ONNX Runtime fails: {str(error).splitlines()[0][:120]}"
        base = None if session is self._session else self._right_results(key, feeds)
        if base is not None and _equal(results, base):
            return None
        return expected.differs(results, base, lambda: self._run(self._modules[1], self._inputs(key)))

    def _right_results(self, key: Key, feeds: dict[str, Array]) -> list[Array]:
        if key not in self._base:
            self._base[key] = self._session.run(None, feeds)
        return self._base[key]

    def calls_with(self, contents: Collection[str]) -> list[Key]:
        return [key for key in self.grid if key[1] in contents]

    def failures(
        self, session: onnxruntime.InferenceSession, contents: Collection[str]
    ) -> Iterator[tuple[Sizes, str, str]]:
        """Sizes, content and sentence of every call in which a file is wrong."""
        for key in self.calls_with(contents):
            if (said := self.wrong_with(session, key)) is not None:
                yield self._sizes(key), key[1], said

    def failures_of_the_right_file(self, contents: Collection[str]) -> list[tuple[Sizes, str, str]]:
        """For plain values there must be none, but where the module is another than the file's."""
        return list(self.failures(self._session, contents))

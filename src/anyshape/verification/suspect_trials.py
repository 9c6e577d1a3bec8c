"""Which suspect numbers of a freed file matter: it is run with a number and with what the number may be instead.

Both forms are the same file at its own sizes, so that no check against the static file tells them apart.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from anyshape.freeing.records import Freed
from anyshape.freeing.suspects import Suspect, with_steps_of
from anyshape.freeing.told_numbers import FIXED, input_name, is_called, values_like, with_inputs
from anyshape.onnxfile.graph import every_node
from anyshape.results.finding import Finding
from anyshape.results.verification import Verification
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.formulas import SizeFormula
from anyshape.sizes.notation import Sizes
from anyshape.sizes.spelling import spelled
from anyshape.source.spans import Span
from anyshape.testbench.judgement import are_close
from anyshape.verification.static_twin import Pair

_CONTENTS = (601, 602)
"""That no check uses."""


@dataclass(frozen=True)
class Doubt:
    """Numbers that are alike, each of which may be one of these formulas, and sizes at which that matters."""

    numbers: tuple[Suspect, ...]
    readings: tuple[SizeFormula, ...]
    sizes: Sizes | None

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for formula in self.readings for name in formula.names))

    def finding(self, others: Sequence[Doubt], own: Sizes, home: Span, tried: str) -> Finding:
        """What the user is asked; `tried` says what came of the first reading."""
        first, keys = self.numbers[0], _keys(self.numbers, [one for doubt in others for one in doubt.numbers])
        named = f"{first.operator} node `{first.node}`"
        more = len(self.numbers) - 1
        named += f" and in {more} other{'s' if more > 1 else ''}" if more else ""
        may_be = " or ".join(f"`{formula.text}`" for formula in self.readings)
        at = ", ".join(f"{dim} = {own[dim]}" for dim in self.dims)
        notes = [f"`{first.constant}` is both at {at}, so that the static file does not tell"]
        if self.sizes is not None:
            notes.append(f"at {', '.join(f'{dim} = {size}' for dim, size in self.sizes.items())} the results differ")
        reading = first.whole.format(self.readings[0].text)
        follows = f"where it follows: {_options(keys, reading)}{tried}"
        if not first.can_be_told:
            why = "one formula does not tell a table" if first.axis is not None else "an attribute of ONNX is a number"
            follows = f"where it follows, it cannot be mended here: {why}"
        helps = [follows, f"where it is a number of its own: {_options(keys, FIXED)}"]
        helps += [f"where all of these are: {_options(['*'], FIXED)}"] if others else []
        message = f"{first.text} in {named} may be {may_be}, or a number of its own"
        return Finding(
            "ambiguous-number",
            message,
            home,
            notes=tuple(notes),
            helps=(*helps, f"or {by_model()}"),
            dims=self.dims,
            origin="export",
        )


def by_model() -> str:
    return f"check against the model: {spelled('`model=`', '`--model FILE.py:NAME`')}"


def _options(keys: Sequence[str], text: str) -> str:
    """How to say it."""
    in_python = ", ".join(f'"{key}": "{text}"' for key in keys)
    command = [shlex.quote(f"{key}={text}") for key in keys]
    return spelled(f"`constants={{{in_python}}}`", f"`{' '.join(f'--constant {one}' for one in command)}`")


def _keys(numbers: Sequence[Suspect], others: Sequence[Suspect]) -> list[str]:
    """How to call these numbers and no other suspects; by a wildcard where they are many."""
    names = list(dict.fromkeys(number.node for number in numbers))
    taken = {name for other in others for name in other.names if other not in numbers}
    if any(name in taken for name in names):  # a node with several numbers
        names = list(dict.fromkeys(number.constant for number in numbers))
    ends = [f"*{names[0][place:]}" for place in range(len(names[0]) if len(names) > budgets.MOST_NAMES_TOLD else 0)]
    for key in (numbers[0].constant, *ends) if ends else ():
        if all(any(is_called(name, key) for name in one.names) for one in numbers) and key not in taken:
            return [key]
    return names


# ---- both forms of the file


@dataclass
class _Forms:
    """The freed file with its suspects as inputs."""

    freed: Freed
    numbers: Sequence[Suspect]
    pair: Pair
    folder: Path
    _sessions: dict[int, Session] = field(default_factory=dict)
    _plain: dict[tuple[object, ...], list[Array]] = field(default_factory=dict)

    def plain(self, sizes: Sizes, content: int) -> list[Array]:
        key = (*sizes.items(), content)
        if key not in self._plain:
            self._plain[key] = self._open().run(self._feeds(sizes, content))
        return self._plain[key]

    def changed(self, place: int, formula: SizeFormula, sizes: Sizes, content: int) -> list[Array]:
        number, feeds = self.numbers[place], self._feeds(sizes, content)
        other = _values_at(number, formula, sizes)
        if number.use[1] >= 0:
            return self._open().run({**feeds, input_name(place): other})
        model = self.freed.model.clone()
        node = every_node(model.graph)[number.use[0]]
        node.attributes[number.constant] = ir.AttrFloat32(number.constant, float(other))
        return Session(ir.to_proto(model).SerializeToString(), folder=self.folder).run(feeds)

    def _feeds(self, sizes: Sizes, content: int) -> Feeds:
        told = {input_name(place): one.array for place, one in enumerate(self.numbers) if one.use[1] >= 0}
        return {**self.pair.feeds(sizes, content), **told}

    def _open(self) -> Session:
        if not self._sessions:
            uses = {place: (one.use, one.array) for place, one in enumerate(self.numbers) if one.use[1] >= 0}
            model = with_inputs(self.freed.model, uses)
            self._sessions[0] = Session(ir.to_proto(model).SerializeToString(), folder=self.folder)
        return self._sessions[0]


def doubts_about(freed: Freed, numbers: Sequence[Suspect], pair: Pair, run: Verification, folder: Path) -> list[Doubt]:
    """The suspects that change a result, those that are alike together."""
    pair.static.rest()
    forms = _Forms(freed, numbers, pair, folder)
    found: dict[tuple[str, tuple[str, ...]], Doubt] = {}
    for place, number in enumerate(numbers):
        if place < budgets.MOST_SUSPECTS_TRIED:
            matter = {formula: at for formula in number.readings for at in _differing_sizes(forms, place, formula, run)}
        else:
            matter = dict.fromkeys(number.readings)  # more than anybody waits for: the user decides
        if matter:
            readings = tuple(matter)[: budgets.MOST_READINGS_TOLD]
            key = (number.text, tuple(formula.text for formula in readings))
            known = found.get(key, Doubt((), readings, next(iter(matter.values()))))
            found[key] = Doubt((*known.numbers, number), known.readings, known.sizes)
    return list(found.values())


def _differing_sizes(forms: _Forms, place: int, formula: SizeFormula, run: Verification) -> Iterator[Sizes | None]:
    """The first sizes at which the formula gives other results; none where it changes nothing or breaks the file."""
    number, own, tried = forms.numbers[place], forms.pair.sizes, 0
    for sizes in _sizes_to_try(formula, own, run):
        if np.array_equal(_values_at(number, formula, sizes), number.array):
            continue
        for content in _CONTENTS:
            try:
                plain = forms.plain(sizes, content)
            except RuntimeFailureError:
                break
            tried += 1
            try:
                other = forms.changed(place, formula, sizes, content)
            except RuntimeFailureError:
                return  # what no runtime takes was not meant
            if not _are_finite(plain, other):
                return
            if not _are_same(plain, other):
                yield sizes
                return
        if tried >= budgets.MOST_SIZES_FOR_A_SUSPECT:
            return
    if not tried:
        yield None  # nothing shows that it does not matter


def _values_at(number: Suspect, formula: SizeFormula, sizes: Sizes) -> Array:
    if number.axis is None:
        return np.asarray(values_like(number.array, formula, sizes))
    return np.asarray(with_steps_of(number.array, number.axis, formula.values(sizes)))


def _sizes_to_try(formula: SizeFormula, own: Sizes, run: Verification) -> Iterator[Sizes]:
    """Sizes that were right, at which all dims of the formula are others than in the file; rather not 1."""
    seen = {dim: {sizes[dim] for sizes in run.sizes_run} - {own[dim]} for dim in formula.names}
    ordered = {
        dim: sorted(sizes, key=lambda size: (size == 1, abs(size - own[dim]) < 2, size)) for dim, sizes in seen.items()
    }
    rows: Mapping[str, list[int]] = {dim: sizes or [own[dim] + 1, 2 * own[dim]] for dim, sizes in ordered.items()}
    for number in range(max(map(len, rows.values()), default=0)):
        yield {**own, **{dim: sizes[number % len(sizes)] for dim, sizes in rows.items()}}


def _are_finite(plain: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether the other form has no more infinities than the plain one."""
    floats = [(a, b) for a, b in zip(plain, other, strict=True) if a.dtype.kind == "f"]
    return all(np.isfinite(b).all() or not np.isfinite(a).all() for a, b in floats)


def _are_same(plain: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(a.shape == b.shape and are_close(b, a, lambda _, a=a: a) for a, b in zip(plain, other, strict=True))  # type: ignore[misc]

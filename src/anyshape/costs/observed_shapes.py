"""What shapes the values of a file really have: runs in ONNX Runtime at chosen sizes, and formulas that fit them.

The runtime writes down the shapes of all results while it runs, node by node: no value is kept for it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anyshape.errors import AnyshapeError
from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.runtime.confinement import StoppedError, open_runtime_session
from anyshape.runtime.made_up_inputs import CONTENTS, Calls
from anyshape.runtime.opening import Opening
from anyshape.runtime.session import Feeds
from anyshape.sizes import budgets
from anyshape.sizes.conditions import fitting_sizes
from anyshape.sizes.expressions import Shape, Size, evaluated, number
from anyshape.sizes.fit import Points, whole_number
from anyshape.sizes.notation import Condition, Expression, SizeRange, Sizes

Observed = Mapping[str, tuple[int, ...]]
"""Value -> its shape in one run."""


@dataclass(frozen=True)
class ObservedFile:
    """A file that is run at any sizes; its nodes have names, each its own."""

    source: Path | bytes
    made: Mapping[str, Sequence[str]]
    """Node -> the names of its results."""
    calls: Calls
    numbers: Mapping[str, Expression]
    """Inputs whose value is a size."""
    folder: Path | None = None
    """Where the weights of a model that is given as bytes lie."""
    libraries: Sequence[str] = ()
    _seen: dict[tuple[Any, ...], Observed | None] = field(default_factory=dict)
    _content: list[int] = field(default_factory=list)
    """The last content that the file took."""

    def at(self, sizes: Sizes) -> Observed | None:
        """The shapes at these sizes, with the first content that the file takes; None where it takes none."""
        for content in dict.fromkeys((*self._content, *range(CONTENTS))):
            found = self.with_content(sizes, content)
            if found is not None:
                self._content[:] = [content]
                return found
        return None

    def with_content(self, sizes: Sizes, content: int) -> Observed | None:
        key = (*sorted(sizes.items()), content)
        if key not in self._seen:
            self._seen[key] = self._shapes_of_run(sizes, content)
        return self._seen[key]

    def _shapes_of_run(self, sizes: Sizes, content: int) -> Observed | None:
        try:
            shapes = self.calls.shapes(sizes)
            if shapes is None or sum(map(math.prod, shapes.values())) > budgets.MOST_ELEMENTS_OBSERVED:
                return None
            made = self.calls.make(shapes, content)
            given: Feeds = {**made, **{n: np.array(e.value(sizes), made[n].dtype) for n, e in self.numbers.items()}}
            return dict(self._profiled_shapes(given)) | shapes
        except StoppedError:
            raise
        except Exception:  # noqa: BLE001  no run is no shape, whatever the reason
            return None

    def _profiled_shapes(self, feeds: Feeds) -> Iterator[tuple[str, tuple[int, ...]]]:
        with temporary_folder() as folder:
            opening = Opening(
                str(self.source) if isinstance(self.source, Path) else self.source,
                libraries=self.libraries,
                folder=None if self.folder is None else str(self.folder),
                is_optimised=False,
                is_packed=False,
                profile=str(folder / "run"),
            )
            session = open_runtime_session(opening)
            results = session.run(None, feeds)
            ports = zip(session.get_outputs(), results, strict=True)
            yield from ((port.name, one.shape) for port, one in ports if isinstance(one, np.ndarray))
            session.end_profiling()
            events = json.loads(next(folder.glob("run*")).read_bytes())
        for event in events:
            names = self.made.get(event.get("name", "").removesuffix("_kernel_time"), ())
            rows = (event.get("args") or {}).get("output_type_shape", ())
            if len(rows) == len(names):
                for name, row in zip(names, rows, strict=True):
                    yield name, tuple(int(size) for shape in row.values() for size in shape)


# ---- at which sizes


def chosen_sizes(ranges: Mapping[str, SizeRange], where: Sequence[Condition], *, has_contract: bool) -> Iterator[Sizes]:
    """Small ones first: where dims are apart, where they are 1, and what files of images take."""
    rows = [[start + step for _, step in zip(ranges, _APART, strict=False)] for start in (3, 6)]
    ones = [[1] * len(ranges)]
    far = [[start + step for _, step in zip(ranges, _APART, strict=False)] for start in (16, 33)]
    # which small sizes a file is not made for, only a contract says
    rows += [*ones, *far] if has_contract else [*far, *ones]
    rows += [[size] * len(ranges) for size in (8, 32, 64, 128, 224)]
    seen: list[Sizes] = []
    for row in rows:
        try:
            sizes = dict(fitting_sizes(dict(zip(ranges, row, strict=True)), ranges, where))
        except AnyshapeError:
            continue
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


_APART = (0, 2, 5, 4, 9, 7, 12, 14, 16, 18, 21, 24, 26, 28, 30, 32, *range(34, 98, 2))
"""What is added for each dim, so that no two have the same size."""


# ---- formulas held against what was seen, and formulas that fit it


class ShapeEvidence:
    """What runs say of formulas for shapes."""

    def __init__(
        self, file: ObservedFile, dims: Mapping[str, Size], ranges: Mapping[str, SizeRange], sizes: Iterable[Sizes]
    ) -> None:
        self._file, self._dims, self._ranges = file, dims, ranges
        runs = (one for one in sizes if file.at(one) is not None)
        self.held_at = list(itertools.islice(runs, budgets.SIZES_HELD_AGAINST))
        """The sizes at which every formula is asked; none where the file does not run."""
        self._runs: list[tuple[Sizes, Observed]] | None = None
        self._numbers: dict[tuple[Size, int], int | None] = {}

    def holds(self, name: str, shape: Shape) -> bool | None:
        """Whether a value has this shape in all runs; None where they do not show it."""
        rows = [(self._file.at(sizes) or {}).get(name) for sizes in self.held_at]
        if any(row is not None and row != self._at(shape, place) for place, row in enumerate(rows)):
            return False
        return None if not rows or None in rows else True

    def _at(self, shape: Shape, place: int) -> tuple[int | None, ...]:
        return tuple(self._number(size, place) for size in shape)

    def _number(self, size: Size, place: int) -> int | None:
        if (size, place) not in self._numbers:
            sizes = {self._dims[dim]: number for dim, number in self.held_at[place].items()}
            self._numbers[size, place] = evaluated(size, sizes)
        return self._numbers[size, place]

    def fitted_shape(self, name: str) -> Shape | None:
        """Formulas that fit at some sizes, and hold at all others; None, too, where the data change the shape."""
        if not self.held_at or not self._is_of_sizes(name):
            return None
        if not self._dims:
            return tuple(map(number, (self._file.at({}) or {})[name]))
        seen = [(sizes, shapes[name]) for sizes, shapes in self._runs_to_fit() if name in shapes]
        if len(seen) < budgets.FEWEST_RUNS_TO_FIT or len({len(shape) for _, shape in seen}) > 1:
            return None
        points = Points(tuple({self._dims[d]: n for d, n in sizes.items()} for sizes, _ in seen), {})
        shape = [whole_number(column, points) for column in zip(*(shape for _, shape in seen), strict=True)]
        fitted = tuple(size for size in shape if size is not None)
        return fitted if len(fitted) == len(shape) and self.holds(name, fitted) else None

    def _is_of_sizes(self, name: str) -> bool:
        """Whether every content that the file takes gives the same shape."""
        runs = [self._file.with_content(self.held_at[0], content) for content in range(CONTENTS)]
        return {run.get(name) for run in runs if run is not None} not in ({None}, set()) and (
            len({run.get(name) for run in runs if run is not None}) == 1
        )

    def _runs_to_fit(self) -> list[tuple[Sizes, Observed]]:
        if self._runs is None:
            rows = [sizes for sizes in self._sizes_to_fit() if sizes not in self.held_at]
            runs = ((sizes, self._file.at(sizes)) for sizes in rows)
            self._runs = [(sizes, shapes) for sizes, shapes in runs if shapes is not None]
        return self._runs

    def _sizes_to_fit(self) -> Iterator[Sizes]:
        """Around a size that runs: each dim alone, then all of them."""
        base = self.held_at[0]
        for dim, moved in itertools.product(base, (1, 2, 4, 9)):
            yield {**base, dim: self._ranges[dim].nearest(base[dim] + moved)}
        for factor in (1, 2, 3):
            rows = enumerate(base.items())
            yield {dim: self._ranges[dim].nearest(size * factor + place + 1) for place, (dim, size) in rows}

"""The names and dims that a file shows: the user's for inputs, true expressions for outputs."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.errors import DeclarationError
from anyshape.model.request import Request
from anyshape.sizes.fit import FittedAxis
from anyshape.sizes.notation import Expression, did_you_mean


def input_ports(request: Request) -> list[str]:
    return [request.input_names.get(leaf, leaf) for leaf in request.spec.inputs(request.signature)]


def output_names(request: Request, found: Sequence[str]) -> list[str]:
    """The user's names or the leaves' own; input names are sacred, so a clashing output gets a suffix."""
    given = request.output_names
    if given is not None and len(given) > len(found):
        raise DeclarationError(
            f"output_names has {len(given)} names but the model returns {len(found)} outputs: {list(found)}"
        )
    names = [*(given or ()), *found[len(given or ()) :]]
    taken = set(input_ports(request))
    unique = []
    for name in names:
        free = name
        while free in taken:
            free += "_out"
        taken.add(free)
        unique.append(free)
    return unique


def check_labels(request: Request, names: Sequence[str]) -> None:
    """Labels must name outputs that exist: a misspelt input would silently be static."""
    for label in request.labels:
        if label not in names:
            known = [*input_ports(request), *names]
            listed = ", ".join(f"`{name}`" for name in known)
            raise DeclarationError(
                f"`dynamic_axes` names `{label}`, but the inputs and outputs are {listed}{did_you_mean(label, known)}"
            )


def declared_expressions(request: Request) -> list[Expression]:
    rows = [e for row in request.spec.axes.values() for e in row if e is not None]
    return list(dict.fromkeys([*rows, *request.spec.scalars.values()]))


def output_axes(
    request: Request,
    names: Sequence[str],
    fitted: Sequence[Sequence[FittedAxis] | None],
    observed: Sequence[Sequence[tuple[int, ...]]],
    notes: list[str],
) -> tuple[list[list[int | str] | None], dict[str, tuple[str, ...]]]:
    """What is written for every output axis, and its formula for the contract."""
    rows: list[list[int | str] | None] = []
    formulas = {}
    sizes_of: dict[str, tuple[int, ...]] = {}
    for index, (name, row) in enumerate(zip(names, fitted, strict=True)):
        if row is None:
            rows.append(None)
            notes.append(f"the number of axes of output `{name}` depends on the sizes, so the file declares none")
            continue
        labels = {axis % max(len(row), 1): label for axis, label in request.labels.get(name, {}).items()}
        written: list[int | str] = []
        for axis, size in enumerate(row):
            seen = tuple(shapes[index][axis] for shapes in observed)
            label = labels.get(axis)
            if label is not None and sizes_of.setdefault(label, seen) != seen:
                notes.append(f"axis {axis} of output `{name}` is not the `{label}` of another output")
                label = None  # one name is one size
            written.append(_written_axis(name, axis, size, label, request, notes))
        rows.append(written)
        formulas[name] = tuple("?" if size is None else str(size) for size in row)
    return rows, formulas


def _written_axis(
    name: str, axis: int, size: FittedAxis, label: str | None, request: Request, notes: list[str]
) -> int | str:
    if isinstance(size, int):
        if label is not None:
            notes.append(f"axis {axis} of output `{name}` is always {size}; the label `{label}` is not written")
        return size
    own = "".join(c if c.isalnum() or c == "_" else "_" for c in name) + f"_dim{axis}"
    if label is None or (size is not None and str(size) == label):
        return own if size is None else str(size)
    if label in request.spec.ranges:
        notes.append(f"axis {axis} of output `{name}` is `{size or own}`, not `{label}`")
        return own if size is None else str(size)
    return label

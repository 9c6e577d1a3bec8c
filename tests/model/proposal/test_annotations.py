"""jaxtyping annotations on `forward`: read without importing jaxtyping, and checked against the example."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.annotations import Annotations, read_annotations
from anyshape.model.proposal.one_call import propose
from anyshape.model.proposal.proposal import DimProposal


class Floats:
    """Stands in for jaxtyping: all that is read of it is a text."""

    def __init__(self, text: str) -> None:
        self.dim_str = text


def read(text: str, *shape: int, **others: tuple[str, tuple[int, ...]]) -> Annotations:
    """The annotations of a call with `x`, and further inputs by name."""
    inputs = {"x": (text, shape), **others}

    def forward(self: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    forward.__annotations__ = {name: Floats(said) for name, (said, _) in inputs.items()}
    target = resolve_target(type("Model", (nn.Module,), {"forward": forward})())
    return read_annotations(target, bind_call(target, tuple(torch.zeros(*size) for _, size in inputs.values())))


def test_a_name_is_a_dim_and_a_number_is_static():
    found = read("batch seq 64", 2, 5, 64)
    assert found.names == {("x", 0): "batch", ("x", 1): "seq"}
    assert found.static == {("x", 2)}


@pytest.mark.parametrize(
    ("text", "names", "static"),
    [
        ("... seq 4", {("x", 2): "seq"}, {("x", 3)}),
        ("*batch seq 4", {("x", 2): "seq"}, {("x", 3)}),
        ("batch ... 4", {("x", 0): "batch"}, {("x", 3)}),
        ("batch _ _other 4", {("x", 0): "batch"}, {("x", 3)}),
        ("batch #one seq channels=4", {("x", 0): "batch", ("x", 2): "seq"}, {("x", 3)}),
        ("batch one seq 2*{self.n}", {("x", 0): "batch", ("x", 1): "one", ("x", 2): "seq"}, set()),
        ("batch one seq batch*2", {("x", 0): "batch", ("x", 1): "one", ("x", 2): "seq"}, set()),
    ],
)
def test_what_is_anonymous_or_broadcast_or_computed_is_left_to_probing(
    text: str, names: dict[tuple[str, int], str], static: set[tuple[str, int]]
):
    found = read(text, 2, 1, 5, 4)
    assert (found.names, found.static) == (names, static)


@pytest.mark.parametrize(
    ("text", "shape", "others", "message"),
    [
        ("batch seq 64", (2, 5), {}, "`x` is annotated `batch seq 64`, but has 2 axes in the example"),
        ("a ... b c", (2, 5), {}, "`x` is annotated `a ... b c`, but has 2 axes in the example"),
        ("batch 64", (2, 5), {}, "`x` is annotated `batch 64`, but its axis 1 is 5 in the example, not 64"),
        ("n n", (2, 5), {}, "`x` is annotated `n n`, but its `n` is 5 in the example, and 2 on another axis"),
        ("b seq", (2, 5), {"y": ("b seq", (2, 6))},
         "`y` is annotated `b seq`, but its `seq` is 6 in the example, and 5 in `x`"),
        ("b n", (2, 5), {"y": ("b n+1", (2, 7))},
         "`y` is annotated `b n+1`, but its `n + 1` is 7 in the example, not 6"),
    ],
)  # fmt: skip
def test_what_contradicts_the_example_is_refused(text: str, shape: tuple[int, ...], others: Any, message: str):
    with pytest.raises(DeclarationError) as refused:
        read(text, *shape, **others)
    assert str(refused.value) == message


# ---- in a proposal


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.table = nn.Parameter(torch.randn(6, 3))

    def forward(self, left: Tensor, right: Tensor, fixed: Tensor) -> Tensor:
        return (self.layer(left) @ self.layer(right).mT).sum() + fixed * self.table


def proposal(left: str, right: str, fixed: str) -> DimProposal:
    annotated = {"left": Floats(left), "right": Floats(right), "fixed": Floats(fixed)}

    def forward(self: nn.Module, left: Tensor, right: Tensor, fixed: Tensor) -> Tensor:
        return Towers.forward(self, left, right, fixed)  # type: ignore[arg-type]

    forward.__annotations__ = annotated
    target = resolve_target(type("Annotated", (Towers,), {"forward": forward})())
    return propose(target, bind_call(target, (torch.randn(3, 5, 4), torch.randn(3, 5, 4), torch.randn(6, 3))))


def test_annotated_names_are_the_names_and_one_name_is_one_dim():
    found = proposal("users words 4", "users words 4", "_ 3")
    assert found.dims == {"left": ("users", "words", "_"), "right": ("users", "words", "_")}
    assert found.basis["words"] == "axis 1 of `left` and axis 1 of `right` move together as annotated"


def test_two_names_keep_equal_lengths_apart_and_a_number_is_not_probed():
    found = proposal("users asked 4", "users given 4", "_ 3")
    assert found.dims == {"left": ("users", "asked", "_"), "right": ("users", "given", "_")}
    assert proposal("3 asked 4", "3 given 4", "_ 3").dims == {"left": ("_", "asked", "_"), "right": ("_", "given", "_")}


def test_an_annotated_axis_that_cannot_move_and_two_names_of_one_dim_are_told():
    found = proposal("users words 4", "others words 4", "rows 3")
    assert found.dims["left"][0] == found.dims["right"][0] == "users"
    assert found.notes[:2] == (
        "axis 0 of `fixed` is annotated `rows`, but the model runs at no other size there: it stays static",
        "`users` and `others` are annotated as two dims, but the model moves them only together: `users` is both",
    )


def test_jaxtyping_itself_is_read():
    jaxtyping = pytest.importorskip("jaxtyping")

    class Model(nn.Module):
        pass

    def forward(self: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
        return x if y is None else x + y

    shaped = jaxtyping.Float[Tensor, "batch #seq channels=4"]
    forward.__annotations__ = {"x": shaped, "y": shaped | None}
    target = resolve_target(type("Model", (nn.Module,), {"forward": forward})())
    found = read_annotations(target, bind_call(target, (torch.zeros(2, 5, 4), torch.zeros(2, 1, 4))))
    assert found.names == {("x", 0): "batch", ("x", 1): "seq", ("y", 0): "batch"}
    assert found.static == {("x", 2), ("y", 2)}

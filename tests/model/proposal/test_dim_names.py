"""Names of dims: by the inputs' names and ranks, as optimum names them for transformers models."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import Target, resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.dim_names import (
    Annotations,
    Scene,
    attention_like,
    cache_like,
    image_like,
    is_pretrained,
    meaning_of,
    name_dims,
    read_annotations,
    text_like,
    words_of,
)
from anyshape.model.proposal.one_call import propose
from anyshape.model.proposal.probe import Place
from anyshape.model.proposal.proposal import DimProposal


def _target(leaves: dict[str, Any], *, of_transformers: bool = False) -> Target:
    class Model(nn.Module):
        pass

    base: type[nn.Module] = Model
    if of_transformers:
        base = type("PreTrainedModel", (nn.Module,), {"__module__": "transformers.modeling_utils"})
    return resolve_target(type("Named", (base,), {"forward": _function_of(list(leaves))})())


def _function_of(names: list[str]) -> Callable[..., None]:
    def forward(*_: Any) -> None:
        raise NotImplementedError

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *names)]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return forward


def names(leaves: dict[str, Any], *groups: set[Place], of_transformers: bool = False) -> list[str]:
    target = _target(leaves, of_transformers=of_transformers)
    return name_dims([frozenset(group) for group in groups], bind_call(target, (), leaves), target)


def floats(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape)


def whole(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int64)


PLAIN: list[tuple[str, dict[str, Any], list[set[Place]], list[str]]] = [
    ("text", {"ids": whole(2, 5)}, [{("ids", 0)}, {("ids", 1)}], ["batch", "seq"]),
    ("image", {"x": floats(2, 3, 8, 9)}, [{("x", 0)}, {("x", 2)}, {("x", 3)}], ["batch", "height", "width"]),
    ("image, channels last", {"x": floats(2, 8, 9, 3)}, [{("x", 1)}, {("x", 2)}], ["height", "width"]),
    ("volume", {"x": floats(2, 1, 4, 8, 9)}, [{("x", 2)}, {("x", 3)}, {("x", 4)}], ["depth", "height", "width"]),
    ("video", {"video": floats(2, 3, 4, 8, 9)}, [{("video", 2)}, {("video", 3)}, {("video", 4)}],
     ["frames", "height", "width"]),
    ("heads", {"q": floats(2, 4, 5, 8)}, [{("q", 0)}, {("q", 2)}], ["batch", "seq"]),
    ("cache", {"past_k": floats(2, 4, 5, 8)}, [{("past_k", 0)}, {("past_k", 2)}], ["batch", "past"]),
    ("sound", {"waveform": floats(2, 400)}, [{("waveform", 0)}, {("waveform", 1)}], ["batch", "samples"]),
    ("spectrogram", {"mel": floats(2, 80, 50)}, [{("mel", 0)}, {("mel", 2)}], ["batch", "frames"]),
    ("graph", {"x": floats(6, 4), "edge_index": whole(2, 9), "edge_attr": floats(9, 2)},
     [{("x", 0)}, {("edge_index", 1), ("edge_attr", 0)}], ["nodes", "edges"]),
    ("boxes", {"boxes": floats(7, 4), "scores": floats(7)}, [{("boxes", 0), ("scores", 0)}], ["boxes"]),
    ("points", {"cloud": floats(2, 9, 3)}, [{("cloud", 0)}, {("cloud", 1)}], ["batch", "points"]),
    ("two sides", {"src": whole(2, 5), "tgt": whole(2, 6)}, [{("src", 1)}, {("tgt", 1)}], ["source", "target"]),
    ("two towers", {"left": floats(2, 5, 3), "right": floats(2, 6, 3)}, [{("left", 1)}, {("right", 1)}],
     ["left_seq", "right_seq"]),
    ("question and text", {"q_ids": whole(2, 5), "q_mask": whole(2, 5), "c_ids": whole(2, 6)},
     [{("q_ids", 1), ("q_mask", 1)}, {("c_ids", 1)}], ["q_seq", "c_seq"]),
    ("time first with a state", {"x": floats(5, 2, 3), "h0": floats(1, 2, 8)}, [{("x", 0)}, {("x", 1), ("h0", 1)}],
     ["seq", "batch"]),
    ("time first with lengths", {"x": floats(5, 2, 3), "lengths": whole(2)}, [{("x", 0)}, {("x", 1), ("lengths", 0)}],
     ["seq", "batch"]),
    ("a square mask is no batch", {"x": floats(2, 5, 3), "later": floats(5, 5)},
     [{("x", 0)}, {("x", 1), ("later", 0), ("later", 1)}], ["batch", "seq"]),
    ("a number", {"x": floats(2, 5), "keep": 3}, [{("x", 0)}, {("keep", None)}], ["batch", "keep"]),
    ("a name that is a function", {"max": 3}, [{("max", None)}], ["dim_max"]),
    ("nothing known", {"x": floats(2, 3, 4, 5, 6, 7)}, [{("x", 4)}], ["x_dim4"]),
]  # fmt: skip


@pytest.mark.parametrize(("leaves", "groups", "wanted"), [row[1:] for row in PLAIN], ids=[row[0] for row in PLAIN])
def test_a_dim_has_the_usual_name_for_what_it_is(leaves: dict[str, Any], groups: list[set[Place]], wanted: list[str]):
    assert names(leaves, *groups) == wanted


OPTIMUM: list[tuple[str, dict[str, Any], list[set[Place]], list[str]]] = [
    ("encoder", {"input_ids": whole(2, 5)}, [{("input_ids", 0)}, {("input_ids", 1)}],
     ["batch_size", "sequence_length"]),
    ("encoder and decoder", {"input_ids": whole(2, 5), "decoder_input_ids": whole(2, 6)},
     [{("input_ids", 0), ("decoder_input_ids", 0)}, {("input_ids", 1)}, {("decoder_input_ids", 1)}],
     ["batch_size", "encoder_sequence_length", "decoder_sequence_length"]),
    ("two batches", {"input_ids": whole(2, 5), "pixel_values": floats(3, 3, 8, 8)},
     [{("input_ids", 0)}, {("input_ids", 1)}, {("pixel_values", 0)}, {("pixel_values", 2)}, {("pixel_values", 3)}],
     ["text_batch_size", "sequence_length", "image_batch_size", "height", "width"]),
    ("speech", {"input_values": floats(2, 400)}, [{("input_values", 1)}], ["sequence_length"]),
    ("prompts of points", {"input_points": floats(2, 1, 4, 2)}, [{("input_points", 1)}, {("input_points", 2)}],
     ["point_batch_size", "nb_points_per_image"]),
]  # fmt: skip


@pytest.mark.parametrize(("leaves", "groups", "wanted"), [row[1:] for row in OPTIMUM], ids=[row[0] for row in OPTIMUM])
def test_a_transformers_model_has_the_names_of_optimum(
    leaves: dict[str, Any], groups: list[set[Place]], wanted: list[str]
):
    assert names(leaves, *groups, of_transformers=True) == wanted


def test_a_transformers_model_is_known_by_its_base_class():
    assert is_pretrained(_target({"x": 1}, of_transformers=True))
    assert not is_pretrained(_target({"x": 1}))


# ---- what a size means, by the name of its input and the rank of its tensor


def scene(leaves, moving=None, module=None):
    target = resolve_target(lambda **inputs: inputs)
    signature = bind_call(target, (), leaves)
    every = [(name, axis) for name, value in leaves.items() for axis in range(value.dim())]
    return Scene.of(signature, [frozenset([place]) for place in (every if moving is None else moving)], module)


@pytest.mark.parametrize(
    ("leaf", "shape", "words"),
    [
        ("input_ids", (2, 5), ["batch", "seq"]),
        ("pixel_values", (2, 3, 8, 8), ["batch", "channels", "height", "width"]),
        ("video", (2, 3, 4, 8, 8), ["batch", "channels", "frames", "height", "width"]),
        ("waveform", (2, 400), ["batch", "samples"]),
        ("past_key", (2, 4, 6, 8), ["batch", None, "past", None]),
        ("decoder_input_ids", (2, 5), ["batch", "target"]),
        ("src", (2, 5), ["batch", "source"]),
        ("boxes", (2, 7, 4), ["batch", "boxes", None]),
        ("points", (7, 3), ["points", None]),
    ],
)
def test_axes_are_named_as_people_name_them(leaf, shape, words):
    whole = scene({leaf: torch.zeros(shape)})
    for axis, word in enumerate(words):
        if word is not None:
            assert meaning_of((leaf, axis), whole).word == word


def test_a_graph_has_nodes_and_edges():
    whole = scene({"x": torch.zeros(5, 3), "edge_index": torch.zeros(2, 9, dtype=torch.int64)})
    assert whole.is_graph
    assert meaning_of(("x", 0), whole).word == "nodes"
    assert meaning_of(("edge_index", 1), whole).word == "edges"


def test_time_comes_first_where_the_module_says_so():
    leaves = {"input": torch.zeros(5, 2, 8)}
    for module, words in ((nn.GRU(8, 4), ("seq", "batch")), (nn.GRU(8, 4, batch_first=True), ("batch", "seq"))):
        whole = scene(leaves, module=module)
        assert tuple(meaning_of(("input", axis), whole).word for axis in (0, 1)) == words


def test_names_are_taken_apart_into_words():
    assert words_of("userIds.past_k0") == ["user", "ids", "past", "k"]
    assert words_of("0.1") == []


def test_kinds_of_inputs_are_told_by_name_and_rank():
    assert attention_like("layer.query")
    assert not attention_like("pixel_values")
    assert cache_like("past_key_values.0.key")
    assert not cache_like("passed")
    assert image_like("x", torch.zeros(1, 3, 4, 4))
    assert text_like("input_ids", torch.zeros(1, 3))
    assert not text_like("input_ids", torch.zeros(1, 3, 4))


# ---- jaxtyping annotations on `forward`: read without importing jaxtyping, and checked against the example


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

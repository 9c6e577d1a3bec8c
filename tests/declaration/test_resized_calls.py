from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import embedding, embedding_bag, normalize

from anyshape.declaration.resized_calls import LEVELS, Example, ValueRange, learn_value_ranges, levels_of, resize
from anyshape.sizes.notation import Expression

_VALUES = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _same_values_in_any_order():
    _VALUES.manual_seed(0)


def normal(*shape):
    return torch.randn(shape, generator=_VALUES)


def tokens(*shape, below=50):
    return torch.randint(below, shape, generator=_VALUES)


def example_of(leaves, axes, sizes, scalars=()) -> Example:
    """Axes as text: `b s _`, where `_` is static and an expression holds no space."""
    return Example(
        leaves=leaves,
        axes={name: tuple(None if e == "_" else Expression(e) for e in text.split()) for name, text in axes.items()},
        scalars={name: Expression(text) for name, text in dict(scalars).items()},
        sizes=sizes,
    )


@dataclass(frozen=True)
class Model:
    """A model, one call of it, other sizes, and what must hold of the leaves at these."""

    name: str
    forward: Callable[..., torch.Tensor]
    leaves: dict[str, Any]
    axes: dict[str, str]
    sizes: dict[str, int]
    others: list[dict[str, int]]
    means: Callable[[dict[str, Any], dict[str, int]], Any]
    scalars: dict[str, str] = field(default_factory=dict)

    @property
    def example(self) -> Example:
        return example_of(self.leaves, self.axes, self.sizes, self.scalars)

    def runs(self, leaves) -> bool:
        try:
            return bool(self.forward(**leaves).isfinite().all())
        except (RuntimeError, IndexError, ValueError):
            return False


TABLE = normal(50, 4)


def packed(x, lengths):
    sequence = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True)
    return nn.utils.rnn.pad_packed_sequence(sequence, batch_first=True, total_length=x.shape[1])[0]


def attention(x, mask):
    scores = (x @ x.mT).masked_fill(~mask.bool().unsqueeze(1), -torch.inf)
    return scores.softmax(-1) @ x


def graph_means(x, graph, marks):
    sums = torch.zeros(len(marks), x.shape[1]).index_add(0, graph, x)
    return sums / torch.zeros(len(marks)).index_add(0, graph, torch.ones(len(x))).unsqueeze(-1)


def segments(x, ends):
    return torch.stack([x[a:b].mean(0) for a, b in itertools.pairwise(ends)])


def crop(image, orig_size):
    if orig_size.tolist() != list(image.shape[-2:]):
        raise ValueError(orig_size)
    return image * orig_size.prod()


def step(ids, positions, past):
    return torch.cat([past, embedding(ids, TABLE) + embedding(positions, normal(64, 4))], 1)


def rises(tensor, axis=-1):
    return (tensor.diff(dim=axis) > 0).all()


def is_padded(mask, *, falls):
    steps = mask.int().diff(dim=1)
    return mask.bool().any(1).all() and ((steps <= 0) if falls else (steps >= 0)).all()


CORNER = torch.rand(4, 2, generator=_VALUES)
LINKS = torch.tensor([[1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [1, 0, 1, 0, 1]])
DISTANCE = torch.cdist(normal(5, 3), normal(5, 3))
DISTANCE = (DISTANCE + DISTANCE.T).fill_diagonal_(0)

MODELS = [
    Model(
        "lengths up to the sequence",
        packed,
        {"x": normal(3, 7, 4), "lengths": torch.tensor([7, 5, 2])},
        {"x": "b s _", "lengths": "b"},
        {"b": 3, "s": 7},
        [{"b": 3, "s": 4}, {"b": 6, "s": 12}, {"b": 1, "s": 1}, {"b": 5, "s": 1}],
        lambda v, d: v["lengths"].max() == d["s"] and v["lengths"].min() >= 1,
    ),
    Model(
        "edges between nodes",
        lambda x, edges: torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]),
        {"x": normal(6, 4), "edges": torch.tensor([[0, 1, 5, 3], [2, 5, 4, 0]])},
        {"x": "n _", "edges": "_ e"},
        {"n": 6, "e": 4},
        [{"n": 2, "e": 4}, {"n": 20, "e": 40}, {"n": 1, "e": 1}, {"n": 3, "e": 0}],
        lambda v, d: d["n"] < 20 or v["edges"].max() >= 6,
    ),
    Model(
        "the graph of each node",
        graph_means,
        {"x": normal(7, 4), "graph": torch.tensor([0, 0, 0, 1, 1, 2, 2]), "marks": normal(3)},
        {"x": "n _", "graph": "n", "marks": "g"},
        {"n": 7, "g": 3},
        [{"n": 12, "g": 3}, {"n": 12, "g": 8}, {"n": 3, "g": 2}, {"n": 1, "g": 1}],
        lambda v, d: (v["graph"].diff() >= 0).all() and v["graph"].unique().tolist() == list(range(d["g"])),
    ),
    Model(
        "a permutation",
        lambda x, order: x[order] + torch.zeros_like(x).index_put((order,), x),
        {"x": normal(5, 2), "order": torch.tensor([3, 0, 4, 1, 2])},
        {"x": "n _", "order": "n"},
        {"n": 5},
        [{"n": 9}, {"n": 2}, {"n": 1}],
        lambda v, d: v["order"].sort().values.tolist() == list(range(d["n"])),
    ),
    Model(
        "offsets of bags",
        lambda ids, offsets: embedding_bag(ids, TABLE, offsets),
        {"ids": tokens(10), "offsets": torch.tensor([0, 3, 7])},
        {"ids": "n", "offsets": "bags"},
        {"n": 10, "bags": 3},
        [{"n": 25, "bags": 3}, {"n": 4, "bags": 3}, {"n": 10, "bags": 6}, {"n": 3, "bags": 1}],
        lambda v, d: v["offsets"][0] == 0 and (v["offsets"].diff() > 0).all() and v["offsets"].max() <= d["n"],
    ),
    Model(
        "offsets that end at the total",
        segments,
        {"x": normal(12, 4), "ends": torch.tensor([0, 4, 8, 12], dtype=torch.int32)},
        {"x": "t _", "ends": "n+1"},
        {"t": 12, "n": 3},
        [{"t": 30, "n": 3}, {"t": 5, "n": 3}, {"t": 12, "n": 7}, {"t": 9, "n": 1}],
        lambda v, d: v["ends"][0] == 0 and v["ends"][-1] == d["t"] and rises(v["ends"]),
    ),
    Model(
        "positions after a cache",
        step,
        {"ids": tokens(2, 3), "positions": torch.arange(7, 10).repeat(2, 1), "past": normal(2, 7, 4)},
        {"ids": "b s", "positions": "b s", "past": "b past _"},
        {"b": 2, "s": 3, "past": 7},
        [{"b": 3, "s": 8, "past": 4}, {"b": 1, "s": 1, "past": 20}, {"b": 2, "s": 3, "past": 0}],
        lambda v, d: (v["positions"] == d["past"] + torch.arange(d["s"])).all(),
    ),
    Model(
        "the one position after a cache",
        step,
        {"ids": tokens(2, 1), "positions": torch.full((2, 1), 7), "past": normal(2, 7, 4)},
        {"ids": "b s", "positions": "b s", "past": "b past _"},
        {"b": 2, "s": 1, "past": 7},
        [{"b": 3, "s": 1, "past": 4}, {"b": 1, "s": 5, "past": 20}],
        lambda v, d: (v["positions"] == d["past"] + torch.arange(d["s"])).all(),
    ),
    Model(
        "an empty cache",
        lambda ids, past: torch.cat([past, embedding(ids, TABLE)], 1),
        {"ids": tokens(2, 3), "past": normal(2, 0, 4)},
        {"ids": "b s", "past": "b past _"},
        {"b": 2, "s": 3, "past": 0},
        [{"b": 3, "s": 1, "past": 5}, {"b": 1, "s": 4, "past": 0}],
        lambda v, d: len(v["past"].unique()) == v["past"].numel(),
    ),
    Model(
        "padding on the left",
        attention,
        {"x": normal(3, 6, 4), "mask": torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6, [0, 0, 0, 0, 0, 1]])},
        {"x": "b s _", "mask": "b s"},
        {"b": 3, "s": 6},
        [{"b": 3, "s": 2}, {"b": 6, "s": 15}, {"b": 1, "s": 1}],
        lambda v, d: is_padded(v["mask"], falls=False) and (d["b"] == 1 or v["mask"].bool().all(1).sum() == 1),
    ),
    Model(
        "padding on the right",
        attention,
        {"x": normal(3, 6, 4), "mask": torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6, [1, 0, 0, 0, 0, 0]]).bool()},
        {"x": "b s _", "mask": "b s"},
        {"b": 3, "s": 6},
        [{"b": 3, "s": 2}, {"b": 6, "s": 15}, {"b": 1, "s": 1}],
        lambda v, d: is_padded(v["mask"], falls=True),
    ),
    Model(
        "a scattered mask with some True in each row",
        attention,
        {"x": normal(3, 6, 4), "mask": torch.tensor([[0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0]])},
        {"x": "b s _", "mask": "b s"},
        {"b": 3, "s": 6},
        [{"b": 3, "s": 2}, {"b": 6, "s": 15}, {"b": 1, "s": 1}],
        lambda v, d: v["mask"].any(1).all(),
    ),
    Model(
        "a causal mask of large negatives",
        lambda x, mask: (x @ x.mT + mask).softmax(-1) @ x,
        {"x": normal(2, 5, 4), "mask": torch.full((5, 5), -torch.inf).triu(1)},
        {"x": "b s _", "mask": "s s"},
        {"b": 2, "s": 5},
        [{"b": 2, "s": 9}, {"b": 1, "s": 2}, {"b": 1, "s": 1}],
        lambda v, d: (v["mask"].triu(1) == torch.full((d["s"], d["s"]), -torch.inf).triu(1)).all(),
    ),
    Model(
        "time stamps that rise",
        lambda t, x: x[:, 1:] / t.diff(dim=1).unsqueeze(-1),
        {"t": torch.tensor([[0.0, 1.0, 2.5, 7.0]]), "x": normal(1, 4, 3)},
        {"t": "b s", "x": "b s _"},
        {"b": 1, "s": 4},
        [{"b": 1, "s": 9}, {"b": 3, "s": 2}, {"b": 2, "s": 4}],
        lambda v, d: rises(v["t"]),
    ),
    Model(
        "whole seconds that rise",
        lambda t: 1 / t.diff(dim=1),
        {"t": torch.tensor([[3, 4, 7, 30]])},
        {"t": "_ s"},
        {"s": 4},
        [{"s": 20}, {"s": 2}],
        lambda v, d: rises(v["t"]),
    ),
    Model(
        "corners of boxes in order",
        lambda boxes: ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])).log(),
        {"boxes": torch.cat([CORNER, CORNER + 0.1], 1)},
        {"boxes": "n _"},
        {"n": 4},
        [{"n": 40}, {"n": 1}, {"n": 0}],
        lambda v, d: (v["boxes"][:, 2:] > v["boxes"][:, :2]).all(),
    ),
    Model(
        "probabilities of one row",
        lambda p: (p * p.log()).sum(-1),
        {"p": normal(1, 5).softmax(-1)},
        {"p": "n k"},
        {"n": 1, "k": 5},
        [{"n": 12, "k": 5}, {"n": 2, "k": 9}, {"n": 3, "k": 2}],
        lambda v, d: torch.allclose(v["p"].sum(-1), torch.ones(d["n"])) and (v["p"] > 0).all(),
    ),
    Model(
        "unit vectors",
        lambda v: (v @ v.T).clamp(-1, 1).acos(),
        {"v": normalize(normal(4, 3), dim=1)},
        {"v": "n _"},
        {"n": 4},
        [{"n": 12}, {"n": 1}],
        lambda v, d: torch.allclose(v["v"].norm(dim=1), torch.ones(d["n"])),
    ),
    Model(
        "symmetric links of nodes to themselves too",
        lambda x, links: links / links.sum(1, keepdim=True) @ x,
        {"x": normal(5, 4), "links": LINKS.float()},
        {"x": "n _", "links": "n n"},
        {"n": 5},
        [{"n": 2}, {"n": 1}, {"n": 17}],
        lambda v, d: (v["links"] == v["links"].T).all() and v["links"].diagonal().all(),
    ),
    Model(
        "symmetric distances",
        lambda distance: distance.exp(),
        {"distance": DISTANCE},
        {"distance": "n n"},
        {"n": 5},
        [{"n": 2}, {"n": 1}, {"n": 17}],
        lambda v, d: torch.allclose(v["distance"], v["distance"].T) and not v["distance"].diagonal().any(),
    ),
    Model(
        "the size of the image",
        crop,
        {"image": normal(1, 3, 20, 20), "orig_size": torch.tensor([20, 20])},
        {"image": "_ _ h w"},
        {"h": 20, "w": 20},
        [{"h": 40, "w": 22}, {"h": 8, "w": 20}],
        lambda v, d: v["orig_size"].tolist() == [d["h"], d["w"]],
    ),
    Model(
        "a number that is a size",
        lambda x, n: x.view(n // 2, -1),
        {"x": normal(6, 4), "n": 6},
        {"x": "2*m _"},
        {"m": 3},
        [{"m": 9}, {"m": 1}],
        lambda v, d: v["n"] == 2 * d["m"],
        scalars={"n": "2*m"},
    ),
    Model(
        "a token that ends each text",
        lambda ids: embedding(ids, TABLE)[torch.arange(len(ids)), ids.argmax(-1)],
        {"ids": torch.tensor([[3, 8, 9, 49], [4, 5, 49, 0]])},
        {"ids": "b s"},
        {"b": 2, "s": 4},
        [{"b": 2, "s": 9}, {"b": 5, "s": 2}, {"b": 1, "s": 1}],
        lambda v, d: (v["ids"] == 49).any(1).all(),
    ),
    Model(
        "labels with a marker for none",
        lambda scores, labels: nn.functional.cross_entropy(scores, labels, reduction="none"),
        {"scores": normal(5, 9), "labels": torch.tensor([3, -100, 8, 1, -100])},
        {"scores": "n _", "labels": "n"},
        {"n": 5},
        [{"n": 40}, {"n": 1}],
        lambda v, d: ((v["labels"] == -100) | (v["labels"] > 0)).all(),
    ),
    Model(
        "one class in each row",
        lambda x, chosen: x[chosen.bool()],
        {"x": normal(3, 4), "chosen": torch.tensor([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])},
        {"x": "n k", "chosen": "n k"},
        {"n": 3, "k": 4},
        [{"n": 9, "k": 4}, {"n": 2, "k": 11}, {"n": 1, "k": 1}],
        lambda v, d: (v["chosen"].sum(1) == 1).all(),
    ),
]
MODELS_BY_NAME = {model.name: model for model in MODELS}
each_model = pytest.mark.parametrize("model", [pytest.param(model, id=model.name) for model in MODELS])


@each_model
@pytest.mark.parametrize("content", [0, 1, 2])
def test_the_model_runs_at_other_sizes_and_the_leaves_keep_their_meaning(model, content):
    ranges = learn_value_ranges(model.example, model.runs)
    for sizes in model.others:
        for seed in range(3):
            leaves = resize(model.example, sizes, ranges=ranges, content=content, seed=seed)
            assert model.runs(leaves), (sizes, leaves)
            assert model.means(leaves, sizes), (sizes, leaves)


@each_model
def test_the_example_s_own_sizes_give_the_example_itself(model):
    leaves = resize(model.example, model.sizes, ranges=learn_value_ranges(model.example, model.runs))
    assert all(leaves[name] is leaf for name, leaf in model.leaves.items())


@each_model
def test_resizing_changes_neither_the_example_nor_the_global_generator(model):
    before = {name: leaf.clone() for name, leaf in model.leaves.items() if isinstance(leaf, torch.Tensor)}
    state = torch.get_rng_state()
    for content in (0, 1):
        for level in range(LEVELS):
            for value in resize(model.example, model.others[0], ranges={}, content=content, level=level).values():
                if isinstance(value, torch.Tensor) and not any(value is leaf for leaf in model.leaves.values()):
                    value.zero_()
    assert all(torch.equal(model.leaves[name], leaf) for name, leaf in before.items())
    assert torch.equal(torch.get_rng_state(), state)


@each_model
@pytest.mark.parametrize("content", [0, 1])
def test_no_slice_of_floats_repeats_another(model, content):
    for sizes in model.others:
        for name, value in resize(model.example, sizes, ranges={}, content=content).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and len(model.leaves[name].unique()) > 2:
                for axis, size in enumerate(value.shape):
                    assert value.numel() == 0 or len(value.unique(dim=axis).movedim(axis, 0)) == size, (name, axis)


@each_model
def test_a_second_content_has_other_floats_from_the_first_slice_on(model):
    sizes = model.others[0]
    first, second = (resize(model.example, sizes, ranges={}, content=content) for content in (0, 1))
    for name, value in first.items():
        counts_or_masks = name in {"mask", "links"}
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not counts_or_masks:
            assert not torch.isclose(value, second[name]).all(), name


# ---- value ranges


def ranges_of(name):
    model = MODELS_BY_NAME[name]
    return learn_value_ranges(model.example, model.runs)


def test_lengths_may_reach_their_dim_and_indices_stay_below_it():
    assert ranges_of("lengths up to the sequence") == {"lengths": ValueRange("length", ("s",))}
    assert ranges_of("edges between nodes") == {"edges": ValueRange("index", ("n",))}
    assert ranges_of("the graph of each node") == {"graph": ValueRange("index", ("g",))}
    assert ranges_of("offsets of bags") == {"offsets": ValueRange("length", ("n",))}
    assert ranges_of("positions after a cache") == {}


def test_of_dims_of_one_size_the_one_that_bounds_is_found():
    leaves = {"x": normal(4, 2), "index": torch.tensor([0, 3, 1, 2])}
    example = example_of(leaves, {"x": "n _", "index": "k"}, {"k": 4, "n": 4})
    runs = Model("gather", lambda x, index: x[index], leaves, {}, {}, [], lambda v, d: True).runs
    assert learn_value_ranges(example, runs) == {"index": ValueRange("index", ("n",))}


def test_a_vocabulary_as_large_as_a_dim_is_no_range_of_that_dim():
    leaves = {"kinds": torch.tensor([[0, 1, 1], [0, 0, 1]])}
    example = example_of(leaves, {"kinds": "b s"}, {"b": 2, "s": 3})
    model = Model("kinds", lambda kinds: embedding(kinds, TABLE[:2]), leaves, {}, {}, [], lambda v, d: True)
    assert learn_value_ranges(example, model.runs) == {}


def test_a_large_vocabulary_costs_one_run_and_floats_none():
    calls = []
    example = example_of({"ids": tokens(2, 5), "x": normal(2, 5)}, {"ids": "b s", "x": "b s"}, {"b": 2, "s": 5})
    small = example_of({"ids": tokens(2, 5, below=4)}, {"ids": "b s"}, {"b": 2, "s": 5})
    assert learn_value_ranges(example, lambda leaves: not calls.append(leaves)) == {}
    assert len(calls) == 0
    assert learn_value_ranges(small, lambda leaves: not calls.append(leaves)) == {}
    assert len(calls) == 1


def test_values_use_the_room_a_larger_dim_gives():
    model = MODELS_BY_NAME["edges between nodes"]
    edges = resize(model.example, {"n": 30, "e": 60}, ranges=ranges_of(model.name))["edges"]
    assert edges.max() > 20
    assert edges.min() < 6


@pytest.mark.parametrize("content", [0, 1])
def test_an_index_on_an_axis_before_the_last_stays_in_its_range(content):
    leaves = {"x": normal(6), "pairs": torch.tensor([[0, 5], [3, 5], [1, 1]])}
    example = example_of(leaves, {"x": "n", "pairs": "k _"}, {"n": 6, "k": 3})
    ranges = {"pairs": ValueRange("index", ("n",))}
    pairs = resize(example, {"n": 4, "k": 9}, ranges=ranges, content=content)["pairs"]
    assert pairs.shape == (9, 2)
    assert pairs.max() == 3


def test_a_leaf_whose_range_and_shape_stay_is_left_alone():
    leaves = {"x": normal(3, 7), "index": torch.tensor([0, 6, 6]), "other": normal(2, 2)}
    example = example_of(leaves, {"x": "_ s", "other": "b _"}, {"s": 7, "b": 2})
    resized = resize(example, {"s": 7, "b": 5}, ranges={"index": ValueRange("index", ("s",))})
    assert resized["x"] is leaves["x"]
    assert torch.equal(resized["index"], leaves["index"])


# ---- contents


def second_mask(mask, axes, sizes, new_sizes, *, seed=0):
    return resize(example_of({"m": mask}, {"m": axes}, sizes), new_sizes, ranges={}, content=1, seed=seed)["m"]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_mask_becomes_ragged_with_one_row_as_it_was(dtype, value):
    mask = second_mask(torch.full((2, 6), value, dtype=dtype), "b s", {"b": 2, "s": 6}, {"b": 4, "s": 9})
    as_it_was = mask == value
    assert as_it_was.all(1).sum() == 1
    assert as_it_was.any(1).all()
    assert len(mask.unique(dim=0)) == 4


def test_a_constant_mask_of_one_row_becomes_ragged_too():
    mask = second_mask(torch.ones(1, 6), "b s", {"b": 1, "s": 6}, {"b": 1, "s": 6})
    assert 0 < mask.sum() < 6


def test_padding_differs_by_row_but_not_by_query():
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    for content_mask in (mask, mask & torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]):
        made = second_mask(content_mask, "b _ s s", {"b": 2, "s": 5}, {"b": 3, "s": 8})
        assert (made == made[:, :, :1]).all()
        assert len(made.unique(dim=0)) == 3


def test_floats_of_a_state_of_zeros_are_zeros_first_and_not_then():
    example = example_of({"h": torch.zeros(2, 3, 4)}, {"h": "_ b _"}, {"b": 3})
    assert not resize(example, {"b": 5}, ranges={})["h"].any()
    assert resize(example, {"b": 5}, ranges={}, content=1)["h"].any()


def test_a_second_content_draws_integers_from_the_range_of_the_example():
    ids = tokens(2, 8) + 10
    made = resize(example_of({"ids": ids}, {"ids": "b s"}, {"b": 2, "s": 8}), {"b": 5, "s": 30}, ranges={}, content=1)
    assert made["ids"].min() >= ids.min()
    assert made["ids"].max() == ids.max()
    assert len(made["ids"].unique(dim=0)) == 5
    assert not torch.equal(made["ids"][:2, :8], ids)


def test_a_static_leaf_gets_other_floats_in_a_second_content_but_keeps_its_flag():
    leaves = {"scale": torch.tensor([0.5, -2.0, 3.0]), "flag": torch.tensor(True), "x": normal(2)}
    made = resize(example_of(leaves, {"x": "b"}, {"b": 2}), {"b": 3}, ranges={}, content=1)
    assert not torch.isclose(made["scale"], leaves["scale"]).any()
    assert torch.equal(made["scale"].sign(), leaves["scale"].sign())
    assert made["flag"]


def test_rows_of_a_batch_of_one_become_rows_that_differ_in_more_than_scale():
    rows = resize(example_of({"x": normal(1, 6)}, {"x": "b _"}, {"b": 1}), {"b": 4}, ranges={})["x"]
    standard = (rows - rows.mean(1, keepdim=True)) / rows.std(1, keepdim=True)
    assert (torch.pdist(standard) > 1e-3).all()


def test_equal_rows_of_the_example_become_rows_that_differ():
    rows = resize(example_of({"x": normal(1, 6).repeat(3, 1)}, {"x": "b _"}, {"b": 3}), {"b": 8}, ranges={})["x"]
    assert len(rows.unique(dim=0)) == 6


# ---- positions and sizes


def test_coordinates_from_zero_to_one_stay_between_them():
    grid = torch.linspace(0, 1, 5).repeat(2, 1)
    made = resize(example_of({"g": grid}, {"g": "b n"}, {"b": 2, "n": 5}), {"b": 3, "n": 9}, ranges={})["g"]
    assert torch.allclose(made, torch.linspace(0, 1, 9).expand(3, 9))


def test_evenly_spaced_times_count_on():
    made = resize(example_of({"t": torch.arange(4) * 0.25}, {"t": "n"}, {"n": 4}), {"n": 7}, ranges={})["t"]
    assert torch.allclose(made, torch.arange(7) * 0.25)


def test_sizes_follow_expressions_and_are_the_same_in_each_row():
    leaves = {"image": normal(2, 16, 24), "hw": torch.tensor([[16, 24], [16, 24]])}
    example = example_of(leaves, {"image": "b 8*gh 8*gw", "hw": "b _"}, {"b": 2, "gh": 2, "gw": 3})
    made = resize(example, {"b": 3, "gh": 5, "gw": 1}, ranges={})
    assert made["hw"].tolist() == [[40, 8]] * 3


# ---- the ladder


def test_level_one_repeats_the_slices_and_level_two_the_last_one():
    example = example_of({"ids": torch.tensor([[5, 9, 2]])}, {"ids": "_ s"}, {"s": 3})
    assert resize(example, {"s": 7}, ranges={}, level=1)["ids"].tolist() == [[5, 9, 2, 5, 9, 2, 5]]
    assert resize(example, {"s": 5}, ranges={}, level=2)["ids"].tolist() == [[5, 9, 2, 2, 2]]


def test_level_two_keeps_integers_below_a_dim_that_shrank():
    leaves = {"x": normal(9), "index": torch.tensor([8, 1, 5])}
    made = resize(example_of(leaves, {"x": "n"}, {"n": 9}), {"n": 4}, ranges={}, level=2)
    assert made["index"].tolist() == [3, 1, 3]


def test_the_last_rung_serves_tokens_that_look_like_positions():
    example = example_of({"ids": torch.tensor([[1, 2, 3]])}, {"ids": "_ s"}, {"s": 3})
    assert [int(resize(example, {"s": 60}, ranges={}, level=level)["ids"].max()) for level in (0, 2)] == [60, 3]


@pytest.mark.parametrize("level", [1, 2])
def test_lower_rungs_honour_learned_ranges(level):
    model = MODELS_BY_NAME["lengths up to the sequence"]
    ranges = ranges_of(model.name)
    assert all(model.runs(resize(model.example, sizes, ranges=ranges, level=level)) for sizes in model.others)


@pytest.mark.parametrize("level", [1, 2])
def test_on_lower_rungs_a_second_content_differs_in_its_floats_alone(level):
    leaves = {"ids": tokens(2, 5), "mask": torch.ones(2, 5), "x": normal(2, 5)}
    example = example_of(leaves, dict.fromkeys(leaves, "b s"), {"b": 2, "s": 5})
    first, second = (resize(example, {"b": 3, "s": 7}, ranges={}, content=c, level=level) for c in (0, 1))
    assert torch.equal(first["ids"], second["ids"])
    assert torch.equal(first["mask"], second["mask"])
    assert not torch.isclose(first["x"], second["x"]).any()


# ---- any leaf at all

DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16),
]


@st.composite
def requests(draw, dtypes=DTYPES, last=()):
    """An example of one leaf on up to three axes and those given, and other sizes."""
    texts = [*draw(st.lists(st.sampled_from(["a", "b", "a+b", "2*a", "_"]), max_size=3)), *last]
    sizes, others = ({dim: draw(st.integers(0, 5)) for dim in "ab"} for _ in range(2))
    shape = [3 if text == "_" else Expression(text).value(sizes) for text in texts]
    values = torch.randn(shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    style = draw(st.sampled_from(["any", "zero", "sorted", "signs", "unit"]))
    made = {
        "any": values * 9,
        "zero": values * 0,
        "sorted": values.sort(-1).values if texts else values,
        "signs": values > 0,
        "unit": normalize(values, dim=-1) if texts else values,
    }[style]
    leaf = made.double().abs().to(draw(st.sampled_from(dtypes)))
    return example_of({"leaf": leaf}, {"leaf": " ".join(texts)}, sizes), others


@settings(max_examples=250, deadline=None)
@given(requests(), st.integers(0, 2), st.integers(0, LEVELS - 1))
def test_every_result_has_the_declared_shape_and_dtype_and_comes_again(request, content, level):
    example, sizes = request
    leaf = example.leaves["leaf"]
    first, again = (resize(example, sizes, ranges={}, content=content, level=level)["leaf"] for _ in range(2))
    expected = [n if e is None else e.value(sizes) for n, e in zip(leaf.shape, example.axes["leaf"], strict=True)]
    assert list(first.shape) == expected
    assert first.dtype == leaf.dtype
    assert not first.requires_grad
    assert torch.equal(first, again)
    assert first.numel() == 0 or not first.is_floating_point() or first.isfinite().all()


@settings(max_examples=100, deadline=None)
@given(requests([torch.int64], "b"), st.sampled_from(["index", "length"]), st.integers(0, 2), st.integers(0, 2))
def test_a_range_holds_at_every_size_and_level(request, kind, content, level):
    example, sizes = request
    value_range = ValueRange(kind, ("a",))
    leaf = example.leaves["leaf"].clamp(max=value_range.highest(example.sizes))
    bounded = Example({"leaf": leaf}, example.axes, {}, example.sizes)
    made = resize(bounded, sizes, ranges={"leaf": value_range}, content=content, level=level)["leaf"]
    assert made.numel() == 0 or 0 <= made.min() <= made.max() <= value_range.highest(sizes)


def test_other_seeds_contents_names_and_sizes_give_other_values():
    leaves = {"x": normal(2, 4), "y": normal(2, 4)}
    example = example_of(leaves, {"x": "b _", "y": "b _"}, {"b": 2})
    made = [
        resize(example, {"b": size}, ranges={}, content=content, seed=seed)["x"][3]
        for size in (4, 5)
        for content in (0, 1)
        for seed in (0, 1)
    ]
    assert len(torch.stack(made).unique(dim=0)) == 8


def test_a_leaf_that_requires_gradients_gives_one_that_does_not():
    example = example_of({"x": normal(2, 3).requires_grad_()}, {"x": "b _"}, {"b": 2})
    assert not any(resize(example, {"b": b}, ranges={})["x"].requires_grad for b in (2, 3))


def test_leaves_that_are_no_tensors_stay():
    leaves = {"x": normal(2), "none": None, "rate": 0.5, "flag": True, "name": "sum", "count": 2}
    made = resize(example_of(leaves, {"x": "b"}, {"b": 2}), {"b": 5}, ranges={})
    assert {name: made[name] for name in leaves if name != "x"} == {n: v for n, v in leaves.items() if n != "x"}


# ---- values that mean nothing


def _flattened():
    leaves = {
        "x": torch.randn(3, 5),
        "index": torch.tensor([0, 14, 7, 2]),
        "flag": torch.tensor([True, False, True, True]),
    }
    axes = {name: tuple(map(Expression, text.split())) for name, text in (("x", "n k"), ("index", "m"), ("flag", "m"))}
    return Example(leaves, axes, {}, {"n": 3, "k": 5, "m": 4})


def test_an_index_into_what_was_flattened_is_bounded_by_the_product():
    example = _flattened()

    def runs(leaves):
        return int(leaves["index"].max()) < leaves["x"].numel()

    ranges = learn_value_ranges(example, runs)
    assert ranges == {"index": ValueRange("index", ("n * k",))}
    for n, k, m in ((1, 1, 3), (2, 3, 9), (7, 4, 2)):
        for content in (0, 1):
            made = resize(example, {"n": n, "k": k, "m": m}, ranges=ranges, content=content)
            assert runs(made)


def test_the_last_rungs_fill_integers_and_flags_whatever_they_mean():
    example, sizes = _flattened(), {"n": 2, "k": 2, "m": 6}
    made = [resize(example, sizes, ranges={}, level=level) for level in range(LEVELS, levels_of(example))]
    assert [row["index"].tolist() for row in made[:3]] == [[0, 14, 7, 2, 0, 14], [0] * 6, [1] * 6]
    assert [row["flag"].tolist() for row in made[1:3]] == [[False] * 6, [True] * 6]
    assert len(made) == 9
    assert made[4]["index"].tolist() == [0] * 6
    assert made[4]["flag"].tolist() not in ([False] * 6, [True] * 6)
    assert all(row["x"].shape == (2, 2) for row in made)
    assert levels_of(Example({"x": torch.randn(3)}, {"x": (Expression("n"),)}, {}, {"n": 3})) == LEVELS

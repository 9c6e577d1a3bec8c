"""One call and no declaration: the dims that are found, their bounds, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.moves import DimMove, ProbingGround, find_moves
from anyshape.model.proposal.one_call import are_equal, coincidences, propose, tie
from anyshape.model.proposal.probe import RunBudget
from anyshape.model.proposal.proposal import DimProposal
from anyshape.sizes import budgets
from tests import cases


def proposal(model: Any, *args: Any, **kwargs: Any) -> DimProposal:
    target = resolve_target(model)
    return propose(target, bind_call(target, args, kwargs))


def dims(model: Any, *args: Any, **kwargs: Any) -> dict[str, str]:
    return {leaf: " ".join(row) for leaf, row in proposal(model, *args, **kwargs).dims.items()}


class Reader(nn.Module):
    """A table of 16 positions beside words and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.places = nn.Parameter(torch.randn(1, 16, 8))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        read = self.words(ids) + self.places[:, : ids.shape[1]]
        return (read * mask.unsqueeze(-1)).sum(1)


@pytest.mark.parametrize(("batch", "seq"), [(2, 5), (1, 1), (1, 2), (3, 16), (8, 8)])
def test_whatever_the_size_of_the_example_the_dims_and_bounds_are_the_same(batch: int, seq: int):
    found = proposal(Reader(), torch.ones(batch, seq, dtype=torch.int64), torch.ones(batch, seq))
    assert found.dims == {"ids": ("batch", "seq"), "mask": ("batch", "seq")}
    assert found.sizes == {"seq": "1..16"}
    assert found.basis == {
        "batch": "axis 0 of `ids` and axis 0 of `mask` move together",
        "seq": "axis 1 of `ids` and axis 1 of `mask` move together",
    }


# ---- relations between sizes


def halves(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[1] // 2, 6).softmax(-1)


def shifted(scores: Tensor, ids: Tensor) -> Tensor:
    return scores.gather(-1, ids[:, 1:].unsqueeze(-1))


def doubled(x: Tensor, pairs: Tensor) -> Tensor:
    return x + pairs.view(x.shape[0], x.shape[1], 2).sum(-1)


def squared(x: Tensor) -> Tensor:
    side = int(x.shape[1] ** 0.5)
    return x.reshape(x.shape[0], side, side, 5).flip(1) @ torch.ones(5, 2)


def placed(x: Tensor, h: int, w: int) -> Tensor:
    return x.view(x.shape[0], h, w, 5) @ torch.ones(5, 2)


def gated(signal: Tensor, gate: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(signal) * gate, n=signal.shape[1])


def counted(x: Tensor, n: int) -> Tensor:
    return x + torch.zeros(n, 1)


RELATIONS: list[tuple[Callable[..., Tensor], tuple[Any, ...], dict[str, str], dict[str, str]]] = [
    (halves, (torch.randn(3, 8, 3),), {"x": "batch seq _"}, {"seq": "2.. step 2"}),
    (shifted, (torch.randn(3, 5, 9), torch.ones(3, 6, dtype=torch.int64)),
     {"scores": "batch seq _", "ids": "batch seq + 1"}, {}),
    (doubled, (torch.randn(3, 5), torch.randn(3, 10)), {"x": "batch seq", "pairs": "batch 2 * seq"}, {}),
    (squared, (torch.randn(3, 16, 5),), {"x": "batch seq * seq _"}, {}),
    (placed, (torch.randn(2, 12, 5), 3, 4), {"x": "batch h * w _", "h": "h", "w": "w"}, {}),
    (gated, (torch.randn(3, 12), torch.randn(3, 7)), {"signal": "batch samples", "gate": "batch samples // 2 + 1"}, {}),
    (counted, (torch.randn(3, 5), 3), {"x": "batch seq", "n": "batch"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "wanted", "sizes"), RELATIONS, ids=lambda v: getattr(v, "__name__", ""))
def test_sizes_that_follow_others_are_written_as_expressions(
    function: Callable[..., Tensor], args: tuple[Any, ...], wanted: dict[str, str], sizes: dict[str, str]
):
    found = proposal(function, *args)
    assert {leaf: " ".join(row) for leaf, row in found.dims.items()} == wanted
    assert found.sizes == sizes


class Step(nn.Module):
    """One step of a decoder: the mask is as long as the past and the new words together."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 12)

    def forward(self, ids: Tensor, mask: Tensor, past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        x = self.words(ids).unflatten(-1, (3, 4)).transpose(1, 2)
        for key, value in past:
            scores = x @ torch.cat([key, x], 2).mT
            scores = scores.masked_fill(mask[:, None, None] == 0, -1e4)
            x = scores.softmax(-1) @ torch.cat([value, x], 2)
        return (x,)


def test_a_mask_over_past_and_sequence_follows_both_and_the_past_may_be_empty():
    past = [(torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 4)) for _ in range(3)]
    found = proposal(Step(), torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 11), past)
    assert found.dims == {
        "ids": ("batch", "seq"),
        "mask": ("batch", "past + seq"),
        **{f"past.{layer}.{part}": ("batch", "_", "past", "_") for layer in range(3) for part in range(2)},
    }
    assert found.sizes == {"past": "0.."}


# ---- ties that the model does not enforce


def apart(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return ids * 2, mask.sum()


def towers(left: Tensor, right: Tensor) -> Tensor:
    return left @ torch.ones(4, 2) @ (right @ torch.ones(4, 2)).mT


def test_a_mask_is_tied_to_its_ids_by_convention():
    found = proposal(apart, torch.ones(3, 5, dtype=torch.int64), torch.ones(3, 5))
    assert found.dims == {"ids": ("batch", "seq"), "mask": ("batch", "seq")}
    assert found.basis["seq"] == "axis 1 of `ids` and axis 1 of `mask` move together by convention"


def test_equal_lengths_that_no_convention_ties_stay_two_and_it_is_said():
    found = proposal(towers, torch.randn(3, 5, 4), torch.randn(3, 5, 4))
    assert found.dims == {"left": ("batch", "left_seq", "_"), "right": ("batch", "right_seq", "_")}
    assert found.notes[0] == (
        "`left_seq` and `right_seq` are both 5 in the example and vary apart, so they are two dims; "
        "if they are meant as one, give them one name, or a second call that shows it"
    )


def test_two_texts_with_masks_of_one_length_stay_two():
    def both(q_ids: Tensor, q_mask: Tensor, c_ids: Tensor, c_mask: Tensor) -> Tensor:
        return torch.cat([q_ids * q_mask, c_ids * c_mask], 1)

    found = dims(both, *(torch.ones(2, 5) for _ in range(4)))
    assert found == {"q_ids": "batch q_seq", "q_mask": "batch q_seq", "c_ids": "batch c_seq", "c_mask": "batch c_seq"}


def test_a_batch_as_large_as_everything_else_is_told_apart():
    rnn = nn.LSTM(4, 4, num_layers=4, batch_first=True)
    state = torch.zeros(4, 4, 4), torch.zeros(4, 4, 4)
    assert dims(rnn, torch.randn(4, 4, 4), state) == {
        "input": "batch seq _",
        "hx.0": "_ batch _",
        "hx.1": "_ batch _",
    }


# ---- what is offered instead


def test_features_are_offered_and_not_proposed():
    found = proposal(lambda x: x.softmax(-1), torch.randn(3, 5, 8))
    assert found.dims == {"x": ("batch", "seq", "_")}
    assert [(offer.leaf, offer.axis, offer.why) for offer in found.offers] == [
        ("x", 2, "the model lets it vary, but it looks like features")
    ]


@pytest.mark.parametrize("pool", [nn.MaxPool1d(3), lambda x: nn.functional.avg_pool1d(x, 2)], ids=["layer", "function"])
def test_what_is_pooled_is_a_length_and_what_is_kept_are_channels(pool: Any):
    found = proposal(pool, torch.randn(2, 6, 20))
    assert [" ".join(row) for row in found.dims.values()] == ["batch _ length"]
    assert [offer.axis for offer in found.offers] == [1]


def test_an_int_with_a_default_is_an_option_and_a_required_one_an_input():
    def kept(x: Tensor, keep: int, lower: int = 0) -> Tensor:
        return x[:, lower:keep] @ torch.ones(4, 2)

    found = proposal(kept, torch.randn(3, 9, 4), 5, 1)
    assert found.dims == {"x": ("batch", "seq", "_"), "keep": ("keep",)}
    assert [(offer.leaf, offer.why) for offer in found.offers] == [("lower", "1 becomes part of the file")]


# ---- bounds, and dims that do not go together


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(20, 3)

    def forward(self, question: Tensor, text: Tensor) -> Tensor:
        both = torch.cat([question, text], 1)
        return self.places(torch.arange(both.shape[1])) + both.unsqueeze(-1)


def test_two_lengths_that_fill_one_table_get_no_bound_of_their_own():
    found = proposal(Joined(), torch.randn(2, 4), torch.randn(2, 7))
    assert found.dims == {"question": ("batch", "question_seq"), "text": ("batch", "text_seq")}
    assert found.sizes == {}
    assert found.notes[0] == (
        "the model runs up to `question_seq` = 13 and `text_seq` = 16 one at a time, but not at once: "
        "no upper bound is proposed"
    )


def test_an_end_that_is_near_is_found():
    rows = torch.randn(3, 4)
    found = proposal(lambda x: rows[: x.shape[0]] * x, torch.randn(2, 4))
    assert (found.dims, found.sizes) == ({"x": ("batch", "_")}, {"batch": "1..3"})


def test_an_image_has_the_lower_bound_of_its_kernels_and_the_step_of_its_strides():
    net = nn.Sequential(nn.Conv2d(3, 4, 5), nn.PixelUnshuffle(2), nn.Conv2d(16, 2, 3))
    found = proposal(net, torch.randn(1, 3, 24, 32))
    assert found.dims == {"input": ("batch", "_", "height", "width")}
    assert found.sizes == {"height": "10.. step 2", "width": "10.. step 2"}


def test_what_varies_alone_but_not_with_the_others_stays_static():
    def windows(x: Tensor) -> Tensor:
        return x.view(int(x.shape[0] / 6.0), 3, 2, x.shape[1], -1)

    found = proposal(windows, torch.randn(12, 4, 5))
    assert found.dims["x"][0] == "batch"
    assert found.sizes["batch"] == "6.. step 6"


# ---- when it ends


def test_nothing_varies_and_it_is_said():
    found = proposal(lambda x: x.view(2, 3) + torch.ones(2, 3), torch.randn(2, 3))
    assert found.dims == {}
    assert found.notes[0] == "no axis was found to vary: the model runs at the sizes of the example alone"


def test_a_search_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budgets, "MOST_RUNS_TO_FIND", 6)
    found = proposal(Reader(), torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5))
    (note,) = [note for note in found.notes if note.startswith("the search ended after ")]
    assert note.endswith(" runs: more axes may vary than were found")


def test_a_search_that_the_clock_ended_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budgets, "SECONDS_UNTIL_ABSURD", -60)
    found = proposal(Reader(), torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5))
    assert any("since this machine took -1 minutes for them: more axes may vary" in note for note in found.notes)


def test_an_example_that_does_not_run_is_refused():
    with pytest.raises(DeclarationError, match=r"^`Reader` does not run on the example: RuntimeError: The size of"):
        proposal(Reader(), torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 4))


def test_the_same_call_gives_the_same_proposal():
    example = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5)
    model = Reader()
    assert proposal(model, *example) == proposal(model, *example)


def test_a_model_in_training_mode_is_probed_in_eval_mode_and_put_back():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    state = torch.get_rng_state()
    assert dims(net, torch.randn(1, 4, generator=torch.Generator().manual_seed(0))) == {"input": "batch _"}
    assert all(part.training for part in net.modules())
    assert net[1].num_batches_tracked == 0
    assert torch.equal(torch.get_rng_state(), state)


# ---- the cases


CASES = (
    "attention_with_flat_cache", "bert_three_inputs", "decoder_step", "encoder_decoder", "encoder_padding_mask",
    "example_batch_one", "graph_network", "gru_state_input", "list_input", "lstm_packed", "relative_bias",
    "shifted_targets", "shifted_windows", "tokens_to_map", "two_caches_in_one", "two_tower",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_no_dim_of_a_case_is_missed(name: str):
    case = cases.load(name)
    target = resolve_target(case.model())
    signature = bind_call(target, *cases.example(case))
    found = propose(target, signature)
    wanted = _groups(signature, case.dims, {dim: size for dim, (size, _) in case.sizes.items()})
    assert wanted <= _groups(signature, found.dims, None)


def _groups(signature: Any, declared: Any, known: dict[str, int] | None) -> set[frozenset[tuple[str, int]]]:
    spec = declare(signature, declared, known=known)
    axes = [((leaf, axis), e) for leaf, row in spec.axes.items() for axis, e in enumerate(row) if e is not None]
    return {frozenset(place for place, e in axes if dim in e.names) for dim in spec.dims}


# ---- sizes that the model lets move apart, and which everybody means as one


def tied(model: Any, *args: Any, annotated: Any = (), is_graph: bool = False) -> tuple[ProbingGround, list[DimMove]]:
    target = resolve_target(model)
    ground = ProbingGround.of(target, bind_call(target, args), budget=RunBudget(400))
    return ground, tie(ground, find_moves(ground), dict(annotated), is_graph=is_graph)


def both_summed(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return ids.sum(1), mask.sum(1)


def others(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    return left.sum(1), right.sum(1)


PAIR = torch.randn(3, 7), torch.randn(3, 7)


def steps(moves: list[DimMove]) -> list[dict[Any, int]]:
    return [dict(move.steps) for move in moves]


def test_an_input_and_its_mask_have_one_length_and_one_batch():
    _, moves = tied(both_summed, *PAIR)
    assert steps(moves) == [{("ids", 0): 1, ("mask", 0): 1}, {("ids", 1): 1, ("mask", 1): 1}]
    assert {move.basis for move in moves} == {"move together by convention"}


def test_two_inputs_of_one_length_stay_two_dims_and_that_is_told():
    ground, moves = tied(others, *PAIR)
    assert steps(moves) == [{("left", 0): 1, ("right", 0): 1}, {("left", 1): 1}, {("right", 1): 1}]
    (pair,) = coincidences(ground, moves)
    assert are_equal(ground, *pair)
    assert not are_equal(ground, moves[0], moves[1])


def test_nodes_and_edges_are_no_batch():
    _, moves = tied(others, *PAIR, is_graph=True)
    assert {("left", 0): 1} in steps(moves)


def test_annotations_tie_and_keep_apart():
    one = {("left", 1): "n", ("right", 1): "n"}
    _, moves = tied(others, *PAIR, annotated=one)
    assert {("left", 1): 1, ("right", 1): 1} in steps(moves)
    two = {("ids", 1): "n", ("mask", 1): "m"}
    _, moves = tied(both_summed, *PAIR, annotated=two)
    assert {("ids", 1): 1} in steps(moves)


def test_a_mask_as_long_as_two_lengths_follows_both():
    def read(past: Tensor, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return past.sum(), ids.sum(), mask.sum()

    _, moves = tied(read, torch.randn(4), torch.randn(3), torch.randn(7))
    assert steps(moves) == [{("past", 0): 1, ("mask", 0): 1}, {("ids", 0): 1, ("mask", 0): 1}]

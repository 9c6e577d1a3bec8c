"""Keys and values of two lengths: what PyTorch reads beyond its end raises instead."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as imported_before

from anyshape.torchkit.defined_calls import DefinedCalls, UndefinedCallError, calls_are_checked

SENTENCE = "scaled_dot_product_attention has 4 keys and 3 values: PyTorch reads beyond the shorter ones"


def attend(values, function=None, dtype=torch.float32):
    query, key, value = (torch.ones(2, 1, length, 8, dtype=dtype) for length in (5, 4, values))
    return (function or torch.nn.functional.scaled_dot_product_attention)(query, key, value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_probe_meets_no_undefined_call_however_it_is_made(dtype):
    with DefinedCalls():
        assert attend(4, imported_before, dtype).shape == (2, 1, 5, 8)
        with pytest.raises(UndefinedCallError) as caught:
            attend(3, imported_before, dtype)
    assert str(caught.value) == SENTENCE


def test_by_its_name_it_is_checked_without_a_mode_and_put_back():
    with calls_are_checked():
        assert attend(4).shape == (2, 1, 5, 8)
        with pytest.raises(UndefinedCallError) as caught:
            attend(3)
    assert str(caught.value) == SENTENCE
    assert torch.nn.functional.scaled_dot_product_attention is imported_before


def test_boundaries_that_do_not_rise_are_not_searched():
    falling, values = torch.tensor([3.0, 2.0, 2.0]), torch.tensor([2.5])
    sentence = "boundaries do not rise: PyTorch finds a place that depends on where it looks first"
    with calls_are_checked():
        assert torch.bucketize(values, falling.flip(0)).tolist() == [2]
        assert torch.searchsorted(falling, values, sorter=torch.tensor([1, 2, 0])).tolist() == [2]
        for call in (lambda: torch.bucketize(values, falling), lambda: torch.searchsorted(falling, values)):
            with pytest.raises(UndefinedCallError) as caught:
                call()
            assert str(caught.value) == sentence


def test_a_label_that_is_no_class_is_not_looked_up():
    steps, ones = torch.zeros(4, 1, 3).log_softmax(-1), torch.ones(1, dtype=torch.int64)
    with calls_are_checked():
        torch.nn.functional.ctc_loss(steps, torch.tensor([[2]]), 4 * ones, ones)
        for label in (-1, 3):
            with pytest.raises(UndefinedCallError, match="ctc_loss has a label that is no class"):
                torch.nn.functional.ctc_loss(
                    steps, targets=torch.tensor([[label]]), input_lengths=ones, target_lengths=ones
                )


def test_a_batch_norm_with_statistics_of_other_channels_is_not_run() -> None:
    def norm(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        return torch.native_batch_norm(x, None, None, mean, torch.ones(3), True, 0.1, 1e-5)[0]

    for checked in (DefinedCalls(), calls_are_checked()):
        with checked:
            assert norm(torch.randn(2, 3, 4), torch.zeros(3)).shape == (2, 3, 4)
            with pytest.raises(UndefinedCallError, match="a batch norm of 3 channels has other statistics"):
                norm(torch.randn(2, 3, 4), torch.zeros(2))


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh"])
def test_a_packed_sequence_with_the_state_of_another_batch_is_not_run(name: str) -> None:
    """Layers of `nn.GRU` and `nn.RNN` look for themselves, those of `nn.LSTM` and the functions do not."""
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}[name](4, 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 4), torch.tensor([5, 3]))

    def run(batch: int) -> None:
        state = torch.zeros(1, batch, 3)
        states = (state, state) if name == "lstm" else state
        weights = list(layer.parameters())
        getattr(torch, name)(packed.data, packed.batch_sizes, states, weights, True, 1, 0.0, False, False)

    with calls_are_checked():
        run(2)
        layer(torch.randn(5, 2, 4), None)
        with pytest.raises(UndefinedCallError, match="2 packed sequences, and a state of another batch"):
            run(3)
        if name == "lstm":
            with pytest.raises(UndefinedCallError, match="2 packed sequences, and a state of another batch"):
                layer(packed, (torch.zeros(1, 3, 3), torch.zeros(1, 3, 3)))
            with pytest.raises(UndefinedCallError, match="2 packed sequences, and a state of another batch"):
                torch.lstm(
                    packed.data,
                    packed.batch_sizes,
                    (torch.zeros(2, 2, 3), torch.zeros(1, 2, 3)),
                    [],
                    True,
                    1,
                    0.0,
                    False,
                    False,
                )
    run(2)


def test_bags_beyond_the_last_index_are_not_looked_up() -> None:
    def bag(index: int, offset: int) -> torch.Tensor:
        return torch.embedding_bag(torch.ones(3, 2), torch.tensor([0, index]), torch.tensor([0, offset]))[0]

    for checked in (DefinedCalls(), calls_are_checked()):
        with checked:
            assert bag(2, 2).shape == (2, 2)
            for index, offset in ((3, 1), (-1, 1), (2, 3)):
                with pytest.raises(UndefinedCallError, match="an index or an offset beyond the end"):
                    bag(index, offset)


@pytest.mark.parametrize("layers", [1, 2])
def test_an_lstm_beside_weights_that_do_not_fit_is_not_run(layers: int) -> None:
    layer = torch.nn.LSTM(3, 4, layers)
    weights = [one.detach() for one in layer.parameters()]
    state = torch.zeros(layers, 2, 4)

    def run(features: int, given: list[torch.Tensor], state: torch.Tensor) -> torch.Tensor:
        steps = torch.randn(5, 2, features)
        return torch.lstm(steps, (state, state), given, True, layers, 0.0, False, False, False)[0]

    for checked in (DefinedCalls(), calls_are_checked()):
        with checked, torch.no_grad():
            assert run(3, weights, state).shape == (5, 2, 4)
            for call in (
                (2, weights, state),
                (3, [*weights[:3], weights[3][:8], *weights[4:]], state),
                (3, [weights[0], weights[1][:, :3], *weights[2:]], state),
                (3, weights, state[..., :3]),
            ):
                with pytest.raises((UndefinedCallError, RuntimeError)):
                    run(*call)

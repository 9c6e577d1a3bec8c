from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import anyshape
from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.verbs.watch import watch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, *, states=None, mode="mean"):
        if len(x) > 4:  # in halves, by a call of itself
            return torch.cat([self(x[:4]), self(x[4:])])
        x.clamp_(max=0.5)
        return self.layer(x)

    def encode(self, x):
        return self.forward(x) + 1


def tensor(*shape):
    return torch.ones(shape)


def test_calls_are_recorded_in_their_order_once_for_each_set_of_shapes():
    model = Net()
    with watch(model) as seen:
        model(tensor(2, 3))
        model(tensor(4, 3), mode="sum")
        model(tensor(2, 3))
    assert repr(seen) == "2 calls of Net\n  0: (float32[2, 3])\n  1: (float32[4, 3], mode='sum')"
    assert [call.args[0].shape[0] for call in seen] == [2, 4]
    assert seen[1].kwargs == {"mode": "sum"}


def test_what_is_recorded_is_what_was_given_although_forward_changes_it():
    model = Net()
    with watch(model) as seen:
        model(x := tensor(2, 3))
    assert x.max() == 0.5
    assert seen[0].args[0].min() == 1


def test_calls_that_the_model_makes_of_itself_are_not_the_users():
    model = Net()
    with watch(model) as seen:
        model(tensor(6, 3))
    assert [call.args[0].shape[0] for call in seen] == [6]


def test_afterwards_nothing_is_left_on_the_model_even_if_the_users_code_fails():
    model = Net()
    before = dict(vars(model))
    for watched in (model, model.encode):
        with pytest.raises(ZeroDivisionError), watch(watched) as seen:
            model.encode(tensor(2, 3))
            model(tensor(2, 3))
            raise ZeroDivisionError
        assert len(seen) == 1
    assert vars(model) == before
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_a_call_that_fails_is_recorded_and_the_next_one_too():
    model = Net()
    with watch(model) as seen:
        with pytest.raises(RuntimeError):
            model(tensor(2, 9))
        model(tensor(2, 3))
    assert [tuple(call.args[0].shape) for call in seen] == [(2, 9), (2, 3)]


def test_a_method_is_watched_by_itself():
    model = Net()
    with watch(model.encode) as seen:
        model.encode(tensor(2, 3))
        model(tensor(3, 3))
    assert repr(seen) == "1 call of Net.encode\n  0: (float32[2, 3])"


def test_a_method_that_the_object_has_of_its_own_comes_back():
    model = Net()
    own = model.encode
    model.encode = own
    with watch(model.encode):
        assert model.encode is not own
    assert model.encode is own


def test_the_first_calls_are_kept_and_a_note_says_that_there_were_more():
    model = Net()
    with watch(model, most=2) as seen:
        for size in (1, 2, 3, 4):
            model(tensor(size, 3))
    assert [len(call.args[0]) for call in seen] == [1, 2]
    assert seen.notes == ["more than 2 sets of shapes were seen, the first 2 are kept: raise most="]
    assert repr(seen).endswith(seen.notes[0])


@pytest.mark.parametrize("most", [0, True, "2"])
def test_how_many_is_a_number_of_calls(most):
    with pytest.raises(DeclarationError) as caught, watch(Net(), most=most):
        pass
    assert str(caught.value) == f"most is {most!r}: give how many calls to keep, at least 1"


def test_a_function_cannot_be_watched():
    def double(x):
        return 2 * x

    with pytest.raises(DeclarationError) as caught, watch(double):
        pass
    assert str(caught.value) == "`double` cannot be watched: pass the module, or a method of it"


def test_a_large_tensor_is_kept_as_it_is_with_a_note(monkeypatch):
    monkeypatch.setattr(budgets, "LARGE_RECORDED_CALL", 40)
    model = Net()
    with watch(model) as seen:
        model(large := tensor(4, 3))
        model(small := tensor(2, 3))
    assert seen[0].args[0].data_ptr() == large.data_ptr()
    assert seen[1].args[0].data_ptr() != small.data_ptr()
    assert seen.notes == ["`x` is too large to be copied: leave it unchanged until the export is done"]


def test_what_cannot_be_an_input_is_noted_and_does_not_disturb_the_users_code():
    class Dense(nn.Module):
        def forward(self, x):
            return x.to_dense()

    model = Dense()
    with watch(model) as seen:
        assert model(tensor(2, 2).to_sparse()).shape == (2, 2)
    assert len(seen) == 0
    assert seen.notes == [
        "(float32[2, 2]) was not recorded: `x` is a sparse_coo tensor, ONNX inputs are dense: "
        "pass indices and values as inputs instead"
    ]


def test_threads_record_side_by_side():
    model = Net()
    with watch(model, most=64) as seen:
        threads = [threading.Thread(target=model, args=(tensor(3, n, 3)[0],)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(len(call.args[0]) for call in seen) == [1, 2, 3, 4]


def test_tensors_of_inference_mode_become_ordinary_ones():
    model = Net()
    with watch(model) as seen, torch.inference_mode():
        model(tensor(2, 3))
    assert not seen[0].args[0].is_inference()


def test_containers_are_shown_with_their_first_parts():
    model = Net()
    with watch(model) as seen:
        model(tensor(2, 3), states={"a": (tensor(1), None), "b": [3, "x"]})
        model(tensor(2, 3), states=[tensor(1)] * 9)
    assert repr(seen[0]) == "(float32[2, 3], states={a: (float32[1], None), b: [3, 'x']})"
    assert repr(seen[1]) == "(float32[2, 3], states=[float32[1], float32[1], float32[1], float32[1], ...])"


def test_calls_are_sorted_into_kinds():
    model = Net()
    with watch(model) as seen:
        model(tensor(2, 3))
        model(tensor(2, 3), states=tensor(1))
        model(tensor(3, 3))
    assert [len(kind) for kind in seen.kinds] == [2, 1]
    assert repr(seen.of(1)) == "1 call of Net\n  0: (float32[2, 3], states=float32[1])"
    with pytest.raises(DeclarationError) as caught:
        seen.of(2)
    assert str(caught.value) == "there is no kind 2: the 3 recorded calls are of 2 kinds"


def test_a_part_of_what_was_recorded_can_be_taken():
    model = Net()
    with watch(model) as seen:
        for size in (1, 2, 3):
            model(tensor(size, 3))
    assert repr(seen[1:]) == "2 calls of Net\n  0: (float32[2, 3])\n  1: (float32[3, 3])"


def test_a_compiled_model_is_watched_from_outside():
    model = torch.compile(nn.Linear(3, 2), backend="eager")
    with watch(model) as seen:
        model(tensor(2, 3))
        model(tensor(5, 3))
    assert repr(seen) == "2 calls of Linear\n  0: (float32[2, 3])\n  1: (float32[5, 3])"


def test_generation_is_seen_with_its_cache_as_it_was_at_each_call():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=32, pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    with watch(model) as seen:
        model.generate(torch.ones(2, 5, dtype=torch.int64), max_new_tokens=4, do_sample=False)
    lengths = [call.kwargs["past_key_values"].layers[0].keys for call in seen.of(1)]
    assert [tuple(keys.shape) for keys in lengths] == [(2, 1, 5, 8), (2, 1, 6, 8), (2, 1, 7, 8)]
    assert seen.of(0)[0].kwargs["past_key_values"].layers[0].keys is None


def test_the_recorded_calls_are_examples_for_an_export(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    with watch(model) as seen:
        model(tensor(2, 5, 3))
        model(tensor(3, 7, 3))
    result = anyshape.export(model, examples=seen, f=tmp_path / "m.onnx", quick=True)
    assert result.verdict == "checked"
    assert anyshape.load(tmp_path / "m.onnx")(tensor(4, 11, 3)).shape == (4, 11, 2)

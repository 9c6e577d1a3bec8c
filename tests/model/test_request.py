from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

from anyshape.errors import DeclarationError
from anyshape.model.request import understand


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x, y=None, n=3, scale=1.0):
        out = self.linear(x) * scale
        return out if y is None else out + y[..., :2]

    def encode(self, x):
        return self.linear(x)


def tensor(*shape):
    return torch.ones(shape or (2, 4))


def message_of(*args, **kwargs):
    with pytest.raises(DeclarationError) as caught:
        understand(*args, **kwargs)
    return str(caught.value)


# ---- the declaration, in whichever form


@pytest.mark.parametrize(
    "way",
    [
        {"dims": {"x": "batch 4", "y": "batch _"}},
        {"dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}}},
        {"dynamic_shapes": {"x": {0: "batch"}, "y": {0: "batch"}}},
        {"dynamic_shapes": ({0: torch.export.Dim("batch")}, {0: torch.export.Dim("batch")})},
    ],
)
def test_every_way_of_declaring_gives_the_same_request(way):
    request = understand(Net(), (tensor(), tensor()), None, **way)
    assert request.spec.dims == ("batch",)
    assert {leaf: [str(e) for e in row] for leaf, row in request.spec.axes.items()} == {
        "x": ["batch", "None"],
        "y": ["batch", "None"],
    }
    assert request.notes == ()


def test_nothing_declared_is_found_by_probing_with_a_note():
    request = understand(Net(), tensor(), None)
    assert request.spec.dims == ("batch",)
    assert request.notes[0] == "nothing was declared: dims were found by probing; declare dims= to say otherwise"
    assert request.spec.explicit == frozenset()
    assert understand(Net(), tensor(), None, dims={}).spec.dims == ()


def test_dims_are_found_from_several_calls():
    request = understand(Net(), (), None, examples=[(tensor(2, 4),), {"x": tensor(5, 4)}])
    assert request.spec.dims == ("batch",)
    assert request.spec.example == {"batch": 2}
    assert request.notes == ("dims were found from 2 calls; declare dims= to say otherwise",)


def test_dims_that_are_declared_are_not_looked_for_in_examples():
    request = understand(Net(), (), None, examples=[(tensor(2, 4),), (tensor(5, 4),)], dims={"x": "n 4"})
    assert request.spec.dims == ("n",)
    assert request.notes == ()


def test_a_module_s_own_example_is_its_call():
    net = Net()
    net.example_input_array = tensor(3, 4)
    assert understand(net, (), None, dims={"x": "n 4"}).spec.example == {"n": 3}
    assert understand(net, tensor(5, 4), None, dims={"x": "n 4"}).spec.example == {"n": 5}


def test_dims_are_the_parameters_of_make_inputs():
    class Joined(nn.Module):
        def forward(self, x, past, count):
            return torch.cat([past, x], 1)[:, :count]

    def make(samples, past=3, more=2):
        return torch.randn(samples, 2 * more, 4), torch.randn(samples, past, 4), past

    request = understand(Joined(), (), None, make_inputs=make)
    assert {name: [str(e) if e else None for e in row] for name, row in request.spec.axes.items()} == {
        "x": ["samples", "2 * more", None],
        "past": ["samples", "past", None],
    }
    assert {name: str(e) for name, e in request.spec.scalars.items()} == {"count": "past"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"args": (torch.ones(2, 4),)}, "examples= and args= both give the call: give one of them"),
        (
            {"make_inputs": lambda n: (torch.ones(n, 4),)},
            "examples= and make_inputs= both give the call: give one of them",
        ),
    ],
)
def test_examples_stand_for_themselves(given, sentence):
    with pytest.raises(DeclarationError) as raised:
        understand(Net(), given.pop("args", ()), None, examples=[(tensor(),)], **given)
    assert str(raised.value) == sentence


def test_sizes_of_the_user_win_over_those_of_a_torch_dim():
    dim = torch.export.Dim("batch", min=2, max=64)
    request = understand(Net(), tensor(), None, dynamic_shapes={"x": {0: dim}}, sizes={"batch": "1..8"})
    assert str(request.spec.ranges["batch"]) == "1..8"


def test_labels_of_outputs_are_kept():
    request = understand(
        Net(), tensor(), None, dynamic_axes={"x": {0: "batch"}, "out": {0: "rows"}}, output_names=["out"]
    )
    assert request.labels == {"out": {0: "rows"}}
    assert request.output_names == ("out",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": {}, "dynamic_axes": {}}, "dims= and dynamic_axes= both declare the dims: give one of them"),
        ({"dims": "batch 4"}, 'dims is \'batch 4\', a str: give a dict by name, such as {"x": "batch seq"}'),
        ({"dims": ("batch 4",)}, 'dims is (\'batch 4\',), a tuple: give a dict by name, such as {"x": "batch seq"}'),
        ({"sizes": "1..5"}, 'sizes is \'1..5\', a str: give a dict by name, such as {"seq": "1..512"}'),
        ({"dynamic_axes": ["x"]}, 'dynamic_axes is [\'x\'], a list: give a dict by name, such as {"x": {0: "batch"}}'),
        ({"input_names": "x"}, "input_names is 'x': give a list of names"),
        ({"output_names": "out"}, "output_names is 'out': give a list of names"),
        ({"input_names": [3]}, "input_names is [3]: give a list of names"),
    ],
)
def test_arguments_of_another_kind_get_one_sentence(arguments, message):
    assert message_of(Net(), tensor(), None, **arguments) == message


# ---- input_names


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"x": "x", "y": "y"}),
        (["a", "b"], {"x": "a", "y": "b"}),
        (["a"], {"x": "a", "y": "y"}),
        (["y", "x"], {"x": "x", "y": "y"}),
        (["y"], {"x": "x", "y": "y"}),
        (["y", "b"], {"x": "y", "y": "b"}),
        (("a", "b"), {"x": "a", "y": "b"}),
    ],
)
def test_names_are_given_in_order_unless_they_are_the_inputs_own(given, expected):
    request = understand(Net(), (tensor(), tensor()), None, dims={}, input_names=given)
    assert request.input_names == expected


def test_dims_may_speak_the_names_of_the_file():
    request = understand(
        Net(), (tensor(), tensor()), None, dims={"a": "batch _", "y": "batch _"}, input_names=["a", "b"]
    )
    assert [str(row[0]) for row in request.spec.axes.values()] == ["batch", "batch"]


def test_dynamic_axes_may_speak_the_names_of_the_file_or_of_the_inputs():
    for name in ("a", "x"):
        request = understand(Net(), tensor(), None, dynamic_axes={name: {0: "batch"}}, input_names=["a"])
        assert request.spec.dims == ("batch",)


def test_a_number_that_is_an_input_has_a_name_too():
    request = understand(Net(), (tensor(), None, 5, 0.5), None, dims={"x": "batch 4", "n": "", "scale": ""})
    assert request.input_names == {"x": "x", "n": "n", "scale": "scale"}
    request = understand(Net(), (tensor(), None, 5), None, dynamic_shapes=(None, None, torch.export.Dim.DYNAMIC))
    assert request.input_names == {"x": "x", "n": "n"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", "b", "c"], "input_names has 3 names but the call has 2 inputs: ['x', 'y']"),
        (["a", "a"], "input_names ['a', 'a'] gives two of the inputs ['x', 'y'] one name"),
        (["x", "x"], "input_names ['x', 'x'] gives two of the inputs ['x', 'y'] one name"),
    ],
)
def test_names_that_do_not_fit_are_refused(given, message):
    assert message_of(Net(), (tensor(), tensor()), None, input_names=given) == message


def test_a_new_name_must_not_be_that_of_a_later_input():
    def three(a, b, c):
        return a + b + c

    message = message_of(three, (tensor(), tensor(), tensor()), None, input_names=["z", "c"])
    assert message == "input_names ['z', 'c'] gives two of the inputs ['a', 'b', 'c'] one name"


# ---- make_inputs


def test_make_inputs_may_be_the_only_source():
    request = understand(Net(), (), None, dims={"x": "batch 4"}, make_inputs=lambda batch: tensor(batch, 4))
    assert request.spec.example == {"batch": 3}
    assert request.signature.values["x"].shape == (3, 4)


def test_make_inputs_is_asked_inside_the_sizes():
    asked = []

    def make_inputs(batch):
        asked.append(batch)
        return tensor(batch, 4)

    request = understand(
        Net(), None, None, dims={"x": "batch 4"}, sizes={"batch": "8..32 step 8"}, make_inputs=make_inputs
    )
    assert asked == [8]
    assert request.spec.example == {"batch": 8}


@pytest.mark.parametrize(
    "returned",
    [
        lambda x: x,
        lambda x: (x,),
        lambda x: {"x": x},
        lambda x: {"args": (x,), "kwargs": {}},
        lambda x: {"kwargs": {"x": x}},
        lambda x: (x, {"y": None}),
    ],
)
def test_make_inputs_may_return_every_form_of_call(returned):
    request = understand(Net(), (), None, dims={"x": "batch 4"}, make_inputs=lambda batch: returned(tensor(batch, 4)))
    assert list(request.signature.values) == ["x"]


def test_an_exception_in_make_inputs_makes_the_size_invalid():
    def make_inputs(batch, width):
        if batch % 8 or width < 8:
            raise ValueError("batch must be a multiple of 8")
        return tensor(batch, 4)

    request = understand(Net(), (), None, dims={"x": "batch 4"}, make_inputs=make_inputs)
    assert request.spec.example == {"batch": 32}


def test_a_model_that_refuses_a_size_is_asked_at_another():
    def model(x):
        return x.view(4, -1)

    request = understand(model, (), None, dims={"x": "n"}, make_inputs=lambda n: torch.ones(n))
    assert request.spec.example["n"] % 4 == 0


def test_make_inputs_that_always_raises_gets_one_sentence():
    def make_inputs(batch):
        raise KeyError("no data\nfor this")

    assert message_of(Net(), (), None, dims={"x": "batch 4"}, make_inputs=make_inputs) == (
        "no call of make_inputs runs at the sizes tried, last KeyError: 'no data\\nfor this'; give an example or sizes="
    )


def test_make_inputs_keeps_the_first_size_of_what_is_not_declared():
    request = understand(
        Net(), (), None, dims={"x": "batch 4"}, make_inputs=lambda batch, extra: tensor(batch, 4)[: extra + 99]
    )
    assert request.spec.dims == ("batch",)
    assert request.make_inputs(batch=6).shape == (6, 4)


def test_parameters_with_other_defaults_are_no_dims():
    def make_inputs(batch, rows=6, dtype=torch.float32, check=True):
        return tensor(batch, 4).to(dtype)

    request = understand(Net(), (), None, dims={"x": "batch 4"}, make_inputs=make_inputs)
    assert request.make_inputs(batch=5).dtype == torch.float32


def test_make_inputs_may_take_all_sizes_by_name():
    def make_inputs(**sizes):
        return tensor(sizes["batch"], 4), tensor(sizes["batch"], sizes["extra"])

    dims = {"x": "batch 4", "y": "batch extra"}
    request = understand(Net(), (), None, dims=dims, make_inputs=make_inputs)
    assert request.spec.example == {"batch": 3, "extra": 5}


def test_make_inputs_solves_what_an_example_cannot():
    def model(x):
        return x * 2

    request = understand(model, (), None, dims={"x": "h*w"}, make_inputs=lambda h, w: torch.ones(h * w))
    assert request.spec.example == {"h": 3, "w": 5}


def test_a_parameter_that_neither_example_nor_dims_know_is_refused():
    message = message_of(Net(), tensor(), None, dims={"x": "batch 4"}, make_inputs=lambda bach: tensor(bach, 4))
    assert message == "make_inputs takes `bach`, but no axis is called so; did you mean `batch`?"


def test_making_inputs_leaves_the_random_generator_alone():
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    understand(lambda x: x * 2, (), None, dims={"x": "n"}, make_inputs=lambda n: torch.rand(n))
    assert torch.equal(torch.rand(1), wanted)


# ---- dtype


def test_dtype_converts_a_copy_of_the_model_and_of_the_floats():
    net = Net()
    request = understand(net, (tensor(), None, 3), None, dims={"x": "batch 4"}, dtype="float16")
    assert request.target.module.linear.weight.dtype == request.signature.values["x"].dtype == torch.float16
    assert net.linear.weight.dtype == torch.float32
    assert request.signature.values["n"] == 3


def test_dtype_converts_what_make_inputs_makes():
    request = understand(
        Net(), (), None, dims={"x": "batch 4"}, dtype=torch.float64, make_inputs=lambda batch: (tensor(batch, 4),)
    )
    assert request.signature.values["x"].dtype == torch.float64
    assert request.make_inputs(batch=2)["args"][0].dtype == torch.float64
    assert "batch" in inspect.signature(request.make_inputs).parameters


def test_dtype_converts_the_module_of_a_method():
    request = understand(Net().encode, tensor(), None, dtype="bfloat16")
    assert request.target.name == "Net.encode"
    assert request.target.call(request.signature.values["x"]).dtype == torch.bfloat16


def test_dtype_does_not_convert_a_function():
    message = message_of(lambda x: x, tensor(), None, dtype="float16")
    assert message == "dtype= converts a module or its method, not a function"


def test_a_model_that_cannot_be_copied_is_said_so():
    net = Net()
    net.cached = net.linear(tensor())
    message = message_of(net, tensor(), None, dtype="float16")
    assert message.startswith(
        "dtype= needs a copy of the model, which cannot be copied (RuntimeError: Only Tensors created"
    )

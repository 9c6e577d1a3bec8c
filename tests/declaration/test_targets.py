from __future__ import annotations

import functools
import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.declaration.targets import resolve_target, training_parts
from anyshape.errors import DeclarationError
from anyshape.torchkit.state import ModuleState, untouched


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x, mask=None):
        return self.linear(x)

    def encode(self, x):
        return self.linear(x) * 2


class Predictor:
    """A plain object around a module."""

    def __init__(self):
        self.parts = {"net": Net()}

    def __call__(self, x):
        return self.parts["net"](x)

    def predict(self, x):
        return self.parts["net"](x)


NET = Net()


def reads_a_global(x):
    return NET(x)


def calls_another(x):
    return reads_a_global(x)


@torch.no_grad()
def decorated(x):
    return NET(x)


def closure_over(net):
    def run(x):
        return net(x)

    return run


def modules_held(target):
    return [module for module in resolve_target(target).module.modules() if isinstance(module, Net)]


# ---- what may be exported


def test_a_module_is_its_own_target():
    net = Net()
    target = resolve_target(net)
    assert target.module is target.call is net
    assert target.name == "Net"
    assert list(target.signature.parameters) == ["x", "mask"]


def test_a_bound_method_brings_its_module():
    net = Net()
    target = resolve_target(net.encode)
    assert target.module is net
    assert target.name == "Net.encode"
    assert list(target.signature.parameters) == ["x"]


@pytest.mark.parametrize("function", [reads_a_global, calls_another, decorated, functools.partial(decorated)])
def test_a_function_brings_the_modules_among_its_globals(function):
    assert modules_held(function) == [NET]


def test_a_function_brings_the_module_in_its_closure():
    net = Net()
    assert modules_held(closure_over(net)) == [net]
    assert modules_held(torch.no_grad()(closure_over(net))) == [net]
    assert modules_held(lambda x: closure_over(net)(x)) == [net]


@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: n.encode, lambda n: n.forward, closure_over])
def test_a_partial_brings_the_module_that_it_calls(wrap):
    net = Net()
    target = resolve_target(functools.partial(wrap(net)))
    assert modules_held(functools.partial(wrap(net))) == [net]
    assert list(target.signature.parameters)[0] == "x"


def test_a_partial_does_not_ask_for_what_it_binds():
    bound = functools.partial(NET, mask=None)
    assert resolve_target(bound).name == "Net"
    assert resolve_target(functools.partial(torch.compile(NET), mask=None)).call.func is NET
    assert resolve_target(functools.partial(NET, torch.zeros(2, 3))).signature.parameters.keys() == {"mask"}
    assert resolve_target(functools.partial(reads_a_global)).name == "reads_a_global"


def test_an_object_brings_the_modules_that_it_holds():
    predictor = Predictor()
    net = predictor.parts["net"]
    assert modules_held(predictor) == modules_held(predictor.predict) == [net]
    assert resolve_target(predictor).name == "Predictor"


def test_a_function_without_modules_has_none():
    assert list(resolve_target(torch.relu).module.parameters()) == []
    assert modules_held(lambda x: x + 1) == []


def test_a_name_that_is_not_bound_yet_does_no_harm():
    def run(x):
        return later(x)

    assert modules_held(run) == []
    later = NET
    assert later is NET


def test_wrappers_are_taken_off():
    net = Net()
    wrapped = [
        torch.compile(net),
        nn.DataParallel(net),
        torch.compile(nn.DataParallel(net)),
        nn.DataParallel(torch.compile(net)),
    ]
    assert all(resolve_target(wrapper).module is net for wrapper in wrapped)
    assert resolve_target(torch.compile(net).encode).module is net


def test_the_wrapper_of_a_compiled_function_is_taken_off():
    assert resolve_target(torch.compile(reads_a_global)).call is reads_a_global


def test_an_exported_program_is_a_target():
    program = torch.export.export(Net(), (torch.zeros(2, 3),))
    target = resolve_target(program)
    assert target.name == "program"
    assert "x" in target.signature.parameters
    assert target.example is not None
    assert target.example[0][0].shape == (2, 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_torch_compiled_to_script_is_called_as_before():
    def scaled(x: torch.Tensor, factor: float = 2.0, *, flip: bool):
        return -x * factor if flip else x * factor

    function = resolve_target(torch.jit.script(scaled))
    assert function.is_scripted
    assert function.name == "scaled"
    assert str(function.signature) == "(x, factor=2.0, *, flip)"
    module = torch.jit.script(Net())
    for target in (resolve_target(module), resolve_target(torch.jit.trace(Net(), torch.zeros(2, 3)))):
        assert target.is_scripted
        assert target.name == "Net"
        assert "x" in target.signature.parameters
    assert not resolve_target(Net()).is_scripted


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_no_forward_of_torchscript_gets_one_sentence():
    class Encoder(nn.Module):
        @torch.jit.export
        def encode(self, x):
            return x * 2

    scripted = torch.jit.script(Encoder())
    with pytest.raises(DeclarationError) as caught:
        resolve_target(scripted)
    assert str(caught.value) == "`Encoder` is TorchScript without a `forward`, which is what is exported"
    with pytest.raises(DeclarationError) as caught:
        resolve_target(scripted.encode)
    assert str(caught.value) == (
        "`encode` is a method of a TorchScript module, of which `forward` is exported: pass the module"
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Net, "`Net` is a class: pass an instance of it"),
        (3, "3 is a int: pass a module, a bound method or a function"),
        ("model.onnx", "'model.onnx' is a str: pass a module, a bound method or a function"),
        (None, "None is a NoneType: pass a module, a bound method or a function"),
        (["x"] * 999, "the model is a list: pass a module, a bound method or a function"),
        (
            nn.Linear(4, 2).state_dict(),
            "the model is a dict, as a state dict is: pass the module, and load the state dict into it",
        ),
        (
            nn.Sequential(nn.Linear(4, 2, device="meta")),
            "`0.weight` of `Sequential` is on `meta`, which holds no values: load the weights first",
        ),
        (
            nn.Linear(4, 2, device="meta").forward,
            "`weight` of `Linear` is on `meta`, which holds no values: load the weights first",
        ),
        (
            nn.Sequential(nn.LazyLinear(3)),
            "`0.weight` of `Sequential` has no shape yet: run the model once before it is exported",
        ),
    ],
)
def test_what_cannot_be_exported_gets_one_sentence(target, message):
    with pytest.raises(DeclarationError) as caught:
        resolve_target(target)
    assert str(caught.value) == message


def test_a_quantised_model_is_told_to_be_quantised_later():
    with warnings.catch_warnings(action="ignore"):  # torch's, which is about to drop it
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear}, dtype=torch.qint8)
    with pytest.raises(DeclarationError) as caught:
        resolve_target(model)
    assert str(caught.value) == (
        "`0` of `Sequential` is quantised, in numbers that no exporter reads: "
        "export the float model, and quantise the file"
    )


# ---- training mode


def test_parts_that_depend_on_training_are_named_and_others_are_not():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2), nn.LSTM(2, 2, num_layers=2, dropout=0.1))
    assert training_parts(net) == ["1", "2", "3"]
    assert training_parts(net.eval()) == []


def test_flags_are_restored_one_by_one():
    net = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)).train()
    net[1].eval()
    with untouched(net):
        assert not any(part.training for part in net.modules())
    assert [part.training for part in net.modules()] == [True, True, False]


def test_a_function_that_uses_a_module_in_training_is_run_in_eval_mode():
    net = nn.Sequential(nn.Dropout(0.9)).train()
    target = resolve_target(functools.partial(net))
    with untouched(target.module):
        assert torch.equal(target.call(torch.ones(50)), torch.ones(50))
    assert net[0].training


# ---- state


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(2, 2))
        self.kept = torch.zeros(3)
        self.history, self.table, self.seen = [1], {"a": 1}, {1}
        self.steps, self.grid = 0, None

    def forward(self, x):
        self.count += 1
        self.cache = torch.ones(5, 5)
        self.kept.add_(1)
        self.history.append(2)
        self.table["b"] = 2
        self.seen.add(2)
        self.steps += 1
        self.grid, self.new = x, x
        del self.table["a"]
        return x


def test_every_call_starts_from_the_state_at_the_moment_of_export():
    net = Stateful()
    state = ModuleState(net)
    for _ in range(3):
        net(torch.zeros(1))
        state.restore()
        assert (net.count.item(), tuple(net.cache.shape), net.kept.tolist()) == (0.0, (2, 2), [0.0, 0.0, 0.0])
        assert (net.history, net.table, net.seen, net.steps, net.grid) == ([1], {"a": 1}, {1}, 0, None)
        assert not hasattr(net, "new")


def test_the_state_is_restored_after_an_exception_too():
    net = Stateful()
    with pytest.raises(KeyError), untouched(net):
        net(torch.zeros(1))
        raise KeyError
    assert (net.count.item(), net.history, net.steps) == (0.0, [1], 0)


def test_random_generators_are_as_before():
    net = Net()
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    wanted = (torch.rand(2).tolist(), random.random(), np.random.rand())
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    with untouched(net):
        torch.rand(9), random.random(), np.random.rand(4)
    assert (torch.rand(2).tolist(), random.random(), np.random.rand()) == wanted


def test_a_folder_is_told_how_a_checkpoint_is_exported(tmp_path):
    with pytest.raises(DeclarationError) as caught:
        resolve_target(tmp_path)
    assert str(caught.value) == (
        f"{str(tmp_path)!r} is a folder: pass a module; a checkpoint's folder is exported by "
        "anyshape.checkpoints.export_checkpoint"
    )

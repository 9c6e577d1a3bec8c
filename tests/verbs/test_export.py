"""What `export` promises, tried on small models with real files."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.onnxfile.contract import read_contract
from anyshape.onnxfile.placement import listed_data
from tests.running import is_right, load


class Pooled(nn.Module):
    """Token ids and a mask; positions from a table of 24 rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.positions = nn.Embedding(30, 8), nn.Embedding(24, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        states = (self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))) * mask.unsqueeze(-1)
        return {"states": states, "logits": self.head(states.sum(1))}


DIMS = {"ids": "batch seq", "mask": "batch seq"}


def example() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 30, (1, 5)), torch.ones(1, 5)


class Branch(nn.Module):
    """The sides return different things, which no file can."""

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return (x, x * 2) if x.shape[0] > 2 else x


class Reshaped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(2, 8, 4) + 1


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[anyshape.Result, Path]:
    path = tmp_path_factory.mktemp("pooled") / "model.onnx"
    return anyshape.export(Pooled(), example(), path, dims=DIMS, metadata={"team": "speech"}), path


def test_a_batch_of_one_in_the_example_does_not_pin_the_batch(exported: tuple[anyshape.Result, Path]) -> None:
    result, path = exported
    assert [str(port) for port in result.inputs] == ["ids: int64[batch, seq]", "mask: float32[batch, seq]"]
    assert [str(port) for port in result.outputs] == ["states: float32[batch, seq, 8]", "logits: float32[batch, 4]"]
    for batch, seq in ((1, 1), (3, 24), (7, 2)):
        assert is_right(path, Pooled(), (torch.randint(0, 30, (batch, seq)), torch.rand(batch, seq)))


def test_the_end_of_a_table_is_found_and_stored(exported: tuple[anyshape.Result, Path]) -> None:
    result, path = exported
    assert result.limits == ("seq <= 24",)
    contract = read_contract(onnx.load(path))
    assert contract is not None
    assert str(contract.dims["seq"]) == "1..24"
    assert contract.outputs["states"] == ("batch", "seq", "8")
    assert 24 in {sizes["seq"] for sizes in result.verification.sizes_run}


def test_the_file_holds_no_trace_of_the_machine(exported: tuple[anyshape.Result, Path]) -> None:
    content = exported[1].read_bytes()
    assert str(Path.cwd()).encode() not in content
    assert b"torch.onnx" not in content
    assert b"self.tokens(ids)" not in content
    assert b"test_export.py:" in content


def test_metadata_of_the_user_is_kept(exported: tuple[anyshape.Result, Path]) -> None:
    entries = {entry.key: entry.value for entry in onnx.load(exported[1]).metadata_props}
    assert entries["team"] == "speech"


def test_the_result_is_json_and_runs_like_a_program(exported: tuple[anyshape.Result, Path]) -> None:
    result, _ = exported
    told = json.loads(result.to_json())
    assert (told["verdict"], told["dims"]) == ("checked", {"batch": "1..", "seq": "1..24"})
    assert told["verification"]["largest_error_ratio"] < 8
    ids, mask = torch.randint(0, 30, (4, 3)), torch.rand(4, 3)
    states, logits = result(ids, mask)
    expected = Pooled()(ids, mask)
    torch.testing.assert_close(states, expected["states"])
    torch.testing.assert_close(logits, expected["logits"])


def test_repr_text_html_json_and_file_say_the_same_figures(exported: tuple[anyshape.Result, Path]) -> None:
    result, path = exported
    told, found = result.to_dict(), anyshape.inspect(path)
    checked = told["verification"]
    sizes = f"right at {len(checked['sizes_run'])} sizes in {checked['runtime']} against {checked['against']}"
    ratio, allowed = checked["largest_error_ratio"], checked["allowed_error_ratio"]
    error = f"at most {ratio:.1f} x {checked['measure']} ({allowed:g} is allowed)"
    took = f"{result.seconds:.1f} s to convert by torch.export (opset {told['opset']})"
    html = unescape(result._repr_html_())
    for words in (sizes, error, took, *(f"{dim} {range_}" for dim, range_ in told["dims"].items())):
        assert words in str(result)
        assert words in html
    assert repr(result) == f"<Result checked: {path.name}, {sizes}>"
    assert f"at {len(checked['sizes_run'])} sizes in {checked['runtime']}" in str(found)
    assert error in str(found)
    assert found.opset == told["opset"]


def test_a_result_saves_itself_elsewhere(exported: tuple[anyshape.Result, Path], tmp_path: Path) -> None:
    exported[0].save(tmp_path / "copy.onnx")
    assert load(tmp_path / "copy.onnx").get_inputs()[0].name == "ids"
    assert [file.name for file in tmp_path.iterdir()] == ["copy.onnx"]


def test_the_same_export_gives_the_same_bytes(exported: tuple[anyshape.Result, Path], tmp_path: Path) -> None:
    anyshape.export(Pooled(), example(), tmp_path / "model.onnx", dims=DIMS, metadata={"team": "speech"})
    assert (tmp_path / "model.onnx").read_bytes() == exported[1].read_bytes()


def test_explicit_sizes_that_pytorch_cannot_do_are_refused(tmp_path: Path) -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Pooled(), example(), tmp_path / "model.onnx", dims=DIMS, sizes={"seq": "1..64"})
    (finding,) = refused.value.findings
    assert finding.headline == "error[bounded-dim]: `seq` is bounded"
    assert finding.label == "runs only for `seq <= 24`"
    assert finding.helps == ('declare it: sizes={"seq": "1..24"} instead of "1..64"',)
    assert list(tmp_path.iterdir()) == []


def test_a_branch_on_a_size_whose_sides_do_not_meet_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"what was there before")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Branch(), torch.randn(3, 4), path, dims={"x": "batch 4"})
    (finding,) = refused.value.findings
    assert finding.headline == "error[bounded-dim]: `batch` cannot take every declared size in the export"
    assert finding.label == "exported only for `batch > 2`"
    assert finding.span.function == "Branch.forward"
    outcomes = {attempt.strategy: attempt.outcome for attempt in refused.value.result.attempts}
    assert outcomes == {
        "torch.export": "wrong",
        "torch.export at other sizes": "failed",
        "torch.export with branches and loops": "failed",
        "TorchScript": "wrong",
    }
    assert path.read_bytes() == b"what was there before"
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_a_hard_coded_size_is_named_before_any_strategy_is_tried() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Reshaped(), torch.randn(2, 8, 4), dims={"x": "batch seq 4"})
    (finding,) = refused.value.findings
    assert finding.headline == "error[pinned-dim]: `batch` and `seq` cannot vary"
    assert finding.label == "`batch` becomes 2 and `seq` becomes 8 here"
    assert (finding.span.function, finding.span.column) == ("Reshaped.forward", 16)
    assert refused.value.result.attempts == ()


def test_narrow_writes_what_checks_and_says_what_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = anyshape.export(Branch(), torch.randn(3, 4), path, dims={"x": "batch 4"}, narrow=True)
    assert (result.verdict, result.given_up) == ("narrowed", ("only where batch > 2",))
    assert is_right(path, Branch(), (torch.randn(9, 4),))
    assert min(sizes["batch"] for sizes in result.verification.sizes_run) == 3


def test_narrow_fixes_a_dim_that_cannot_vary(tmp_path: Path) -> None:
    result = anyshape.export(
        Reshaped(), torch.randn(2, 8, 4), tmp_path / "model.onnx", dims={"x": "batch seq 4"}, narrow=True
    )
    assert result.given_up == ("batch is fixed at 2", "seq is fixed at 8")
    assert result.inputs[0].axes == (2, 8, 4)


def test_random_results_are_refused_with_a_sentence() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(x)

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Noisy(), torch.randn(3, 4), dims={"x": "batch 4"})
    assert [finding.rule for finding in refused.value.findings] == ["random-output"]


@pytest.mark.parametrize(
    "draw", [random.random, lambda: float(np.random.rand()), lambda: torch.rand(()), lambda: time.time() % 1]
)
def test_results_that_are_random_at_some_sizes_are_refused_with_the_size(draw: Callable[[], Any]) -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * draw() if x.shape[0] > 40 else x

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Noisy(), torch.randn(3, 4), dims={"x": "n 4"}, sizes={"n": "1..64"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.rule == "random-output"
    at = finding.breaks_at["n"]
    assert at > 40
    assert finding.message == (
        f"`output` changes from call to call at n = {at}, so that no file can be checked against it"
    )


def test_a_file_is_not_checked_beside_a_model_that_is_random_at_some_sizes(tmp_path: Path) -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * random.random() if x.shape[0] > 40 else x * 1

    anyshape.export(lambda x: x * 1, torch.randn(3, 4), tmp_path / "model.onnx", dims={"x": "n 4"}, quick=True)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", Noisy(), torch.randn(3, 4), sizes={"n": "1..64"}, quick=True)
    assert [finding.rule for finding in refused.value.findings] == ["random-output"]


def test_training_mode_state_and_random_numbers_are_as_before() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    result = anyshape.export(model, torch.randn(3, 4, generator=torch.Generator()), dims={"input": "batch 4"})
    torch.testing.assert_close(torch.rand(3), expected)
    assert all(part.training for part in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert result.notes == ("`1`, `2` in training mode: exported and compared in eval mode",)


def test_bfloat16_is_written_and_checked_in_float32(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    path = tmp_path / "model.onnx"
    result = anyshape.export(model, torch.randn(3, 8), path, dims={"input": "batch 8"}, dtype="bfloat16")
    sizes, runtime = len(result.verification.sizes_run), f"ONNX Runtime {onnxruntime.__version__}"
    right = f"its graph is right at {sizes} sizes against PyTorch"
    assert result.headline == f"checked in float32: model.onnx, {right}; {runtime} cannot run bfloat16 here"
    assert "  type     the same graph in float32 was run; the file's own bfloat16 was not" in str(result).splitlines()
    told = anyshape.inspect(path).contract.evidence
    assert str(told).startswith(f"in float32, not in its own type, at {sizes} sizes in {runtime} against PyTorch")
    assert result.to_dict()["verification"]["own_type"] == "bfloat16"
    assert result.inputs[0].dtype == result.outputs[0].dtype == "bfloat16"
    assert model[0].weight.dtype == torch.float32
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_a_type_that_the_runtime_cannot_run_is_one_sentence_everywhere(tmp_path: Path) -> None:
    model, call = nn.Linear(8, 4), torch.randn(3, 8)
    path = tmp_path / "model.onnx"
    result = anyshape.export(model, call, path, dims={"input": "batch 8"}, dtype="bfloat16", quick=True)
    narrow = call.bfloat16()
    tries: list[Callable[[], Any]] = [
        lambda: anyshape.load(path),
        lambda: anyshape.check(path),
        lambda: result(narrow),
    ]
    for attempt in tries:
        with pytest.raises(anyshape.AnyshapeError) as caught:
            attempt()
        head, _, words = str(caught.value).partition(": ")
        assert head == f"ONNX Runtime {onnxruntime.__version__} cannot run bfloat16 here"
        assert words == "Could not find an implementation for Gemm(13) node with name 'node_linear'"


def test_float16_runs_in_its_own_type() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).half()
    result = anyshape.export(model, torch.randn(3, 8).half(), dims={"input": "batch 8"})
    assert (result.verification.computed_in, result.outputs[0].dtype) == (None, "float16")


def test_tied_names_are_a_limit() -> None:
    class Added(nn.Module):
        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return torch.stack([left, right]).sum(0)

    result = anyshape.export(Added(), (torch.randn(3, 4), torch.randn(3, 4)), dims={"left": "n 4", "right": "m 4"})
    assert result.limits == ("m == n",)


def test_a_multiple_is_a_limit() -> None:
    class Paired(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0], x.shape[1] // 4, 4).sum(-1)

    result = anyshape.export(Paired(), torch.randn(3, 8), dims={"x": "batch n"})
    assert result.limits == ("n % 4 == 0",)
    assert result.outputs[0].axes == ("batch", "n // 4")


def test_labels_of_outputs_name_derived_sizes() -> None:
    class Strided(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x[:, ::2], x.sum(1)

    result = anyshape.export(
        Strided(), torch.randn(3, 9), input_names=["x"], output_names=["half", "total"],
        dynamic_axes={"x": {0: "batch", 1: "n"}, "half": {0: "batch", 1: "steps"}, "total": {0: "n"}},
    )  # fmt: skip
    assert [port.axes for port in result.outputs] == [("batch", "steps"), ("batch",)]
    assert result.notes == ("axis 0 of output `total` is `batch`, not `n`",)


def test_an_output_named_like_an_input_gets_the_suffix() -> None:
    class Echo(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"x": x + 1}

    result = anyshape.export(Echo(), torch.randn(3, 4), dims={"x": "batch 4"})
    assert ([p.name for p in result.inputs], [p.name for p in result.outputs]) == (["x"], ["x_out"])


def test_numbers_that_are_not_declared_become_constants_and_are_reported() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, scale: float, count: int) -> Tensor:
            return x[:, :count] * scale

    result = anyshape.export(Scaled(), (torch.randn(3, 9), 2.5, 4), dims={"x": "batch 9", "count": ""})
    assert result.constants == {"scale": 2.5}
    assert [port.name for port in result.inputs] == ["x", "count"]


def test_a_float_that_is_declared_is_an_input(tmp_path: Path) -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, scale: float) -> Tensor:
            return x * scale + scale

    path = tmp_path / "model.onnx"
    result = anyshape.export(Scaled(), (torch.randn(3, 4), 2.5), path, dims={"x": "batch 4", "scale": ""})
    assert [str(port) for port in result.inputs] == ["x: float32[batch, 4]", "scale: float32[]"]
    assert is_right(path, Scaled(), (torch.randn(5, 4), 0.25))


def test_large_weights_go_beside_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(nn.Linear(64, 64), torch.randn(3, 64), path, dims={"input": "batch 64"}, external_data=True)
    [data] = listed_data(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["model.onnx", data])
    anyshape.export(nn.Linear(64, 64), torch.randn(3, 64), path, dims={"input": "batch 64"})
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_the_opset_follows_the_target() -> None:
    result = anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "b 4"}, target="onnxruntime==1.18")
    assert (result.opset, result.model.opset_imports[""], result.model.ir_version) == (21, 21, 10)
    result = anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "b 4"}, opset_version=18)
    assert (result.opset, result.model.opset_imports[""], result.model.ir_version) == (18, 18, 8)


class Attends(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize(("target", "opset"), [(None, 20), ("onnxruntime", 23)])
def test_by_default_a_file_holds_what_tools_read_and_for_a_runtime_what_is_fast(target: str | None, opset: int) -> None:
    call = (torch.randn(2, 2, 3, 4),)
    result = anyshape.export(Attends(), call, dims={"x": "batch 2 seq 4"}, target=target, quick=True)
    assert result.opset == result.model.opset_imports[""] == opset
    assert ("Attention" in {node.op_type for node in result.model.graph}) == (target is not None)


def test_the_tenth_export_is_the_first() -> None:
    """torch keeps caches that make a second export of a recurrent layer fail."""
    model = nn.GRU(4, 5, batch_first=True)
    texts = set()
    for _ in range(3):
        result = anyshape.export(model, torch.randn(3, 6, 4), dims={"input": "batch seq 4"})
        texts.add((result.attempts[-1].strategy, str(result.outputs)))
    assert len(texts) == 1


def test_ctrl_c_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("anyshape.verification.candidate_check.verify", interrupt)
    with pytest.raises(KeyboardInterrupt):
        anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), path, dims={"input": "batch 4"})
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("model.onnx", b"before")]


def test_a_model_that_prints_is_heard_once(capfd: pytest.CaptureFixture[str]) -> None:
    class Chatty(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            print("running")  # noqa: T201
            return x + 1

    anyshape.export(Chatty(), torch.randn(3, 4), dims={"x": "batch 4"})
    assert capfd.readouterr() == ("running\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"dims": {"idz": "b"}}, "`dims` names `idz`, but the inputs are `ids`, `mask`; did you mean `ids`?"),
        ({"dims": {"ids": "b s 3"}}, "`ids` is declared `b s 3` but the example has shape (1, 5)"),
        ({"dims": DIMS, "dynamic_axes": {}}, "dims= and dynamic_axes= both declare the dims: give one of them"),
        ({"dims": DIMS, "quick": True, "thorough": True}, "quick and thorough exclude each other"),
        ({"dims": DIMS, "export_params": False}, "export_params=False: a file without its weights cannot be checked"),
        ({"dims": DIMS, "dimz": 1}, "export() has no argument `dimz`; did you mean `dims`?"),
        (
            {"dims": DIMS, "target": "tensorrt"},
            "target is `tensorrt`: write `onnxruntime==1.18`, or `onnxruntime` for the installed one",
        ),
        ({"dims": DIMS, "output_names": list("abc")}, "output_names has 3 names but the model returns 2 outputs: "
         "['states', 'logits']"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.export(Pooled(), example(), **arguments)
    assert str(raised.value) == sentence


def test_a_model_that_fails_on_its_example_is_wrong_usage() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.export(nn.Linear(4, 4), torch.randn(3, 5), dims={"input": "batch _"})
    assert str(raised.value).startswith("the model fails on the example at batch = 3: RuntimeError: mat1 and mat2")


def test_a_model_that_looks_into_tensors_without_end_is_stopped_and_does_not_fail() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x + sum(x[i].item() for i in range(x.shape[0]))

    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.export(forward, torch.ones(20_001), dims={"x": "n"})
    told = "TooManyReadsError: stopped by anyshape after 20,000 looks into tensors, as a loop without end"
    assert str(raised.value).startswith(f"the model was stopped on the example at n = 20001: {told} (")


def test_an_example_without_values_is_wrong_usage_and_one_with_gradients_is_not() -> None:
    model, dims = nn.Linear(4, 4), {"input": "batch 4"}
    with pytest.raises(anyshape.DeclarationError) as raised:
        anyshape.export(model, torch.empty(3, 4, device="meta"), dims=dims)
    assert str(raised.value) == "`input` of the example is on `meta`, which holds no values: pass real ones"
    example = torch.randn(3, 4, requires_grad=True)
    assert anyshape.export(model, example, dims=dims, quick=True).verdict == "checked"
    assert (example.requires_grad, example.grad) == (True, None)


def test_a_missing_folder_is_made_for_a_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "mit Leerzeichen" / "größer" / "model.onnx"
    with pytest.raises(anyshape.ExportError):
        anyshape.export(lambda x: x.view(3, 4), torch.randn(3, 4), path, dims={"x": "b 4"})
    assert list(tmp_path.iterdir()) == []
    anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), path, dims={"input": "b 4"}, quick=True)
    assert [file.name for file in path.parent.iterdir()] == ["model.onnx"]
    assert anyshape.load(path)(torch.randn(5, 4)).shape == (5, 4)


def test_custom_operators_are_written_unchecked_at_the_users_wish_alone(tmp_path: Path) -> None:
    class Custom(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.onnx.ops.symbolic("my.domain::Twice", (x,), dtype=x.dtype, shape=x.shape, version=1)

    path = tmp_path / "model.onnx"
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Custom(), torch.randn(3, 4), path, dims={"x": "batch 4"})
    (finding,) = refused.value.findings
    assert finding.headline == "error[unsupported-op]: ONNX Runtime has no `my.domain::Twice`"
    result = anyshape.export(Custom(), torch.randn(3, 4), path, dims={"x": "batch 4"}, unchecked=["my.domain::Twice"])
    assert (result.verdict, result.verification) == ("unchecked", None)
    assert str(result).splitlines()[0] == "unchecked: model.onnx, never run against the model"


def test_several_exports_in_threads_do_not_disturb_each_other() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def run(width: int) -> str:
        model = nn.Sequential(nn.Linear(width, 4), nn.ReLU())
        return str(anyshape.export(model, torch.randn(3, width), dims={"input": "batch _"}).inputs[0])

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, (4, 5))) == ["input: float32[batch, 4]", "input: float32[batch, 5]"]


def test_the_runtime_agrees_that_the_files_load_without_complaint(exported: tuple[anyshape.Result, Path]) -> None:
    session = onnxruntime.InferenceSession(str(exported[1]))
    ids = np.zeros((2, 3), np.int64)
    assert session.run(None, {"ids": ids, "mask": np.ones((2, 3), np.float32)})[1].shape == (2, 4)


def test_two_outputs_do_not_share_a_label_that_is_two_sizes() -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x[:, 1:] + 0, x * 2

    result = anyshape.export(
        Pair(), torch.randn(3, 7), input_names=["x"], output_names=["a", "b"],
        dynamic_axes={"x": {0: "batch", 1: "seq"}, "a": {1: "len"}, "b": {1: "len"}},
    )  # fmt: skip
    assert [port.axes for port in result.outputs] == [("batch", "len"), ("batch", "seq")]
    assert result.notes == ("axis 1 of output `b` is not the `len` of another output",)


def test_a_narrowed_file_says_so_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(Reshaped(), torch.randn(2, 8, 4), path, dims={"x": "batch seq 4"}, narrow=True)
    contract = read_contract(onnx.load(path))
    assert contract is not None
    assert contract.verdict == "narrowed"


def test_inputs_that_forward_changes_are_the_users_own() -> None:
    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(2) + 1

    example = torch.ones(3, 4)
    result = anyshape.export(InPlace(), example, dims={"x": "batch 4"})
    assert result.verdict == "checked"
    assert torch.equal(example, torch.ones(3, 4))


def test_one_module_exported_from_several_threads_is_exported_right() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).train()

    def run(_: int) -> str:
        return anyshape.export(model, torch.randn(3, 4), dims={"input": "batch 4"}).verdict

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run, range(3))) == ["checked"] * 3
    assert model.training


def test_progress_is_told_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    anyshape.export(nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "batch 4"}, progress=print)
    assert capsys.readouterr().out.splitlines() == [
        "running the model", "converting with torch.export", "checking what torch.export made",
    ]  # fmt: skip


class Placed(nn.Module):
    """Makes tensors of its own, and rounds."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1) * torch.arange(x.shape[1])[:, None]


def test_bytes_and_words_are_the_same_whatever_is_around(tmp_path):
    torch.manual_seed(0)
    model, x = Placed(), torch.randn(2, 6, 4)
    around = {
        "nothing": contextlib.nullcontext(),
        "device": torch.device("meta"),
        "autocast": torch.autocast("cpu", torch.bfloat16),
    }
    notes = {}
    for name, surroundings in around.items():
        with surroundings:
            before = torch.get_default_device(), torch.is_autocast_enabled("cpu")
            result = anyshape.export(model, x, tmp_path / f"{name}.onnx", dims={"x": "batch seq 4"}, quick=True)
            assert (torch.get_default_device(), torch.is_autocast_enabled("cpu")) == before
            notes[name] = set(result.notes)
            anyshape.check(tmp_path / f"{name}.onnx", model, x, quick=True)
    assert len({(tmp_path / f"{name}.onnx").read_bytes() for name in around}) == 1
    assert notes["nothing"] == notes["device"]
    assert notes["autocast"] - notes["nothing"] == {
        "autocast is on around this call, and is off in it: what the model itself casts is what counts"
    }


def test_a_default_device_that_is_set_for_all_changes_nothing(tmp_path):
    torch.manual_seed(0)
    model, x = Placed(), torch.randn(2, 6, 4)
    anyshape.export(model, x, tmp_path / "plain.onnx", dims={"x": "batch seq 4"}, quick=True)
    torch.set_default_device("meta")
    try:
        anyshape.export(model, x, tmp_path / "meta.onnx", dims={"x": "batch seq 4"}, quick=True)
        assert torch.zeros(1).device.type == "meta"
    finally:
        torch.set_default_device(None)
    assert (tmp_path / "plain.onnx").read_bytes() == (tmp_path / "meta.onnx").read_bytes()

"""Places are counted as people count."""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import anyshape
from anyshape.source import spans
from anyshape.source.spans import (
    Span,
    characters_before,
    extent_of,
    frames_of_model,
    is_librarys,
    is_outer,
    is_users,
    shown_path,
    source_line,
    span_of_code,
    span_of_definition,
    span_of_error,
    span_of_node,
    span_of_recorded_stack,
    span_of_stack,
)


def test_a_span_reads_like_a_compiler_s() -> None:
    assert str(Span("net.py", 3, 16, function="Net.forward")) == "net.py:3:16 in Net.forward"
    assert str(Span("net.py", 3)) == "net.py:3:1"


def test_an_instruction_has_the_extent_of_its_expression() -> None:
    code = compile("x = 1\ny = ä(x, 2)\n", "<string>", "exec")
    call = next(one for one in dis.get_instructions(code) if one.opname.startswith("CALL"))
    assert extent_of(code, call.offset) == (2, 2, 4, len("y = ä(x, 2)".encode()))


def test_an_instruction_that_is_not_there_has_none() -> None:
    code = compile("x = 1", "<string>", "exec")
    assert extent_of(code, 10_000) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "offset", "characters"), [("abc", 2, 2), ("äb", 2, 1), ("x = '日本'", 8, 6), ("a", 9, 1), ("", 7, 7)]
)
def test_bytes_become_characters(text: str, offset: int, characters: int) -> None:
    assert characters_before(text, offset) == characters


def test_what_has_no_text_still_has_its_columns() -> None:
    code = compile("x = 1\ny = abs(x)\n", "<string>", "exec")
    call = next(one for one in dis.get_instructions(code) if one.opname.startswith("CALL"))
    assert span_of_code(code, call.offset, 2) == Span("<string>", 2, 5, 2, 11, "<module>")


# ---- from frames, tracebacks, definitions and nodes to spans


HOUSE = Path(anyshape.__file__).parent
HERE = shown_path(__file__)


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line and "_line_of" not in line)


# ---- whose code


def test_the_user_s_code_is_neither_torch_s_nor_python_s_nor_ours() -> None:
    assert is_users(__file__)
    for name in ("<ipython-input-1-abc>", "<timed exec>", "<python-input-0>", "<stdin>", "<string>"):
        assert is_users(name)
    assert not is_users(torch.nn.Linear.forward.__code__.co_filename)
    assert not is_users(inspect.__file__)
    assert not is_users(spans.__file__)
    assert not is_users("<frozen importlib._bootstrap>")
    assert not is_users("torch/fx/passes/runtime_assert.py")


def test_a_model_library_counts_as_the_user_s() -> None:
    assert is_users(str(Path(onnx.__file__).parent.parent / "timm" / "vit.py"))


def test_a_folder_is_a_whole_component_of_a_path() -> None:
    beside_torch = Path(torch.__file__).parent.with_name("torchvision") / "models" / "resnet.py"
    assert is_users(str(beside_torch))
    assert is_librarys(str(beside_torch))
    assert is_users(str(HOUSE.with_name("anyshape_models") / "net.py"))
    assert not is_outer(str(HOUSE.with_name("anyshape_models") / "net.py"))
    assert is_users("/home/me/site-packages-of-mine/net.py")
    assert not is_librarys("/home/me/site-packages-of-mine/net.py")


@pytest.mark.parametrize("sites", ["/other/env/lib/python3.12/site-packages", r"C:\env\Lib\site-packages"])
def test_a_library_of_another_machine_is_known_by_its_name(sites: str) -> None:
    assert not is_users(f"{sites}/torch/nn/modules/linear.py")
    assert is_users(f"{sites}/torchvision/models/resnet.py")


def test_an_environment_that_is_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    for real, name in ((Path(torch.__file__).parent, "torch"), (HOUSE, "anyshape")):
        (tmp_path / name).symlink_to(real)
    assert not is_users(str(tmp_path / "torch/nn/modules/linear.py"))
    assert is_librarys(str(tmp_path / "torch/nn/modules/linear.py"))
    assert is_outer(str(tmp_path / "anyshape/verbs/export.py"))
    assert not is_outer(str(tmp_path / "anyshape/torchkit/recorder.py"))
    (tmp_path / "mine").mkdir()
    packages = tmp_path / "env/site-packages"
    packages.mkdir(parents=True)
    (packages / "mine").symlink_to(tmp_path / "mine")
    assert is_users(str(packages / "mine/net.py"))
    assert not is_librarys(str(packages / "mine/net.py"))


def test_packages_that_lie_elsewhere_than_their_folder_says_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store/timm").mkdir(parents=True)
    (tmp_path / "env").symlink_to(tmp_path / "store")
    monkeypatch.setattr(spans.site, "getsitepackages", lambda: [str(tmp_path / "env")])
    for way in ("env", "store"):
        assert is_librarys(str(tmp_path / way / "timm/vit.py"))
        assert shown_path(str(tmp_path / way / "timm/vit.py")) == "timm/vit.py"


def test_code_that_the_model_calls_lies_inside_of_it() -> None:
    assert is_outer(str(HOUSE / "verbs" / "export.py"))
    assert is_outer(str(HOUSE / "model" / "oracle.py"))
    assert not is_outer(__file__)
    for place in spans._HOOKS:
        assert place.exists()
        assert not is_outer(str(place))


# ---- frames and errors


def test_the_innermost_frame_of_the_model_is_found_through_torch() -> None:
    seen: list[Any] = []

    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(span_of_stack(sys._getframe()))
            return x

    torch.nn.Sequential(Inner())(torch.zeros(1))
    (span,) = seen
    assert (span.path, span.line) == (HERE, _line_of("seen.append(span_of_stack"))
    assert span.function.endswith("Inner.forward")


def test_frames_come_from_inside_out() -> None:
    def inner() -> list[str]:
        return [frame.f_code.co_name for frame in frames_of_model(sys._getframe())]

    assert inner()[:2] == ["inner", "test_frames_come_from_inside_out"]


def test_an_error_is_placed_where_the_user_s_code_raised_it() -> None:
    def fails() -> torch.Tensor:
        return torch.zeros(2) + torch.zeros(3)

    with pytest.raises(RuntimeError) as raised:
        fails()
    span = span_of_error(raised.value)
    assert span is not None
    assert (span.path, span.line, span.column) == (HERE, _line_of("torch.zeros(2) + torch.zeros(3)"), 16)
    assert span_of_error(ValueError("never raised")) is None


# ---- definitions


def _decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper() -> Any:
        return function()

    return wrapper


@_decorated
@_decorated
def under_decorators() -> None: ...


def test_a_definition_is_its_def_line() -> None:
    assert span_of_definition(under_decorators).line == _line_of("def under_decorators()")


def test_a_lambda_is_where_it_begins() -> None:
    doubled = lambda x: 2 * x  # noqa: E731
    assert span_of_definition(doubled).line == _line_of("doubled = ")


def test_what_has_no_code_is_placed_at_its_class() -> None:
    class Callable:
        def __call__(self) -> None: ...

    assert span_of_definition(Callable()).line == _line_of("class Callable:")
    assert span_of_definition(len).path == "<unknown>"


# ---- paths and nodes


def test_a_line_is_read_again_by_the_path_that_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert shown_path(str(tmp_path / "net.py")) == "net.py"
    assert source_line(Span("net.py", 2)) == "b = 2"
    assert source_line(Span("net.onnx", 1)) is None
    assert source_line(Span("not_there.py", 1)) is None


def test_a_cell_is_shown_by_its_number_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "<ipython-input-5-abc>"
    monkeypatch.setitem(linecache.cache, cell, (12, None, ["a = 1\n", "b = 2\n"], cell))
    assert shown_path(cell) == "In [5]"
    assert source_line(Span("In [5]", 2)) == "b = 2"
    assert str(Span("In [5]", 2, function="Net.forward")) == "In [5]:2:1 in Net.forward"


def test_a_cell_of_another_kernel_is_named_without_its_temporary_file() -> None:
    node = onnx.NodeProto()
    node.metadata_props.add(
        key="pkg.torch.onnx.stack_trace", value='File "/tmp/ipykernel_123/456.py", line 3, in forward'
    )
    assert span_of_node(node) == Span("In [?]", 3, 1, function="forward")
    assert source_line(Span("In [?]", 3)) is None


def test_a_node_of_a_cell_is_read_back() -> None:
    node = onnx.NodeProto()
    node.metadata_props.add(key="anyshape.source", value="In [6] %%capture:3 in Net.forward")
    assert span_of_node(node) == Span("In [6] %%capture", 3, 1, function="Net.forward")


def test_a_node_is_placed_by_what_its_exporter_wrote() -> None:
    ours, torchs, bare = onnx.NodeProto(), onnx.NodeProto(), onnx.NodeProto()
    ours.metadata_props.add(key="anyshape.source", value="not_there.py:3 in Net.forward")
    torchs.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=f'File "{__file__}", line 3, in forward')
    assert span_of_node(ours) == Span("not_there.py", 3, 1, function="Net.forward")
    assert span_of_node(torchs) == Span(HERE, 3, 1, function="forward")
    assert span_of_node(bare) is None


def test_of_a_recorded_stack_the_innermost_line_of_the_user_s_counts() -> None:
    line = _line_of("class Inner(torch.nn.Module)")
    torchs = torch.nn.Linear.forward.__code__.co_filename
    stack = (
        f'File "{__file__}", line 1, in outer\nFile "{__file__}", line {line}, in inner\nFile "{torchs}", line 9, in f'
    )
    assert span_of_recorded_stack(stack) == Span(HERE, line, 5, function="inner")
    assert span_of_recorded_stack("") is None

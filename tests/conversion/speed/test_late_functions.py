"""Functions that are read late are those that onnxscript itself would have made."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import onnxscript
import pytest
from onnxscript import opset18 as op

from anyshape.conversion.speed.late_functions import LateScript, LateTrace, read_late

LIBRARY = """
import json
import onnxscript
from anyshape.conversion.preparation import prepare
from anyshape.conversion.speed.late_functions import LateScript, LateTrace

prepare()
from onnxscript.function_libs.torch_lib.registration import default_registry

every = [one for entry in default_registry.values() for one in (*entry.overloads, *entry.complex)]
functions = list({id(one): one for one in every}.values())
kinds = [type(one).__name__ for one in functions]
unread = sum("_signature" not in vars(one) for one in functions)


def read(one):
    if isinstance(one, LateTrace):
        return onnxscript.TracedOnnxFunction(one.opset, one.func)
    return onnxscript.script(one.opset)(one.function)


def told(one):
    proto = one.to_function_proto().SerializeToString(deterministic=True).hex() if hasattr(one, "source") else ""
    return [str(one.op_signature), one.name, one.__doc__, str(one.op_schema), proto, sorted(vars(one))]


differ = [one.name for one in functions if told(one) != told(read(one))]
print(json.dumps({"kinds": kinds, "unread": unread, "differ": differ}))
"""


@pytest.fixture(scope="module")
def library() -> dict[str, Any]:
    """The whole library in a process of its own: here, somebody may have imported it before."""
    ran = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_table_of_operators_reads_none_of_them(library: dict[str, Any]) -> None:
    assert set(library["kinds"]) == {LateScript.__name__, LateTrace.__name__}
    assert library["unread"] == len(library["kinds"]) > 400


def test_read_late_each_is_what_it_would_have_been(library: dict[str, Any]) -> None:
    assert library["differ"] == []


def _library_function(x):
    return op.Relu(x)


_library_function.__module__ = "onnxscript.function_libs.torch_lib.ops.core"


def _users_function(x):
    return op.Relu(x)


def test_a_users_function_is_read_at_once() -> None:
    with read_late():
        script = onnxscript.script(onnxscript.values.Opset("mine", 1))(_users_function)
        traced = onnxscript.TracedOnnxFunction(onnxscript.values.Opset("mine", 1), _users_function)
    assert type(script) is onnxscript.OnnxFunction
    assert type(traced) is onnxscript.TracedOnnxFunction


def test_a_function_may_be_read_while_others_are_not() -> None:
    with read_late():
        traced = onnxscript.TracedOnnxFunction(onnxscript.values.Opset("theirs", 1), _library_function)
        assert type(traced) is LateTrace
        assert "_signature" not in vars(traced)
        assert [one.name for one in traced.op_signature.params] == ["x"]
    assert traced.op_signature is traced.op_signature


def test_what_was_set_before_it_is_read_stays() -> None:
    with read_late():
        traced = onnxscript.TracedOnnxFunction(onnxscript.values.Opset("theirs", 1), _library_function)
    traced.op_signature = None
    assert traced.op_schema is None
    assert traced.op_signature is None


def test_what_nobody_has_is_missing() -> None:
    with read_late():
        traced = onnxscript.TracedOnnxFunction(onnxscript.values.Opset("theirs", 1), _library_function)
    assert not hasattr(traced, "nothing")
    with pytest.raises(AttributeError, match="'LateTrace' object has no attribute 'nothing'"):
        traced.nothing


def test_with_shortcuts_off_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYSHAPE_SHORTCUTS", "0")
    with read_late():
        traced = onnxscript.TracedOnnxFunction(onnxscript.values.Opset("theirs", 1), _library_function)
    assert type(traced) is onnxscript.TracedOnnxFunction

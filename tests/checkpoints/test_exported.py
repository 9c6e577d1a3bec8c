"""What the export of a checkpoint tells, as text and as values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Make = Callable[[str], Any]


def test_what_was_done_is_told_as_text_and_as_values(exported: Make) -> None:
    found = exported("bart")
    lines = str(found).splitlines()
    assert lines[0] == "checked: bart/, BartForConditionalGeneration in 2 model files"
    assert lines[1].startswith("  checked: encoder_model.onnx, right at ")
    assert lines[-3:-1] == [f"  decoded  {fact}" for fact in found.generation]
    assert lines[-1] == "  beside   config.json, generation_config.json"
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["verdict"], told["model"]) == ("checked", "BartForConditionalGeneration")
    assert [Path(result["path"]).name for result in told["results"]] == [result.path.name for result in found]

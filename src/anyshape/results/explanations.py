"""What every rule means: one line of it here, a page of it in `pages/`. No torch: explaining needs no model.

The pages of the documentation are copies: `python -m anyshape.results.explanations docs/rules` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from anyshape.errors import DeclarationError
from anyshape.sizes.notation import did_you_mean

RULES: Mapping[str, str] = {
    "pinned-dim": "a declared dim has a single size",
    "bounded-dim": "a declared dim cannot take every declared size",
    "divided-dim": "a declared dim must be a multiple",
    "tied-dims": "declared dims depend on each other",
    "frozen-branch": "a decision on values would be frozen",
    "frozen-value": "a size was written as a number: PyTorch runs, but the result is off",
    "mixed-batch": "one sample's result depends on the others of its batch",
    "lost-input": "the export turned an input into a constant",
    "data-dependent-size": "a size computed from values decides where the export needs to know it",
    "unsupported-op": "an operator has no translation, or ONNX Runtime does not have it",
    "wrong-values": "the file gives other values than PyTorch",
    "other-weights": "the file holds other weights than the model that it is compared with",
    "wrong-shape": "the file gives another shape than PyTorch",
    "wrong-type": "the file gives another element type than PyTorch",
    "mislabelled-dim": "the file declares a shape that it does not keep",
    "runtime-error": "ONNX Runtime fails where PyTorch runs",
    "unchecked-dim": "nothing shows whether other sizes of a static file's dim are right",
    "ambiguous-number": "a number of a static file may follow from a size that is freed",
    "newer-opset": "the opset that was asked for lacks an operator of the model",
    "not-converted": "no exporter could convert the model",
    "random-output": "the model's result is random",
}
"""Every rule and what it means in one line."""


def page_of(rule: str) -> str:
    """The page of a rule, in Markdown."""
    if rule not in RULES:
        raise DeclarationError(f"there is no rule `{rule}`{did_you_mean(rule, RULES)}")
    return (files("anyshape.results") / "pages" / f"{rule}.md").read_text(encoding="utf-8")


def write_pages(folder: Path) -> None:
    """Copy the page of every rule into a folder of the documentation."""
    for rule in RULES:
        (folder / f"{rule}.md").write_text(page_of(rule), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))

"""Options that declare nothing: ours, where a wrong value is one sentence, and those of torch's exporter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.runtime.releases import TARGET_ADVICE
from anyshape.sizes.notation import did_you_mean
from anyshape.sizes.spelling import argument


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


_WANTED: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("atol", "rtol", "budget"), _is_positive, "give a number that is not negative"),
    (
        ("seed",),
        lambda value: _is_positive(value) and isinstance(value, int),
        "give a whole number that is not negative",
    ),
    (("make_inputs",), callable, "give a function"),
    (("progress",), lambda value: callable(value) or isinstance(value, bool), "give True, or a function of a text"),
    (("target",), lambda value: isinstance(value, str), TARGET_ADVICE),
    (("metadata",), lambda value: isinstance(value, Mapping), "give a dict of text"),
    (("repair",), lambda value: value == "edits", 'give "edits", or leave it out'),
    (("random",), lambda value: value in ("inputs", "shapes"), 'give "inputs" or "shapes", or leave it out'),
    (("unchecked", "providers"), lambda value: isinstance(value, (list, tuple, set, frozenset)), "give a list of text"),
)
"""Options, what is right for them, and what to do where it is not."""


def check_options(**options: Any) -> None:
    """Raise where an option is not what it should be; None is right for all but a seed."""
    for names, is_right, advice in _WANTED:
        for name in names:
            value = options.get(name)
            if name in options and not is_right(value) and (value is not None or name == "seed"):
                raise DeclarationError(f"{argument(name)} is {value!r}: {advice}")


# ---- arguments of `torch.onnx.export` that `export` does not take itself: ignored with a note, or refused


@dataclass(frozen=True)
class TorchArgument:
    """What becomes of one argument; `matters` tells a value that asks for something from torch's default."""

    treatment: str
    """`ignored` or `refused`."""
    sentence: str
    matters: Callable[[Any], bool] = bool


_IS_FALSE = lambda value: value is False  # noqa: E731
_NOT_ZERO = lambda value: getattr(value, "value", value) not in (None, 0, False)  # noqa: E731

TORCH_ARGUMENTS: Mapping[str, TorchArgument] = {
    "verbose": TorchArgument("ignored", "the result says what there is to say", lambda _: False),
    "dynamo": TorchArgument(
        "ignored", "both of torch's exporters are tried and the one that is right is kept", _IS_FALSE
    ),
    "fallback": TorchArgument("ignored", "further exporters are always tried", lambda _: False),
    "verify": TorchArgument("ignored", "the file is always checked", lambda _: False),
    "report": TorchArgument("ignored", "the result is the report"),
    "profile": TorchArgument("ignored", "the result holds the seconds"),
    "dump_exported_program": TorchArgument("ignored", "the exported program is not written"),
    "artifacts_dir": TorchArgument("ignored", "nothing but the model is written", lambda _: False),
    "do_constant_folding": TorchArgument("ignored", "constants are always folded", _IS_FALSE),
    "autograd_inlining": TorchArgument("ignored", "the model is traced without gradients", lambda _: False),
    "custom_opsets": TorchArgument("ignored", "opsets are taken from the nodes in the graph"),
    "export_params": TorchArgument("refused", "a file without its weights cannot be checked", _IS_FALSE),
    "keep_initializers_as_inputs": TorchArgument("refused", "weights that a caller may replace cannot be checked"),
    "training": TorchArgument("refused", "models are exported and compared in eval mode", _NOT_ZERO),
    "operator_export_type": TorchArgument("refused", "only ONNX operators are written", _NOT_ZERO),
    "export_modules_as_functions": TorchArgument("refused", "modules are not kept as functions"),
}


def notes_on(arguments: Mapping[str, Any]) -> list[str]:
    """A note for each argument that is ignored although it asks for something; an error for one that is refused."""
    notes = []
    for name, value in arguments.items():
        argument = TORCH_ARGUMENTS.get(name)
        if argument is None:
            raise DeclarationError(f"export() has no argument `{name}`{did_you_mean(name, [*TORCH_ARGUMENTS, *_OWN])}")
        if argument.matters(value):
            text = f"{name}={value!r}: {argument.sentence}"
            if argument.treatment == "refused":
                raise DeclarationError(text)
            notes.append(f"{name}={value!r} is ignored: {argument.sentence}")
    return notes


_OWN = (
    "dims", "sizes", "make_inputs", "kwargs", "input_names", "output_names", "dynamic_axes", "dynamic_shapes",
    "opset_version", "target", "optimize", "metadata", "narrow", "unchecked", "dtype", "atol", "rtol", "budget",
    "quick", "thorough",
)  # fmt: skip

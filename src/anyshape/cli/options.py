"""The options that commands share, and how their text is taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from anyshape.cli.debug_report import keep_place
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import InputText, parse_input

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_Decorator = Callable[[_Decorated], _Decorated]


def pairs(_context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, any number of times."""
    for text in texts:
        if not text.partition("=")[0].strip() or "=" not in text:
            raise click.BadParameter(f"`{text}` has no name and `=`: write {parameter.metavar}")
    return {name.strip(): value.strip() for name, _, value in (text.partition("=") for text in texts)}


def sizes_at(_context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, int] | None:
    """`batch=1,seq=1`."""
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    if not parts or not all(name.strip() and size.strip().isdecimal() for name, _, size in parts):
        raise click.BadParameter(f"`{text}` is no list of sizes: write {parameter.metavar}")
    return {name.strip(): int(size) for name, _, size in parts}


def _parsed_inputs(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> list[InputText]:
    try:
        return [parse_input(text) for text in texts]
    except DeclarationError as error:
        raise click.BadParameter(str(error)) from None


def _whole_paths(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> list[str]:
    """Of files; what is none may still be found by the system."""
    return [str(path.absolute()) if (path := Path(text)).exists() else text for text in texts]


def option(name: str, help_text: str, metavar: str | None = None, **more: Any) -> _Decorator[Any]:
    """One option; `name` may hold several, separated by spaces."""
    return click.option(*name.split(), help=help_text, metavar=metavar, **more)


def pairs_option(name: str, help_text: str, metavar: str) -> _Decorator[Any]:
    return option(name, help_text, metavar, multiple=True, callback=pairs)


def _input_option(help_text: str, metavar: str) -> _Decorator[Any]:
    return option("--input inputs", help_text, metavar, multiple=True, callback=_parsed_inputs)


def _all_of(*options: _Decorator[Any]) -> _Decorator[Any]:
    def decorate(function: _Decorated) -> _Decorated:
        for one in reversed(options):
            function = one(function)
        return function

    return decorate


_INPUT = (
    "One input: its dims, and random values to start from: whole numbers below N (0 and 1 without `< N`), "
    "normal floats. Replaces `inputs` and `dims` of the target's file."
)
_SIZES = pairs_option(
    "--size sizes", "Sizes of one dim: seq=1..512, seq=8.., height='32..1024 step 32', batch=1,2,4.", "DIM=SIZES"
)
_TOLERANCE = "tolerance instead of the model's own rounding noise."

_WEIGHTS = option(
    "--weights",
    "A state dict for the model (.pt or .safetensors); `random` says that random weights are meant.",
    "FILE",
    type=click.Path(),
)
_SHOWN = "One input of the call: random values to start from. Replaces `inputs` of the target's file."
example_options = _all_of(_input_option(_SHOWN, "'NAME: DTYPE[SIZES] < N'"), _WEIGHTS)
declaration_options = _all_of(
    _input_option(_INPUT, "'NAME: DTYPE[AXES] < N'"),
    pairs_option("--dim dims", "Axes of one input: tokens='batch seq'; wildcards work.", "NAME=AXES"),
    _SIZES,
    option("--where", "A relation between dims: 'src >= tgt', 'height*width <= 1_000_000'.", "RELATION", multiple=True),
    _WEIGHTS,
)
_FILE_INPUT = "One input of the file, with the names of the axes that are to be free; numbers stay."
freeing_options = _all_of(
    _input_option(_FILE_INPUT, "'NAME: [AXES]'"),
    pairs_option(
        "--dim dims", "The same in another form, for any name: tokens='batch seq'; wildcards work.", "NAME=AXES"
    ),
    _SIZES,
    option("--unchecked", "A dim to which no check applies: write the file all the same.", "DIM", multiple=True),
    pairs_option(
        "--constant constants", "What a number of the file is: node_7=1/batch, or node_7=fixed.", "NODE=FORMULA"
    ),
    option("--model target", "The PyTorch model to check against, as for `anyshape export`.", "TARGET"),
    _WEIGHTS,
)
seed_option = option("--seed", "For random weights, inputs and sizes; 0 by default.", "N", type=int)
budget_options = _all_of(
    option(
        "--budget", "How long to check; 10 s by default, or as long as the export.", "SECONDS", type=click.FloatRange(0)
    ),
    option("--quick", "Check at few sizes.", is_flag=True),
    option("--thorough", "Check at many sizes.", is_flag=True),
)
_CUSTOM_OPS = option(
    "--custom-ops",
    "A library of operators for ONNX Runtime, to run with.",
    "LIBRARY",
    multiple=True,
    callback=_whole_paths,
)
comparing_options = _all_of(
    option("--atol", f"Absolute {_TOLERANCE}", "NUMBER", type=float),
    option("--rtol", f"Relative {_TOLERANCE}", "NUMBER", type=float),
    _CUSTOM_OPS,
    seed_option,
)
checking_options = _all_of(comparing_options, budget_options)
timing_options = _all_of(
    option("--threads", "Of ONNX Runtime and PyTorch; as many as there are processors by default.", "N", type=int),
    option("--provider providers", "Where ONNX Runtime runs, such as CUDAExecutionProvider.", "NAME", multiple=True),
    pairs_option(
        "--session session_options", "An option of the session: session.disable_prepacking=1.", "OPTION=VALUE"
    ),
    option("--rounds", "How often everything runs at each size; as time lets by default.", "N", type=int),
    option("--compile/--no-compile compiled", "Whether torch.compile runs, too.", default=True, show_default=True),
)
trusted_option = option(
    "--trusted", "Run the file in this process, without limits; else it has one of its own.", is_flag=True
)
report_option = option(
    "--report",
    "Write a page to look at, too, also of a refusal; or its data, in .json.",
    "FILE.html",
    type=click.Path(),
)
json_option = option("--json as_json", "Print the result as one JSON document.", is_flag=True)
debug_option = option("--debug", "Show tracebacks, PyTorch's too, and what made the conversion slow.", is_flag=True)
debug_report_option = option(
    "--debug-report",
    "Write what a bug report needs: versions, declaration, ways tried, findings; no weights, no paths.",
    "FILE",
    expose_value=False,
    callback=keep_place,
)
output_options = _all_of(
    json_option, debug_option, debug_report_option, option("--quiet", "No progress on stderr.", is_flag=True)
)
engine_options = _all_of(
    option("--engine", "Where processes run.", type=click.Choice(["local", "ray"]), default="local", show_default=True),
    option("--address", "With --engine ray: of the cluster; one of this machine alone by default.", "ADDRESS"),
    option("--jobs", "Processes at a time; as many as cores by default.", "N", type=click.IntRange(1)),
)
limit_options = _all_of(
    option("--seconds", "What one entry may take.", "SECONDS", type=float, default=600.0, show_default=True),
    option("--gigabytes", "The memory that one entry may take.", "GB", type=float, default=12.0, show_default=True),
)

"""What the process of a sweep's task does: load one entry of a collection, call a verb, and tell what became of it.

Each function here is a task's: it is given a function to tell its stage to, and plain values, and returns plain values.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anyshape.cli import tasks
from anyshape.cli.target_texts import Step, TargetText, read_target
from anyshape.declaration.options import check_options as check_values
from anyshape.errors import AnyshapeError, DeclarationError, SavingError, first_line, named_line
from anyshape.fleet.option_sets import EXPORTERS, refuse_unknown_options
from anyshape.results.result import ExportError
from anyshape.sizes.notation import did_you_mean, parse_input

Told = dict[str, Any]
TellStage = Callable[[str], None]

OPTIONS = {
    "anyshape": (*tasks.EXPORT_OPTIONS, *tasks.CHECK_OPTIONS),
    "torch": ("opset_version", *tasks.CHECK_OPTIONS),
    "torchscript": ("opset_version", *tasks.CHECK_OPTIONS),
    "check": tuple(tasks.CHECK_OPTIONS),
    "make-dynamic": tuple(tasks.FREE_OPTIONS),
}
"""What a column may say, by whom it is; nothing that lets a file of data run code, or run without limits."""
CHECKPOINT_OPTIONS = ("task", "layout")


# ---- the models of a Python file

_OF_AN_ENTRY = (
    "name", "model", "inputs", "examples", "dims", "sizes", "where", "custom_ops", "judge", "options", "tags",
)  # fmt: skip


def list_models(_tell: TellStage, place: str) -> Told:
    """Names, tags and options of the models of a Python file, and its columns; no model is made."""
    with _models_of(place) as (models, namespace):
        rows = [
            {
                "name": one["name"],
                "tags": list(one.get("tags", ())),
                "options": _as_plain(one.get("options", {}), f"`options` of `{one['name']}`"),
            }
            for one in models
        ]
        columns = _as_plain(namespace.get("columns", {}), f"`columns` of `{Path(place).name}`")
        return {"outcome": "checked", "models": rows, "columns": columns}


def run_model(
    tell: TellStage, place: str, model: str, by: str, options: Mapping[str, Any], written: Mapping[str, str]
) -> Told:
    """One of the models of a Python file."""
    import torch

    from anyshape.cli.targets import LoadedTarget, instance_or_product, users_code

    with _told_in_full(tell, written) as finish, _models_of(place, model) as (models, _):
        said = next((one for one in models if one["name"] == model), None)
        if said is None:
            raise DeclarationError(f"`models()` of `{Path(place).name}` yields no `{model}` any more")
        torch.manual_seed(_seed_of(options))
        with users_code(f"the model of `{model}` cannot be made"):
            made = instance_or_product(said.get("model"), model, None, ())
        if isinstance(made, torch.nn.Module):
            made.eval()
        loaded = LoadedTarget(made, model, {name: value for name, value in said.items() if name != "model"})
        finish.judge = said.get("judge")
        _convert(loaded, (), {}, {}, (), by, options, written, finish)
    return finish.told


@contextlib.contextmanager
def _models_of(place: str, only: str | None = None) -> Iterator[tuple[Iterator[Mapping[str, Any]], Mapping[str, Any]]]:
    """The entries that `models()` yields, one by one, and all else that the file defines.

    Where naming all of them takes long, `models(only)` may yield the one alone that is asked for.
    """
    from anyshape.cli.targets import module_at

    text = f"{Path(place).name}:models"
    with module_at(TargetText(text, place, (Step("models"),))) as module:
        if not callable(getattr(module, "models", None)):
            raise DeclarationError(f"`{Path(place).name}` has no `models()`, which yields the entries of a collection")
        yield _entries_of(module.models, only, text), vars(module)


def _entries_of(models: Callable[..., Iterable[Any]], only: str | None, text: str) -> Iterator[Mapping[str, Any]]:
    """What fails here is the listing, and not what is done with an entry."""
    from anyshape.cli.targets import users_code

    with users_code(f"`{text}` fails"):
        asked = {"only": only} if "only" in inspect.signature(models).parameters else {}
        for one in models(**asked):
            yield _entry_of(one, text)


def _entry_of(given: Any, text: str) -> Mapping[str, Any]:
    said = given if isinstance(given, Mapping) else getattr(given, "__dict__", None)
    if not isinstance(said, Mapping) or not isinstance(said.get("name"), str) or not said["name"]:
        raise DeclarationError(f"`{text}` yields a {type(given).__name__} without a name: yield a dict with `name`")
    if strange := [key for key in said if key not in _OF_AN_ENTRY]:
        near = did_you_mean(str(strange[0]), _OF_AN_ENTRY)
        raise DeclarationError(f"`{text}` yields `{said['name']}` with `{strange[0]}`{near}")
    if said.get("model") is None:
        raise DeclarationError(f"`{text}` yields `{said['name']}` without a `model`")
    tags = said.get("tags", ())
    if not isinstance(tags, (list, tuple, set, frozenset)) or not all(isinstance(tag, str) for tag in tags):
        raise DeclarationError(f"`{text}` yields `{said['name']}` with the `tags` {tags!r}: give a list of texts")
    if not isinstance(said.get("options", {}), Mapping):
        raise DeclarationError(
            f"`{text}` yields `{said['name']}` with a {type(said['options']).__name__} as its `options`: give a dict"
        )
    if not callable(said.get("judge", print)):
        raise DeclarationError(
            f"`{text}` yields `{said['name']}` with a {type(said['judge']).__name__} as its `judge`: give a function"
        )
    return said


def _seed_of(options: Mapping[str, Any]) -> int:
    check_values(**options)
    return int(options.get("seed", 0)) % 2**63  # torch takes no more


def _as_plain(said: Any, where: str) -> Any:
    """What can go to another process, and is the same tomorrow: an address in a text would make it another task."""

    def name_of(value: Any) -> str:
        if f"{type(value).__module__}.{type(value).__name__}" == "torch.dtype":
            return str(value).removeprefix("torch.")
        raise TypeError(f"a {type(value).__name__} is among them")

    try:
        return json.loads(json.dumps(said, default=name_of))
    except (TypeError, ValueError, RecursionError) as error:
        raise DeclarationError(f"{where} are no plain values: {first_line(error)}") from None


# ---- entries of a YAML file, and of folders


def run_target(
    tell: TellStage,
    said: Mapping[str, Any],
    by: str,
    options: Mapping[str, Any],
    written: Mapping[str, str],
) -> Told:
    """A TARGET, with what the collection says of its inputs."""
    with _told_in_full(tell, written) as finish:
        inputs = [parse_input(str(text)) for text in said.get("inputs", ())]
        given = {
            "inputs": inputs, "dims": said.get("dims", {}), "sizes": said.get("sizes", {}),
            "weights": said.get("weights"), "seed": _seed_of(options),
        }  # fmt: skip
        with tasks.loaded_call(read_target(str(said["target"])), given) as (loaded, _):
            _convert(loaded, inputs, given["dims"], given["sizes"], said.get("where", ()), by, options, written, finish)
    return finish.told


def run_checkpoint(
    tell: TellStage, place: str, said: Mapping[str, Any], options: Mapping[str, Any], written: Mapping[str, str]
) -> Told:
    """All files of a transformers checkpoint."""
    from anyshape.checkpoints import export_checkpoint

    with _told_in_full(tell, written) as finish, _output(written, "model") as folder:
        finish(export_checkpoint(place, folder, sizes=said.get("sizes"), progress=finish.enter, **options))
    return finish.told


def run_file(
    tell: TellStage,
    place: str,
    said: Mapping[str, Any],
    by: str,
    options: Mapping[str, Any],
    written: Mapping[str, str],
) -> Told:
    """An ONNX file, checked by itself or made dynamic."""
    from anyshape.verbs.check import check
    from anyshape.verbs.make_dynamic import make_dynamic

    with _told_in_full(tell, written, refusal="wrong" if by == "check" else "refused") as finish:
        finish.enter("checking" if by == "check" else "freeing")
        if by == "check":
            finish(check(place, sizes=said.get("sizes"), where=said.get("where", ()), **options))
            return finish.told
        with _output(written, "model.onnx") as path:
            finish(make_dynamic(place, said.get("dims"), out=path, sizes=said.get("sizes"), **options))
    return finish.told


# ---- a model by one of the exporters


def _convert(
    loaded: Any,
    inputs: Any,
    dims: Mapping[str, Any],
    sizes: Mapping[str, Any],
    where: Iterable[str],
    by: str,
    options: Mapping[str, Any],
    written: Mapping[str, str],
    finish: _Finish,
) -> None:
    from anyshape.cli.target_calls import call_of

    call = call_of(loaded, inputs, dims, sizes, _seed_of(options))
    declared = {**call.arguments, "where": loaded.where([*where], inputs), "custom_ops": loaded.custom_ops(())}
    with _output(written, "model.onnx") as path:
        if by == "anyshape":
            from anyshape.verbs.export import export

            finish(export(loaded.model, f=path, progress=finish.enter, **declared, **options))
        else:
            finish.enter("exporting")
            declared["dims"] = _export_by_torch(loaded.model, path, by, declared, options.get("opset_version"))
            finish.refusal = "wrong"  # a file was written, and nothing said
            finish.told = {"outcome": "checked"}
        if finish.judge is not None:
            finish.judged(path, loaded)
        elif by != "anyshape":
            from anyshape.verbs.check import check

            finish.enter("checking")
            chosen = {name: value for name, value in options.items() if name != "opset_version"}
            finish(check(path, loaded.model, **declared, **chosen))


class _NotConvertedError(AnyshapeError):
    """One of torch's exporters raises."""


def _export_by_torch(
    model: Any, path: Path, by: str, declared: Mapping[str, Any], opset: int | None
) -> dict[str, dict[int, str]]:
    """One of torch's exporters, called with what anyshape is given; the dims that were declared, by input."""
    import torch

    from anyshape.declaration.calls import Adapter
    from anyshape.model.request import understand

    request = understand(model, **{name: value for name, value in declared.items() if name != "custom_ops"})
    axes = {name: dict(enumerate(row)) for name, row in request.spec.axes.items()}
    dynamic = {name: {i: str(e) for i, e in row.items() if e is not None} for name, row in axes.items()}
    names, values = list(dynamic), request.signature.values
    labels = list(dict.fromkeys(text for row in dynamic.values() for text in row.values()))
    plain = {name: {axis: f"dim_{labels.index(text)}" for axis, text in row.items()} for name, row in dynamic.items()}
    given: dict[str, Any] = {"input_names": names, "opset_version": opset, "dynamo": by == "torch"}
    given |= {"dynamic_shapes": (tuple(plain.values()),)} if by == "torch" else {"dynamic_axes": plain}
    adapter = Adapter(request.target, request.signature, tuple(names))
    try:
        with warnings.catch_warnings(action="ignore"):  # what it says about itself is not about the model
            torch.onnx.export(adapter.eval(), tuple(values[name] for name in names), str(path), verbose=False, **given)
    except Exception as error:
        raise _NotConvertedError(named_line(_root(error))) from error
    return dynamic


def _root(error: BaseException) -> BaseException:
    """What wraps an error says less."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


# ---- what is told, and where files go


class _Finish:
    """What a verb has come to, kept as plain values, with the CPU seconds of each stage."""

    def __init__(self, tell: TellStage, written: Mapping[str, str], refusal: str) -> None:
        self.told: Told = {"outcome": "defect", "cause": "the verb has returned nothing"}
        self.refusal = refusal
        self.judge: Callable[..., Any] | None = None
        """The entry's own, who has the last word on a file that was written."""
        self._written, self._tell = written, tell
        self._stage, self._since, self._stages = "", time.process_time(), dict[str, float]()

    def enter(self, stage: str) -> None:
        """What is done from here on, as verbs tell their progress; its first word is the stage."""
        now = time.process_time()
        self._stages[self._stage] = self._stages.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage.partition(" ")[0], now
        self._tell(stage)

    def end(self) -> None:
        self.enter("ending")
        self.told["cpu"] = {stage: round(spent, 3) for stage, spent in self._stages.items() if spent >= 0.001 and stage}

    def __call__(self, result: Any) -> None:
        self.told = {"outcome": result.verdict, **self._facts(result)}

    def refuse(self, error: ExportError) -> None:
        cause = next((f"{one.rule}: {one.message}" for one in error.result.findings), error.result.headline)
        self.told = {"outcome": self.refusal, "cause": cause, **self._facts(error.result)}

    def judged(self, path: Path, loaded: Any) -> None:
        """What the entry's own judge says of the file: nothing, what is wrong, or both in a dict with `cause`.

        An assertion that fails says what is wrong, too.
        """
        from anyshape.cli.targets import users_code

        self.enter("judging")
        assert self.judge is not None
        with users_code(f"`judge` of `{loaded.text}` fails"):
            try:
                said = self.judge(path, loaded.model)
            except AssertionError as error:
                said = str(error) or "an assertion of `judge` fails"
        further = dict(said) if isinstance(said, Mapping) else {"cause": said}
        cause = further.pop("cause", None)
        if cause is not None and not isinstance(cause, str):  # of a truth nobody knows which one is good
            raise DeclarationError(
                f"`judge` of `{loaded.text}` gives a {type(cause).__name__}: give what is wrong in a text, or nothing"
            )
        if further:
            try:
                self.told["judged"] = json.loads(json.dumps(further, default=str))
            except (TypeError, ValueError, RecursionError) as error:
                raise DeclarationError(
                    f"`judge` of `{loaded.text}` gives what is no JSON: {first_line(error)}"
                ) from None
        if cause:
            self.told |= {"outcome": "wrong", "cause": cause}

    def _facts(self, result: Any) -> Told:
        found: Told = {}
        if (verification := getattr(result, "verification", None)) is not None:
            found |= {"sizes": len(verification.sizes_run), "checking": round(verification.seconds, 3)}
        kept = {name: list(getattr(result, name, ())) for name in ("repairs", "limits", "given_up")}
        found |= {name: values for name, values in kept.items() if values}
        strategy = [one.strategy for one in getattr(result, "attempts", ()) if one.outcome == "checked"]
        return {**found, **({"strategy": strategy[-1]} if strategy else {}), **self._report(result)}

    def _report(self, result: Any) -> Told:
        """A page about the result, where results can write one."""
        write, name = getattr(result, "report", None), self._written.get("report", "")
        if write is None or not name:
            return {}
        self.enter("reporting")
        path = Path(self._written["folder"]) / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
        except Exception as error:  # noqa: BLE001  a page that cannot be written does not change the verdict
            return {"no_report": named_line(error)}
        return {"report": name}


@contextlib.contextmanager
def _told_in_full(tell: TellStage, written: Mapping[str, str], refusal: str = "refused") -> Iterator[_Finish]:
    """Refusals are results; wrong usage is a defect of the entry."""
    finish = _Finish(tell, written, refusal)
    finish.enter("loading")
    try:
        yield finish
    except ExportError as error:
        finish.refuse(error)
    except _NotConvertedError as error:
        finish.told = {"outcome": "refused", "cause": str(error)}
    except SavingError as error:
        finish.told = {"outcome": "crashed", "cause": f"the system refuses: {error}"}
    except AnyshapeError as error:
        finish.told = {"outcome": "defect", "cause": str(error)}
    finish.end()


@contextlib.contextmanager
def _output(written: Mapping[str, str], name: str) -> Iterator[Path]:
    """Where a file is to be written: kept where that was asked for, else gone afterwards."""
    if "files" in written:
        folder = Path(written["folder"]) / written["files"]
        folder.mkdir(parents=True, exist_ok=True)
        yield folder / name
        return
    with tempfile.TemporaryDirectory() as place:
        yield Path(place) / name


def written_names(folder: Path, name: str, column: str, *, keeps_files: bool) -> dict[str, str]:
    """Names below the folder of results, whatever an entry is called."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{name}-{column}").strip("._")[:80]
    digest = hashlib.sha256(f"{name}\0{column}".encode(errors="backslashreplace")).hexdigest()[:10]
    slug = f"{readable}-{digest}"
    kept = {"files": f"files/{slug}"} if keeps_files else {}
    return {"folder": str(folder), "report": f"reports/{slug}.html", **kept}


def check_options(by: str, kind: str, options: Mapping[str, Any], where: str) -> None:
    known = (*OPTIONS[by], *(CHECKPOINT_OPTIONS if kind == "checkpoint" else ()))
    what = f"{where}, by {by}" if by in EXPORTERS else f"{where}, `{by}`"
    refuse_unknown_options(options, known, what)


def refuse_strange_options(options: Mapping[str, Any], where: str) -> None:
    """An entry's options must be known to somebody."""
    refuse_unknown_options(
        options, {*CHECKPOINT_OPTIONS, *(name for names in OPTIONS.values() for name in names)}, where
    )

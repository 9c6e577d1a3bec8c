"""From a checkpoint to its files: build -> take apart -> export each part -> generate -> write. The stages in order.

Before them stand what is asked for and what comes back: a result per model file, what the files generate, and the names
of all that was written. Below them stands what transformers is told meanwhile: to apply every mask, to stay offline and
to be quiet.
"""

from __future__ import annotations

import contextlib
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import huggingface_hub.constants
import torch
from transformers import masking_utils
from transformers.utils import logging

from anyshape.checkpoints.built_model import BuiltModel, build
from anyshape.checkpoints.decoders import decoder_part
from anyshape.checkpoints.encoder_decoders import encoder_decoder_parts
from anyshape.checkpoints.encoders import encoder_part, inputs_of
from anyshape.checkpoints.folders import Folder
from anyshape.checkpoints.generation import GenerationEvidence, check_generation
from anyshape.checkpoints.parts import ModelPart
from anyshape.checkpoints.written_folder import check_folder, layout_for, put_rest
from anyshape.declaration.targets import as_dtype
from anyshape.errors import DeclarationError
from anyshape.onnxfile.folder_exchange import staged_folder
from anyshape.onnxfile.placement import told_in_a_sentence
from anyshape.results.attempt import Attempt
from anyshape.results.result import ExportError, Result
from anyshape.sizes.notation import did_you_mean
from anyshape.torchkit import capture
from anyshape.verbs.export import export


@dataclass(frozen=True)
class CheckpointOptions:
    """How to export, as the user asked for it."""

    layout: str
    task: str | None
    dtype: Any
    trust_remote_code: bool
    sizes: Mapping[str, Any]
    seed: int
    tell: Callable[[str], None]
    of_export: Mapping[str, Any]
    """Arguments of `export`, for every file."""


@dataclass(frozen=True)
class Exported(Sequence[Result]):
    """The results of one checkpoint, in the order in which the files are used; `print` it."""

    path: Path
    """The folder."""
    model: str
    """The class that the checkpoint was loaded as."""
    results: tuple[Result, ...]
    files: tuple[str, ...]
    """Everything that was written, below the folder."""
    generation: tuple[str, ...] = ()
    """What was seen when the files generated."""
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def verdict(self) -> str:
        """The weakest of the files' verdicts."""
        order = ("checked", "narrowed", "unchecked")
        return max((result.verdict for result in self.results), key=order.index)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(attempt for result in self.results for attempt in result.attempts)

    def __str__(self) -> str:
        count = f"{len(self.results)} model file{'s' if len(self.results) != 1 else ''}"
        lines = [f"{self.verdict}: {self.path.name}/, {self.model} in {count}"]
        lines += [textwrap.indent(str(result), "  ") for result in self.results]
        lines += [f"  decoded  {fact}" for fact in self.generation]
        lines += [f"  note     {note}" for note in self.notes]
        others = [file for file in self.files if not file.endswith((".onnx", ".data", "_data"))]
        return "\n".join([*lines, f"  beside   {', '.join(others)}"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "path": str(self.path),
            "model": self.model,
            "files": list(self.files),
            "results": [result.to_dict() for result in self.results],
            "generation": list(self.generation),
            "notes": list(self.notes),
        }


def export_folder(source: Folder, out: str | os.PathLike[str], options: CheckpointOptions) -> Exported:
    """The whole way; nothing is written before everything is right."""
    dtype = torch.float32 if options.dtype is None else as_dtype(options.dtype)
    layout = layout_for(options.layout, dtype)
    destination = check_folder(out, source.path)
    options.tell(f"loading {source.path}")
    with capture.quiet(), secluded(), torch.random.fork_rng():
        built = build(source, task=options.task, dtype=dtype, trust_remote_code=options.trust_remote_code)
        with every_mask_applied():
            parts = _parts_of(built)
    _refuse_unknown_dims(options.sizes, parts)
    with staged_folder(destination) as stage:
        files = {stage.path / layout.file(part.name): part for part in parts}
        results = [_export_part(part, file, options) for file, part in files.items()]
        with told_in_a_sentence(destination):
            told = put_rest(built, layout, files, stage.path)  # before anything is generated: by the final files
        evidence = _checked_generation(built, files, results, options)
        notes = (*built.notes, *(note for part in parts for note in part.notes), *evidence.notes, *told, *stage.notes)
        written = stage.files
        stage.commit()
    placed = tuple(
        replace(result, path=destination / layout.file(part.name)) for result, part in zip(results, parts, strict=True)
    )
    return Exported(destination, type(built.model).__name__, placed, written, evidence.facts, notes)


def _parts_of(built: BuiltModel) -> list[ModelPart]:
    model, config, choice = built.model, built.model.config, built.choice
    if choice.kind == "decoder" and choice.cached:
        return [decoder_part(model, config)]
    listed = built.folder.setting("tokenizer_config.json", "model_input_names")
    wants_types = None if listed is None else "token_type_ids" in listed
    if choice.kind == "encoder-decoder":
        return encoder_decoder_parts(model, config, cached=choice.cached, wants_types=wants_types)
    return [encoder_part(model, inputs_of(model, config, wants_types=wants_types))]


def _refuse_unknown_dims(sizes: Mapping[str, Any], parts: Sequence[ModelPart]) -> None:
    known = list(dict.fromkeys(dim for part in parts for dim in part.example))
    for dim in sizes:
        if dim not in known:
            listed = ", ".join(f"`{name}`" for name in known)
            raise DeclarationError(f"no dim is called `{dim}`{did_you_mean(dim, known)}: the model has {listed}")


def _export_part(part: ModelPart, file: Path, options: CheckpointOptions) -> Result:
    """One file, checked; a refusal says which."""
    options.tell(f"exporting {file.name}")
    file.parent.mkdir(exist_ok=True)
    sizes = {**part.sizes, **{dim: size for dim, size in options.sizes.items() if dim in part.example}}
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        call = part.make_call(**part.example)
    try:
        with every_mask_applied():
            return export(
                part.module, f=file, kwargs=call, make_inputs=part.make_inputs, dims=part.dims, sizes=sizes,
                where=part.where, seed=options.seed, progress=options.tell, **options.of_export,
            )  # fmt: skip
    except ExportError as error:
        told = f"this is about {file.name}; the folder is as it was"
        raise ExportError(replace(error.result, notes=(*error.result.notes, told))) from error


def _checked_generation(
    built: BuiltModel, files: Mapping[Path, ModelPart], results: Sequence[Result], options: CheckpointOptions
) -> GenerationEvidence:
    """What the files generate, compared with the model; nothing where they keep no past."""
    if not built.choice.cached:
        return GenerationEvidence()
    runs = [result.verification for result in results if result.verification is not None]
    if of_type := next((one for one in runs if one.own_type is not None), None):
        said = f"nothing was generated: {of_type.runtime} cannot run {of_type.own_type} here"
        return GenerationEvidence(notes=(said,))
    options.tell("generating")
    with capture.quiet(), secluded():
        evidence = check_generation(built.model, built.model.config, files, seed=options.seed)
    if evidence.fault is not None:
        raise ExportError(Result("refused", notes=(f"generation in ONNX Runtime: {evidence.fault}",)))
    return evidence


# ---- transformers for the time of an export


_MAKERS: Any = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
_NEVER = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}


@contextlib.contextmanager
def every_mask_applied() -> Iterator[None]:
    """Inside, models of transformers apply their masks as they are, also those that mask nothing.

    In eager, transformers leaves a mask out where it masks nothing and lets the kernel be causal by itself. The results
    are the same, but what is decided on values and sizes cannot be traced. Only the maker of masks is another one:
    models ask for the name of their attention, too, and must find the one that they know.
    """
    own = _MAKERS["sdpa"]

    def every_mask(*args: Any, **kwargs: Any) -> Any:
        return own(*args, **{**kwargs, **_NEVER})

    _MAKERS["sdpa"] = every_mask
    try:
        yield
    finally:
        _MAKERS["sdpa"] = own


_messages: Any = logging


@contextlib.contextmanager
def secluded() -> Iterator[None]:
    """Inside, transformers works offline, whatever a config refers to, and keeps its reports to itself."""
    # not the environment: huggingface_hub has read it when it was imported, perhaps long before
    settings, level = vars(huggingface_hub.constants), _messages.get_verbosity()
    was_offline, had_bars = settings["HF_HUB_OFFLINE"], _messages.is_progress_bar_enabled()
    settings["HF_HUB_OFFLINE"] = True
    _messages.set_verbosity(_messages.CRITICAL)
    _messages.disable_progress_bar()
    try:
        yield
    finally:
        settings["HF_HUB_OFFLINE"] = was_offline
        _messages.set_verbosity(level)
        if had_bars:
            _messages.enable_progress_bar()

"""From a folder to a model in memory: its class, which says how it is exported, and every weight that this class needs.

It is loaded offline and in one precision. An adapter of PEFT is merged into the weights; no file is changed.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from anyshape.checkpoints.folders import ADAPTER, Folder, read_json
from anyshape.errors import AnyshapeError, DeclarationError, named_line
from anyshape.sizes.notation import did_you_mean
from anyshape.sizes.spelling import spelled

# ---- which class, and how it is exported

Kind = Literal["encoder", "decoder", "encoder-decoder"]
PAST = "-with-past"

_MAPPINGS = {
    "feature-extraction": ("MODEL_MAPPING_NAMES",),
    "fill-mask": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES",),
    "text-classification": ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",),
    "token-classification": ("MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",),
    "question-answering": ("MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",),
    "text-generation": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",),
    "text2text-generation": ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",),
    "automatic-speech-recognition": ("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", "MODEL_FOR_CTC_MAPPING_NAMES"),
    "audio-classification": ("MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",),
    "image-classification": ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",),
    "object-detection": ("MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES",),
    "semantic-segmentation": ("MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",),
    "image-to-text": ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",),
    "depth-estimation": ("MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES",),
    "zero-shot-image-classification": ("MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES",),
}
"""Task, as optimum calls it -> transformers' tables of model type -> class."""
_GENERATING = ("text-generation", "text2text-generation", "image-to-text", "automatic-speech-recognition")
TASKS = (*_MAPPINGS, *(f"{task}{PAST}" for task in _GENERATING))


@dataclass(frozen=True)
class Choice:
    """A class, and how to export it."""

    model_class: Any
    kind: Kind
    cached: bool


def choose(folder: Folder, task: str | None, *, trust_remote_code: bool) -> Choice:
    """The class that the task asks for, or else the one that the config names."""
    if task is not None and task not in TASKS:
        hint = did_you_mean(task, TASKS) or f": one of {', '.join(TASKS)}"
        raise DeclarationError(f"no task is called `{task}`{hint}")
    model_class = (
        _class_named(folder, trust_remote_code=trust_remote_code) if task is None else _class_for(folder, task)
    )
    kind = _kind_of_model(model_class, folder)
    if task is not None and task.endswith(PAST) and kind == "encoder":
        raise DeclarationError(f"`{model_class.__name__}` generates nothing, so `{task}` has no past to keep")
    return Choice(model_class, kind, cached=kind != "encoder" and (task is None or task.endswith(PAST)))


def _class_named(folder: Folder, *, trust_remote_code: bool) -> Any:
    import transformers

    name = folder.architecture
    if name is None:
        said = spelled("task=", "--task")
        raise DeclarationError(f"the config of `{folder.path}` names no architecture: say with {said} what it is for")
    found = getattr(transformers, name, None)
    if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
        return found
    place = next((str(place) for place in folder.foreign_code.values() if str(place).endswith(f".{name}")), None)
    if place is None:
        raise DeclarationError(f"transformers {transformers.__version__} has no `{name}`, which `{folder.path}` needs")
    if not trust_remote_code:
        raise DeclarationError(
            f"`{folder.path}` brings its own code for `{name}` (`{place}`): "
            f"read it, then give {spelled('trust_remote_code=True', '--trust-remote-code')} to run it"
        )
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    return get_class_from_dynamic_module(place, str(folder.path), local_files_only=True)


def _class_for(folder: Folder, task: str) -> Any:
    import transformers
    from transformers.models.auto import modeling_auto

    kind = str(folder.config.get("model_type"))
    names: list[str] = []
    for table in _MAPPINGS[task.removesuffix(PAST)]:
        found = getattr(modeling_auto, table).get(kind, ())
        names += [found] if isinstance(found, str) else list(found)
    if not names:
        raise DeclarationError(f"transformers has no model of the type `{kind}` for `{task}`")
    return getattr(transformers, folder.architecture if folder.architecture in names else names[0])


def _kind_of_model(model_class: Any, folder: Folder) -> Kind:
    if not model_class.can_generate():
        return "encoder"
    if folder.config.get("is_encoder_decoder") or folder.config.get("model_type") == "vision-encoder-decoder":
        return "encoder-decoder"
    takes = set(inspect.signature(model_class.forward).parameters)
    other = next((name for name in ("pixel_values", "input_features", "input_values") if name in takes), None)
    if other is not None:
        raise DeclarationError(
            f"`{model_class.__name__}` generates from `{other}` beside text, which a checkpoint export does not take "
            f"apart: export its parts with `{spelled('anyshape.export', 'anyshape export FILE.py:NAME')}`"
        )
    return "decoder"


# ---- the model


@dataclass(frozen=True)
class BuiltModel:
    """A model, ready to be exported."""

    folder: Folder
    model: Any
    choice: Choice
    notes: tuple[str, ...]


def build(folder: Folder, *, task: str | None, dtype: torch.dtype, trust_remote_code: bool) -> BuiltModel:
    """Load the model, or say in one sentence why not."""
    _refuse_quantised(folder)
    home = folder.absolute()  # its own code may change the current folder
    choice = choose(folder, task, trust_remote_code=trust_remote_code)
    model, notes = _model_and_notes(folder, home.path, choice.model_class, dtype, trust_remote_code=trust_remote_code)
    if home.adapter is not None:
        model = with_adapter(model, home.adapter)
        notes.append(f"the adapter in `{folder.adapter}` is merged into the weights of `{folder.path}`")
    return BuiltModel(home, model.eval().requires_grad_(requires_grad=False), choice, tuple(notes))


def _refuse_quantised(folder: Folder) -> None:
    found = folder.config.get("quantization_config")
    if found:
        method = found.get("quant_method", "an unknown method") if isinstance(found, Mapping) else found
        raise DeclarationError(
            f"the weights of `{folder.path}` are quantised ({method}): give the checkpoint before that"
        )


def _model_and_notes(
    folder: Folder, home: Path, model_class: Any, dtype: torch.dtype, *, trust_remote_code: bool
) -> tuple[Any, list[str]]:
    options = {"trust_remote_code": True} if trust_remote_code else {}
    try:
        model, info = model_class.from_pretrained(
            str(home), dtype=dtype, local_files_only=True, output_loading_info=True, **options
        )
    except Exception as error:
        what = f"`{folder.path}` cannot be loaded as `{model_class.__name__}`"
        raise DeclarationError(f"{what}: {named_line(error)}") from error
    missing = sorted({*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])})
    if missing:
        raise DeclarationError(f"`{folder.path}` lacks {_some_names(missing)}, which `{model_class.__name__}` needs")
    notes = list(_notes_on_weights(folder, info, dtype))
    if folder.foreign_code and not trust_remote_code:
        notes.append("the code that the checkpoint brings along is not run: transformers has its own")
    return model, notes


def _notes_on_weights(folder: Folder, info: Mapping[str, Any], dtype: torch.dtype) -> Iterator[str]:
    unused = sorted(info["unexpected_keys"])
    if unused:
        yield f"{_some_names(unused)} of the checkpoint {'is' if len(unused) == 1 else 'are'} not used"
    stored = folder.config.get("dtype") or folder.config.get("torch_dtype")
    if stored not in (None, "float32") and dtype == torch.float32:
        said = spelled(f'dtype="{stored}"', f"--dtype {stored}")
        yield f"the weights are stored in {stored} and written in float32: {said} keeps them"


def _some_names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more weights"


# ---- adapters


def with_adapter(model: Any, adapter: Path) -> Any:
    """The model with an adapter's weights added to its own."""
    if importlib.util.find_spec("peft") is None:
        raise AnyshapeError(f"`{adapter}` is a PEFT adapter, and peft is not installed: pip install peft")
    peft: Any = importlib.import_module("peft")  # no dependency of ours, so nothing that a type checker could find
    try:
        adapted = peft.PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
    except Exception as error:
        raise DeclarationError(f"the adapter in `{adapter}` cannot be put on its model: {named_line(error)}") from error
    if not hasattr(adapted.base_model, "merge_and_unload"):
        kind = read_json(adapter / ADAPTER).get("peft_type")
        raise DeclarationError(f"the adapter in `{adapter}` is of the kind {kind}, which cannot be merged into weights")
    return adapted.merge_and_unload()

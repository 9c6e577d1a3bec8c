"""Which class a checkpoint is loaded as, and how it is exported: as one file, with a cache, or in two halves."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

from anyshape.checkpoints.folders import Folder
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import did_you_mean

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
    if task is None:
        model_class = _class_named(folder, trust_remote_code=trust_remote_code)
    else:
        model_class = _class_for(folder, task)
    kind = _kind_of_model(model_class, folder)
    if task is not None and task.endswith(PAST) and kind == "encoder":
        raise DeclarationError(f"`{model_class.__name__}` generates nothing, so `{task}` has no past to keep")
    return Choice(model_class, kind, cached=kind != "encoder" and (task is None or task.endswith(PAST)))


def _class_named(folder: Folder, *, trust_remote_code: bool) -> Any:
    import transformers

    name = folder.architecture
    if name is None:
        raise DeclarationError(f"the config of `{folder.path}` names no architecture: say with --task what it is for")
    if (found := getattr(transformers, name, None)) is not None:
        return found
    place = next((str(place) for place in folder.foreign_code.values() if str(place).endswith(f".{name}")), None)
    if place is None:
        raise DeclarationError(f"transformers {transformers.__version__} has no `{name}`, which `{folder.path}` needs")
    if not trust_remote_code:
        raise DeclarationError(
            f"`{folder.path}` brings its own code for `{name}` (`{place}`): "
            "read it, then give --trust-remote-code (trust_remote_code=True) to run it"
        )
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    return get_class_from_dynamic_module(place, str(folder.path), local_files_only=True)


def _class_for(folder: Folder, task: str) -> Any:
    import transformers
    from transformers.models.auto import modeling_auto

    kind = folder.config.get("model_type")
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
            "apart: export its parts with anyshape.export"
        )
    return "decoder"

"""Every private name of torch and onnxscript that anyshape touches: where it is, what for, and what is lost without.

Written for torch 2.13 and onnxscript 0.7. Such names move from release to release, so nobody else writes them down:
code asks for an object here by its name and gets None where there is none, and then gives less (a slower trace, a
message without its line, a way to the file that is skipped), which one note of the result says. What nothing works
without is essential: `require` says so in one sentence before anything is tried. Attributes that are read very often
are read directly, and stand here all the same.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import torch

from anyshape.errors import AnyshapeError


@dataclass(frozen=True)
class PrivateName:
    """One name of torch's or onnxscript's that nobody has promised to keep."""

    place: str
    """Where it is today: modules, a class, an attribute."""
    purpose: str
    without: str
    """What is lost where it is not there."""

    @property
    def owner(self) -> str:
        return self.place.rpartition(".")[0]

    @property
    def attribute(self) -> str:
        return self.place.rpartition(".")[2]

    @property
    def is_essential(self) -> bool:
        return self.without == _NOTHING


# ---- the registry

# what is lost
_NOTHING = "nothing can be exported"
_MEMORY = "a check takes more memory"
_AS_VALUE = "a size that went through a tensor is taken for a value"
_UNROLLED = "recurrent layers are refused or unrolled"
_UNCONDITIONAL = "branches, loops and some recurrent layers are refused"
_UNPACKED = "packed sequences are refused"
_UNREAD = "lengths are not read"
_UNMASKED = "some transformers are refused"
_UNREPAIRED = "repaired programs are refused"
_BRANCHES = "branches and loops are not kept as such"
_REFUSED = "an operator of the user's without a translation is refused, even if it is written in Python"
_TORCHS = "torch's translations are taken alone, and some models are refused"
_SINGLE = "such models are refused"
_FEWER_DIGITS = "numbers in the code of a float64 model are rounded to float32, and its file is refused"
_REFUSED_MEANS = "right files with adaptive windows may be refused"
_UNANNOTATED = "it has to have one"
_SLOWER = "the export is slower"

# where many of them are
_SHAPES = "torch.fx.experimental.symbolic_shapes.ShapeEnv"
_PROXIES = "torch.fx.experimental.proxy_tensor"
_CUSTOM_OP = "torch._library.custom_ops.CustomOpDef"
_EXPORTER = "torch.onnx._internal.exporter"
_PASSES = f"{_EXPORTER}._fx_passes"
_MATCHER = "onnxscript.rewriter._matcher.SimplePatternMatcher"
_RULE = "onnxscript.rewriter._rewrite_rule.RewriteRule"
_PROMOTION = "torch.onnx._internal.fx.passes.type_promotion"

_FUNCTIONS = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
_SYMBOLIC = " ".join(f"_sym_{name}" for name in _FUNCTIONS)
_OPSETS = "ONNX_MAX_OPSET ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET"

_ROWS = (
    # without which nothing works
    ("torch._ops", "OpOverload OpOverloadPacket", "what operators are", _NOTHING),
    ("torch.utils", "_pytree", "nested lists, tuples and dicts as a row of values", _NOTHING),
    ("torch.utils._python_dispatch", "TorchDispatchMode", "runs in other arithmetic, and records", _NOTHING),
    ("torch.Tensor", "_version _base", "whether it was written to, and what it is a view of", _NOTHING),
    ("torch._ops.OpOverload", "_schema", "an operator's arguments, and what it does to memory", _NOTHING),
    ("torch.nn.Module", "_parameters _buffers _modules", "what a module holds, read and put back", _NOTHING),
    ("torch.jit.ScriptModule", "_concrete_type", "what TorchScript keeps from call to call", "it is not put back"),
    ("torch.nn.Module", "_forward_hooks _forward_pre_hooks", "parts with hooks, which are not copied", _NOTHING),
    # traces
    (_SHAPES, "_log_guard", "the assumptions of a trace, as they are made", "findings name no guards"),
    (_SHAPES, "_set_replacement", "the sizes that a trace turned into numbers", "findings name no pinned dims"),
    (_SHAPES, "create_symbol", "which symbol is which axis", "sizes of the file have no names of their own"),
    ("torch.fx.traceback", "get_current_meta", "the line of a node that is run again", "findings without line"),
    ("torch.fx.experimental._config", "backed_size_oblivious", "size 1 as any other", "more dims are pinned"),
    ("torch", "_check", "conditions that a trace may rely on", _UNCONDITIONAL),
    ("torch", _SYMBOLIC, "functions of a size", "a size computed with it is refused"),
    ("torch._C", "_current_autograd_node", "derivatives run without a rehearsal", _SLOWER),
    ("torch", "_VF", "recurrent layers as ONNX operators", _UNROLLED),
    ("torch._C", "_VariableFunctions", "recurrent layers as torch computes them", _UNROLLED),
    ("torch._C", "_set_grad_enabled", "gradients switched on inside of a model", "such a model is refused"),
    ("torch._C", "_len_torch_function_stack", "no answers while a program is run again", _UNREPAIRED),
    ("torch._C", "_jit_set_onnx_log_enabled", "the older exporter, in silence", "it prints graphs where it fails"),
    ("torch.overrides", "_pop_mode _push_mode", "no answers then", _UNREPAIRED),
    ("torch.nn.RNNBase", "_flat_weights _update_flat_weights", "the weights of a recurrent layer", _UNPACKED),
    ("torch._subclasses.fake_tensor", "FakeTensor", "what tensors of a trace are", _UNREAD),
    ("torch._subclasses.functional_tensor", "FunctionalTensor", "the same", _UNREAD),
    ("torch._subclasses.fake_tensor.FakeTensor", "constant", "tensors that are one known number", _AS_VALUE),
    ("torch.export._trace", "_fakify_params_buffers", "buffers that are one whole number", _AS_VALUE),
    ("torch.nn.modules.transformer", "_detect_is_causal_mask", "masks that are not compared", _UNMASKED),
    ("torch.distributions.Distribution", "_validate_args", "distributions that do not look", "they are refused"),
    (f"{_EXPORTER}._flags", "_is_onnx_exporting", "models that ask whether they are exported", "they hear no"),
    ("torch.utils._python_dispatch", "_disable_current_modes", "weights widened part by part", _MEMORY),
    ("torch.ops.aten", "_embedding_bag _embedding_bag_forward_only", "tables widened by rows", _MEMORY),
    (
        "torch.ops.aten",
        "_fft_r2c _fft_c2c _fft_c2r _upsample_bilinear2d_aa _upsample_bicubic2d_aa _softmax _log_softmax",
        "the error of transforms, resizes and softmax",
        "right files with a transform, an antialiased resize or a mask may be refused",
    ),
    ("torch.ops.aten", "_local_scalar_dense", "numbers that are read", _SLOWER),
    ("torch.ops.aten", "_unsafe_view _reshape_copy", "views that nothing rounds", _SLOWER),
    ("torch.ops.higher_order", "wrap_with_set_grad_enabled wrap_with_autocast", "programs inside programs", _SLOWER),
    ("torch.ops.aten", "_adaptive_avg_pool2d _adaptive_avg_pool3d", "the error of means", _REFUSED_MEANS),
    # branches and loops
    (_SHAPES, "evaluate_expr evaluate_sym_node", "the questions that a trace asks about sizes", _BRANCHES),
    (_SHAPES, "_maybe_evaluate_static _refine_ranges", "what torch infers from one path alone", _BRANCHES),
    ("torch.fx.experimental.sym_node.SymNode", "hint _hint _expr", "a size on the path that is run", _BRANCHES),
    ("torch.nn.Module", "_call_impl", "calls of modules run once for each path", _BRANCHES),
    (_PROXIES, "get_proxy_mode", "passes through a loop that leave no nodes", _BRANCHES),
    (f"{_PROXIES}._ModuleStackTracer", "module_stack", "calls that an exception has left", "names of layers"),
    ("torch._guards", "detect_fake_mode", "the mode in which a trace computes shapes", _BRANCHES),
    ("torch.UntypedStorage", "_cdata", "tensors that share memory", _BRANCHES),
    ("torch._higher_order_ops.map", "map", "`map` as a loop", "`map` is unrolled"),
    # operators of the user's
    ("torch._C", "_dispatch_get_all_op_names", "all operators of the process", _REFUSED),
    ("torch._C", "_jit_resolve_packet", "the overload that takes these arguments", _REFUSED),
    ("torch._C", "_dispatch_key_for_device DispatchKey DispatchKeySet", "the kernel that eager runs", _REFUSED),
    ("torch._C", "_dispatch_kernel_for_dispatch_key_is_fallthrough", "the kernel that eager runs", _REFUSED),
    ("torch._C", "_dispatch_get_computed_kernel_for_dispatch_key", "the kernel that eager runs", _REFUSED),
    ("torch._C", "DisableTorchFunction", "the function behind a kernel", _REFUSED),
    ("torch._ops.OpOverload", "_op", "calls that we answer", _REFUSED),
    ("torch._ops.OpOverload", "_op_dk", "the kernel that eager runs", _REFUSED),
    ("torch._ops.OpOverload", "_can_decompose", "what torch takes apart", _REFUSED),
    ("torch._decomp", "decomposition_table", "what torch takes apart", _REFUSED),
    ("torch.library", "_impls", "kernels registered from Python", _REFUSED),
    ("torch._library.custom_ops", "CustomOpDef OPDEFS", "what `custom_op` makes", _REFUSED),
    (_CUSTOM_OP, "_opoverload _backend_fns _abstract_fn", "the functions of such an operator", _REFUSED),
    ("torch._library.simple_registry", "singleton", "shapes of an operator's results", _REFUSED),
    ("torch._library.utils", "Kernel", "shapes of an operator's results", _REFUSED),
    # translations
    ("torch.onnx._constants", _OPSETS, "the newest opset that torch writes", "20 is written"),
    (f"{_EXPORTER}._constants", "TORCHLIB_OPSET", "the oldest opset of torch's table", "18 is taken for it"),
    (f"{_EXPORTER}._registration", "OnnxDecompMeta", "our translations in torch's table", _TORCHS),
    (f"{_EXPORTER}._registration.ONNXRegistry", "from_torchlib _register", "the same", _TORCHS),
    (f"{_EXPORTER}._core", "_prepare_exported_program_for_export", "sizes computed in double", _SINGLE),
    (f"{_EXPORTER}._building.OpRecorder", "_call_op", "numbers of float64 models", _FEWER_DIGITS),
    ("onnxscript.OnnxFunction", "_pt_onnx_signature", "a user's translation without a return annotation", _UNANNOTATED),
    # speed
    (_PROXIES, "get_proxy_slot track_tensor_tree disable_proxy_modes_tracing", "parts that are alike", _SLOWER),
    (f"{_PROXIES}._ModuleStackTracer", "call_module enable_attr_proxy", "parts that are alike", _SLOWER),
    (_PROXIES, "_extract_tensor_metadata", "layouts that nobody asks for", _SLOWER),
    ("torch._dynamo.config", "fake_tensor_cache_enabled", "no memory of results", _SLOWER),
    ("torch._subclasses.fake_impls", "get_fast_op_impls", "results that are known", _SLOWER),
    ("torch._prims_common", "is_contiguous_or_false", "results that are known", _SLOWER),
    ("torch.ops.aten", "_native_batch_norm_legit_no_training", "results that are known", _SLOWER),
    ("torch.utils._traceback", "_extract_symbolized_tb", "stacks whose lines nobody shows", _SLOWER),
    ("torch.SymInt", "__sym_max__ __sym_min__", "maxima of sizes that are known", _SLOWER),
    (_PASSES, "decompose_with_registry insert_type_promotion_nodes", "stages that are left out", _SLOWER),
    (
        f"{_PASSES}._decomp",
        "create_onnx_friendly_decomposition_table",
        "what operators are made of, asked once",
        _SLOWER,
    ),
    (f"{_PASSES}._decomp", "get_onnx_implemented_overloads", "one operator replaced by what it is made of", _SLOWER),
    (_PROMOTION, "_TypePromotionInterpreter TypePromotionTable", "types promoted where they differ", _SLOWER),
    ("torch.export.ExportedProgram", "_graph_module _graph_signature", "stages that are left out", _SLOWER),
    ("torch._dispatch.python", "enable_python_dispatcher", "one operator taken apart", _SLOWER),
    ("onnxscript._internal.values.TracedOnnxFunction", "function_ir", "sources left unread", _SLOWER),
    ("onnxscript.TracedOnnxFunction", "__init__", "the same", _SLOWER),
    ("onnxscript", "script", "the same", _SLOWER),
    ("onnxscript.function_libs.torch_lib.ops.core", "aten_add", "the same", _SLOWER),
    (_RULE, "try_rewrite _target_pattern", "rules tried where they can match, and squeezes kept", _SLOWER),
    (
        _MATCHER,
        "_match_constant",
        "tiny numbers kept",
        "what adds less than 1e-8 adds nothing, and such models are refused",
    ),
    (
        f"{_PROMOTION}.ReductionTypePromotionRule",
        "preview_type_promotion",
        "sums of halves that are halves",
        "models that add up halves are left to TorchScript's exporter",
    ),
)
"""Owner, names with spaces between them, their purpose, and what is lost without."""

NAMES = {
    f"{owner}.{name}": PrivateName(f"{owner}.{name}", purpose, without)
    for owner, names, purpose, without in _ROWS
    for name in names.split()
}
"""By the name that our code asks for; where torch moves something, its `place` follows."""


def lookup(name: str) -> Any:
    """The object of this name; None where this torch or onnxscript has none."""
    found = _object_at(NAMES[name].place)
    if found is None:
        _ASKED_IN_VAIN.add(name)
    return found


def attribute(holder: Any, name: str, otherwise: Any = None) -> Any:
    """An object's attribute, named with its class."""
    return getattr(holder, NAMES[name].attribute, otherwise)


def place_of(name: str) -> tuple[Any, str] | None:
    """The owner of a name, and what it is called there, for who replaces it; None where there is none."""
    entry = NAMES[name]
    holder = _object_at(entry.owner)
    if hasattr(holder, entry.attribute):
        return holder, entry.attribute
    _ASKED_IN_VAIN.add(name)
    return None


def missing(names: Iterable[str]) -> list[str]:
    """Which of these names are not there, each with its owner: `ShapeEnv._refine_ranges`."""
    gone = [name for name in names if not _is_there(NAMES[name])]
    _ASKED_IN_VAIN.update(gone)
    return [_short(name) for name in gone]


def _short(name: str) -> str:
    return ".".join(name.split(".")[-2:])


_ASKED_IN_VAIN: set[str] = set()
"""What no export asks for is missed by nobody, and is not imported to be told."""


def losses() -> list[str]:
    """One sentence that says which names were asked for in vain, and what is lost without them; none as a rule."""
    by_loss: dict[tuple[str, str], list[str]] = {}
    for name, entry in NAMES.items():
        if name in _ASKED_IN_VAIN and not _is_there(entry):  # asked anew: what was away for a while is no loss
            by_loss.setdefault((name.partition(".")[0], entry.without), []).append(_short(name))
    parts = [
        f"{library} {metadata.version(library)} has no {', '.join(f'`{name}`' for name in names)}: {without}"
        for (library, without), names in by_loss.items()
    ]
    return ["; ".join(parts)] if parts else []


def require() -> None:
    """What nothing works without is there, or one sentence."""
    gone = missing(name for name, entry in NAMES.items() if entry.is_essential)
    if gone:
        raise AnyshapeError(f"this torch, {torch.__version__}, has no {', '.join(gone)}: anyshape does not know it yet")


_HOLDERS: Mapping[str, Callable[[], Any]] = {
    "torch._ops.OpOverload": lambda: torch.ops.aten.add.Tensor,
    "torch.nn.Module": torch.nn.Module,
}
"""Give an object that has what is essential, and the class itself does not have."""


def _is_there(entry: PrivateName) -> bool:
    if entry.is_essential and entry.owner in _HOLDERS:
        return hasattr(_HOLDERS[entry.owner](), entry.attribute)
    return _object_at(entry.place) is not None


def _object_at(place: str) -> Any:
    """Found anew each time: what is patched for a while is what is there."""
    parts = place.split(".")
    found: Any = None
    for count in range(1, len(parts) + 1):
        module = ".".join(parts[:count])
        if module in sys.modules:  # before the attribute: a package may give a function its module's name
            found = sys.modules[module]
        elif hasattr(found, parts[count - 1]):
            found = getattr(found, parts[count - 1])
        else:
            try:
                found = importlib.import_module(module)
            except ImportError:
                return None
    return found


def _essential(name: str) -> Any:
    found = lookup(name)
    if found is None:
        require()
    return found


# ---- essential names in the form in which files import them

if TYPE_CHECKING:
    from torch._ops import OpOverload, OpOverloadPacket
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode
else:
    OpOverload, OpOverloadPacket = _essential("torch._ops.OpOverload"), _essential("torch._ops.OpOverloadPacket")
    pytree = _essential("torch.utils._pytree")
    TorchDispatchMode = _essential("torch.utils._python_dispatch.TorchDispatchMode")

__all__ = [
    "NAMES", "OpOverload", "OpOverloadPacket", "PrivateName", "TorchDispatchMode", "attribute", "lookup", "losses",
    "missing", "place_of", "pytree", "require",
]  # fmt: skip

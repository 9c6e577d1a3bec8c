"""How a session of ONNX Runtime is opened, as plain values: the same here and in a process for strangers' files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyshape.errors import AnyshapeError, DeclarationError, first_line
from anyshape.sizes import budgets
from anyshape.sizes.notation import did_you_mean, listed


def load_runtime() -> Any:
    """The installed onnxruntime, or one sentence with the command."""
    try:
        import onnxruntime
    except ImportError:
        raise AnyshapeError("ONNX Runtime is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')") from None
    return onnxruntime


@dataclass(frozen=True)
class Opening:
    """A model, and the options of its session."""

    source: str | bytes
    """A path, or the model itself."""
    providers: Sequence[Any] = ("CPUExecutionProvider",)
    libraries: Sequence[str] = ()
    folder: str | None = None
    """Where the weights of a model that is given as bytes lie."""
    leaves_weights: bool = False
    """Whether weights stay in their file, mapped."""
    is_widened: bool = False
    """Whether the runtime must widen weights to compute with them."""
    is_optimised: bool = True
    is_packed: bool = True
    profile: str | None = None
    """Where a record of the runs goes: the beginning of a file's name."""
    threads: int | None = None
    spins: bool = False
    """Whether threads wait for work busily while a run lasts, as they do by default."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the session: with a dot in their name entries of its config, else attributes."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Dims that have one size in this session."""
    disabled_optimizers: Sequence[str] = ()

    def open(self) -> Any:
        """The session, in this process."""
        ort = load_runtime()
        providers = [tuple(one) if isinstance(one, list) else one for one in self.providers]
        # else it prints an error, and takes another provider
        further = {"disabled_optimizers": list(self.disabled_optimizers)} if self.disabled_optimizers else {}
        options = self._options(ort)
        return ort.InferenceSession(self.source, options, providers=providers, enable_fallback=0, **further)

    def _options(self, ort: Any) -> Any:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        # between two runs comes PyTorch's turn: threads that wait for work by spinning would take its cores
        entry = ("session.force_spinning_stop", "1") if self.spins else ("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry(*entry)
        for library in self.libraries:
            _register_library(options, library)
        if self.leaves_weights:
            _leave_weights_in_their_file(ort, options)
            if self.is_widened:
                # fused nodes come last in the runtime's order, when all that they need has been widened
                options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        if self.folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", self.folder)
        if self.profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, self.profile
        if not self.is_optimised:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if not self.is_packed:
            options.add_session_config_entry("session.disable_prepacking", "1")
        self._set_wishes(ort, options)
        return options

    def _set_wishes(self, ort: Any, options: Any) -> None:
        """What whoever opens it asks for, last."""
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        for dim, size in self.fixed.items():
            options.add_free_dimension_override_by_name(dim, size)
        for name, value in self.settings.items():
            _set_option(ort, options, name, value)


_ATTRIBUTES = {
    "enable_cpu_mem_arena": None, "enable_mem_pattern": None, "enable_mem_reuse": None,
    "execution_mode": "ExecutionMode", "execution_order": "ExecutionOrder",
    "graph_optimization_level": "GraphOptimizationLevel", "inter_op_num_threads": None,
    "use_deterministic_compute": None,
}  # fmt: skip
"""Attributes of a session's options that may be set, and whose words their values are; else numbers."""
_FLAGS = {"true": 1, "false": 0, "on": 1, "off": 0}


def _set_option(ort: Any, options: Any, name: str, value: Any) -> None:
    if "." in name:
        options.add_session_config_entry(name, str(value))
        return
    if name not in _ATTRIBUTES:
        known = f"{listed(_ATTRIBUTES)}, or entries of its config such as `session.disable_prepacking`"
        raise DeclarationError(f"`{name}` is no option of a session here: {known}{did_you_mean(name, _ATTRIBUTES)}")
    kind = _ATTRIBUTES[name]
    words = {} if kind is None else getattr(ort, kind).__members__
    found = words.get(str(value)) if words else _FLAGS.get(str(value).lower(), str(value))
    if found is None or not (words or str(found).isdecimal()):
        told = f"one of {', '.join(words)}" if words else "a number, true or false"
        raise DeclarationError(f"the session's option `{name}` is {value!r}: give {told}")
    found = found if words else int(found)
    setattr(options, name, found)


def _register_library(options: Any, library: str) -> None:
    try:
        options.register_custom_ops_library(library)
    except Exception as error:  # noqa: BLE001  whatever the runtime raises, the library is none
        raise DeclarationError(f"`{library}` is no library of custom operators: {first_line(error)}") from None


def _leave_weights_in_their_file(ort: Any, options: Any) -> None:
    """The runtime maps external weights; nothing may copy them: not packed, laid out anew or widened beforehand."""
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry(
        "optimization.constant_folding_max_output_size_in_bytes", str(budgets.LARGEST_FOLDED_CONSTANT)
    )
    # the levels above change layouts, and widen float16 weights that the CPU has no kernel for, all at once
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    # weights that are widened for one node must go before the next: widened late, not planned for together, not pooled
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False

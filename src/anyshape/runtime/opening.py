"""How a session of ONNX Runtime is opened, as plain values: the same here and in a process for strangers' files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyshape.errors import AnyshapeError, DeclarationError, first_line
from anyshape.sizes import budgets


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

    def open(self) -> Any:
        """The session, in this process."""
        ort = load_runtime()
        providers = [tuple(one) if isinstance(one, list) else one for one in self.providers]
        # else it prints an error, and takes another provider
        return ort.InferenceSession(self.source, self._options(ort), providers=providers, enable_fallback=0)

    def _options(self, ort: Any) -> Any:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        # between two runs comes PyTorch's turn: threads that wait for work by spinning would take its cores
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
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
        if self.threads is not None:
            options.intra_op_num_threads = self.threads
        return options


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

"""A module's state at one moment, and the way back: every call starts from the module as it was handed to us."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dis
import functools
import inspect
import itertools
import operator
import random
import sys
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.sizes import budgets
from anyshape.source.live_code import LOCK
from anyshape.torchkit.private_names import attribute

_IDLE = {
    "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
}  # fmt: skip
"""What every module of torch has, and no call changes by itself: half of all containers, looked at after every run."""

Change = tuple[int, Any]
"""A place in the state: which container or tensor, and the key in it."""


class ModuleState:
    """The attributes, buffers and flags of a module just before a call of it; `restore` puts them back after it.

    Parameters are not copied: forward does not change them. Buffers and tensors kept as attributes are: forward may.
    What plain objects hold, and what the module's classes and files keep for all, is state just as well; of a file,
    the names that the module's own code mentions. Containers are restored in place, so that whoever else holds one sees
    the same object.
    """

    def __init__(self, module: nn.Module) -> None:
        found: dict[int, Any] = {}
        for part in module.modules():
            _collect(vars(part), found, depth=0)
            for name in _IDLE & vars(part).keys():
                found.pop(id(vars(part)[name]), None)
        for kind in _classes_of(module):
            _collect_kept(dict(vars(kind)), found)
        files = _mentioned_names(module)
        for _, mentioned in files:
            _collect_kept(mentioned, found)
        self._slots = [slot for part in module.modules() for slot in _scripted_slots(part)]
        for _, _, value in self._slots:
            _collect(value, found, depth=0)
        self._names = [(names, _replaceable(mentioned)) for names, mentioned in files]
        self._containers = [(value, value.copy()) for value in found.values() if not isinstance(value, torch.Tensor)]
        self._held = _Held([container for container, _ in self._containers])
        tensors = [value for value in found.values() if isinstance(value, torch.Tensor)]
        self._tensors = list(map(_KeptTensor, tensors, kept_copies(tensors)))

    def changes(self) -> frozenset[Change]:
        """Where the state is another than at that moment: attributes set, entries made, tensors written to."""
        changed = {
            (id(c), key) for c, kept in self._containers if not _is_unchanged(c, kept) for key in _other_keys(c, kept)
        }
        for names, kept in self._names:
            changed |= {(id(names), name) for name, value in kept.items() if names.get(name) is not value}
        changed |= {
            (id(part), name) for part, name, value in self._slots if not _is_as_kept(getattr(part, name), value)
        }
        changed |= {(id(kept.tensor), None) for kept in self._tensors if kept.is_written}
        return frozenset(changed)

    def holds(self) -> bool:
        """Whether all is as it was then, as far as that is told without a look into tensors."""
        return (
            self._held.is_unchanged()
            and all(names.get(name) is value for names, kept in self._names for name, value in kept.items())
            and all(_is_as_kept(getattr(part, name), value) for part, name, value in self._slots)
            and not any(kept.is_written for kept in self._tensors)
        )

    def restore(self) -> None:
        for container, kept in () if self._held.is_unchanged() else self._containers:
            if not _is_unchanged(container, kept):
                container.clear()
                container.update(kept) if isinstance(container, (dict, set)) else container.extend(kept)
        for names, values in self._names:
            names.update({name: value for name, value in values.items() if names.get(name) is not value})
        for part, name, value in self._slots:
            if not _is_as_kept(getattr(part, name), value):
                setattr(part, name, value)
        for kept in self._tensors:
            if kept.is_written or kept.holds_other_numbers():
                kept.put_back()


class _KeptTensor:
    """A tensor, with a copy of what it held."""

    def __init__(self, tensor: torch.Tensor, copy: torch.Tensor) -> None:
        self.tensor, self.copy, self._version = tensor, copy, tensor._version
        self._is_small = tensor.numel() < budgets.SMALL_STATE
        self._place = _place_of(tensor) if self._is_small else None
        self._seen = _bytes_at(self._place, tensor)

    @property
    def is_written(self) -> bool:
        return self.tensor._version != self._version

    def holds_other_numbers(self) -> bool:
        """Writing through `.data` does not count as a new version. There are hundreds of small buffers, and bytes are
        compared in a tenth of the time that an operator takes to begin.
        """
        if not self._is_small:
            return False
        if self._place is not None and self._place == self.tensor.data_ptr():
            return _bytes_at(self._place, self.tensor) != self._seen
        # a repair that answers for `torch.equal` would take it for the model's
        return bool((self.tensor != self.copy).any())

    def put_back(self) -> None:
        with torch.no_grad():
            self.tensor.copy_(self.copy)
        self._version = self.tensor._version


def _place_of(tensor: torch.Tensor) -> int | None:
    """Where in memory a tensor lies that lies there in one piece, as what it stands for."""
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu" or not tensor.is_contiguous():
        return None
    return None if tensor.is_conj() or tensor.is_neg() else tensor.data_ptr()


def _bytes_at(place: int | None, tensor: torch.Tensor) -> bytes:
    """Not by way of numpy: a tensor that it has seen cannot be resized any more."""
    return b"" if not place else ctypes.string_at(place, tensor.nbytes)


class _Held:
    """What hundreds of containers hold: asked twice for every call, so it is compared without a loop of Python's."""

    def __init__(self, containers: Sequence[Any]) -> None:
        self._all, self._lengths = containers, list(map(len, containers))
        self._full = [one for one in containers if one]  # few: of the others the length tells
        self._dicts = [one for one in self._full if isinstance(one, dict)]
        self._items, self._values = list(self._items_now()), list(self._values_now())

    def _items_now(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._full)

    def _values_now(self) -> Iterator[Any]:
        # an ordered one's own way to its values is slow; their order is that of the keys
        return itertools.chain.from_iterable(map(dict.values, self._dicts))

    def is_unchanged(self) -> bool:
        """Whether nothing was put in, taken out or replaced."""
        return (
            list(map(len, self._all)) == self._lengths
            and all(map(operator.is_, self._items_now(), self._items))
            and all(map(operator.is_, self._values_now(), self._values))
        )


def _is_unchanged(container: Any, kept: Any) -> bool:
    """Whether nothing was put in, taken out or replaced; keys may be sizes of a trace, which have no hash."""
    if len(container) != len(kept):
        return False
    if not kept:  # as most are
        return True
    if not all(map(operator.is_, container, kept)):
        return False
    return not isinstance(container, dict) or all(map(operator.is_, container.values(), kept.values()))


def _other_keys(container: Any, kept: Any) -> list[Any]:
    """The keys or places at which two of a kind differ."""
    if isinstance(container, dict):
        return [key for key in {*container, *kept} if container.get(key, kept) is not kept.get(key, container)]
    if isinstance(container, set):
        return [None]
    pairs = itertools.zip_longest(container, kept)
    return [place for place, (value, other) in enumerate(pairs) if value is not other]


_CONTAINERS = (dict, list, set, collections.deque, collections.OrderedDict, collections.defaultdict)
"""Just these: a class of somebody else's may give other values than it was given."""


def _collect(value: Any, found: dict[int, Any], *, depth: int) -> None:
    """The containers below `value`, and the tensors in them that a forward may change, by identity."""
    if id(value) in found or depth > budgets.DEEPEST_STATE:
        return
    if isinstance(value, torch.Tensor):
        if not isinstance(value, nn.Parameter) and not value.is_inference() and value.layout is torch.strided:
            found[id(value)] = value
    elif type(value) in _CONTAINERS:
        found[id(value)] = value
        for inner in list(value.values()) if isinstance(value, dict) else list(value):
            _collect(inner, found, depth=depth + 1)
    elif isinstance(value, tuple) or _is_plain(value):
        for inner in value if isinstance(value, tuple) else [vars(value)]:
            _collect(inner, found, depth=depth + 1)


_NO_STATE = (type, nn.Module, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def _scripted_slots(part: nn.Module) -> list[tuple[nn.Module, str, Any]]:
    """The attributes of a part that TorchScript keeps outside of Python; lists come out as copies, and are left."""
    kept = (
        attribute(part, "torch.jit.ScriptModule._concrete_type") if isinstance(part, torch.jit.ScriptModule) else None
    )
    slots = ((part, name, getattr(part, name)) for name in (kept.get_attributes() if kept is not None else ()))
    return [slot for slot in slots if slot[2] is None or isinstance(slot[2], (torch.Tensor, bool, int, float, str))]


def _is_as_kept(value: Any, kept: Any) -> bool:
    """Tensors are told by what they are; numbers and texts come out of TorchScript as new ones each time."""
    return value is kept or (not isinstance(kept, torch.Tensor) and type(value) is type(kept) and value == kept)


def _is_plain(value: Any) -> bool:
    """An object of the user's own, such as a table that builds itself; submodules are visited by themselves."""
    holds = isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, _NO_STATE)
    return holds and not _is_foreign(type(value).__module__)


def _collect_kept(names: dict[str, Any], found: dict[int, Any]) -> None:
    """Containers that a class or a file keeps for all: a cache is no deeper than that."""
    for name, value in names.items():
        if type(value) in _CONTAINERS and not name.startswith("__"):
            found[id(value)] = value


def _replaceable(names: dict[str, Any]) -> dict[str, Any]:
    """Global names that a function may set anew: tensors, numbers, nothing yet."""
    return {
        name: value
        for name, value in names.items()
        if (value is None or isinstance(value, (torch.Tensor, int, float, tuple))) and not name.startswith("__")
    }


def _classes_of(module: nn.Module) -> set[type]:
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    return {kind for kind in kinds if not _is_foreign(kind.__module__)}


def _mentioned_names(module: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The globals of the files that the module's classes stand in, and of each those that the module's code mentions.

    The others are no state of the module: what a callback or another thread keeps in the same file stays theirs.
    """
    kinds = _classes_of(module)
    held = [value for part in module.modules() for value in vars(part).values() if isinstance(value, _FUNCTIONS)]
    names = {kind.__module__ for kind in kinds} | {str(getattr(one, "__module__", "")) for one in held}
    files = {name: vars(sys.modules[name]) for name in names if name in sys.modules and not _is_foreign(name)}
    found: dict[str, set[str]] = {name: set() for name in files}
    waiting, seen = [*kinds, *held], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or (isinstance(value, type) and value.__module__ not in files):
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType) and value.__module__ in files:
            kept, mentioned = files[value.__module__], _names_in(value.__code__)
            new = set(kept) if "globals" in mentioned else mentioned & kept.keys()
            waiting += [kept[name] for name in new - found[value.__module__]]
            found[value.__module__] |= new
        waiting += _parts_of(value)
    return [(files[name], {one: files[name][one] for one in sorted(found[name])}) for name in sorted(files)]


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


@functools.lru_cache(maxsize=10_000)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """The global names that a function reads or sets: `co_names` has those of attributes, too."""
    own = {str(one.argval) for one in dis.get_instructions(code) if one.opname.endswith("_GLOBAL")}
    return frozenset(own).union(*(_names_in(one) for one in code.co_consts if isinstance(one, types.CodeType)))


def _parts_of(value: Any) -> list[Any]:
    """The functions that a class, a decorated function or an object of the user's runs."""
    match value:
        case type():
            return [*vars(value).values()]
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
            return [*(one for one in cells if callable(one)), *vars(value).values()]
        case staticmethod() | classmethod() | types.MethodType():
            return [value.__func__]
        case functools.partial() | functools.cached_property():
            return [value.func]
        case property():
            return [value.fget, value.fset, value.fdel]
    return [inspect.getattr_static(value, "__wrapped__", None), type(value)]


def _is_foreign(name: str) -> bool:
    """Of torch, Python, numpy or anyshape, which keep nothing of a model's."""
    top = name.partition(".")[0]
    return top in ("torch", "numpy", "builtins", "anyshape") or top in sys.stdlib_module_names - {"__main__"}


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in eval mode; afterwards its parts are in the mode that each was in, and every random
    generator is as before. What else the calls inside change, each has to put back itself.
    """
    with LOCK, kept_generators(), plain_surroundings(module):
        training = [part for part in module.modules() if part.training]
        try:
            for part in training:
                part.training = False
            yield
        finally:
            for part in training:
                part.training = True


@contextlib.contextmanager
def plain_surroundings(module: nn.Module) -> Iterator[None]:
    """Inside, neither autocast nor another default device than the module's own changes what is computed."""
    tensors = itertools.chain(module.parameters(), module.buffers())
    own = next((one.device for one in tensors), _CPU)
    own = _CPU if own.type == "meta" else own
    with contextlib.ExitStack() as stack:
        for kind in autocast_kinds():
            stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device() != own:
            stack.enter_context(own)
        yield


def autocast_kinds() -> list[str]:
    """The kinds of devices for which autocast is on around this call."""
    kinds = ["cpu", *([found.type] if (found := torch.accelerator.current_accelerator()) is not None else [])]
    return [kind for kind in kinds if torch.is_autocast_enabled(kind)]


def notes_on_surroundings() -> list[str]:
    told = "autocast is on around this call, and is off in it: what the model itself casts is what counts"
    return [told] if autocast_kinds() else []


_CPU = torch.device("cpu")


@contextlib.contextmanager
def put_back(module: nn.Module) -> Iterator[None]:
    """Afterwards, the module's state is as before: for one call of it, and nobody else's code."""
    state = ModuleState(module)
    try:
        yield
    finally:
        state.restore()


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """For one call in eval mode: afterwards the module, its state and every random generator are as before."""
    with evaluating(module), put_back(module):
        yield


def seed_generators(seed: int) -> None:
    """Torch's generators, Python's and numpy's; torch formats a stack for each kind of device that is not there."""
    torch.default_generator.manual_seed(seed)
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def is_drawn_from(seed: int) -> bool:
    """Whether a generator was drawn from, or seeded otherwise, since all of them got this seed."""
    found = _marks_of_generators()
    if seed not in _FRESH:
        seed_generators(seed)
        _FRESH[seed] = _marks_of_generators()
    return found != _FRESH[seed]


_FRESH: dict[int, tuple[object, ...]] = {}
"""The marks of generators that were just seeded."""


def _marks_of_generators() -> tuple[object, ...]:
    """The states of torch's; of Python's and numpy's, which are slow to read, the numbers that they give next."""
    states = [torch.default_generator.get_state()]
    if torch.accelerator.is_available():
        states.append(torch.get_device_module().get_rng_state().cpu())
    return *(state.numpy().tobytes() for state in states), random.getrandbits(64), np.random.bytes(8)  # noqa: NPY002


@contextlib.contextmanager
def kept_generators() -> Iterator[None]:
    """Afterwards, all of them are where they were."""
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002  the user's code may draw from it
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(ours)
            np.random.set_state(theirs)  # noqa: NPY002


_COPIES: weakref.WeakValueDictionary[tuple[int, int], torch.Tensor] = weakref.WeakValueDictionary()
"""By identity and version; whoever holds a copy holds its original."""


def kept_copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What the tensors hold now, to be read only."""
    if sum(tensor.nbytes for tensor in tensors) < budgets.LARGE_STATE:
        return [tensor.detach().clone() for tensor in tensors]
    return [
        tensor.detach().clone() if tensor.nbytes < budgets.STATE_IN_FILE_FROM else _shared_copy(tensor)
        for tensor in tensors
    ]


def _shared_copy(tensor: torch.Tensor) -> torch.Tensor:
    key = (id(tensor), tensor._version)
    copy = _COPIES.get(key)
    if copy is None:
        copy = _COPIES[key] = _copy_in_file(tensor)
    return copy


def _copy_in_file(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in a file without a name, gone with the last who maps it; in memory where there is no room."""
    plain = tensor.detach()
    if plain.device.type != "cpu" or not plain.is_contiguous():
        return plain.clone()
    try:
        with temporary_folder() as folder:
            path = folder / "tensor"
            data = plain.reshape(-1).view(torch.uint8)
            data.numpy().tofile(path)
            mapped = torch.from_file(str(path), shared=True, size=data.numel(), dtype=torch.uint8)
    except (OSError, RuntimeError):  # a full disk, or a system that cannot map or remove such files
        return plain.clone()
    return mapped.view(plain.dtype).view(plain.shape)

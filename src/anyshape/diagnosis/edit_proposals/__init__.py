"""What could be written instead: changes to try for one cause, the most likely first. None is shown untried.

Here those of a single expression: an assertion dropped, a feature map pooled, a table cut to as much as is needed.
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

import torch

from anyshape.diagnosis.causes import Cause, function_name
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, SizeNames, names_in
from anyshape.diagnosis.edit_proposals.sizes_for_numbers import of_loops, of_sizes, of_wants
from anyshape.sizes import budgets
from anyshape.source.sites import Site, SourceReading, read
from anyshape.torchkit.recorder import Call

# ---- an assertion


def of_asserts(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """An assertion about a size, dropped."""
    del cause, known
    statement = reading.source.statement_of(reading.node)
    if isinstance(statement, ast.Assert):
        yield EditProposal(reading, (reading.source.change(statement, "pass"),), "drop the assertion", safe=False)


# ---- a pooling in front of a layer of fixed width


_POOLS = {3: "adaptive_avg_pool1d", 4: "adaptive_avg_pool2d", 5: "adaptive_avg_pool3d"}
_FLATTENING = ("view", "reshape", "flatten")


def of_pooling(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """The feature map is brought to the size that the layer was made for."""
    found = _call_that_flattens(cause, known)
    if found is None:
        return
    call, tensor = found
    there = reading if call.site is cause.site else _reading_of_call(call)
    if there is None or not isinstance(there.node, ast.Call) or tensor.dim() not in _POOLS:
        return
    sizes = [known.in_dims(size) for size in tensor.shape[2:]]
    function = _name_of_functional(there.site)
    subject = there.node.func.value if isinstance(there.node.func, ast.Attribute) else None
    if subject is not None and isinstance(there.value_of(subject), types.ModuleType):
        subject = there.node.args[0] if there.node.args else None
    if not all(sizes) or function is None or subject is None:
        return
    wanted = ", ".join(str(one.value(known.example)) for one in sizes if one is not None)
    wanted = f"({wanted})" if len(sizes) > 1 else wanted
    pooled = f"{function}.{_POOLS[tensor.dim()]}({there.text_of(subject)}, {wanted})"
    title = f"pool to the {wanted} that the layer was made for"
    yield EditProposal(there, (there.source.change(subject, pooled),), title, safe=False)


def _call_that_flattens(cause: Cause, known: Knowledge) -> tuple[Call, torch.Tensor] | None:
    """The call that flattened a feature map on the way here, and the map."""
    call = cause.call
    for _ in range(budgets.MOST_CALLS_FOR_A_POOLING):
        tensors = [value for value in call.args if isinstance(value, torch.Tensor)] if call is not None else []
        if call is None or not tensors:
            return None
        if function_name(call.function) in _FLATTENING and tensors[0].dim() in _POOLS:
            return call, tensors[0]
        call = known.maker_of(tensors[0])
    return None


def _reading_of_call(call: Call) -> SourceReading | None:
    return None if call.site is None else read(call.site)


def _name_of_functional(site: Site) -> str | None:
    for name, value in site.globals.items():
        if value is torch.nn.functional:
            return name
    for name, value in site.globals.items():
        if value is torch:
            return f"{name}.nn.functional"
        if value is torch.nn:
            return f"{name}.functional"
    return None


# ---- a table that the module holds


def of_slices(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """As much of the table as there are places; a table of samples is another matter."""
    if {name for want in cause.wants for name in want.expression.names} <= known.batches:
        return
    for node in ast.walk(reading.node):
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        table = reading.value_of(node)
        if isinstance(table, torch.Tensor) and known.name_of(table) == cause.name:
            scope = SizeNames(reading.site, known.in_dims, names_in(reading.node))
            for slices in _index_texts(cause, table, scope):
                change = reading.source.change(node, f"{reading.text_of(node)}[{slices}]")
                title = f"take as much of `{reading.text_of(node)}` as is needed"
                yield EditProposal(reading, (change,), title, safe=False)
            return


def _index_texts(cause: Cause, table: torch.Tensor, scope: SizeNames) -> Iterator[str]:
    ends = {table.dim() + want.axis: scope.texts(want.expression) for want in cause.wants}
    if not ends or not all(ends.values()):
        return
    for texts in itertools.islice(itertools.product(*ends.values()), 4):
        cut = dict(zip(ends, texts, strict=True))
        yield ", ".join(f":{cut[axis]}" if axis in cut else ":" for axis in range(max(cut) + 1))


# ---- all of them

_MOST, _FEW = 40, 8
_Maker = Callable[[Cause, SourceReading, Knowledge], Iterable[EditProposal]]
_MAKERS: Mapping[str, tuple[_Maker, ...]] = {
    "number": (of_wants, of_sizes, of_pooling),
    "table": (of_slices, of_pooling),
    "decision": (of_asserts,),
    "mean": (of_wants,),
    "loop": (of_loops,),
}
"""What to try for each kind of cause, in order."""


def proposals(cause: Cause, known: Knowledge, *, many: bool = True) -> list[EditProposal]:
    """What to try for a cause; empty where nothing is known or the code has no source.

    Few where the model may be healthy: a number that happens to be a multiple of a size is none of them.
    """
    reading = read(cause.site)
    if reading is None:
        return []
    makers = _MAKERS.get(cause.kind, ())
    made = itertools.chain.from_iterable(make(cause, reading, known) for make in makers)
    different: dict[object, EditProposal] = {}
    for proposal in itertools.islice(made, 4 * _MOST):
        different.setdefault((proposal.filename, frozenset(proposal.changes)), proposal)
    plain = [one for one in different.values() if many or not one.is_multiple]
    return plain[: _MOST if many else _FEW]

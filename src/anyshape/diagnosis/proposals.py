"""What could be written instead: changes to try for one cause, the most likely first. None is shown untried."""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape._torch.tracking import Call
from anyshape.declaration.notation import Expression
from anyshape.diagnosis.blame import TAKES_SIZES, Cause, Want, function_name, numbers_of
from anyshape.diagnosis.edits import Change
from anyshape.diagnosis.findings import Span
from anyshape.diagnosis.provenance import shown_path
from anyshape.diagnosis.reading import Reading, names_at, read, span_of_expression
from anyshape.diagnosis.scope import Nameable, Scope
from anyshape.diagnosis.sites import Site

_MOST, _FEW = 40, 8


@dataclass(frozen=True)
class Proposal:
    """Changes of one file that may free a dim."""

    reading: Reading
    changes: tuple[Change, ...]
    title: str
    safe: bool = True
    span: Span | None = None
    """Where the number was written, if not where it is used."""
    dims: tuple[str, ...] = ()
    """The dims that numbers were replaced by."""
    is_multiple: bool = False
    """Whether a number was replaced by a multiple of a size."""
    original: str = ""
    """The file's text that the changes are of, where it is not the one that was read."""

    @property
    def filename(self) -> str:
        return self.reading.source.filename

    @property
    def text(self) -> str:
        return self.original or self.reading.source.text

    def onto(self, standing: Iterable[Proposal]) -> Proposal:
        """The same for the text as it was before other proposals of the file were put in place."""
        before = [one for one in standing if one.filename == self.filename]
        if not before:
            return self
        changes = [change for one in before for change in one.changes]
        moved = (
            replace(
                one,
                column=_column_before(one.line, one.column, changes),
                end_column=_column_before(one.end_line, one.end_column, changes),
            )
            for one in self.changes
        )
        span = None if self.span is None else moved_back(self.span, before)
        return replace(self, original=before[0].text, changes=tuple(moved), span=span)


def _column_before(line: int, column: int, changes: Iterable[Change]) -> int:
    """A column without what changes on the same line have added in front of it."""
    for one in sorted(changes, key=lambda one: one.column):
        # left to right, so each is compared with where it stands once those before it are undone
        column -= len(one.new) - len(one.old) if one.line == line and one.column < column else 0
    return column


def moved_back(span: Span, standing: Iterable[Proposal]) -> Span:
    """A place of the changed text in the text as it was."""
    changes = [change for one in standing if shown_path(one.filename) == span.path for change in one.changes]
    end = None
    if span.end_column is not None:
        end = _column_before(span.end_line or span.line, span.end_column, changes)
    return replace(span, column=_column_before(span.line, span.column, changes), end_column=end)


@dataclass(frozen=True)
class Knowledge:
    """What proposals are made from."""

    in_dims: Callable[[Any], Expression | None]
    """A symbolic size as an expression in dims."""
    example: Mapping[str, int]
    name_of: Callable[[Any], str | None]
    """The name of a tensor that the module holds."""
    batches: frozenset[str]
    """Dims that are named like a batch."""
    maker_of: Callable[[torch.Tensor], Call | None]
    """The call that made a tensor."""


def proposals(cause: Cause, known: Knowledge, *, many: bool = True) -> list[Proposal]:
    """What to try for a cause; empty where nothing is known or the code has no source.

    Few where the model may be healthy: a number that happens to be a multiple of a size is none of them.
    """
    reading = read(cause.site)
    if reading is None:
        return []
    makers = _MAKERS.get(cause.kind, ())
    made = itertools.chain.from_iterable(make(cause, reading, known) for make in makers)
    different: dict[object, Proposal] = {}
    for proposal in itertools.islice(made, 4 * _MOST):
        different.setdefault((proposal.filename, frozenset(proposal.changes)), proposal)
    plain = [one for one in different.values() if many or not one.is_multiple]
    return plain[: _MOST if many else _FEW]


# ---- numbers


@dataclass(frozen=True, eq=False)
class Number:
    """A whole number of the source, where it was written."""

    reading: Reading
    node: ast.expr
    value: int
    scope: Scope


def _numbers(reading: Reading, known: Knowledge) -> list[list[Number]]:
    """The numbers of an expression where they were written, and once more where they are used, if that is elsewhere."""
    used = [(reading, node, value) for node, value in reading.numbers()]
    written = [one for there, node, value in used for one in _written(there, node, value)]
    written += [one for there, node in _named_tuples(reading) for one in _elements(there, node)]
    ways = [written, used] if any(there is not reading for there, _, _ in written) else [used]
    return [[_number(*one, known) for one in way] for way in ways]


def _number(reading: Reading, node: ast.expr, value: int, known: Knowledge) -> Number:
    return Number(reading, node, value, Scope(reading.site, known.in_dims, _names(reading.node)))


def _written(reading: Reading, node: ast.expr, value: int) -> Iterator[tuple[Reading, ast.expr, int]]:
    there, origin = _origin(reading, node)
    yield there, origin, value


def _named_tuples(reading: Reading) -> Iterator[tuple[Reading, ast.Tuple | ast.List]]:
    """`shape` of `x.view(shape)`, where it was written as a tuple of numbers."""
    for node in ast.walk(reading.node):
        function = reading.source.function_of(node)
        if isinstance(node, ast.Name) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assigned = reading.source.assignments_of(function, node.id)
            if len(assigned) == 1 and isinstance(assigned[0], (ast.Tuple, ast.List)):
                yield _at_assignment(reading, function, assigned[0]), assigned[0]


def _elements(reading: Reading, node: ast.Tuple | ast.List) -> Iterator[tuple[Reading, ast.expr, int]]:
    return ((reading, one, value) for one in node.elts if type(value := reading.value_of(one)) is int)


def _names(node: ast.AST) -> list[str]:
    """The names in an expression, as they are written from left to right."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return [one.id for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


def _receiver(node: ast.AST) -> str:
    """`x` of `x.view(2, 8)`, also through a chain."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _origin(reading: Reading, node: ast.expr) -> tuple[Reading, ast.expr]:
    """Where a number was written: at its place, where its name got it, or by whoever called the function."""
    function = reading.source.function_of(node)
    if not isinstance(node, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return reading, node
    assigned = reading.source.assignments_of(function, node.id)
    if len(assigned) == 1 and type(reading.value_of(assigned[0])) is int:
        return _origin(_at_assignment(reading, function, assigned[0]), assigned[0])
    given = _argument(reading.site, function, node.id) if not assigned else None
    return _origin(*given) if given is not None else (reading, node)


def _at_assignment(reading: Reading, function: ast.FunctionDef | ast.AsyncFunctionDef, value: ast.expr) -> Reading:
    """The names that stand above an assignment: parameters, even if they are given new values below, and what was
    assigned before.
    """
    parameters = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    names = {}
    for name, held in reading.site.names.items():
        lines = [one.lineno for one in reading.source.assignments_of(function, name)]
        if name in parameters or not lines or max(lines) < value.lineno:
            names[name] = held
    site = reading.site
    earlier = Site(site.code, site.instruction, value.lineno, names, site.globals, site.caller)
    return Reading(earlier, reading.source, value)


def _argument(
    site: Site, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> tuple[Reading, ast.expr] | None:
    """What a caller gave for a parameter."""
    if site.caller is None or (reading := read(site.caller)) is None or not isinstance(reading.node, ast.Call):
        return None
    for keyword in reading.node.keywords:
        if keyword.arg == name:
            return reading, keyword.value
    parameters = [one.arg for one in function.args.args]
    if name not in parameters:
        return None
    position = parameters.index(name) - (parameters[:1] == ["self"])
    given = reading.node.args[position : position + 1]
    return (reading, given[0]) if position >= 0 and given and not isinstance(given[0], ast.Starred) else None


def _of_wants(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """Every number that is wanted as an expression is replaced by it, in the order of the axes."""
    for numbers in _numbers(reading, known):
        wants = [want for want in cause.wants if any(number.value == want.size for number in numbers)]
        plans = itertools.chain(_square(wants, numbers), _assignments(wants, numbers))
        for chosen in plans:
            options = [number.scope.texts(want.expression) for want, number in chosen]
            for texts in itertools.islice(itertools.product(*options), 6):
                pairs = [(number, text) for (_, number), text in zip(chosen, texts, strict=True)]
                places = _beside(reading, pairs, known, _TAKES_PLACES)
                yield from _replaced(cause, [*pairs, *places])
                yield from _replaced(cause, [*pairs, *_beside(reading, pairs, known, TAKES_SIZES)])


def _square(wants: Sequence[Want], numbers: Sequence[Number]) -> Iterator[list[tuple[Want, Number]]]:
    """`ones(7, 7)`: where one size is wanted and its number stands there twice, both are meant more often than not."""
    alike = [number for number in numbers if wants and number.value == wants[0].size]
    if len({want.expression for want in wants}) == 1 and len(alike) > len(wants):
        yield [(wants[0], number) for number in alike]


_TAKES_PLACES = frozenset(("tril", "triu", "roll", "diagonal"))
"""Functions whose plain numbers are places on an axis."""


def _beside(
    reading: Reading, pairs: Sequence[tuple[Number, str]], known: Knowledge, functions: frozenset[str]
) -> list[tuple[Number, str]]:
    """Numbers in the rest of a chain that are sizes, too: `arange(28).view(4, 7)`, `ones(5, 12).tril(7)`."""
    if any(number.reading is not reading for number, _ in pairs):
        return []
    taken = {id(number.node) for number, _ in pairs}
    found = []
    for call in _calls_in_chain(reading, functions):
        for node, value in Reading(reading.site, reading.source, call).numbers():
            number = _number(reading, node, value, known)
            texts = _sizes_of(number, known, number.scope.all) if id(node) not in taken and value > 1 else []
            found += [(number, texts[0])] if texts and node in call.args else []
    return found


def _calls_in_chain(reading: Reading, functions: frozenset[str]) -> list[ast.Call]:
    calls = [node for node in ast.walk(_chain(reading)) if isinstance(node, ast.Call)]
    return [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in functions]


def _chain(reading: Reading) -> ast.AST:
    """The whole of `torch.ones(5, 12).tril(7)`, from any call in it."""
    node: ast.AST = reading.node
    while isinstance(parent := reading.source.parent_of(node), (ast.Attribute, ast.Call)):
        if isinstance(parent, ast.Call) and parent.func is not node:
            break
        node = parent
    return node


def _assignments(wants: Sequence[Want], numbers: Sequence[Number]) -> Iterator[list[tuple[Want, Number]]]:
    """Which number is which wanted size: in order first, every other way after."""
    if not wants:
        return
    for chosen in itertools.islice(itertools.permutations(numbers, len(wants)), 400):
        if all(number.value == want.size for want, number in zip(wants, chosen, strict=True)):
            yield list(zip(wants, chosen, strict=True))


def _of_sizes(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """Numbers that are sizes of the example, one by one, then several at once."""
    for numbers in _numbers(reading, known):
        options = [(number, text) for number in numbers for text in _texts_of(cause, number, known)]
        for count in (1, 2, 3):
            for chosen in itertools.combinations(options, count):
                if len({id(number.node) for number, _ in chosen}) == count:
                    yield from _replaced(cause, chosen)


def _texts_of(cause: Cause, number: Number, known: Knowledge) -> list[str]:
    """What a number may have meant; sizes of dims that are not in question stay what they are."""
    free = [one for one in number.scope.all if set(one.expression.names) & set(cause.dims)]
    return _sizes_of(number, known, free, infer=_may_be_inferred(cause))


def _sizes_of(number: Number, known: Knowledge, free: Sequence[Nameable], *, infer: bool = False) -> list[str]:
    """A size, the product of two, a multiple of one, as far as the example tells."""
    size = number.value
    values = [(one, one.expression.value(known.example)) for one in free]
    single = [one.text for one, value in values if value == size]
    products = [
        f"{a.text} * {b.text}"
        for (a, x), (b, y) in itertools.combinations(values, 2)
        if x * y == size and a.expression != b.expression and 1 not in (x, y)
    ]
    whole = ["-1"] if products and infer else []
    multiples = [f"{size // value} * {one.text}" for one, value in values if 1 < value < size and size % value == 0]
    return list(dict.fromkeys((*single, *whole, *products[:2], *(multiples[:3] if infer else ()))))[:6]


def _may_be_inferred(cause: Cause) -> bool:
    """Whether -1 may stand for a product."""
    call = cause.call
    return call is not None and function_name(call.function) in ("view", "reshape") and -1 not in numbers_of(call)


def _replaced(cause: Cause, chosen: Iterable[tuple[Number, str]]) -> Iterator[Proposal]:
    """Texts in place of numbers, in a call that makes a tensor also its device and type from the tensor at hand."""
    pairs = list(chosen)
    first = pairs[0][0].reading
    if any(number.reading.source is not first.source for number, _ in pairs):
        return
    changes = [first.source.change(number.node, _in_parentheses(text, number)) for number, text in pairs]
    owners = list(dict.fromkeys(name for _, text in pairs for name in _names(ast.parse(text, mode="eval"))))
    title = f"take the size{'s' if len(pairs) > 1 else ''} from {_listed(owners)}" if owners else "let torch infer it"
    maker = _made_by(cause, first, owners)
    span = None if first.site is cause.site and cause.kind != "loop" else span_of_expression(first)
    dims = tuple(dict.fromkeys(name for number, text in pairs for name in number.scope.dims_in(text)))
    whole = tuple(changes) if maker is None else (maker, *changes)
    is_multiple = any(text[0].isdigit() for _, text in pairs)
    yield Proposal(first, whole, title, span=span, dims=dims, is_multiple=is_multiple)


def _in_parentheses(text: str, number: Number) -> str:
    parent = number.reading.source.parent_of(number.node)
    loose = " " in text and isinstance(parent, (ast.BinOp, ast.UnaryOp))
    return f"({text})" if loose else text


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


_MADE_BY_TENSORS = {"zeros": "new_zeros", "ones": "new_ones", "empty": "new_empty", "full": "new_full"}


def _made_by(cause: Cause, reading: Reading, owners: Sequence[str]) -> Change | None:
    """`torch.zeros(...)` as `x.new_zeros(...)`, where that has the same type."""
    node = reading.node
    call = cause.call
    if call is None or reading.site is not cause.site or not isinstance(node, ast.Call) or node.keywords or not owners:
        return None
    name = function_name(call.function)
    owner = names_at(reading.site).get(owners[0])
    if name not in _MADE_BY_TENSORS or not isinstance(owner, torch.Tensor) or not call.results:
        return None
    if not isinstance(node.func, ast.Attribute) or owner.dtype != call.results[0].dtype:
        return None
    return reading.source.change(node.func, f"{owners[0]}.{_MADE_BY_TENSORS[name]}")


# ---- tables that the module holds


def _of_slices(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """As much of the table as there are places; a table of samples is another matter."""
    if {name for want in cause.wants for name in want.expression.names} <= known.batches:
        return
    for node in ast.walk(reading.node):
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        table = reading.value_of(node)
        if isinstance(table, torch.Tensor) and known.name_of(table) == cause.name:
            scope = Scope(reading.site, known.in_dims, _names(reading.node))
            for slices in _slices(cause, table, scope):
                change = reading.source.change(node, f"{reading.text_of(node)}[{slices}]")
                yield Proposal(
                    reading, (change,), f"take as much of `{reading.text_of(node)}` as is needed", safe=False
                )
            return


def _slices(cause: Cause, table: torch.Tensor, scope: Scope) -> Iterator[str]:
    ends = {table.dim() + want.axis: scope.texts(want.expression) for want in cause.wants}
    if not ends or not all(ends.values()):
        return
    for texts in itertools.islice(itertools.product(*ends.values()), 4):
        cut = dict(zip(ends, texts, strict=True))
        yield ", ".join(f":{cut[axis]}" if axis in cut else ":" for axis in range(max(cut) + 1))


# ---- a pooling in front of a layer of fixed width


_POOLS = {3: "adaptive_avg_pool1d", 4: "adaptive_avg_pool2d", 5: "adaptive_avg_pool3d"}
_FLATTENING = ("view", "reshape", "flatten")


def _of_pooling(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """The feature map is brought to the size that the layer was made for."""
    found = _flattening(cause, known)
    if found is None:
        return
    call, tensor = found
    there = reading if call.site is cause.site else _read(call)
    if there is None or not isinstance(there.node, ast.Call) or tensor.dim() not in _POOLS:
        return
    sizes = [known.in_dims(size) for size in tensor.shape[2:]]
    function = _functional(there.site)
    subject = there.node.func.value if isinstance(there.node.func, ast.Attribute) else None
    if _is_module(there, subject):
        subject = there.node.args[0] if there.node.args else None
    if not all(sizes) or function is None or subject is None:
        return
    wanted = ", ".join(str(one.value(known.example)) for one in sizes if one is not None)
    wanted = f"({wanted})" if len(sizes) > 1 else wanted
    pooled = f"{function}.{_POOLS[tensor.dim()]}({there.text_of(subject)}, {wanted})"
    title = f"pool to the {wanted} that the layer was made for"
    yield Proposal(there, (there.source.change(subject, pooled),), title, safe=False)


def _flattening(cause: Cause, known: Knowledge) -> tuple[Call, torch.Tensor] | None:
    """The call that flattened a feature map on the way here, and the map."""
    call = cause.call
    for _ in range(6):
        tensors = [value for value in call.args if isinstance(value, torch.Tensor)] if call is not None else []
        if call is None or not tensors:
            return None
        if function_name(call.function) in _FLATTENING and tensors[0].dim() in _POOLS:
            return call, tensors[0]
        call = known.maker_of(tensors[0])
    return None


def _read(call: Call) -> Reading | None:
    return None if call.site is None else read(call.site)


def _is_module(reading: Reading, node: ast.AST | None) -> bool:
    return node is not None and isinstance(reading.value_of(node), types.ModuleType)


def _functional(site: Site) -> str | None:
    for name, value in site.globals.items():
        if value is torch.nn.functional:
            return name
    for name, value in site.globals.items():
        if value is torch:
            return f"{name}.nn.functional"
        if value is torch.nn:
            return f"{name}.functional"
    return None


# ---- loops


def _of_loops(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """The `range(3)` that the index comes from."""
    counting = _counting(reading)
    if counting is not None:
        yield from _of_wants(cause, Reading(reading.site, reading.source, counting), known)


def _counting(reading: Reading) -> ast.Call | None:
    used = {node.id for node in ast.walk(reading.node) if isinstance(node, ast.Name)}
    node: ast.AST | None = reading.node
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        for loop in loops:
            names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
            if names & used and isinstance(loop.iter, ast.Call) and _receiver(loop.iter) == "range":
                return loop.iter
        node = reading.source.parent_of(node)
    return None


# ---- asserts


def _of_asserts(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    del cause, known
    statement = reading.source.statement_of(reading.node)
    if isinstance(statement, ast.Assert):
        yield Proposal(reading, (reading.source.change(statement, "pass"),), "drop the assertion", safe=False)


_Maker = Callable[[Cause, Reading, Knowledge], Iterable[Proposal]]
_MAKERS: Mapping[str, tuple[_Maker, ...]] = {
    "number": (_of_wants, _of_sizes, _of_pooling),
    "table": (_of_slices, _of_pooling),
    "decision": (_of_asserts,),
    "mean": (_of_wants,),
    "loop": (_of_loops,),
}

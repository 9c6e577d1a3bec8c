"""Numbers replaced by sizes: by the one that is wanted in their place, or that has their value in the example.

A number is replaced where it was written: in the expression itself, where a name got it, or by the caller.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from anyshape.diagnosis.causes import TAKES_SIZES, Cause, Want, function_name, numbers_of
from anyshape.diagnosis.edit_proposals.change import EditProposal, Knowledge, Nameable, SizeNames, names_in
from anyshape.diagnosis.wording import with_and
from anyshape.source.edits import Change
from anyshape.source.sites import Site, SourceReading, names_at, read, span_of_expression

# ---- the numbers of an expression


_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Number:
    """A whole number of the source, where it was written."""

    reading: SourceReading
    node: ast.expr
    value: int
    scope: SizeNames


def numbers_in(reading: SourceReading, known: Knowledge) -> list[list[Number]]:
    """The numbers of an expression where they were written, and once more where they are used, if that is elsewhere."""
    used = [(reading, node, value) for node, value in reading.numbers()]
    written = [(*_origin(there, node), value) for there, node, value in used]
    written += _in_named_tuples(reading)
    ways = [written, used] if any(there is not reading for there, _, _ in written) else [used]
    return [[number_at(*one, known) for one in way] for way in ways]


def number_at(reading: SourceReading, node: ast.expr, value: int, known: Knowledge) -> Number:
    return Number(reading, node, value, SizeNames(reading.site, known.in_dims, names_in(reading.node)))


def _in_named_tuples(reading: SourceReading) -> Iterator[tuple[SourceReading, ast.expr, int]]:
    """The numbers of `shape` in `x.view(shape)`, where it was written as a tuple."""
    for node in ast.walk(reading.node):
        function = reading.source.function_of(node)
        if isinstance(node, ast.Name) and isinstance(function, _Function):
            assigned = reading.source.assignments_of(function, node.id)
            if len(assigned) == 1 and isinstance(assigned[0], (ast.Tuple, ast.List)):
                there = _at_assignment(reading, function, assigned[0])
                entries = ((one, there.value_of(one)) for one in assigned[0].elts)
                yield from ((there, one, value) for one, value in entries if type(value) is int)


def _origin(reading: SourceReading, node: ast.expr) -> tuple[SourceReading, ast.expr]:
    """Where a number was written: at its place, where its name got it, or by whoever called the function."""
    function = reading.source.function_of(node)
    if not isinstance(node, ast.Name) or not isinstance(function, _Function):
        return reading, node
    assigned = reading.source.assignments_of(function, node.id)
    if len(assigned) == 1 and type(reading.value_of(assigned[0])) is int:
        return _origin(_at_assignment(reading, function, assigned[0]), assigned[0])
    given = _argument_given_for(reading.site, function, node.id) if not assigned else None
    return _origin(*given) if given is not None else (reading, node)


def _at_assignment(reading: SourceReading, function: _Function, value: ast.expr) -> SourceReading:
    """The names that stand above an assignment: parameters, even if they are given new values below, and what was
    assigned before.
    """
    parameters = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    names = {}
    for name, held in reading.site.names.items():
        lines = [one.lineno for one in reading.source.assignments_of(function, name)]
        if name in parameters or not lines or max(lines) < value.lineno:
            names[name] = held
    return SourceReading(replace(reading.site, line=value.lineno, names=names), reading.source, value)


def _argument_given_for(site: Site, function: _Function, name: str) -> tuple[SourceReading, ast.expr] | None:
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


# ---- numbers in whose place a size is wanted


def of_wants(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """Every number that is wanted as an expression is replaced by it, in the order of the axes."""
    for numbers in numbers_in(reading, known):
        wants = [want for want in cause.wants if any(number.value == want.size for number in numbers)]
        plans = itertools.chain(_all_alike(wants, numbers), _assignments(wants, numbers))
        for chosen in plans:
            options = [number.scope.texts(want.expression) for want, number in chosen]
            for texts in itertools.islice(itertools.product(*options), 6):
                pairs = [(number, text) for (_, number), text in zip(chosen, texts, strict=True)]
                places = _sizes_in_the_chain(reading, pairs, known, _TAKES_PLACES)
                yield from _proposal_with(cause, [*pairs, *places])
                yield from _proposal_with(cause, [*pairs, *_sizes_in_the_chain(reading, pairs, known, TAKES_SIZES)])


def _all_alike(wants: Sequence[Want], numbers: Sequence[Number]) -> Iterator[list[tuple[Want, Number]]]:
    """`ones(7, 7)`: where one size is wanted and its number stands there twice, both are meant more often than not."""
    alike = [number for number in numbers if wants and number.value == wants[0].size]
    if len({want.expression for want in wants}) == 1 and len(alike) > len(wants):
        yield [(wants[0], number) for number in alike]


_TAKES_PLACES = frozenset(("tril", "triu", "roll", "diagonal"))
"""Functions whose plain numbers are places on an axis."""


def _sizes_in_the_chain(
    reading: SourceReading, pairs: Sequence[tuple[Number, str]], known: Knowledge, functions: frozenset[str]
) -> list[tuple[Number, str]]:
    """Numbers in the rest of a chain that are sizes, too: `arange(28).view(4, 7)`, `ones(5, 12).tril(7)`."""
    if any(number.reading is not reading for number, _ in pairs):
        return []
    taken = {id(number.node) for number, _ in pairs}
    found = []
    for call in _calls_in_chain(reading, functions):
        for node, value in SourceReading(reading.site, reading.source, call).numbers():
            number = number_at(reading, node, value, known)
            texts = _texts_with_value(number, known, number.scope.all) if id(node) not in taken and value > 1 else []
            found += [(number, texts[0])] if texts and node in call.args else []
    return found


def _calls_in_chain(reading: SourceReading, functions: frozenset[str]) -> list[ast.Call]:
    calls = [node for node in ast.walk(_chain(reading)) if isinstance(node, ast.Call)]
    return [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in functions]


def _chain(reading: SourceReading) -> ast.AST:
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


# ---- numbers that have a size's value in the example


def of_sizes(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """Numbers that are sizes of the example, one by one, then several at once."""
    for numbers in numbers_in(reading, known):
        options = [(number, text) for number in numbers for text in _texts_for(cause, number, known)]
        for count in (1, 2, 3):
            for chosen in itertools.combinations(options, count):
                if len({id(number.node) for number, _ in chosen}) == count:
                    yield from _proposal_with(cause, chosen)


def _texts_for(cause: Cause, number: Number, known: Knowledge) -> list[str]:
    """What a number may have meant; sizes of dims that are not in question stay what they are."""
    free = [one for one in number.scope.all if set(one.expression.names) & set(cause.dims)]
    return _texts_with_value(number, known, free, infer=_may_be_inferred(cause))


def _texts_with_value(number: Number, known: Knowledge, free: Sequence[Nameable], *, infer: bool = False) -> list[str]:
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


# ---- the changes


def _proposal_with(cause: Cause, chosen: Iterable[tuple[Number, str]]) -> Iterator[EditProposal]:
    """Texts in place of numbers, in a call that makes a tensor also its device and type from the tensor at hand."""
    pairs = list(chosen)
    first = pairs[0][0].reading
    if any(number.reading.source is not first.source for number, _ in pairs):
        return
    changes = [first.source.change(number.node, _in_parentheses(text, number)) for number, text in pairs]
    owners = list(dict.fromkeys(name for _, text in pairs for name in names_in(ast.parse(text, mode="eval"))))
    title = f"take the size{'s' if len(pairs) > 1 else ''} from {with_and(owners)}" if owners else "let torch infer it"
    maker = _maker_of_same_type(cause, first, owners)
    span = None if first.site is cause.site and cause.kind != "loop" else span_of_expression(first)
    dims = tuple(dict.fromkeys(name for number, text in pairs for name in number.scope.dims_in(text)))
    whole = tuple(changes) if maker is None else (maker, *changes)
    is_multiple = any(text[0].isdigit() for _, text in pairs)
    yield EditProposal(first, whole, title, span=span, dims=dims, is_multiple=is_multiple)


def _in_parentheses(text: str, number: Number) -> str:
    parent = number.reading.source.parent_of(number.node)
    loose = " " in text and isinstance(parent, (ast.BinOp, ast.UnaryOp))
    return f"({text})" if loose else text


_MADE_BY_TENSORS = {"zeros": "new_zeros", "ones": "new_ones", "empty": "new_empty", "full": "new_full"}


def _maker_of_same_type(cause: Cause, reading: SourceReading, owners: Sequence[str]) -> Change | None:
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


# ---- a loop that counts to a number


def of_loops(cause: Cause, reading: SourceReading, known: Knowledge) -> Iterator[EditProposal]:
    """The `range(3)` that the index comes from."""
    counting = _counting_range(reading)
    if counting is not None:
        yield from of_wants(cause, SourceReading(reading.site, reading.source, counting), known)


def _counting_range(reading: SourceReading) -> ast.Call | None:
    used = {node.id for node in ast.walk(reading.node) if isinstance(node, ast.Name)}
    node: ast.AST | None = reading.node
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        for loop in loops:
            names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
            match loop.iter:
                case ast.Call(func=ast.Name(id="range")) as call if names & used:
                    return call
        node = reading.source.parent_of(node)
    return None

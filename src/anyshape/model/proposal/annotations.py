"""What jaxtyping annotations on `forward` say about a call: `Float[Tensor, "batch seq 64"]`, read and checked.

jaxtyping is not imported: an annotation is whatever has a text `dim_str`. A name is a dim, a number is static, an
expression must come out right; what stands for any number of axes, and what is anonymous, is left to probing.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyshape.declaration.calls import Leaf, Signature
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.probe import Place
from anyshape.sizes.notation import Expression, parse_expression


@dataclass(frozen=True)
class Annotations:
    """The axes that are annotated with a name, and those with a number."""

    names: Mapping[Place, str] = field(default_factory=dict)
    static: frozenset[Place] = frozenset()


def read_annotations(target: Target, signature: Signature) -> Annotations:
    """The annotations of the target's parameters, checked against the example."""
    texts = _annotation_texts(target)
    names: dict[Place, str] = {}
    static: set[Place] = set()
    expressions: list[tuple[Place, Expression]] = []
    for leaf in signature.leaves:
        if not leaf.is_tensor or leaf.name not in texts:
            continue
        for axis, token in _axis_tokens(leaf, texts[leaf.name]):
            if token.isdecimal():
                _check_number(leaf, axis, int(token), texts[leaf.name])
                static.add((leaf.name, axis))
            elif token.isidentifier():
                names[leaf.name, axis] = token
            elif (expression := _expression_of(token)) is not None:
                expressions.append(((leaf.name, axis), expression))
    _check_sizes(names, expressions, signature, texts)
    return Annotations(names, frozenset(static))


# ---- where they stand


def _annotation_texts(target: Target) -> dict[str, str]:
    """Parameter -> the text of its annotation."""
    function = target.source if callable(target.source) else target.call
    try:
        signature = inspect.signature(function, eval_str=True)
    except Exception:  # noqa: BLE001  names that exist for a type checker alone
        signature = target.signature
    found = {name: _annotation_text(parameter.annotation) for name, parameter in signature.parameters.items()}
    return {name: text for name, text in found.items() if text is not None}


def _annotation_text(annotation: Any) -> str | None:
    """Of the annotation itself, or of the one in `... | None`."""
    for kind in (annotation, *typing.get_args(annotation)):
        if isinstance(text := getattr(kind, "dim_str", None), str):
            return text
    return None


# ---- what they say


def _axis_tokens(leaf: Leaf, text: str) -> Iterator[tuple[int, str]]:
    """Axis and token for every axis that is spoken of by itself."""
    tokens = text.split()
    rank = leaf.value.dim()
    many = [number for number, token in enumerate(tokens) if "..." in token or token.lstrip("#?").startswith("*")]
    if len(tokens) - len(many) > rank or (not many and len(tokens) != rank):
        raise DeclarationError(f"`{leaf.name}` is annotated `{text}`, but has {rank} axes in the example")
    behind = rank - len(tokens)
    for number, token in enumerate(tokens):
        if number in many:
            continue
        axis = number if not many or number < many[0] else number + behind
        word = token.rpartition("=")[2]  # `channels=3` is 3, the name in front is for the reader
        if word.startswith("#") and leaf.value.shape[axis] == 1:
            continue  # broadcast, in the example at least
        word = word.lstrip("#?")
        if not word.startswith("_"):
            yield axis, word


def _expression_of(token: str) -> Expression | None:
    try:
        return parse_expression(token)
    except DeclarationError:
        return None  # `{self.width}` and other things that only jaxtyping evaluates


# ---- against the example


def _check_number(leaf: Leaf, axis: int, number: int, text: str) -> None:
    if (size := leaf.value.shape[axis]) != number:
        raise DeclarationError(
            f"`{leaf.name}` is annotated `{text}`, but its axis {axis} is {size} in the example, not {number}"
        )


def _check_sizes(
    names: Mapping[Place, str],
    expressions: list[tuple[Place, Expression]],
    signature: Signature,
    texts: Mapping[str, str],
) -> None:
    values = signature.values
    known: dict[str, tuple[int, str]] = {}
    for (leaf, axis), name in names.items():
        size = values[leaf].shape[axis]
        before, other = known.setdefault(name, (size, leaf))
        if before != size:
            where = "on another axis" if other == leaf else f"in `{other}`"
            said = f"`{leaf}` is annotated `{texts[leaf]}`"
            raise DeclarationError(f"{said}, but its `{name}` is {size} in the example, and {before} {where}")
    for (leaf, axis), expression in expressions:
        if not set(expression.names) <= known.keys():
            continue
        size, expected = values[leaf].shape[axis], expression.value({name: size for name, (size, _) in known.items()})
        if size != expected:
            said = f"`{leaf}` is annotated `{texts[leaf]}`"
            raise DeclarationError(f"{said}, but its `{expression}` is {size} in the example, not {expected}")


# ---- what becomes of them


def with_annotated(
    moves: Sequence[Collection[Place]], names: Sequence[str], annotated: Mapping[Place, str]
) -> list[str]:
    """The names of the moves, where an annotation gives one by that; others make way."""
    given = [next((annotated[place] for place in places if place in annotated), None) for places in moves]
    taken: set[str] = set()
    result = []
    for own, name in zip(given, names, strict=True):
        chosen = own if own is not None and own not in taken else name
        while chosen in taken or (chosen in given and chosen != own):
            chosen = f"{chosen}_"
        taken.add(chosen)
        result.append(chosen)
    return result


def notes_of_annotations(moves: Sequence[Collection[Place]], annotated: Mapping[Place, str]) -> Iterator[str]:
    """Names that are on no dim, and dims that have several."""
    moving = {place for places in moves for place in places}
    for (leaf, axis), name in annotated.items():
        if (leaf, axis) not in moving:
            said = f"axis {axis} of `{leaf}` is annotated `{name}`"
            yield f"{said}, but the model runs at no other size there: it stays static"
    for places in moves:
        names = list(dict.fromkeys(annotated[place] for place in places if place in annotated))
        if len(names) > 1:
            apart = " and ".join(f"`{name}`" for name in names)
            yield f"{apart} are annotated as two dims, but the model moves them only together: `{names[0]}` is both"

"""What a size means, and its name: `batch`, `seq`, `height`, `nodes`, `past`, by the names of inputs and their ranks.

Each place of a dim votes for what it means, by the words in its leaf's name and by the rank of its tensor; the most
telling vote wins. A meaning then gets the word that its ecosystem has for it: as optimum names it for transformers
models, a short and usual one elsewhere.
"""

from __future__ import annotations

import collections
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from anyshape.declaration.calls import Leaf, Signature
from anyshape.declaration.spec import unnamed
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.probe import Place
from anyshape.sizes.notation import FUNCTIONS, Expression, parse_expression

SURE, LIKELY, USUAL, UNKNOWN = 3, 2, 1, 0


@dataclass(frozen=True)
class Meaning:
    """A word for a size, and how telling the place is that it was read from."""

    word: str
    weight: int


@dataclass(frozen=True)
class Scene:
    """The call as a whole: its tensors, what moves in it, and whether it is a graph."""

    values: Mapping[str, Any]
    moving: frozenset[Place]
    is_graph: bool
    time_first: frozenset[str]
    """Tensors whose axis 1 is the batch: it moves with that of a recurrent state, or with axis 0 of another."""

    @classmethod
    def of(cls, signature: Signature, groups: Iterable[frozenset[Place]], module: nn.Module | None = None) -> Scene:
        groups = list(groups)
        values = signature.values
        is_graph = any(_is_of_a_graph(leaf, value) for leaf, value in values.items())
        moving = frozenset(place for group in groups for place in group)
        time_first = {leaf for group in groups for leaf in _time_first(group, values, moving)}
        if getattr(module, "batch_first", True) is False:  # one of torch's own, called as it stands
            time_first |= {leaf for leaf, value in values.items() if _rank(value) == 3}
        return cls(values, moving, is_graph, frozenset(time_first))


def _is_of_a_graph(leaf: str, value: Any) -> bool:
    is_links = isinstance(value, torch.Tensor) and not value.is_floating_point() and value.dim() == 2
    words = set(words_of(leaf))
    return bool(words & {"adj", "adjacency", "nodes"}) or (is_links and bool(words & {"edge", "edges", "links"}))


_STATES = re.compile(r"^(h|c)[0x]?(\.|$)|hidden|state|memory")


def _time_first(group: frozenset[Place], values: Mapping[str, Any], moving: frozenset[Place]) -> list[str]:
    """A batch on axis 1 of one tensor and on axis 0 of another, such as its lengths."""
    seconds = [leaf for leaf, axis in group if axis == 1 and values[leaf].dim() == 3]
    firsts = [leaf for leaf, axis in group if axis == 0 and (leaf, 1) not in group and leaf not in seconds]
    is_state = any(_STATES.search(leaf) and (leaf, 0) not in moving for leaf in seconds) and len(seconds) > 1
    return [leaf for leaf in seconds if firsts or is_state]


def words_of(leaf: str) -> list[str]:
    """`userIds.past_k0` -> user, ids, past, k."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", leaf)
    return [word for word in re.split(r"[^a-zA-Z]+", spaced.lower()) if word]


def image_like(leaf: str, value: Any) -> bool:
    return bool(re.search(r"pixel|image|img|photo|picture", leaf)) or (_rank(value) == 4 and value.is_floating_point())


def text_like(leaf: str, value: Any) -> bool:
    return bool(re.search(r"ids$|tokens?$|attention_mask|text", leaf)) and _rank(value) in (1, 2)


_ATTENTION = frozenset(("q", "k", "v", "query", "key", "value", "queries", "keys", "values"))


def attention_like(leaf: str) -> bool:
    """Queries, keys and values; `pixel_values` and `past_values` are values of another kind."""
    words = set(words_of(leaf))
    return bool(words & _ATTENTION) and not words & {"pixel", "input", "past", "future"}


def cache_like(leaf: str) -> bool:
    return _has_word(leaf, "past", "cache", "cached", "earlier", "mems")


def _rank(value: Any) -> int:
    return value.dim() if isinstance(value, torch.Tensor) else -1


# ---- the rules: by name first, then by rank


_Rule = Callable[[str, int, Any, Scene], Meaning | None]


def meaning_of(place: Place, scene: Scene) -> Meaning:
    """What the size at this place means."""
    leaf, axis = place
    if axis is None:
        return Meaning(words_of(leaf)[-1] if words_of(leaf) else leaf, UNKNOWN)
    value = scene.values[leaf]
    found = (meaning for rule in _RULES if (meaning := rule(leaf, axis, value, scene)) is not None)
    return next(found, Meaning(unnamed(leaf, axis), UNKNOWN))


def _has_word(leaf: str, *words: str) -> bool:
    return not set(words).isdisjoint(words_of(leaf))


def _cache(leaf: str, axis: int, value: Any, _scene: Scene) -> Meaning | None:
    if not cache_like(leaf) or value.dim() < 3:
        return None
    if axis == value.dim() - 2 and axis > 0:
        return Meaning("source" if _has_word(leaf, "cross", "encoder") else "past", SURE)
    return Meaning("batch", LIKELY) if axis == 0 else None


_NODES = ("x", "node", "nodes")


def _graph(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    if not scene.is_graph:
        return None
    if re.search(r"edge_?index|edges$|links", leaf) and value.dim() == 2:
        along = 1 if value.shape[0] == 2 or (leaf, 0) not in scene.moving else 0
        return Meaning("edges", SURE) if axis == along else None
    if _has_word(leaf, "edge", "edges", "senders", "receivers") and axis == 0:
        return Meaning("edges", SURE)
    if _has_word(leaf, "adj", "adjacency"):
        return Meaning("nodes", SURE) if axis >= value.dim() - 2 else None
    if axis or not _has_word(leaf, *_NODES, "pos", "z", "h", "batch", "feat", "feats", "features", "owner"):
        return None
    return Meaning("nodes", SURE if _has_word(leaf, *_NODES) else LIKELY)


def _picture(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    """Pictures, volumes and videos with the channels before the sides, or behind them."""
    rank = value.dim()
    named = bool(re.search(r"pixel|image|img|photo|picture|frame", leaf))
    if rank == 3 and _has_word(leaf, "pixel") and axis:
        return Meaning(("height", "width")[axis - 1], LIKELY)
    if rank not in (4, 5) or not (value.is_floating_point() or named) or axis == 0:
        return None
    sides = _sides(leaf, rank, scene)
    if axis not in sides:
        return Meaning("channels", USUAL) if axis == 1 and sides else None
    word = ("depth", "height", "width")[-len(sides) :][sides.index(axis)]
    if rank == 5 and _has_word(leaf, "video", "clip", "clips", "frames", "pixel"):
        word = ("frames", "height", "width")[sides.index(axis)]
    return Meaning(word, LIKELY)


def _sides(leaf: str, rank: int, scene: Scene) -> list[int]:
    """The axes of the sides: those behind the channels, unless the last one stands and the one before moves."""
    behind = list(range(2, rank))
    moves = [axis for axis in range(1, rank) if (leaf, axis) in scene.moving]
    if rank == 4 and moves in ([1], [2]):
        return []  # [batch, windows, ...] or [batch, heads, time, channels]
    return list(range(1, rank - 1)) if rank - 1 not in moves and 1 in moves else behind


def _sound(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    last = value.dim() - 1
    if re.search(r"wave|audio|speech|signal|input_values|samples", leaf) and value.is_floating_point():
        return Meaning("samples", SURE) if axis == last and axis else None
    if re.search(r"mel|spec|input_features|frames|feats", leaf) and value.dim() == 3:
        is_time = axis == _sequence_axis(leaf, scene) or (axis == 2 and (leaf, 1) not in scene.moving)
        return Meaning("frames", SURE) if is_time else None
    return None


_COUNTED = {
    "boxes": ("boxes", "rois", "bboxes", "proposals", "anchors"),
    "points": ("points", "cloud", "coords", "xyz", "pcd", "landmarks"),
    "queries": ("queries",),
    "atoms": ("atoms",),
    "objects": ("objects", "slots"),
    "bags": ("offsets",),
}


def _counted_things(leaf: str, axis: int, value: Any, _scene: Scene) -> Meaning | None:
    """So many of a thing, each a row of a few numbers."""
    for word, words in _COUNTED.items():
        if not _has_word(leaf, *words):
            continue
        if word == "points" and value.dim() == 4:  # as SAM is prompted: [batch, prompts, points, 2]
            return (None, Meaning("prompts", SURE), Meaning("points", SURE), None)[axis]
        if axis == max(value.dim() - 2, 0):
            return Meaning(word, SURE)
    return None


def _two_sides(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    """The sequence of an encoder, and that of a decoder."""
    if axis != _sequence_axis(leaf, scene) or value.dim() > 3:
        return None
    if _has_word(leaf, "decoder", "tgt", "target", "targets", "dec"):
        return Meaning("target", SURE)
    if _has_word(leaf, "encoder", "src", "source", "memory", "enc"):
        return Meaning("source", SURE)
    return None


def _sequence_axis(leaf: str, scene: Scene) -> int:
    return 0 if leaf in scene.time_first else 1


def _batch(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    if leaf in scene.time_first:
        return Meaning("batch", SURE) if axis == 1 else None
    if axis == 1 and value.dim() == 3 and (leaf, 0) not in scene.moving and _STATES.search(leaf):
        return Meaning("batch", LIKELY)
    return Meaning("batch", USUAL) if axis == 0 else None


def _sequence(leaf: str, axis: int, value: Any, scene: Scene) -> Meaning | None:
    if axis == _sequence_axis(leaf, scene) and value.dim() in (2, 3):
        is_text = _has_word(leaf, "ids", "tokens", "mask", "words", "text", "hidden")
        return Meaning("seq", LIKELY if is_text else USUAL)
    if value.dim() == 4 and [a for a in (1, 2, 3) if (leaf, a) in scene.moving] == [axis]:
        return Meaning("seq", USUAL)
    if axis == 2 and value.dim() == 3 and (leaf, 1) not in scene.moving:
        return Meaning("length", USUAL)
    return None


_RULES: tuple[_Rule, ...] = (_cache, _graph, _counted_things, _picture, _sound, _two_sides, _batch, _sequence)

# ---- names for dims that nobody named

_OPTIMUM = {
    "batch": "batch_size", "seq": "sequence_length", "past": "past_sequence_length", "channels": "num_channels",
    "source": "encoder_sequence_length", "target": "decoder_sequence_length", "samples": "sequence_length",
    "frames": "sequence_length", "length": "sequence_length", "points": "nb_points_per_image",
    "boxes": "nb_boxes_per_image", "prompts": "point_batch_size",
}  # fmt: skip
"""What optimum calls a size; a meaning that is not here is its own name."""
_SAYS_NOTHING = frozenset(
    ("ids", "id", "mask", "masks", "tokens", "token", "input", "inputs", "x", "attention", "type", "values", "embeds",
     "self", "cache", "past", "padding", "pad", "weights", "lengths", "position", "positions")
)  # fmt: skip
"""Words that do not tell one input from another."""


def name_dims(groups: Sequence[frozenset[Place]], signature: Signature, target: Target) -> list[str]:
    """A name for each group of places that follow one dim: distinct, and an identifier."""
    scene = Scene.of(signature, groups, target.module)
    is_transformers = is_pretrained(target)
    meanings = [_elected_meaning(group, scene) for group in groups]
    if is_transformers:
        meanings = _as_seen_by_transformers(meanings, signature)
    names = [_OPTIMUM.get(m.word, m.word) if is_transformers else m.word for m in meanings]
    named = _names_told_apart(names, groups, signature, with_kinds=is_transformers)
    return [_identifier(name) for name in named]


def is_pretrained(target: Target) -> bool:
    """A transformers model, told without importing transformers."""
    kinds = type(target.module).__mro__
    return any(k.__name__ == "PreTrainedModel" and k.__module__.startswith("transformers.") for k in kinds)


def _elected_meaning(group: frozenset[Place], scene: Scene) -> Meaning:
    votes = [meaning_of(place, scene) for place in _in_order(group)]
    strongest = max(vote.weight for vote in votes)
    words = [vote.word for vote in votes if vote.weight == strongest]
    return Meaning(collections.Counter(words).most_common(1)[0][0], strongest)


def _in_order(group: Iterable[Place]) -> list[Place]:
    return sorted(group, key=lambda place: (place[0], -1 if place[1] is None else place[1]))


def _as_seen_by_transformers(meanings: list[Meaning], signature: Signature) -> list[Meaning]:
    """Beside a decoder's inputs, the other sequence is the encoder's."""
    is_pair = any(leaf.name.startswith("decoder_") for leaf in signature.leaves)
    inside = ("seq", "samples", "frames", "length")
    return [Meaning("source", m.weight) if is_pair and m.word in inside else m for m in meanings]


# ---- two dims of one meaning


def _names_told_apart(
    names: Sequence[str], groups: Sequence[frozenset[Place]], signature: Signature, *, with_kinds: bool
) -> list[str]:
    """Where several have one name, each gets the word in front that tells its inputs from the others'."""
    told = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        numbers = [n for n, other in enumerate(names) if other == name]
        words = _images_or_texts([groups[n] for n in numbers], signature) if with_kinds else None
        words = words or _telling_words([groups[n] for n in numbers])
        for number, word in zip(numbers, words, strict=True):
            told[number] = f"{word}_{name}" if word and not name.startswith(word) else name
    return _numbered_names(told)


def _images_or_texts(groups: Sequence[frozenset[Place]], signature: Signature) -> list[str] | None:
    """`image` and `text`, as optimum tells two batches apart; None where these do not."""
    found = []
    for group in groups:
        leaves = {leaf for leaf, _ in group}
        is_image = any(image_like(leaf, signature.values[leaf]) for leaf in leaves)
        is_text = any(text_like(leaf, signature.values[leaf]) for leaf in leaves)
        found.append("image" if is_image and not is_text else "text" if is_text and not is_image else "")
    return found if all(found) and len(set(found)) == len(found) else None


def _telling_words(groups: Sequence[frozenset[Place]]) -> list[str]:
    """For each group the first word that its leaves have and no other group's; nothing where no word tells."""
    words = [[words_of(leaf) for leaf, _ in _in_order(group)] for group in groups]
    told = []
    for number, own in enumerate(words):
        others = {word for n, rows in enumerate(words) if n != number for row in rows for word in row}
        common = [word for word in own[0] if all(word in row for row in own)]
        first = [word for row in own for word in row]
        usable = [w for w in (*common, *first) if w not in others and w not in _SAYS_NOTHING]
        told.append(usable[0] if usable else "")
    return told


def _numbered_names(names: Sequence[str]) -> list[str]:
    seen: collections.Counter[str] = collections.Counter()
    result: list[str] = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result if len(set(result)) == len(result) else [f"{name}_{n}" for n, name in enumerate(names)]


def _identifier(name: str) -> str:
    cleaned = re.sub(r"\W", "_", name)
    return f"dim_{cleaned}" if not cleaned.isidentifier() or cleaned in FUNCTIONS else cleaned


# ---- names that jaxtyping annotations on `forward` give: `Float[Tensor, "batch seq 64"]`, read and checked
#
# jaxtyping is not imported: an annotation is whatever has a text `dim_str`. A name is a dim, a number is static, an
# expression must come out right; what stands for any number of axes, and what is anonymous, is left to probing.


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
    expressions: dict[Place, Expression] = {}
    for leaf in signature.leaves:
        if not leaf.is_tensor or leaf.name not in texts:
            continue
        for axis, token in _axis_tokens(leaf, texts[leaf.name]):
            if token.isdecimal():
                if (size := leaf.value.shape[axis]) != int(token):
                    said = f"its axis {axis} is {size} in the example, not {int(token)}"
                    raise _contradiction(leaf.name, texts[leaf.name], said)
                static.add((leaf.name, axis))
            elif token.isidentifier():
                names[leaf.name, axis] = token
            elif (expression := _expression_of(token)) is not None:
                expressions[leaf.name, axis] = expression
    _check_sizes(names, expressions, signature, texts)
    return Annotations(names, frozenset(static))


# ---- where annotations stand


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


# ---- what annotations say


def _axis_tokens(leaf: Leaf, text: str) -> Iterator[tuple[int, str]]:
    """Axis and token for every axis that is spoken of by itself."""
    tokens = text.split()
    rank = leaf.value.dim()
    many = [number for number, token in enumerate(tokens) if "..." in token or token.lstrip("#?").startswith("*")]
    if len(tokens) - len(many) > rank or (not many and len(tokens) != rank):
        raise _contradiction(leaf.name, text, f"has {rank} axes in the example")
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


# ---- annotations against the example


def _contradiction(leaf: str, text: str, said: str) -> DeclarationError:
    return DeclarationError(f"`{leaf}` is annotated `{text}`, but {said}")


def _check_sizes(
    names: Mapping[Place, str], expressions: Mapping[Place, Expression], signature: Signature, texts: Mapping[str, str]
) -> None:
    values = signature.values
    known: dict[str, tuple[int, str]] = {}
    for (leaf, axis), name in names.items():
        size = values[leaf].shape[axis]
        before, other = known.setdefault(name, (size, leaf))
        if before != size:
            where = "on another axis" if other == leaf else f"in `{other}`"
            raise _contradiction(leaf, texts[leaf], f"its `{name}` is {size} in the example, and {before} {where}")
    for (leaf, axis), expression in expressions.items():
        if not set(expression.names) <= known.keys():
            continue
        size, expected = values[leaf].shape[axis], expression.value({name: size for name, (size, _) in known.items()})
        if size != expected:
            raise _contradiction(leaf, texts[leaf], f"its `{expression}` is {size} in the example, not {expected}")


# ---- what becomes of annotations


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

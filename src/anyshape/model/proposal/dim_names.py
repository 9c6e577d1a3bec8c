"""Names for dims that nobody named: as optimum names them for transformers models, short and usual ones elsewhere.

Each place of a dim votes for what it means, by the words in its leaf's name and by the rank of its tensor; the most
telling vote wins. A meaning then gets the word that its ecosystem has for it.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.model.proposal.meanings import Meaning, Scene, image_like, meaning_of, text_like, words_of
from anyshape.model.proposal.probe import Place
from anyshape.sizes.notation import FUNCTIONS

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

"""A proposal as text: ready to paste, and what is the same for a whole container is said once."""

from __future__ import annotations

from anyshape.model.proposal.proposal import DimProposal, Offer, proposal_text, proposal_to_dict

CACHE = {f"past.{layer}.{part}": ("batch", "_", "past", "_") for layer in range(2) for part in ("key", "value")}
FOUND = DimProposal(
    {"ids": ("batch", "seq"), "mask": ("batch", "past + seq"), **CACHE},
    {"past": "0.."},
    {"batch": "axis 0 of `ids` moves alone", "seq": "axis 1 of `ids` moves alone", "past": "move together"},
    (Offer("past.0.key", 1, "the model lets it vary, but it looks like features"),),
    ("found with 40 runs of the model",),
)


def test_the_text_can_be_pasted_and_says_what_it_is_based_on():
    assert proposal_text(FOUND, list(FOUND.dims)) == (
        "dims={\n"
        '    "ids": "batch seq",\n'
        '    "mask": "batch past + seq",\n'
        '    "past": "batch _ past _",\n'
        "},\n"
        "sizes={\n"
        '    "past": "0..",\n'
        "},\n"
        "\n"
        "batch  axis 0 of `ids` moves alone\n"
        "seq    axis 1 of `ids` moves alone\n"
        "past   move together\n"
        "\n"
        "static: axis 1 of `past.0.key`: the model lets it vary, but it looks like features\n"
        "\n"
        "note: found with 40 runs of the model"
    )


def test_a_container_with_a_static_leaf_is_said_leaf_by_leaf():
    text = proposal_text(FOUND, [*FOUND.dims, "past.length"])
    assert '    "past": "batch' not in text
    assert '    "past.0": "batch _ past _",\n    "past.1": "batch _ past _",\n' in text


def test_without_dims_nothing_else_is_said_than_the_notes():
    assert proposal_text(DimProposal({}, {}, {}, (), ("no axis varies",)), ["x"]) == "dims={},\n\nnote: no axis varies"


def test_the_document_has_every_leaf():
    assert proposal_to_dict(FOUND)["dims"] == {leaf: list(row) for leaf, row in FOUND.dims.items()}
    assert proposal_to_dict(FOUND)["offers"] == [
        {"leaf": "past.0.key", "axis": 1, "why": "the model lets it vary, but it looks like features"}
    ]

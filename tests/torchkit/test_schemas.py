"""Schemas say which operators write, and which give a view."""

from __future__ import annotations

import operator

import pytest
import torch

from anyshape.torchkit import schemas

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("target", "writes", "gives_alias", "is_view"),
    [
        (aten.add.Tensor, False, False, False),
        (aten.add_.Tensor, True, True, False),
        (aten.add.out, True, True, False),
        (aten.transpose.int, False, True, True),
        (aten.split.Tensor, False, True, True),
        (aten.reshape.default, False, True, True),
        (aten._assert_async.default, False, False, False),
        (torch.ops.higher_order.cond, False, False, False),
        (operator.getitem, False, False, False),
        ("a placeholder", False, False, False),
    ],
    ids=str,
)
def test_what_an_operator_does_to_memory(target: object, writes: bool, gives_alias: bool, is_view: bool) -> None:
    found = schemas.writes(target), schemas.gives_alias(target), schemas.is_view(target)
    assert found == (writes, gives_alias, is_view)


def test_only_operators_have_a_schema() -> None:
    assert schemas.schema_of(aten.relu.default).name == "aten::relu"
    assert schemas.schema_of(torch.relu) is None

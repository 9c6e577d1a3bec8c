"""Labels of outputs that are foretold are those that all runs show, or there are none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.stages import written_file
from anyshape.verification import candidate_check
from anyshape.verification.output_labels import Labels, are_contradicted


class Halves(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[: x.shape[0] // 2] * 2, x.sum(0)


class Joined(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([x, x, x[:1]]), x[:2].clone()


class Positive(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Halves(), [["n // 2", 3], [3]]),
        (Joined(), [["2 * n + 1", 3], [2, 3]]),
        (Positive(), None),
    ],
)
def test_what_is_foretold_comes_true(
    model: nn.Module, expected: Labels | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    foretold, fitted = list[Labels | None](), list[Labels]()
    tell, fit = candidate_check.foretold_labels, written_file.fitted_labels
    monkeypatch.setattr(candidate_check, "foretold_labels", lambda *args: foretold.append(tell(*args)) or foretold[-1])

    def fits(*args):
        found = fit(*args)
        fitted.append(found[0])
        return found

    monkeypatch.setattr(written_file, "fitted_labels", fits)
    anyshape.export(model, torch.randn(6, 3), dims={"x": "n 3"}, sizes={"n": "2.."}, quick=True)
    assert foretold == [expected]
    assert expected is None or fitted == [expected]


@pytest.mark.parametrize(
    ("labels", "shape", "is_contradicted"),
    [
        ([["n", 3]], (5, 3), False),
        ([["n", 3]], (4, 3), True),
        ([["n", 4]], (5, 3), True),
        ([["n"]], (5, 3), True),
        ([None], (5, 3), False),
        ([["their own", "rows"]], (5, 3), False),
        ([["5 // (n - 5)", 3]], (5, 3), False),
    ],
)
def test_a_label_is_held_against_a_shape(labels: Labels, shape: tuple[int, ...], is_contradicted: bool) -> None:
    assert are_contradicted(labels, {"n": 5}, [shape]) is is_contradicted
    assert not are_contradicted(labels, {"n": 5}, [shape, shape])

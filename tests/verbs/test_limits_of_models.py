"""What a result calls PyTorch's own limit, beside PyTorch at every size of a grid; and who is said to fail."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from anyshape.onnxfile.contract import read_contract


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def added_and_viewed(x: Tensor, y: Tensor) -> Tensor:
    return (x + y).view(x.shape[0], 3)


def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y], 1)


def folded(x: Tensor) -> Tensor:
    return x.reshape(-1, 6).sum(1)


def with_a_hole(x: Tensor) -> Tensor:
    if 10 <= x.shape[0] <= 20:
        raise ValueError("not these")
    return x * 2


def short_or_beside_long(x: Tensor, y: Tensor) -> Tensor:
    assert x.shape[0] <= 8 or y.shape[0] >= 9
    return x.sum() + y


def picked(x: Tensor, index: Tensor) -> Tensor:
    return x.flatten()[index]


def picked_inside(x: Tensor, index: Tensor) -> Tensor:
    return x[:, 1:-1].reshape(-1)[index]


def marked(x: Tensor, mask: Tensor) -> Tensor:
    return x[mask].view(x.shape[0], -1)


def zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.long)


MASK = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]]).bool()
MODELS: list[tuple[Callable[..., Tensor], tuple[Tensor, ...], dict[str, str], Callable[..., Any], int, Any]] = [
    (added, (torch.randn(4, 3), torch.randn(4, 3)), {"x": "a 3", "y": "b 3"},
     lambda a, b: (torch.randn(a, 3), torch.randn(b, 3)), 9, ("b == a or a == 1 or b == 1",)),
    (added, (torch.randn(1, 3), torch.randn(1, 3)), {"x": "a 3", "y": "b 3"},
     lambda a, b: (torch.randn(a, 3), torch.randn(b, 3)), 9, ("a == b or a == 1 or b == 1",)),
    (added_and_viewed, (torch.randn(4, 3), torch.randn(4, 3)), {"x": "a 3", "y": "b 3"},
     lambda a, b: (torch.randn(a, 3), torch.randn(b, 3)), 9, ("b == a or b == 1",)),
    (joined, (torch.randn(4, 3), torch.randn(4, 5)), {"x": "a m", "y": "b n"},
     lambda a, m, b, n: (torch.randn(a, m), torch.randn(b, n)), 4, ("b == a",)),
    (folded, (torch.randn(4, 3),), {"x": "n k"}, lambda n, k: (torch.randn(n, k),), 13, ("n * k % 6 == 0",)),
    (with_a_hole, (torch.randn(5),), {"x": "n"}, lambda n: (torch.randn(n),), 40, ("n <= 9 or n >= 21",)),
    (short_or_beside_long, (torch.randn(5), torch.randn(6)), {"x": "n", "y": "m"},
     lambda n, m: (torch.randn(n), torch.randn(m)), 14, ("n <= 8 or m >= 9",)),
    (picked, (torch.randn(3, 5), torch.tensor([0, 14, 7, 2])), {"x": "n k", "index": "m"},
     lambda n, k, m: (torch.randn(n, k), zeros(m)), 4, ()),
    (picked_inside, (torch.randn(3, 7), torch.tensor([14, 3, 1, 0])), {"x": "n k", "index": "m"},
     lambda n, k, m: (torch.randn(n, k), zeros(m)), 4, ("k >= 3",)),
    (marked, (torch.randn(3, 4), MASK), {"x": "n k", "mask": "n k"},
     lambda n, k: (torch.randn(n, k), torch.ones(n, k, dtype=torch.bool)), 6, ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "example", "dims", "make", "highest", "limits"),
    MODELS,
    ids=[f"{m[0].__name__} {m[5]}" for m in MODELS],
)
def test_a_file_takes_every_size_at_which_pytorch_runs(
    function: Callable[..., Tensor], example: Any, dims: Any, make: Any, highest: int, limits: Any, tmp_path: Path
) -> None:
    result = anyshape.export(function, example, tmp_path / "model.onnx", dims=dims)
    assert (result.verdict, result.limits) == ("checked", limits)
    loaded, names = anyshape.load(tmp_path / "model.onnx"), make.__code__.co_varnames
    for sizes in itertools.product(range(1, highest + 1), repeat=len(names)):
        call = make(*sizes)
        try:
            expected = function(*call)
        except (RuntimeError, IndexError, ValueError, AssertionError):
            with pytest.raises(anyshape.AnyshapeError):
                loaded(*call)
        else:
            torch.testing.assert_close(torch.as_tensor(loaded(*call)), expected)


def test_a_limit_names_the_line_that_fails_beyond_it() -> None:
    result = anyshape.export(with_a_hole, torch.randn(5), dims={"x": "n"}, quick=True)
    line = with_a_hole.__code__.co_firstlineno + 2
    assert f"  limit    n <= 9 or n >= 21 (PyTorch itself, tests/verbs/test_limits_of_models.py:{line})" in str(result)


# ---- sizes that the user wrote


def refused(function: Callable[..., Tensor], *example: Tensor, **declared: Any) -> anyshape.Result:
    with pytest.raises(anyshape.ExportError) as refusal:
        anyshape.export(function, example, quick=True, **declared)
    return refusal.value.result


PAIR = {"dims": {"x": "a 3", "y": "b 3"}}


class Divided(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.reshape(y.shape[0], -1, 3)


def test_a_dim_that_divides_another_of_its_size_is_not_pinned() -> None:
    result = anyshape.export(Divided(), (torch.randn(5, 3), torch.randn(5, 2)), dims={"x": "a 3", "y": "b 2"})
    assert [str(limit) for limit in result.limits] == ["a % b == 0"]


def test_a_limit_of_two_dims_excludes_sizes_that_were_written() -> None:
    both = torch.randn(4, 3), torch.randn(4, 3)
    (finding,) = refused(added, *both, **PAIR, sizes={"a": "1..64", "b": "1..64"}).findings
    assert (finding.rule, finding.message) == ("tied-dims", "`a` and `b` cannot take every declared size together")
    assert finding.label == "runs only for `b == a or a == 1 or b == 1`"
    assert finding.helps == (
        'did you mean one dim? give both axes the name `a`, or where=["b == a"]: with it the file is right',
    )
    assert finding.notes[0].startswith("a = 5, b = 4 breaks it; PyTorch fails there too: RuntimeError: The size of")


@pytest.mark.parametrize(
    "declared",
    [{"sizes": {"a": "1..64"}}, {"sizes": {"a": "1..9", "b": "1..9"}, "where": ["b == a or a == 1 or b == 1"]}],
)
def test_what_the_other_dim_can_follow_excludes_nothing(declared: dict[str, Any]) -> None:
    result = anyshape.export(added, (torch.randn(4, 3), torch.randn(4, 3)), **PAIR, **declared, quick=True)
    assert result.verdict == "checked"
    assert {(1, 9), (9, 1)} & {(s["a"], s["b"]) for s in result.verification.sizes_run} or "where" not in declared


def test_a_narrower_file_says_what_it_gives_up() -> None:
    both = torch.randn(4, 3), torch.randn(4, 3)
    result = anyshape.export(added, both, **PAIR, sizes={"a": "1..9", "b": "1..9"}, narrow=True, quick=True)
    assert (result.verdict, result.given_up) == ("narrowed", ("only where b == a or a == 1 or b == 1",))


def only_composed(x: Tensor) -> Tensor:
    n = x.shape[0]
    if n in (5, 7, 11, 13, 17, 19, 23):
        raise ValueError("a prime")
    return x + 1


def test_written_sizes_that_fail_by_no_rule_are_refused() -> None:
    result = refused(only_composed, torch.randn(9), dims={"x": "n"}, sizes={"n": "1..24"})
    (finding,) = result.findings
    assert (finding.rule, finding.message) == ("bounded-dim", "`n` cannot take every declared size")
    assert "by no rule that was found" in finding.notes[1]
    assert result.limits == ()


# ---- the user's own function


def small_only(n: int) -> tuple[Tensor]:
    if n > 10:
        raise RuntimeError("only small graphs")
    return (torch.randn(n),)


def test_what_make_inputs_cannot_make_is_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = anyshape.export(lambda x: x * 2, f=path, make_inputs=small_only, dims={"x": "n"})
    contract = read_contract(onnx.load(path))
    assert contract is not None
    assert (result.verdict, result.limits, contract.limits, str(contract.dims["n"])) == ("checked", (), (), "1..")
    (note,) = [note for note in result.notes if "make_inputs" in note]
    assert note.endswith(
        ": RuntimeError: only small graphs; PyTorch was asked, and the file run, only where `n <= 10` holds"
    )
    assert 10 in {sizes["n"] for sizes in result.verification.sizes_run}


def test_a_limit_is_found_where_make_inputs_has_its_own() -> None:
    table = nn.Parameter(torch.randn(8))
    result = anyshape.export(lambda x: x + table[: x.shape[0]], make_inputs=small_only, dims={"x": "n"}, quick=True)
    assert result.limits == ("n <= 8",)


# ---- check


def test_a_claim_that_excludes_what_runs_is_the_files_own(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    both = torch.randn(4, 3), torch.randn(4, 3)
    anyshape.export(added, both, path, **PAIR, quick=True)
    model = onnx.load(path)
    (entry,) = [one for one in model.metadata_props if one.key == "anyshape.contract"]
    entry.value = entry.value.replace(" or a == 1 or b == 1", "")
    onnx.save(model, path)
    result = anyshape.check(path, added, both, quick=True)
    assert (result.limits, result.given_up) == ((), ("only where b == a",))


def test_pooling_needs_a_window() -> None:
    result = anyshape.export(lambda x: F.avg_pool1d(x, 4), torch.randn(2, 3, 9), dims={"x": "b 3 n"}, quick=True)
    assert result.limits == ("n >= 4",)

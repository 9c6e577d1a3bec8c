from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.tasks import Shard, Task, TaskLimits, parse_shard, refuse_one_key_twice


def task(name: str, column: str = "anyshape", **arguments) -> Task:
    return Task(name, column, "package.module:function", arguments)


def test_a_digest_is_of_what_is_done_and_not_of_limits_or_tags() -> None:
    one = task("a", opset=20)
    assert one.digest == Task(*vars(one).values()).digest
    assert one.digest == Task("a", "anyshape", one.function, {"opset": 20}, TaskLimits(1.0, 1), ("tag",), 4).digest
    moved = Task("a", "anyshape", one.function, {"opset": 20}, written={"folder": "elsewhere"})
    assert moved.digest == one.digest
    assert moved.request["arguments"] == {"opset": 20, "written": {"folder": "elsewhere"}}
    assert one.request == {"function": "package.module:function", "arguments": {"opset": 20}}
    assert len({one.digest, task("b", opset=20).digest, task("a", "b", opset=20).digest, task("a").digest}) == 4


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_every_name_is_in_exactly_one_shard(count: int) -> None:
    tasks = [task(f"model {n}", column) for n in range(500) for column in ("a", "b")]
    parts = [Shard(number, count).part_of(tasks) for number in range(1, count + 1)]
    assert sorted(one.key for part in parts for one in part) == sorted(one.key for one in tasks)
    names = [{one.name for one in part} for part in parts]
    assert sum(map(len, names)) == 500


def test_shards_are_of_about_one_size_and_a_name_stays_in_its_shard() -> None:
    lengths = [len(Shard(n, 4).part_of([task(f"m{i}") for i in range(1000)])) for n in range(1, 5)]
    assert max(lengths) < 1.3 * min(lengths)
    assert [Shard(n, 3).holds("resnet18") for n in (1, 2, 3)] == [True, False, False]
    assert sum(Shard(n, 3).holds("odd \ud800 name") for n in (1, 2, 3)) == 1


def test_a_shard_is_written_as_a_fraction() -> None:
    assert parse_shard(" 3/8 ") == Shard(3, 8)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2", "1" * 20 + "/" + "1" * 20])
def test_what_is_no_shard_is_one_sentence(text: str) -> None:
    with pytest.raises(DeclarationError) as told:
        parse_shard(text)
    assert str(told.value) == f"the shard is `{text}`: write i/N, from 1/N to N/N"


def test_two_results_of_one_name_would_be_one() -> None:
    refuse_one_key_twice([task("a"), task("a", "torch")])
    with pytest.raises(DeclarationError) as told:
        refuse_one_key_twice([task("a"), task("b"), task("a")])
    assert str(told.value) == ("two entries are called `a` in column `anyshape`: a result would not say whose it is")


def test_limits_are_more_than_nothing() -> None:
    with pytest.raises(DeclarationError) as told:
        TaskLimits(0.0, 10**9)
    assert str(told.value) == "a task is given 0 s and 1 GB: both must be more than nothing and have an end"
    for seconds, gigabytes in ((float("nan"), 1.0), (float("inf"), 1.0), (1.0, float("inf")), (1.0, -2.0)):
        with pytest.raises(DeclarationError):
            TaskLimits.of(seconds, gigabytes)
    assert TaskLimits.of(3.0, 0.5) == TaskLimits(3.0, 500_000_000)

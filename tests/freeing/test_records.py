"""Which reading is taken, and which one comes next."""

from anyshape.freeing.records import Chooser


def chosen(plan, *readings):
    chooser = Chooser(plan)
    return [chooser.choose(r) for r in readings], chooser


def test_the_likeliest_is_taken_beyond_the_plan():
    assert chosen((1,), "ab", "cd")[0] == ["b", "c"]


def test_one_reading_is_no_choice():
    found, chooser = chosen((1,), "a", "bc")
    assert (found, chooser.counts, chooser.taken) == (["a", "c"], [2], [1])


def test_a_plan_that_asks_too_much_is_read_as_the_likeliest():
    assert chosen((7, -1), "ab", "cd")[0] == ["a", "c"]


def test_the_last_place_is_changed_first_and_what_is_fixed_never():
    plans, plan = [], (0,)
    while plan is not None and len(plans) < 9:
        plans.append(plan)
        plan = chosen(plan, "ab", "cd", "efg")[1].next_plan(1)
    assert plans == [(0,), (0, 0, 1), (0, 0, 2), (0, 1), (0, 1, 1), (0, 1, 2)]

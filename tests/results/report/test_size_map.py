"""Every size that is known of is one mark, and the worst that is known of it is its state."""

from __future__ import annotations

from dataclasses import replace

from anyshape.results.report.size_map import MapMark, map_of
from tests.results.report.samples import REFUSED, RIGHT


def test_each_size_is_a_mark_with_its_state_and_largest_error():
    assert [(mark.sizes, mark.state, mark.ratio, mark.contents) for mark in map_of(RIGHT).marks] == [
        ((1, 4), "right", 0.25, 1),
        ((2, 4), "right", 3.0, 2),
        ((3, 40), "limit", None, 0),
        ((9, 32), "not run", None, 0),
    ]


def test_one_wrong_content_makes_its_size_wrong():
    found = {mark.sizes: mark for mark in map_of(REFUSED).marks}
    assert found[2, 4] == MapMark((2, 4), "wrong", None, 1, ("`x` negated",), "`y` differs by 0.3")


def test_where_a_refusal_fails_stands_on_the_map_although_nothing_was_run():
    marks = map_of(replace(REFUSED, verification=None)).marks
    assert marks == (MapMark((1, 4), "limit", sentence="error[pinned-dim]: `batch` cannot vary"),)


def test_a_right_size_that_a_finding_names_is_wrong_and_keeps_its_error():
    by_export = replace(REFUSED, findings=tuple(replace(one, origin="export") for one in REFUSED.findings))
    found = {mark.sizes: mark for mark in map_of(by_export).marks}
    assert (found[1, 4].state, found[1, 4].ratio, found[1, 4].contents) == ("wrong", 0.25, 1)


def test_relations_say_who_excludes_and_those_of_other_names_are_left_out():
    odd = replace(RIGHT, limits=("seq <= 32", "other <= 3"), given_up=("only where batch <= 4", "batch is fixed at 2"))
    assert [(one.text, one.by) for one in map_of(odd).relations] == [
        ("batch <= seq", "where"),
        ("seq <= 32", "limit"),
        ("batch <= 4", "given up"),
    ]


def test_sliders_start_where_most_contents_were_run():
    assert map_of(RIGHT).start == {"batch": 2, "seq": 4}
    assert map_of(replace(REFUSED, verification=None)).start is None


def test_marks_are_in_order_of_their_sizes_and_ranges_are_told():
    rows = map_of(RIGHT).to_dict()
    assert [mark["sizes"] for mark in rows["marks"]] == [[1, 4], [2, 4], [3, 40], [9, 32]]
    assert rows["dims"] == [
        {"name": "batch", "text": "1..", "first": 1, "last": None, "step": 1, "sizes": None},
        {"name": "seq", "text": "4..32 step 4", "first": 4, "last": 32, "step": 4, "sizes": None},
    ]
    assert (rows["allowed"], rows["measure"]) == (8.0, "the model's own rounding noise")


def test_relations_name_the_places_of_their_dims():
    """So that a page knows what is excluded whatever the dims are that it does not show."""
    assert [one["dims"] for one in map_of(RIGHT).to_dict()["relations"]] == [[0, 1], [1]]

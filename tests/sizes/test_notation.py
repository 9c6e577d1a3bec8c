from __future__ import annotations

import builtins

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anyshape.errors import DeclarationError
from anyshape.sizes.notation import (
    Expression,
    InputText,
    SizeRange,
    any_of,
    did_you_mean,
    evaluator,
    parse_axes,
    parse_condition,
    parse_expression,
    parse_input,
    parse_sizes,
    solve_for,
)

quick = settings(max_examples=60, deadline=None)
names = st.sampled_from(["batch", "seq", "h", "w", "größe", "_hidden", "n2"])


def _join(parts):
    left, sign, right = parts
    return f"({left} {sign} {right})"


expressions = st.recursive(
    names | st.integers(0, 99).map(str),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(_join)
        | st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})")
        | inner.map(lambda text: f"-{text}")
    ),
    max_leaves=8,
)
sizes = st.fixed_dictionaries({n: st.integers(1, 40) for n in ["batch", "seq", "h", "w", "größe", "_hidden", "n2"]})


def python_value(text, values):
    try:
        return eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(values))
    except ZeroDivisionError:
        return "divides by zero"


def our_value(expression, values):
    try:
        return expression.value(values)
    except ZeroDivisionError:
        return "divides by zero"


# ---- expressions


@quick
@given(expressions, sizes)
def test_an_expression_has_the_value_that_python_gives(text, values):
    assert our_value(parse_expression(text), values) == python_value(text, values)


@quick
@given(expressions, sizes)
def test_an_expression_is_the_same_after_it_was_written_and_read(text, values):
    expression = parse_expression(text)
    again = parse_expression(str(expression))
    assert again == expression
    assert our_value(again, values) == our_value(expression, values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a * b + c", ("a", "b", "c")), ("c + a * b", ("c", "a", "b")), ("min(b, a) - b", ("b", "a")), ("7", ())],
)
def test_names_come_in_order_of_appearance(text, expected):
    assert parse_expression(text).names == expected


@pytest.mark.parametrize("text", ["past+seq", " past + seq ", "(past+seq)", "past  +\tseq"])
def test_spaces_and_needless_brackets_do_not_matter(text):
    assert parse_expression(text) == Expression("past + seq")


@pytest.mark.parametrize(("text", "is_name"), [("batch", True), ("batch + 1", False), ("7", False), ("-n", False)])
def test_a_bare_dim_is_told_from_arithmetic(text, is_name):
    assert parse_expression(text).is_name is is_name


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "open('x')", "a.b", "a[0]", "lambda: 1", "a if b else c", "a and b", "[a for a in b]",
        "a ** b", "a / b", "1.5", "'a'", "True", "None", "~a", "+a", "min(a)", "min(*a, b)", "max(a, key=b)", "min",
        "a := 3", "a b", "", "a +", "a\0", "a < b", "print", "f(a, b)", "a @ b", "1j", "a << 2", "{a}", "in",
    ],
)  # fmt: skip
def test_what_is_not_arithmetic_on_sizes_is_refused(text):
    if text == "print":  # a name like any other: nothing is looked up
        assert parse_expression(text).names == ("print",)
        return
    with pytest.raises(DeclarationError) as caught:
        parse_expression(text)
    assert str(caught.value) == f"`{text}` is not a size: use names, whole numbers, + - * // % and min(), max()"


@pytest.mark.parametrize("text", ["(" * 400 + "a" + ")" * 400, "-" * 900 + "a", "+".join("a" * 400), "a*" * 300 + "a"])
def test_text_that_is_too_deep_is_refused(text):
    with pytest.raises(DeclarationError, match="is not a size"):
        parse_expression(text)


def test_text_that_is_too_long_is_refused():
    with pytest.raises(DeclarationError) as caught:
        parse_expression("a" * 1001)
    assert str(caught.value) == "an expression of 1001 characters is too long: at most 1000"


@quick
@given(st.text(max_size=40))
@example("__import__('os').system('true')")
def test_no_text_is_ever_executed(text):
    def refuse(*_args, **_kwargs):
        raise AssertionError(text)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("eval", "exec", "open"):
            patch.setattr(builtins, name, refuse)
        try:
            parse_expression(text)
        except DeclarationError:
            return


# ---- conditions


@pytest.mark.parametrize(
    "text",
    [
        "seq <= 512",
        "h % 32 == 0",
        "b2 == b",
        "a + b < 40",
        "a != 7",
        "a >= b",
        "2 * a > b",
        "a == b or a == 1 or 2 * b <= 3",
    ],
)
def test_a_condition_is_the_same_after_it_was_written_and_read(text):
    assert str(parse_condition(text)) == text
    assert parse_condition(str(parse_condition(text))) == parse_condition(text)


@pytest.mark.parametrize("relation", ["==", "<=", ">=", "<", ">", "!="])
def test_a_condition_holds_where_python_says_so(relation):
    condition = parse_condition(f"a + 1 {relation} b")
    for a in range(1, 5):
        for b in range(1, 6):
            assert condition.holds({"a": a, "b": b}) is eval(f"a + 1 {relation} b")
    assert condition.names == ("a", "b")


def test_a_condition_that_divides_by_zero_does_not_hold():
    assert not parse_condition("a // b == 0").holds({"a": 1, "b": 0})
    assert not parse_condition("a % b != 1").holds({"a": 1, "b": 0})


def test_alternatives_hold_one_by_one():
    condition = parse_condition("c // b == 2 or a == 1 or b == 3")
    assert condition.names == ("c", "b", "a")
    assert [str(part) for part in condition.parts] == ["c // b == 2", "a == 1", "b == 3"]
    assert any_of(condition.parts) == condition
    held = [condition.holds({"a": a, "b": b, "c": 4}) for a, b in ((2, 2), (1, 0), (2, 3), (2, 0), (2, 4))]
    assert held == [True, True, True, False, False]


@pytest.mark.parametrize("text", ["a <= b or", "a <= b <= c or a == 1", "or", "a or b"])
def test_each_alternative_is_a_relation(text):
    with pytest.raises(DeclarationError, match="is not a condition"):
        parse_condition(text)


@pytest.mark.parametrize("text", ["a", "a <= b <= c", "a = b", "", "a <<= b"])
def test_what_is_not_two_sizes_and_a_relation_is_refused(text):
    with pytest.raises(DeclarationError) as caught:
        parse_condition(text)
    assert str(caught.value) == f"`{text}` is not a condition: write two sizes and one of ==, <=, >=, <, >, !="


# ---- the axes of one input

batch, seq = parse_expression("batch"), parse_expression("seq")


@pytest.mark.parametrize(
    "declared",
    [
        "batch seq 10",
        "batch, seq, 10",
        " batch ,seq,10 ",
        "batch  seq\t10",
        ["batch", "seq", 10],
        ("batch", "seq", "10"),
    ],
)
def test_spaces_commas_and_lists_say_the_same(declared):
    assert parse_axes(declared, where="x") == (batch, seq, 10)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("_ ? ...", ("_", None, Ellipsis)),
        (["_", None, ..., "?"], ("_", None, Ellipsis, None)),
        ([" _ ", " ? ", " ... "], ("_", None, Ellipsis)),
        ("", ()),
        ("past+seq", (Expression("past + seq"),)),
        ("batch past + seq 3", (batch, Expression("past + seq"), 3)),
        ("batch n // 2 + 1", (batch, Expression("n // 2 + 1"))),
        ("batch (h - 1) * w", (batch, Expression("(h - 1) * w"))),
        ("batch min(seq, 50) 3", (batch, Expression("min(seq, 50)"), 3)),
        ("batch, min(seq, 50), 3", (batch, Expression("min(seq, 50)"), 3)),
        ({0: "batch", -1: "seq"}, {0: batch, -1: seq}),
        ({1: None, 2: 5, 3: "_"}, {1: None, 2: 5, 3: "_"}),
        ([batch, 4], (batch, 4)),
    ],
)
def test_every_form_of_axis_is_read(declared, expected):
    assert parse_axes(declared, where="x") == expected


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (3, '`x` is declared 3, a int: write its axes as text ("batch seq 10"), as a list, or as {axis: name}'),
        ([1.5], "`x` holds 1.5, which is neither a name, a number nor an expression"),
        ([True], "`x` holds True, which is neither a name, a number nor an expression"),
        ({"0": "batch"}, "`x` has the axis '0': an axis is a whole number, counted from 0"),
        ({True: "batch"}, "`x` has the axis True: an axis is a whole number, counted from 0"),
        ({0: "..."}, "`x` has `...` on a numbered axis: an axis that is not listed is static anyway"),
        ("batch, seq 10", "`seq 10` is not a size: use names, whole numbers, + - * // % and min(), max()"),
    ],
)
def test_what_is_no_axis_is_refused_with_a_sentence(declared, message):
    with pytest.raises(DeclarationError) as caught:
        parse_axes(declared, where="x")
    assert str(caught.value) == message


# ---- sizes


@pytest.mark.parametrize(
    ("declared", "members", "text"),
    [
        ("1..5", [1, 2, 3, 4, 5], "1..5"),
        ("..3", [1, 2, 3], "1..3"),
        ("0..1", [0, 1], "0..1"),
        (" 4 .. 12 step  4 ", [4, 8, 12], "4..12 step 4"),
        ("4..13 step 4", [4, 8, 12], "4..12 step 4"),
        (range(2, 9, 3), [2, 5, 8], "2..8 step 3"),
        (range(1, 2), [1], "1..1"),
        ([8, 2, 2, 4], [2, 4, 8], "{2, 4, 8}"),
        ({3, 1}, [1, 3], "{1, 3}"),
        ("1, 2, 4", [1, 2, 4], "{1, 2, 4}"),
        ("1 2 4", [1, 2, 4], "{1, 2, 4}"),
        ((2, 4), [2, 3, 4], "2..4"),
        (7, [7], "{7}"),
        (SizeRange(2, 3), [2, 3], "2..3"),
    ],
)
def test_every_form_of_sizes_is_read(declared, members, text):
    sizes = parse_sizes(declared, dim="n")
    assert [n for n in range(40) if n in sizes] == members
    assert len(sizes) == len(members)
    assert str(sizes) == text
    assert not sizes.is_open


@pytest.mark.parametrize(
    ("declared", "text"), [("8..", "8.."), ((3, None), "3.."), ("..", "1.."), ("4.. step 4", "4.. step 4")]
)
def test_a_range_may_be_open(declared, text):
    sizes = parse_sizes(declared, dim="n")
    assert sizes.is_open
    assert str(sizes) == text
    assert 4000 in sizes


@pytest.mark.parametrize(
    "declared",
    [True, 2.5, None, "a..b", "1-5", "", "1...5", [], [1.0], (1, 2, 3), (1.0, 2), range(0), range(5, 1, -1), "1..2..3"],
)
def test_what_says_no_sizes_is_refused_with_the_forms_that_do(declared):
    with pytest.raises(DeclarationError) as caught:
        parse_sizes(declared, dim="seq")
    shown = f"`{declared}`" if isinstance(declared, str) else repr(declared)
    assert str(caught.value).startswith(f"the sizes of `seq` are {shown}: write ")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("9..3", "the sizes of `seq` from 9 to 3 in steps of 1 hold no size"),
        ("1..9 step 0", "the sizes of `seq` from 1 to 9 in steps of 0 hold no size"),
        ((-2, 4), "the sizes of `seq` from -2 to 4 in steps of 1 hold no size"),
        ([3, -1], "the sizes of `seq` hold -1: a size is not negative"),
        (-3, "the sizes of `seq` hold -3: a size is not negative"),
    ],
)
def test_sizes_that_cannot_be_are_refused(declared, message):
    with pytest.raises(DeclarationError) as caught:
        parse_sizes(declared, dim="seq")
    assert str(caught.value) == message


ranges = st.builds(
    lambda lo, count, step: SizeRange(lo, lo + count * step, step),
    st.integers(0, 20),
    st.integers(0, 12),
    st.integers(1, 9),
) | st.sets(st.integers(0, 60), min_size=1, max_size=6).map(lambda values: parse_sizes(list(values), dim="n"))


def enumerated(sizes):
    return [n for n in range(200) if n in sizes]


@quick
@given(ranges)
def test_sizes_are_the_same_after_they_were_written_and_read(sizes):
    assert parse_sizes(str(sizes), dim="n") == sizes
    assert len(sizes) == len(enumerated(sizes))


@quick
@given(ranges, st.integers(-10, 220))
@example(SizeRange(0, 10**12, 3), 10**12 - 1)
def test_the_nearest_size_is_the_one_that_a_search_finds(sizes, wanted):
    if sizes.hi > 1000:
        assert sizes.nearest(wanted) == wanted
        return
    assert sizes.nearest(wanted) == min(enumerated(sizes), key=lambda n: (abs(n - wanted), n))


@quick
@given(st.integers(0, 9), st.integers(1, 9), st.integers(-5, 90))
def test_the_nearest_size_of_an_open_range_is_the_one_that_a_search_finds(lo, step, wanted):
    members = range(lo, 200, step)
    assert SizeRange(lo, None, step).nearest(wanted) == min(members, key=lambda n: (abs(n - wanted), n))


@quick
@given(ranges, st.integers(-5, 120))
def test_a_range_cut_off_holds_what_lies_below_and_always_its_smallest(sizes, highest):
    kept = [n for n in enumerated(sizes) if n <= highest] or enumerated(sizes)[:1]
    cut = sizes.up_to(highest)
    assert enumerated(cut) == kept
    assert (cut.lo, cut.hi) == (kept[0], kept[-1])


# ---- one input on the command line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tokens: int64[batch, seq] < 1000", InputText("tokens", "int64", "batch, seq", 1000)),
        ("x:[batch 3]", InputText("x", "float32", "batch 3", None)),
        ("past.*.key : float16[batch, _, past]", InputText("past.*.key", "float16", "batch, _, past", None)),
        ("x: bool[]", InputText("x", "bool", "", None)),
    ],
)
def test_an_input_of_the_command_line_is_taken_apart(text, expected):
    assert parse_input(text) == expected


@pytest.mark.parametrize("text", ["tokens", "tokens: int64", "tokens[batch]", "x: [a] < b", ""])
def test_what_is_no_input_is_refused(text):
    with pytest.raises(DeclarationError) as caught:
        parse_input(text)
    assert str(caught.value) == (
        f"`{text}` is not an input: write `name: dtype[axes]`, such as `tokens: int64[batch, seq] < 1000`"
    )


def test_a_close_name_is_offered_and_a_far_one_is_not():
    assert did_you_mean("sequence", ["batch", "seq"]) == "; did you mean `seq`?"
    assert did_you_mean("zzz", ["batch", "seq"]) == ""


# ---- values

EXPRESSIONS = ["a", "7", "a + b", "-a - 3 * b", "a // b + 1", "a % b", "min(a, 50, b * 2)", "max(a // 2, b) % 5"]
sizes = st.integers(0, 60)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(EXPRESSIONS), sizes, sizes)
def test_the_functions_give_what_python_gives(text, a, b):
    expression, dims = parse_expression(text), {"a": a, "b": b}
    try:
        expected = eval(text, {}, dims)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            expression.value(dims)
        assert expression.value_or_none(dims) is None
    else:
        assert expression.value(dims) == expression.value_or_none(dims) == expected


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(EXPRESSIONS), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), sizes, sizes)
def test_conditions_hold_where_python_says_so(text, relation, a, b):
    condition = f"{text} {relation} 10"
    try:
        expected = eval(condition, {}, {"a": a, "b": b})
    except ZeroDivisionError:
        expected = False
    assert parse_condition(condition).holds({"a": a, "b": b}) == expected


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        ("a + b", 9, 5), ("a", 7, 7), ("a * a", 49, 7), ("2 * a + 1", 7, 3),
        ("a * a", 50, None), ("a // 2", 3, None), ("a + b", 3, None), ("a * 0", 0, None), ("b // a", 4, None),
        ("a * a", 10**12, 10**6),
    ],
)  # fmt: skip
def test_a_dim_is_solved_for_where_there_is_one_answer(text, size, found):
    assert solve_for("a", evaluator(text), size, {"b": 4}) == found


@pytest.mark.parametrize("text", ["1..{}", "{}..", "1.. step {}", "3, {}", "{}"])
def test_a_number_without_end_is_no_size(text):
    with pytest.raises(DeclarationError, match=r"^the sizes of `n` hold a number of more than 100 digits$"):
        parse_sizes(text.format("9" * 5000), dim="n")

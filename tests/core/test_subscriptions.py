"""Subscription texts: what they mean, and what is said about those that mean nothing."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.content import Attribute, Subscription, box, parse, parse_template
from serai.core.errors import BadInput, BadSubscription

ATTRIBUTES = (
    Attribute("A1", "real", 0.0, 10.0),
    Attribute("A2", "integer", 0.0, 10.0),
    Attribute("soil.temp-1", "real", -40.0, 60.0),
)
INF = math.inf
ONE_BOX = "one range for each attribute; write a subscription for each of the alternatives"


def below(number: float) -> float:
    return math.nextafter(number, -INF)


def above(number: float) -> float:
    return math.nextafter(number, INF)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("A1 < 3.2 and 2 <= A2 < 8", [("A1", -INF, below(3.2)), ("A2", 2.0, below(8.0))]),
        ("A1 <= 3", [("A1", -INF, 3.0)]),
        ("A1 > 3", [("A1", above(3.0), INF)]),
        ("A1 >= 3", [("A1", 3.0, INF)]),
        ("A1 = 3", [("A1", 3.0, 3.0)]),
        ("A1 == 3", [("A1", 3.0, 3.0)]),
        ("3 = A1", [("A1", 3.0, 3.0)]),
        ("3 > A1", [("A1", -INF, below(3.0))]),
        ("3 <= A1", [("A1", 3.0, INF)]),
        ("8 > A2 >= 2", [("A2", 2.0, below(8.0))]),
        ("A1 ≥ 1 ∧ A1 ≤ 2", [("A1", 1.0, 2.0)]),
        ("A1>=1 AND A1<2", [("A1", 1.0, below(2.0))]),
        ("A1 > 1 & A2 > 2 && A1 < 5", [("A1", above(1.0), below(5.0)), ("A2", above(2.0), INF)]),
        ("A1 < -1.5e3", [("A1", -INF, below(-1500.0))]),
        ("A1<+.5", [("A1", -INF, below(0.5))]),
        ("A1 < 0", [("A1", -INF, -5e-324)]),
        ("\tA1\n< 3 ", [("A1", -INF, below(3.0))]),
        ("soil.temp-1 > -3", [("soil.temp-1", above(-3.0), INF)]),
        ("not A1 < 3", [("A1", 3.0, INF)]),
        ("not (A1 < 3 or A2 > 4) and A1 in (5)", [("A1", 5.0, 5.0), ("A2", -INF, 4.0)]),
        ("-3<soil.temp-1<-2", [("soil.temp-1", above(-3.0), below(-2.0))]),
    ],
)
def test_a_text_becomes_closed_ranges(text, ranges):
    assert parse(text, ATTRIBUTES) == Subscription(text, tuple(ranges))


@pytest.mark.parametrize("text", ["A1 < 2 and A1 > 5", "5 < A1 < 2", "A1 = 1 and A1 = 2", "1 < A1 < 1"])
def test_an_empty_range_is_allowed_and_has_low_above_high(text):
    ((_, low, high),) = parse(text).ranges
    assert low > high


def test_names_are_free_when_no_attributes_are_given():
    assert parse("andy < 3 and Or_2 > 1").ranges == (("andy", -INF, below(3.0)), ("Or_2", above(1.0), INF))


@pytest.mark.parametrize(
    ("text", "position", "expected", "message"),
    [
        ("", 0, "a comparison such as A1 < 3", "expected a comparison such as A1 < 3, found the end"),
        ("A1", 2, "< <= > >= or =", "expected < <= > >= or =, found the end"),
        ("A1 < ", 5, "a number", "expected a number, found the end"),
        ("A1 < and", 5, "a number", 'expected a number, found "and"'),
        ("A1 < A2", 5, "a number", 'expected a number, found "A2"'),
        ("3 < 4", 4, "the name of an attribute", 'expected the name of an attribute, found "4"'),
        ("A1 != 3", 3, ONE_BOX, f'expected {ONE_BOX}, found "!="'),
        ("A1 < 3 or A2 < 4", 7, ONE_BOX, f'expected {ONE_BOX}, found "or"'),
        ("not (A1 < 3 and A2 < 4)", 0, ONE_BOX, f'expected {ONE_BOX}, found "not"'),
        ("A1 in (3, 4)", 3, ONE_BOX, f'expected {ONE_BOX}, found "in"'),
        ("A1 < 3 A2 < 4", 7, "and, or the end", 'expected and, or the end, found "A2"'),
        (
            "A1 < 3 and",
            10,
            "a comparison such as A1 < 3",
            "expected a comparison such as A1 < 3, found the end",
        ),
        ("A1 < 3 < 4", 7, "and, or the end", 'expected and, or the end, found "<"'),
        ("3 = A1 = 3", 7, "and, or the end", 'expected and, or the end, found "="'),
        ("A1 < ?", 5, "a number", 'expected a number, found "?"'),
        ("A1 < 3.2.5", 8, "and, or the end", 'expected and, or the end, found ".5"'),
        ("A1 < 1e999", 5, "a number that is not too large", None),
        ("2 < A1 > 3", 7, "< or <=, so that the range points one way", None),
        (
            "A1 < 3 and soiltmp < 2",
            11,
            "A1, A2, soil.temp-1",
            'unknown attribute "soiltmp"; did you mean "soil.temp-1"?',
        ),
        ("a1 < 3", 0, "A1, A2, soil.temp-1", 'unknown attribute "a1"; did you mean "A1"?'),
        (
            "humidity < 3",
            0,
            "A1, A2, soil.temp-1",
            'unknown attribute "humidity"; one of: A1, A2, soil.temp-1',
        ),
    ],
)
def test_a_bad_text_is_refused_with_position_and_expectation(text, position, expected, message):
    with pytest.raises(BadSubscription) as caught:
        parse(text, ATTRIBUTES)
    error = caught.value
    assert (error.text, error.position, error.expected) == (text, position, expected)
    assert error.message == message or message is None


def test_the_message_shows_the_text_with_carets():
    with pytest.raises(BadSubscription) as caught:
        parse("A1 < 3 and\n  hum < 2", ATTRIBUTES)
    assert str(caught.value).splitlines()[1:] == ["      hum < 2", "      ^^^"]


def test_errors_survive_pickling():
    with pytest.raises(BadSubscription) as caught:
        parse("A1 <")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.position == 4


def test_a_template_says_what_each_hole_is_for_and_fills_it():
    template = parse_template("A1 < ? and ? <= A2 < ?", ATTRIBUTES)
    assert template.attributes == ("A1", "A2", "A2")
    filled = template.fill([0.1, 3.0, np.float64(8.0)])
    assert filled.text == "A1 < 0.1 and 3 <= A2 < 8"
    assert filled.ranges == (("A1", -INF, below(0.1)), ("A2", 3.0, below(8.0)))


def test_a_template_needs_one_number_per_hole():
    with pytest.raises(ValueError, match="2 numbers needed"):
        parse_template("A1 < ? and A2 < ?").fill([1.0])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_a_filled_text_reads_back_as_the_same_ranges(draws):
    filled = parse_template("A1 <? and ?>=soil.temp-1 and A1>?").fill(draws)
    assert parse(filled.text).ranges == filled.ranges
    low, high = max(-INF, above(draws[2])), below(draws[0])
    assert filled.ranges == (("A1", low, high), ("soil.temp-1", -INF, draws[1]))


@given(st.text(alphabet="A1 <>=?.-+eand&∧\n$", max_size=12))
def test_any_text_is_either_read_or_refused(text):
    try:
        position = len(parse(text).ranges)
    except BadSubscription as error:
        position = error.position
    assert 0 <= position <= len(text)


def test_a_box_leaves_other_attributes_free():
    low, high = box(parse("A2 >= 3 and A1 < 5"), ["A0", "A1", "A2"])
    np.testing.assert_array_equal(low, [-INF, -INF, 3.0])
    np.testing.assert_array_equal(high, [INF, below(5.0), INF])


def test_a_box_cannot_drop_a_constraint():
    with pytest.raises(ValueError, match="A2"):
        box(parse("A2 >= 3"), ["A1"])


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (("A1", "real", 5, 5), "attribute A1: low (5) must be below high (5)"),
        (("A1", "real", 0, INF), "attribute A1: low and high must be finite"),
        (("A1", "whole", 0, 1), 'attribute A1: unknown kind "whole"; one of: real, integer'),
        (
            ("A1", "integer", 0.5, 1),
            "attribute A1: low and high of an integer attribute must be whole numbers",
        ),
        (
            ("A1", "integer", 0, 2**53 + 2),
            "attribute A1: low and high of an integer attribute must lie within",
        ),
        (("1A", "real", 0, 1), 'attribute 1A: "1A" cannot be a name'),
        (("And", "real", 0, 1), 'attribute And: "And" cannot be a name'),
        (("in", "real", 0, 1), 'attribute in: "in" cannot be a name'),
    ],
)
def test_an_impossible_attribute_is_refused(attribute, message):
    with pytest.raises(BadInput) as caught:
        Attribute(*attribute)
    assert str(caught.value).startswith(message)

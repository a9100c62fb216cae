"""What subscriptions ask of collected events: numbers, integers, times and texts."""

import math
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serai.core.conditions import (
    LARGEST,
    SMALLEST,
    Conditions,
    Range,
    Word,
    microseconds,
    read_conditions,
    wanted,
)
from serai.core.content import matches
from serai.core.errors import BadSubscription
from serai.core.readings import read_many

KINDS = {"temperature": "real", "count": "integer", "seen": "time", "site": "text", "channel": "text"}
INF = math.inf
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("temperature < 5", {"temperature": Range(-INF, math.nextafter(5, -INF))}),
        ("count < 5", {"count": Range(SMALLEST, 4)}),
        ("count > 2.5", {"count": Range(3, LARGEST)}),
        ("2 <= count <= 7.", {"count": Range(2, 7)}),
        ("count = 9007199254740993", {"count": Range(9007199254740993, 9007199254740993)}),
        ("count < 1e300", {"count": Range(SMALLEST, LARGEST)}),
        ("site = 'north'", {"site": Word("north", True)}),
        ('"north" = site', {"site": Word("north", True)}),
        ("site starts with 'no'", {"site": Word("no", False)}),
        ("site STARTS  WITH ''", {"site": Word("", False)}),
        ("site = 'O''Brien'", {"site": Word("O'Brien", True)}),
        ("site = 'a' and site starts with 'a'", {"site": Word("a", True)}),
        ("site starts with 'no' and site starts with 'nor'", {"site": Word("nor", False)}),
        ("seen >= 2026-11-01T12:00:00Z", {"seen": Range(microseconds(NOON), LARGEST)}),
        ("seen >= 2026-11-01T13:00+01:00", {"seen": Range(microseconds(NOON), LARGEST)}),
        ("seen > '2026-11-01 12:00:00'", {"seen": Range(microseconds(NOON) + 1, LARGEST)}),
        ("seen < 2026-11-01", {"seen": Range(SMALLEST, microseconds(NOON) - 12 * 3_600_000_000 - 1)}),
    ],
)
def test_a_text_becomes_conditions(text, on):
    assert read_conditions(text, KINDS) == Conditions(on)


@pytest.mark.parametrize(
    "text",
    [
        "count = 2.5",
        "count < 3 and count > 5",
        "temperature < 3 and temperature > 5",
        "site = 'a' and site = 'b'",
        "site = 'a' and site starts with 'ab'",
        "site starts with 'a' and site starts with 'b'",
        "count > 1e300",
    ],
)
def test_nothing_matches_what_is_impossible(text):
    asked = read_conditions(text, KINDS)
    assert not asked.possible
    assert not wanted(asked, {"count": 2, "temperature": 4.0, "site": "a"})


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("temperature < 'warm'", 14, "expected a number, found \"'warm'\""),
        ("count = 2026-11-01", 8, 'expected a number, found "2026-11-01"'),
        ("site = 3", 7, 'expected a text in quotes, found "3"'),
        ("site < 'm'", 7, "expected = or starts with before a text, found \"'m'\""),
        ("count starts with 'm'", 18, "expected an attribute that holds text: count does not, found \"'m'\""),
        ("seen < 5", 7, 'expected a time such as 2026-11-01T12:00:00Z, found "5"'),
        ("seen < '32 March'", 7, "expected a time such as 2026-11-01T12:00:00Z, found \"'32 March'\""),
        ("seen < 2026-13-01", 7, 'expected a time such as 2026-11-01T12:00:00Z, found "2026-13-01"'),
        ("site = 'north", 7, "expected a text that ends with ', found \"'north\""),
        ("site =", 6, "expected a number, a text in quotes or a time, found the end"),
        ("site 'north'", 5, "expected < <= > >= = or starts with, found \"'north'\""),
        ("'a' starts with site", 4, 'expected < <= > >= or =, found "starts with"'),
        ("temprature < 5", 0, 'unknown attribute "temprature"; did you mean "temperature"?'),
    ],
)
def test_a_bad_text_is_refused_with_its_place(text, position, message):
    with pytest.raises(BadSubscription) as caught:
        read_conditions(text, KINDS)
    assert (caught.value.position, caught.value.message) == (position, message)
    assert read_many([text], KINDS).reasons == [f"{message}, at character {position + 1}"]


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("temperature < 5 and site = 'north'", {"temperature": 4.9, "site": "north"}, True),
        ("temperature < 5 and site = 'north'", {"temperature": 4.9, "site": "North"}, False),
        ("temperature < 5", {"temperature": None}, False),
        ("temperature < 5", {"temperature": math.nan}, False),
        ("temperature < 5", {}, False),
        ("temperature <= 0", {"temperature": -0.0}, True),
        ("temperature > 5", {"temperature": INF}, True),
        ("site starts with ''", {"site": ""}, True),
        ("site starts with ''", {"site": None}, False),
        ("site starts with 'ß'", {"site": "ß𝔘"}, True),
        ("count = 9007199254740993", {"count": 9007199254740992}, False),
        ("seen = 2026-11-01T12:00Z", {"seen": NOON.astimezone(timezone(timedelta(hours=9)))}, True),
        ("seen = 2026-11-01T12:00Z", {"seen": NOON.replace(tzinfo=None)}, True),
        ("seen = 2026-11-01", {"seen": date(2026, 11, 1)}, True),
    ],
)
def test_what_is_wanted(text, event, expected):
    assert wanted(read_conditions(text, KINDS), event) is expected


@given(
    st.sampled_from(["<", "<=", ">", ">=", "="]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats() | st.none(),
)
def test_for_numbers_it_is_the_rule(operator, bound, value):
    asked = read_conditions(f"temperature {operator} {bound!r}", KINDS)
    on = asked.on["temperature"]
    values = np.array([math.nan if value is None else value])
    assert wanted(asked, {"temperature": value}) == matches(values, np.array([on.low]), np.array([on.high]))


NUMBERS = st.sampled_from(["3", "-0.5", "1e3", "1e999", ".5", "7.", "9007199254740993", "2026-11-01", "'x'", '"2"'])
TEXTS = st.one_of(
    NUMBERS.map("temperature < {0}".format),
    NUMBERS.map("{0}<temperature".format),
    NUMBERS.map("count>={0} and site = 'a 5'".format),
    NUMBERS.map("site starts with {0}".format),
    NUMBERS.map("seen <{0} and temperature=3 and temperature > {0}".format),
    NUMBERS.map("count {0}".format),
    NUMBERS.map("site='{0}' and channel='{0}'and temperature>1".format),
    NUMBERS.map("temperature{0}".format),
    st.tuples(NUMBERS, NUMBERS).map(lambda two: f"{two[0]} <= temperature <{two[1]}"),
    st.text(alphabet="count 5'\"<=-.eand", max_size=12),
    st.none(),
)


@given(st.lists(TEXTS, max_size=30))
@example(["count >= 3", "count >= 4", "count >= 5", "count >= 1e999"])
def test_many_texts_are_read_as_one_by_one(texts):
    kinds = KINDS
    readings = read_many(texts, kinds)
    for row, text in enumerate(texts):
        if text is None:
            assert readings.reasons[row] == "no text in the column where"
            continue
        asked, reason = read_or_refused(text, kinds)
        assert readings.reasons[row] == reason
        if asked is None:
            continue
        assert readings.possible[row] == asked.possible
        if asked.possible:
            assert asked_in(readings, row) == asked.on


def read_or_refused(text, kinds):
    try:
        return read_conditions(text, kinds), None
    except BadSubscription as error:
        return None, f"{error.message}, at character {error.position + 1}"


def asked_in(readings, row):
    found = {}
    for name, named in readings.named.items():
        if named[row] and name in readings.word:
            found[name] = Word(readings.word[name][row], bool(readings.whole[name][row]))
        elif named[row]:
            found[name] = Range(readings.low[name][row], readings.high[name][row])
    return found

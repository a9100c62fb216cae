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
    Span,
    beginning,
    exactly,
    kinds_by_use,
    microseconds,
    read_conditions,
    wanted,
)
from serai.core.content import matches
from serai.core.errors import BadSubscription
from serai.core.readings import read_many

KINDS = {
    "temperature": "real",
    "count": "integer",
    "seen": "time",
    "site": "text",
    "channel": "text",
    "alarm": "boolean",
    "serial": "unsigned",
    "温度": "real",
    "तापमान": "real",
    "air temp `5`": "real",
}
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
        ("site = 'north'", {"site": exactly("north")}),
        ('"north" = site', {"site": exactly("north")}),
        ("site starts with 'no'", {"site": beginning("no")}),
        ("site STARTS  WITH ''", {"site": beginning("")}),
        ("site = 'O''Brien'", {"site": exactly("O'Brien")}),
        ("site = 'a' and site starts with 'a'", {"site": exactly("a")}),
        ("site starts with 'no' and site starts with 'nor'", {"site": beginning("nor")}),
        ("seen >= 2026-11-01T12:00:00Z", {"seen": Range(microseconds(NOON), LARGEST)}),
        ("seen >= 2026-11-01T13:00+01:00", {"seen": Range(microseconds(NOON), LARGEST)}),
        ("seen > '2026-11-01 12:00:00'", {"seen": Range(microseconds(NOON) + 1, LARGEST)}),
        ("seen < 2026-11-01", {"seen": Range(SMALLEST, microseconds(NOON) - 12 * 3_600_000_000 - 1)}),
    ],
)
def test_a_text_becomes_conditions(text, on):
    assert read_conditions(text, KINDS) == Conditions(on)


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("alarm = true", [{"alarm": Range(1, 1)}]),
        ("not alarm = TRUE", [{"alarm": Range(0, 0)}]),
        ("alarm != true", [{"alarm": Range(0, 0)}]),
        ("serial > 18446744073709551613", [{"serial": Range(2**64 - 2, 2**64 - 1)}]),
        ("serial > -3", [{"serial": Range(0, 2**64 - 1)}]),
        ("温度 > 30 or तापमान ≤ 2", [{"温度": Range(math.nextafter(30, INF), INF)}, {"तापमान": Range(-INF, 2)}]),
        ("`air temp ``5``` = 5", [{"air temp `5`": Range(5, 5)}]),
        ("not count < 5", [{"count": Range(5, LARGEST)}]),
        ("not (count < 5 or site = 'a')", [{"count": Range(5, LARGEST), "site": Span("", "a")},
                                           {"count": Range(5, LARGEST), "site": Span("a\0", None)}]),
        ("count in (3, 5)", [{"count": Range(3, 3)}, {"count": Range(5, 5)}]),
        ("count not in (3)", [{"count": Range(SMALLEST, 2)}, {"count": Range(4, LARGEST)}]),
        ("not count in (3, 5)", [{"count": Range(SMALLEST, 2)}, {"count": Range(4, 4)}, {"count": Range(6, LARGEST)}]),
        ("¬(2 <= count < 4)", [{"count": Range(SMALLEST, 1)}, {"count": Range(4, LARGEST)}]),
        ("count=1 or count=2 and site = 'a'", [{"count": Range(1, 1)}, {"count": Range(2, 2), "site": exactly("a")}]),
        ("(count = 1 || count = 2) && count > 1", [{"count": Range(2, 2)}]),
        ("not site starts with 'no'", [{"site": Span("", "no")}, {"site": Span("np", None)}]),
        ("not site starts with '\U0010ffff'", [{"site": Span("", "\U0010ffff")}]),
        ("site starts with '\ud7ff'", [{"site": Span("\ud7ff", "\ue000")}]),
        ("not site = ''", [{"site": Span("\0", None)}]),
    ],
)  # fmt: skip
def test_a_text_may_ask_for_one_of_several(text, boxes):
    asked = read_conditions(text, KINDS)
    assert [asked.on, *(other.on for other in asked.others)] == boxes
    readings = read_many(["count = 0", text], KINDS)
    rows = [row for row, owner in enumerate(readings.owner.tolist()) if owner == 1]
    assert [asked_in(readings, row) for row in rows] == boxes


def test_what_it_takes_for_granted_when_events_have_no_types():
    texts = ["alarm = true", "`a 1` < 5 or `a 2` in ('x')", "not seen < 2026-11-01"]
    assert kinds_by_use(texts) == {"alarm": "boolean", "a 1": "real", "a 2": "text", "seen": "time"}


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
        ("alarm = 1", 8, 'expected = true or = false, found "1"'),
        ("alarm < true", 8, 'expected = true or = false, found "true"'),
        ("count = true", 8, 'expected a number, found "true"'),
        ("seen = true", 7, 'expected a time such as 2026-11-01T12:00:00Z, found "true"'),
        ("(count < 3", 10, "expected and, or, or ), found the end"),
        ("count in 3", 9, 'expected ( and a list of values, found "3"'),
        ("count in (3 4)", 12, 'expected , or ), found "4"'),
        ("count not < 3", 10, 'expected in, found "<"'),
        ("not", 3, "expected a comparison such as A1 < 3, found the end"),
        ("or < 3", 0, 'expected a comparison such as A1 < 3, found "or"'),
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
    NUMBERS.map("alarm = true and count>={0}".format),
    NUMBERS.map("count in ({0}, 4) and not temperature < {0}".format),
    NUMBERS.map("serial < {0} or `air temp ``5``` > {0}".format),
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
            rows = [each for each, owner in enumerate(readings.owner.tolist()) if owner == row]
            assert [asked_in(readings, each) for each in rows] == [asked.on, *(other.on for other in asked.others)]


def read_or_refused(text, kinds):
    try:
        return read_conditions(text, kinds), None
    except BadSubscription as error:
        return None, f"{error.message}, at character {error.position + 1}"


def asked_in(readings, row):
    found = {}
    for name, named in readings.named.items():
        if named[row] and name in readings.spans:
            found[name] = readings.spans[name][row]
        elif named[row]:
            found[name] = Range(readings.low[name][row], readings.high[name][row])
    return found

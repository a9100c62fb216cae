"""Topic filters by the standard's examples and against an obvious twin; conditions over JSON payloads."""

import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.node.interests import (
    Content,
    asked,
    covers,
    filter_problem,
    interest,
    read_interest,
    topic_matches,
    topic_problem,
    where_filter,
)


@pytest.mark.parametrize(  # MQTT 5, section 4.7
    ("filter", "topic", "expected"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("sport/#", "sports", False),
        ("#", "sport/tennis", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player2", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/uptime", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/uptime", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("ACCOUNTS", "Accounts", False),
        ("+/tennis/#", "sport/tennis", True),
    ],
)
def test_filters_of_the_standard(filter, topic, expected):
    assert filter_problem(filter) is None
    assert topic_matches(filter, topic) is expected


@pytest.mark.parametrize(
    "filter", ["sport/tennis#", "sport/tennis/#/ranking", "sport+", "", "a\0b", "a" * 1025, "+a/b"]
)
def test_what_is_no_filter(filter):
    assert filter_problem(filter)


@pytest.mark.parametrize("topic", ["", "a/+", "a/#", "a\0", "é" * 513, "$SYS/x", "$share/a/b"])
def test_what_is_no_topic(topic):
    assert topic_problem(topic)
    assert topic_problem("a/ b/ü/") is None


def slow_matches(filter, topic):
    """Level by level."""
    asked, found = filter.split("/"), topic.split("/")
    if topic.startswith("$") and asked[0] in ("+", "#"):
        return False

    def rest(i, j):
        if i == len(asked):
            return j == len(found)
        if asked[i] == "#":
            return True
        return j < len(found) and asked[i] in ("+", found[j]) and rest(i + 1, j + 1)

    return rest(0, 0)


def every(levels, most):
    return ["/".join(some) for size in range(1, most + 1) for some in itertools.product(levels, repeat=size)]


TOPICS = [topic for topic in every(["a", "", "ab", "$S"], 3) if topic]
FILTERS = [filter for filter in every(["a", "", "+", "#", "$S"], 3) if filter_problem(filter) is None]


def test_all_small_filters_and_topics_as_level_by_level():
    for filter in FILTERS:
        for topic in TOPICS:
            assert topic_matches(filter, topic) is slow_matches(filter, topic), (filter, topic)


def test_a_filter_covers_another_if_it_asks_for_all_that_it_asks_for():
    """`ab` stands for every name that no filter holds, so what is true of these topics is true of all."""
    topics = every(["a", "", "ab", "$S"], 4)
    wanted = {filter: {topic for topic in topics if slow_matches(filter, topic)} for filter in FILTERS}
    for wide in FILTERS:
        for narrow in FILTERS:
            assert covers(wide, narrow) is (wanted[narrow] <= wanted[wide]), (wide, narrow)


READING = {
    "temperature": 21.5,
    "site": "north",
    "seen": "2026-11-01T12:00:00Z",
    "deep": {"er": 3},
    "ok": True,
    "no": None,
}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("temperature > 20", True),
        ("temperature > 21.5", False),
        ("20 < temperature <= 21.5 and site = 'north'", True),
        ("site starts with 'no'", True),
        ("site = 'south'", False),
        ("seen >= 2026-11-01T12:00:00+01:00", True),
        ("seen > 2026-11-01T12:00:00Z", False),
        ("deep.er = 3", True),
        ("missing < 3", False),
        ("site < 3", False),  # a text is no number
        ("temperature starts with '2'", False),  # nor the reverse
        ("ok = 1", False),
        ("ok = true", True),
        ("not ok = true", False),
        ("site = true", False),
        ("site in ('south', 'north') and temperature != 3", True),
        ("(temperature < 3 or site = 'east') or deep.er > 2", True),
        ("no < 1", False),
        ("temperature > 3 and temperature < 2", False),
    ],
)
def test_conditions_over_json(where, expected):
    content = Content("field/7", json.dumps(READING).encode())
    assert interest("field/+", where).matches(content) is expected
    assert not interest("other/+", where).matches(content)


@pytest.mark.parametrize(
    "payload", [b"", b"21.5", b"[1]", b'"a"', b"{", b"\xff", b"{" * 100_000, b'{"a": ' * 10_000, b"null"]
)
def test_a_payload_that_is_no_json_object_meets_no_condition(payload):
    assert not interest("#", "a < 3").matches(Content("t", payload))
    assert interest("#").matches(Content("t", payload))


@given(st.sampled_from(FILTERS) | st.just("a?b/%3F"), st.sampled_from(["", "a < 3", "s = 'what?' and t > 2026-11-01"]))
def test_an_interest_is_told_as_text_and_read_again(filter, where):
    told = interest(filter, where)
    assert read_interest(str(told)) == told
    assert str(told).startswith("c:" if where else "t:")


@pytest.mark.parametrize("text", ["", "t:", "x:a", "c:a", "c:a?", "c:a?b", "t:a+", "c:a?b <", "t:" + "a" * 1025])
def test_interests_that_cannot_be_read(text):
    with pytest.raises(BadInput):
        read_interest(text)


def test_what_a_client_asks_for():
    assert str(asked("a/+").interest) == "t:a/+"
    assert asked("$share/g/a/#").group == "g"
    assert str(asked("$share/g/a/#").interest) == "t:a/#"
    where = "t > 3 and s = 'a/b'"
    assert asked(where_filter("a/#", where)).interest == interest("a/#", where)
    assert asked("a/#", where).interest == interest("a/#", where)
    assert asked(f"$share/g/$where/{quote('t > 3', safe='')}/a", "s = 'x'").interest == interest(
        "a", "(s = 'x') and (t > 3)"
    )
    for wrong in ("$share/g", "$share//a", "$share/g+/a", "$where/a", "$where//a", "$where/t%20%3C/a", "$share/g/"):
        with pytest.raises(BadInput):
            asked(wrong)

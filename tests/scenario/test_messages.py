"""What is said about a bad scenario: every problem, its place, the line with a caret, and the remedy."""

import datetime
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput, BadScenario
from serai.field.sections import FieldScenario
from serai.kinds import PROTOCOLS
from serai.lab import load_scenario, parse_scenario
from serai.scenario.load import builtin_names
from serai.scenario.section import known_keys


def problems_of(text, overrides=(), protocol=None):
    with pytest.raises(BadScenario) as caught:
        parse_scenario(text, "my.toml", overrides, protocol)
    return caught.value.problems


# The table, what is written in it, the column of the caret and the message.
BAD_VALUES = [
    ("field", 'width = "200 mm2"', 9, 'unknown unit "mm2"; did you mean "mm"?'),
    ("field", "width = 200", 9, 'a length needs a unit; write "200 m"'),
    ("field", 'width = "0 m"', 9, "must be more than 0 m"),
    ("field", 'height = "2 h"', 10, '"h" is a unit of time; a length is needed, such as "200 m"'),
    ("field", "cells = 0", 9, "at least one column and one row are needed"),
    ("field", "cells = [15, -1]", 9, "at least one column and one row are needed"),
    ("field", "cells = [15]", 9, "expected a number such as 15, or columns and rows such as [15, 12]"),
    ("field", "cells = 1.5", 9, "expected a number such as 15, or columns and rows such as [15, 12]"),
    ("field", "cells = 200_001", 9, "200,001 columns over 200 m would be less than 1 mm wide"),
    ("field", "cells = [20_000, 20_000]", 9, "at most 100,000,000 cells are possible"),
    ("field", 'widht = "200 m"', 1, 'unknown key; did you mean "width"?'),
    ("field", 'grid = "15"', 1, "unknown key; did you mean field.cells?"),
    ("field", "rate = 20", 1, "unknown key; did you mean radio.rate?"),
    ("field", "zzz = 20", 1, "unknown key; one of: width, height, cells, origin"),
    ("sweep", "sedes = 3", 1, 'unknown key; did you mean "seeds"?'),
    ("sweep", "seeds = 0", 9, "must be at least 1"),
    ("sweep", 'protocols = "ced"', 13, 'expected a list such as ["ced", "dg"]'),
    ("sensors", "count = 0", 9, "must be at least 1"),
    ("sensors", "count = -3", 9, "must be at least 1"),
    ("sensors", "count = 1e2", 9, "expected a whole number such as 100"),
    ("sensors", "count = true", 9, "expected a whole number such as 100"),
    ("sensors", 'count = "100"', 9, "expected a whole number; write 100 without quotes"),
    ("sensors", 'queue = "200 events"', 9, "expected a whole number such as 200"),
    ("sensors", "queue = 0", 9, "must be at least 1"),
    ("sensors", "queue = 1_000_001", 9, "must be at most 1,000,000"),
    ("sensors", "capacity = 3", 1, "unknown key; did you mean sensors.queue?"),
    ("sensors", 'battery = "0 J"', 11, "must be more than 0 J"),
    ("sensors", 'battery = "10 MJ"', 11, 'unknown unit "MJ"; did you mean "mJ"?'),
    ("sensors", 'battery = "9001 kJ"', 11, "must be at most 9000 kJ"),
    ("sensors", 'placement = "gird"', 13, 'unknown value "gird"; did you mean "grid"?'),
    ("sensors", "placement = 3", 13, "expected one of: uniform, grid, file"),
    ("sensors", 'placement = "file"', 13, 'needs a file of positions; write file = "sensors.csv"'),
    ("sensors", 'file = "here.csv"', 8, 'only used with placement = "file"'),
    ("sensors", "file = 3", 8, "expected the name of a file in quotes"),
    ("subscribers", "count = -1", 9, "must be at least 0"),
    ("subscribers", 'speed_min = "-1 m/s"', 13, "must be at least 0 m/s"),
    ("subscribers", 'speed_max = "0 m/s"', 13, "must be more than 0 m/s"),
    ("subscribers", 'speed_min = "6 m/s"', 13, "speed_min (6 m/s) is above speed_max (5 m/s)"),
    ("subscribers", 'speed_max = "1 km/h"', 13, "speed_min (1 m/s) is above speed_max (0.277778 m/s)"),
    ("subscribers", 'pause_min = "3 min"', 13, "pause_min (180 s) is above pause_max (120 s)"),
    ("subscribers", 'start = "warm"', 9, 'unknown value "warm"; one of: cold, steady'),
    ("subscribers", 'v_max = "3 m/s"', 1, "unknown key; did you mean subscribers.speed_max?"),
    ("events", 'interval = "0 s"', 12, "must be more than 0 s"),
    ("events", 'interval = "1 ns"', 12, 'unknown unit "ns"; did you mean "s"?'),
    (
        "events",
        'interval = "1e-6 s"',
        12,
        "about 7e+11 events would be born; at most 1,000,000,000 are possible",
    ),
    ("events", 'quiet = "3 h"', 9, 'quiet (10800 s) is longer than the run (7200 s): choose less, down to "0 s"'),
    ("events", 'beta = "3 h"', 1, "unknown key; did you mean events.lifetime?"),
    ("events", 'size = "0.5 bit"', 8, "must be a whole number of bits"),
    ("events", "attributes = 3", 14, "expected a table, such as [events.attributes]"),
    ("events", "attributes = {}", 14, "between 1 and 16 attributes are possible"),
    ("events.attributes", "A1 = {low = 5, high = 5}", 6, "low (5) must be below high (5)"),
    ("events.attributes", "A1 = 3", 6, 'expected a table, such as {kind = "real", low = 0, high = 10}'),
    ("subscriptions", 'where = "B1 < 3"', 10, 'unknown attribute "B1"; one of: A1, A2'),
    ("subscriptions", 'where = """A1 <"""', 16, "expected a number or ?, found the end"),
    ("subscriptions", 'where = "A1 \\u003c"', 9, "expected a number or ?, found the end"),
    ("subscriptions", "where = []", 9, 'expected a text such as "A1 < 3", or a list of such texts'),
    ("subscriptions", "where = [3]", 9, 'expected a text such as "A1 < 3", or a list of such texts'),
    ("radio", "rate = 0", 8, "must be at least 1"),
    ("radio", "receive_costs = 1", 17, "expected true or false"),
    ("radio", 'range = "0 m"', 9, "must be more than 0 m"),
    ("radio", 'range = "60 s"', 9, '"s" is a unit of time; a length is needed, such as "200 m"'),
    ("radio", 'range = "60"', 9, 'a length needs a unit; write "60 m"'),
    ("radio", "range = 60", 9, 'a length needs a unit; write "60 m"'),
    (
        "radio",
        'electronics = "50 nJ"',
        15,
        '"nJ" is a unit of energy; an energy per bit is needed, such as "50 nJ/bit"',
    ),
    ("control", "hello = 64", 9, 'a size needs a unit; write "64 bit"'),
    ("protocol", 'name = "cde"', 8, 'unknown protocol "cde"; did you mean "ced"?'),
    ("protocol", "name = 3", 8, f"expected one of: {', '.join(PROTOCOLS)}"),
    ("protocol", "alpha = -1", 9, "must be at least 0"),
    ("protocol", 'alpha = "ten"', 9, "expected a whole number such as 20"),
    ("protocol", "gamma = 4", 1, "a setting of cet and cet-plus, not of ced"),
    ("protocol", 'theta = "5 J"', 1, "a setting of cet and cet-plus, not of ced"),
    ("protocol", 'reach = "touching"', 1, "a setting of dg, not of ced"),
    ("protocol", "alhpa = 4", 1, 'unknown key; did you mean "alpha"?'),
    ("protocol", 'zone = "paths"', 8, 'unknown value "paths"; did you mean "path"?'),
]


@pytest.mark.parametrize(("table", "line", "column", "message"), BAD_VALUES)
def test_one_bad_value(table, line, column, message):
    (problem,) = problems_of(f"# what a scenario\n[{table}]\n{line}")
    assert problem.message == message
    assert problem.where == f"{table}.{line.split()[0]}"
    assert (problem.file, problem.line, problem.column, problem.source) == ("my.toml", 3, column, line)


INSIDE_A_VALUE = [
    ("A1 = {low = 5}", 6, "A1.high", "missing"),
    ("A1 = {low = 0, high = nan}", 23, "A1.high", "must be finite"),
    ('A1 = {low = "0", high = 1}', 13, "A1.low", "expected a number; write 0 without quotes"),
    ('A1 = {low = "x", high = 1}', 13, "A1.low", "expected a number"),
    ("A1 = {lo = 0, low = 0, high = 1}", 7, "A1.lo", 'unknown key; did you mean "low"?'),
    ('A1 = {kind = "int", low = 0, high = 1}', 14, "A1.kind", 'unknown value "int"; did you mean "integer"?'),
    (
        "and = {low = 0, high = 1}",
        7,
        "and",
        '"and" cannot be a name: a letter or _, then letters, digits, _ . or -,'
        " and no word of the language such as and",
    ),
    (
        "A1 = {kind = 'integer', low = 0, high = 0.5}",
        6,
        "A1",
        "low and high of an integer attribute must be whole numbers",
    ),
]


@pytest.mark.parametrize(("line", "column", "where", "message"), INSIDE_A_VALUE)
def test_one_bad_attribute(line, column, where, message):
    (problem,) = problems_of(f"[subscriptions]\nwhere = 'A1 < 3'\n[events.attributes]\n{line}")
    assert (problem.line, problem.column, problem.message) == (4, column, message)
    assert problem.where == f"events.attributes.{where}"


def test_one_bad_subscription_of_a_list():
    (problem,) = problems_of("[subscriptions]\nwhere = ['A1 < 3',\n  'A2 > 1 adn A1 < 3']")
    assert (problem.where, problem.line, problem.column, problem.width) == (
        "subscriptions.where[1]",
        3,
        11,
        3,
    )
    assert problem.message == 'expected and, or the end, found "adn"'


TOP_LEVEL = [
    ("alpha = 3", 1, "alpha", "unknown key; did you mean protocol.alpha?"),
    ('beta = "3 s"', 1, "beta", "unknown key; did you mean events.lifetime?"),
    ("gamma = 3", 1, "gamma", "unknown key; did you mean protocol.gamma?"),
    ('theta = "3 J"', 1, "theta", "unknown key; did you mean protocol.theta?"),
    ('"queue size" = 3', 1, '"queue size"', "unknown key; did you mean sensors.queue?"),
    ("capacity = 3", 1, "capacity", "unknown key; did you mean sensors.queue?"),
    ("field = 3", 9, "field", "expected a table, such as [field]"),
    ("protocol = 'ced'", 12, "protocol", 'expected a table: [protocol] with name = "ced"'),
    ("[sensor]", 1, "sensor", 'unknown key; did you mean "sensors"?'),
    ("[[sensors]]", 1, "sensors", "expected a table, such as [sensors]"),
    ("Field.width = '3 m'", 1, "Field", 'unknown key; did you mean "field"?'),
    ("duration = '1.5 s'", 12, "duration", "must be a whole number of seconds"),
    ("duration = '0 s'", 12, "duration", "must be at least 1 s"),
    ("duration = 2024-01-01", 12, "duration", 'expected a time such as "2 h"'),
    ("title = 3", 9, "title", "expected a text in quotes"),
    ("field.width = '3 x'", 15, "field.width", 'unknown unit "x"; one of: m, km, cm, mm, ft'),
    ("field = {width = '3 m', cells = 0}", 33, "field.cells", "at least one column and one row are needed"),
]


@pytest.mark.parametrize(("line", "column", "where", "message"), TOP_LEVEL)
def test_one_bad_line(line, column, where, message):
    (problem,) = problems_of(line)
    assert (problem.where, problem.line, problem.column, problem.message) == (where, 1, column, message)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a = = 3", 1, 5, "not valid TOML: invalid value"),
        ("[field\n", 1, 7, "not valid TOML: expected ']' at the end of a table declaration"),
        ("# x\ntitle = 'x", 2, 11, 'not valid TOML: expected "\'"'),
        ("[field]\nwidth = 200 m", 2, 13, None),
        ("[protocol]\r\nname = ced\r\n", 2, 8, None),
        ("x = 1\nx = 2", 2, 6, "not valid TOML: cannot overwrite a value"),
        ("\0", 1, 1, "not valid TOML: invalid statement"),
    ],
)
def test_a_text_that_is_no_toml(text, line, column, message):
    (problem,) = problems_of(text)
    assert (problem.where, problem.file, problem.line, problem.column) == ("", "my.toml", line, column)
    assert message is None or problem.message == message


@pytest.mark.parametrize(("line", "quoted"), [("width = 200 m", '"200 m"'), ("name = ced", '"ced"')])
def test_a_value_without_its_quotes_gets_the_remedy(line, quoted):
    (problem,) = problems_of(line)
    assert problem.message.endswith(f"write it in quotes: {quoted}")


def test_the_message_as_a_whole():
    with pytest.raises(BadScenario) as caught:
        parse_scenario('[field]\n\twidth = "200 mm2"\n[sensors]\ncuont = 3\n', "my.toml", ["protocol.alpha=ten"])
    assert str(caught.value) == "\n".join(
        [
            'field.width: unknown unit "mm2"; did you mean "mm"?  --> my.toml:2:10',
            '    \twidth = "200 mm2"',
            "    \t        ^^^^^^^^^",
            'sensors.cuont: unknown key; did you mean "count"?  --> my.toml:4:1',
            "    cuont = 3",
            "    ^^^^^",
            "protocol.alpha: expected a whole number such as 20  --> --set protocol.alpha=ten",
        ]
    )


def test_all_problems_come_at_once_also_those_that_others_hide():
    text = """
    duration = "1 min"
    zzz = 1
    [field]
    width = 200
    cells = 0
    [subscribers]
    speed_min = "7 m/s"
    pause_min = "9 min"
    pause_max = "3 hours"
    [events]
    quiet = "2 min"
    size = 250
    [events.attributes]
    A1 = {kind = "reel", low = 1}
    [subscriptions]
    where = ["A1 < 3", "A1 <"]
    [protocol]
    name = "cet"
    gamma = -1
    """
    assert [problem.where for problem in problems_of(text)] == [
        "zzz",
        "field.width",
        "field.cells",
        "subscribers.speed_min",
        "subscribers.pause_max",
        "events.quiet",
        "events.size",
        "events.attributes.A1.high",
        "events.attributes.A1.kind",
        "subscriptions.where[1]",
        "protocol.gamma",
    ]


def test_a_problem_is_not_made_up_from_a_default_in_place_of_a_bad_value():
    (problem,) = problems_of('[subscribers]\nspeed_min = "7 m/s"\nspeed_max = "9 ms"')
    assert problem.where == "subscribers.speed_max"


def test_an_unknown_protocol_does_not_hide_the_rest():
    text = '[protocol]\nname = "gossip"\n[events]\nquiet = "3 h"'
    assert [problem.where for problem in problems_of(text)] == ["protocol.name", "events.quiet"]


def test_every_spelling_of_a_violation_points_at_what_was_written():
    text = '[subscribers]\nspeed_max = "4 m/s"'
    (problem,) = problems_of(text, ["subscribers.speed_min=5 m/s"])
    assert problem.file == "--set subscribers.speed_min=5 m/s"
    assert problem.line is None


def test_too_many_attributes():
    lines = "\n".join(f"A{k} = {{low = 0, high = 1}}" for k in range(1, 18))
    (problem,) = problems_of(f"[events.attributes]\n{lines}")
    assert (problem.where, problem.line) == ("events.attributes", 1)


@pytest.mark.parametrize(
    ("override", "where", "message"),
    [
        ("protocol.alpha=ten", "protocol.alpha", "expected a whole number such as 20"),
        ("alpha=10", "alpha", "unknown key; did you mean protocol.alpha?"),
        ("protocl.alpha=10", "protocl", 'unknown key; did you mean "protocol"?'),
        ("title.x=10", "title.x", "title is not a table"),
        ("field.width=200", "field.width", 'a length needs a unit; write "200 m"'),
        ("protocol=ced", "protocol", 'expected a table: [protocol] with name = "ced"'),
        ("protocol.name=xxx", "protocol.name", f'unknown protocol "xxx"; one of: {", ".join(PROTOCOLS)}'),
        ('subscriptions.where="A1 <"', "subscriptions.where", "expected a number or ?, found the end"),
    ],
)
def test_a_bad_change_is_shown_as_it_was_typed(override, where, message):
    (problem,) = problems_of("title = 'x'", [override])
    assert (problem.where, problem.message, problem.file) == (where, message, f"--set {override}")
    assert str(problem) == f"{where}: {message}  --> --set {override}"


@pytest.mark.parametrize("override", ["x", "=3", "a b=3", "a.=3", ""])
def test_what_is_no_change_at_all(override):
    (problem,) = problems_of("", [override])
    assert str(problem) == f"--set {override}: no key=value; write it like protocol.alpha=10"


def test_the_file_is_put_right_before_it_is_run_under_another_protocol():
    problems = problems_of('[protocol]\nname = "ced"\nalhpa = 3', ["protocol.gamma=3"], "cet")
    assert [problem.where for problem in problems] == ["protocol.alhpa"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fiedl", 'no scenario "fiedl", neither a file nor built-in; did you mean "field"?'),
        ("nowhere", f'no scenario "nowhere", neither a file nor built-in; one of: {", ".join(builtin_names())}'),
        ("mine.toml", "no such file: mine.toml"),
        (".", ". is a folder, not a scenario"),
    ],
)
def test_a_source_that_is_not_there(source, message):
    with pytest.raises(BadInput) as caught:
        load_scenario(source)
    assert str(caught.value) == message


def test_an_unknown_protocol():
    with pytest.raises(BadInput) as caught:
        load_scenario("field", protocol="cedd")
    assert str(caught.value) == 'unknown protocol "cedd"; did you mean "ced"?'


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "my.toml"
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(BadInput, match=r"is not UTF-8 text \(byte 9\)"):
        load_scenario(path)


def test_errors_survive_pickling():
    with pytest.raises(BadScenario) as caught:
        parse_scenario("x = 1")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems
    assert str(again) == str(caught.value)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "5 m", "1e9 s", "ced", "file", "A1 < ?", "x.csv", "once", datetime.date(2024, 1, 1)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["A1", "low", "high", "kind", "name", "count", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from([*known_keys(FieldScenario), "events.attributes.A1", "field.x", "x", "sensors.count.x"])


@given(st.dictionaries(KEYS, ANYTHING, max_size=5), st.sampled_from([None, *PROTOCOLS]))
def test_whatever_is_written_is_a_scenario_or_a_list_of_problems(changes, protocol):
    try:
        problems = parse_scenario("[field]\nwidth = '9 m'", overrides=changes, protocol=protocol) and ["none"]
    except BadScenario as error:
        problems = str(error).splitlines()
    assert problems


@given(st.text(alphabet="[]{}=.,\"'#\n aeflid15\\", max_size=25))
def test_whatever_the_text_is(text):
    try:
        problems = parse_scenario(text) and ["none"]
    except BadScenario as error:
        problems = str(error).splitlines()
    assert problems

"""Clocks that are off, found by contacts of which a good clock tells too."""

import random
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from serai.pipeline.clocks import APART_S, Clock, Views, clocks_of, clocks_table, with_clocks
from serai.pipeline.config import load_pipeline
from serai.pipeline.reports import cells_of
from serai.pipeline.run import run_once
from serai.pipeline.summary import Summary
from serai.pipeline.tables import Tables
from serai.spark.stores import Folder
from tests.pipeline.field import BEGIN, CONFIG, NOW, event, make_field, put, rows_of
from tests.pipeline.test_pipeline import once

HOUR = 3600.0


def told(*rows: tuple[str, str, str, float, str | None]) -> Views:
    """What nodes tell of contacts: a, b, who tells, when it began by its clock, of which epoch."""
    names = ["a", "b", "heard_by", "start_s", "epoch"]
    kinds = [pa.string()] * 3 + [pa.float64(), pa.string()]
    columns = zip(*rows, strict=True) if rows else [[]] * 5
    return Views(pa.table([pa.array(list(each), kind) for each, kind in zip(columns, kinds, strict=True)], names))


def both(node: str, peer: str, at_s: list[float], off_s: float, epoch: str | None = None) -> list[tuple]:
    """Contacts of which the node tells by a clock that is off, and its peer by a good one."""
    mine = [(node, peer, node, time_s + off_s, epoch) for time_s in at_s]
    return mine + [(peer, node, peer, time_s, None) for time_s in at_s]


def test_clocks_that_are_right_ahead_and_behind() -> None:
    days = [86_400.0 * day for day in range(5)]
    rows = both("right", "ferry", days, 2.0) + both("ahead", "ferry", days, HOUR) + both("behind", "ferry", days, -90.0)
    keys = [("right", "1"), ("ahead", "1"), ("behind", "1"), ("alone", "1"), ("ferry", "1")]
    assert clocks_of(told(*rows), keys, ["ferry"]) == [
        Clock("ahead", "1", "corrected", HOUR, 5),
        Clock("alone", "1", "unknown", None, 0),
        Clock("behind", "1", "corrected", -90.0, 5),
        Clock("ferry", "1", "good", 0.0, 0),
        Clock("right", "1", "good", 2.0, 5),
    ]
    assert {clock.clock for clock in clocks_of(told(*rows), keys, [])} == {"unknown"}  # nobody's clock is good


def test_each_boot_has_a_clock_of_its_own() -> None:
    rows = both("n", "ferry", [0.0, HOUR], -50 * HOUR, "1") + both(
        "n", "ferry", [9 * HOUR, 11.5 * HOUR], -80 * HOUR, "2"
    )
    keys = [("n", "1"), ("n", "2"), ("n", "3")]
    found = [(clock.clock, clock.offset_s) for clock in clocks_of(told(*rows), keys, ["ferry"])]
    assert found == [("corrected", -50 * HOUR), ("corrected", -80 * HOUR), ("unknown", None)]
    # Contacts that do not say of which boot they are tell nothing of any, unless all say the same.
    unnamed = [(a, b, teller, start_s, None) for a, b, teller, start_s, _ in rows]
    assert [clock.clock for clock in clocks_of(told(*unnamed), keys, ["ferry"])] == ["unknown"] * 3
    same = both("n", "ferry", [0.0, HOUR, 9 * HOUR], 2 * HOUR)
    assert [clock.offset_s for clock in clocks_of(told(*same), keys, ["ferry"])] == [2 * HOUR] * 3


def test_carriers_that_do_not_agree_are_not_good_unless_they_are_named() -> None:
    days = [86_400.0 * day for day in range(5)]
    rows = both("bus", "ferry", days, HOUR) + both("n", "bus", [each + 100 for each in days], -HOUR)
    keys = [("bus", ""), ("ferry", ""), ("n", "")]
    assert [clock.clock for clock in clocks_of(told(*rows), keys, ["bus", "ferry"])] == ["unknown"] * 3
    by_ferry = {clock.node: clock for clock in clocks_of(told(*rows), keys, ["bus", "ferry"], ["ferry"])}
    assert (by_ferry["bus"].clock, by_ferry["bus"].offset_s, by_ferry["n"].clock) == ("corrected", HOUR, "unknown")


@pytest.mark.parametrize("seed", range(20))
def test_contacts_of_which_only_one_tells_do_no_harm(seed: int) -> None:
    """Of irregular contacts each side has lost a third: what is off is found, or it is said that it is not known."""
    draw = random.Random(seed)
    off_s = draw.choice([0.0, -5.0, HOUR, -40 * 86_400.0])
    starts = sorted(draw.uniform(0, 30 * 86_400) for _ in range(30))
    rows = [
        ("n", "ferry", "n", start_s + off_s + draw.uniform(-5, 5), "1") for start_s in starts if draw.random() > 0.33
    ]
    rows += [("n", "ferry", "ferry", start_s, None) for start_s in starts if draw.random() > 0.33]
    (found,) = clocks_of(told(*rows), [("n", "1")], ["ferry"])
    assert found.offset_s == pytest.approx(off_s, abs=10)
    assert found.clock == ("good" if abs(off_s) <= APART_S else "corrected")


def test_contacts_that_may_be_taken_for_each_other_say_nothing() -> None:
    """A ferry that comes each hour, and a node that tells of one contact only: which one it was, nobody knows."""
    hours = [HOUR * hour for hour in range(5)]
    rows = [("n", "ferry", "ferry", start_s, None) for start_s in hours]
    lost = [*rows, ("n", "ferry", "n", 2.5 * HOUR, None)]
    assert clocks_of(told(*lost), [("n", "")], ["ferry"])[0].clock == "unknown"
    right = [*rows, ("n", "ferry", "n", 2 * HOUR, None)]
    assert clocks_of(told(*right), [("n", "")], ["ferry"])[0].clock == "good"


@pytest.mark.parametrize(
    ("agreeing", "epochs", "expected"), [(2, 1, "unknown"), (6, 1, "corrected"), (6, 2, "unknown")]
)
def test_half_of_the_contacts_must_agree_and_nearly_all_if_they_may_be_of_several_boots(
    agreeing: int, epochs: int, expected: str
) -> None:
    """Of ten contacts some are an hour ahead; the others differ by what no two have in common."""
    rows = both("n", "ferry", [1e6 * number**2 for number in range(agreeing)], HOUR)
    for number in range(agreeing, 10):
        rows += both("n", "ferry", [1e6 * number**2], HOUR + 200.0 * number**2)
    found = clocks_of(told(*rows), [("n", str(epoch)) for epoch in range(epochs)], ["ferry"])
    assert {clock.clock for clock in found} == {expected}


def test_events_keep_their_time_and_get_a_corrected_one() -> None:
    times = pa.array([BEGIN, None, BEGIN, BEGIN], pa.timestamp("us", "UTC"))
    events = pa.table({"node": ["a", "a", "b", None], "epoch": ["1", "1", "1", None], "time": times})
    clocks = clocks_table([Clock("a", "1", "corrected", -1.5, 3), Clock("b", "1", "good", 9.0, 3)], 0)
    found = with_clocks(events, clocks)
    assert found["time"].to_pylist() == times.to_pylist()
    assert found["clock"].to_pylist() == ["corrected", "corrected", "good", "unknown"]
    assert found["corrected"].to_pylist() == [BEGIN + timedelta(seconds=1.5), None, BEGIN, None]
    assert set(with_clocks(events, clocks_table([], 0))["clock"].to_pylist()) == {"unknown"}


def files_of_a_field() -> list[tuple[str, list[dict]]]:
    """n1's clock is an hour behind, n2's was never set; the ferry met both each day, and brought n3's log."""
    days = [BEGIN + timedelta(days=day) for day in range(4)]

    def contacts(node: str, off_s: float, teller: str) -> list[dict]:
        shift = timedelta(seconds=off_s if teller == node else 0)
        starts = [(day + shift).isoformat() for day in days]
        ends = [(day + shift + timedelta(minutes=5)).isoformat() for day in days]
        pairs = zip(starts, ends, strict=True)
        return [{"a": node, "b": "ferry", "start": s, "end": e, "heard_by": teller, "epoch": 1} for s, e in pairs]

    unset_s = 600.0 - BEGIN.timestamp()
    late = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=5)).isoformat()
    return [
        ("n1.csv", [event(1, seq) for seq in range(3)]),
        ("n2.csv", [event(2, 1) | {"seen": late}]),
        ("n3.csv", [event(3, 1, carrier="ferry")]),
        *((f"{node}-{teller}.csv", contacts(node, off_s, teller))
          for node, off_s in (("n1", -HOUR), ("n2", unset_s)) for teller in (node, "ferry")),
    ]  # fmt: skip


@pytest.fixture
def field(tmp_path: Path) -> Path:
    return make_field(tmp_path, CONFIG.replace("quarantined = 1", "quarantined = 1, clocks = true"))


def test_a_field_with_clocks_that_are_off(field: Path) -> None:
    for name, rows in files_of_a_field():
        put(field.parent / "inbox", name, rows)
    status = once(field)
    nodes = {node.node: node for node in status.nodes}
    assert [nodes[name].clock for name in ("n1", "n2", "n3")] == [
        "3,600 s behind; corrected",
        "never set; corrected",
        "good",
    ]
    assert "the clock of n1: 3,600 s behind; corrected" in status.alerts
    # n1's last event was said to be at 2 h 1 min; n2's at 5 h after its clock began, 10 minutes before BEGIN.
    assert nodes["n1"].silent_s == NOW - BEGIN.timestamp() - 3 * HOUR - 60
    assert nodes["n2"].silent_s == NOW - BEGIN.timestamp() - 5 * HOUR + 600
    assert nodes["n1"].median_delay_s == pytest.approx(NOW - BEGIN.timestamp() - 2 * HOUR - 60, rel=0.03)
    assert nodes["n2"].median_delay_s is None  # known to 2 % of 56 years
    home = Folder(field.parent / "home")
    cells = [cells_of(Summary(home, status.batches), clocks)["n1"].begin_s[0] for clocks in ((), status.clocks)]
    assert [begin_s - BEGIN.timestamp() for begin_s in cells] == [0, HOUR]
    tables = Tables(home)
    events = with_clocks(tables.read("events"), tables.read("clocks")).to_pylist()
    assert {row["event"]: row["corrected"] - row["time"] for row in events if row["node"] == "n1"} == {
        f"n1/1/{seq}": timedelta(hours=1) for seq in range(3)
    }
    versions = tables.table("clocks").version()  # type: ignore[union-attr]
    once(field)
    assert Tables(Folder(field.parent / "home")).table("clocks").version() == versions  # type: ignore[union-attr]


def test_clocks_do_not_depend_on_the_order_in_which_files_came(tmp_path: Path) -> None:
    files = files_of_a_field()
    answers = []
    for number, order in enumerate(list(permutations(range(len(files))))[:: 5040 // 4]):
        field = make_field(tmp_path / str(number))
        for place in order:
            put(field.parent / "inbox", *files[place])
            run_once(load_pipeline(field), now=lambda: NOW)
        columns = "node", "epoch", "clock", "offset_s", "contacts"
        answers.append(rows_of(field.parent / "home", "clocks", *columns))
    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)
    assert [row[:3] for row in answers[0]] == [
        ("n1", "1", "corrected"),
        ("n2", "1", "corrected"),
        ("n3", "1", "unknown"),
    ]

"""When sensors lived that die and wake: what is asked of the table of naps, against second by second."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serai.cli.runs import measured
from serai.field.equipment import Harvest
from serai.field.log import Ledger, Naps
from serai.field.metrics import alive_over_time
from serai.field.naps import cut, first_death_s, lived_at, lived_s
from serai.field.summary import summary_field
from serai.lab import measure
from tests.log import hand_made

SECONDS = 20


class Lives(NamedTuple):
    """Of three sensors: in which seconds each lived, and what a ledger says of that."""

    lived: list[list[bool]]
    ledger: Ledger


@st.composite
def lives(draw: st.DrawFn) -> Lives:
    """Sensors that die with the end of a second and wake with the end of a later one, again and again, or for good."""
    lived, died, naps = [], [], []
    for sensor in range(3):
        changes = sorted(draw(st.sets(st.integers(0, SECONDS - 1), max_size=7)))
        pairs = list(zip(changes[::2], changes[1::2], strict=False))
        naps += [(sensor, since, until) for since, until in pairs]
        died.append(changes[-1] if len(changes) % 2 else -1)
        asleep = {second for since, until in pairs for second in range(since + 1, until + 1)}
        gone = SECONDS if died[-1] < 0 else died[-1] + 1
        lived.append([second not in asleep and second < gone for second in range(SECONDS)])
    naps.sort(key=lambda nap: nap[2])
    columns = np.array(naps, np.int32).reshape(-1, 3).T.copy()
    ledger = hand_made.ledger(hand_made.world([], []))
    return Lives(lived, ledger._replace(died=np.array(died, np.int32), naps=Naps(*columns)))


@given(lives())
def test_who_lived_when(given: Lives) -> None:
    sensor, second = np.repeat(np.arange(3), SECONDS), np.tile(np.arange(SECONDS), 3)
    assert lived_at(given.ledger, sensor, second).tolist() == [one for row in given.lived for one in row]
    assert lived_s(given.ledger, SECONDS).tolist() == [sum(row) for row in given.lived]
    ends = [second for row in given.lived for second in range(SECONDS - 1) if row[second] and not row[second + 1]]
    ends += [SECONDS - 1] * int((given.ledger.died == SECONDS - 1).sum())
    assert first_death_s(given.ledger) == (min(ends) if ends else None)


@given(lives())
def test_how_many_live_from_which_second_on(given: Lives) -> None:
    short = hand_made.scenario().model_copy(update={"duration_s": SECONDS})
    run = hand_made.run(hand_made.world([], []), given.ledger, short)
    since_s, count = alive_over_time(run)
    found = [int(count[np.searchsorted(since_s, second, side="right") - 1]) for second in range(SECONDS)]
    assert found == np.sum(given.lived, axis=0).tolist()
    metrics = measure(run)
    assert metrics.alive_share == np.mean(given.lived)
    assert metrics.wakings == len(given.ledger.naps.node)


@given(lives(), st.lists(st.tuples(st.integers(0, 2), st.integers(0, SECONDS), st.integers(0, SECONDS)), max_size=5))
def test_spans_without_the_times_in_which_their_sensors_were_dead(
    given: Lives, spans: list[tuple[int, int, int]]
) -> None:
    sensor, start_s, end_s = np.array(spans, np.int64).reshape(-1, 3).T
    row, begins, ends = cut(given.ledger, sensor, start_s, end_s)
    found: list[list[int]] = [[] for _ in spans]
    for one, begin, end in sorted(zip(row.tolist(), begins.tolist(), ends.tolist(), strict=True)):
        assert begin < end
        found[one] += range(begin, end)
    lived = [[second for second in range(start, end) if given.lived[of][second]] for of, start, end in spans]
    assert [[second for second in one if second < SECONDS] for one in found] == lived


def test_a_run_says_on_the_terminal_how_often_sensors_died_and_woke() -> None:
    """Of 20 seconds the first sensor is dead for 3, 2 and 4, the last one for 3: 48 of 60 are lived."""
    naps = Naps(*np.array([(2, 1, 4), (0, 3, 6), (0, 9, 11)], np.int32).T.copy())
    world = hand_made.world([], [])
    ledger = hand_made.ledger(world)._replace(died=np.array([15, -1, -1], np.int32), naps=naps)
    short = hand_made.scenario().model_copy(update={"duration_s": SECONDS})
    sunny = hand_made.run(world._replace(harvest=Harvest(np.ones((3, 24)), 0.1, 0)), ledger, short)
    lines = measured(summary_field(sunny, measure(sunny)), measure(sunny)).splitlines()
    assert " died               4   times, woke 3 times; lived 80.0 % of the run" in lines
    dark = hand_made.run(world, ledger._replace(naps=None), short)
    assert "woke" not in measured(summary_field(dark, measure(dark)), measure(dark))

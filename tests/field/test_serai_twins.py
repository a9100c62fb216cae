"""SERAI twice: the compiled kernel, and the plain twin whose nodes know what messages told them, are equal row by row.

All that a world may have is in them: cells and ranges, full queues, deaths, sensors that harvest and wake, events lost
on the air. What is seen of single slots (`Watched`) is left out: the twin has no sessions that it could be asked for.
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings

import serai
from serai.field.simulation import build_world, order_key
from tests.conftest import UNCOMPILED
from tests.field.naive.parts import DEAD, EXPIRED, SPENT, Drop, Records
from tests.field.naive.serai import Serai
from tests.field.worlds import Case, cases, product_records

WHAT_IS_EQUAL = (
    "died",
    "receptions",
    "transfers",
    "kept",
    "drops_by_reason",
    "transmissions",
    "sent",
    "received",
    "event_pj",
    "control_pj",
    "idle_pj",
    "steady_pj",
    "harvested_pj",
    "wasted_pj",
)


def assert_equal(case: Case) -> None:
    """Number for number, the most telling difference first."""
    kernel, twin = product_records(*case), Serai(*case).run()
    for name in WHAT_IS_EQUAL:
        assert getattr(kernel, name) == getattr(twin, name), name
    assert sorted(kernel.naps) == sorted(twin.naps)
    assert list(drops(kernel)) == list(drops(twin))
    assert +kernel.control_messages == +twin.control_messages
    assert +kernel.control_bits == +twin.control_bits


def drops(records: Records) -> Iterator[tuple[Drop, tuple[int, bool, int]]]:
    """The drops; of those that clearings and deaths drop all at once, in order of their numbers."""
    for is_at_once, group in groupby(zip(records.drops, records.whose, strict=True), is_dropped_with_others):
        rows = list(group)
        yield from sorted(rows) if is_at_once else rows


def is_dropped_with_others(row: tuple[Drop, tuple[int, bool, int]]) -> int:
    """A number for a clearing or the deaths of a second; 0 for a drop by itself."""
    drop = row[0]
    if drop.reason in (EXPIRED, SPENT):
        return 2 * drop.time_s + 1
    return 2 * drop.time_s + 2 if drop.reason == DEAD else 0


def in_health(case: Case) -> Case:
    """The same world, but nobody dies and nothing is lost: after deaths little happens."""
    everlasting = np.full(len(case.world.sensor_x), 1000.0)
    world = case.world._replace(battery_j=everlasting, failing=np.zeros(0, np.int32), idle_w=None)
    radio = case.scenario.radio.model_copy(update={"loss": 0.0})
    return Case(world, case.scenario.model_copy(update={"radio": radio}), case.key)


many = settings(max_examples=2 * settings().max_examples)  # small worlds are quick, and often dull


@many
@given(cases("serai").map(in_health))
def test_serai_is_its_plain_twin(case: Case) -> None:
    assert_equal(case)


@many
@given(cases("serai"))
def test_it_is_so_when_sensors_die_communities_part_and_events_are_lost(case: Case) -> None:
    assert_equal(case)


@many
@given(cases("serai", sun=True))
def test_it_is_so_when_the_dead_wake(case: Case) -> None:
    assert_equal(case)


@pytest.mark.parametrize("seed", range(1, 3 if UNCOMPILED else 5))
def test_a_community_of_many_is_played_alike(seed: int) -> None:
    """The papers' field, a quarter of its sensors and five minutes of its two hours; prices change."""
    changes = {"sensors.count": 25, "subscribers.count": 6, "duration": "300 s", "protocol.price_interval": 30}
    scenario = serai.load_scenario("field", changes | {"protocol.t_0": "1000 d"}, protocol="serai")
    assert_equal(Case(build_world(scenario, seed), scenario, order_key(seed)))

"""What holds in every run of the field protocols, whatever the world: asked of the product's own log."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import serai
from serai.field.protocols import PROTOCOLS
from serai.field.sections import FieldScenario
from serai.field.simulation import run_protocol
from serai.field.world import World
from serai.world.grid import Grid
from tests.field.naive import play
from tests.field.naive.field import tracks_of
from tests.field.naive.parts import (
    DEAD,
    EXPIRED,
    FULL,
    PLACEMENT,
    RELAY,
    RETURN,
    SOURCE,
    SPENT,
    STRANDED,
    Drop,
    Reception,
    Records,
    Transfer,
    receive_pj,
    transmit_pj,
    visit_at,
)
from tests.field.worlds import Case, Happening, any_cases, build_scenario, build_world, product_records

# --- Time ---------------------------------------------------------------------------------------------------

FIELD = list(PROTOCOLS)


@given(any_cases)
def test_nothing_is_received_before_its_birth_or_after_its_lifetime(case: Case) -> None:
    """Expiry comes before birth in a slot, so in the slot of its birth an event can be had at any age."""
    births, lifetime = case.world.event_time_s, case.scenario.events.lifetime_s
    for reception in product_records(*case).receptions:
        age = reception.time_s - births[reception.event]
        assert 0 <= age <= lifetime or reception.time_s == math.ceil(births[reception.event])


# --- Queues and copies --------------------------------------------------------------------------------------


class Replay:
    """The queues as the log says they must have been, copy by copy, checked at every row."""

    def __init__(self, case: Case, records: Records) -> None:
        self.world, self.scenario = case.world, case.scenario
        self.sensors = len(case.world.sensor_x)
        self.stored: Counter[tuple[int, int]] = Counter()  # (sensor, event)
        self.relayed: Counter[tuple[int, int]] = Counter()
        self.relays = Counter(created=0, ended=0)
        self.died = records.died
        self.followed = 0
        rows = list(zip(records.drops, [after for *_, after in records.whose], strict=True))
        for slot in range(self.scenario.duration_s):
            dropped = [drop for drop, _ in rows if drop.time_s == slot]
            self.after = [after for drop, after in rows if drop.time_s == slot and drop.reason != DEAD]
            self.drops = [drop for drop in dropped if drop.reason != DEAD]
            self.dead = Counter((drop.node, drop.event) for drop in dropped if drop.reason == DEAD)
            self.expire(slot)
            self.bear(slot)
            self.strand()
            self.follow([row for row in records.transfers if row.time_s == slot])
            self.bury([sensor for sensor, died in enumerate(records.died) if died == slot])
            assert not self.drops, "a drop that nothing explains"

    def held(self, sensor: int) -> int:
        return sum(n for copies in (self.stored, self.relayed) for (at, _), n in copies.items() if at == sensor)

    def capacity(self, sensor: int) -> int:
        return self.scenario.sensors.queue if self.world.queue is None else int(self.world.queue[sensor])

    def add(self, copies: Counter[tuple[int, int]], sensor: int, event: int) -> None:
        copies[sensor, event] += 1
        assert self.held(sensor) <= self.capacity(sensor)

    def take(self, copies: Counter[tuple[int, int]], sensor: int, event: int) -> None:
        assert copies[sensor, event] > 0, "a copy that was not there"
        copies[sensor, event] -= 1

    def end_relay(self, sensor: int, event: int) -> None:
        self.take(self.relayed, sensor, event)
        self.relays["ended"] += 1

    def pop(self) -> Drop:
        del self.after[0]
        return self.drops.pop(0)

    def next_drop_is(self, event: int, node: int, reason: str) -> bool:
        """Whether that is the next row of the slot's drops; if so, it is used up.

        One that met a full queue stands right after its transfer: the same may meet it twice in a second.
        """
        if self.drops and self.drops[0][1:] == (event, node, reason):
            if reason == FULL and self.after[0] != self.followed:
                return False
            del self.drops[0], self.after[0]
            return True
        return False

    def expire(self, slot: int) -> None:
        """All copies of an event expire in one slot, wherever they are: the drops are exactly those."""
        said = Counter[tuple[int, int]]()
        while self.drops and self.drops[0].reason == EXPIRED:
            drop = self.pop()
            said[drop.node, drop.event] += 1
        too_old = {
            key: number
            for key, number in (self.stored + self.relayed).items()
            if slot - self.world.event_time_s[key[1]] > self.scenario.events.lifetime_s
        }
        assert said == too_old
        for key in too_old:
            self.relays["ended"] += self.relayed.pop(key, 0)
            self.stored.pop(key, None)

    def bear(self, slot: int) -> None:
        for event, sensor in enumerate(self.world.event_sensor.tolist()):
            dead = 0 <= self.died[sensor] < slot
            if math.ceil(self.world.event_time_s[event]) == slot and not dead:
                if self.next_drop_is(event, sensor, FULL):
                    assert self.held(sensor) == self.capacity(sensor)
                else:
                    self.add(self.stored, sensor, event)

    def strand(self) -> None:
        while self.drops and self.drops[0].reason == STRANDED and self.after[0] == self.followed:
            drop = self.pop()
            self.end_relay(drop.node, drop.event)

    def follow(self, rows: list[Transfer]) -> None:
        for number, row in enumerate(rows, start=1):
            self.followed += 1
            if row.kind in (SOURCE, RELAY):
                self.hop(row)
                self.spend(row, rows[number:])
            elif not row.accepted:
                self.take(self.dead, row.receiver, row.event)
            elif number == len(rows) or rows[number].kind != PLACEMENT:
                self.store(row.event, row.receiver)

    def hop(self, row: Transfer) -> None:
        """A stored copy sends a relayed one out, or a relayed one moves on."""
        if row.kind == SOURCE:
            assert self.stored[row.sender, row.event] > 0
            self.relays["created"] += 1
        else:
            self.take(self.relayed, row.sender, row.event)
        if row.receiver >= self.sensors:
            self.relays["ended"] += 1
        elif row.accepted:
            self.add(self.relayed, row.receiver, row.event)
        else:
            if not self.next_drop_is(row.event, row.receiver, FULL):
                self.take(self.dead, row.receiver, row.event)
            else:
                assert self.held(row.receiver) == self.capacity(row.receiver)
            self.relays["ended"] += 1

    def spend(self, row: Transfer, later: list[Transfer]) -> None:
        """In a turn the copies with most sendings behind them go last, so the last sendings spent them."""
        to_drop = sum(drop[1:] == (row.event, row.sender, SPENT) for drop in self.drops)
        to_send = sum(other.kind == SOURCE and other[1:3] == row[1:3] for other in later)
        if row.kind == SOURCE and to_drop > to_send:
            assert self.next_drop_is(row.event, row.sender, SPENT)
            self.take(self.stored, row.sender, row.event)

    def store(self, event: int, place: int) -> None:
        """A returned event has come to its place, or to a sensor that cannot pay to send it on and dies with it."""
        if self.next_drop_is(event, place, FULL):
            assert self.held(place) == self.capacity(place)
        elif self.held(place) == self.capacity(place):
            self.take(self.dead, place, event)
        else:
            self.add(self.stored, place, event)

    def bury(self, dying: list[int]) -> None:
        """What lay in the queues of those who died is lost, and nobody else lost anything; deaths strand, too."""
        held = {key: n for key, n in (self.stored + self.relayed).items() if key[0] in dying}
        assert +self.dead == held
        for key in held:
            self.relays["ended"] += self.relayed.pop(key, 0)
            self.stored.pop(key, None)
        self.strand()


@given(any_cases)
def test_queues_never_overflow_and_copies_are_conserved(case: Case) -> None:
    """Every copy that came into being was delivered, dropped with a reason, or lies in a queue at the end."""
    replay = Replay(case, product_records(*case))
    assert replay.relays["created"] == replay.relays["ended"] + replay.relayed.total()
    left_over = play(*case).left_over
    for sensor, queue in enumerate(left_over):
        in_replay = [key for key in (replay.stored + replay.relayed).elements() if key[0] == sensor]
        assert sorted(in_replay) == sorted((sensor, copy.event) for copy in queue)


# --- Rates --------------------------------------------------------------------------------------------------


@given(any_cases)
def test_nobody_is_faster_than_the_rate(case: Case) -> None:
    """A subscriber's receptions and returns, a sensor's sendings; with `budget = "link"`, each pair alone."""
    rows, rate = product_records(*case).transfers, case.scenario.radio.rate
    sensors = len(case.world.sensor_x)
    sent = [row for row in rows if row.kind in (SOURCE, RELAY)]
    assert max(Counter((row.time_s, row.sender, row.receiver) for row in sent).values(), default=0) <= rate
    if case.scenario.protocol.name != "dg":
        assert max(Counter((row.time_s, row.sender) for row in sent).values(), default=0) <= rate
    if getattr(case.scenario.protocol, "budget", "subscriber") == "subscriber":
        ends = [(row.time_s, max(row.sender, row.receiver)) for row in rows if max(row[2:4]) >= sensors]
        assert max(Counter(ends).values(), default=0) <= rate


# --- The ledger ---------------------------------------------------------------------------------------------


@given(any_cases)
def test_the_ledger_is_the_full_log_added_up(case: Case) -> None:
    assert_added_up(case, product_records(*case))


def assert_added_up(case: Case, records: Records) -> None:
    """Every sum of the ledger is that of the full log's rows."""
    nodes = len(case.world.sensor_x)
    accepted = [row for row in records.transfers if row.accepted]
    assert counts(row.event for row in records.transfers) == numbered(records.transmissions)
    assert counts(row.sender for row in records.transfers if row.sender < nodes) == numbered(records.sent)
    assert counts(row.receiver for row in accepted if row.receiver < nodes) == numbered(records.received)
    assert counts(drop.reason for drop in records.drops) == +records.drops_by_reason
    assert first_receptions(case.world, accepted) == [reception[:3] for reception in records.receptions]
    assert energy_of(case, records.transfers) == records.event_pj


def counts(things: Any) -> Counter[Any]:
    return Counter(things)


def numbered(values: list[int]) -> Counter[Any]:
    return +Counter(dict(enumerate(values)))


def first_receptions(world: World, rows: list[Transfer]) -> list[tuple[int, int, int]]:
    """Event, subscriber and time of each transfer that was the first of its kind."""
    first: dict[tuple[int, int], int] = {}
    sensors = len(world.sensor_x)
    for row in rows:
        if row.receiver >= sensors:
            first.setdefault((row.event, row.receiver - sensors), row.time_s)
    return [(event, subscriber, time_s) for (event, subscriber), time_s in first.items()]


def energy_of(case: Case, rows: list[Transfer]) -> list[int]:
    """What the transfers cost each sensor."""
    world, radio, bits = case.world, case.scenario.radio, case.scenario.events.size_bits
    sensors, tracks = len(world.sensor_x), list(tracks_of(world))
    spent = [0] * (sensors + len(tracks))

    def place(node: int, time_s: int) -> tuple[float, float]:
        if node < sensors:
            return float(world.sensor_x[node]), float(world.sensor_y[node])
        visit = visit_at(tracks[node - sensors], time_s)
        return visit.x, visit.y

    for row in rows:
        far = math.dist(place(row.sender, row.time_s), place(row.receiver, row.time_s))
        spent[row.sender] += transmit_pj(radio, bits, far)
        spent[row.receiver] += receive_pj(radio, bits) if row.accepted else 0
    return spent[:sensors]


@given(any_cases)
def test_the_ledger_is_the_same_with_and_without_the_full_log(case: Case) -> None:
    with_log, _ = run_protocol(*case, True)
    without, nothing = run_protocol(*case, False)
    assert nothing is None
    assert contents(with_log) == contents(without)


def contents(table: Any) -> Any:
    """A tuple of arrays, tuples and plain values with the bytes of its arrays."""
    if isinstance(table, np.ndarray):
        return table.dtype.str, table.shape, table.tobytes()
    if isinstance(table, tuple):
        return tuple(contents(column) for column in table)
    return table


# --- Seeds --------------------------------------------------------------------------------------------------


def a_scenario(protocol: str) -> FieldScenario:
    return FieldScenario.model_validate(
        {
            "duration": "400 s",
            "field": {"width": "90 m", "height": "70 m", "cells": [9, 7]},
            "sensors": {"count": 15},
            "subscribers": {"count": 3},
            "events": {"quiet": "0 s", "interval": "20 s"},
            "protocol": {"name": protocol},
        }
    )


@pytest.mark.parametrize("protocol", FIELD)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(protocol: str) -> None:
    run, again, other = (serai.simulate(a_scenario(protocol), seed=seed, full_log=True) for seed in (7, 7, 8))
    assert run.ledger.reception_s.size > 0
    assert contents(run.world) == contents(again.world)
    assert contents(run.ledger) == contents(again.ledger)
    assert contents(run.full) == contents(again.full)
    assert contents(run.ledger) != contents(other.ledger)


def test_protocols_under_one_seed_see_identical_worlds() -> None:
    worlds = [contents(serai.simulate(a_scenario("ced"), protocol, seed=3).world) for protocol in FIELD]
    assert worlds == worlds[:1] * len(FIELD)


# --- Worlds small enough to work out on paper ---------------------------------------------------------------
#
# Cells of 10 m, 250 bits an event, radio as in both papers. In picojoules per bit: electronics 50,000; over
# 10 m 1,000 more; over two cell diagonals (d^2 = 800 m^2) 8,000 more.

ELECTRONICS, TEN_METRES, TWO_DIAGONALS = 50_000, 51_000, 58_000
HELLO, REPLY, PATH, ROUTE, ELECTION, NOTICE = 64, 96, 256, 64, 64, 64  # bits
ROW = [(10.0 * column + 5, 5.0) for column in range(7)]  # the middles of a row of cells


def row_of(cells: int) -> Grid:
    return Grid(10.0 * cells, 10.0, cells, 1)


def test_two_sensors_and_a_subscriber_beside_the_second_under_ced() -> None:
    """The event takes one hop in second 1 and the next in second 2."""
    world = build_world(row_of(3), 5, ROW[:2], [[(0.0, *ROW[2])]], [Happening(0, 0.5)])
    scenario = build_scenario(world, 5, {"name": "ced", "hops": "one"})
    records = product_records(world, scenario, 0)
    assert records.transfers == [Transfer(1, 0, 0, 1, 2, SOURCE, True), Transfer(2, 0, 1, 2, 2, RELAY, True)]
    assert records.receptions == [Reception(0, 0, 2, True)]
    assert records.event_pj == [250 * TEN_METRES, 250 * (ELECTRONICS + TEN_METRES)]
    assert records.event_pj == [12_750_000, 25_250_000]
    assert +records.control_messages == {"hello": 1, "reply": 1, "path": 2, "route": 2}
    assert +records.control_bits == {"hello": HELLO, "reply": REPLY, "path": 2 * PATH, "route": 2 * ROUTE}
    floods = (PATH + ROUTE) * (TWO_DIAGONALS + ELECTRONICS)
    assert records.control_pj == [floods, floods + HELLO * ELECTRONICS + REPLY * TWO_DIAGONALS]
    assert records.control_pj == [34_560_000, 43_328_000]


def test_the_same_without_costs_of_receiving() -> None:
    world = build_world(row_of(3), 5, ROW[:2], [[(0.0, *ROW[2])]], [Happening(0, 0.5)])
    scenario = build_scenario(world, 5, {"name": "ced"}, radio={"receive_costs": False})
    records = product_records(world, scenario, 0)
    assert records.event_pj == [250 * TEN_METRES] * 2
    assert records.control_pj == [18_560_000, 24_128_000]


def test_two_sensors_and_a_subscriber_beside_the_second_under_dg() -> None:
    """The second sensor's event is sent in each of the seconds 1 to 4; the first sensor's never."""
    world = build_world(row_of(3), 5, ROW[:2], [[(0.0, *ROW[2])]], [Happening(0, 0.25), Happening(1, 0.5)])
    scenario = build_scenario(world, 5, {"name": "dg"})
    records = product_records(world, scenario, 0)
    assert records.transfers == [Transfer(second, 1, 1, 2, 2, SOURCE, True) for second in (1, 2, 3, 4)]
    assert records.receptions == [Reception(1, 0, 1, True)]
    assert records.event_pj == [0, 4 * 250 * TEN_METRES]
    assert records.control_pj == [0, HELLO * ELECTRONICS + REPLY * TWO_DIAGONALS]


@pytest.mark.parametrize("protocol", [name for name in FIELD if name != "serai"])  # it always listens
def test_nothing_is_said_to_a_pausing_subscriber_if_it_is_silent_then(protocol: str) -> None:
    world = build_world(row_of(3), 5, ROW[:2], [[(0.0, *ROW[2])]], [Happening(1, 0.5)])
    records = product_records(world, build_scenario(world, 5, {"name": protocol, "silent_while_pausing": True}), 0)
    assert records.transfers == []
    assert records.control_messages["hello"] == records.control_messages["path"] == 0


def test_a_loners_event_is_returned_to_two_sensors_under_cet() -> None:
    """Sensor 0 hands over in second 1, at distance 0. In second 10 the subscriber is beside sensor 2, which
    takes the event in, asks the head (sensor 1, 10 m away), and passes it on to be stored there.
    """
    walk = [(0.0, *ROW[0]), (9.5, *ROW[0]), (10.0, *ROW[6])]
    world = build_world(row_of(7), 15, [ROW[0], ROW[4], ROW[5]], [walk], [Happening(0, 1.0)])
    records = product_records(world, build_scenario(world, 15, {"name": "cet", "return_memory": "returner"}), 0)
    assert records.transfers == [
        Transfer(1, 0, 0, 3, 3, SOURCE, True),
        Transfer(10, 0, 3, 2, -1, RETURN, True),
        Transfer(10, 0, 2, 1, -1, PLACEMENT, True),
    ]
    assert records.event_pj == [250 * ELECTRONICS, 250 * ELECTRONICS, 250 * (ELECTRONICS + TEN_METRES)]
    assert +records.control_messages == {
        "hello": 2,
        "reply": 2,
        "path": 2,
        "route": 2,
        "election": 4,
        "notice": 2,
    }
    contact = HELLO * ELECTRONICS + REPLY * TWO_DIAGONALS
    floods = (2 * ELECTION + PATH + ROUTE) * (TWO_DIAGONALS + ELECTRONICS)
    notices = NOTICE * (TEN_METRES + ELECTRONICS)
    assert records.control_pj == [contact, floods + notices, floods + notices + contact]
    assert records.control_pj == [8_768_000, 54_848_000, 63_616_000]


def test_a_returned_event_is_sent_to_its_returner_again_if_its_memory_is_empty() -> None:
    walk = [(0.0, *ROW[0]), (9.5, *ROW[0]), (10.0, *ROW[6])]
    world = build_world(row_of(7), 15, [ROW[0], ROW[4], ROW[5]], [walk], [Happening(0, 1.0)])
    records = product_records(world, build_scenario(world, 15, {"name": "cet", "hops": "one"}), 0)
    assert records.transfers[3:] == [
        Transfer(11, 0, 1, 2, 3, SOURCE, True),
        Transfer(12, 0, 2, 3, 3, RELAY, True),
    ]
    assert records.receptions == [Reception(0, 0, 1, True)]


def test_beyond_d0_the_amplifier_takes_the_fourth_power() -> None:
    """d0 = sqrt(10 / 0.0013) = 87.7 m; over 100 m the amplifier takes 0.0013 * 100^4 = 130,000 pJ a bit."""
    grid = Grid(200.0, 100.0, 2, 1)
    world = build_world(grid, 3, [(50.0, 50.0)], [[(0.0, 150.0, 50.0)]], [Happening(0, 1.0)])
    records = product_records(world, build_scenario(world, 3, {"name": "ced"}), 0)
    assert records.event_pj == [250 * (ELECTRONICS + 130_000)]


def test_events_at_one_instant_are_sent_the_younger_number_first() -> None:
    """Three events at 2.0 s, `rate` 2: the two with the larger numbers in second 2, the other in second 3."""
    world = build_world(row_of(1), 5, ROW[:1], [[(0.0, *ROW[0])]], [Happening(0, 2.0)] * 3)
    for protocol in ({"name": "ced"}, {"name": "dg", "resend": "once"}):
        records = product_records(world, build_scenario(world, 5, protocol, radio={"rate": 2}), 0)
        assert [(row.time_s, row.event) for row in records.transfers] == [(2, 2), (2, 1), (3, 0)]
        assert records.drops == []

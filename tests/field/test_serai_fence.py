"""Nothing is known at a node of SERAI's plain version that no message told it."""

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.world.grid import Grid
from tests.field.naive.parts import Point, Records
from tests.field.naive.serai import Serai
from tests.field.naive.serai.copies import Assignment, Copy
from tests.field.naive.serai.legs import Leg, Reach, moves_on
from tests.field.naive.serai.manual import Dials, Manual
from tests.field.naive.serai.messages import Announce, Errand, Event, Map, Prices, Reply, Subscription
from tests.field.naive.serai.sensor import Sensor
from tests.field.naive.serai.subscriber import Carried, Subscriber, Task
from tests.field.test_serai_rules import CARRIER, NOTHING, TWO_COMMUNITIES, middle
from tests.field.worlds import ANYTHING, Case, Happening, Walk, build_scenario, build_world, cases, tracks_from

dials = st.builds(
    Dials,
    lam=st.sampled_from([2.0, 20.0, 200.0]),
    kappa=st.sampled_from([0.0, 20.0]),
    mu_w=st.sampled_from([0.0, 2.0]),
    phi=st.sampled_from([0.0, 0.5, 1.0]),
    carriers=st.integers(0, 2),
    hc=st.integers(0, 5),
)


any_power = st.booleans().flatmap(lambda sun: cases("dg", sun))
few = settings(max_examples=max(settings().max_examples // 3, 1))  # these worlds are played in plain Python, and twice


class Apart(Serai):
    """Every node lives by itself: time and again it is packed up and unpacked, with nothing but what it remembers."""

    def act(self) -> None:
        if self.now % 7 == 0:
            self.pack_up()
        super().act()

    def pack_up(self) -> None:
        self.minds = [pickle.loads(pickle.dumps(mind)) for mind in self.minds]
        self.walkers = [pickle.loads(pickle.dumps(walker)) for walker in self.walkers]


@few
@given(any_power, dials)
def test_nodes_that_are_kept_apart_do_the_same(case: Case, some: Dials) -> None:
    assert books(Apart(*case, some)) == books(Serai(*case, some))


def books(network: Serai) -> Records:
    """The records of a run, but for the copies that are left over."""
    return replace(network.run(), left_over=[])


PLAIN = {int, float, bool, str, type(None), tuple, list, dict, set, frozenset, deque}
TOLD = {Announce, Errand, Event, Leg, Point, Map, Prices, Reply, Subscription}
BOOK = {Manual, Dials, Reach, Grid}
OF_A_SENSOR = {Sensor, Copy, Assignment}
OF_A_SUBSCRIBER = {Subscriber, Carried, Task}


def known_to(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Everything that can be reached from an object."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    yield thing
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = [*thing, *thing.values()]
    elif is_dataclass(thing):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    elif isinstance(thing, Sensor | Subscriber):
        parts = list(vars(thing).values())
    elif not isinstance(thing, str | bytes) and hasattr(thing, "__iter__"):
        parts = list(thing)
    for part in parts:
        yield from known_to(part, seen)


@few
@given(any_power, dials)
def test_a_node_holds_numbers_and_what_it_was_told(case: Case, some: Dials) -> None:
    network = Serai(*case, some)
    network.run()
    for mind in network.minds:
        assert {type(thing) for thing in known_to(mind, {})} <= PLAIN | TOLD | BOOK | OF_A_SENSOR
        assert [thing for thing in known_to(mind, {}) if isinstance(thing, Sensor)] == [mind]
    for walker in network.walkers:
        assert {type(thing) for thing in known_to(walker, {})} <= PLAIN | TOLD | BOOK | OF_A_SUBSCRIBER
        assert [thing for thing in known_to(walker, {}) if isinstance(thing, Subscriber)] == [walker]


@few
@given(any_power, dials, st.integers(0, 60))
def test_nobody_knows_where_the_next_leg_will_lead(case: Case, some: Dials, now: int) -> None:
    """Legs that begin later lead somewhere else, and events to come are others: up to now all is the same."""
    world, scenario, key = case
    short = scenario.model_copy(update={"duration_s": now + 1})
    values = world.event_values.copy()
    values[world.event_time_s > now] = 2.25
    walks = [led_astray(body.track, body.legs, now, world.grid) for body in Serai(*case, some).subscribers]
    tracks = tracks_from([track for track, _ in walks])
    legs = [begin + leg for begin, (_, legs) in zip(tracks.start.tolist(), walks, strict=False) for leg in legs]
    other = world._replace(tracks=tracks, legs=np.array(legs, np.int32), event_values=values)
    assert books(Serai(world, short, key, some)) == books(Serai(other, short, key, some))


def led_astray(track: list[Point], legs: list[int], now: int, grid: Grid) -> tuple[Walk, list[int]]:
    """A track up to the first leg that begins after now, which leads to a corner of the field; and its legs."""
    for i, (here, there) in enumerate(pairwise(track)):
        if here.time_s > now and legs[i] == i and moves_on(here, there):
            corner = (0.0, 0.0) if here[1:] != (0.0, 0.0) else (grid.width_m, 0.0)
            return [*track[: i + 1], (here.time_s + 7.0, *corner)], [*legs[: i + 1], i + 1]
    return track, legs


class Scrambled(Serai):
    """From 15 s on, the sensors of the second community remember nothing as it was."""

    def act(self) -> None:
        if self.now == 15:
            for mind in self.minds[2:]:
                mind.queue, mind.known, mind.heard = [], {}, 99
                mind.prices = Prices({2: 15, 3: 15})
                mind.ring.clear()
        super().act()


def test_what_a_community_remembers_matters_where_it_is_told() -> None:
    """The other community goes on as before until somebody comes from there with what he was told."""
    births = [Happening(number % 4, 9.5 + 0.25 * number) for number in range(60)]
    world = build_world(
        Grid(200.0, 50.0, 20, 5), 30, [middle(c) for c in TWO_COMMUNITIES], CARRIER, births, [NOTHING, ANYTHING]
    )
    scenario = build_scenario(world, 30, {"name": "dg"})
    whole, scrambled = Serai(world, scenario, 0, Dials()).run(), Scrambled(world, scenario, 0, Dials()).run()
    assert [row for row in whole.transfers if row.sender < 2] == [row for row in scrambled.transfers if row.sender < 2]
    assert whole.event_pj[:2] == scrambled.event_pj[:2]
    assert whole.control_pj[:2] == scrambled.control_pj[:2]
    assert whole.transfers != scrambled.transfers

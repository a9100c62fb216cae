"""SERAI by hand where something changes on the way: promises lapse, communities part, the dead wake.

Each world is played by the kernel and by its plain twin.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from serai.field.equipment import Harvest
from serai.field.passes import Ranges
from serai.field.world import World
from serai.world.grid import Grid
from tests.field.naive.parts import EXPIRED, RELAY, RETURN, SOURCE, Drop, Records, Transfer
from tests.field.naive.serai import Serai
from tests.field.test_serai import CELL_M, NOTHING, bits, middle, row_of, scenario_of, standing, walking
from tests.field.worlds import ANYTHING, Bounds, Happening, Place, Walk, build_world, product_records

GRID = Grid(12 * CELL_M, 8 * CELL_M, 12, 8)


def played_twice(world: World, slots: int, settings: dict[str, Any] | None = None, **sections: Any) -> Records:
    """What the kernel says of a world, if the twin says the same."""
    scenario = scenario_of(world, slots, settings, **sections)
    kernel, twin = product_records(world, scenario, 0), Serai(world, scenario, 0).run()
    assert kernel.transfers == twin.transfers
    assert +kernel.control_bits == +twin.control_bits
    return kernel


def value(wanted: float) -> Bounds:
    return ((wanted, wanted),)


# --- Promises to walkers ------------------------------------------------------------------------------------

# Six hops from the first sensor, round the top, to the last one, which is two columns away from it.
HORSESHOE = [(0, 3), (0, 2), (0, 1), (1, 0), (2, 1), (2, 2), (2, 3)]


def test_a_walker_is_given_nothing_after_the_time_of_the_promise() -> None:
    """Between both ends stands a walker, with 500 bits a second; beside the last one stands who wants event 0.

    Event 0 is promised at 11 s. At 12 s, the last second of the walker's pause, an event of its own leaves too little.
    At 13 s it is still there and has nothing to do, but is on another leg: the promise is void, and lapses at 15 s.
    """
    walks = [standing(3, 3), walking((0, 1, 3), (13, 1, 3), (18, 11, 3))]
    events = [Happening(0, 10.5, (1.0,)), Happening(0, 11.5, (2.0,))]
    world = build_world(GRID, 20, [middle(*cell) for cell in HORSESHOE], walks, events, [value(1.0), value(2.0)])
    records = played_twice(world, 20, {"clear_interval": 5}, radio={"rate": 2})
    wanting, walker = 7, 8
    assert records.transfers == [
        Transfer(12, 1, 0, walker, walker, SOURCE, True),
        Transfer(15, 0, 0, 1, wanting, SOURCE, True),
        *[Transfer(15, 0, hop, hop + 1, wanting, RELAY, True) for hop in range(1, 5)],
        Transfer(16, 0, 5, wanting, wanting, SOURCE, True),
    ]


def test_what_is_not_heard_of_several_goals_is_still_promised_to_a_walker() -> None:
    """Nothing is ever heard. At 11 s one of two who want the event announces another leg: it is promised for that one.

    In the same second it is new, and is sent to both in vain. All is as before, and at 12 s the walker is to have it.
    """
    walks = [walking((0, 3, 3), (11, 3, 3), (12, 3.1, 3)), standing(3, 3), standing(1, 3)]
    wants = [ANYTHING, ANYTHING, NOTHING]
    world = build_world(GRID, 13, [middle(*cell) for cell in HORSESHOE], walks, [Happening(0, 10.5)], wants)
    records = played_twice(world, 13, radio={"loss": 0.999999})
    first, walker = 7, 9
    assert records.transfers == [
        *[Transfer(11, 0, 0, 1, -1, SOURCE, False)] * 4,
        *[Transfer(12, 0, 0, walker, first, SOURCE, False)] * 4,
    ]


@pytest.mark.parametrize(("loss", "maps"), [(0.999999, 4), (0.0, 0)])
def test_who_was_not_heard_of_alone_is_in_the_want_map_of_the_next(loss: float, maps: int) -> None:
    """Three in a row, two who want the event beside the last. Each is sent to on its own, and the last may carry.

    If all four tries for the first are in vain, it is in the want map that goes out with those for the second.
    """
    world = build_world(GRID, 3, row_of(3), [standing(3), standing(3)], [Happening(0, 0.5)])
    records = played_twice(world, 3, {"multicast": False, "carriers": 1}, radio={"loss": loss})
    addressees = [row.addressee for row in records.transfers if row.time_s == 1 and row.sender == 0]
    assert addressees == ([3] * 4 + [4] * 4 if maps else [3, 4])
    assert records.control_bits["want_map"] == maps * len(world.low)


def test_each_part_of_a_community_knows_who_passes_it() -> None:
    """As above, and one more sensor within reach of the walker, connected with the others by one that fails at 5 s.

    At 8 s the walker sets out for a place in the same cell: it announces that to both parts, and is asked by the first.
    """
    cells = [(1, 4), (1, 3), (1, 2), (2, 1), (3, 2), (3, 3), (3, 4), (0, 5), (1, 6)]
    walks = [standing(4, 4), walking((0, 2, 5), (8, 2, 5), (9, 2.1, 5))]
    places = [middle(*cell) for cell in cells]
    world = build_world(GRID, 16, places, walks, [Happening(0, 10.5)], [ANYTHING, NOTHING])
    world = world._replace(failing=np.array([7], np.int32))
    records = played_twice(world, 16, sensors={"fail_at": "5 s"})
    wanting, walker = 9, 10
    assert records.died[7] == 5
    assert records.transfers == [
        Transfer(12, 0, 0, walker, wanting, SOURCE, True),
        Transfer(12, 0, walker, 6, wanting, RETURN, True),
        Transfer(13, 0, 6, wanting, wanting, SOURCE, True),
    ]


# --- Clearing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("interval", "begin"), [(1, 1.0), (5, 4.0)])
def test_what_is_too_old_as_it_enters_its_queue_is_cleared_at_once(interval: int, begin: float) -> None:
    """After 0.8 s, if it may live for 0.5 s. After 0.4 s it is not too old, and is handed over in that second."""
    events = [Happening(0, begin + 0.2), Happening(0, begin + 0.6)]
    world = build_world(GRID, 12, [middle(1)], [standing(1)], events)
    records = played_twice(world, 12, {"clear_interval": interval}, events={"lifetime": "0.5 s"})
    enters = math.ceil(begin + 0.2)
    assert records.transfers == [Transfer(enters, 1, 0, 1, 1, SOURCE, True)]
    assert records.drops == [Drop(enters, 0, 0, EXPIRED), Drop(enters + interval, 1, 0, EXPIRED)]


# --- Waking -------------------------------------------------------------------------------------------------


def in_the_sun(
    sensors: list[Place],
    walks: list[Walk],
    slots: int,
    weak: int,
    events: Sequence[Happening] = (),
    wants: list[Bounds] | None = None,
) -> World:
    """One sensor has 1 mJ, harvests 0.2 mW and listens for 0.5 mW: it is dead after second 3, and lives from 7 on.

    At the end of the first seconds it has 0.7, 0.4, 0.1 and 0 mJ; after its death 0.2, 0.4 and 0.6: half is enough.
    """
    world, alone = build_world(GRID, slots, sensors, walks, events, wants), np.arange(len(sensors)) == weak
    sun = Harvest(np.outer(2e-4 * alone, np.ones(24)), 0.5, 0)
    return world._replace(battery_j=np.where(alone, 1e-3, 1.0), idle_w=5e-4 * alone, harvest=sun)


def test_kin_know_what_those_knew_who_lived_on_and_hear_of_paths_again() -> None:
    """The middle one of three dies and wakes. Both others remember the subscription, of which it was told at the start.

    The path is announced again, by the subscriber, the last sensor and the middle one, and all three draw their map.
    """
    records = played_twice(in_the_sun(row_of(3), [standing(3)], 8, weak=1), 8)
    assert records.naps == [(1, 3, 6)]
    assert bits(records) == {
        "map": 2 * 3 * 48,
        "price": 3 * (16 + 3 * 4),
        "hello": 2 * 32,
        "reply": 2 * 32,
        "announce": 3 * (64 + 40) + 3 * 64,
    }


def test_who_wakes_alone_has_forgotten() -> None:
    """It is told of the subscription again."""
    records = played_twice(in_the_sun([middle(1)], [standing(2)], 8, weak=0), 8)
    assert records.naps == [(0, 3, 6)]
    assert bits(records) == {"hello": 2 * 32, "reply": 2 * 32, "announce": 2 * (64 + 40)}


def test_who_became_known_to_some_kin_wants_what_lies_with_others() -> None:
    """The middle one is dead as somebody comes to the last one, who wants what the first one has had since second 1."""
    walks = [walking((0, 11, 0), (4, 11, 0), (5, 3, 0))]
    records = played_twice(in_the_sun(row_of(3), walks, 8, weak=1, events=[Happening(0, 0.5)]), 8)
    assert records.transfers == [
        Transfer(7, 0, 0, 1, 3, SOURCE, True),
        Transfer(7, 0, 1, 2, 3, RELAY, True),
        Transfer(7, 0, 2, 3, 3, SOURCE, True),
    ]


def test_kin_have_heard_as_many_sessions_as_the_one_that_heard_most() -> None:
    """A carrier pulls an event that has 39.5 s to live if that is more than T_wait / 4.

    All hear of three legs at 0 and 1 s, the last sensor of the carrier's at 5 s, the first one of three from 4 s on.
    So T_wait is 307 s x 3 / (6 + 1), a quarter of it 33 s; with the four that the last one has heard it would be 46 s.
    """
    idler = walking((0, 1, 0), (4, 1, 0), (5, 1.1, 0), (6, 1, 0), (7, 1.1, 0))
    walks = [idler, walking((0, 11, 0), (4, 11, 0), (5, 5, 0)), walking((0, 1, 0), (1, 1, 0), (2, 11, 0))]
    sensors, wants = [middle(column) for column in (2, 3, 4)], [NOTHING, NOTHING, ANYTHING]
    world = in_the_sun(sensors, walks, 8, weak=1, events=[Happening(0, 6.5)], wants=wants)
    records = played_twice(world, 8, {"carriers": 1}, events={"lifetime": "40 s"})
    carrier = 4
    assert records.transfers == [
        Transfer(7, 0, 0, 1, carrier, SOURCE, True),
        Transfer(7, 0, 1, 2, carrier, RELAY, True),
        Transfer(7, 0, 2, carrier, carrier, SOURCE, True),
    ]


def test_who_carries_from_now_on_is_given_what_lay_there_before() -> None:
    """Beside the first sensor, which has an event for somebody else since second 3, and a loner stands who never moves.

    At the start both wait for 300 s, and with phi = 1 it carries for neither. While the community is parted the last
    sensor hears of one more subscription: of three, and four sessions. So it waits for 184 s as it forms anew, and the
    loner for 153.5 s.
    """
    walks = [walking((0, 11, 0), (4, 11, 0), (5, 5, 0)), standing(1), walking((0, 5, 0), (1, 5, 0), (2, 11, 0))]
    sensors, wants = [middle(column) for column in (2, 3, 4, 0)], [NOTHING, NOTHING, ANYTHING]
    world = in_the_sun(sensors, walks, 8, weak=1, events=[Happening(0, 2.5)], wants=wants)
    records = played_twice(world, 8, {"carriers": 1, "phi": 1.0})
    assert records.transfers == [Transfer(7, 0, 0, 5, 5, SOURCE, True)]
    assert bits(records)["want_map"] == 3


# --- Many communities at once -------------------------------------------------------------------------------


def test_a_subscriber_may_meet_more_communities_at_once_than_ranges_alike_allow() -> None:
    """Five sensors around it that hear 30 m far, five that hear 100 m far: all are loners, and hear it."""
    around = [(radius, 0.2 * math.tau * nth) for radius in (29.0, 99.0) for nth in range(5)]
    sensors = [(150 + radius * math.cos(angle), 150 + radius * math.sin(angle)) for radius, angle in around]
    ranges, crowd = Ranges(np.array([30.0] * 5 + [100.0] * 5), 100.0), [[(0.0, 150.0, 150.0)]] * 4
    records = played_twice(build_world(Grid(300.0, 300.0, 1, 1), 2, sensors, crowd, [], ranges=ranges), 2)
    assert dict(+records.control_messages) == {"hello": 4, "reply": 40, "announce": 40, "subscriptions": 3}

"""Each rule of SERAI in a world small enough to be worked out by hand.

Cells are 10 m wide, so a bit costs 50,000 pJ to receive and to send to a node in the same place, and 51,000 pJ to send
10 m far. Prices stay at 1 (kappa = 0) unless a rule is about them.
"""

from typing import Any

import numpy as np
import pytest

from serai.world.grid import Grid
from tests.field.naive.parts import EXPIRED, FULL, RELAY, RETURN, SOURCE, SPENT, Drop, Reception, Records, Transfer
from tests.field.naive.serai import Serai
from tests.field.naive.serai.manual import Dials
from tests.field.worlds import ANYTHING, Bounds, Happening, Place, Walk, build_scenario, build_world

NEAR, FAR, HEAR = 50_000, 51_000, 50_000  # pJ a bit: to send over 0 m, over 10 m, to receive
NOTHING: Bounds = ((1.0, 0.0),)
Stop = tuple[float, int]  # from this time on, in this column


def middle(column: int, row: int = 0) -> Place:
    return column * 10 + 5.0, row * 10 + 5.0


def jumping(*stops: Stop) -> Walk:
    """A subscriber that stands in columns, one after the other, and takes no time between them."""
    walk: list[tuple[float, float, float]] = []
    for time_s, column in stops:
        if walk:
            walk.append((time_s, *walk[-1][1:]))
        walk.append((time_s, *middle(column)))
    return walk


def play(
    columns: list[int | tuple[int, int]],
    walks: list[Walk],
    events: list[Happening],
    slots: int,
    wants: list[Bounds] | None = None,
    sections: dict[str, Any] | None = None,
    batteries_pj: list[int] | None = None,
    **dials: Any,
) -> Records:
    """What happens to sensors in these columns (of row 0, if none is given)."""
    places = [middle(*cell) if isinstance(cell, tuple) else middle(cell) for cell in columns]
    world = build_world(Grid(200.0, 50.0, 20, 5), slots, places, walks, events, wants)
    if batteries_pj:
        world = world._replace(battery_j=np.array(batteries_pj) / 1e12)
    scenario = build_scenario(world, slots, {"name": "dg"}, **(sections or {}))
    return Serai(world, scenario, 0, Dials(**{"kappa": 0.0, **dials})).run()


def rows(records: Records) -> list[tuple[int, int, int, int, str]]:
    """The transfers: when, which event, from, to, kind."""
    return [(row.time_s, row.event, row.sender, row.receiver, row.kind) for row in records.transfers]


# --- Rules 1, 4, 5 and 7: a loner ---------------------------------------------------------------------------


def test_a_loner() -> None:
    """HELLO, reply, ANNOUNCE with one subscription; an event is handed over in the second of its birth."""
    records = play([0], [jumping((0, 0))], [Happening(0, 2.5)], 10)
    assert records.transfers == [Transfer(3, 0, 0, 1, 1, SOURCE, True)]
    assert records.receptions == [Reception(0, 0, 3, True)]
    assert records.control_messages == {"hello": 1, "reply": 1, "announce": 1}
    assert records.control_bits == {"hello": 32, "reply": 32, "announce": 64 + 40}
    assert records.control_pj == [32 * HEAR + 32 * NEAR + 104 * HEAR]
    assert records.event_pj == [250 * NEAR]


def test_an_event_from_before_is_handed_over_at_the_first_contact() -> None:
    records = play([0], [jumping((0, 9), (20, 1))], [Happening(0, 2.5)], 30)
    assert rows(records) == [(20, 0, 0, 1, SOURCE)]


def test_nobody_gets_what_he_does_not_want() -> None:
    assert play([0], [jumping((0, 0))], [Happening(0, 2.5)], 10, [NOTHING]).transfers == []


def test_each_leg_is_announced_once_and_each_cell_greeted_once() -> None:
    """A walk of 1 m/s over the three cells in reach, and away: one leg. The next one is announced again."""
    there_and_back: Walk = [(0.0, 5.0, 5.0), (30.0, 35.0, 5.0), (60.0, 5.0, 5.0)]
    records = play([1], [there_and_back], [], 60)
    assert records.control_messages == {"hello": 7, "reply": 6, "announce": 2}  # cells 0, 1, 2, 3, 2, 1, 0
    assert records.control_bits["announce"] == 64 + 40 + 64


def test_subscribers_take_turns_at_being_first() -> None:
    """In second t number t mod P begins."""
    births = [Happening(0, 9.5), Happening(0, 10.5), Happening(0, 11.5)]
    records = play([0], [jumping((0, 0))] * 3, births, 14)
    firsts = [row.subscriber for row in records.receptions][::3]
    assert firsts == [10 % 3, 11 % 3, 12 % 3]


def test_a_full_queue_of_home_copies_loses_the_new_event() -> None:
    births = [Happening(0, time_s) for time_s in (0.5, 1.5, 2.5)]
    records = play([0], [jumping((0, 9))], births, 5, sections={"sensors": {"queue": 2}})
    assert records.drops == [Drop(3, 2, 0, FULL)]
    assert records.whose == [(-1, False, 0)]


# --- Rule 2: copies come to their end -----------------------------------------------------------------------


def test_copies_expire_every_five_seconds() -> None:
    """Born at 0.5 s for 7 s: too old from 8 s on, and gone at 10 s; one born at 3.0 s is exactly 7 s old by then."""
    births = [Happening(0, 0.5), Happening(0, 3.0)]
    records = play([0], [jumping((0, 9))], births, 16, sections={"events": {"lifetime": "7 s"}})
    assert records.drops == [Drop(10, 0, 0, EXPIRED), Drop(15, 1, 0, EXPIRED)]


def test_relayed_copies_end_when_nobody_waits_for_them() -> None:
    records = play([2, 3, 4], [jumping((0, 1))], [Happening(2, 0.5)], 10)
    assert records.drops == [Drop(5, 0, 0, SPENT)]
    assert [left.event.number for left in records.left_over[2]] == [0]


# --- Rules 3, 5 and 10: a line of three, to the picojoule ---------------------------------------------------


def test_a_line_of_three() -> None:
    """A subscriber stands beside sensor 0. What sensor 2 measures crosses two hops at once, and the last one later."""
    records = play([2, 3, 4], [jumping((0, 1))], [Happening(2, 0.5)], 10)
    assert rows(records) == [(1, 0, 2, 1, SOURCE), (1, 0, 1, 0, RELAY), (2, 0, 0, 3, SOURCE)]
    assert records.kept == [(True, False), (True, True), (False, False)]
    assert records.event_pj == [250 * (HEAR + FAR), 250 * (HEAR + FAR), 250 * FAR]
    assert records.sent == [1, 1, 1]
    assert records.received == [1, 1, 0]
    assert records.control_messages == {"map": 3, "price": 3, "hello": 1, "reply": 1, "announce": 3}
    assert records.control_bits == {"map": 3 * 48, "price": 3 * 28, "hello": 32, "reply": 32, "announce": 3 * 104}
    lists = 48 + 28  # MAP and PRICE: everybody says them, and hears them of each neighbour
    contact = 32 * (HEAR + FAR) + 104 * HEAR  # HELLO, reply, ANNOUNCE
    flood = [104 * (FAR + HEAR), 104 * (FAR + HEAR), 104 * HEAR]  # 0 and 1 speak; 2 need not
    assert records.control_pj == [
        lists * (FAR + HEAR) + contact + flood[0],
        lists * (FAR + 2 * HEAR) + flood[1],
        lists * (FAR + HEAR) + flood[2],
    ]


def test_prices_are_told_every_ten_minutes() -> None:
    assert play([2, 3], [], [], 1 + 600).control_messages["price"] == 2
    assert play([2, 3], [], [], 2 + 600).control_messages["price"] == 4


def test_a_community_that_knows_nobody_keeps_its_events_until_somebody_comes() -> None:
    """Rule 6: pushed at the announcement, and handed over in the same second."""
    records = play([2, 3, 4], [jumping((0, 9), (20, 1))], [Happening(2, 0.5)], 30)
    assert rows(records) == [(20, 0, 2, 1, SOURCE), (20, 0, 1, 0, RELAY), (20, 0, 0, 3, SOURCE)]


def test_subscriptions_are_told_once_each_way() -> None:
    """Subscriber 0 is there first; subscriber 1 brings its own, and hears the other. In 0's next leg it hears 1's."""
    records = play([5], [jumping((0, 4), (10, 6)), jumping((0, 5))], [], 20)
    assert records.control_bits["announce"] == (64 + 40) + (64 + 40) + 64
    assert records.control_bits["subscriptions"] == 40 + 40
    assert records.control_pj[0] == (
        3 * 32 * HEAR + 32 * (2 * FAR + NEAR)  # HELLOs and replies
        + (3 * 64 + 2 * 40) * HEAR
        + 40 * (NEAR + FAR)  # SUBS: to 1 in the same cell, to 0 beside it
    )  # fmt: skip


# --- Rule 6: the wait test ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "leaves"), [(2.0, True), (120.0, True), (155.0, True), (156.0, False)])
def test_a_sensor_waits_where_it_is_often_served_better(lam: float, leaves: bool) -> None:
    """Sensor 2 was reached for nothing by the first leg; the second would cost 2 hops. The mean saving is (2 + 0) / 2.

    The event is born as the second leg begins, at 10 s, after one session: T_wait = (10 + 300) x 1 / 2 = 155 s. In
    rule 10 it would be 103 s.
    """
    records = play([2, 3, 4], [jumping((0, 5), (10, 1))], [Happening(2, 10.0)], 20, lam=lam)
    pushed = [(10, 0, 2, 1, SOURCE), (10, 0, 1, 0, RELAY), (10, 0, 0, 3, SOURCE)]
    assert rows(records) == (pushed if leaves else [])


# --- Rules 7 to 10: two communities and one who walks -------------------------------------------------------

# Sensors 0, 1 in columns 0, 1; sensors 2, 3 in columns 8, 9. Subscriber 1 (node 5) stands beside sensor 3. Subscriber 0
# (node 4) wants nothing: it hears of subscriber 1 at 1 s, is beside sensor 1 at 10 s, and beside sensor 2 at 20 s.
TWO_COMMUNITIES = [0, 1, 8, 9]
CARRIER = [jumping((0, 4), (1, 7), (10, 2), (20, 7)), jumping((0, 10))]


def carried(**dials: Any) -> Records:
    return play(TWO_COMMUNITIES, CARRIER, [Happening(0, 10.5)], 30, [NOTHING, ANYTHING], **dials)


def test_two_communities_and_a_carrier() -> None:
    """Pulled to the carrier's way (rule 10), taken (7), deposited (9), pushed (10), offered and handed over (7)."""
    records = carried()
    assert rows(records) == [
        (11, 0, 0, 1, SOURCE),
        (12, 0, 1, 4, SOURCE),
        (20, 0, 4, 2, RETURN),
        (20, 0, 2, 3, SOURCE),
        (21, 0, 3, 5, SOURCE),
    ]
    assert records.receptions == [Reception(0, 0, 12, False), Reception(0, 1, 21, True)]
    want_map = 2
    assert records.event_pj == [250 * FAR, 250 * (HEAR + FAR), 250 * (HEAR + FAR), 250 * (HEAR + FAR)]
    assert records.control_bits["want_map"] == 3 * want_map
    with_map, without = records.control_pj, carried(carriers=0).control_pj
    assert with_map[:2] == [without[0] + want_map * FAR, without[1] + want_map * (HEAR + FAR)]
    assert (records.control_messages["offer"], records.control_bits["offer"]) == (1, 16 + 32)


def test_without_carriers_it_stays() -> None:
    assert rows(carried(carriers=0)) == []


def test_who_is_too_far_away_is_not_sent_to() -> None:
    """The carrier is one hop away (rule 10); with hc = 0 the event waits for it to come by."""
    assert rows(carried(hc=0)) == []


def test_who_meets_faster_communities_does_not_carry() -> None:
    """At 10 s T_wait here is 310 s, and at 1 s the other community's was 301 / 2 = 150.5 s: 310 > phi 150.5."""
    assert rows(carried(phi=2.0))[0] == (11, 0, 0, 1, SOURCE)
    assert rows(carried(phi=2.1)) == []


def test_who_waits_long_is_no_place_for_a_deposit() -> None:
    """T_c = (20 + 300) x 2 / (2 + 1) = 213 s at 20 s, T_home = 310 s: phi_d may be up to 1.45."""
    assert len(carried(phi_d=1.45).receptions) == 2
    assert len(carried(phi_d=1.46).receptions) == 1


def test_at_most_d_deposits() -> None:
    assert len(carried(deposits=1).receptions) == 2
    assert len(carried(deposits=0).receptions) == 1


def test_one_offer_for_each_exposed_copy_and_a_refusal_settles_it() -> None:
    """The target itself comes to the home: its copy is exposed. Then it is offered the deposit, once, and refuses."""
    walks = [CARRIER[0], jumping((0, 10), (15, 0), (40, 10))]
    records = play(TWO_COMMUNITIES, walks, [Happening(0, 10.5)], 60, [NOTHING, ANYTHING])
    assert rows(records) == [
        (11, 0, 0, 1, SOURCE),
        (12, 0, 1, 4, SOURCE),
        (15, 0, 0, 5, SOURCE),
        (20, 0, 4, 2, RETURN),
    ]
    # At 15 s from sensor 0; at 40 s from sensor 2, over 3, with a header on both links.
    assert records.control_messages["offer"] == 1 + 2
    assert records.control_bits["offer"] == 3 * (16 + 32)


@pytest.mark.parametrize(("column", "links"), [(10, 2), (7, 1)])
def test_who_has_refused_is_not_asked_again(column: int, links: int) -> None:
    """As above; it comes back beside sensor 3 (rule 6: over two links) or sensor 2 (rule 7: one), and stays on."""
    walks = [CARRIER[0], jumping((0, 10), (15, 0), (40, column), (50, 9))]
    records = play(TWO_COMMUNITIES, walks, [Happening(0, 10.5)], 60, [NOTHING, ANYTHING])
    assert records.control_messages["offer"] == 1 + links


def test_events_that_share_a_second_share_the_header() -> None:
    births = [Happening(0, 10.5), Happening(0, 10.75)]
    records = play(TWO_COMMUNITIES, CARRIER, births, 30, [NOTHING, ANYTHING])
    assert len(records.receptions) == 4
    assert records.control_bits["offer"] == (16 + 32) + 16


def test_youngest_first_and_at_most_twenty_in_a_second() -> None:
    """19 of 25 in the second of HELLO, reply and ANNOUNCE (168 of 5,000 bits), the other six in the next."""
    births = [Happening(0, number / 100) for number in range(25)]
    records = play([0], [jumping((0, 9), (20, 1))], births, 30)
    assert [(row.time_s, row.event) for row in records.receptions] == [
        *((20, event) for event in range(24, 5, -1)),
        *((21, event) for event in range(5, -1, -1)),
    ]


def test_replies_take_their_part_of_the_budget() -> None:
    """500 bits a second, less HELLO, four replies and ANNOUNCE: 236 are left, and the event has to wait."""
    records = play([0] * 4, [jumping((0, 9), (20, 1))], [Happening(0, 2.5)], 30, sections={"radio": {"rate": 2}})
    assert [row.time_s for row in records.receptions] == [21]


def test_sensors_in_reach_are_taken_by_column() -> None:
    """Sensor 1 stands west of sensor 0: it hears the ANNOUNCE, and hands its event over first."""
    births = [Happening(0, 2.5), Happening(1, 2.25)]
    records = play([2, 1], [jumping((0, 9), (20, 1))], births, 30)
    assert rows(records) == [(20, 0, 1, 2, SOURCE), (20, 1, 0, 2, SOURCE)]
    lists, shared = (32 + 24) * (FAR + HEAR), 32 * HEAR
    announced = 104 * (HEAR + FAR)  # heard and said again by sensor 1
    assert records.control_pj == [lists + shared + 32 * FAR + 104 * HEAR, lists + shared + 32 * NEAR + announced]


# --- Rules 8 and 10: walkers as links -----------------------------------------------------------------------

SIX = [2, 3, 4, 5, 6, 7]
# Subscriber 0 (node 6) stands beside sensor 5. Subscriber 1 (node 7) wants nothing; it sets out at 10 s from column 1,
# at 10 m/s: at sensor 0 until 12 s (x < 40), at sensor 5 from 15 s on (x >= 60).
BY_WALKER = [jumping((0, 8)), [*jumping((0, 15), (10, 1)), (27.0, *middle(18))]]


def walked(**more: Any) -> Records:
    return play(SIX, BY_WALKER, [Happening(0, 9.5)], 30, [ANYTHING, NOTHING], carriers=0, **more)


def test_a_walker_is_cheaper_than_five_hops() -> None:
    """1 hop to hand it over, 5 s of walking: 1.5 < 5 - 2. Promised at 10 s, taken at 11 s, dropped at 15 s.

    In a second of an odd number the walker comes first, so its target still gets the event in the same one.
    """
    records = walked()
    assert rows(records) == [(11, 0, 0, 7, SOURCE), (15, 0, 7, 5, RETURN), (15, 0, 5, 6, SOURCE)]
    assert (records.event_pj[0], records.event_pj[5]) == (250 * NEAR, 250 * (HEAR + FAR))
    assert records.control_bits["address"] == 24 + 8
    sent_on = walked(mu_w=3.5)
    assert records.control_pj == [
        sent_on.control_pj[0] + 24 * NEAR,
        *sent_on.control_pj[1:5],
        sent_on.control_pj[5] + 8 * HEAR,
    ]
    assert records.control_messages["offer"] == 0


def test_a_walker_has_to_be_better_by_the_margin() -> None:
    """3.5 hops better."""
    assert rows(walked(mu_w=3.4))[0] == (11, 0, 0, 7, SOURCE)
    five_hops = [(10, 0, sender, sender + 1, SOURCE if sender == 0 else RELAY) for sender in range(5)]
    assert rows(walked(mu_w=3.5)) == [*five_hops, (11, 0, 5, 6, SOURCE)]


def test_a_promise_that_is_not_kept_lapses() -> None:
    """With 250 bits a second nothing can be taken along with 24 more. At 15 s the copy counts as new."""
    records = walked(sections={"radio": {"rate": 1}})
    five_hops = [(15, 0, sender, sender + 1, SOURCE if sender == 0 else RELAY) for sender in range(5)]
    assert rows(records) == [*five_hops, (16, 0, 5, 6, SOURCE)]


def test_what_a_walker_drops_goes_on_by_itself() -> None:
    """The target leaves at 16 s, too early for a drop at sensor 5; sensor 4 is reached at 14 s, and sends it on."""
    walks = [jumping((0, 8), (16, 15)), BY_WALKER[1]]
    records = play(SIX, walks, [Happening(0, 9.5)], 30, [ANYTHING, NOTHING], carriers=0)
    assert rows(records) == [
        (11, 0, 0, 7, SOURCE),
        (14, 0, 7, 4, RETURN),
        (14, 0, 4, 5, SOURCE),
        (15, 0, 5, 6, SOURCE),
    ]


# --- Rule 10: multicast -------------------------------------------------------------------------------------


def test_a_multicast_shares_what_it_can() -> None:
    """Sensors 0 and 1 in a row, 2 and 3 beyond, beside two subscribers: one hop for both, then one for each."""
    cells: list[int | tuple[int, int]] = [(2, 2), (3, 2), (4, 1), (4, 3)]
    walks: list[Walk] = [[(0.0, *middle(5, 0))], [(0.0, *middle(5, 4))]]
    records = play(cells, walks, [Happening(0, 0.5)], 10)
    assert rows(records) == [
        (1, 0, 0, 1, SOURCE),
        (1, 0, 1, 2, RELAY),
        (1, 0, 1, 3, RELAY),
        (2, 0, 2, 4, SOURCE),
        (2, 0, 3, 5, SOURCE),
    ]
    slanting = 50_000 + 10 * 200  # 10 m x 10 m
    assert records.event_pj == [250 * FAR, 250 * (HEAR + 2 * slanting), *[250 * (HEAR + slanting)] * 2]
    assert records.control_bits["address"] == 2 * 8 + 8 + 8


def test_equal_ends_share_one_copy() -> None:
    """Two subscribers beside sensor 0: one message for both, one copy there; who waits for it is who is left."""
    records = play([2, 3, 4], [jumping((0, 1)), jumping((0, 1))], [Happening(2, 0.5)], 10)
    assert rows(records)[:2] == [(1, 0, 2, 1, SOURCE), (1, 0, 1, 0, RELAY)]
    assert sorted(rows(records)[2:]) == [(2, 0, 0, 3, SOURCE), (2, 0, 0, 4, SOURCE)]
    assert (records.event_pj[2], records.control_bits["address"]) == (250 * FAR, 2 * 2 * 8)
    assert records.drops == [Drop(5, 0, 0, SPENT)]


# --- The books ----------------------------------------------------------------------------------------------


def test_every_bit_is_paid_by_who_sends_and_by_who_hears() -> None:
    """All in one place, so that a bit costs the same to send and to hear: who took part is all that counts.

    The first subscriber of each event after the first (nobody was known then) gets it with a want map, to carry.
    """
    sensors, people, events = 5, 3, 40
    births = [Happening(number % sensors, 10.0 * number) for number in range(events)]
    records = play([4] * sensors, [jumping((0, 4))] * people, births, 700)
    who_pays = {"hello": sensors, "reply": 1, "map": sensors, "price": sensors, "subscriptions": 1, "offer": 1}
    who_pays["want_map"] = 1
    bits = dict(records.control_bits)
    assert bits.pop("announce") == people * 104 * 2  # to the contact, which pays, and by it to all
    assert sum(records.control_pj) == HEAR * (
        people * 104 * (1 + sensors) + sum(said * who_pays[kind] for kind, said in bits.items())
    )
    assert records.control_messages["offer"] == (events - 1) * (people - 1)
    assert len(records.transfers) == len(records.receptions) == sum(records.sent) == events * people
    assert records.control_bits["want_map"] == people * (events - 1)
    assert sum(records.event_pj) == NEAR * 250 * events * people


def test_a_broadcast_goes_as_far_as_the_farthest_neighbour() -> None:
    records = play([(2, 2), (3, 2), (4, 3)], [], [], 1)
    slanting = 50_000 + 10 * 200  # 10 m x 10 m
    assert records.control_pj == [48 * (FAR + HEAR), 48 * (slanting + 2 * HEAR), 48 * (slanting + HEAR)]


# --- Deaths -------------------------------------------------------------------------------------------------


def test_who_is_left_makes_a_new_map() -> None:
    """Sensor 1 can pay for the first MAP and no more: it is dead after second 0, and sensor 0 alone."""
    first_map = 64 * (FAR + 2 * HEAR)
    births = [Happening(0, 9.5), Happening(1, 9.5), Happening(2, 9.5)]
    batteries = [10**13, first_map, 10**13, 10**13]
    paid = {"radio": {"control_costs": True}}
    records = play([2, 3, 4, 5], [jumping((0, 9), (20, 6))], births, 30, sections=paid, batteries_pj=batteries)
    assert records.died == [-1, 0, -1, -1]
    assert records.control_pj[1] == first_map
    assert (records.control_messages["map"], records.control_bits["map"]) == (4 + 2, 4 * 64 + 2 * 32)
    assert records.control_messages["announce"] == 1 + 1  # to sensor 3, and by it to sensor 2
    assert rows(records) == [(20, 2, 2, 3, SOURCE), (20, 2, 3, 4, SOURCE)]

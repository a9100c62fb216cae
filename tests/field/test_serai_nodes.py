"""What one node of SERAI's plain version decides by itself, having been told a few things."""

from dataclasses import replace

import pytest

from serai.world.grid import Grid
from tests.field.naive.serai.copies import DEPOSIT, HOME, RELAY, Assignment, Copy
from tests.field.naive.serai.legs import Leg, Place, Reach
from tests.field.naive.serai.manual import Dials, Manual
from tests.field.naive.serai.messages import Announce, Errand, Event, Map, Parcel, Reply, Subs, Subscription
from tests.field.naive.serai.routes import HOP, Branch
from tests.field.naive.serai.sensor import Sensor
from tests.field.naive.serai.subscriber import Subscriber, Task

MANUAL = Manual(Dials(), Reach(Grid(200.0, 50.0, 20, 5)), 20, 250, 2000.0)
FOREVER = float("inf")


def middle(column: int) -> Place:
    return column * 10 + 5.0, 5.0


def event(number: int, born_s: float = 0.0) -> Event:
    return Event(number, 0, born_s, (1.0,))


def wants(subscriber: int, low: float = 0.0, high: float = 9.0) -> Subscription:
    return Subscription(subscriber, ((low, high),))


def standing(column: int) -> Leg:
    return Leg(0.0, middle(column), middle(column), 0.0, FOREVER)


def line_of_three(manual: Manual = MANUAL, number: int = 0) -> Sensor:
    """One of three sensors in columns 2, 3, 4."""
    sensor = Sensor(number, middle(2 + number), 10.0, 3, manual)
    sensor.members = Map({i: middle(2 + i) for i in range(3)})
    return sensor


def told(sensor: Sensor, subscriber: int, column: int, carries: bool = False, *news: Subscription) -> Sensor:
    """The sensor has heard at 0 s of a subscriber that stands in a column."""
    sensor.hear(Announce(subscriber, carries, standing(column), news), 0)
    return sensor


# --- Queues (rules 1 and 6) ---------------------------------------------------------------------------------


def test_the_oldest_that_is_not_home_makes_room() -> None:
    sensor = line_of_three()
    home, young, old = Copy(event(1), HOME, set()), Copy(event(7), DEPOSIT, {1}), Copy(event(4), RELAY, {1})
    assert [sensor.store(copy) for copy in (home, young, old)] == [(True, None)] * 3
    new = Copy(event(3), RELAY, {1})
    assert sensor.store(new) == (True, old)
    assert sensor.queue == [home, young, new]


def test_home_copies_make_no_room() -> None:
    sensor = line_of_three()
    for number in range(3):
        sensor.bear(event(number))
    assert sensor.store(Copy(event(9), RELAY, {1})) == (False, None)
    assert sensor.bear(event(10)) == (False, None)


def test_a_new_subscription_extends_home_copies_unless_settled() -> None:
    sensor = line_of_three()
    copies = [Copy(event(0), HOME, set()), Copy(event(1), HOME, set(), settled={5}), Copy(event(2), DEPOSIT, set())]
    sensor.queue = copies
    told(sensor, 5, 1, False, wants(5), wants(6, high=0.5))
    assert [copy.wanted for copy in copies] == [{5}, set(), set()]
    told(sensor, 5, 1, False, wants(5))  # nothing new
    assert copies[1].wanted == set()


# --- T_wait, ring and the wait test -------------------------------------------------------------------------


def test_how_long_a_sensor_waits() -> None:
    """T_wait = (t + 300) max(1, |kn|) / (ns + 1)."""
    sensor = line_of_three()
    assert sensor.wait_s(100) == 400
    told(sensor, 5, 1)
    assert (sensor.wait_s(100), sensor.wait_s(100, before_session=True)) == (200, 400)
    told(sensor, 6, 1, False, wants(5), wants(6), wants(7))
    assert sensor.wait_s(100) == 400 * 3 / 3


def test_the_last_sixteen_route_costs_are_kept() -> None:
    sensor = line_of_three()
    for _ in range(20):
        told(sensor, 5, 1)
    for _ in range(3):
        told(sensor, 5, 5)
    assert list(sensor.ring) == [0] * 13 + [2 * HOP] * 3


@pytest.mark.parametrize(
    ("wait_s", "exposed", "waits"), [(5, False, False), (4.9, False, True), (8, True, True), (8.4, True, False)]
)
def test_exposed_copies_are_patient(wait_s: float, exposed: bool, waits: bool) -> None:
    """2 s a hop: the ring of 0 and 1 saves (3 + 2) / 2 of 3 hops: 5 s against T_wait, or against xi = 0.6 of it."""
    sensor = line_of_three()
    sensor.ring.extend([0, HOP])
    assert sensor.waits(3 * HOP, Copy(event(0), HOME, set(), exposed=exposed), wait_s) == waits


# --- Carriers (rules 5 to 7) --------------------------------------------------------------------------------


def carrier_at_one_hop(carries: bool = True) -> Sensor:
    """Sensor 1 of the line; subscriber 5 stands beside sensor 0."""
    return told(line_of_three(number=1), 5, 1, carries)


@pytest.mark.parametrize(
    ("copy", "leaves"),
    [
        (Copy(event(0, 0.0), HOME, {6}), True),
        (Copy(event(0, 0.0), HOME, set()), False),
        (Copy(event(0, 0.0), HOME, {6}, settled={5}), False),
        (Copy(event(0, 0.0), HOME, {6}, carriers=1), False),
        (Copy(event(0, 0.0), DEPOSIT, {6}), False),
        (Copy(event(0, -1925.0), HOME, {6}), False),  # T_wait before the session was 300 s: 75 s are left, not more
        (Copy(event(0, -1924.0), HOME, {6}), True),
    ],
)
def test_what_is_pulled_by_a_carrier(copy: Copy, leaves: bool) -> None:
    assert carrier_at_one_hop().push(copy, 5, 0) == (leaves, None)
    assert carrier_at_one_hop(carries=False).push(copy, 5, 0) == (False, None)


def test_a_carrier_pulls_over_five_hops_at_most() -> None:
    copy = Copy(event(0), HOME, {6})
    for hops, leaves in [(2, True), (1, False)]:
        sensor = told(line_of_three(replace(MANUAL, dials=Dials(hc=hops)), 2), 5, 1, True)
        assert sensor.push(copy, 5, 0) == (leaves, None)


def test_what_is_wanted_leaves_whatever_it_is() -> None:
    for kind in (HOME, RELAY, DEPOSIT):
        assert carrier_at_one_hop(carries=False).push(Copy(event(0, -1999.0), kind, {5}), 5, 0) == (True, None)


def test_one_carrier_for_a_home_copy() -> None:
    sensor, copy = carrier_at_one_hop(), Copy(event(0), HOME, {5, 6, 7})
    assert sensor.parcel_for(copy, 5).carry == {6, 7}
    sensor.hand_over(copy, 5)
    assert (copy.wanted, copy.settled, copy.exposed, copy.carriers) == ({6, 7}, {5}, True, 1)
    told(sensor, 6, 1, True)
    assert sensor.parcel_for(copy, 6).carry == frozenset()


def test_a_pull_says_whom_the_carrier_serves() -> None:
    """A copy for the way (W = {p}), with the want map for the bag; it was not exposed before, so nor is that copy."""
    sensor, copy = carrier_at_one_hop(), Copy(event(0), HOME, {6, 7})
    sending = sensor.send(copy, 5, 0)
    parcel = Parcel(event(0), 250, frozenset({5}), carry=frozenset({6, 7}), map_bits=20)
    assert sending.hops == [(1, 0, parcel)]
    assert sending.left == {0: parcel}
    assert parcel.bits == 250 + 20
    assert (copy.wanted, copy.settled, copy.exposed, copy.carriers) == ({6, 7}, {5}, True, 1)


def test_the_want_map_goes_along_the_last_branch() -> None:
    """Subscribers 5 and 6 are beside sensors 0 and 2; 7 is elsewhere. 6 would carry, 5 would not."""
    sensor, copy = told(carrier_at_one_hop(carries=False), 6, 5, True), Copy(event(0), HOME, {5, 6, 7})
    sending = sensor.sending(copy, [Branch(5, [1, 0]), Branch(6, [1, 2])])
    bare, full = (Parcel(event(0), 250, frozenset({p}), map_bits=20, listed=1) for p in (5, 6))
    full = replace(full, carry=frozenset({7}))
    assert sending.hops == [(1, 0, bare), (1, 2, full)]
    assert (bare.bits, full.bits) == (250 + 8, 250 + 20 + 8)
    assert sending.left == {0: replace(bare, listed=0), 2: replace(full, listed=0)}
    other = Copy(event(1), HOME, {5, 6, 7})
    assert not any(parcel.carry for _, _, parcel in sensor.sending(other, [Branch(6, [1, 2]), Branch(5, [1, 0])]).hops)
    assert (other.exposed, other.carriers) == (False, 0)


def test_a_relay_copy_hands_its_want_map_over_once() -> None:
    sensor = told(carrier_at_one_hop(), 6, 1, False)
    copy = Copy(event(0), RELAY, {5, 6}, carry=frozenset({7}))
    assert sensor.parcel_for(copy, 6).carry == {7}
    sensor.hand_over(copy, 6)
    assert (copy.wanted, copy.exposed, copy.carriers) == ({5}, False, 0)
    assert sensor.parcel_for(copy, 5).carry == frozenset()


# --- Walkers (rules 6 and 10) -------------------------------------------------------------------------------


def test_a_copy_is_promised_to_one_walker() -> None:
    """Six sensors in a row, somebody who walks by at 10 m/s, and two subscribers at the other end."""
    sensor = line_of_three()
    sensor.members = Map({i: middle(2 + i) for i in range(6)})
    walk = Leg(0.0, middle(1), middle(18), 17.0, FOREVER)
    told(told(sensor, 5, 8), 6, 8).hear(Announce(7, False, walk, ()), 0)
    copy = Copy(event(0), HOME, {5, 6})
    option = sensor.by_walker(5, sensor.routes(5, 0), 0)
    assert option == (1.5 * HOP, 7, 5)
    sensor.assign(copy, option, 5)
    assert copy.assigned == Assignment(7, 2, Errand(5, 5, 7))  # x < 40 until 2 s; 60 <= x < 90 until 8 s
    assert sensor.push(copy, 6, 0) == (True, None)
    assert sensor.push(copy, 5, 0) == (True, option)
    copy.settle(6)
    assert copy.assigned is not None
    copy.settle(5)
    assert copy.assigned is None


# --- Carriers at birth (rule 10) ----------------------------------------------------------------------------


def test_the_cheapest_carrier_is_sent_to() -> None:
    sensor = line_of_three()
    told(told(told(sensor, 5, 5, True), 6, 4, True), 7, 5, True)  # two, one and two hops away
    copy = Copy(event(0), HOME, {8})
    sending = sensor.send_to_carrier(copy, 5)
    assert sending is not None
    assert [(sender, receiver, parcel.targets) for sender, receiver, parcel in sending.hops] == [(0, 1, {6})]


def test_nobody_is_sent_to_if_a_carrier_will_come() -> None:
    assert told(told(line_of_three(), 5, 5, True), 6, 1, True).send_to_carrier(Copy(event(0), HOME, {8}), 5) is None


def test_whom_it_is_for_is_no_carrier_of_it() -> None:
    assert told(line_of_three(), 5, 5, True).send_to_carrier(Copy(event(0), HOME, {5}), 5) is None


# --- A subscriber -------------------------------------------------------------------------------------------


def subscriber_near(*replies: Reply, dials: Dials | None = None) -> Subscriber:
    """Subscriber 5, which has had these answers to its HELLO."""
    subscriber = Subscriber(wants(5), replace(MANUAL, dials=dials or Dials()))
    subscriber.set_out(standing(1))
    subscriber.hear_replies(replies)
    return subscriber


def reply(sensor: int, community: int, wait_s: float = 100.0, alone: bool = False, full: bool = False) -> Reply:
    return Reply(sensor, community, alone, wait_s, full)


@pytest.mark.parametrize(
    ("wait_s", "phi", "carries"),
    [(200.0, 1.0, True), (100.0, 1.0, False), (50.0, 1.0, False), (50.0, 0.5, True), (199.0, 2.0, False)],
)
def test_the_carry_bit(wait_s: float, phi: float, carries: bool) -> None:
    """T_wait > phi t_best; elsewhere it met 100 s at best. As t_best counts this place, too, phi < 1 is always yes."""
    subscriber = subscriber_near(reply(3, 3, 100.0), reply(8, 8, 300.0), reply(0, 0, wait_s), dials=Dials(phi=phi))
    assert subscriber.announce(0, frozenset()).carries == carries


def test_a_leg_is_announced_once_to_a_community() -> None:
    subscriber = subscriber_near(reply(0, 0), reply(1, 0), reply(4, 4))
    assert [subscriber.is_first_contact(sensor) for sensor in (0, 1, 4, 9)] == [True, True, True, False]
    subscriber.announce(0, frozenset())
    assert [subscriber.is_first_contact(sensor) for sensor in (0, 1, 4)] == [False, False, True]
    subscriber.set_out(standing(2))
    assert subscriber.is_first_contact(1)


def test_only_what_is_lacking_is_told() -> None:
    subscriber = subscriber_near(reply(0, 0))
    subscriber.learn(Subs((wants(3), wants(9))))
    assert [s.subscriber for s in subscriber.announce(0, frozenset({3, 4})).news] == [5, 9]


def carrying(*replies: Reply, dials: Dials | None = None) -> Subscriber:
    """Subscriber 5 has taken event 1 in community 0, where T_home = 100 s, and has these neighbours now."""
    subscriber = subscriber_near(reply(0, 0), dials=dials)
    subscriber.receive(Parcel(event(1), 250, carry=frozenset({6}), map_bits=20), 0)
    subscriber.hear_replies(replies)
    return subscriber


@pytest.mark.parametrize(
    ("replies", "depot"),
    [
        ([reply(0, 0)], None),  # its home
        ([reply(3, 3, alone=True)], None),
        ([reply(3, 3, 1000.0)], 3),  # 0.1 T_c <= T_home
        ([reply(3, 3, 1001.0)], None),
        ([reply(3, 3, full=True)], None),
        ([reply(3, 3, full=True), reply(4, 3), reply(5, 3)], 4),
        ([reply(0, 0), reply(7, 7), reply(3, 3)], 7),
    ],
)
def test_where_an_event_is_deposited(replies: list[Reply], depot: int | None) -> None:
    subscriber = carrying(*replies)
    assert subscriber.depot(subscriber.bag[0], [said.sensor for said in replies]) == depot


def test_each_community_gets_it_once_and_four_at_most() -> None:
    communities = [3, 4, 5, 6, 7]
    subscriber = carrying(*(reply(c, c) for c in communities))
    found = []
    for _ in communities:
        depot = subscriber.depot(subscriber.bag[0], communities)
        found.append(depot)
        if depot is not None:
            parcel = subscriber.deposit(subscriber.bag[0])
            subscriber.note_left(subscriber.bag[0], depot)
            assert (parcel.carry, parcel.bits) == ({6}, 250 + 20)
    assert found == [3, 4, 5, 6, None]


def test_an_event_is_in_the_bag_once() -> None:
    subscriber = carrying(reply(0, 0))
    assert not subscriber.receive(Parcel(event(1), 250, carry=frozenset({7}), map_bits=20), 0)
    assert [carried.wanted for carried in subscriber.bag] == [{6}]


def test_where_a_walker_drops() -> None:
    """At sensor 4 when it is in reach; anywhere when its time is past."""
    subscriber = subscriber_near()
    subscriber.receive(Parcel(event(1), 250, errand=Errand(9, 4, 20.0)), 0)
    task = Task(event(1), Errand(9, 4, 20.0))
    assert subscriber.tasks == [task]
    assert subscriber.due_at(task, [2, 3], 20) is None
    assert subscriber.due_at(task, [2, 4], 10) == 4
    assert subscriber.due_at(task, [2, 3], 21) == 2
    assert subscriber.due_at(task, [], 21) is None
    parcel = subscriber.drop(task)
    assert (parcel.targets, parcel.bits) == ({9}, 250 + 8)


def test_what_is_carried_grows_old_like_everything_else() -> None:
    subscriber = carrying(reply(0, 0))
    subscriber.receive(Parcel(event(2), 250, errand=Errand(9, 4, 20.0)), 0)
    subscriber.outlive(2000)
    assert (len(subscriber.bag), len(subscriber.tasks)) == (1, 1)
    subscriber.outlive(2001)
    assert (subscriber.bag, subscriber.tasks) == ([], [])

"""What contacts alone would allow: the most that any protocol could deliver in a world, and how soon.

Every published ratio is limited by who ever met whom. Three upper bounds, for all pairs of an event and a
subscriber that wants it; queues, rates and batteries have no limits, and who is within reach is looked at once
a second, as protocols do:

* direct: the subscriber must come within reach of the sensor itself;
* community: of any sensor of its community;
* epidemic: subscribers carry everything from community to community.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import matches
from serai.core.interested import count_interested
from serai.core.jit import announced_compilation, engine, shared, step
from serai.field.contacts import contacts_with_communities, most_communities_in_contact, sensor_contacts
from serai.field.visits import order_of_rows
from serai.field.world import World
from serai.world.grid import Floats, Numbers
from serai.world.ranges import SensorContacts


class UpperBound(NamedTuple):
    """The share of wanted pairs that could be served in time, and their mean delay; nan if there are none."""

    ratio: float
    mean_delay_s: float


class _Contacts(NamedTuple):
    """Contacts of subscribers with sensors or communities, by (subscriber, node, start)."""

    subscriber: Numbers
    node: Numbers
    start: Numbers
    end: Numbers


class Content(NamedTuple):
    """What happens, and who wants to know."""

    born_s: Floats
    lifetime_s: float
    values: Floats
    low: Floats
    high: Floats


class _Tally(NamedTuple):
    """By event: how many of those who want it can get it in time, and the sum of the slots in which."""

    possible: NDArray[np.int64]
    arrival_slots: NDArray[np.int64]


def upper_bounds(
    world: World, lifetime_s: float, slots: int, silent_while_pausing: bool = False
) -> dict[str, UpperBound]:
    """The upper bounds of a world by name: direct, community, epidemic."""
    # Copied if they are read-only: kernels compile once per kind of array.
    born_s, values, low, high = (
        np.require(column, np.float64, ["C", "W"])
        for column in (world.event_time_s, world.event_values, world.low, world.high)
    )
    content = Content(born_s, float(lifetime_s), values, low, high)
    sensors = sensor_contacts(world, slots, silent_while_pausing=silent_while_pausing)
    groups = contacts_with_communities(world, slots, silent_while_pausing)
    seats = most_communities_in_contact(world)
    direct = _Contacts(
        sensors.subscriber, sensors.sensor, sensors.start_s.astype(np.int32), sensors.end_s.astype(np.int32)
    )
    home = world.communities.of_sensor[world.event_sensor]
    with announced_compilation("upper-bound", about_s=10):
        tallies = {
            "direct": _tally_contacts(direct, world.event_sensor, content),
            "community": _tally_contacts(_Contacts(*groups), home, content),
            "epidemic": _tally_epidemic(_Contacts(*groups), home, content, slots, seats),
        }
    wanted = int(count_interested(content.values, content.low, content.high).sum())
    return {name: _bound_of(tally, content.born_s, wanted) for name, tally in tallies.items()}


def _bound_of(tally: _Tally, born_s: Floats, wanted: int) -> UpperBound:
    """The upper bound that a tally amounts to."""
    possible = int(tally.possible.sum())
    # Exactly rounded, so that the mean does not depend on the order in which arrivals were found.
    total_s = math.fsum(tally.arrival_slots - tally.possible * born_s)
    return UpperBound(
        ratio=possible / wanted if wanted else math.nan,
        mean_delay_s=total_s / possible if possible else math.nan,
    )


def possible_by_contacts(
    found: SensorContacts, place: NDArray[np.int64], home: NDArray[np.int64], content: Content
) -> NDArray[np.int64]:
    """How many subscribers can get each event in time, if it waits at its place `home` and contacts are with places."""
    born_s, values = (np.require(column, np.float64, ["C", "W"]) for column in (content.born_s, content.values))
    columns = (found.subscriber, place, found.start_s, found.end_s)
    contacts = _Contacts(*(np.ascontiguousarray(column, np.int32) for column in columns))
    with announced_compilation("upper-bound", about_s=10):
        return _tally_contacts(contacts, home.astype(np.int32), content._replace(born_s=born_s, values=values)).possible


def _new_tally(events: int) -> _Tally:
    return _Tally(np.zeros(events, np.int64), np.zeros(events, np.int64))


# ---- direct and community: the first contact at or after birth


def _tally_contacts(found: _Contacts, home: Numbers, content: Content) -> _Tally:
    """Who could get what, if each event waits at its node `home[event]` to be met."""
    order = order_of_rows(found.subscriber, found.node, found.start)
    contacts = _Contacts(*(column[order] for column in found))
    by_home = np.argsort(home, kind="stable")
    nodes = 1 + max(int(home.max(initial=-1)), int(found.node.max(initial=-1)))
    first_event = np.searchsorted(home[by_home], np.arange(nodes + 1))
    sorted_content = content._replace(born_s=content.born_s[by_home], values=content.values[by_home])
    sorted_tally, tally = _new_tally(home.size), _new_tally(home.size)
    _meet(contacts, first_event, sorted_content, sorted_tally)
    for column, sorted_column in zip(tally, sorted_tally, strict=True):
        column[by_home] = sorted_column
    return tally


@engine
def _meet(contacts: _Contacts, first_event: NDArray[np.int64], content: Content, tally: _Tally) -> None:
    """Give each subscriber at each contact with a node what was born there since their last contact.

    Contacts stand by (subscriber, node, start) and the events of a node by birth, so `event` only ever moves forward
    while subscriber and node stay the same: an event that was passed has been served, or was too old.
    """
    contacts, content, tally = shared(contacts), shared(content), shared(tally)
    event = 0
    for row in range(len(contacts.node)):
        subscriber, node = contacts.subscriber[row], contacts.node[row]
        if row == 0 or contacts.node[row - 1] != node or contacts.subscriber[row - 1] != subscriber:
            event = first_event[node]
        end = first_event[node + 1]
        # A second more than the lifetime: who is too old is decided by `_is_served` alone.
        event = _first_born_after(contacts.start[row] - content.lifetime_s - 1.0, event, end, content.born_s)
        while event < end and content.born_s[event] <= contacts.end[row] - 1:
            slot = max(math.ceil(content.born_s[event]), contacts.start[row])
            if _is_served(event, subscriber, slot, content):
                tally.possible[event] += 1
                tally.arrival_slots[event] += slot
            event += 1


@step
def _first_born_after(time_s: float, begin: int, end: int, born_s: Floats) -> int:
    """The first event from `begin` on that is born at or after a time; `end` if there is none."""
    while begin < end:
        middle = (begin + end) // 2
        if born_s[middle] < time_s:
            begin = middle + 1
        else:
            end = middle
    return begin


@step
def _is_served(event: int, subscriber: int, slot: int, content: Content) -> bool:
    """Whether an event that can reach a subscriber in a slot is in time and wanted."""
    in_time = slot - content.born_s[event] <= content.lifetime_s
    return in_time and matches(content.values[event], content.low[subscriber], content.high[subscriber])


# ---- epidemic: backwards through time
#
# Forwards, every event would have to be spread on its own: events x contacts. Backwards, one pass serves them all.
# Let arrival[x, p] be the first slot in which subscriber p can have what node x knows now; after the last slot that is
# never. One slot earlier it differs only for nodes connected in that slot: they exchange all they know, so each can
# reach p as early as any of them, and the subscribers among them have it at once. When the pass comes to the slot in
# which an event is born, the row of its community is the answer, for all subscribers.
#
# Most slots change nothing. So connected nodes share one row, and rows are touched only in slots where a contact begins
# or ends, and only those of the nodes connected with it.


class _Timetable(NamedTuple):
    """What happens when: rows of contacts that start or end in slot t stand from at[t] to at[t + 1]."""

    starting: NDArray[np.int64]
    starting_at: NDArray[np.int64]
    ending: NDArray[np.int64]
    ending_at: NDArray[np.int64]
    born_at: NDArray[np.int64]  # events are numbered by birth, so these are their numbers


class _Counts(NamedTuple):
    """Numbers that change, each in an array of one."""

    searches: NDArray[np.int64]
    free_rows: NDArray[np.int64]
    old_rows: NDArray[np.int64]


class _Reach(NamedTuple):
    """Who is within reach of whom in the slot looked at, and what is known about the slots after it.

    Nodes are communities 0 .. C-1, then subscribers C .. C+P-1. Nodes that are connected in this slot know
    the same and share a row: `arrival[row, p]` is the first slot in which p can have what they know.
    The subscribers among them have it at once; the row is told so only when their connections change.

    A subscriber has a number of seats, one for each community that it may have within reach. The taken seats of one
    community form a chain.
    """

    seats: int  # of each subscriber
    arrival: Numbers
    row: Numbers  # of each node
    free_rows: Numbers
    old_rows: Numbers  # to be freed when all nodes have left them
    seat_community: Numbers  # -1: free
    next_seat: Numbers
    last_seat: Numbers
    first_seat: Numbers
    connected: Numbers  # nodes found by the latest search
    node_mark: NDArray[np.int64]  # the search that found the node last
    row_mark: NDArray[np.int64]  # the search that met the row last
    counts: _Counts


def _tally_epidemic(contacts: _Contacts, home: Numbers, content: Content, slots: int, seats: int) -> _Tally:
    """Who could get what, if whoever meets a community shares with it all that both know."""
    subscribers = len(content.low)
    communities = 1 + max(int(home.max(initial=-1)), int(contacts.node.max(initial=-1)))
    tally = _new_tally(home.size)
    reach = _nobody_in_reach(communities, subscribers, slots, seats)
    _look_back(contacts, _timetable(contacts, content, slots), home, content, slots, reach, tally)
    return tally


def _timetable(contacts: _Contacts, content: Content, slots: int) -> _Timetable:
    """Sort contacts and births by slot."""
    every_slot = np.arange(slots + 2)
    starting, ending = np.argsort(contacts.start), np.argsort(contacts.end)
    return _Timetable(
        starting,
        np.searchsorted(contacts.start[starting], every_slot),
        ending,
        np.searchsorted(contacts.end[ending], every_slot),
        np.searchsorted(np.ceil(content.born_s), every_slot),
    )


def _nobody_in_reach(communities: int, subscribers: int, slots: int, seats_each: int) -> _Reach:
    """After the last slot nothing arrives any more, and every node has a row of its own."""
    nodes, seats = communities + subscribers, subscribers * seats_each
    rows = 2 * nodes  # while nodes change rows, the old and the new ones are in use
    arrival = np.empty((rows, subscribers), np.int32)
    arrival[:nodes] = slots
    return _Reach(
        seats=seats_each,
        arrival=arrival,
        row=np.arange(nodes, dtype=np.int32),
        free_rows=np.arange(rows, dtype=np.int32)[::-1].copy(),
        old_rows=np.empty(nodes, np.int32),
        seat_community=np.full(seats, -1, np.int32),
        next_seat=np.full(seats, -1, np.int32),
        last_seat=np.full(seats, -1, np.int32),
        first_seat=np.full(communities, -1, np.int32),
        connected=np.empty(nodes, np.int32),
        node_mark=np.zeros(nodes, np.int64),
        row_mark=np.zeros(rows, np.int64),
        counts=_Counts(np.zeros(1, np.int64), np.array([nodes]), np.zeros(1, np.int64)),
    )


@engine
def _look_back(
    contacts: _Contacts,
    table: _Timetable,
    home: Numbers,
    content: Content,
    slots: int,
    reach: _Reach,
    tally: _Tally,
) -> None:
    """From the last slot to the first: who comes within reach and who no longer is, then what is born."""
    contacts, table, content = shared(contacts), shared(table), shared(content)
    reach, tally = shared(reach), shared(tally)
    for slot in range(slots - 1, -1, -1):
        _change(contacts, table, slot, reach)
        for event in range(table.born_at[slot], table.born_at[slot + 1]):
            _spread(event, home[event], slot, slots, content, reach, tally)


@step
def _spread(event: int, community: int, slot: int, slots: int, content: Content, reach: _Reach, tally: _Tally) -> None:
    """Count whom an event reaches that its community knows from this slot on."""
    row, communities = reach.row[community], len(reach.first_seat)
    possible = arrival_slots = 0
    for subscriber in range(len(content.low)):
        # Who shares the row is connected with the community now; the row itself is not told until that ends.
        at_once = reach.row[communities + subscriber] == row
        arrival = slot if at_once else reach.arrival[row, subscriber]
        if arrival < slots and _is_served(event, subscriber, arrival, content):
            possible += 1
            arrival_slots += arrival
    tally.possible[event] = possible
    tally.arrival_slots[event] = arrival_slots


@step
def _change(contacts: _Contacts, table: _Timetable, slot: int, reach: _Reach) -> None:
    """Go back from the slot after `slot` to `slot`: settle what was connected then, and regroup the nodes."""
    # Going back in time a contact appears where it ends and is gone before it starts.
    new, new_end = table.ending_at[slot + 1], table.ending_at[slot + 2]
    gone, gone_end = table.starting_at[slot + 1], table.starting_at[slot + 2]
    if new == new_end and gone == gone_end:
        return
    before = reach.counts.searches[0]  # nodes and rows with a later mark have been dealt with
    for i in range(gone, gone_end):  # whoever stays connected is settled when that ends
        _settle(contacts.node[table.starting[i]], before, slot + 1, reach)
    for i in range(gone, gone_end):
        _leave_seat(contacts.subscriber[table.starting[i]], contacts.node[table.starting[i]], reach)
    for i in range(new, new_end):
        _take_seat(contacts.subscriber[table.ending[i]], contacts.node[table.ending[i]], reach)
    before = reach.counts.searches[0]
    for i in range(new, new_end):
        _regroup(contacts.node[table.ending[i]], before, reach)
    for i in range(gone, gone_end):  # the contact that is gone may have been all that held its two sides together
        _regroup(contacts.node[table.starting[i]], before, reach)
        _regroup(len(reach.first_seat) + contacts.subscriber[table.starting[i]], before, reach)
    while reach.counts.old_rows[0] > 0:
        reach.counts.old_rows[0] -= 1
        reach.free_rows[reach.counts.free_rows[0]] = reach.old_rows[reach.counts.old_rows[0]]
        reach.counts.free_rows[0] += 1


@step
def _settle(node: int, before: int, slot: int, reach: _Reach) -> None:
    """Write down that what a node and those connected with it know reaches the subscribers among them now."""
    if reach.node_mark[node] > before:
        return  # done with another of them
    communities, found = len(reach.first_seat), _find_connected(node, reach)
    for place in range(found):
        if reach.connected[place] >= communities:
            reach.arrival[reach.row[node], reach.connected[place] - communities] = slot


@step
def _regroup(node: int, before: int, reach: _Reach) -> None:
    """Give a node and those connected with it a row of their own, with the best that any of them knew.

    Old rows are not reused before all groups are made: a group that falls apart needs its row for each of the parts.
    """
    if reach.node_mark[node] > before:
        return
    found = _find_connected(node, reach)
    search = reach.counts.searches[0]
    reach.counts.free_rows[0] -= 1
    fresh = reach.free_rows[reach.counts.free_rows[0]]
    for place in range(found):
        other = reach.connected[place]
        old = reach.row[other]
        reach.row[other] = fresh
        if reach.row_mark[old] == search:
            continue  # another of this group had it
        if reach.row_mark[old] <= before:
            reach.old_rows[reach.counts.old_rows[0]] = old
            reach.counts.old_rows[0] += 1
        reach.row_mark[old] = search
        _take_over(fresh, old, place == 0, reach)


@step
def _take_over(fresh: int, old: int, first: bool, reach: _Reach) -> None:
    """Copy the first old row into the fresh one; of the others, what is better."""
    for subscriber in range(len(reach.row) - len(reach.first_seat)):
        if first or reach.arrival[old, subscriber] < reach.arrival[fresh, subscriber]:
            reach.arrival[fresh, subscriber] = reach.arrival[old, subscriber]


@step
def _find_connected(node: int, reach: _Reach) -> int:
    """Put into `connected` the node and all that can be reached from it in this slot; how many."""
    reach.counts.searches[0] += 1
    communities, found, done = len(reach.first_seat), _meet_node(node, 0, reach), 0
    while done < found:
        here = reach.connected[done]
        done += 1
        if here < communities:
            seat = reach.first_seat[here]
            while seat >= 0:
                found = _meet_node(communities + seat // reach.seats, found, reach)
                seat = reach.next_seat[seat]
        else:
            first = (here - communities) * reach.seats
            for seat in range(first, first + reach.seats):
                if reach.seat_community[seat] >= 0:
                    found = _meet_node(reach.seat_community[seat], found, reach)
    return found


@step
def _meet_node(node: int, found: int, reach: _Reach) -> int:
    """Note a node, unless this search has met it before; how many there are now."""
    if reach.node_mark[node] == reach.counts.searches[0]:
        return found
    reach.node_mark[node] = reach.counts.searches[0]
    reach.connected[found] = node
    return found + 1


@step
def _seat_of(subscriber: int, community: int, reach: _Reach) -> int:
    """The subscriber's seat for a community; for -1, a free one."""
    seat = subscriber * reach.seats
    while reach.seat_community[seat] != community:
        seat += 1
    return seat


@step
def _take_seat(subscriber: int, community: int, reach: _Reach) -> None:
    """The subscriber has the community within reach: its seat goes to the head of the chain."""
    seat, following = _seat_of(subscriber, -1, reach), reach.first_seat[community]
    reach.seat_community[seat] = community
    reach.next_seat[seat] = following
    reach.last_seat[seat] = -1
    if following >= 0:
        reach.last_seat[following] = seat
    reach.first_seat[community] = seat


@step
def _leave_seat(subscriber: int, community: int, reach: _Reach) -> None:
    """The subscriber no longer has the community within reach: its seat leaves the chain."""
    seat = _seat_of(subscriber, community, reach)
    last, following = reach.last_seat[seat], reach.next_seat[seat]
    reach.seat_community[seat] = -1
    if last >= 0:
        reach.next_seat[last] = following
    else:
        reach.first_seat[community] = following
    if following >= 0:
        reach.last_seat[following] = last
